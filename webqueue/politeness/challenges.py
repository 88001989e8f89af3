"""Pages that a firewall sends instead of the content, with a status that says nothing of it (DESIGN section 6).

A signature names one such page by how it begins, by a header, or by where it redirects to. The list of the package can
be extended, and each of its entries replaced or switched off, by the stored setting `challenge_signatures`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import regex
from sqlalchemy.orm import Session

from webqueue import logs
from webqueue.database import take_turn
from webqueue.errors import InvalidInputError, NotFoundError, Problem
from webqueue.models import AuditEntry, StoredSetting
from webqueue.sentences import say

SETTING: Final = "challenge_signatures"
# Challenges are small, and say at once what they are; an article that quotes one does so further below.
BODY_START: Final = 8192
MOST_SIGNATURES: Final = 200
# A page can be made so that an expression tries for minutes; `regex` gives up, and lets other threads work meanwhile.
_LONGEST_SEARCH_SEC: Final = 0.1
_LONGEST_PATTERN: Final = 500
# What has to be there n times is compiled n times, one within the other: a few characters can fill the memory.
_MOST_REPEATS: Final = 100_000
_REPEATS: Final = regex.compile(r"\{(\d+)")
_HEADER_NAME: Final = regex.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110, section 5.6.2

log = logs.get(__name__)


@dataclass(frozen=True)
class Signature:
    """How one kind of challenge page is told apart; everything that is given must hold.

    Attributes:
        name: of the product, shown as the cause of the cooldown.
        statuses: the HTTP statuses with which it comes.
        body: a regular expression, searched for in the first 8 KiB of the body, upper and lower case alike.
        header: `name: expression` or only the name of a response header; the expression is searched for in its value.
        location: a regular expression, searched for in the target of a redirect; then `statuses` are those of redirects.
        enabled: False switches the entry of the package with this name off.
    """

    name: str
    statuses: tuple[int, ...] = (200, 202)
    body: str | None = None
    header: str | None = None
    location: str | None = None
    enabled: bool = True

    def matches(
        self, status: int, headers: Mapping[str, str], body: bytes, location: str | None = None
    ) -> bool:
        """Whether an answer is this challenge.

        Args:
            headers: names in lower case.
            body: decoded from its content encoding; its first 8 KiB count.
            location: absolute target of a redirect; None for any other answer.
        """
        if not self.enabled or status not in self.statuses:
            return False
        if self.header is not None and not self._has_header(headers):
            return False
        if self.location is not None and (location is None or not _found(self._location, location)):
            return False
        # Latin-1 keeps every byte: the marks are ASCII, or told in UTF-8 (see `_expression`).
        return self.body is None or _found(self._body, body[:BODY_START].decode("latin-1"))

    def _has_header(self, headers: Mapping[str, str]) -> bool:
        name, expression = self._header
        value = headers.get(name)
        return value is not None and (expression is None or _found(expression, value))

    @cached_property
    def _body(self) -> regex.Pattern[str]:
        return _expression((self.body or "").encode().decode("latin-1"))

    @cached_property
    def _location(self) -> regex.Pattern[str]:
        return _expression(self.location or "")

    @cached_property
    def _header(self) -> tuple[str, regex.Pattern[str] | None]:
        name, _, expression = (self.header or "").partition(":")
        return name.strip().lower(), _expression(expression.strip()) if expression.strip() else None


# Each mark is of the challenge itself, not of the script that the same product adds to every ordinary page.
DEFAULT_SIGNATURES: Final = (
    Signature("Cloudflare", (200, 202, 403), header="cf-mitigated: ^challenge"),
    Signature("Cloudflare page", (200, 202, 403), body=r"<title>Just a moment\.\.\.</title>|window\._cf_chl_opt\s*="),
    Signature("AWS WAF", (200, 202, 405), header="x-amzn-waf-action: ^(challenge|captcha)"),
    Signature("Aliyun WAF", body=r"var arg1\s*=\s*'[0-9A-F]{20,}'|[\"']_waf_bd8ce2ce37[\"']"),
    # Ruishu adds its script to ordinary pages too, with 200; its own answer is 202, or 412, a block in any case.
    Signature("Ruishu", (202,), body=r"\$_ts\s*=\s*window\[['\"]\$_ts['\"]\]|<meta[^>]{0,300}\br=.m."),
    Signature("Jiasule", body=r"^\s*<script>\s*document\.cookie\s*=|__jsl_clearance(_s)?\s*="),
    Signature("Yunsuo", body=r"yunsuo_session_verify|security_session_(mid_)?verify"),
    Signature("SafeLine", body=r"SafeLineChallenge|/\.safeline/static/"),
    Signature("Tencent EdgeOne", (200, 202, 567), body=r"/WafCaptcha|__tst_status|EO_Bot_Ssid"),
    Signature("Imperva", body=r"<iframe[^>]{1,300}id=.main-iframe.[^>]{1,300}src=./_Incapsula_Resource\?|Incapsula incident ID"),
    Signature("Akamai", body=r"<meta[^>]{1,300}http-equiv=.refresh.[^>]{1,300}[?&]bm-verify=|sec-if-cpt-container"),
    Signature("Sucuri", body=r"sucuri_cloudproxy_js\s*=|<title>You are being redirected\.\.\.</title>"),
    Signature("DDoS-Guard", body=r"<title>DDoS-Guard</title>|/\.well-known/ddos-guard/(js-)?challenge"),
    Signature("DataDome", (200, 202, 403, 405), body=r"geo\.captcha-delivery\.com/(captcha|interstitial)|var dd\s*=\s*\{'rt':"),
    Signature("PerimeterX", (200, 202, 403), body=r"<title>\s*Access to this page has been denied"),
    Signature("Anubis", body=r"<title>Making sure you(&#39;|')re not a bot!</title>|id=.anubis_challenge"),
    Signature("Radware", (301, 302, 303, 307, 308), location=r"^https?://validate\.perfdrive\.com/"),
    # Whole titles only: "安全验证" is also a part of what authorities write about.
    Signature("browser check", body=r"<title>\s*(Checking your browser[^<]*|Attention Required! \| Cloudflare|安全验证|访问验证|人机验证|请完成安全验证)\s*</title>"),
)  # fmt: skip


def challenge_of(
    signatures: Iterable[Signature],
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    location: str | None = None,
) -> str | None:
    """The name of the first signature that an answer bears, or None."""
    return next((one.name for one in signatures if one.matches(status, headers, body, location)), None)


def signatures_in_force(session: Session) -> tuple[Signature, ...]:
    """The list of the package, with what is stored: same name replaces, another name is tried first."""
    stored = {one.name: one for one in stored_signatures(session)}
    own = [stored.pop(one.name, one) for one in DEFAULT_SIGNATURES]
    return tuple(one for one in (*stored.values(), *own) if one.enabled)


def stored_signatures(session: Session) -> tuple[Signature, ...]:
    """What an administrator added or replaced. A list that cannot be read is logged and counts as empty."""
    stored = StoredSetting.read(session, SETTING)
    if stored is None:
        return ()
    try:
        return parse_signatures(stored)
    except InvalidInputError as error:
        # Written by another version, or by hand: crawls go on with the list of the package.
        log.error(  # noqa: TRY400 - where it was raised tells nothing
            "stored_challenge_signatures_ignored", problem=str(error)
        )
        return ()


def store_signatures(session: Session, data: Any, *, by: str, now: datetime) -> tuple[Signature, ...]:
    """Replace what is stored; jobs that start from now on go by it. Written to the audit log.

    Args:
        session: a writing transaction.
        data: a list of mappings with the attributes of `Signature`; an empty one leaves the list of the package.

    Raises:
        InvalidInputError: it names entry and field.
    """
    signatures = parse_signatures(data)
    before = StoredSetting.read(session, SETTING) or []
    after = [as_data(one) for one in signatures]
    StoredSetting.put(session, SETTING, after, at=now, by=by)
    AuditEntry.record(
        session,
        at=now,
        by=by,
        action="changed",
        kind="setting",
        name=SETTING,
        before={"signatures": before},
        after={"signatures": after},
    )
    return signatures


def put_signature(session: Session, data: Mapping[str, Any], *, by: str, now: datetime) -> Signature:
    """Store one signature: in the place of the stored one with its name, else behind the others.

    Args:
        session: a writing transaction.
        data: the attributes of `Signature`.

    Raises:
        InvalidInputError: it names the field.
    """
    (checked,) = parse_signatures([dict(data)])
    take_turn(session, SETTING)
    kept = [as_data(one) for one in stored_signatures(session) if one.name != checked.name]
    store_signatures(session, [*kept, as_data(checked)], by=by, now=now)
    return checked


def remove_signature(session: Session, name: str, *, by: str, now: datetime) -> None:
    """Forget a stored signature; the one of the package with this name is in force again.

    Raises:
        NotFoundError: none with this name is stored.
    """
    take_turn(session, SETTING)
    stored = stored_signatures(session)
    kept = [as_data(one) for one in stored if one.name != name]
    if len(kept) == len(stored):
        raise NotFoundError("challenge signature", name)
    store_signatures(session, kept, by=by, now=now)


def as_data(signature: Signature) -> dict[str, Any]:
    """A signature as plain data, without what has its default."""
    data = {**asdict(signature), "statuses": list(signature.statuses)}
    default = {**asdict(Signature("")), "statuses": list(Signature("").statuses)}
    return {name: value for name, value in data.items() if value != default[name]}


def parse_signatures(data: Any) -> tuple[Signature, ...]:
    """Read and check a list of signatures.

    Raises:
        InvalidInputError: it names entry and field (`challenge_signatures[0].body`).
    """
    if not isinstance(data, list) or len(data) > MOST_SIGNATURES:
        raise InvalidInputError.of(
            SETTING,
            say("must be a list of at most %(most_signatures)s signatures", most_signatures=MOST_SIGNATURES),
        )
    problems: list[Problem] = []
    found: list[Signature] = []
    for number, item in enumerate(data):
        wrong = _problems(item, f"{SETTING}[{number}]")
        if not wrong:
            found.append(Signature(**{**item, "statuses": tuple(item.get("statuses", (200, 202)))}))
        problems += wrong
    names = [one.name for one in found]
    problems += [
        Problem(SETTING, say("%(name)s stands twice", name=repr(name)))
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if problems:
        raise InvalidInputError(problems)
    return tuple(found)


def _problems(item: Any, where: str) -> list[Problem]:
    if not isinstance(item, dict):
        return [Problem(where, say("must be a mapping with a name and a body, header or location"))]
    known = {field.name for field in fields(Signature)}
    problems = [
        Problem(
            f"{where}.{name}", say("is no field of a signature: %(known)s", known=", ".join(sorted(known)))
        )
        for name in item
        if name not in known
    ]
    name = item.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > 100 or not name.isprintable():
        problems.append(Problem(f"{where}.name", say("must be a text of 1 to 100 characters")))
    if not isinstance(item.get("enabled", True), bool):
        problems.append(Problem(f"{where}.enabled", say("must be true or false")))
    statuses = item.get("statuses", [200])
    if not _are_statuses(statuses):
        problems.append(
            Problem(f"{where}.statuses", say("must be a list of HTTP statuses, such as [200, 202]"))
        )
    marks = [mark for mark in ("body", "header", "location") if item.get(mark) is not None]
    if (
        item.get("location") is not None
        and _are_statuses(statuses)
        and not all(300 <= one < 400 for one in statuses)
    ):
        problems.append(
            Problem(
                f"{where}.statuses",
                say("must be those of redirects, such as [302], where a location is told by"),
            )
        )
    if not marks and item.get("enabled", True):
        problems.append(Problem(where, say("needs a body, a header or a location to be told by")))
    return problems + [found for mark in marks for found in _mark_problems(item[mark], mark, where)]


def _are_statuses(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(one, int) and not isinstance(one, bool) and 100 <= one <= 599 for one in value)
    )


def _mark_problems(value: Any, mark: str, where: str) -> Sequence[Problem]:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_PATTERN or "\0" in value:
        return [
            Problem(
                f"{where}.{mark}",
                say(
                    "must be a text of 1 to %(longest_pattern)s characters", longest_pattern=_LONGEST_PATTERN
                ),
            )
        ]
    if mark == "header" and not _HEADER_NAME.fullmatch(value.partition(":")[0].strip()):
        return [
            Problem(f"{where}.{mark}", say("must begin with the name of a header, such as x-guard: ^deny"))
        ]
    expression = value.partition(":")[2].strip() if mark == "header" else value
    if math.prod(max(1, int(count)) for count in _REPEATS.findall(expression)) > _MOST_REPEATS:
        return [
            Problem(
                f"{where}.{mark}",
                say(
                    "repeats too much: counts such as {20} are %(most)s together at most",
                    most=f"{_MOST_REPEATS:,}",
                ),
            )
        ]
    try:
        pattern = _expression(expression)
    except regex.error as error:
        return [Problem(f"{where}.{mark}", say("is no regular expression: %(error)s", error=str(error)))]
    if mark != "header" and _found(pattern, ""):
        # It would call every page a challenge, and shut every key.
        return [Problem(f"{where}.{mark}", say("matches the empty text, and so every page"))]
    return []


def _found(pattern: regex.Pattern[str], text: str) -> bool:
    """Whether a text has the mark; an expression that takes too long on it is logged, and counts as not found."""
    try:
        return pattern.search(text, timeout=_LONGEST_SEARCH_SEC, concurrent=True) is not None
    except TimeoutError:
        log.warning("challenge signature takes too long", expression=pattern.pattern[:200])
        return False


def _expression(text: str) -> regex.Pattern[str]:
    """Upper and lower case alike in ASCII only: the body is looked at as Latin-1, where UTF-8 bytes have no case."""
    return regex.compile(text, regex.IGNORECASE | regex.ASCII | regex.DOTALL)
