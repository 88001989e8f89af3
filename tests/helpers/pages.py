"""Every page of the admin, found in the application itself: a page that is added is looked at, too.

Addresses come from the rules of the application, with examples of the rows that they name, and from the links of the
pages that were found so: one for each set of filters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from flask import Flask
from flask.testing import FlaskClient
from selectolax.lexbor import LexborHTMLParser
from sqlalchemy import select
from sqlalchemy.orm import Session
from werkzeug.routing import MapAdapter, Rule
from werkzeug.test import TestResponse

from tests.helpers.admin import Admin
from webqueue import access, queries
from webqueue.access import Action
from webqueue.config import can_undo
from webqueue.models import AuditEntry, Document, Job, Site, Target

# What somebody sees who is not logged in has links of its own, which work once.
ONE_TIME: Final = frozenset({"auth.login", "auth.login_link", "auth.setup"})
# For machines, and files by names that only a crawl gives them.
NO_PAGES: Final = frozenset(
    {"health.healthz", "health.readyz", "metrics.metrics", "static", "documents.kept"}
)
# A filter whose value makes another form of the page; of others only the name counts.
FORMS: Final = frozenset({"handler"})
_ARGUMENT: Final = re.compile(r"<[^>]+>")
# An element and its classes.
Piece = tuple[str, str | None]


def every_page(admin: Admin, role: str = "admin") -> dict[str, str]:
    """All pages that its rules name, and what those link to: their addresses, and their HTML.

    Args:
        admin: that has them.
        role: of the user who reads. What its rules keep from that role has to be refused, and no link may lead there.
    """
    client = logged_in(admin, role)
    with admin.database.reading() as session:
        rules = [(path, rule) for rule in page_rules(admin) for path in _addresses(session, rule)]
    named = [path for path, rule in rules if may_reach(admin.app, rule.endpoint, role)]
    for path, rule in rules:
        assert path in named or client.get(path).status_code == 403, rule
    adapter = admin.app.url_map.bind("localhost")
    found: dict[str, str] = {}
    linked: dict[tuple[str, frozenset[str]], str] = {}
    for path in named:
        answer = client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        if is_page(answer):
            found[path] = answer.text
            for link in _links(answer.text):
                linked.setdefault(_shape(adapter, link), link)
    for path in linked.values():
        answer = client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        if is_page(answer):
            found[path] = answer.text
    return found


def one_of_each_kind(app: Flask, pages: Mapping[str, str]) -> list[str]:
    """The addresses of one of those pages that are made of the same pieces: where these are looked at, not the rows."""
    found: dict[tuple[str, frozenset[Piece]], str] = {}
    for path, html in pages.items():
        found.setdefault((_endpoint(app, path), pieces(html)), path)
    return list(found.values())


def with_new_pieces(app: Flask, pages: Mapping[str, str], known: Mapping[str, str]) -> set[str]:
    """The addresses of those pages that have pieces which no page of the same view among the `known` has."""
    seen: dict[str, set[Piece]] = {}
    for path, html in known.items():
        seen.setdefault(_endpoint(app, path), set()).update(pieces(html))
    return {path for path, html in pages.items() if pieces(html) - seen.get(_endpoint(app, path), set())}


def pieces(html: str) -> frozenset[Piece]:
    """What a page is made of: its elements with their classes, each once."""
    return frozenset(
        (one.tag or "", one.attributes.get("class")) for one in LexborHTMLParser(html).css("main *")
    )


def _endpoint(app: Flask, path: str) -> str:
    endpoint, _ = app.url_map.bind("").match(urlsplit(path).path)
    return str(endpoint)


def may_reach(app: Flask, endpoint: str, role: str) -> bool:
    """Whether the view lets the role in, as its own rule says (`webqueue.web.auth.needs`)."""
    action = getattr(app.view_functions[endpoint], "needs", Action.READ)
    return access.allows(role, action)


def page_rules(admin: Admin) -> list[Rule]:
    """The rules that a person who is logged in reads by."""
    return [
        rule
        for rule in admin.app.url_map.iter_rules()
        if "GET" in (rule.methods or ())
        and not rule.rule.startswith("/api/")
        and rule.endpoint not in ONE_TIME | NO_PAGES
    ]


def is_page(answer: TestResponse) -> bool:
    """Whether it is a whole page: not a file, and not a fragment."""
    return answer.mimetype == "text/html" and answer.text.startswith("<!doctype html>")


def polls(pages: Mapping[str, str]) -> dict[str, str]:
    """Those of the pages that poll, and the address that each asks."""
    found = {path: LexborHTMLParser(html).css_first("#poll") for path, html in pages.items()}
    return {path: str(poll.attributes["hx-get"]) for path, poll in found.items() if poll is not None}


def logged_in(admin: Admin, role: str = "admin") -> FlaskClient:
    """A plain client of the application."""
    client = admin.app.test_client()
    client.get(urlsplit(admin.login_link(role)).path)
    return client


def _addresses(session: Session, rule: Rule) -> Iterator[str]:
    if not rule.arguments:
        yield rule.rule
        return
    assert len(rule.arguments) == 1, rule.rule
    for value in _examples(session, rule.endpoint.partition(".")[0]):
        yield _ARGUMENT.sub(quote(value, safe=""), rule.rule)


def _examples(session: Session, blueprint: str) -> list[str]:
    """One row of each kind that a page may look different for."""
    if blueprint == "jobs":
        rows = session.scalars(select(Job).order_by(Job.seq)).all()
        kinds = {
            (row.status, row.source, bool(row.attention), bool(row.counters), '"' in row.target_code): row.id
            for row in rows
        }
        return list(kinds.values())
    if blueprint == "targets":
        targets = session.scalars(select(Target).order_by(Target.code)).all()
        kinds_of_targets = {
            (row.handler, bool(row.schedule), bool(row.paused_at), bool(row.note), '"' in row.code): row.code
            for row in targets
        }
        return list(kinds_of_targets.values())
    if blueprint == "rate_keys":
        keys = queries.list_rate_keys(session, limit=200).items
        return list({key.state: key.key for key in keys}.values())
    if blueprint == "sites":
        return list(session.scalars(select(Site.code).order_by(Site.code.desc()).limit(3)))
    if blueprint == "documents":
        return [str(number) for number in session.scalars(select(Document.id).limit(4))]
    if blueprint == "undo":
        entries = session.scalars(select(AuditEntry).where(AuditEntry.before.is_not(None))).all()
        undone = {one.action: str(one.id) for one in entries if can_undo(one.action, one.object_kind)}
        return list(undone.values())
    raise AssertionError(f"{blueprint} has pages with an argument: add examples of it")


def _links(html: str) -> Iterator[str]:
    for link in LexborHTMLParser(html).css("a[href]"):
        parts = urlsplit(link.attributes["href"] or "")
        if not parts.scheme and not parts.netloc and parts.path and parts.query:
            yield f"{parts.path}?{parts.query}"


def _shape(adapter: MapAdapter, path: str) -> tuple[str, frozenset[str]]:
    """What two addresses have in common that are the same page with other rows: endpoint, and names of filters."""
    parts = urlsplit(path)
    endpoint, _ = adapter.match(parts.path, method="GET")
    pairs = parse_qsl(parts.query)
    return endpoint, frozenset(f"{name}={value}" if name in FORMS else name for name, value in pairs)
