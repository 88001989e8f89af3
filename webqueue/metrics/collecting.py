"""What is measured: jobs by status, keys by state, overdue work, signs of life, requests of today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from webqueue import queries
from webqueue.database import Database
from webqueue.metrics.requests import RequestsOfToday
from webqueue.queries.totals import jobs_by_status, keys_by_state

# The busiest rate keys have a series of their own; there may be thousands of keys.
KEYS_NAMED: Final = 100
OTHER: Final = "other"


class StateCollector:
    """Asks the database anew for every scrape.

    Args:
        database: read only.
        requests: of this machine.
    """

    def __init__(self, database: Database, requests: RequestsOfToday) -> None:
        self._database = database
        self._requests = requests

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        with self._database.reading() as session:
            status = queries.get_status(session)
            jobs = jobs_by_status(session)
            keys = keys_by_state(session, status.now)
        yield _labelled("webqueue_jobs", "Jobs by status", "status", jobs)
        yield _labelled("webqueue_rate_keys", "Rate keys by state", "state", keys)
        yield _single("webqueue_overdue_rate_keys", "Rate keys that wait for a worker", status.overdue_keys)
        yield _single("webqueue_paused_all", "1 while everything is paused", int(status.paused_all))
        yield _single("webqueue_worker_threads", "Threads of the workers that live", status.threads)
        alive = dict.fromkeys(("worker", "scheduler"), 0)
        ages: dict[str, float] = {}
        for process in status.processes:
            alive[process.role] = alive.get(process.role, 0) + process.alive
            age = max(0.0, (status.now - process.heartbeat_at).total_seconds())
            ages[process.role] = min(age, ages.get(process.role, age))
        yield _labelled("webqueue_processes", "Processes that live, by role", "role", alive)
        yield _labelled(
            "webqueue_heartbeat_age_seconds", "Age of the newest sign of life, by role", "role", ages
        )
        today = self._requests.by_key(status.now.astimezone(UTC).date())
        yield _labelled(
            "webqueue_requests_today", "Requests of this machine today (UTC)", "rate_key", busiest(today)
        )


def busiest(counts: Mapping[str, int]) -> dict[str, int]:
    """The largest counts by name, the rest summed up as `other`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = dict(ordered[:KEYS_NAMED])
    rest = sum(count for _, count in ordered[KEYS_NAMED:])
    return {**named, OTHER: named.get(OTHER, 0) + rest} if rest else named


def _single(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=value)


def _labelled(name: str, help_text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=[label])
    for text, value in values.items():
        family.add_metric([text], value)
    return family
