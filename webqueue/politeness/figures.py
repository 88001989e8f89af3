"""What a key's requests of a day or a month come to: how many, how far apart, how many at once (DESIGN section 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from webqueue.politeness.evidence import RequestLine


@dataclass
class KeyFigures:
    """Figures of one rate key, gathered day by day.

    Attributes:
        smallest_gap_sec: from the end of a request to the start of the next, never negative; None for a single one.
        most_parallel: requests under way at the same time; more than 1 would be a broken promise (P1).
    """

    requests: int = 0
    bytes: int = 0
    jobs: set[str] = field(default_factory=set)
    statuses: Counter[str] = field(default_factory=Counter)
    smallest_gap_sec: float | None = None
    most_parallel: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None

    def add(self, lines: Iterable[RequestLine]) -> None:
        """Take the key's requests of one more day, which lies after those taken before."""
        under_way: list[datetime] = []
        for line in sorted(lines, key=lambda one: one.at):
            start, end = line.at, line.at + timedelta(milliseconds=line.ms)
            self._count(line)
            if self.last_at is not None:
                gap = max(0.0, (start - self.last_at).total_seconds())
                self.smallest_gap_sec = (
                    gap if self.smallest_gap_sec is None else min(gap, self.smallest_gap_sec)
                )
            under_way = [*(other for other in under_way if other > start), end]
            self.most_parallel = max(self.most_parallel, len(under_way))
            self.first_at = self.first_at or start
            self.last_at = end if self.last_at is None else max(end, self.last_at)

    def _count(self, line: RequestLine) -> None:
        self.requests += 1
        self.bytes += line.bytes
        self.jobs.add(line.job)
        self.statuses[str(line.status) if line.status is not None else line.error or "none"] += 1


def by_key(lines: Iterable[RequestLine]) -> dict[str, list[RequestLine]]:
    """The lines of a day, by rate key."""
    found: dict[str, list[RequestLine]] = {}
    for line in lines:
        found.setdefault(line.key, []).append(line)
    return found
