"""`command` targets in the admin: the form of their parameters, masks, and refusals while commands are off."""

from __future__ import annotations

import json

import pytest
from flask import Flask

from tests.helpers.browsing import Browser
from tests.helpers.world import World
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.settings import Settings

FORM = {
    "code": "mirror",
    "site": "example",
    "handler": "command",
    "interval_sec": "5",
    "enabled": "on",
    "params.argv": "wget\r\n--no-verbose\r\nhttps://www.example.org/a b",
    "params.env": '{"API_TOKEN": "sesame"}',
    "params.grace_sec": "3",
}


@pytest.fixture
def engine_name() -> str:
    """The form writes as every form of a target does."""
    return "sqlite"


@pytest.fixture
def world(database: Database) -> World:
    world = World(database)
    world.add_site()
    return world


@pytest.fixture
def browser(settings: Settings, world: World) -> Browser:
    app: Flask = create_app(settings, world.database)
    app.testing = True
    browser = Browser(app, world.database)
    browser.get("/targets")
    return browser


def test_its_form_shows_its_parameters_and_keeps_its_secrets(
    browser: Browser, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBQUEUE_ALLOW_COMMANDS", "true")
    empty = browser.get("/targets/new?site=example&handler=command").text
    assert "No shell reads them: no quotes, no * and no |. One per line." in empty
    assert browser.post("/targets/new", **FORM).status_code == 303
    wanted = {
        "argv": ["wget", "--no-verbose", "https://www.example.org/a b"],
        "env": {"API_TOKEN": "sesame"},
        "grace_sec": 3,
    }
    assert world.target("mirror").params == wanted
    page = browser.get("/targets/mirror/edit").text
    assert "wget\n--no-verbose\nhttps://www.example.org/a b" in page
    assert "sesame" not in page
    again = {**FORM, "params.env": json.dumps({"API_TOKEN": "********"}), "params.grace_sec": "4"}
    assert browser.post("/targets/mirror/edit", **again).status_code == 303
    assert world.target("mirror").params == {**wanted, "grace_sec": 4}
    wrong = browser.post("/targets/mirror/edit", **{**FORM, "params.argv": "", "params.cwd": "relative"})
    assert wrong.status_code == 422
    assert "is no absolute path" in wrong.text


def test_while_commands_are_off_it_is_neither_saved_nor_queued(browser: Browser, world: World) -> None:
    refused = browser.post("/targets/new", **FORM)
    assert refused.status_code == 422
    assert "WEBQUEUE_ALLOW_COMMANDS=true" in refused.text
    world.add_target("mirror", handler="command", params={"argv": ["true"]})
    answer = browser.post("/targets/mirror/run")
    assert answer.status_code == 409, answer.text
    assert "WEBQUEUE_ALLOW_COMMANDS=true" in answer.text
    assert world.jobs() == []


def test_an_http_target_s_statuses_are_lines_of_numbers(browser: Browser, world: World) -> None:
    form = {
        "code": "ping",
        "site": "example",
        "handler": "http",
        "params.url": "/",
        "params.ok_statuses": "200\r\n204",
        "params.headers": '{"Authorization": "Bearer sesame"}',
    }
    assert browser.post("/targets/new", **form).status_code == 303
    page = browser.get("/targets/ping/edit").text
    assert "200\n204" in page
    assert "sesame" not in page
    masked = {**form, "params.headers": '{"Authorization": "********"}'}
    assert browser.post("/targets/ping/edit", **masked).status_code == 303
    assert world.target("ping").params["headers"] == {"Authorization": "Bearer sesame"}
