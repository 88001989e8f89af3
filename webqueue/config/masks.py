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


def unmasked(data: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `data` in which every mask is the stored secret again; one without a stored secret stays a mask."""
    return {name: _unmasked(name, value, stored.get(name)) for name, value in data.items()}


def masks_left(data: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Where a mask stands in place of a secret."""
    for name, value in data.items():
        yield from _masks_left(value, (*path, name))


def _masks_left(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        yield from masks_left(value, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _masks_left(item, (*path, number))
    elif isinstance(value, str) and (value == MASK or f":{MASK}@" in value):
        yield path


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        harmless = _HARMLESS.get(name)
        return {
            inner: MASK if _may_be_secret(inner, one, harmless) else _masked(inner, one)
            for inner, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(name, item) for item in value]
    if not isinstance(value, str) or not value:
        return value
    if _SECRET_NAME.search(name):
        return MASK
    return _PASSWORD_IN_URL.sub(rf"\g<before>{MASK}", value)


def _may_be_secret(name: str, value: Any, harmless: frozenset[str] | None) -> bool:
    """Whether it is one of those that somebody else named: no list of names knows what a program or a site calls its keys."""
    return harmless is not None and isinstance(value, str) and value != "" and name.lower() not in harmless


def _unmasked(name: str, value: Any, stored: Any) -> Any:
    if isinstance(value, Mapping):
        return unmasked(value, stored if isinstance(stored, Mapping) else {})
    if isinstance(value, list):
        return _unmasked_items(name, value, stored if isinstance(stored, list) else [])
    if not isinstance(value, str) or not isinstance(stored, str):
        return value
    if value == MASK:
        return stored
    password = _PASSWORD_IN_URL.search(stored)
    # The same user at the same server: a password is never sent to another address because its mask was.
    if password and value == _PASSWORD_IN_URL.sub(rf"\g<before>{MASK}", stored):
        return stored
    return value


def _unmasked_items(name: str, items: list[Any], stored: list[Any]) -> list[Any]:
    """Items have no names: one with a mask is the stored one that looks like it, wherever it stands by now."""
    left = [(_masked(name, before), before) for before in stored]
    found = []
    for item in items:
        number = next((number for number, (shown, _) in enumerate(left) if shown == item), None)
        found.append(item if number is None else left.pop(number)[1])
    return found
