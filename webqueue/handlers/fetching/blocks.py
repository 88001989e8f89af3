"""Telling a block from an answer and from a mere failure (DESIGN section 6, "Blocked")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from webqueue.handlers.fetching.exchange import Answer
from webqueue.handlers.fetching.hops import Hop
from webqueue.handlers.protocol import BlockedError
from webqueue.politeness import causes
from webqueue.politeness.challenges import DEFAULT_SIGNATURES, Signature, challenge_of
from webqueue.politeness.retry_after import parse_retry_after

# 412 and 521 are what firewalls of government sites answer a client that they take for a machine.
BLOCKING: Final = frozenset({429, 503, 412, 521})
FORBIDDEN: Final = 403
PRECONDITION_FAILED: Final = 412
FORBIDDEN_IN_A_ROW: Final = 3
REFUSALS: Final = 3
# With one of these a 412 is the answer that was asked for (RFC 9110 §13.1).
_PRECONDITIONS: Final = frozenset({"if-match", "if-unmodified-since"})


class BlockWatch:
    """Judges the answers and failures of one job, in their order.

    Args:
        signatures: of challenge pages.
        refusals_count: False behind a proxy, whose refusals say nothing about the host.
    """

    def __init__(
        self, signatures: Sequence[Signature] = DEFAULT_SIGNATURES, *, refusals_count: bool = True
    ) -> None:
        self._signatures = signatures
        self._refusals_count = refusals_count
        self._refusals: Counter[str] = Counter()
        self._forbidden = 0

    def check(self, hop: Hop, answer: Answer, sent: Mapping[str, str], now: datetime) -> None:
        """Take an answer.

        Args:
            sent: the headers that went out, names in lower case.
            now: for a Retry-After date.

        Raises:
            BlockedError: it is a block.
        """
        self._refusals[hop.host] = 0
        location = _location(hop, answer)
        challenge = challenge_of(
            self._signatures, answer.status, _lower(answer.headers), answer.body, location
        )
        retry_after = parse_retry_after(answer.headers.get("retry-after"), now)
        if challenge is not None:
            facts = {"firewall": challenge, "status": answer.status, "host": hop.host}
            reason = causes.CHALLENGED % facts
            raise BlockedError(reason, location or str(hop.url), retry_after)
        reason = self._reason(hop, answer, sent)
        if reason:
            raise BlockedError(reason, str(hop.url), retry_after)

    def refused(self, hop: Hop) -> None:
        """Take a connection that was refused or reset.

        Raises:
            BlockedError: it is the host's third without an answer in between.
        """
        if not self._refusals_count:
            return
        self._refusals[hop.host] += 1
        if self._refusals[hop.host] >= REFUSALS:
            reason = causes.DISCONNECTED % {"count": REFUSALS, "host": hop.host}
            raise BlockedError(reason, str(hop.url))

    def _reason(self, hop: Hop, answer: Answer, sent: Mapping[str, str]) -> str:
        status = answer.status
        facts = {"status": status, "count": FORBIDDEN_IN_A_ROW, "host": hop.host}
        if status in BLOCKING and not (status == PRECONDITION_FAILED and _PRECONDITIONS & sent.keys()):
            return causes.ANSWERED % facts
        # For robots.txt 403 means that there is none (RFC 9309 §2.3.1.3), and a redirect leads to the answer.
        if hop.is_robots_file or answer.location is not None:
            return ""
        if status != FORBIDDEN:
            self._forbidden = 0
            return ""
        self._forbidden += 1
        if hop.is_list_page:
            return causes.LIST_PAGE_REFUSED % facts
        return causes.REFUSED_IN_A_ROW % facts if self._forbidden >= FORBIDDEN_IN_A_ROW else ""


def _lower(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _location(hop: Hop, answer: Answer) -> str | None:
    if answer.location is None:
        return None
    try:
        return str(hop.url.join(answer.location.strip()))
    except ValueError:  # told as a redirect that cannot be followed
        return answer.location
