"""Every form of the admin, filled in and sent by a browser that runs no script."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

from flask import Flask
from playwright.sync_api import Page, Response, expect
from sqlalchemy import select

from tests.browser.conftest import BrowserPage
from tests.helpers.admin import PASSWORD, Admin, fill, running_job
from tests.helpers.servers.base import Exchange, Server, Site
from webqueue import access, clock
from webqueue.app import create_app
from webqueue.models import User
from webqueue.settings import Settings


class Inbox(Site):
    """Takes notifications."""

    def respond(self, exchange: Exchange) -> None:
        exchange.send("taken")


class Person:
    """Somebody who reads pages, fills in fields by their labels and presses buttons, and sees what is answered."""

    def __init__(self, admin: Admin, page: Page, app: Flask) -> None:
        self.admin = admin
        self.page = page
        self.sent: set[str] = set()
        self._rules = app.url_map.bind("")
        page.on("response", self._note)

    def _note(self, response: Response) -> None:
        if response.request.method == "POST":
            endpoint, _values = self._rules.match(urlsplit(response.url).path, method="POST")
            assert response.status in {200, 303}, f"{endpoint}: {response.status}"
            self.sent.add(endpoint)

    def opens(self, path: str) -> None:
        self.page.goto(self.admin.url + path)

    def fills(self, **fields: str) -> None:
        """Fields by their names in the form that is worked on, where the page has several of them."""
        for name, value in fields.items():
            field = self.page.locator(f"main [name='{name}']:not([type=hidden])").last
            if field.evaluate("node => node.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)

    def presses(self, button: str, *, told: str, exact: bool = True, sure: bool = False) -> None:
        """Press a button.

        Args:
            button: its name, or with `exact=False` a part of it.
            told: what the next page says about it.
            sure: the admin asks first; it is answered with yes.
        """
        self.page.get_by_role("button", name=button, exact=exact).last.click()
        if sure:
            self.page.locator("#confirm-button").click()
        expect(self.page.locator("body")).to_contain_text(told)


def configures(person: Person) -> None:
    """Sites and targets, one after the other and many at once."""
    person.opens("/sites/new")
    person.fills(code="paper", base_url="https://paper.example.org/")
    person.presses("Save", told="New target")
    person.opens("/sites/paper")
    person.fills(name="The paper")
    person.presses("Save", told="paper")
    person.opens("/targets/new?site=paper")
    person.fills(code="paper_news", **{"params.list_url": "news/{page}", "params.item_selector": "a"})
    person.presses("Save", told="paper_news")
    person.opens("/targets/paper_news/edit")
    person.fills(schedule="0 4 * * *")
    person.presses("Save", told="At 04:00")
    person.presses("Pause", told="The schedule of paper_news is paused.")
    person.presses("Resume", told="The schedule of paper_news goes on.")
    person.presses("Run now", told="Queued as #")
    person.opens("/targets/paper_news")
    person.presses("Try: fetch", told="Queued as #", exact=False)
    for button, told in (
        ("Run now", "1 target has a job already."),
        ("Pause", "1 target paused"),
        ("Resume", "1 target resumed"),
    ):
        person.opens("/targets?select=1&q=paper")
        person.page.get_by_label("paper_news").first.check()
        person.presses(button, told=told, sure=True)
    person.opens("/targets?select=1&q=paper")
    person.page.get_by_label("paper_news").first.check()
    person.fills(schedule="0 5 * * *")
    person.presses("Set schedule", told="1 target changed", sure=True)
    person.opens("/targets?select=1&q=paper")
    person.page.get_by_label("paper_news").first.check()
    person.fills(change="add_tag", value="daily")
    person.presses("Change", told="1 target changed", sure=True)


def deletes(person: Person) -> None:
    person.opens("/jobs?target=paper_news&select=1")
    person.page.get_by_label("that match, not only the ticked ones").check()
    person.presses("Cancel", told="jobs cancelled", sure=True)
    person.opens("/targets/new?site=paper")
    person.fills(code="paper_short", **{"params.list_url": "news/{page}", "params.item_selector": "a"})
    person.presses("Save", told="paper_short")
    person.opens("/targets/paper_short/edit")
    person.presses("Delete target", told="deleted", sure=True)
    person.page.get_by_role("status").get_by_role("link", name="Undo").click()
    person.presses("Undo: 1 object", told="1 object is as it was before.")
    person.opens("/sites/new")
    person.fills(code="short", base_url="https://short.example.org/")
    person.presses("Save", told="New target")
    person.opens("/sites/short")
    person.presses("Delete site", told="deleted", sure=True)


def works(person: Person, stuck: str) -> None:
    """Jobs and keys."""
    person.opens("/jobs?target=example_news&status=queued")
    person.page.locator("tbody a[href^='/jobs/']").first.click()
    person.presses("Move to front", told="is the next of www.example.org")
    person.presses("Cancel", told="is cancelled", exact=False)
    person.opens("/jobs?target=hostile_target&status=failed")
    person.page.locator("tbody a[href^='/jobs/']").first.click()
    person.presses("Run again", told="Queued as #")
    person.opens("/jobs?target=shop_prices&status=failed&select=1")
    person.page.locator("tbody input[type=checkbox]").first.check()
    person.presses("Run again", told="1 job not queued, an equal job stands already.", sure=True)
    person.opens(f"/jobs/{stuck}")
    person.presses("Force stop", told="hands its other jobs back", sure=True)
    person.opens("/rate-keys/shop.example.com")
    person.presses("End cooldown", told="The cooldown of shop.example.com is over.", sure=True)
    person.page.get_by_text("Owner and note").click()
    person.fills(owner="The press office")
    person.presses("Save", told="Owner: The press office")
    person.page.get_by_text("Pause this key").click()
    person.fills(note="The owner asked")
    person.presses("Pause", told="The owner asked")
    person.presses("Resume", told="shop.example.com is resumed.")
    person.presses("Pause all", told="Everything is paused", sure=True)
    person.presses("Resume all", told="Everything goes on.")


def administers(person: Person, inbox: Server) -> None:
    """All of the settings."""
    person.opens("/settings")
    person.page.get_by_label("Dark").check()
    person.page.locator("#save-theme").click()
    person.opens("/settings")
    person.fills(zone="Asia/Shanghai")
    person.presses("Use zone", told="by the clock of Asia/Shanghai")
    person.page.locator("#language-en").click()
    with person.admin.database.transaction() as session:
        ann, now = session.scalars(select(User)).one(), clock.now(session)
        for address in ("192.0.2.1", "192.0.2.2"):
            access.begin_session(session, ann, address=address, agent="curl/8", now=now)
    person.opens("/settings")
    person.presses("Log out curl at 192.0.2.1", told="That browser is logged out.")
    person.presses("Log out everywhere else", told="1 session is ended.")
    person.opens("/settings/users")
    person.fills(name="bob", password=PASSWORD)
    person.presses("Add user", told="bob can log in now.")
    person.page.get_by_label("Role of bob", exact=True).select_option("operator")
    person.presses("Save the role of bob", told="operator")
    person.page.get_by_label("New password of bob", exact=True).fill(PASSWORD + "!")
    person.presses("Set the password of bob", told="bob")
    with person.admin.database.transaction() as session:
        bob, now = session.scalars(select(User).where(User.name == "bob")).one(), clock.now(session)
        access.begin_session(session, bob, address="192.0.2.3", agent="curl/8", now=now)
    person.opens("/settings/users")
    person.presses("Log out everywhere: bob", told="1 session is ended.", sure=True)
    person.presses("Disable bob", told="shut out", sure=True)
    person.presses("Enable bob", told="bob")
    person.opens("/settings/tokens")
    person.fills(name="script")
    person.presses("Make token", told="wq_")
    person.opens("/settings/tokens")
    person.presses("Revoke", told="revoked", exact=False, sure=True)
    person.opens("/settings/rate-groups")
    person.fills(key="shared", host_suffix="example.net")
    person.presses("Save", told="The rate group of shared is saved.", sure=True)
    person.presses("Delete", told="The rate group is deleted.", exact=False, sure=True)
    person.opens("/settings/challenges")
    person.fills(name="Ours", statuses="200", body="prove you are a person")
    person.presses("Save", told="The signature Ours is in force")
    person.presses("Delete", told="is removed", exact=False, sure=True)
    person.presses("Switch off", told="is off", exact=False, sure=True)
    person.opens("/settings/notifications")
    person.fills(name="inbox", url=inbox.url.replace("http", "json"))
    person.presses("Add receiver", told="inbox gets notifications.")
    person.presses("Test", told="A test for inbox is on its way", exact=False)
    person.presses("Remove", told="gets no notification any more", exact=False, sure=True)
    person.fills(blocked_min="30")
    person.presses("Save", told="Saved.")
    person.opens("/settings/retention")
    person.fills(days="30")
    person.presses("Save rule", told="has its own rule.")
    person.opens("/settings/export")
    person.presses("Switch on", told="Export of all targets")


def test_every_form_works_without_script(admin: Admin, settings: Settings, browser_page: BrowserPage) -> None:
    app = create_app(settings, admin.database)
    person = Person(admin, browser_page(javascript=False), app)
    person.page.goto(admin.setup_link())
    person.page.get_by_label("Name").fill("ann")
    person.page.get_by_label("Password", exact=True).fill(PASSWORD)
    person.page.get_by_label("Password again").fill(PASSWORD)
    person.presses("Make administrator", told="Three steps")
    person.presses("Load the demo", told="The demo is loaded: 7 targets")
    person.presses("Remove the demo", told="The demo is removed.", sure=True)
    fill(admin.database)
    with admin.database.transaction() as session:
        asked = clock.now(session) - timedelta(minutes=1)
        stuck = running_job(
            session, "gz_notices", stop_requested=True, stop_requested_at=asked, stop_requested_by="ann"
        ).id
    with Server(Inbox()) as inbox:
        configures(person)
        works(person, stuck)
        deletes(person)
        administers(person, inbox)
    person.opens("/settings")
    person.fills(old=PASSWORD, password=PASSWORD + "!")
    person.presses("Change", told="changed")
    person.presses("Log out", told="Log in")
    person.page.get_by_label("Name").fill("ann")
    person.page.get_by_label("Password").fill(PASSWORD + "!")
    person.presses("Log in", told="Overview")

    forms = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ()) and not rule.rule.startswith("/api/")
    }
    assert person.sent == forms
