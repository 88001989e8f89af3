"""Notifications: what is news, told once, sent to a real receiver that refuses at first; addresses stay secret."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select

from tests.helpers.browsing import Browser
from tests.helpers.installation import PATIENCE_SEC, Installation
from tests.helpers.pools import QUICK, pool_of
from tests.helpers.waiting import wait_until
from tests.helpers.world import Clock, World
from webqueue import clock, jobs, processes
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.deliveries import alerts, channels, messages
from webqueue.deliveries.loop import DeliveryLoop
from webqueue.deliveries.messages import MessageSender
from webqueue.deliveries.queue import enqueue
from webqueue.errors import InvalidInputError
from webqueue.models import AuditEntry, Delivery, DeliveryStatus
from webqueue.outcomes import Blocked, Done, Failed
from webqueue.settings import Settings

SECRET = "s3cr3t-path"


class Receiver:
    """A web address that refuses the first messages."""

    def __init__(self) -> None:
        self.refusals = 0
        self.refusal = 503
        self.open = threading.Event()
        self.open.set()
        self.got: list[dict[str, str]] = []
        self.tries = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.tries += 1
                outer.open.wait(10)
                refuse = outer.tries <= outer.refusals
                if not refuse:
                    outer.got.append(body)
                self.send_response(outer.refusal if refuse else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"json://anna:pa55w0rd@127.0.0.1:{self.server.server_port}/{SECRET}"


@contextmanager
def running() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running() as one:
        yield one


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add_site()
    for code in ("news", "more", "third"):
        world.add_target(code)
    return world


def add(world: World, url: str, name: str = "ops") -> channels.Channel:
    channel = world.database.run(
        lambda s: channels.add_channel(s, channels.new_channel(name, url), by="anna", now=clock.now(s))
    )
    look(world)  # from here on things are news
    return channel


def look(world: World, moment: Clock | None = None) -> int:
    if moment is not None:
        moment.advance(30)
    return world.database.run(lambda s: alerts.watch(s, clock.now(s)))


def queued(world: World) -> list[tuple[str, str]]:
    with world.database.reading() as session:
        rows = session.scalars(select(Delivery).order_by(Delivery.id)).all()
        return [(row.payload["title"], row.payload["body"]) for row in rows]


def end(world: World, target: str, ending: Done | Failed | Blocked) -> None:
    world.submit(target, force=True)
    world.finish(world.claim_one(), ending)


class TestNews:
    def test_one_broken_host_is_one_message_until_it_is_well_again(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        for target in ("news", "more"):
            end(world, target, Failed("no link found"))
        assert look(world, now) == 1
        end(world, "third", Failed("no link found"))
        assert look(world, now) == 0, "the host is known to be broken"
        ((title, body),) = queued(world)
        assert title == "webqueue: www.example.org: failed"
        assert "news: no link found (and 1 more)" in body

        end(world, "news", Done())
        end(world, "more", Done())
        assert look(world, now) == 0, "one of its targets still fails"
        end(world, "third", Done())
        assert look(world, now) == 1
        assert "well again" in queued(world)[-1][1]
        end(world, "news", Failed("again"))
        assert look(world, now) == 1

    def test_what_the_loaded_demo_shows_is_no_news(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        world.add_site("demo", "https://registry.invalid/")
        for target in ("redesigned", "without_text", "turned_away"):
            world.add_target(target, site="demo")
        end(world, "redesigned", Failed("No link to a notice on list page 1"))
        end(world, "without_text", Done(attention="None of the notices has a text"))
        end(world, "turned_away", Blocked("the demo has it so"))
        end(world, "news", Failed("no link found"))
        now.advance(7_200)  # the retry of what was turned away is overdue by now
        assert look(world, now) == 1
        assert "invalid" not in queued(world)[0][1]

    def test_a_failure_that_is_repeated_is_no_news_and_one_that_lasts_is_told_daily(
        self, world: World, now: Clock
    ) -> None:
        add(world, "json://127.0.0.1/x")
        world.add_target("retried", retry_times=1)
        end(world, "retried", Failed("first"))
        assert look(world, now) == 0
        now.advance(3600)
        world.finish(world.claim_one(), Failed("last"))
        assert look(world, now) == 1
        now.advance(86_400)
        end(world, "news", Failed("still"))
        assert look(world, now) == 1

    def test_attention_is_told_once(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        end(world, "news", Done(attention="far less than usual"))
        end(world, "more", Done())
        assert look(world, now) == 1
        end(world, "news", Done(attention="far less than usual"))
        assert look(world, now) == 0
        assert "far less than usual" in queued(world)[0][1]

    def test_a_block_is_news_when_it_lasts(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        world.database.run(
            lambda s: channels.choose(s, tuple(channels.KINDS), 60, 100_000, by="anna", now=clock.now(s))
        )
        end(world, "news", Blocked("429 from the server"))
        assert look(world, now) == 0
        now.advance(3600)
        assert look(world, now) == 1
        assert look(world, now) == 0
        assert "blocked for 60 minutes" in queued(world)[0][1]
        now.advance(100_000)
        world.finish(world.claim_one(), Done())
        assert look(world, now) == 1
        assert "is not blocked any more" in queued(world)[1][1]

    def test_a_block_that_nothing_follows_is_not_told_for_ever(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        kinds = ("blocked", "recovered")
        world.database.run(lambda s: channels.choose(s, kinds, 60, 100_000, by="anna", now=now()))
        end(world, "news", Blocked("429 from the server"))
        assert look(world, now) == 0
        now.advance(3600)
        assert look(world, now) == 1
        (retry,) = [job for job in world.jobs() if job.status == "queued"]
        world.cancel(retry.id)
        for _ in range(3):
            now.advance(86_400)
            assert look(world, now) == 0, "nothing asks the server any more"

        end(world, "news", Blocked("429 from the server"))
        assert look(world, now) == 0, "it stood still for days, and is blocked again since just now"
        now.advance(3600)
        assert look(world, now) == 1
        assert "blocked for 60 minutes, 2 times in a row" in queued(world)[-1][1]
        now.advance(86_400)
        world.finish(world.claim_one(), Done())
        assert look(world, now) == 1
        assert "is not blocked any more" in queued(world)[-1][1]

    def test_a_blocked_key_that_somebody_paused_is_not_told(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        world.database.run(lambda s: channels.choose(s, ("blocked",), 60, 100_000, by="anna", now=now()))
        end(world, "news", Blocked("429 from the server"))
        assert look(world, now) == 0
        world.database.run(lambda s: jobs.pause_key(s, "www.example.org", by="anna"))
        now.advance(7200)
        assert look(world, now) == 0
        world.database.run(lambda s: jobs.resume_key(s, "www.example.org", by="anna"))
        world.database.run(lambda s: jobs.pause_all(s, by="anna"))
        assert look(world, now) == 0
        world.database.run(lambda s: jobs.resume_all(s, by="anna"))
        assert look(world, now) == 1

    def test_overdue_work_and_lost_workers(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        world.database.run(lambda s: processes.beat(s, "silent", role="worker", threads=2))
        world.submit("news")
        now.advance(700)
        assert look(world, now) == 2
        world.database.run(lambda s: alerts.note_lost_workers(s, ["dead"], 1))
        assert look(world, now) == 1
        world.finish(world.claim_one(), Done())
        assert look(world, now) == 1
        texts = [body for _, body in queued(world)]
        assert "1 rate keys wait for a worker" in texts[0]
        assert "no sign of life of the worker silent" in texts[0]
        assert "dead; jobs that go on elsewhere: 1" in texts[1]
        assert "no work is overdue any more" in texts[2]
        world.database.run(lambda s: jobs.pause_all(s, by="anna"))
        world.submit("more")
        now.advance(7000)
        assert look(world, now) == 0, "somebody holds it back"

    def test_only_the_wanted_kinds_are_sent_to_every_receiver(self, world: World, now: Clock) -> None:
        add(world, "json://127.0.0.1/x")
        add(world, "json://127.0.0.1/y", "others")
        world.database.run(lambda s: channels.choose(s, ("failed",), 5, 5, by="anna", now=clock.now(s)))
        end(world, "news", Done(attention="look"))
        assert look(world, now) == 0
        end(world, "news", Failed("x"))
        assert look(world, now) == 1
        assert len(queued(world)) == 2


@pytest.mark.parametrize("engine_name", ["sqlite"])
class TestSending:
    def test_a_receiver_that_refuses_gets_it_later_and_once(
        self, world: World, receiver: Receiver, caplog: pytest.LogCaptureFixture
    ) -> None:
        receiver.refusals = 2
        channel = add(world, receiver.url)
        world.database.run(lambda s: messages.send(s, channel, "A title", "Two\nlines", now=clock.now(s)))
        loop = DeliveryLoop(world.database, {"message": MessageSender()}, poll_sec=0.05, first_wait_sec=0.1)
        loop.loop.start()
        try:
            wait_until(lambda: receiver.got, timeout=20)
            wait_until(lambda: statuses(world) == [DeliveryStatus.DELIVERED], timeout=20)
        finally:
            loop.loop.stop()
            loop.loop.join(5)
        assert receiver.tries == 3
        (got,) = receiver.got
        assert (got["title"], got["message"]) == ("A title", "Two\nlines")
        assert "pa55w0rd" not in caplog.text
        assert SECRET not in caplog.text

    def test_what_is_stored_of_a_refusal_has_no_secret(self, world: World, receiver: Receiver) -> None:
        receiver.refusals = 100
        channel = add(world, receiver.url)
        world.database.run(lambda s: messages.send(s, channel, "T", "B", now=clock.now(s)))
        DeliveryLoop(world.database, {"message": MessageSender()}).deliver_due()
        with world.database.reading() as session:
            (row,) = session.scalars(select(Delivery))
            assert row.attempts == 1
            assert "503" in (row.last_error or "")
            for secret in (SECRET, "pa55w0rd", "127.0.0.1"):
                assert secret not in f"{row.last_error} {row.payload}"

    def test_nothing_of_another_receiver_is_heard(self, world: World, receiver: Receiver) -> None:
        receiver.refusals, receiver.refusal = 100, 507
        receiver.open.clear()
        with running() as other:
            other.refusals = 100
            for name, url in (("slow", receiver.url), ("quick", other.url)):
                channel = add(world, url, name)
                world.database.run(lambda s, to=channel: messages.send(s, to, "T", "B", now=clock.now(s)))  # type: ignore[misc]
            loops = [DeliveryLoop(world.database, {"message": MessageSender()}) for _ in range(2)]
            slow = threading.Thread(target=loops[0].deliver_due)
            slow.start()
            try:
                wait_until(lambda: receiver.tries, timeout=10)
                loops[1].deliver_due()
                assert other.tries == 1, "it had to wait for the other one"
            finally:
                receiver.open.set()
                slow.join(10)
        with world.database.reading() as session:
            errors = {
                row.payload["target"]: row.last_error or "" for row in session.scalars(select(Delivery))
            }
        assert "507" in errors["slow"]
        assert "503" in errors["quick"]
        assert "503" not in errors["slow"], "what the other one said"
        assert not logging.getLogger("apprise").propagate, "what it says has addresses in it"

    def test_a_job_that_fails_in_a_pool_is_told(
        self, world: World, settings: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(alerts, "_LAG", timedelta(seconds=0.2))
        add(world, receiver.url)
        with pool_of(world.database, settings, lambda _ctx: Failed("it broke"), timing=QUICK):
            world.submit("news")
            wait_until(lambda: receiver.got, timeout=20)
        assert "it broke" in receiver.got[0]["message"]

    def test_the_page(self, world: World, settings: Settings, receiver: Receiver) -> None:
        app = create_app(settings, world.database)
        browser = Browser(app, world.database)
        wrong = browser.post("/settings/notifications/receivers", name="ops", url="nonsense-s3cr3t")
        assert wrong.status_code == 422
        assert "no address that apprise knows" in wrong.text
        assert "nonsense-s3cr3t" not in wrong.text
        assert (
            browser.post("/settings/notifications/receivers", name="ops", url=receiver.url).status_code == 303
        )
        page = browser.get("/settings/notifications").text
        assert "json://********" in page
        for path in ("/settings/notifications", "/settings/audit", "/settings/export"):
            shown = browser.get(path).text
            assert SECRET not in shown
            assert "pa55w0rd" not in shown
        with world.database.reading() as session:
            (channel,) = channels.read(session).channels
            assert SECRET not in str([row.after for row in session.scalars(select(AuditEntry))])
        address = f"/settings/notifications/receivers/{channel.id}"
        assert browser.post(f"{address}/test").status_code == 303
        assert "Everything is sent" not in browser.get("/settings/notifications").text
        DeliveryLoop(world.database, {"message": MessageSender()}).deliver_due()
        assert receiver.got[0]["title"] == "webqueue: test"
        assert "Everything is sent" in browser.get("/settings/notifications").text

        fields = {"kind-failed": "on", "blocked_min": "5", "overdue_min": "x"}
        assert "whole number of minutes" in browser.post("/settings/notifications", **fields).text
        assert browser.post("/settings/notifications", **{**fields, "overdue_min": "7"}).status_code == 303
        with world.database.reading() as session:
            wanted = channels.read(session)
        assert (wanted.kinds, wanted.blocked_min, wanted.overdue_min) == (("failed",), 5, 7)
        assert "forgotten" in browser.post(f"{address}/remove").text
        assert browser.post(f"{address}/remove", confirmed="yes").status_code == 303
        assert "Nobody is notified" in browser.get("/settings/notifications").text
        for role in ("operator", "viewer"):
            assert Browser(app, world.database, role).get("/settings/notifications").status_code == 403

    def test_names_and_addresses_are_checked(self, world: World) -> None:
        add(world, "json://127.0.0.1/x")
        for name, url in (("ops", "json://a/"), ("", "json://a/"), ("new", "x://y"), ("new", "json")):
            with pytest.raises(InvalidInputError):
                add(world, url, name)


def statuses(world: World) -> list[str]:
    with world.database.reading() as session:
        return list(session.scalars(select(Delivery.status)))


def test_secrets_are_masked_however_they_are_written() -> None:
    channel = channels.Channel("1", "ops", "json://anna:p%40ssw%2Frd@host/to%20ken")
    told = channel.without_secrets("p@ssw/rd p%40ssw%2Frd p%40ssw%2frd to ken/to%20ken anna")
    assert not [part for part in ("ssw", "ken", "anna") if part in told], told


def test_the_death_of_the_last_worker_is_told_by_the_scheduler(
    installation: Installation, receiver: Receiver
) -> None:
    world = World(installation.database)
    add(world, receiver.url)
    scheduler = None
    try:
        with clock.replaced(lambda: datetime.now(UTC) - timedelta(seconds=120)):
            world.database.run(lambda s: processes.beat(s, "silent", role="worker", threads=2))
        world.database.run(lambda s: enqueue(s, "an export", "of a worker", {}, now=clock.now(s)))
        scheduler = installation.start("scheduler")
        wait_until(lambda: receiver.got, timeout=PATIENCE_SEC)
    finally:
        if scheduler is not None:
            scheduler.terminate()
            output = scheduler.communicate(timeout=PATIENCE_SEC)
            assert scheduler.returncode == 0, output
    assert "no sign of life of the worker silent" in receiver.got[0]["message"]
    with world.database.reading() as session:
        export = session.scalars(select(Delivery).where(Delivery.kind == "an export")).one()
    assert (export.status, export.attempts) == (DeliveryStatus.QUEUED, 0), "it is left to workers"
