"""Which rate key a site or a URL has (DESIGN §6 "Which key").

A rate key stands for one server or firewall. Two spellings of one host must give one key, or the host is
visited twice at a time; and a URL whose host different programs read differently is refused, because what is
checked and spaced here must be what the HTTP client then connects to.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import idna

from webqueue.errors import InvalidInputError
from webqueue.politeness.cooldown import DEFAULT_COOLDOWN_FACTOR
from webqueue.sentences import say

MAX_URL_LENGTH = 8192
MAX_HOST_LENGTH = 253
MAX_LABEL_LENGTH = 63
MAX_KEY_LENGTH = 255
MAX_PORT = 65_535

_SCHEME = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"https?://(?P<authority>[^/?#]*)", re.IGNORECASE)
_BRACKETED = re.compile(r"\[(?P<host>[^\[\]]*)\](?::(?P<port>.*))?")
_LABEL = re.compile(r"[a-z0-9_-]+")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class RateGroup:
    """Hosts behind one firewall: sites with this adapter, at or below `host_suffix`, share `key`.

    `adapter` None means any. `grow_interval` = a block makes the target's interval grow; `cooldown_factor` is
    what a cooldown grows by from the third block in a row. Raises InvalidInputError (`host_suffix`) for what
    is no host.
    """

    key: str
    adapter: str | None
    host_suffix: str
    grow_interval: bool = True
    cooldown_factor: Decimal = DEFAULT_COOLDOWN_FACTOR

    def __post_init__(self) -> None:
        # In the form of `host_of`, so that an upper-case or Chinese suffix does match.
        suffix = _normal_host(self.host_suffix.removeprefix("."), "host_suffix")
        object.__setattr__(self, "host_suffix", suffix)

    def has(self, host: str, adapter: str | None) -> bool:
        """Whether a host (as `host_of` gives it) of a site with this adapter belongs to the group."""
        if self.adapter is not None and self.adapter != adapter:
            return False
        return host == self.host_suffix or host.endswith(f".{self.host_suffix}")


def group_of(host: str, adapter: str | None, groups: Iterable[RateGroup]) -> RateGroup | None:
    """The first group that a host (as `host_of` gives it) belongs to, or None."""
    return next((group for group in groups if group.has(host, adapter)), None)


def key_of_site(
    *, own_key: str | None, base_url: str | None, adapter: str | None, code: str, groups: Iterable[RateGroup]
) -> str:
    """The rate key of a site: its own; else the first matching group's; else its host; else its code."""
    if own_key and own_key.strip():
        return own_key.strip()
    try:
        host = host_of(base_url or "")
    except InvalidInputError:
        return code  # a site without a sound URL (a command, say) is a key for itself
    group = group_of(host, adapter, groups)
    return group.key if group else host


def key_of_url(
    url: str, *, adapter: str | None, groups: Iterable[RateGroup], site_keys: Mapping[str, str]
) -> str:
    """The rate key of any URL: that of the saved site with its host; else the first matching group's; else
    the host.

    `site_keys` maps hosts (as `host_of` gives them) of saved sites to their keys. Nothing is remembered
    between calls. Raises InvalidInputError (`url`).
    """
    host = host_of(url)
    if host in site_keys:
        return site_keys[host]
    group = group_of(host, adapter, groups)
    return group.key if group else host


def is_key(value: object) -> bool:
    """Whether a handler's value can be the name of a rate key."""
    return isinstance(value, str) and 0 < len(value) <= MAX_KEY_LENGTH and value.isprintable()


def host_of(url: str) -> str:
    """The host of an http(s) URL in its one normal form, without user, port and trailing dot.

    Lower case; non-ASCII names in punycode (IDNA 2008 with the mapping of UTS 46); IPv6 compressed and
    without brackets; an IPv4 address within IPv6 as IPv4, since both reach the same server.

    Raises InvalidInputError (`url`) for every other scheme or none, and for whatever clients read
    differently: control characters, spaces or a backslash before the path, more than one @, percent signs in
    the host, IPv4 addresses in other forms than four decimal numbers (127.1, 0x7f.1, 2130706433), IPv6 zones,
    empty or overlong labels, bad ports.
    """
    if len(url) > MAX_URL_LENGTH:
        raise _refused(
            say(
                "The URL has %(count)s characters; allowed are %(max_url_length)s.",
                count=len(url),
                max_url_length=MAX_URL_LENGTH,
            )
        )
    if _CONTROL.search(url) or url != url.strip():
        # Browsers drop tabs and line breaks anywhere in a URL and so read another one than a stricter client.
        raise _refused(say("The URL contains control characters, or spaces around it. Remove them."))
    match = _AUTHORITY.match(url)
    if match is None:
        raise _refused(_problem_of_scheme(url))
    authority = match["authority"]
    if "\\" in authority:
        raise _refused(
            say("The URL has a backslash before its path, which programs read differently. Write /.")
        )
    if any(char.isspace() for char in authority):
        raise _refused(say("The URL has a space before its path. Remove it."))
    if authority.count("@") > 1:
        raise _refused(
            say("The URL has more than one @ before its path. Write an @ of a user name or password as %40.")
        )
    host, port = _host_and_port(authority.rpartition("@")[2])
    _check_port(port)
    return host


