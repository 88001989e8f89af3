"""An installation whose crawls name no contact is told so (DESIGN section 6)."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.helpers.browsing import Browser
from webqueue import __version__
from webqueue import settings as webqueue_settings
from webqueue.app import create_app
from webqueue.cli import cli
from webqueue.database import Database
from webqueue.settings import Settings

WARNING = "Crawls name no contact."


@pytest.mark.parametrize(("role", "warned"), [("admin", True), ("operator", False), ("viewer", False)])
def test_administrators_see_it_in_the_admin(
    settings: Settings, database: Database, role: str, warned: bool
) -> None:
    browser = Browser(create_app(settings, database), database, role)

    assert (WARNING in browser.get("/").text) is warned


def test_nobody_sees_it_once_there_is_one(settings: Settings, database: Database) -> None:
    named = settings.model_copy(update={"contact": "crawl@example.org"})

    assert WARNING not in Browser(create_app(named, database), database).get("/").text


def test_the_check(database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBQUEUE_DATABASE_URL", database_url)
    monkeypatch.setenv("WEBQUEUE_INSTANCE_PATH", str(settings.instance_path))
    runner = CliRunner()

    without = runner.invoke(cli, ["check", "--json"], catch_exceptions=False)
    assert "warning: crawls name no contact" in without.stderr
    told = json.loads(without.stdout)
    assert (told["user_agent"], told["names_contact"]) == (f"webqueue/{__version__}", False)

    monkeypatch.setenv("WEBQUEUE_CONTACT", "crawl@example.org")
    assert webqueue_settings.load().names_contact
    named = runner.invoke(cli, ["check", "--json"], catch_exceptions=False)
    assert named.stderr == ""
    assert json.loads(named.stdout)["user_agent"] == f"webqueue/{__version__} (+crawl@example.org)"
