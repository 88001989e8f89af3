"""The words of pages for codes that are stored or sent: where they stand in several pages, they are the same."""

from __future__ import annotations

from typing import Final

from webqueue.sentences import say

ROLES: Final = {
    "viewer": say("viewer"),
    "operator": say("operator"),
    "admin": say("admin"),
    # Of processes.
    "worker": say("worker"),
    "scheduler": say("scheduler"),
    "web": say("web"),
}
SOURCES: Final = {
    "manual": say("manual"),
    "schedule": say("schedule"),
    "retry": say("retry"),
    "continue": say("continuation"),
    "api": say("api"),
    "try": say("try"),
}
# Within a sentence.
STATUSES: Final = {
    "queued": say("queued"),
    "running": say("running"),
    "cancelling": say("cancelling"),
    "done": say("done"),
    "failed": say("failed"),
    "cancelled": say("cancelled"),
    "skipped": say("skipped"),
}
TARGET_STATES: Final = {
    "enabled": say("enabled"),
    "disabled": say("disabled"),
    "paused": say("paused"),
    "scheduled": say("scheduled"),
    "by_hand": say("by hand"),
}
# What happened to a rate key.
EVENTS: Final = {
    "blocked": say("blocked"),
    "stuck": say("stuck"),
    "paused": say("paused"),
    "resumed": say("resumed"),
    "cooldown_lifted": say("cooldown lifted"),
}
# Kinds of objects and of changes in the audit log.
AUDIT: Final = {
    "site": say("site"),
    "target": say("target"),
    "rate_group": say("rate group"),
    "user": say("user"),
    "token": say("token"),
    "rate_key": say("rate key"),
    "job": say("job"),
    "setting": say("setting"),
    "rag_export": say("export for retrieval"),
    "installation": say("installation"),
    "created": say("created"),
    "changed": say("changed"),
    "deleted": say("deleted"),
    "disabled": say("disabled"),
    "enabled": say("enabled"),
    "paused": say("paused"),
    "resumed": say("resumed"),
    "revoked": say("revoked"),
    "restored": say("restored"),
    "forced to stop": say("forced to stop"),
    "logged in": say("logged in"),
    "logged in by link": say("logged in by link"),
    "logged out": say("logged out"),
    "sessions ended": say("sessions ended"),
    "password changed": say("password changed"),
}
# Why a crawl ended.
ENDS: Final = {
    "max_pages": say("max pages"),
    "no_such_page": say("no such page"),
    "not_modified": say("not modified"),
    "empty_page": say("empty page"),
    "known_pages": say("known pages"),
    "repeated_page": say("repeated page"),
    "last_page": say("last page"),
}

GLOBALS: Final = {
    "role_words": ROLES,
    "status_words": STATUSES,
    "source_words": SOURCES,
    "target_state_words": TARGET_STATES,
    "event_words": EVENTS,
    "audit_words": AUDIT,
}
