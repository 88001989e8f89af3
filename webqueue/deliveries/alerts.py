"""What is news: found by looking, every few seconds, at what ended and at what stands still.

What a look finds is one message, and a rate key that is in trouble is news once, however many of its targets fail,
until it is well again (or for another day): one broken host makes one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import and_, func, not_, or_, select, true
from sqlalchemy.orm import Session

from webqueue.database import take_turn
from webqueue.deliveries import channels
from webqueue.deliveries.channels import Wanted
from webqueue.deliveries.messages import send
from webqueue.models import Job, JobSource, JobStatus, Process, RateKey, RateKeyStatus, StoredSetting
from webqueue.models.base import PAUSED_ALL

STATE: Final = "notification_state"
# A job's end is dated before its transaction commits.
_LAG: Final = timedelta(seconds=5)
# A worker beats every 15 s.
_LOST_AFTER: Final = timedelta(seconds=90)
_AGAIN_AFTER: Final = timedelta(days=1)
_MOST_ENDS: Final = 2000
_MOST_LINES: Final = 30
_LONGEST_LINE: Final = 300
# The demo's hosts, which no real one can be called like (RFC 2606): what it shows is nothing to be called for.
_OF_THE_DEMO: Final = "%.invalid"

_Open = MutableMapping[str, dict[str, Any]]


@dataclass(frozen=True)
class News:
    """One line of a message."""

    kind: str
    subject: str
    text: str


def watch(session: Session, now: datetime) -> int:
    """Look once, and queue one message for each receiver when there is news; how many news there were.

    Several processes may call it: they take turns, and nothing is told twice.
    """
    wanted = channels.read(session)
    if not wanted.channels:
        return 0
    take_turn(session, STATE)
    row = session.get(StoredSetting, STATE, populate_existing=True, with_for_update=True)
    if row is None:
        # What happened before somebody wanted to hear of it is no news.
        until = now - timedelta(microseconds=1)
        row = StoredSetting(name=STATE, value={"until": until.isoformat()}, changed_at=now)
        session.add(row)
        return 0
    state: dict[str, Any] = {"open": {}, "lost": [], **row.value}
    opened: _Open = {name: dict(entry) for name, entry in state["open"].items()}
    since = datetime.fromisoformat(state["until"])
    until, ended = _ended(session, since, now - _LAG)
    found = [
        *_of_jobs(ended, opened, now),
        *_of_blocks(session, opened, wanted, now),
        *_of_overdue(session, opened, wanted, now),
        *_of_workers(session, opened, state["lost"], now),
    ]
    after = {"until": until.isoformat(), "open": dict(opened), "lost": []}
    if after != row.value:
        row.value = after
    news = [one for one in found if one.kind in wanted.kinds]
    if news:
        title, body = _message(news)
        good = all(one.kind == "recovered" for one in news)
        for channel in wanted.channels:
            send(session, channel, title, body, good=good, now=now)
    return len(news)


def note_lost_workers(session: Session, worker_ids: Iterable[str], recovered: int) -> None:
    """Remember workers that were found dead, for the next look: their rows are deleted with their leases."""
    row = session.get(StoredSetting, STATE, populate_existing=True, with_for_update=True)
    if row is not None:
        told = [f"{worker_id}; jobs that go on elsewhere: {recovered}" for worker_id in worker_ids]
        row.value = {**row.value, "lost": [*row.value.get("lost", []), *told]}


def _ended(session: Session, since: datetime, until: datetime) -> tuple[datetime, list[Job]]:
    jobs = session.scalars(
        select(Job)
        .where(
            Job.finished_at > since,
            Job.finished_at <= until,
            Job.source != JobSource.TRY,
            Job.rate_key.not_like(_OF_THE_DEMO),
        )
        .order_by(Job.finished_at, Job.seq)
        .limit(_MOST_ENDS)
    ).all()
    if len(jobs) == _MOST_ENDS and jobs[-1].finished_at is not None:
        return jobs[-1].finished_at, list(jobs)
    # It stays where it is while nothing ends, so that looking writes nothing.
    return max(since, until) if jobs else since, list(jobs)


def _of_jobs(ended: Iterable[Job], opened: _Open, now: datetime) -> Iterator[News]:
    failed: dict[str, list[str]] = {}
    for job in ended:
        name = f"failed:{job.rate_key}"
        if job.status == JobStatus.FAILED and not _is_repeated(job):
            entry = opened.setdefault(name, {"targets": []})
            if job.target_code not in entry["targets"]:
                entry["targets"].append(job.target_code)
            line = f"#{job.seq} {job.target_code}: {job.error_msg or 'it failed without saying why'}"
            failed.setdefault(job.rate_key, []).append(line)
        elif job.status == JobStatus.DONE:
            yield from _done(job, name, opened)
            if name not in opened:
                failed.pop(job.rate_key, None)
    for key, lines in failed.items():
        if _is_news(opened[f"failed:{key}"], now):
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            yield News("failed", key, f"failed: {lines[0]}{more}")


def _done(job: Job, name: str, opened: _Open) -> Iterator[News]:
    entry = opened.get(name)
    if entry is not None and job.target_code in entry["targets"]:
        entry["targets"].remove(job.target_code)
        if not entry["targets"]:
            del opened[name]
            if "told_at" in entry:
                yield News("recovered", job.rate_key, f"well again: #{job.seq} {job.target_code} is done")
    attention = f"attention:{job.target_code}"
    if job.attention is None:
        opened.pop(attention, None)
    elif attention not in opened:
        opened[attention] = {}
        yield News(
            "attention", job.rate_key, f"to be looked at: #{job.seq} {job.target_code}: {job.attention}"
        )


def _is_repeated(job: Job) -> bool:
    """Whether another job repeats it: then that one's end is the news, or the block is."""
    result = job.result or {}
    again = result.get("auto_retry")
    return "retry" in result or (isinstance(again, dict) and again.get("status") == "queued")


