"""What the verbs take and give."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from webqueue.models import Job, Site, Target
from webqueue.settings import Settings

LEASE_SECONDS: Final = 60
# A lease whose owner is seen alive, but silent, is extended this often before its job is taken over (P5).
MAX_EXTENSIONS: Final = 3
# Recoveries of one job; the next orphaning fails it (SEEDS C 5).
MAX_RECOVERIES: Final = 3


class Life(Enum):
    """What is known of a worker's process (P5)."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"  # on another machine: its lease has to end


@dataclass(frozen=True, order=True)
class Lease:
    """The right to run a job, as long as `token` is the one in the tables."""

    rate_key: str
    job_seq: int
    job_id: str
    token: int
    worker_id: str


@dataclass(frozen=True)
class Claimed:
    """A job that was just claimed; its rows are read-only from here on.

    Attributes:
        last_request_at: end of the key's last request, for the spacing of the next one.
        chain_began_at: first start of the chain's first job; what was stored before is known.
        open_for_sec: until the site's allowed hours end; None when it has none.
    """

    lease: Lease
    job: Job
    site: Site
    target: Target
    last_request_at: datetime | None
    chain_began_at: datetime
    open_for_sec: float | None = None


@dataclass(frozen=True)
class Submitted:
    """Answer to a submission.

    Attributes:
        deduplicated: an equal job stands already; `id` names that one and nothing was added.
        position: place in the key's line, 1 = the next, 0 = not waiting; counted up to 1,000.
    """

    id: str
    seq: int
    rate_key: str
    deduplicated: bool
    position: int


@dataclass(frozen=True)
class Finished:
    """What a run came to; `follow_up_id` is the retry or continuation that was queued with it."""

    status: str
    follow_up_id: str | None = None


@dataclass(frozen=True)
class Policy:
    """The environment's part in what follows a run."""

    host_cooldown_delay_sec: int = 600
    cooldown_auto_retry_max: int = 12

    @classmethod
    def from_settings(cls, settings: Settings) -> Policy:
        return cls(settings.host_cooldown_delay_sec, settings.cooldown_auto_retry_max)
