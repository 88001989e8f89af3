"""The evidence over months: compressed, summarised, deleted in the end; and the report made of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from tests.helpers.pools import pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World
from webqueue import clock, jobs
from webqueue.cli import cli
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.models import RequestDay
from webqueue.outcomes import Blocked, Done
from webqueue.politeness import evidence_files
from webqueue.politeness.evidence import EvidenceLog, RequestLine
from webqueue.politeness.evidence_files import first_kept, pack, packed_path, plain_path
from webqueue.politeness.keeping import machine_of
from webqueue.politeness.report import politeness_report
from webqueue.settings import Settings
from webqueue.worker.keeping import keep_evidence

DAY = date(2026, 11, 28)
NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
KEY = "www.example.org"


def line(at: datetime, *, key: str = KEY, sec: float = 1.0, status: int = 200) -> RequestLine:
    return RequestLine(
        at, key, key, "GET", f"http://{key}/ä?n=1", status, None, 100, sec * 1000, "j1", "allowed"
    )


@pytest.fixture
def log(instance: Path) -> Iterator[EvidenceLog]:
    log = EvidenceLog(instance)
    yield log
    log.close()


def folder(instance: Path) -> Path:
    return instance / "requests"


def test_a_day_that_is_over_is_compressed_and_reads_the_same(
    log: EvidenceLog, instance: Path, database: Database
) -> None:
    for second in range(0, 50, 5):
        log.append(line(NOON + timedelta(seconds=second)))
    log.append(line(NOON + timedelta(days=1)))
    before = list(log.read(DAY))

    assert keep_evidence(database, instance, NOON + timedelta(days=1)) == [DAY]

    assert list(log.read(DAY)) == before
    assert log.days() == [DAY, date(2026, 11, 29)]
    packed = packed_path(folder(instance), DAY)
    assert packed.stat().st_mode & 0o777 == 0o600
    assert gzip.decompress(packed.read_bytes()).count(b"\n") == 10
    assert not plain_path(folder(instance), DAY).exists()
    assert plain_path(folder(instance), date(2026, 11, 29)).exists(), "the day is not over"
    assert keep_evidence(database, instance, NOON + timedelta(days=1)) == []


def test_not_before_late_requests_have_ended(log: EvidenceLog, instance: Path, database: Database) -> None:
    log.append(line(NOON))

    assert keep_evidence(database, instance, datetime(2026, 11, 29, 0, 59, tzinfo=UTC)) == []
    assert keep_evidence(database, instance, datetime(2026, 11, 29, 1, 0, tzinfo=UTC)) == [DAY]


def test_a_summary_row_a_key_and_day(log: EvidenceLog, instance: Path, database: Database) -> None:
    log.append(line(NOON))
    log.append(line(NOON + timedelta(seconds=11), status=429))
    log.append(line(NOON, key="other.example.org"))
    keep_evidence(database, instance, NOON + timedelta(days=1))

    with database.reading() as session:
        rows = {row.rate_key: row for row in session.scalars(select(RequestDay))}
    assert set(rows) == {KEY, "other.example.org"}
    row = rows[KEY]
    assert (row.day, row.machine, row.requests, row.bytes, row.jobs) == (DAY, machine_of(instance), 2, 200, 1)
    assert (row.statuses, row.smallest_gap_sec, row.most_parallel) == ({"200": 1, "429": 1}, 10.0, 1)
    assert (row.first_at, row.last_at) == (NOON, NOON + timedelta(seconds=12))
    assert rows["other.example.org"].smallest_gap_sec is None


def test_a_line_that_comes_after_the_compression_is_not_lost(
    log: EvidenceLog, instance: Path, database: Database
) -> None:
    log.append(line(NOON))
    keep_evidence(database, instance, NOON + timedelta(days=1))
    log.append(line(NOON + timedelta(seconds=20)))
    assert len(list(log.read(DAY))) == 2

    keep_evidence(database, instance, NOON + timedelta(days=1))

    assert len(list(log.read(DAY))) == 2
    with database.reading() as session:
        assert [row.requests for row in session.scalars(select(RequestDay))] == [2]


@pytest.mark.parametrize("at", ["replace", "unlink"])
def test_a_crash_during_the_compression_loses_and_doubles_nothing(
    log: EvidenceLog, instance: Path, database: Database, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    for second in range(3):
        log.append(line(NOON + timedelta(seconds=second)))
    with monkeypatch.context() as patch:

        def crash(*_: object, **__: object) -> None:
            raise OSError("power cut")

        patch.setattr(Path, at, crash)
        with pytest.raises(OSError, match="power cut"):
            keep_evidence(database, instance, NOON + timedelta(days=1))
    assert len(list(log.read(DAY))) == 3

    assert keep_evidence(database, instance, NOON + timedelta(days=1)) == [DAY]
    assert len(list(log.read(DAY))) == 3
    assert sorted(path.name for path in folder(instance).iterdir()) == [
        ".keeping.lock",
        "2026-11-28.jsonl.gz",
    ]


def test_a_damaged_file_gives_what_it_has(log: EvidenceLog, instance: Path) -> None:
    for second in range(2000):
        log.append(line(NOON + timedelta(seconds=second)))
    log.close()
    packed = pack(folder(instance), DAY)
    whole = packed.read_bytes()
    packed.write_bytes(whole[: len(whole) // 2])

    assert 0 < len(list(log.read(DAY))) < 2000


def test_two_processes_do_not_do_it_at_once(
    log: EvidenceLog, instance: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(line(NOON))
    inner: list[object] = []

    def meanwhile(path: Path, first: date) -> list[date]:
        inner.append(keep_evidence(database, instance, NOON + timedelta(days=1)))
        return evidence_files.forget_before(path, first)

    monkeypatch.setattr("webqueue.politeness.keeping.forget_before", meanwhile)
    keep_evidence(database, instance, NOON + timedelta(days=1))
    assert inner == [[]]


def test_kept_for_thirteen_months(log: EvidenceLog, instance: Path, database: Database) -> None:
    assert first_kept(date(2026, 11, 29)) == date(2025, 10, 1)
    assert first_kept(date(2027, 1, 1)) == date(2025, 12, 1)
    for day in (date(2025, 9, 30), date(2025, 10, 1), DAY):
        log.append(line(datetime(day.year, day.month, day.day, tzinfo=UTC)))

    keep_evidence(database, instance, NOON + timedelta(days=1))

    assert log.days() == [date(2025, 10, 1), DAY]
    with database.reading() as session:
        days = set(session.scalars(select(RequestDay.day)))
    assert days == {date(2025, 9, 30), date(2025, 10, 1), DAY}, "the summaries stay"


def test_workers_do_it_by_themselves(
    log: EvidenceLog, instance: Path, database: Database, settings: Settings
) -> None:
    log.append(line(NOON - timedelta(days=300)))
    with pool_of(database, settings, lambda ctx: Done()):
        wait_until(lambda: packed_path(folder(instance), DAY - timedelta(days=300)).exists())


def test_an_instance_without_evidence(instance: Path, database: Database) -> None:
    assert keep_evidence(database, instance, NOON) == []
    with database.reading() as session:
        assert politeness_report(session, instance, "2026-11") == ()


@pytest.fixture
def blocked(database: Database, log: EvidenceLog) -> Iterator[tuple[World, Clock]]:
    """A block at NOON whose cooldown lasts 600 s."""
    moment = Clock(NOON)
    with clock.replaced(moment):
        world = World(database)
        world.add_site()
        world.add_target("news")
        world.submit("news")
        log.append(line(NOON - timedelta(seconds=30)))
        log.append(line(NOON - timedelta(seconds=1), status=429))
        world.finish(world.claim_one(), Blocked("HTTP 429 from www.example.org"))
        yield world, moment


def report(world: World, instance: Path, month: str = "2026-11") -> dict[str, object]:
    with world.database.reading() as session:
        (one,) = politeness_report(session, instance, month)
    (block,) = one.blocks
    return {**vars(one), **{f"block_{name}": value for name, value in vars(block).items()}}


def test_a_block_and_nothing_after_it(blocked: tuple[World, Clock], instance: Path) -> None:
    told = report(blocked[0], instance)

    assert (told["key"], told["requests"], told["smallest_gap_sec"], told["most_parallel"]) == (
        KEY,
        2,
        28.0,
        1,
    )
    assert (told["block_cause"], told["block_seconds"]) == ("HTTP 429 from www.example.org", 600)
    assert told["block_until"] == NOON + timedelta(seconds=600)
    assert (told["block_next_request_at"], told["block_obeyed"]) == (None, True)


@pytest.mark.parametrize(("after", "obeyed"), [(599.9, False), (600.0, True)])
def test_whether_a_cooldown_was_obeyed(
    blocked: tuple[World, Clock], log: EvidenceLog, instance: Path, after: float, obeyed: bool
) -> None:
    log.append(line(NOON + timedelta(seconds=after)))

    told = report(blocked[0], instance)

    assert told["block_next_request_at"] == NOON + timedelta(seconds=after)
    assert told["block_obeyed"] is obeyed


def test_a_cooldown_that_was_lifted(blocked: tuple[World, Clock], log: EvidenceLog, instance: Path) -> None:
    world, moment = blocked
    moment.advance(60)
    world.database.run(lambda session: jobs.lift_cooldown(session, KEY, by="anna"))
    log.append(line(NOON + timedelta(seconds=61)))

    told = report(world, instance)

    assert (told["block_lifted_by"], told["block_obeyed"]) == ("anna", True)


def test_other_machines_and_days_whose_file_is_gone(
    blocked: tuple[World, Clock], log: EvidenceLog, instance: Path, tmp_path: Path
) -> None:
    world, _ = blocked
    elsewhere = EvidenceLog(tmp_path / "elsewhere")
    elsewhere.append(line(NOON + timedelta(hours=2)))
    elsewhere.append(line(NOON + timedelta(hours=2, seconds=8)))
    elsewhere.close()
    keep_evidence(world.database, tmp_path / "elsewhere", NOON + timedelta(days=1))
    keep_evidence(world.database, instance, NOON + timedelta(days=1))

    told = report(world, instance)
    assert (told["requests"], told["smallest_gap_sec"]) == (4, 7.0)
    assert told["machines"] == tuple(sorted((machine_of(instance), machine_of(tmp_path / "elsewhere"))))
    packed_path(folder(instance), DAY).unlink()
    assert report(world, instance)["requests"] == 4


def test_another_month(blocked: tuple[World, Clock], instance: Path) -> None:
    with blocked[0].database.reading() as session:
        assert politeness_report(session, instance, "2026-12") == ()
        for month in ("2026-13", "2026", "11-2026", ""):
            with pytest.raises(InvalidInputError, match="is no month"):
                politeness_report(session, instance, month)


def test_the_command(
    blocked: tuple[World, Clock], database_url: str, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBQUEUE_DATABASE_URL", database_url)
    monkeypatch.setenv("WEBQUEUE_INSTANCE_PATH", str(instance))
    runner = CliRunner()

    table = runner.invoke(cli, ["politeness", "--month", "2026-11"], catch_exceptions=False).output
    assert table.splitlines()[0].split() == [
        "KEY", "REQUESTS", "JOBS", "SMALLEST", "GAP", "SEC", "MOST", "PARALLEL", "BLOCKS", "LONGEST", "COOLDOWN",
        "SEC", "OBEYED",
    ]  # fmt: skip
    assert table.splitlines()[1].split() == [KEY, "2", "1", "28.0", "1", "1", "600", "yes"]
    (told,) = json.loads(
        runner.invoke(cli, ["politeness", "--month", "2026-11", "--json"], catch_exceptions=False).output
    )
    assert (told["key"], told["smallest_gap_sec"], told["obeyed"]) == (KEY, 28.0, True)
    assert told["blocks"][0]["until"] == "2026-11-28T12:10:00Z"
    assert told["blocks"][0]["next_request_at"] is None
    assert "No request" in runner.invoke(cli, ["politeness", "--month", "2026-12"]).output
