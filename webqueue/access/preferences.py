"""What a user prefers: the zone in which pages show absolute times, their language, and their theme."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from sqlalchemy.orm import Session

from webqueue.errors import InvalidInputError
from webqueue.models import StoredSetting, User
from webqueue.sentences import say

DEFAULT_ZONE: Final = "UTC"
# Those that pages speak, each by its own name, as whoever looks for it reads it.
LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "zh": "简体中文"}
THEMES: Final = ("auto", "light", "dark")


def zone_of(session: Session, user_id: int) -> str:
    """The zone of a user: what they chose, else UTC."""
    stored = session.get(StoredSetting, _name(user_id))
    return stored.value if stored is not None and stored.value in _zones() else DEFAULT_ZONE


def set_zone(session: Session, user_id: int, zone: str, *, by: str, now: datetime) -> None:
    """Let pages show this user's times by the clock of a zone.

    Args:
        zone: a name of the IANA database, such as `Asia/Shanghai`.

    Raises:
        InvalidInputError: there is no such zone (`zone`).
    """
    if zone not in _zones():
        raise InvalidInputError.of(
            "zone", say("There is no zone %(zone)s; write one such as Asia/Shanghai.", zone=repr(zone[:60]))
        )
    StoredSetting.put(session, _name(user_id), zone, at=now, by=by)


def set_language(session: Session, user_id: int, language: str | None) -> None:
    """Let pages speak this user's language.

    Args:
        language: one of LANGUAGES; None: whatever the browser says.

    Raises:
        InvalidInputError: pages do not speak it (`language`).
    """
    if language is not None:
        _check("language", language, LANGUAGES)
    session.get_one(User, user_id).language = language


def set_theme(session: Session, user_id: int, theme: str) -> None:
    """Let pages have this user's theme.

    Args:
        theme: one of THEMES; `auto`: whatever the browser says.

    Raises:
        InvalidInputError: there is no such theme (`theme`).
    """
    _check("theme", theme, THEMES)
    session.get_one(User, user_id).theme = theme


def _check(field: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise InvalidInputError.of(
            field,
            say("%(value)s is none of %(known)s.", value=repr(value[:40]), known=", ".join(known)),
        )


def _name(user_id: int) -> str:
    return f"zone:{user_id}"


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
