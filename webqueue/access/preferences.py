"""What a user prefers, beyond the theme: the zone in which pages show absolute times, and their language."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from sqlalchemy.orm import Session

from webqueue.errors import InvalidInputError
from webqueue.models import StoredSetting, User
from webqueue.sentences import say

DEFAULT_ZONE: Final = "UTC"
LANGUAGES: Final = ("en", "zh")


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
    if language is not None and language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise InvalidInputError.of(
            "language", say("%(value)s is none of %(known)s.", value=repr(language[:40]), known=known)
        )
    session.get_one(User, user_id).language = language


def _name(user_id: int) -> str:
    return f"zone:{user_id}"


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
