"""Owner and note of a rate key: written by administrators, read by everybody, also of a key that never ran."""

from __future__ import annotations

import re

from flask import Flask
from sqlalchemy import select
from sqlalchemy.orm import Session

from tests.helpers.admin import HOSTILE, add_site
from tests.helpers.browsing import Browser
from webqueue import jobs, queries
from webqueue.database import Database
from webqueue.models import AuditEntry

PATH = "/rate-keys/www.example.org"


def test_who_looks_after_a_key_and_what_others_should_know(
    app: Flask, browser: Browser, database: Database, example: None
) -> None:
    saved = browser.post(f"{PATH}/describe", owner="Anna, press office", note=f"Call first.\r\n{HOSTILE}")
    assert saved.status_code == 303
    viewer = Browser(app, database, "viewer")
    page = viewer.get(PATH).text
    assert "Owner: Anna, press office" in page
    assert "Call first.\n&lt;img src=x" in page
    assert "save-description" not in page
    assert "Anna, press office" in viewer.get("/rate-keys").text
    assert viewer.post(f"{PATH}/describe", owner="me").status_code == 403
    database.run(lambda s: jobs.submit(s, "news", by="ann"))
    with database.reading() as session:
        assert queries.get_rate_key(session, "www.example.org").owner == "Anna, press office"
        assert queries.list_rate_keys(session).items[0].note.startswith("Call first.")
    assert browser.post(f"{PATH}/describe", owner="Anna, press office", note="Call first.").status_code == 303
    with database.reading() as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.object_kind == "rate_key")).all()
    assert [(entry.by, sorted(entry.after or {})) for entry in entries] == [
        ("admin", ["note", "owner"]),
        ("admin", ["note"]),
    ]


def test_what_is_no_owner_is_refused(browser: Browser, example: None) -> None:
    for owner, note in (("two\nlines", ""), ("x" * 501, ""), ("", "x" * 10_001)):
        refused = browser.post(f"{PATH}/describe", owner=owner, note=note)
        assert refused.status_code == 422
        assert re.search(r'<details id="describe" open>', refused.text)
        field = "owner" if owner else "note"
        assert f'id="f-{field}-wrong"' in refused.text
        assert (owner or note) in refused.text, "what was typed is still there"
    assert browser.post("/rate-keys/nowhere.example/describe", owner="x").status_code == 404


def test_a_key_that_never_ran_has_them_too(browser: Browser, database: Database) -> None:
    def add(session: Session) -> None:
        add_site(session, "quiet", "http://quiet.example.org/")

    database.run(add)
    assert browser.post("/rate-keys/quiet.example.org/describe", owner="Bob").status_code == 303
    assert "Owner: Bob" in browser.get("/rate-keys/quiet.example.org").text
