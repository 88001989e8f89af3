"""Why a queued job is not running, and the earliest it can start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import func, literal, or_, select, tuple_
from sqlalchemy.orm import Session, aliased

from webqueue.models import Job, JobStatus, Process, RateKey, Site, StoredSetting
from webqueue.models.base import PAUSED_ALL
from webqueue.politeness.hours import AllowedHours, UnreadableHours, hours_of
from webqueue.processes import LOW_DISK
from webqueue.queries.runs import QUEUED, RUNNING, JobRef
from webqueue.queries.stuck import does_not_stop
from webqueue.sentences import StoredText, say

# Three missed heartbeats and a bit: a worker beats every 15 s (DESIGN section 5).
ALIVE_FOR = timedelta(seconds=60)
# Nobody reads "1,204th in line"; counting further would make a deep key slow.
POSITION_LIMIT = 1000


@dataclass(frozen=True)
class Waiting:
    """Why a job waits.

    Attributes:
        reason: `all_paused`, `key_paused`, `cooldown`, `closed` (outside of the site's allowed hours), `not_due`,
            `behind`, `gap`, `no_worker`, `disk_low`, `pool_full`, `starting`.
        message: one sentence for a person.
        earliest_start: no start before this time; None when nobody can know (paused, or no worker).
        position: place in the key's line, 1 = next; POSITION_LIMIT + 1 means "further back".
        behind: the job that runs in the key, else the first in its line, when it is another one.
        also: further reasons that hold at the same time, as sentences.
    """

    reason: str
    message: str
    earliest_start: datetime | None
    position: int
    behind: JobRef | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pool:
    """The workers that are alive, and what they do."""

    threads: int
    running: int
    paused_all_by: str | None
    paused_all: bool
    low_disks: tuple[str, ...] = ()
    all_low: bool = False


def alive_after(now: datetime) -> datetime:
    """A process with a heartbeat after this time is alive."""
    return now - ALIVE_FOR


def pool(session: Session, now: datetime) -> Pool:
    """The state of the worker pool over all processes."""
    workers = dict(
        session.execute(
            select(Process.id, Process.threads).where(
                Process.role == "worker", Process.heartbeat_at > alive_after(now)
            )
        ).all()
    )
    running = session.scalar(select(func.count()).select_from(Job).where(Job.status == RUNNING))
    said = {
        row.name: row
        for row in session.scalars(
            select(StoredSetting).where(
                or_(
                    StoredSetting.name == PAUSED_ALL, StoredSetting.name.startswith(LOW_DISK, autoescape=True)
                )
            )
        )
    }
    paused = said.pop(PAUSED_ALL, None)
    is_paused = bool(paused is not None and paused.value)
    # What a worker that is gone has said of its disk holds no longer.
    low = {
        name.removeprefix(LOW_DISK): str(row.value)
        for name, row in said.items()
        if row.value and name.removeprefix(LOW_DISK) in workers
    }
    return Pool(
        threads=sum(workers.values()),
        running=int(running or 0),
        paused_all=is_paused,
        paused_all_by=paused.changed_by if paused is not None and is_paused else None,
        low_disks=tuple(map(StoredText, sorted(set(low.values())))),
        all_low=bool(low) and low.keys() == workers.keys(),
    )


def waiting_for(session: Session, jobs: Sequence[Job], now: datetime) -> Mapping[int, Waiting]:
    """Why each queued one of `jobs` waits, by number; six statements, however many jobs."""
    queued = [job for job in jobs if job.status == JobStatus.QUEUED]
    if not queued:
        return {}
    keys = {job.rate_key for job in queued}
    rows = {row.key: row for row in session.scalars(select(RateKey).where(RateKey.key.in_(keys)))}
    running = _running_in(session, keys, now)
    places = _places(session, [job.seq for job in queued])
    state = pool(session, now)
    closed = _closed_sites(session, {job.site_code for job in queued}, now)
    return {
        job.seq: _explain(
            job,
            rows.get(job.rate_key),
            running.get(job.rate_key),
            *places[job.seq],
            state,
            closed.get(job.site_code),
            now,
        )
        for job in queued
        if job.seq in places
    }


@dataclass(frozen=True)
class _Closed:
    """A site that may not be visited now: its hours, and when they begin again."""

    hours: AllowedHours | UnreadableHours
    opens: datetime

    @property
    def is_unreadable(self) -> bool:
        """Whether it stays closed until a person corrects its hours."""
        return isinstance(self.hours, UnreadableHours)


def _closed_sites(session: Session, codes: set[str], now: datetime) -> dict[str, _Closed]:
    found = session.execute(
        select(Site.code, Site.allowed_hours, Site.timezone).where(
            Site.code.in_(codes), Site.allowed_hours.is_not(None)
        )
    )
    closed = {}
    for code, text, timezone in found:
        hours = hours_of(text, timezone)
        if hours is not None and not hours.is_open(now):
            closed[code] = _Closed(hours, hours.next_opening(now))
    return closed


@dataclass(frozen=True)
class _Running(JobRef):
    """The job that runs in a key, and whether it is one that does not stop."""

    stuck: bool = False


def _running_in(session: Session, keys: set[str], now: datetime) -> dict[str, _Running]:
    found = session.execute(
        select(Job.rate_key, Job.id, Job.seq, Job.target_code, does_not_stop(now).label("stuck")).where(
            Job.status == RUNNING, Job.rate_key.in_(keys)
        )
    )
    return {row.rate_key: _Running(row.id, row.seq, row.target_code, bool(row.stuck)) for row in found}


def _places(session: Session, seqs: Sequence[int]) -> dict[int, tuple[int, JobRef | None]]:
    """Place in line (1 = next) and the head of the line, of queued jobs, by number."""
    ahead, first, head = aliased(Job), aliased(Job), aliased(Job)
    before = (
        select(literal(1).label("one"))
        .where(
            ahead.rate_key == Job.rate_key,
            ahead.status == QUEUED,
            tuple_(ahead.retry_at, ahead.seq) < tuple_(Job.retry_at, Job.seq),
        )
        .limit(POSITION_LIMIT)
        .correlate(Job)
        .subquery()
    )
    count = select(func.count()).select_from(before).correlate(Job).scalar_subquery()
    head_seq = (
        select(first.seq)
        .where(first.rate_key == Job.rate_key, first.status == QUEUED)
        .order_by(first.retry_at, first.seq)
        .limit(1)
        .correlate(Job)
        .scalar_subquery()
    )
    places = select(Job.seq.label("seq"), count.label("ahead"), head_seq.label("head")).where(
        Job.seq.in_(seqs)
    )
    counted = places.subquery()
    rows = session.execute(
        select(counted.c.seq, counted.c.ahead, head.id, head.seq, head.target_code).outerjoin(
            head, head.seq == counted.c.head
        )
    )
    return {
        seq: (number + 1, JobRef(head_id, head_number, target) if head_id and head_number != seq else None)
        for seq, number, head_id, head_number, target in rows
    }


def _explain(
    job: Job,
    key: RateKey | None,
    running: _Running | None,
    position: int,
    head: JobRef | None,
    state: Pool,
    closed: _Closed | None,
    now: datetime,
) -> Waiting:
    behind = running or head
    reasons = list(_reasons(job, key, running, head, position, state, closed, now))
    reason, message = reasons[0]
    person = {"all_paused", "key_paused"} & {name for name, _ in reasons} or (closed and closed.is_unreadable)
    knows = state.threads > 0 and not state.all_low and not person
    bounds = [now, job.retry_at or job.due_at] + ([closed.opens] if closed else [])
    if key is not None:
        bounds += [moment for moment in (key.cooldown_until, key.gap_until) if moment is not None]
    return Waiting(
        reason=reason,
        message=message,
        earliest_start=max(bounds) if knows else None,
        position=position,
        behind=None if behind is None else JobRef(behind.id, behind.seq, behind.target),
        also=tuple(sentence for _, sentence in reasons[1:]),
    )


def _reasons(
    job: Job,
    key: RateKey | None,
    running: _Running | None,
    head: JobRef | None,
    position: int,
    state: Pool,
    closed: _Closed | None,
    now: datetime,
) -> list[tuple[str, str]]:
    """Every reason that holds, the one that weighs most first; never empty."""
    found = _shut(key, state, now)
    if closed is not None:
        found.append(("closed", _closed_words(job.site_code, closed)))
    # A job that opening hours have put off is due when they begin: that is said already.
    put_off = closed is not None and job.due_before_hours is not None
    if job.retry_at is not None and job.retry_at > now and not put_off:
        found.append(("not_due", say("It is not due yet.")))
    if running is not None:
        found.append(("behind", _behind_words(job.rate_key, running, position)))
    elif head is not None and position > 1:
        place = ordinal(position)
        words = say(
            "%(place)s in line, behind #%(seq)s %(target)s.", place=place, seq=head.seq, target=head.target
        )
        found.append(("behind", words))
    if running is None and key is not None and key.gap_until is not None and key.gap_until > now:
        found.append(("gap", _gap_words(key)))
    if state.threads == 0:
        found.append(
            ("no_worker", say("No worker is alive: start one with `webqueue serve` or `webqueue worker`."))
        )
    elif state.all_low:
        disk = state.low_disks[0]
        found.append(
            ("disk_low", say("The disk is low: %(disk)s. Make room; then it goes on by itself.", disk=disk))
        )
    elif state.running >= state.threads:
        found.append(("pool_full", say("All %(count)s worker threads are busy.", count=state.threads)))
    return found or [("starting", say("A worker is about to take it."))]


def _behind_words(rate_key: str, running: _Running, position: int) -> str:
    facts = {"seq": running.seq, "target": running.target, "key": rate_key}
    if position > 1:
        facts["place"] = ordinal(position)
        if running.stuck:
            return say(
                "%(place)s in line, behind #%(seq)s %(target)s, which does not stop; %(key)s stays shut until it has.",
                **facts,
            )
        return say("%(place)s in line, behind #%(seq)s %(target)s, which runs in %(key)s now.", **facts)
    if running.stuck:
        return say(
            "Next, behind #%(seq)s %(target)s, which does not stop; %(key)s stays shut until it has.", **facts
        )
    return say("Next, behind #%(seq)s %(target)s, which runs in %(key)s now.", **facts)


def _gap_words(key: RateKey) -> str:
    if key.gap_cause:
        return say(
            "The gap after the last visit to %(key)s is not over (%(cause)s).",
            key=key.key,
            cause=StoredText(key.gap_cause),
        )
    return say("The gap after the last visit to %(key)s is not over.", key=key.key)


def _shut(key: RateKey | None, state: Pool, now: datetime) -> list[tuple[str, str]]:
    """What a person or a server has shut."""
    found: list[tuple[str, str]] = []
    if state.paused_all:
        found.append(("all_paused", _all_paused_words(state.paused_all_by)))
    if key is not None and key.paused_at is not None:
        found.append(("key_paused", _paused_words(key)))
    if key is not None and key.cooldown_until is not None and key.cooldown_until > now:
        found.append(("cooldown", _cooldown_words(key)))
    return found


def _all_paused_words(by: str | None) -> str:
    if by:
        return say("Everything is paused by %(name)s; nothing starts until it is resumed.", name=by)
    return say("Everything is paused; nothing starts until it is resumed.")


def _paused_words(key: RateKey) -> str:
    facts = {"key": key.key, "name": key.paused_by, "note": key.paused_note}
    if key.paused_by and key.paused_note:
        return say("Rate key %(key)s is paused by %(name)s: %(note)s.", **facts)
    if key.paused_by:
        return say("Rate key %(key)s is paused by %(name)s.", **facts)
    if key.paused_note:
        return say("Rate key %(key)s is paused: %(note)s.", **facts)
    return say("Rate key %(key)s is paused.", **facts)


def _cooldown_words(key: RateKey) -> str:
    if key.cooldown_cause:
        return say(
            "Rate key %(key)s is cooling down (%(cause)s).", key=key.key, cause=StoredText(key.cooldown_cause)
        )
    return say("Rate key %(key)s is cooling down.", key=key.key)


def _closed_words(site: str, closed: _Closed) -> str:
    if isinstance(closed.hours, UnreadableHours):
        return say(
            "The allowed hours of site %(site)s cannot be read (%(problem)s); "
            "it is not visited until they are corrected.",
            site=site,
            problem=closed.hours.problem,
        )
    local = closed.opens.astimezone(ZoneInfo(closed.hours.timezone))
    opens = f"{local:%Y-%m-%d %H:%M} {local.isoformat()[-6:]}"
    return say(
        "Site %(site)s is visited %(hours)s (%(zone)s) only; it opens %(opens)s.",
        site=site,
        hours=str(closed.hours),
        zone=closed.hours.timezone,
        opens=opens,
    )


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th; what lies beyond the counted places is told as such."""
    if number > POSITION_LIMIT:
        return say("More than %(number)s", number=f"{POSITION_LIMIT:,}")
    shown = f"{number:,}"
    if number % 10 == 1 and number % 100 != 11:
        return say("%(number)sst", number=shown)
    if number % 10 == 2 and number % 100 != 12:
        return say("%(number)snd", number=shown)
    if number % 10 == 3 and number % 100 != 13:
        return say("%(number)srd", number=shown)
    return say("%(number)sth", number=shown)
