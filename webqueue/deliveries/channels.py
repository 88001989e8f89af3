"""Where notifications go, and which are wanted: one stored setting, changed by administrators.

The address of a channel (a URL as apprise knows them) has its secrets in it: it is never shown, logged or exported as
a whole, and what is queued names the channel, not its address.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, unquote

from sqlalchemy.orm import Session

from webqueue.database import take_turn
from webqueue.errors import InvalidInputError, NotFoundError
from webqueue.models import AuditEntry, StoredSetting
from webqueue.sentences import say

SETTING: Final = "notifications"
# The kinds of news, and what each is in words.
KINDS: Final[Mapping[str, str]] = {
    "failed": say("A job failed, and is not tried again"),
    "attention": say("A job is done, but should be looked at"),
    "blocked": say("A rate key is blocked for long"),
    "overdue": say("Work is overdue: no worker takes it"),
    "recovered": say("What failed, was blocked or overdue is well again"),
    "worker_lost": say("A worker is gone without having stopped in order"),
}
_LONGEST_URL: Final = 2000
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,40})://")


@dataclass(frozen=True)
class Channel:
    """One receiver.

    Attributes:
        url: with its secrets; pages show `shown`.
    """

    id: str
    name: str
    url: str

    @property
    def shown(self) -> str:
        """What may be shown of its address: the scheme alone, since services put secrets into every other part."""
        found = _SCHEME.match(self.url)
        return f"{found[1] if found else '?'}://********"

    def without_secrets(self, text: str) -> str:
        """A text of others (an error of the receiver) in which no part of the address stands."""
        parts = {self.url, *re.split(r"[/:@?&=\s]+", self.url.partition("://")[2])}
        # Services take %40 for @ apart, and tell the one or the other.
        decoded = {unquote(part) for part in parts}
        encoded = {quote(part, safe="") for part in decoded}
        for part in sorted(parts | decoded | encoded, key=len, reverse=True):
            if len(part) > 3:
                text = re.sub(re.escape(part), "********", text, flags=re.IGNORECASE)
        return text


@dataclass(frozen=True)
class Wanted:
    """The setting.

    Attributes:
        kinds: those of `KINDS` that are sent.
        blocked_min, overdue_min: minutes after which a block, or waiting work, is news.
    """

    channels: tuple[Channel, ...] = ()
    kinds: tuple[str, ...] = tuple(KINDS)
    blocked_min: int = 60
    overdue_min: int = 10


def read(session: Session) -> Wanted:
    """The setting as it stands."""
    return _parsed(StoredSetting.read(session, SETTING))


def new_channel(name: str, url: str) -> Channel:
    """Check a receiver that is to be added: slow where apprise is to be loaded first, so before the transaction.

    Raises:
        InvalidInputError: the name is no name, or apprise does not know such an address.
    """
    name, url = name.strip(), url.strip()
    if not name or len(name) > 64 or not name.isprintable():
        raise InvalidInputError.of("name", say("must be a name of up to 64 characters"))
    if len(url) > _LONGEST_URL or not is_address(url):
        # What cannot be used may have a password in it all the same: it is not repeated.
        raise InvalidInputError.of(
            "url", say("is no address that apprise knows, such as mailto://… or json://…")
        )
    return Channel(secrets.token_hex(4), name, url)


def add_channel(session: Session, channel: Channel, *, by: str, now: datetime) -> Channel:
    """Add a receiver, of `new_channel`.

    Raises:
        InvalidInputError: the name is taken.
    """
    wanted = _locked(session)
    if channel.name in {one.name for one in wanted.channels}:
        raise InvalidInputError.of(
            "name", say("there is a receiver %(name)s already", name=repr(channel.name))
        )
    _save(session, wanted, replace(wanted, channels=(*wanted.channels, channel)), by=by, now=now)
    return channel


def remove_channel(session: Session, channel_id: str, *, by: str, now: datetime) -> Channel:
    """Remove a receiver; what is queued for it is dropped.

    Raises:
        NotFoundError: there is none.
    """
    wanted = _locked(session)
    channel = find(wanted, channel_id)
    kept = tuple(one for one in wanted.channels if one.id != channel_id)
    _save(session, wanted, replace(wanted, channels=kept), by=by, now=now)
    return channel


def choose(
    session: Session, kinds: tuple[str, ...], blocked_min: int, overdue_min: int, *, by: str, now: datetime
) -> None:
    """Choose what is news.

    Raises:
        InvalidInputError: a number is out of bounds, or there is no such kind.
    """
    if unknown := set(kinds) - KINDS.keys():
        raise InvalidInputError.of("kinds", say("there is no kind %(kind)s", kind=repr(min(unknown))))
    for name, value in (("blocked_min", blocked_min), ("overdue_min", overdue_min)):
        if not 1 <= value <= 100_000:
            raise InvalidInputError.of(name, say("must be 1 to 100,000 minutes"))
    wanted = _locked(session)
    changed = replace(wanted, kinds=kinds, blocked_min=blocked_min, overdue_min=overdue_min)
    _save(session, wanted, changed, by=by, now=now)


def find(wanted: Wanted, channel_id: str) -> Channel:
    """The channel with this id. Raises NotFoundError."""
    for channel in wanted.channels:
        if channel.id == channel_id:
            return channel
    raise NotFoundError("receiver", channel_id)


def is_address(url: str) -> bool:
    """Whether apprise can send to it."""
    import apprise  # slow to import

    keep_to_itself()
    return (
        _SCHEME.match(url) is not None
        and apprise.Apprise.instantiate(url, suppress_exceptions=True) is not None
    )


def keep_to_itself() -> logging.Logger:
    """Let nothing that apprise logs, which has addresses in it, reach the logs of the process; its logger."""
    logger = logging.getLogger("apprise")
    # Set, and never set back: several threads use apprise at the same time.
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    return logger


def _locked(session: Session) -> Wanted:
    take_turn(session, SETTING)
    return _parsed(StoredSetting.read(session, SETTING))


def _save(session: Session, before: Wanted, after: Wanted, *, by: str, now: datetime) -> None:
    if before == after:
        return
    StoredSetting.put(session, SETTING, asdict(after), at=now, by=by)
    AuditEntry.record(
        session, at=now, by=by, action="changed", kind="setting", name=SETTING,
        before=_told(before), after=_told(after),
    )  # fmt: skip


def _told(wanted: Wanted) -> dict[str, Any]:
    return asdict(wanted) | {
        "channels": [{"name": channel.name, "url": channel.shown} for channel in wanted.channels]
    }


def _parsed(value: Any) -> Wanted:
    if not isinstance(value, dict):
        return Wanted()
    return Wanted(
        channels=tuple(Channel(**one) for one in value["channels"]),
        kinds=tuple(value["kinds"]),
        blocked_min=int(value["blocked_min"]),
        overdue_min=int(value["overdue_min"]),
    )