def _of_blocks(session: Session, opened: _Open, wanted: Wanted, now: datetime) -> Iterator[News]:
    # A key that has an open job is due at some time, or leased. What a person holds back is for that person to know.
    held_back = RateKey.paused_at.is_not(None) if not _all_are_paused(session) else true()
    goes_on = or_(RateKey.cooldown_until > now, and_(RateKey.retry_at.is_not(None), not_(held_back)))
    rows = session.execute(
        select(
            RateKey.key,
            RateKey.consecutive_blocks.label("count"),
            RateKey.cooldown_cause.label("cause"),
            goes_on.label("goes_on"),
        )
        .where(RateKey.consecutive_blocks > 0, RateKey.key.not_like(_OF_THE_DEMO))
        .order_by(RateKey.key)
    ).all()
    for row in rows:
        name = f"blocked:{row.key}"
        if not row.goes_on:
            # Only a clean run forgives a block, and none may ever come: its retry was cancelled, its target disabled.
            if name in opened:
                opened[name].setdefault("quiet_since", now.isoformat())
            continue
        entry = opened.setdefault(name, {"since": now.isoformat()})
        quiet_since = entry.pop("quiet_since", None)
        if quiet_since is not None and now - datetime.fromisoformat(quiet_since) >= _AGAIN_AFTER:
            entry["since"] = now.isoformat()
        since = datetime.fromisoformat(entry["since"])
        if now - since >= timedelta(minutes=wanted.blocked_min) and _is_news(entry, now):
            minutes = int((now - since).total_seconds() // 60)
            yield News(
                "blocked", row.key, f"blocked for {minutes} minutes, {row.count} times in a row: {row.cause}"
            )
    blocked = {row.key for row in rows}
    for name in [name for name in opened if name.startswith("blocked:")]:
        key = name.removeprefix("blocked:")
        if key not in blocked and "told_at" in opened.pop(name):
            yield News("recovered", key, "is not blocked any more")


def _of_overdue(session: Session, opened: _Open, wanted: Wanted, now: datetime) -> Iterator[News]:
    overdue = 0 if _all_are_paused(session) else session.scalar(
        select(func.count()).select_from(RateKey).where(
            RateKey.retry_at < now - timedelta(minutes=wanted.overdue_min), RateKey.status == RateKeyStatus.IDLE, RateKey.key.not_like(_OF_THE_DEMO)
        )
    )  # fmt: skip
    if overdue:
        if _is_news(opened.setdefault("overdue", {}), now):
            yield News(
                "overdue",
                "overdue",
                f"{overdue} rate keys wait for a worker for {wanted.overdue_min} minutes",
            )
    elif "overdue" in opened:
        del opened["overdue"]
        yield News("recovered", "overdue", "no work is overdue any more")


def _all_are_paused(session: Session) -> bool:
    return bool(session.scalar(select(StoredSetting.value).where(StoredSetting.name == PAUSED_ALL)))


def _of_workers(session: Session, opened: _Open, lost: Iterable[str], now: datetime) -> Iterator[News]:
    for told in lost:
        yield News("worker_lost", "worker lost", f"the worker {told}")
    silent = {
        row.id: row
        for row in session.scalars(
            select(Process).where(Process.role == "worker", Process.heartbeat_at < now - _LOST_AFTER)
        )
    }
    for process_id, row in silent.items():
        if _is_news(opened.setdefault(f"worker:{process_id}", {}), now):
            yield News(
                "worker_lost", "worker lost", f"no sign of life of the worker {process_id} on {row.hostname}"
            )
    for name in [name for name in opened if name.startswith("worker:")]:
        if name.removeprefix("worker:") not in silent:
            del opened[name]


def _is_news(entry: dict[str, Any], now: datetime) -> bool:
    """Whether it was not told within a day; it is then told now."""
    told = entry.get("told_at")
    if told is not None and now - datetime.fromisoformat(told) < _AGAIN_AFTER:
        return False
    entry["told_at"] = now.isoformat()
    return True


def _message(news: list[News]) -> tuple[str, str]:
    subjects = list(dict.fromkeys(one.subject for one in news))
    first = next(one for one in news if one.subject == subjects[0])
    more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
    title = f"webqueue: {first.subject}: {first.kind.replace('_', ' ')}{more}"
    lines = [f"{one.subject}: {one.text}"[:_LONGEST_LINE] for one in news[:_MOST_LINES]]
    if len(news) > _MOST_LINES:
        lines.append(f"… and {len(news) - _MOST_LINES} more; the overview has all of them.")
    return title, "\n".join(lines)
