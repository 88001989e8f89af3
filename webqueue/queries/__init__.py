"""What pages and API read: frozen dataclasses, and functions that take a session. Nothing here writes.

Every function is bounded and runs on indexes; a page needs a fixed number of statements, however many rows it shows.
"""

from __future__ import annotations

from webqueue.politeness.keys import keys_by_adapter, resolve_url
from webqueue.queries.audit import AuditAct, AuditFilter, AuditRow, get_audit, list_acts, list_audit
from webqueue.queries.changes import health_version, job_version, state_version
from webqueue.queries.document_diff import Diff, version_diff
from webqueue.queries.document_search import Piece, Search, marked, reaches_all, snippets
from webqueue.queries.documents import (
    DocumentDetail,
    DocumentFilter,
    DocumentRow,
    DocumentVersionRow,
    get_document,
    list_documents,
)
from webqueue.queries.jobs import (
    JOB_STATUSES,
    JobFilter,
    JobRow,
    Progress,
    chain,
    get_job,
    job_id_of,
    list_jobs,
    list_key_queue,
    running_jobs,
)
from webqueue.queries.logs import LogFilter, LogLine, LogPage, job_log, job_log_around, job_log_tail
from webqueue.queries.overview import (
    Counts,
    FailureGroup,
    NextRun,
    attention_jobs,
    counts,
    failures,
    next_runs,
)
from webqueue.queries.paging import MAX_LIMIT, Page
from webqueue.queries.rate_keys import (
    KeyEventRow,
    NotBefore,
    RateKeyRow,
    get_rate_key,
    key_events,
    list_rate_keys,
)
from webqueue.queries.runs import JobRef, Run
from webqueue.queries.selections import (
    CANCELLABLE,
    MAX_CHOSEN,
    MAX_TARGETS,
    REPEATABLE,
    ChosenJob,
    chosen_jobs,
    count_jobs,
    count_targets,
    known_targets,
    matching_jobs,
    matching_targets,
    newest_number,
)
from webqueue.queries.site_keys import sites_by_key
from webqueue.queries.sites import SiteRow, get_site, list_sites, site_codes
from webqueue.queries.status import ProcessRow, Status, get_status
from webqueue.queries.targets import (
    IntervalChangeRow,
    TargetFilter,
    TargetRow,
    get_target,
    interval_changes,
    last_runs,
    list_targets,
    target_codes,
    targets_of_sites,
)
from webqueue.queries.waiting import Waiting

__all__ = [
    "CANCELLABLE",
    "JOB_STATUSES",
    "MAX_CHOSEN",
    "MAX_LIMIT",
    "MAX_TARGETS",
    "REPEATABLE",
    "AuditAct",
    "AuditFilter",
    "AuditRow",
    "ChosenJob",
    "Counts",
    "Diff",
    "DocumentDetail",
    "DocumentFilter",
    "DocumentRow",
    "DocumentVersionRow",
    "FailureGroup",
    "IntervalChangeRow",
    "JobFilter",
    "JobRef",
    "JobRow",
    "KeyEventRow",
    "LogFilter",
    "LogLine",
    "LogPage",
    "NextRun",
    "NotBefore",
    "Page",
    "Piece",
    "ProcessRow",
    "Progress",
    "RateKeyRow",
    "Run",
    "Search",
    "SiteRow",
    "Status",
    "TargetFilter",
    "TargetRow",
    "Waiting",
    "attention_jobs",
    "chain",
    "chosen_jobs",
    "count_jobs",
    "count_targets",
    "counts",
    "failures",
    "get_audit",
    "get_document",
    "get_job",
    "get_rate_key",
    "get_site",
    "get_status",
    "get_target",
    "health_version",
    "interval_changes",
    "job_id_of",
    "job_log",
    "job_log_around",
    "job_log_tail",
    "job_version",
    "key_events",
    "keys_by_adapter",
    "known_targets",
    "last_runs",
    "list_acts",
    "list_audit",
    "list_documents",
    "list_jobs",
    "list_key_queue",
    "list_rate_keys",
    "list_sites",
    "list_targets",
    "marked",
    "matching_jobs",
    "matching_targets",
    "newest_number",
    "next_runs",
    "reaches_all",
    "resolve_url",
    "running_jobs",
    "site_codes",
    "sites_by_key",
    "snippets",
    "state_version",
    "target_codes",
    "targets_of_sites",
    "version_diff",
]
