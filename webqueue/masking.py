"""Which names are those of secrets, and where in an address or a line of text a secret stands.

The one list for everything that is shown: configurations, audit log, evidence, and the texts of errors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final
from urllib.parse import unquote_plus

MASK: Final = "********"

# The words of a name: `X-Api-Key`, `api_key`, `apiKey` and `APIKey` are all "api key".
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
# At the end of a name.
_SECRET_WORDS: Final = frozenset(
    {"ak", "bearer", "cred", "creds", "jwt", "otp", "pass", "passkey", "sid", "sig", "sign", "sk", "totp"}
)
# Anywhere in a name and inside of a word, for many a name is written in one: `accesstoken`, `mypwd`, `phpsessid`.
_SECRET_PART: Final = re.compile(
    r"token(?!i[sz])|secret(?!ar)|passw|passphrase|passcode|pwd|credential|cookie|signature"
    r"|(?<!pos)(?<!ob)session|sessid|auth(?!or(?!i[sz]a))(?!entic(?!at))"
    r"|(?:access|account|api|app|auth|client|consumer|dev|developer|license|master|private|secret|session|shared"
    r"|signing|storage|user)keys?(?![a-z])"
    r"|密码|密碼|口令|令牌|密钥|密鑰"
)
# A key is a secret, but for those that sort, group, find, and name a part of an answer.
_HARMLESS_KEY: Final = re.compile(
    r"body|cache|code|column|content|data|date|dedup|field|foreign|group|id|items?|json|label|lang|link|list|map|name"
    r"|order|page|partition|primary|public|query|rate|result|row|search|site|sort|text|time|title|type|url|value"
)
# These speak of a secret, and are none: `token_url`, `password_file`, `max_tokens`.
_OF_A_SECRET: Final = re.compile(
    r"count|dir|enabled|endpoint|expires|expiry|field|file|folder|header|length|name|path|selector|ttl|type|uri|url"
)
_AMOUNTS: Final = frozenset({"count", "max", "min", "num", "total"})

# RFC 3986 section 3.2.1; a password may have an @ of its own, so that the last one ends it.
_USERINFO: Final = re.compile(r"(?:(?<=://)|(?<=^//))[^/?#\s]+(?=@)")
# A parameter of an address, or of a form in a body; an option or a variable of a program.
_PAIR: Final = re.compile(
    r"(?:(?<=[?&;#])(?P<parameter>[^=&;#?\s\"'<>]+)|^(?P<option>[\w.-]+))=(?P<value>[^&;#\s\"'<>]+)"
)
_HEADER: Final = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(?P<value>\S.*)")
_HEADERS_OF_WORDS: Final = frozenset({"authorization", "cookie"})
# A scheme is short; that no text is read twice it has to be said.
_ADDRESS: Final = re.compile(
    r"(?:(?<![A-Za-z0-9+.-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,19}):|^|(?<=\s))//(?P<authority>[^/?#\s\\]+)"
)
_NOT_BLANK: Final = re.compile(r"\S+")
_PORTS: Final = {"http": "80", "https": "443"}


@dataclass(frozen=True)
class Server:
    """Who is asked at an address; `scheme` is empty where the address leaves it to the page that it stands on."""

    scheme: str
    host: str
    port: str

    def takes_over(self, other: Server) -> bool:
        """Whether it may be told what was meant for the other.

        The same host and port; http may become https there, never the other way round, where everybody could listen.
        """
        encrypted = (other.scheme, other.port, self.scheme, self.port) == ("http", "80", "https", "443")
        return self == other or (encrypted and self.host == other.host)


@dataclass(frozen=True)
class Secret:
    """Where a secret stands in a text: from `start` to `end`.

    Attributes:
        servers: who may be told it; none where the text does not say.
        name: what it is there: its parameter, option or header; empty for users and passwords.
    """

    servers: frozenset[Server]
    name: str
    start: int
    end: int


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret: a header, a variable, an argument, a parameter of an address."""
    words = [word.lower() for word in _WORD.findall(unquote_plus(name))]
    if not words or _OF_A_SECRET.fullmatch(words[-1]) or words[0] in _AMOUNTS:
        return False
    if words[-1] == "key":
        return len(words) == 1 or not _HARMLESS_KEY.fullmatch(words[-2])
    return words[-1] in _SECRET_WORDS or any(_SECRET_PART.search(part) for part in (*words, "".join(words)))


def secrets_in(text: str) -> list[Secret]:
    """The secrets in an address, an argument, a line of a header, or a text with addresses, from left to right.

    Users and passwords of addresses (nobody knows which of the two is the secret), and what has the name of a secret.
    """
    header = _HEADER.fullmatch(text)
    if header is not None and _is_secret_header(header["name"], header["value"]):
        return [Secret(frozenset(), header["name"].lower(), *header.span("value"))]
    return [
        secret for word in _NOT_BLANK.finditer(text) for secret in _secrets_of_word(word[0], word.start())
    ]


def _secrets_of_word(word: str, offset: int) -> list[Secret]:
    servers = frozenset(servers_in(word))
    named = [
        (name, *match.span("value"))
        for match in _PAIR.finditer(word)
        if is_secret_name(name := match["parameter"] or match["option"])
    ]
    ends = [end for _, _, end in named]
    unnamed = []
    for match in _USERINFO.finditer(word):
        following = bisect_right(ends, match.start())  # the only one that can lie upon it
        if following == len(named) or named[following][1] >= match.end():
            unnamed.append(("", *match.span()))
    found = sorted([*named, *unnamed], key=itemgetter(1))
    return [Secret(servers, name, offset + start, offset + end) for name, start, end in found]


def masked_text(text: str, mask: str = MASK) -> str:
    """The text with a mask in place of every secret in it (`secrets_in`)."""
    return replaced(text, [(secret, mask) for secret in secrets_in(text)])


def replaced(text: str, instead: Iterable[tuple[Secret, str]]) -> str:
    """The text with other words in place of secrets, which come from left to right."""
    parts, done = [], 0
    for secret, words in instead:
        parts += [text[done : secret.start], words]
        done = secret.end
    return "".join([*parts, text[done:]])


def servers_in(text: str) -> set[Server]:
    """The servers that the addresses in a text lead to."""
    return {_server(match) for match in _ADDRESS.finditer(text)}


def _is_secret_header(name: str, value: str) -> bool:
    """`Password: ask Bob` is a note."""
    of_words = "-" in name or name.lower() in _HEADERS_OF_WORDS or not any(map(str.isspace, value))
    return of_words and is_secret_name(name)


def _server(address: re.Match[str]) -> Server:
    scheme = (address["scheme"] or "").lower()
    place = address["authority"].rpartition("@")[2].lower()
    host, colon, port = place.rpartition(":")
    if not colon or "]" in port:  # an IPv6 address has colons of its own
        host, port = place, ""
    return Server(scheme, host, port or _PORTS.get(scheme, ""))
