"""Files that are read and checked before the transaction that writes them, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.helpers.admin import add_site
from webqueue import config
from webqueue.config import importing
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.models import Site

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FILE = "sites: [{code: one, base_url: 'http://one.example.org/', name: One}]"


def test_nothing_is_read_or_checked_while_it_writes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.reading() as session:
        prepared = config.prepare_import(session, FILE)
    worked: list[str] = []
    for name in ("read_yaml", "plan_file"):
        monkeypatch.setattr(importing, name, lambda *_, name=name: worked.append(name))
    report = database.run(lambda s: config.import_file(s, prepared, by="ann", now=NOW))
    assert report.created == ["site one"]
    assert worked == []


def test_what_was_written_meanwhile_stays(database: Database) -> None:
    database.run(lambda s: add_site(s, "one", "http://one.example.org/", name="Old"))
    with database.reading() as session:
        prepared = config.prepare_import(session, FILE)
    database.run(lambda s: setattr(s.get_one(Site, "one"), "min_gap_sec", 30.0))
    report = database.run(lambda s: config.import_file(s, prepared, by="ann", now=NOW))
    assert report.changed == ["site one"]
    with database.reading() as session:
        site = session.get_one(Site, "one")
    assert (site.name, site.min_gap_sec) == ("One", 30.0)


def test_a_site_that_went_meanwhile_is_missed(database: Database) -> None:
    database.run(lambda s: add_site(s, "two", "http://two.example.org/"))
    text = "targets: [{code: news, site: two, handler: python, params: {function: 'os.path:join'}}]"
    with database.reading() as session:
        prepared = config.prepare_import(session, text)
    database.run(lambda s: s.delete(s.get_one(Site, "two")))
    with pytest.raises(InvalidInputError, match="two"):
        database.run(lambda s: config.import_file(s, prepared, by="ann", now=NOW))
