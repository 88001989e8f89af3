"""The tables, as plain SQLAlchemy 2 typed models."""

from __future__ import annotations

from webqueue.models.access import AuditEntry, Role, Token, User, UserSession
from webqueue.models.base import Base, StoredSetting
from webqueue.models.deliveries import Delivery, DeliveryStatus
from webqueue.models.documents import (
    Document,
    DocumentAlias,
    DocumentState,
    DocumentVersion,
    ForgottenDocument,
)
from webqueue.models.jobs import Job, JobLog, JobSource, JobStatus
from webqueue.models.login_attempts import LoginAttempt
from webqueue.models.processes import Process
from webqueue.models.rate_keys import IntervalChange, KeyEvent, RateKey, RateKeyNote, RateKeyStatus
from webqueue.models.sites import RateGroupRow, Site, Target
from webqueue.models.visits import RequestDay, RobotsFile

__all__ = [
    "AuditEntry",
    "Base",
    "Delivery",
    "DeliveryStatus",
    "Document",
    "DocumentAlias",
    "DocumentState",
    "DocumentVersion",
    "ForgottenDocument",
    "IntervalChange",
    "Job",
    "JobLog",
    "JobSource",
    "JobStatus",
    "KeyEvent",
    "LoginAttempt",
    "Process",
    "RateGroupRow",
    "RateKey",
    "RateKeyNote",
    "RateKeyStatus",
    "RequestDay",
    "RobotsFile",
    "Role",
    "Site",
    "StoredSetting",
    "Target",
    "Token",
    "User",
    "UserSession",
]
