"""The scheduler: makes the jobs of due ticks (DESIGN section 7).

APScheduler is the ticker, once a second; the rows of the targets are the truth. Any number of schedulers may run on one
database: a tick is a job with its nominal time, under a unique constraint, in one transaction with the target's next
tick. So an edit takes effect in all of them at once, and one that was killed has left nothing half done.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session

from webqueue import clock, cron, jobs, logs, processes
from webqueue.config.ticks import change_jitter, fires_at, restart_ticks
from webqueue.database import Database, take_turn
from webqueue.errors import InvalidInputError, WebqueueError
from webqueue.jobs_sql.heads import QUEUED_STATUS, RUNNING_STATUS
from webqueue.loops import Loop
from webqueue.models import Job, JobSource, JobStatus, Site, StoredSetting, Target
from webqueue.queries.bookings import OVERBOOKED, bookings, hours_to_keep, overbooked_keys
from webqueue.sentences import part, stored

log = logs.get(__name__)

ROUND_SEC: Final = 1
HEARTBEAT_SEC: Final = 15
BOOKINGS_SEC: Final = 60
# Without a round for so long the ticker is woken: see `Scheduler._watch`.
SILENCE_SEC: Final = 5.0
# A round that hangs in the database must not keep the process from ending.
STOP_SEC: Final = 5.0
# A tick that is late by less was not missed: a restart, or a slow round, lay between.
ON_TIME: Final = timedelta(seconds=60)
# Targets of one round, and ticks of one transaction: transactions stay short after a long absence.
_TARGETS: Final = 500
_TICKS: Final = 200

# Statuses of a job that stands in a tick's way.
_STANDING: Final = {JobStatus.QUEUED: part("queued"), JobStatus.RUNNING: part("running")}


class Scheduler:
    """Makes jobs of ticks, from `start` to `stop`.

    Args:
        database: where the targets are.
    """

    def __init__(self, database: Database) -> None:
        self.id = secrets.token_hex(6)
        self._database = database
        # Rounds that were missed are one round; none is too late to do.
        self._ticker = BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._problem: str | None = None
        self._last_round = 0.0
        self._watch_loop = Loop("scheduler watch", self._watch)

    @property
    def problems(self) -> list[str]:
        """What fails at present, in words; empty when everything works."""
        return [problem for problem in (self._problem, self._watch_loop.problem) if problem is not None]

    def start(self) -> None:
        """Begin to tick."""
        self._last_round = clock.boot_seconds()
        now = datetime.now(UTC)
        self._ticker.add_job(self._round, "interval", seconds=ROUND_SEC, next_run_time=now, id="round")
        self._ticker.add_job(self._beat, "interval", seconds=HEARTBEAT_SEC, next_run_time=now, id="beat")
        self._ticker.add_job(self._book, "interval", seconds=BOOKINGS_SEC, next_run_time=now, id="book")
        # Every hour, and not once: a job that has run for the last time is removed, which fails during a stop.
        self._ticker.add_job(self._mend, "interval", hours=1, next_run_time=now, id="mend")
        self._ticker.start()
        self._watch_loop.start()
        log.info("scheduler started", scheduler=self.id)

    def stop(self) -> None:
        """Let the round under way end, for up to 5 s, and begin no other."""
        self._watch_loop.stop()
        if not self._ticker.running:
            return
        # APScheduler waits for its threads without a limit; a database that hangs must not hold the end up.
        ending = threading.Thread(target=self._ticker.shutdown, name="scheduler-shutdown", daemon=True)
        ending.start()
        ending.join(STOP_SEC)
        if ending.is_alive():
            log.error("scheduler still in a round; it is left to its own", scheduler=self.id)
            return
        try:
            self._database.run(lambda session: processes.leave(session, self.id), attempts=2)
        except Exception:  # the process ends all the same, and its heartbeat with it
            log.exception("scheduler could not sign off", scheduler=self.id)

    def _watch(self) -> float:
        """Wake the ticker when the clock was set back.

        APScheduler reckons its next round on the wall clock: set back by an hour, it would sleep for that hour.
        """
        if clock.boot_seconds() - self._last_round > SILENCE_SEC:
            log.warning("no round for a while; was the clock set back?", scheduler=self.id)
            now = datetime.now(UTC)
            for job in self._ticker.get_jobs():
                self._ticker.modify_job(job.id, next_run_time=now)
        return SILENCE_SEC / 2

    def _mend(self) -> None:
        """Give schedules that could not be read another try, every hour: the timezone may be known by now."""
        try:
            self._database.run(mend_schedules)
        except Exception:
            log.exception("schedules with an error could not be looked at", scheduler=self.id)

    def _round(self) -> None:
        """One look for due ticks; a round that fails is logged, and the next one tries again."""
        self._last_round = clock.boot_seconds()
        try:
            tick_all(self._database)
        except Exception as error:
            self._problem = f"the scheduler's last round failed: {type(error).__name__}: {error}"
            log.exception("round failed", scheduler=self.id)
        else:
            self._problem = None

    def _book(self) -> None:
        """Look which keys are booked for more than a day has; the overview tells it."""
        try:
            note_overbooked_keys(self._database)
        except Exception:
            log.exception("bookings of rate keys could not be looked at", scheduler=self.id)

    def _beat(self) -> None:
        def beat(session: Session) -> None:
            processes.beat(session, self.id, role="scheduler")
            processes.forget_silent(session)

        try:
            self._database.run(beat)
        except Exception:
            log.exception("heartbeat failed", scheduler=self.id)


def tick_all(database: Database) -> int:
    """Make the jobs of every tick that is due; the number of targets that had one. One transaction a target."""
    with database.reading() as session:
        codes = session.scalars(
            select(Target.code)
            .where(
                Target.fires_at <= clock.now(session),
                Target.paused_at.is_(None),
                Target.enabled.is_(True),
            )
            .order_by(Target.fires_at)
            .limit(_TARGETS)
        ).all()
    ticked = 0
    for code in codes:
        try:
            ticked += database.run(lambda session, code=code: tick_target(session, code))  # type: ignore[misc]
        except _OvertakenError:
            continue  # another scheduler made this tick, or the target was edited: its row says what is due now
        except Exception:
            # One target's trouble holds up no other; it is due again in the next round.
            log.exception("tick failed", target=code)
    return ticked


def tick_target(session: Session, code: str) -> bool:
    """Make the jobs of one target's due ticks; whether there was one.

    Jobs come first and the target's row last: keys are locked before targets, as in every other verb.

    Raises:
        _OvertakenError: somebody else changed the target meanwhile; the transaction must be rolled back.
    """
    target = session.get(Target, code, populate_existing=True)
    if target is None or target.next_tick_at is None or target.paused_at is not None or not target.enabled:
        return False
    now = clock.now(session)
    seen = (target.next_tick_at, target.fires_at)
    try:
        due = due_ticks(target, session.get_one(Site, target.site_code), now)
    except InvalidInputError as error:
        # A timezone may vanish with an update of its data. This target shows it, the others go on.
        log.warning("schedule cannot be read", target=code, error=str(error))
        _advance(session, target, seen, None, str(error))
        return False
    if not due.ticks:
        # Its row did not know of the jitter yet: a version before webqueue stored when ticks fire wrote it.
        _advance(session, target, seen, due.following, None)
        return False
    # Under the key's lock what overlaps stands still; and another scheduler that was here first is seen now.
    ticks_from = target.ticks_from
    target, _key = jobs.lock_key_of_target(session, code)
    if (target.next_tick_at, target.fires_at, target.ticks_from) != (*seen, ticks_from):
        raise _OvertakenError
    skipped: dict[datetime, str] = {}
    for tick, reason in _decided(target, due, now):
        if reason is None:
            reason = _overlap(session, target)  # noqa: PLW2901 - judged only for ticks that would run
        if reason is not None:
            skipped[tick] = reason
            continue
        jobs.skip_ticks(session, code, skipped)  # first, so that the rows stand in the order of their ticks
        skipped = {}
        jobs.submit(session, code, source=JobSource.SCHEDULE, by="schedule", tick=tick)
    jobs.skip_ticks(session, code, skipped)
    _advance(session, target, seen, due.following, None)
    return True


def mend_schedules(session: Session) -> None:
    """Work out the next tick of every target whose schedule could not be read before; it counts from now.

    And when the next tick fires, where a process of a version that did not store it wrote the tick.
    """
    now = clock.now(session)
    unread = and_(Target.schedule_error.is_not(None), Target.next_tick_at.is_(None))
    unknown = and_(Target.next_tick_at.is_not(None), Target.fires_at.is_(None))
    broken = select(Target).where(or_(unread, unknown), Target.enabled.is_(True), Target.paused_at.is_(None))
    for target in session.scalars(broken.order_by(Target.code).with_for_update(key_share=True)).all():
        if target.next_tick_at is not None:
            change_jitter(target, now)
            continue
        try:
            restart_ticks(target, session.get_one(Site, target.site_code), now)
        except InvalidInputError as error:
            target.schedule_error = str(error)
        else:
            log.info("schedule can be read again", target=target.code)


def note_overbooked_keys(database: Database) -> None:
    """Store which keys are booked for more than 24 hours a day, when that is not what is stored already.

    Worked out here once a minute, and not by each page: it looks at all schedules and the last runs of all targets.
    """
    with database.reading() as session:
        found = hours_to_keep(bookings(session, clock.now(session)))
        if found == overbooked_keys(session):
            return

    def note(session: Session) -> None:
        take_turn(session, OVERBOOKED)
        StoredSetting.put(session, OVERBOOKED, found, at=clock.now(session), by="scheduler")

    database.run(note)


class Tick(NamedTuple):
    """A tick: its nominal time, and when it makes its job."""

    at: datetime
    fires_at: datetime


@dataclass(frozen=True)
class DueTicks:
    """Ticks whose time has come, and the one after them (None: there is no other).

    Attributes:
        more: the next one is due already, and is left for the next round.
    """

    ticks: tuple[Tick, ...]
    following: Tick | None
    more: bool = False


def due_ticks(target: Target, site: Site, now: datetime) -> DueTicks:
    """The target's ticks that fire up to `now`, at most 200 of them.

    They fire in their order: where the jitter is longer than the time between two, one waits for those before it.

    Raises:
        InvalidInputError: the schedule or its timezone cannot be read.
    """
    assert target.schedule is not None
    assert target.next_tick_at is not None
    schedule = cron.parse(target.schedule, target.timezone or site.timezone)
    ticks: list[Tick] = []
    # What is stored may be later: a jitter that was made shorter while the tick waited.
    fires = max(fires_at(target, target.next_tick_at), target.fires_at or target.next_tick_at)
    following: Tick | None = Tick(target.next_tick_at, fires)
    while following is not None and following.fires_at <= now and len(ticks) < _TICKS:
        ticks.append(following)
        after = schedule.next_after(following.at)
        over = target.end_at is not None and after > target.end_at
        following = None if over else Tick(after, max(fires_at(target, after), following.fires_at))
    if following is not None and following.fires_at <= now:
        # A long absence: what `catch_up` may still want stays for the next round.
        keep = _wanted(target)
        return DueTicks(tuple(ticks[:-keep]), ticks[-keep], more=True)
    return DueTicks(tuple(ticks), following)


def _decided(target: Target, due: DueTicks, now: datetime) -> Iterator[tuple[datetime, str | None]]:
    """Each due tick with the reason for which it makes no job, None when it makes one."""
    missed = [tick.at for tick in due.ticks if now - tick.fires_at > ON_TIME]
    caught_up = set() if due.more or target.catch_up == "none" else set(missed[-_wanted(target) :])
    if target.catch_up == "one" and len(missed) < len(due.ticks):
        caught_up = set()  # a tick on time follows: the missed ones are coalesced into it
    for tick in due.ticks:
        if tick.at not in missed or tick.at in caught_up:
            yield tick.at, None
        else:
            yield (
                tick.at,
                stored(
                    "missed: no scheduler ran at its time (catch_up: %(catch_up)s)", catch_up=target.catch_up
                ),
            )


def _wanted(target: Target) -> int:
    """How many missed ticks are made up for at most."""
    return max(1, min(target.catch_up_limit, _TICKS // 2)) if target.catch_up == "all" else 1


def _overlap(session: Session, target: Target) -> str | None:
    """Why a tick makes no job while another run of the target is open, judged by the jobs' status."""
    if target.overlap == "allow":
        return None
    open_jobs = session.execute(
        select(Job.seq, Job.status)
        .where(
            Job.target_code == target.code,
            Job.finished_at.is_(None),
            Job.status.in_([QUEUED_STATUS, RUNNING_STATUS]),
            Job.source != JobSource.TRY,
        )
        .order_by(Job.seq)
        .limit(_TICKS)
    ).all()
    standing = [row for row in open_jobs if target.overlap == "skip" or row.status == JobStatus.QUEUED]
    if not standing:
        return None
    return stored(
        "overlap: job #%(job)s was still %(state)s, and its target says %(overlap)s",
        job=standing[0].seq,
        state=_STANDING.get(standing[0].status, standing[0].status),
        overlap=target.overlap,
    )


def _advance(
    session: Session,
    target: Target,
    seen: tuple[datetime | None, datetime | None],
    following: Tick | None,
    error: str | None,
) -> None:
    """Store the next tick, where the row still has the tick, and when it fires, that were `seen`."""
    at, fires = (None, None) if following is None else following
    changed = session.execute(
        update(Target)
        .where(
            Target.code == target.code,
            Target.next_tick_at == seen[0],
            Target.fires_at.is_not_distinct_from(seen[1]),
            Target.paused_at.is_(None),
            # Every edit of a schedule sets it: `following` was worked out for the schedule that still holds.
            Target.ticks_from.is_not_distinct_from(target.ticks_from),
        )
        .values(next_tick_at=at, fires_at=fires, schedule_error=error)
        .returning(Target.code)
        .execution_options(synchronize_session=False)
    ).all()
    if not changed:
        raise _OvertakenError


class _OvertakenError(WebqueueError):
    """Another scheduler, or an editor, was faster; nothing of this transaction may stay."""
