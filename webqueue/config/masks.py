"""Secrets are shown as a mask, and a mask that is sent back means "as it was"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webqueue.config.yaml_text import Path

MASK: Final = "********"

# Names of HTTP headers, environment variables and arguments whose values are secrets.
_SECRET_NAME = re.compile(
    r"authorization|cookie|secret|token|passw(?:or)?d|passphrase|credential|api[_-]?key|access[_-]?key|private[_-]?key|session[_-]?id",
    re.IGNORECASE,
)
# scheme://user:password@ in a URL; RFC 3986 section 3.2.1 has no other place for it.
_PASSWORD_IN_URL = re.compile(r"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://[^/?#@:]*:)(?P<password>[^/?#]*)(?=@)")

# Fields that hold what somebody else named, with the names there that are shown.
_HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "env": frozenset({"lang", "lc_all", "tz", "path", "home"}),
    "headers": frozenset(
        {
            "accept",
            "accept-language",
            "cache-control",
            "content-type",
            "pragma",
            "range",
            "referer",
            "user-agent",
        }
    ),
}


def masked(data: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a site or target in which no secret can be read."""
    return {name: _masked(name, value) for name, value in data.items()}


def _masked_values(values: Mapping[str, Any], *, harmless: frozenset[str]) -> dict[str, Any]:
    """Whatever may be a secret: no list of names knows what a program or a site calls its keys."""
    return {
        name: MASK if isinstance(value, str) and value and name.lower() not in harmless else value
        for name, value in values.items()
    }


def unmasked(data: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `data` in which every mask is the stored secret again; one without a stored secret stays a mask."""
    return {name: _unmasked(value, stored.get(name)) for name, value in data.items()}


def masks_left(data: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Where a mask stands in place of a secret."""
    for name, value in data.items():
        inner = (*path, name)
        if isinstance(value, dict):
            yield from masks_left(value, inner)
        elif isinstance(value, str) and (value == MASK or f":{MASK}@" in value):
            yield inner


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _masked_values(value, harmless=_HARMLESS[name]) if name in _HARMLESS else masked(value)
    if not isinstance(value, str) or not value:
        return value
    if _SECRET_NAME.search(name):
        return MASK
    return _PASSWORD_IN_URL.sub(rf"\g<before>{MASK}", value)


def _unmasked(value: Any, stored: Any) -> Any:
    if isinstance(value, Mapping):
        return unmasked(value, stored if isinstance(stored, Mapping) else {})
    if not isinstance(value, str) or not isinstance(stored, str):
        return value
    if value == MASK:
        return stored
    password = _PASSWORD_IN_URL.search(stored)
    # The same user at the same server: a password is never sent to another address because its mask was.
    if password and value == _PASSWORD_IN_URL.sub(rf"\g<before>{MASK}", stored):
        return stored
    return value
