"""The verbs of jobs and keys in any order, with a clock that the test moves, held against the promises.

A rule is one verb, called as a worker or an operator would. After each, everything in the tables is compared with what
was promised before. `TEST_MACHINE_EXAMPLES=2000` runs it for as long as one likes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from tests.helpers.world import Clock, World, assert_settled
from webqueue import clock, jobs
from webqueue.database import Database
from webqueue.errors import ConflictError, LeaseLostError
from webqueue.models import IntervalChange, Job, JobLog, KeyEvent, RateKey, Site, StoredSetting, Target
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed, OutOfTime

LONG = "TEST_MACHINE_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("TEST_MACHINE_EXAMPLES", "15"))
STEPS = 40
TARGETS = ("a1", "a2", "b1")
INTERVALS = {"a1": 0.0, "a2": 20.0, "b1": 5.0}
WORKERS = ("w1", "w2")
KEYS = ("a.test", "b.test", "shared")
MIN_GAP = timedelta(seconds=30)
COOLDOWN = timedelta(seconds=600)
FINAL = {"done", "failed", "cancelled", "skipped"}
OUTCOMES = (
    Done(),
    Failed("no"),
    Blocked("HTTP 429"),
    Blocked("HTTP 503", retry_after=1200, checkpoint=Checkpoint(4, {"at": 4})),
    Cancelled(),
    OutOfTime(5),
    Done({"note": "host_cooldown: a.test"}),
)

pick = st.integers(min_value=0, max_value=999)


@dataclass(eq=False)
class Run:
    """A run as its worker believes in it, and whether it is right."""

    claimed: jobs.Claimed
    worker: str
    stale: bool = False

    @property
    def lease(self) -> jobs.Lease:
        return self.claimed.lease


@dataclass
class Seen:
    """What was answered or stored, and must hold from now on."""

    finals: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    cancelling: set[str] = field(default_factory=set)
    # By key: nothing may start before then.
    shut: dict[str, datetime] = field(default_factory=dict)
    cooling: dict[str, datetime] = field(default_factory=dict)

    def shut_until(self, key: str, until: datetime) -> None:
        self.shut[key] = max(until, self.shut.get(key, until))


class Verbs(RuleBasedStateMachine):
    """Two workers and an operator on two sites, which may come to share a key."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.clock = Clock()
        self.stack.enter_context(clock.replaced(self.clock))
        self.world = World(self.database)
        self.runs: list[Run] = []
        self.seen = Seen()
        with self.database.transaction() as session:
            for table in (JobLog, KeyEvent, IntervalChange, Job, RateKey, Target, Site, StoredSetting):
                session.execute(delete(table))

    def teardown(self) -> None:
        self.stack.close()

    @initialize(most=st.sampled_from([1, 2, 12]))
    def begin(self, most: int) -> None:
        self.world.policy = jobs.Policy(cooldown_auto_retry_max=most)
        self.world.add_site("a", "http://a.test/")
        self.world.add_site("b", "http://b.test/", min_gap_sec=MIN_GAP.total_seconds())
        self.world.add_target("a1", "a")
        self.world.add_target("a2", "a", interval_sec=INTERVALS["a2"], retry_times=1, retry_wait_sec=300)
        self.world.add_target("b1", "b", interval_sec=INTERVALS["b1"])
        for target in TARGETS:
            self.world.submit(target)

    # --- the rules: few, so that each is tried often --------------------------------------------------------------

    @rule(
        worker=st.sampled_from(WORKERS),
        seconds=st.sampled_from([0, 0, 0.000001, 0.5, 5, 14, 21, 31, 59, 60, 61, 301, 601, 7300]),
        limit=st.sampled_from([1, 2, 10, 10]),
        at=pick,
        before=st.sampled_from(["", "", "front", "cancel"]),
    )
    def some_time_later(self, worker: str, seconds: float, limit: int, at: int, before: str) -> None:
        if before:
            self._operate(before, at)
            self.promises_hold()
        self.clock.advance(seconds)
        self.claim(worker, limit)

    @rule(
        worker=st.sampled_from(WORKERS),
        life=st.sampled_from([*jobs.Life, jobs.Life.ALIVE]),
        times=st.sampled_from([1, 1, 2, 4]),
        seconds=st.sampled_from([0, 0, 5, 21, 31]),
        at=pick,
        before=st.sampled_from(["", "", "cancel", "front", "pause", "pause all", "rekey"]),
    )
    def fall_silent(
        self, worker: str, life: jobs.Life, times: int, seconds: float, at: int, before: str
    ) -> None:
        """Leases run out, and `worker` looks at the keys; `life` is what it knows of the other workers."""
        self.some_run(at)
        if before:
            self._operate(before, at)
            self.promises_hold()
        self.world.life = dict.fromkeys(WORKERS, life)
        for _ in range(times):
            self.clock.advance(60)
            self.claim(worker, 10)
            self.promises_hold()
        # What was taken over may run once more, beside its stale run.
        self.clock.advance(seconds)
        self.claim(worker, 10)

    @rule(
        at=pick,
        what=st.sampled_from(["progress", "checkpoint", "log", "fence", "heartbeat"]),
        page=st.integers(1, 9),
    )
    def work(self, at: int, what: str, page: int) -> None:
        run = self.some_run(at)
        if run is None:
            return
        if what == "heartbeat":
            self.heartbeat(run.worker)
        else:
            self.write(run, page, what)

    @rule(
        at=pick,
        outcome=st.sampled_from(OUTCOMES),
        requested=st.booleans(),
        before=st.sampled_from(["", "", "cancel", "pause", "rekey"]),
    )
    def end(self, at: int, outcome: Any, requested: bool, before: str) -> None:
        run = self.some_run(at)
        if run is None:
            return
        if before == "cancel" and self.world.job(run.lease.job_id).status not in FINAL:
            self.cancel(self.world.job(run.lease.job_id), dead=False)
        elif before in {"pause", "rekey"}:
            self._operate(before, at)
        self.promises_hold()
        self.finish(run, outcome, requested)

    @rule(at=pick, stopped=st.booleans(), cancelled=st.booleans())
    def leave(self, at: int, stopped: bool, cancelled: bool) -> None:
        run = self.some_run(at)
        if run is None:
            return
        if cancelled and self.world.job(run.lease.job_id).status not in FINAL:
            self.cancel(self.world.job(run.lease.job_id), dead=False)
        self.hand_back(run, stopped)

    @rule(
        target_code=st.sampled_from(TARGETS),
        source=st.sampled_from(["manual", "api", "schedule", "try"]),
        force=st.booleans(),
        from_page=st.sampled_from([0, 0, 3]),
    )
    def ask(self, target_code: str, source: str, force: bool, from_page: int) -> None:
        self.submit(target_code, source, force, from_page)

    @rule(
        what=st.sampled_from(
            [
                *("cancel", "cancel dead", "retry", "front", "pause", "resume", "resume", "lift", "lift"),
                *("pause all", "resume all", "resume all", "rekey", "rekey back", "die"),
            ]
        ),
        at=pick,
    )
    def operate(self, what: str, at: int) -> None:
        self._operate(what, at)

    def _operate(self, what: str, at: int) -> None:
        job, key, code = self._some_job(at), KEYS[at % len(KEYS)], "ab"[at % 2]
        verbs: dict[str, Callable[[], None]] = {
            "pause all": lambda: self.pause_or_resume_all(paused=True),
            "resume all": lambda: self.pause_or_resume_all(paused=False),
            "rekey": lambda: self.rekey(code, "shared"),
            "rekey back": lambda: self.rekey(code, None),
            "die": lambda: self.die(WORKERS[at % len(WORKERS)]),
        }
        if what in verbs:
            verbs[what]()
        elif what in {"pause", "resume", "lift"}:
            self.operate_key(key, what)
        elif job is not None and what == "retry":
            self.retry(job)
        elif job is not None and what == "front":
            self.move_to_front(job)
        elif job is not None:
            self.cancel(job, dead=what == "cancel dead")

    def some_run(self, at: int) -> Run | None:
        """One of the runs that workers believe in, begun if there is none."""
        if not self.runs:
            self.clock.advance(601)
            self.claim(WORKERS[at % len(WORKERS)], 10)
        # Most harm can be done by a stale run whose job runs again.
        running = {job.id for job in self.world.jobs() if job.status == "running"}
        overtaken = [run for run in self.runs if run.stale and run.lease.job_id in running]
        candidates = overtaken if overtaken and at % 3 == 0 else self.runs
        return candidates[at % len(candidates)] if candidates else None

    # --- operators, ticks ------------------------------------------------------------------------------------

    def submit(self, target_code: str, source: str, force: bool, from_page: int) -> None:
        before = {job.id: job for job in self.world.jobs()}
        submitted = self.world.submit(target_code, source=source, force=force, from_page=from_page)
        if submitted.deduplicated:
            standing = before[submitted.id]
            assert source in {"manual", "api"}
            assert standing.status in {"queued", "running"}
            assert (standing.target_code, standing.force, standing.from_page) == (
                target_code,
                force,
                from_page,
            )
        else:
            assert submitted.id not in before
            job = self.world.job(submitted.id)
            assert (job.status, job.due_at) == ("queued", self.clock.now)

    def cancel(self, job: Job, dead: bool) -> None:
        life = jobs.Life.DEAD if dead else jobs.Life.UNKNOWN
        key = self.world.key(job.rate_key)
        if job.status in FINAL - {"cancelled"}:
            with pytest.raises(ConflictError):
                self.world.cancel(job.id)
            return
        answer = self.world.cancel(job.id, life=lambda _worker: life)
        ended = key.retry_at is not None and key.retry_at <= self.clock.now
        if job.status == "running" and not dead and not ended:
            assert answer == "cancelling"
            self.seen.cancelling.add(job.id)
            return
        assert answer == "cancelled"
        assert self.world.job(job.id).status == "cancelled"
        if job.status == "running":
            self._lost(job)

    def retry(self, job: Job) -> None:
        if job.status not in {"failed", "cancelled"}:
            with pytest.raises(ConflictError):
                self.world.database.run(lambda session: jobs.retry(session, job.id, by="anna"))
            return
        submitted = self.world.database.run(lambda session: jobs.retry(session, job.id, by="anna"))
        again = self.world.job(submitted.id)
        if not submitted.deduplicated:
            assert (again.source, again.root_id, again.retry_of) == ("manual", job.root_id, job.id)
            assert again.checkpoint == job.checkpoint

    def move_to_front(self, job: Job) -> None:
        if job.status != "queued":
            with pytest.raises(ConflictError):
                self.world.database.run(lambda session: jobs.move_to_front(session, job.id, by="anna"))
            return
        self.world.database.run(lambda session: jobs.move_to_front(session, job.id, by="anna"))
        queued = [other for other in self.world.jobs() if other.status == "queued"]
        line = sorted((one.due_at, one.seq, one.id) for one in queued if one.rate_key == job.rate_key)
        assert line[0][2] == job.id
        assert line[0][0] <= self.clock.now

    def operate_key(self, key: str, verb: str) -> None:
        with self.database.reading() as session:
            if session.get(RateKey, key) is None:
                return
        verbs: dict[str, Callable[[Session], None]] = {
            "pause": lambda session: jobs.pause_key(session, key, by="anna"),
            "resume": lambda session: jobs.resume_key(session, key, by="anna"),
            "lift": lambda session: jobs.lift_cooldown(session, key, by="anna"),
        }
        self.database.run(verbs[verb])
        if verb == "lift":
            self.seen.cooling.pop(key, None)
            assert self.world.key(key).cooldown_until is None
        else:
            assert (self.world.key(key).paused_at is not None) == (verb == "pause")

    def pause_or_resume_all(self, paused: bool) -> None:
        verb = jobs.pause_all if paused else jobs.resume_all
        self.database.run(lambda session: verb(session, by="anna"))

    def rekey(self, code: str, key: str | None) -> None:
        def change(session: Session) -> None:
            session.get_one(Site, code).rate_key = key
            session.flush()
            jobs.rekey_site(session, code)

        self.database.run(change)
        wanted = key or f"{code}.test"
        for job in self.world.jobs():
            assert job.status != "queued" or job.site_code != code or job.rate_key == wanted

    # --- time, and workers that live and die -----------------------------------------------------------------

    def die(self, worker: str) -> None:
        running = [job for job in self.world.jobs() if job.status == "running" and job.leased_by == worker]
        freed = self.database.run(lambda session: jobs.free_dead(session, [worker]))
        assert sorted(freed) == sorted(job.id for job in running)
        for job in running:
            self._lost(job)
            self._assert_recovered(job)

    # --- workers ---------------------------------------------------------------------------------------------

    def claim(self, worker: str, limit: int) -> None:
        now = self.clock.now
        rows = self.world.jobs()
        home = {job.id: job.rate_key for job in rows}
        running = {job.rate_key: job for job in rows if job.status == "running"}
        before = {key.key: key for key in self._keys()}
        paused_all = self._paused_all()
        startable = set() if paused_all else self._startable(running)
        claimed = self.world.claim(worker, limit)
        assert len(claimed) <= limit
        after = {job.id: job for job in self.world.jobs()}
        for key, job in running.items():
            retry_at = before[key].retry_at
            assert retry_at is not None
            if after[job.id].lease_token == job.lease_token and after[job.id].status == "running":
                continue
            assert retry_at <= now, "P5: taken over before the lease ended"
            alive = self.world.life.get(str(job.leased_by)) is jobs.Life.ALIVE
            assert not alive or before[key].extensions == jobs.MAX_EXTENSIONS or self._past_limit(job)
            self._lost(job, before[key].interval_sec)
            if job.id not in {one.lease.job_id for one in claimed}:
                self._assert_recovered(job)
        for one in claimed:
            key = one.lease.rate_key
            assert not paused_all
            assert before[key].paused_at is None, "P6: a start on a paused key"
            assert now >= self.seen.cooling.get(key, now), "a start on a cooling key"
            assert now >= self.seen.shut.get(key, now), "P11: a start before the gap has passed"
            assert one.job.due_at <= now
            assert one.lease.job_id not in self.seen.finals, "P8: a final job runs"
            # Without those that this claim took over in their old key, and moved here after the start.
            waiting = [job for job in after.values() if job.status == "queued" and key == home[job.id]]
            mine = (one.job.due_at, one.job.seq)
            assert all((job.due_at, job.seq) > mine for job in waiting), "P3"
            for run in self.runs:
                assert run.stale or run.lease.rate_key != key, "P1: the key is still held"
            self.runs.append(Run(one, worker))
        if limit == 10:
            assert startable <= {one.lease.rate_key for one in claimed}, "P2: a due job is not found"

    def heartbeat(self, worker: str) -> None:
        mine = [run for run in self.runs if run.worker == worker]
        with self.database.heartbeat() as session:
            lost = jobs.renew(session, worker, [run.lease for run in mine])
        assert lost == {run.lease for run in mine if run.stale}, "P4"
        for run in mine:
            if not run.stale:
                assert self.world.key(run.lease.rate_key).retry_at == self.clock.now + timedelta(
                    seconds=jobs.LEASE_SECONDS
                )

    def write(self, run: Run, page: int, kind: str) -> None:
        verbs: dict[str, Callable[[Session], None]] = {
            "progress": lambda session: jobs.progress(session, run.lease, current_page=page),
            "checkpoint": lambda session: jobs.checkpoint(session, run.lease, page, {"at": page}),
            "log": lambda session: jobs.add_log_lines(
                session, run.lease, [(self.clock.now, "info", "a line")]
            ),
            "fence": lambda session: jobs.fence(session, run.lease),
        }
        before = self._row(run.lease.job_id)
        self._with_lease(run, verbs[kind])
        if run.stale:
            assert self._row(run.lease.job_id) == before, "P4"

    def finish(self, run: Run, outcome: Any, requested: bool) -> None:
        key, target = run.lease.rate_key, run.claimed.target.code
        stopping = self.world.job(run.lease.job_id).stop_requested
        interval = self.world.key(key).interval_sec
        last = self.clock.now if requested else None
        finished = self._with_lease(
            run,
            lambda session: jobs.finish(session, run.lease, outcome, self.world.policy, last_request_at=last),
        )
        self.runs.remove(run)
        if finished is None:
            return
        if stopping:
            assert finished == jobs.Finished("cancelled"), "P8: a stop wins, and starts nothing"
        assert interval >= INTERVALS[target]
        if requested:
            self.seen.shut_until(key, self.clock.now + timedelta(seconds=interval))
        self._keep_min_gap(key)
        if isinstance(outcome, Blocked) or "note" in outcome.result:
            least = COOLDOWN if getattr(outcome, "retry_after", None) is None else 2 * COOLDOWN
            until = self.clock.now + least
            self.seen.cooling[key] = max(until, self.seen.cooling.get(key, until))

    def hand_back(self, run: Run, stopped: bool) -> None:
        before = self.world.job(run.lease.job_id)
        finished = self._with_lease(run, lambda session: jobs.hand_back(session, run.lease, stopped=stopped))
        self.runs.remove(run)
        if finished is None:
            return
        job = self.world.job(run.lease.job_id)
        assert job.status == ("cancelled" if before.stop_requested else "queued")
        assert (job.attempt_count, job.due_at, job.checkpoint) == (
            before.attempt_count,
            before.due_at,
            before.checkpoint,
        ), "P9"
        self._keep_min_gap(run.lease.rate_key)
        if not stopped:
            self.seen.shut_until(run.lease.rate_key, self.clock.now + timedelta(seconds=10))

    # --- what holds after each -------------------------------------------------------------------------------

    @invariant()
    def promises_hold(self) -> None:
        with self.database.reading() as session:
            assert_settled(session)
            rows = session.scalars(select(Job).order_by(Job.seq)).all()
            keys = session.scalars(select(RateKey)).all()
        for key in keys:
            assert key.lease_token >= self.seen.tokens.get(key.key, 0), "a token only grows"
            self.seen.tokens[key.key] = key.lease_token
        by_id = {job.id: job for job in rows}
        assert set(self.seen.finals) <= set(by_id), "P2: a job is gone"
        for job in rows:
            final = (job.status, job.finished_at, job.error_msg, job.result)
            if job.id in self.seen.finals:
                assert final == self.seen.finals[job.id], "P2: a final job was written again"
            elif job.status in FINAL:
                self.seen.finals[job.id] = final
            assert job.attempt_count <= jobs.MAX_RECOVERIES
            if job.id in self.seen.cancelling:
                assert job.status in {"cancelled", "running"}, "P8: a stop wins"
            if job.source in {"retry", "continue"}:
                assert job.retry_of is not None
                assert by_id[job.retry_of].status != "cancelled", "a cancelled job started a retry"
            assert _blocks_in_a_row(job, by_id) <= self.world.policy.cooldown_auto_retry_max + 1

    # --- helpers ---------------------------------------------------------------------------------------------

    def _some_job(self, at: int) -> Job | None:
        """Any job, those that run or wait more often."""
        rows = self.world.jobs()
        rows += 3 * [job for job in rows if job.status == "running"] + [
            job for job in rows if job.status == "queued"
        ]
        return rows[at % len(rows)] if rows else None

    def _with_lease(self, run: Run, verb: Callable[[Session], Any]) -> Any:
        """Call a worker's verb, which works if and only if nobody took the job over; None when it did not."""
        if not run.stale:
            return self.database.run(verb)
        with pytest.raises(LeaseLostError):
            self.database.run(verb)
        return None

    def _lost(self, job: Job, interval_sec: float | None = None) -> None:
        """The job's present run, with this interval (else its key's), was taken from its worker, which may not know."""
        if interval_sec is None:
            interval_sec = self.world.key(job.rate_key).interval_sec
        for run in self.runs:
            if (run.lease.job_id, run.lease.token) == (job.id, job.lease_token):
                run.stale = True
        self.seen.shut_until(job.rate_key, self.clock.now + timedelta(seconds=interval_sec))
        self._keep_min_gap(job.rate_key)

    def _assert_recovered(self, before: Job) -> None:
        job = self.world.job(before.id)
        if before.stop_requested:
            assert job.status == "cancelled"
        elif before.attempt_count == jobs.MAX_RECOVERIES:
            assert job.status == "failed"
        else:
            assert (job.status, job.attempt_count) == ("queued", before.attempt_count + 1)
            assert job.due_at == before.due_at, "its place in the line"

    def _keep_min_gap(self, key: str) -> None:
        with self.database.reading() as session:
            site = session.get_one(Site, "b")
            if (site.rate_key or "b.test") == key:
                self.seen.shut_until(key, self.clock.now + MIN_GAP)

    def _past_limit(self, job: Job) -> bool:
        assert job.started_at is not None
        return self.clock.now >= job.started_at + timedelta(seconds=14_400 + 60)

    def _startable(self, running: dict[str, Job]) -> set[str]:
        """The keys that run nothing, and whose head may start now."""
        waiting: dict[str, list[Job]] = {}
        for job in self.world.jobs():
            if job.status == "queued":
                waiting.setdefault(job.rate_key, []).append(job)
        now = self.clock.now
        return {
            key.key
            for key in self._keys()
            if key.key not in running
            and key.paused_at is None
            and (key.cooldown_until is None or key.cooldown_until <= now)
            and (key.gap_until is None or key.gap_until <= now)
            and any(job.due_at <= now and self._is_at_home(job) for job in waiting.get(key.key, []))
        }

    def _is_at_home(self, job: Job) -> bool:
        """Whether the job's key is its site's: one that came back from a run may have the old one."""
        with self.database.reading() as session:
            site = session.get_one(Site, job.site_code)
            return job.rate_key == (site.rate_key or f"{site.code}.test")

    def _keys(self) -> list[RateKey]:
        with self.database.reading() as session:
            return list(session.scalars(select(RateKey)))

    def _paused_all(self) -> bool:
        with self.database.reading() as session:
            return jobs.paused_all(session)

    def _row(self, job_id: str) -> dict[str, Any]:
        job = self.world.job(job_id)
        return {column.key: getattr(job, column.key) for column in Job.__table__.columns}


def _blocks_in_a_row(job: Job, by_id: dict[str, Job]) -> int:
    """How many runs of an automatic chain that ends with `job` met a block."""
    blocks = 0
    while True:
        blocks += str(job.error_msg).startswith("cooldown_abort")
        if job.source != "retry":
            return blocks
        job = by_id[str(job.retry_of)]


@pytest.fixture
def fast_database(database_url: str, instance: Path) -> Iterator[Database]:
    """A database that need not survive a power failure, so that many steps take little time."""
    opened = Database(database_url, instance_path=instance, synchronous="OFF")
    yield opened
    opened.close()


@pytest.mark.slow
def test_the_verbs_keep_the_promises_in_any_order(fast_database: Database) -> None:
    machine = type("VerbsOnADatabase", (Verbs,), {"database": fast_database})
    run_state_machine_as_test(
        machine,
        settings=settings(
            # A failure is told at once, with what repeats it; the long form takes its time to make it short.
            phases=[phase for phase in Phase if LONG or phase not in {Phase.shrink, Phase.explain}],
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
