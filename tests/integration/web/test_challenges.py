"""The list of challenge signatures in the settings: read, extended, switched off and restored by plain forms."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from tests.helpers.admin import HOSTILE
from tests.helpers.browsing import Browser
from tests.helpers.interleaving import Background
from webqueue.database import Database
from webqueue.models import AuditEntry
from webqueue.politeness.challenges import DEFAULT_SIGNATURES, challenge_of, signatures_in_force

PAGE = "/settings/challenges"
BODY = b"<html><title>Gate 7</title>Please wait"


def told(database: Database, body: bytes = BODY) -> str | None:
    with database.reading() as session:
        return challenge_of(signatures_in_force(session), 200, {}, body)


def test_one_is_added_replaced_and_deleted(browser: Browser, database: Database) -> None:
    assert all(one.name in browser.get(PAGE).text for one in DEFAULT_SIGNATURES)
    assert told(database) is None
    assert browser.post(PAGE, name="Gate", statuses="200 202", body="<title>Gate 8").status_code == 303
    assert told(database) is None
    assert browser.post(PAGE, name="Gate", statuses="200, 202", body="<title>Gate 7").status_code == 303
    assert told(database) == "Gate"
    assert "Gate 7" in browser.get(PAGE).text
    assert browser.post(f"{PAGE}/remove", name="Gate").status_code == 200
    assert told(database) == "Gate", "it asks first"
    assert browser.post(f"{PAGE}/remove", name="Gate", confirmed="yes").status_code == 303
    assert told(database) is None
    assert browser.post(f"{PAGE}/remove", name="Gate", confirmed="yes").status_code == 404
    with database.reading() as session:
        changes = session.scalars(
            select(AuditEntry).where(AuditEntry.object_name == "challenge_signatures")
        ).all()
    assert len(changes) == 3


def test_one_of_the_package_is_switched_off_and_restored(browser: Browser, database: Database) -> None:
    page = b"<title>Just a moment...</title>"
    assert told(database, page) == "Cloudflare page"
    assert "will be taken for content" in browser.post(f"{PAGE}/off", name="Cloudflare page").text
    assert told(database, page) == "Cloudflare page", "it asks first"
    assert browser.post(f"{PAGE}/off", name="Cloudflare page", confirmed="yes").status_code == 303
    assert told(database, page) is None
    assert browser.post(f"{PAGE}/remove", name="Cloudflare page").status_code == 303
    assert told(database, page) == "Cloudflare page"


@pytest.mark.parametrize(
    ("sent", "field", "said"),
    [
        ({"name": "x", "body": "("}, "body", "is no regular expression"),
        ({"name": "x", "body": ".*"}, "body", "matches the empty text"),
        ({"name": "x"}, "body", "needs a body, a header or a location"),
        ({"name": "", "body": "x"}, "name", "must be a text"),
        ({"name": "x", "body": "x", "statuses": "2OO"}, "statuses", "must be HTTP statuses"),
        ({"name": "x", "body": "x", "statuses": "999"}, "statuses", "must be a list of HTTP statuses"),
        (
            {"name": "x", "location": "^https://x", "statuses": "200"},
            "statuses",
            "must be those of redirects",
        ),
        ({"name": "x", "header": "no colon but space"}, "header", "must begin with the name of a header"),
        ({"name": HOSTILE, "body": "x" * 501}, "body", "1 to 500 characters"),
    ],
)
def test_what_cannot_be_taken_is_told_at_its_field_and_kept(
    browser: Browser, database: Database, sent: dict[str, str], field: str, said: str
) -> None:
    refused = browser.post(PAGE, **{"statuses": "200", **sent})
    assert refused.status_code == 422
    wrong = refused.text.partition(f'id="f-{field}-wrong">')[2].partition("<")[0]
    assert said in wrong
    assert HOSTILE not in refused.text
    with database.reading() as session:
        assert signatures_in_force(session) == DEFAULT_SIGNATURES


def test_a_page_that_makes_an_expression_try_for_ever_holds_nobody_up(
    browser: Browser, database: Database
) -> None:
    assert browser.post(PAGE, name="slow", statuses="200", body="(a|aa)+$").status_code == 303
    with capture_logs() as captured:
        # In a thread, whose end is waited for: without an end of the search it would not end.
        assert Background(lambda: told(database, b"a" * 8000 + b"!")).result() is None
    assert [(line["event"], line["expression"]) for line in captured] == [
        ("challenge signature takes too long", "(a|aa)+$")
    ]
    for page in (b"<meta http-equiv='refresh' " * 300, b'<iframe id="main-iframe" src=' * 280):
        assert Background(partial(told, database, page)).result() is None
