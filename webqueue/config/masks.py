"""Secrets are shown as a mask, and a mask that is sent back means "as it was"."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webqueue.config.yaml_text import Path
from webqueue.masking import (
    MASK,
    Secret,
    Server,
    is_secret_name,
    masked_text,
    replaced,
    secrets_in,
    servers_in,
)

__all__ = ["MASK", "masked", "masks_left", "unmasked"]

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
# Options of programs such as curl whose argument is `user:password`.
_LOGIN_OPTIONS: Final = frozenset({"-u", "-U", "--user", "--proxy-user"})
# Names of those who are told secrets, where no address says it.
_SERVER_NAMES: Final = frozenset({"address", "domain", "endpoint", "host", "hostname", "server", "site"})
# Texts whose addresses nobody asks because they stand there.
_ONLY_TEXT: Final = frozenset(
    {"body", "from", "name", "note", "origin", "owner", "referer", "tags", "user-agent", "user_agent"}
)

Where = Server | tuple[str, str]


def masked(data: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a site or target in which no secret can be read."""
    return {name: _masked(name, value) for name, value in data.items()}


def unmasked(data: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `data` in which every mask is the stored secret again.

    One without a stored secret stays a mask, and so does one whose secret would be told to another server than before.
    """
    return _unmasked_fields(data, masked(stored), stored, same_servers=True)


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
    elif isinstance(value, str) and (
        value == MASK or any(_is_mask(value, secret) for secret in secrets_in(value))
    ):
        yield path


def _is_mask(text: str, secret: Secret) -> bool:
    said = text[secret.start : secret.end]
    # Somebody may name the user again, and leave the password as it was.
    return said == MASK or (not secret.name and said.endswith(f":{MASK}"))


def _masked(name: str, value: Any) -> Any:
    if is_secret_name(name):
        return _hidden(value)
    if isinstance(value, Mapping):
        harmless = _HARMLESS.get(name)
        return {
            inner: MASK if _may_be_secret(inner, one, harmless) else _masked(inner, one)
            for inner, one in value.items()
        }
    if isinstance(value, list | tuple):
        return _masked_items(name, value)
    return masked_text(value) if isinstance(value, str) else value


def _hidden(value: Any) -> Any:
    """Nothing of it but its form; true and false tell nothing."""
    if isinstance(value, Mapping):
        return {name: _hidden(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(one) for one in value]
    return value if value is None or value == "" or isinstance(value, bool) else MASK


def _masked_items(name: str, items: list[Any] | tuple[Any, ...]) -> list[Any]:
    """The items of a list; in a command line the argument behind an option such as `--password` is a secret too."""
    found = []
    before: Any = None
    for item in items:
        argument = isinstance(before, str) and before.startswith("-") and isinstance(item, str) and item != ""
        if argument and (
            (is_secret_name(before) and "=" not in before and not item.startswith("-"))
            or (before in _LOGIN_OPTIONS and ":" in item)
        ):
            found.append(MASK)
        else:
            found.append(_masked(name, item))
        before = item
    return found


def _may_be_secret(name: str, value: Any, harmless: frozenset[str] | None) -> bool:
    """Whether it is one of those that somebody else named: no list of names knows what a program or a site calls its keys."""
    return harmless is not None and isinstance(value, str) and value != "" and name.lower() not in harmless


def _unmasked(value: Any, shown: Any, stored: Any, *, same_servers: bool) -> Any:
    if isinstance(value, Mapping):
        if not isinstance(stored, Mapping):
            shown = stored = {}
        return _unmasked_fields(value, shown, stored, same_servers=same_servers)
    if isinstance(value, list):
        if not isinstance(stored, list | tuple):
            shown = stored = ()
        return _unmasked_items(value, shown, stored, same_servers=same_servers)
    if not isinstance(value, str):
        return value
    if value == MASK:
        return stored if shown == MASK and same_servers else value
    return _unmasked_text(value, stored, same_servers=same_servers) if isinstance(stored, str) else value


def _unmasked_fields(
    data: Mapping[str, Any], shown: Mapping[str, Any], stored: Mapping[str, Any], *, same_servers: bool
) -> dict[str, Any]:
    """What is told to a server is named beside its address: a secret is not sent elsewhere because its mask was."""
    before = _servers(stored)
    same_servers = same_servers and all(
        any(_takes_over(one, other) for other in before) for one in _servers(data)
    )
    return {
        name: _unmasked(value, shown.get(name), stored.get(name), same_servers=same_servers)
        for name, value in data.items()
    }


def _unmasked_items(items: list[Any], shown: Any, stored: Any, *, same_servers: bool) -> list[Any]:
    """Items have no names: one with a mask is the stored one that looks like it, wherever it stands by now.

    Where several look alike, and one was added or taken away, nobody knows which it is: the mask stays.
    """
    alike: defaultdict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for look, *both in zip(_looks(shown), shown, stored, strict=True):
        alike[look].append((both[0], both[1]))
    looks = _looks(items)
    known = {
        look: iter(found)
        for look, found in alike.items()
        if len(found) == looks.count(look) or all(one == found[0] for one in found)
    }
    result = []
    for item, look in zip(items, looks, strict=True):
        before = next(known.get(look, iter(())), None)
        result.append(item if before is None else _unmasked(item, *before, same_servers=same_servers))
    return result


def _looks(items: Any) -> list[str]:
    """What tells items apart that hold masks; an argument of a command line belongs to the option before it."""
    looks: list[str] = []
    before: Any = None
    for item in items:
        option = before if item == MASK and isinstance(before, str) and before.startswith("-") else None
        looks.append(json.dumps([option, item], sort_keys=True, default=str))
        before = item
    return looks


def _unmasked_text(text: str, stored: str, *, same_servers: bool) -> str:
    """Each mask is the secret of the same name at the same server; what is around it may have changed."""
    left = secrets_in(stored)
    instead = []
    for secret in secrets_in(text):
        if not _is_mask(text, secret):
            continue
        user = text[secret.start : secret.end].removesuffix(MASK)
        for before in left:
            words = stored[before.start : before.end]
            if _same_place(secret, before, same_servers=same_servers) and words.startswith(user):
                left.remove(before)
                instead.append((secret, words))
                break
    return replaced(text, instead)


def _same_place(secret: Secret, before: Secret, *, same_servers: bool) -> bool:
    if secret.name != before.name:
        return False
    if not secret.servers or not before.servers:
        return secret.servers == before.servers and same_servers
    return all(any(one.takes_over(other) for other in before.servers) for one in secret.servers)


def _servers(value: Any, name: str = "") -> set[Where]:
    """Who is asked by what a site, a target or a part of it says."""
    if name.lower() in _ONLY_TEXT:
        return set()
    if isinstance(value, Mapping):
        return {where for inner, one in value.items() for where in _servers(one, inner)}
    if isinstance(value, list | tuple):
        return {where for one in value for where in _servers(one, name)}
    if not isinstance(value, str) or value == MASK:
        return set()
    found: set[Where] = set(servers_in(value))
    return found | {(name.lower(), value)} if name.lower() in _SERVER_NAMES and not found else found


def _takes_over(one: Where, before: Where) -> bool:
    if isinstance(one, Server) and isinstance(before, Server):
        return one.takes_over(before)
    return one == before
