"""Who a crawl says that it is, and whether that names somebody to write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from webqueue import __version__
from webqueue import settings as webqueue_settings
from webqueue.errors import InvalidInputError

OWN = f"webqueue/{__version__}"


@pytest.mark.parametrize(
    ("contact", "user_agent", "shown", "names_contact"),
    [
        (None, None, OWN, False),
        ("crawl@example.org", None, f"{OWN} (+crawl@example.org)", True),
        (" https://example.org/bot ", None, f"{OWN} (+https://example.org/bot)", True),
        ("the third floor", None, f"{OWN} (+the third floor)", False),
        ("", "", OWN, False),
        ("crawl@example.org", "Archive/2", "Archive/2", False),
        (None, "Archive/2 (archive@example.org)", "Archive/2 (archive@example.org)", True),
        (None, "Archive/2 (+http://archive.example.org)", "Archive/2 (+http://archive.example.org)", True),
        (None, "me@home", "me@home", False),
    ],
)
def test_agents(
    instance: Path, contact: str | None, user_agent: str | None, shown: str, names_contact: bool
) -> None:
    loaded = webqueue_settings.load(instance_path=instance, contact=contact, user_agent=user_agent)

    assert (loaded.crawl_agent, loaded.names_contact) == (shown, names_contact)


@pytest.mark.parametrize("value", ["two\nlines", "Ministerium für Inneres"])
def test_what_no_header_can_hold_is_refused(
    instance: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBQUEUE_CONTACT", value)
    with pytest.raises(InvalidInputError, match="WEBQUEUE_CONTACT"):
        webqueue_settings.load(instance_path=instance)
