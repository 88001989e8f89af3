"""The verbs of jobs and rate keys: the one way in which they change (DESIGN section 5).

Every verb takes a session first and never commits; `database.run(lambda session: jobs.cancel(session, ...))` makes it
one short transaction. Each locks its keys, sorted by name, before it reads or changes a job, and ends with `settle`.
"""

from __future__ import annotations

from webqueue.job_verbs.claiming import claim, earliest_due, free_dead
from webqueue.job_verbs.finishing import finish, hand_back
from webqueue.job_verbs.history import (
    Forgotten,
    Old,
    forget_all_of,
    forget_finished,
    forget_logs,
    logs_to_forget,
)
from webqueue.job_verbs.keys import (
    lift_cooldown,
    pause_all,
    pause_key,
    paused_all,
    rekey_site,
    rekey_sites,
    resume_all,
    resume_key,
)
from webqueue.job_verbs.operating import cancel, force_stop, move_to_front
from webqueue.job_verbs.retention import Rule, retention, set_rule
from webqueue.job_verbs.running import (
    add_log_lines,
    checkpoint,
    fence,
    force_requests,
    note_process_group,
    note_stuck,
    progress,
    record_interval,
    renew,
    stop_requests,
)
from webqueue.job_verbs.settling import settle
from webqueue.job_verbs.submitting import (
    lock_key_of_target,
    lock_keys_of_targets,
    new_job_id,
    retry,
    skip_tick,
    skip_ticks,
    submit,
)
from webqueue.job_verbs.types import (
    LEASE_SECONDS,
    MAX_EXTENSIONS,
    MAX_RECOVERIES,
    Claimed,
    Finished,
    Lease,
    Life,
    Policy,
    Submitted,
)

__all__ = [
    "LEASE_SECONDS",
    "MAX_EXTENSIONS",
    "MAX_RECOVERIES",
    "Claimed",
    "Finished",
    "Forgotten",
    "Lease",
    "Life",
    "Old",
    "Policy",
    "Rule",
    "Submitted",
    "add_log_lines",
    "cancel",
    "checkpoint",
    "claim",
    "earliest_due",
    "fence",
    "finish",
    "force_requests",
    "force_stop",
    "forget_all_of",
    "forget_finished",
    "forget_logs",
    "free_dead",
    "hand_back",
    "lift_cooldown",
    "lock_key_of_target",
    "lock_keys_of_targets",
    "logs_to_forget",
    "move_to_front",
    "new_job_id",
    "note_process_group",
    "note_stuck",
    "pause_all",
    "pause_key",
    "paused_all",
    "progress",
    "record_interval",
    "rekey_site",
    "rekey_sites",
    "renew",
    "resume_all",
    "resume_key",
    "retention",
    "retry",
    "set_rule",
    "settle",
    "skip_tick",
    "skip_ticks",
    "stop_requests",
    "submit",
]