def _problem_of_scheme(url: str) -> str:
    shown = _shown(url)
    scheme = _SCHEME.match(url)
    if scheme is None or "." in scheme["name"] or scheme["name"].lower() == "localhost":
        return say("%(url)s has no scheme. Write http:// or https:// in front.", url=shown)
    if scheme["name"].lower() in {"http", "https"}:
        return say(
            "%(url)s has no // after its scheme. Write %(scheme)s://host/.",
            url=shown,
            scheme=scheme["name"].lower(),
        )
    return say(
        "%(url)s has the scheme %(scheme)s; only http and https are fetched.",
        url=shown,
        scheme=repr(scheme["name"]),
    )


def _host_and_port(text: str) -> tuple[str, str]:
    if "[" in text or "]" in text:
        match = _BRACKETED.fullmatch(text)
        if match is None:
            raise _refused(
                say(
                    "The brackets in %(text)s are wrong. An IPv6 address is written [2001:db8::1].",
                    text=_shown(text),
                )
            )
        return _ipv6(match["host"]), match["port"] or ""
    name, _, port = text.partition(":")
    if ":" in port:
        raise _refused(
            say(
                "%(text)s has more than one colon. An IPv6 address is written in brackets.", text=_shown(text)
            )
        )
    return _normal_host(name, "url"), port


def _check_port(port: str) -> None:
    """A port may be left empty (RFC 3986 §3.2.3)."""
    if not port:
        return
    significant = port.lstrip("0")
    if re.fullmatch(r"[0-9]{1,5}", significant) is None or int(significant) > MAX_PORT:
        raise _refused(
            say(
                "The port %(port)s is none; allowed are 1 to %(max_port)s.",
                port=_shown(port),
                max_port=MAX_PORT,
            )
        )


def _ipv6(text: str) -> str:
    if "%" in text:
        raise _refused(
            say(
                "The address %(text)s has a zone, which means something on one machine only.",
                text=_shown(text),
            )
        )
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError as error:
        raise _refused(say("%(text)s is not an IPv6 address.", text=_shown(text))) from error
    return str(address.ipv4_mapped or address)


def _normal_host(text: str, field: str) -> str:
    if len(text) > 4 * MAX_HOST_LENGTH:
        raise _refused(
            say(
                "The host has %(count)s characters; allowed are %(max_host_length)s.",
                count=len(text),
                max_host_length=MAX_HOST_LENGTH,
            ),
            field,
        )
    host = (text.lower() if text.isascii() else _punycode(text, field)).removesuffix(".")
    if not host:
        raise _refused(say("There is no host."), field)
    labels = host.split(".")
    for label in labels:
        _check_label(label, host, field)
    if len(host) > MAX_HOST_LENGTH:
        raise _refused(
            say(
                "The host has %(count)s characters; allowed are %(max_host_length)s.",
                count=len(host),
                max_host_length=MAX_HOST_LENGTH,
            ),
            field,
        )
    return _ipv4(host, field) if _NUMBER.fullmatch(labels[-1]) else host


def _punycode(text: str, field: str) -> str:
    """Label by label, so that an underscore in one label (DNS knows it, IDNA does not) spoils no host."""
    try:
        mapped = idna.uts46_remap(text, std3_rules=False, transitional=False)
        labels = [
            label if label.isascii() else idna.alabel(label).decode("ascii") for label in mapped.split(".")
        ]
    except UnicodeError as error:  # IDNAError is one
        raise _refused(
            say(
                "The host %(text)s is not a valid international name: %(error)s.",
                text=_shown(text),
                error=str(error),
            ),
            field,
        ) from error
    return ".".join(labels).lower()


def _check_label(label: str, host: str, field: str) -> None:
    if not label:
        raise _refused(say("The host %(host)s has an empty part between its dots.", host=_shown(host)), field)
    if len(label) > MAX_LABEL_LENGTH:
        raise _refused(
            say(
                "A part of the host %(host)s is longer than %(max_label_length)s characters.",
                host=_shown(host),
                max_label_length=MAX_LABEL_LENGTH,
            ),
            field,
        )
    if _LABEL.fullmatch(label) is None:
        raise _refused(
            say(
                "The host %(host)s contains characters that no host has (letters, digits, - and _).",
                host=_shown(host),
            ),
            field,
        )


def _ipv4(host: str, field: str) -> str:
    """A host whose last part is a number is an IPv4 address to browsers and to the system's resolver, in
    whatever form.

    Only four decimal numbers without leading zeros mean the same to everybody; taking 0177.0.0.1 or
    2130706433 for a name would let it past a check of private addresses.
    """
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError as error:
        raise _refused(
            say(
                "The host %(host)s ends in a number but is not an IPv4 address of four decimal numbers.",
                host=_shown(host),
            ),
            field,
        ) from error


def _refused(message: str, field: str = "url") -> InvalidInputError:
    return InvalidInputError.of(field, message)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}…")
