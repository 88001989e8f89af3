"""Crawls stop while the database can still write, on a file system that really fills up, and go on by themselves."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from tests.acceptance.chaos.disks import small_disk
from tests.helpers.api import ApiClient
from tests.helpers.browsing import Browser
from tests.helpers.pools import QUICK, pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue import disk, queries
from webqueue import settings as webqueue_settings
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.disk import MIB, Disk
from webqueue.handlers.protocol import Context
from webqueue.models import StoredSetting
from webqueue.outcomes import Cancelled, Done, Outcome
from webqueue.settings import Settings
from webqueue.worker.disk_watch import DiskWatch
from webqueue.worker.runs import Runs

ROOM = 64 * MIB
NEEDED_MB = 16


class TestReading:
    def test_the_larger_bound_holds_and_each_disk_is_told_once(self, instance: Path) -> None:
        total = shutil.disk_usage(instance).total
        settings = webqueue_settings.load(instance_path=instance, disk_free_mb=1, disk_free_percent=50)
        (found,) = disk.look(settings)
        assert found.needed == int(total * 0.5)
        (found,) = disk.look(settings.model_copy(update={"disk_free_percent": 0.0}))
        assert found.needed == MIB
        (found,) = disk.look(settings.model_copy(update={"store_url": "memory://bucket"}))
        assert found.folder == instance

    def test_a_store_that_is_a_folder_by_its_url_is_watched_too(self, instance: Path, tmp_path: Path) -> None:
        with small_disk(tmp_path / "disk", ROOM) as small:
            for url in (f"file://{small.folder}/store", f"local://{small.folder}", str(small.folder)):
                settings = webqueue_settings.load(instance_path=instance, store_url=url)
                assert [found.total <= ROOM for found in disk.look(settings)] == [False, True], url

    def test_a_folder_that_is_not_there_yet_is_on_the_disk_of_the_one_above(self, instance: Path) -> None:
        (found,) = disk.look(webqueue_settings.load(instance_path=instance / "not" / "yet"))
        assert found.total == shutil.disk_usage(instance).total

    def test_there_has_to_be_more_room_to_go_on_than_to_stop(self) -> None:
        def of(free: int) -> Disk:
            return Disk(Path("/d"), free, 1000, 100)

        assert [of(free).is_low for free in (99, 100)] == [True, False]
        assert [of(free).has_room_again for free in (100, 109, 110)] == [False, False, True]


@pytest.fixture
def engine_name() -> str:
    return "sqlite"


@pytest.fixture
def mounted(tmp_path: Path, _sqlite_template: Path) -> Iterator[tuple[Settings, Path]]:
    """Settings of an instance on a disk of its own, and a file that may fill it."""
    with small_disk(tmp_path / "disk", ROOM) as small:
        instance = small.folder / "instance"
        instance.mkdir()
        shutil.copyfile(_sqlite_template, instance / "webqueue.sqlite3")
        yield webqueue_settings.load(instance_path=instance, disk_free_mb=NEEDED_MB), small.folder / "ballast"


def pages(ctx: Context) -> Outcome:
    """A crawl that stops at its next request, and ends when there is a second start."""
    start = ctx.checkpoint_at_start.page
    if start:
        return Done({"from": start})
    ctx.checkpoint(7)
    wait_until(ctx.should_stop, timeout=30)
    return Cancelled()


def test_a_low_disk_is_told_again_when_the_note_of_it_was_forgotten(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = [Disk(Path("/d"), 1, 1000, 100)]
    watch = DiskWatch(database, settings, "w", Runs(), QUICK, look=lambda: low)

    def notes() -> int:
        with database.reading() as session:
            return len(session.scalars(select(StoredSetting).where(StoredSetting.name == "disk_low:w")).all())

    watch.watch()
    assert notes() == 1
    with database.transaction() as session:
        session.execute(delete(StoredSetting))
    watch.watch()
    assert notes() == 0, "not at each look"
    monkeypatch.setattr("webqueue.worker.disk_watch._NOTE_AGAIN_SEC", 0.0)
    watch.watch()
    assert notes() == 1


def test_crawls_stop_before_the_database_does_and_go_on(mounted: tuple[Settings, Path]) -> None:
    settings, ballast = mounted
    database = Database(settings.url, instance_path=settings.instance_path)
    world = World(database)
    world.add_site()
    world.add_target("news")
    world.add_target("more")
    app = create_app(settings, database)
    try:
        with pool_of(database, settings, pages):
            job_id = world.submit("news").id
            wait_until(lambda: world.job(job_id).last_completed_page == 7, timeout=20)
            browser = Browser(app, database)
            assert "disk is low" not in browser.get("/").text

            free = shutil.disk_usage(settings.instance_path).free
            ballast.write_bytes(bytes(free - (NEEDED_MB - 4) * MIB))
            wait_until(lambda: world.job(job_id).status == "queued", timeout=20)
            other = world.submit("more").id  # the database can write
            page = browser.get("/").text
            assert "The disk is low; crawls have stopped." in page
            # Seen while it filled up.
            assert re.search(r"has 1[0-5] MB free of 64 MB; crawls need 16 MB", page)
            client = ApiClient(database)
            assert client.http.get("/readyz").json["checks"]["disk"] == "low"  # type: ignore[index]
            with database.reading() as session:
                waiting = queries.get_job(session, other).waiting
            assert waiting is not None
            assert "The disk is low" in " ".join([waiting.message, *waiting.also])
            assert waiting.earliest_start is None
            assert world.job(job_id).attempt_count == 0
            assert {job.status for job in world.jobs()} == {"queued"}

            ballast.unlink()
            wait_until(lambda: world.job(job_id).status == "done", timeout=20)
            assert world.job(job_id).result == {"from": 7}
            assert world.job(job_id).attempt_count == 0
            assert "disk is low" not in browser.get("/").text
    finally:
        database.close()
