"""Rate keys: their states, and their lists."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from tests.helpers.admin import (
    add_site,
    add_target,
    fill,
    finished_job,
    running_job,
)
from tests.helpers.asking import KEY, change_key, note_stuck, read, submit
from tests.helpers.world import START
from webqueue import clock, config, jobs, queries
from webqueue.database import Database
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import Job, Process, Site, Target
from webqueue.queries.expected import expected_starts, min_gap_of_key
from webqueue.queries.rate_keys import busiest_rate_keys


def key_of(database: Database, key: str = KEY) -> queries.RateKeyRow:
    with database.reading() as session:
        return queries.get_rate_key(session, key)


def test_a_key_whose_only_schedules_are_paused_says_so(example: Database) -> None:
    assert not key_of(example).schedules_paused

    def pause(session: Session) -> None:
        config.pause_target(session, "news", by="ann", now=clock.now(session))

    example.run(pause)
    unused = key_of(example)
    assert (unused.next_start_at, unused.schedules_paused) == (None, True)
    example.run(lambda s: finished_job(s, "archive", ago=timedelta(minutes=1), seconds=1))
    assert key_of(example).schedules_paused, "also when it has a row"
    example.run(lambda s: config.resume_target(s, "news", by="ann", now=clock.now(s)))
    assert not key_of(example).schedules_paused


def test_a_key_tells_its_state(example: Database) -> None:
    unused = key_of(example)
    assert (unused.state, unused.sites, unused.queued) == ("idle", ("example",), 0)
    assert unused.next_start_at is not None, "the next tick"
    job = example.run(lambda s: running_job(s, "news"))
    submit(example, "archive")
    running = key_of(example)
    assert (running.state, running.queued, running.next_start_at) == ("running", 1, None)
    assert running.running_job is not None
    assert running.running_job.id == job.id
    change_key(example, extensions=1)
    assert key_of(example).state == "stuck"


def test_a_free_key_tells_why_the_first_in_its_line_does_not_run(example: Database) -> None:
    submit(example)
    submit(example, "archive")
    row = key_of(example)
    assert row.waiting is not None
    assert (row.state, row.waiting.reason, row.waiting.position) == ("idle", "starting", 1)
    assert row.next_start_at is not None
    example.run(lambda s: jobs.pause_all(s, by="ann"))
    row = key_of(example)
    assert row.waiting is not None
    assert (row.waiting.reason, row.next_start_at) == ("all_paused", None)
    example.run(lambda s: jobs.resume_all(s, by="ann"))
    example.run(lambda s: s.execute(delete(Process)))
    row = key_of(example)
    assert row.waiting is not None
    assert (row.waiting.reason, row.next_start_at) == ("no_worker", None)


def test_a_handler_that_its_worker_calls_stuck_is_shown_with_its_key(example: Database) -> None:
    job = example.run(lambda s: running_job(s, "news"))
    assert job.started_at is not None
    note_stuck(example, job, at=job.started_at - timedelta(seconds=1))
    assert key_of(example).state == "running", "that was an earlier run of the job"
    note_stuck(example, job, at=job.started_at + timedelta(minutes=5))
    assert key_of(example).state == "stuck"


def test_a_key_that_is_shut_tells_why_and_until_when(example: Database) -> None:
    submit(example)
    now: datetime = read(example, clock.now)
    until = now + timedelta(minutes=5)
    change_key(example, cooldown_until=until, cooldown_cause="HTTP 503", retry_at=until, consecutive_blocks=2)
    row = key_of(example)
    assert (row.state, row.next_start_at, row.consecutive_blocks) == ("cooling_down", until, 2)
    assert row.not_before == queries.NotBefore(until, "cooldown", "HTTP 503")
    example.run(lambda s: jobs.pause_key(s, KEY, by="ann", note="wait"))
    row = key_of(example)
    assert (row.state, row.paused_by, row.paused_note, row.next_start_at) == ("paused", "ann", "wait", None)
    assert read(example, lambda s: queries.key_events(s, KEY)), "a pause is noted"


def test_a_key_that_nobody_has_is_told(example: Database) -> None:
    with pytest.raises(NotFoundError, match="no rate key 'elsewhere'"):
        key_of(example, "elsewhere")


def test_a_job_belongs_to_the_key_that_is_stored_with_it(example: Database) -> None:
    job = example.run(lambda s: running_job(s, "news"))
    example.run(lambda s: add_site(s, "example", f"http://{KEY}/", rate_key="shared"))
    running = key_of(example)
    assert running.running_job is not None
    assert running.running_job.id == job.id
    assert running.sites == ()
    assert key_of(example, "shared").sites == ("example",)


def test_keys_are_listed_by_state(database: Database) -> None:
    fill(database)
    rows = read(database, queries.list_rate_keys).items
    assert rows[0].state == "running"
    assert {row.key: row.state for row in rows} == {
        "www.example.org": "running",
        "shop.example.com": "cooling_down",
        "archive.example.net": "paused",
        "hostile.example": "idle",
        "www.gz.example.cn": "idle",
    }
    cooling = read(database, lambda s: queries.list_rate_keys(s, state="cooling_down"))
    assert [row.key for row in cooling.items] == ["shop.example.com"]
    for state in ("running", "stuck", "cooling_down", "paused", "idle"):
        with database.reading() as session:
            listed = queries.list_rate_keys(session, state=state)
        assert [row.key for row in listed.items] == [row.key for row in rows if row.state == state]
    with pytest.raises(InvalidInputError, match="is none of"):
        read(database, lambda s: queries.list_rate_keys(s, state="hot"))


def test_every_key_is_on_some_page_whatever_its_state(database: Database) -> None:
    """More keys than a page holds; half never ran, so that only their sites tell of them; _ sorts its own way."""
    every = sorted(f"{'_' if number % 3 else ''}k-{number:03}" for number in range(230))

    def add(session: Session) -> None:
        times = {"created_at": START, "changed_at": START}
        session.add_all(
            Site(
                code=f"s{name[-3:]}",
                name=name,
                base_url=f"http://{name[-3:]}.example.org/",
                host=f"{name[-3:]}.example.org",
                adapter="list",
                rate_key=name,
                **times,
            )
            for name in every
        )
        session.flush()
        ran = [f"{number:03}" for number in range(1, 230, 2)]
        session.add_all(
            Target(code=f"t{number}", site_code=f"s{number}", handler="crawl", **times) for number in ran
        )
        session.flush()
        for number in ran:
            jobs.submit(session, f"t{number}", by="ann")
        for name in ("_k-005", "_k-227", "_k-229"):
            jobs.pause_key(session, name, by="ann")

    database.run(add)

    def names(limit: int, state: str | None = None) -> list[str]:
        found: list[str] = []
        cursor = None
        with database.reading() as session:
            while True:
                page = queries.list_rate_keys(session, state=state, cursor=cursor, limit=limit)
                assert len(page.items) <= limit
                found += [row.key for row in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    return found

    for limit in (60, 200):
        assert sorted(names(limit)) == every
        assert len(names(limit, "idle")) == 227
        assert sorted(names(limit, "paused")) == ["_k-005", "_k-227", "_k-229"]
    with pytest.raises(InvalidInputError, match="is no cursor"):
        read(database, lambda s: queries.list_rate_keys(s, cursor="\x00"))


def test_the_strip_has_the_last_twelve_runs_however_many_wait(example: Database) -> None:
    def history(session: Session) -> None:
        for number in range(15):
            finished_job(session, "news", ago=timedelta(minutes=15 - number), seconds=number)
        for page in range(1, 20):
            jobs.submit(session, "news", by="ann", from_page=page)

    example.run(history)
    assert [run.seconds for run in key_of(example).runs] == list(range(3, 15))
    target = read(example, lambda s: queries.get_target(s, "news"))
    assert [run.seconds for run in target.runs] == list(range(3, 15))


def test_the_key_of_any_url_is_told(example: Database) -> None:
    assert read(example, lambda s: queries.resolve_url(s, f"http://{KEY.upper()}:8080/x")) == KEY
    assert read(example, queries.sites_by_key) == {KEY: ("example",)}


def test_the_adapters_with_which_a_url_has_another_key_are_told(example: Database) -> None:
    """The platform of one firewall is on many hosts, which have other pages as well."""

    def of(url: str) -> tuple[str, dict[str, str]]:
        return (
            read(example, lambda s: queries.resolve_url(s, url)),
            read(example, lambda s: queries.keys_by_adapter(s, url)),
        )

    assert of("http://www.gz.gd.gov.cn/") == ("www.gz.gd.gov.cn", {"gkmlpt": "gd_gkmlpt_shared"})
    assert of("http://www.example.com/") == ("www.example.com", {})
    assert of(f"http://{KEY}/") == (KEY, {}), "a site has it already"


def test_ticks_that_were_skipped_in_a_row_are_one_mark_on_the_strip(example: Database) -> None:
    """After hours without a scheduler the strip still tells of the runs before."""

    def skipped(session: Session, ago: int, count: int) -> None:
        for number in range(count):
            end = timedelta(minutes=ago, seconds=-number)
            finished_job(session, "news", ago=end, seconds=0, status="skipped")

    def history(session: Session) -> None:
        for number in range(13):
            finished_job(session, "news", ago=timedelta(minutes=90 - number), seconds=number)
        skipped(session, 60, 40)
        finished_job(session, "news", ago=timedelta(minutes=50), seconds=77)
        skipped(session, 40, 3)

    example.run(history)
    expected = [*((float(number), "done") for number in range(4, 13)), (0.0, "skipped"), (77.0, "done")]
    for runs in (key_of(example).runs, read(example, lambda s: queries.get_target(s, "news")).runs):
        assert [(run.seconds, run.status) for run in runs] == [*expected, (0.0, "skipped")]
    assert len(read(example, lambda s: queries.last_runs(s, "news"))) == 16


def test_what_cools_down_is_on_the_overview_however_many_keys_wait(database: Database) -> None:
    """The banner says of it."""
    fill(database)

    def wait(session: Session) -> None:
        for number in range(3):
            add_site(session, f"a{number}", f"http://a{number}.example/")
            add_target(session, f"a{number}", f"a{number}")
            jobs.submit(session, f"a{number}", by="ann")

    database.run(wait)
    with database.reading() as session:
        assert [row.state for row in busiest_rate_keys(session, limit=3)] == [
            "running",
            "cooling_down",
            "idle",
        ]
        listed = [row.state for row in queries.list_rate_keys(session).items]
    assert listed[:3] == ["running", "cooling_down", "idle"]
    assert listed[5] == "paused", "behind those that wait"


def test_the_line_tells_when_each_job_is_expected_to_start(example: Database) -> None:
    """One after the other, each as long as its target usually takes, with the gap that the sites ask for."""

    def history(session: Session) -> None:
        session.get_one(Site, "example").min_gap_sec = 10
        for number, seconds in enumerate((100, 300, 200), 1):
            finished_job(session, "news", ago=timedelta(hours=number), seconds=seconds)
        add_target(session, "never_ran", "example")
        running_job(session, "news", started_at=clock.now(session) - timedelta(seconds=60))
        for code, page in (("news", 1), ("news", 2), ("never_ran", 1), ("news", 3)):
            jobs.submit(session, code, by="ann", from_page=page)

    example.run(history)

    def expected() -> list[float]:
        """Seconds from now, to ten."""
        with example.reading() as session:
            key, now = queries.get_rate_key(session, KEY), clock.now(session)
            starts = expected_starts(
                session,
                key.running_job,
                queries.list_key_queue(session, KEY),
                gap_sec=min_gap_of_key(session, KEY),
                now=now,
            )
            return [round((at - now).total_seconds(), -1) for at in starts.values()]

    # 140 s of the running one are left; nobody knows how long the one takes that never ran.
    assert expected() == [150, 360, 570]
    with example.transaction() as session:  # 60 s for two of five
        session.execute(
            update(Job).where(Job.status == "running").values(progress_current=2, progress_total=5)
        )
    assert expected() == [100, 310, 520]
    change_key(example, paused_at=START, paused_by="ann")
    assert expected() == []
