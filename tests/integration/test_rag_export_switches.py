"""The switches of the export for retrieval: on its page, by command, and what a job's page tells of its export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import update
from sqlalchemy.orm import Session

from tests.helpers.browsing import Browser
from tests.helpers.command_line import CommandLine, command_line
from tests.helpers.world import World
from webqueue import clock
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.deliveries import switches, windows
from webqueue.deliveries.loop import DeliveryLoop
from webqueue.deliveries.queue import enqueue
from webqueue.deliveries.switches import Switches
from webqueue.models import Delivery, Role
from webqueue.outcomes import Done
from webqueue.settings import Settings


@pytest.fixture
def engine_name() -> str:
    """What is switched is tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def app(settings: Settings, database: Database) -> Flask:
    made = create_app(settings, database)
    made.testing = True
    return made


@pytest.fixture
def webqueue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database_url: str, instance: Path
) -> Iterator[CommandLine]:
    environment = [("WEBQUEUE_INSTANCE_PATH", str(instance)), ("WEBQUEUE_DATABASE_URL", database_url)]
    with command_line(monkeypatch, capsys, environment) as line:
        yield line


def stored(world: World) -> Switches:
    with world.database.reading() as session:
        return switches.read(session)


def test_an_administrator_turns_them(app: Flask, world: World) -> None:
    browser = Browser(app, world.database)
    assert "Every target is exported, or not" in browser.get("/settings/export").text
    for form, wanted in [
        ({"switch": "on"}, Switches(True, {})),
        ({"switch": "off", "target": "news"}, Switches(True, {"news": False})),
        ({"switch": "on", "target": "news"}, Switches(True, {"news": True})),
        ({"switch": "off"}, Switches(False, {"news": True})),
        ({"switch": "reset", "target": "news"}, Switches(False, {})),
    ]:
        assert browser.post("/settings/export", **form).status_code == 303
        assert stored(world) == wanted
        assert browser.get("/settings/export").status_code == 200
    assert browser.post("/settings/export", switch="maybe").status_code == 400
    assert browser.post("/settings/export", switch="on", target="nothing").status_code == 404
    assert stored(world) == Switches()
    assert "installation" in browser.get("/settings/audit").text


def test_others_only_look(app: Flask, world: World) -> None:
    browser = Browser(app, world.database, Role.OPERATOR)
    page = browser.get("/settings/export")
    assert page.status_code == 200
    assert "Switch on" not in page.text
    assert browser.post("/settings/export", switch="on").status_code == 403
    assert stored(world) == Switches()


def test_what_is_not_delivered_is_shown_on_both_pages(app: Flask, world: World) -> None:
    browser = Browser(app, world.database)
    browser.get("/settings/export")
    browser.post("/settings/export", switch="on")
    job_id = world.submit("news").id
    world.finish(world.claim_one(), Done())
    assert "Running" in browser.get(f"/jobs/{job_id}").text
    # A process of another version, which does not know the kind.
    DeliveryLoop(world.database, {}).deliver_due()
    page = browser.get("/settings/export").text
    assert "nobody here delivers" in page
    assert f'/jobs/{job_id}">{job_id}</a>' in page
    assert f">{windows.KIND}<" not in page, "each is of the same kind, which is a word of the code"


def test_nothing_of_messages_is_shown_there(app: Flask, world: World) -> None:
    def fail(session: Session) -> None:
        enqueue(session, "message", "message:1", {"target": "ops"}, now=clock.now(session))
        session.execute(update(Delivery).values(last_error="of another kind"))

    world.database.run(fail)
    assert "of another kind" not in Browser(app, world.database, Role.VIEWER).get("/settings/export").text


def test_the_command_turns_them(webqueue: CommandLine, world: World) -> None:
    assert webqueue.done("rag-export", "on").out == "export of every target without a switch of its own: on\n"
    assert webqueue.done("rag-export", "off", "news").out == "export of news: off\n"
    assert webqueue.done("rag-export", "show", "--json").json == {
        "installation": "on",
        "targets": {"news": "off"},
        "to": f"{world.database.instance_path}/exports",
    }
    webqueue.done("rag-export", "reset", "news")
    assert stored(world) == Switches(True, {})
    assert "no target 'nothing'" in webqueue("rag-export", "on", "nothing").complaint
