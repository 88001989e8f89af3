"""How long a rate key cools down after a block, and how a cooldown is told apart in old results (DESIGN §6)."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import ROUND_CEILING, Decimal

from webqueue.politeness.retry_after import MAX_RETRY_AFTER_SEC

COOLDOWN_CEILING_SEC = 7200
BLOCKS_BEFORE_GROWTH = 2
DEFAULT_COOLDOWN_FACTOR = Decimal(2)

HOST_COOLDOWN_MARK = "host_cooldown:"


def cooldown_seconds(
    *,
    base_sec: int,
    retry_after: int | None,
    consecutive_blocks: int,
    factor: Decimal,
    ceiling_sec: int = COOLDOWN_CEILING_SEC,
) -> int:
    """The length in seconds of the cooldown that this block causes (DESIGN §6 "Blocked").

    `base_sec` is the site's or the environment's cooldown, `retry_after` what the server asked for (capped at
    a day here too), `consecutive_blocks` the number of blocks of the key in a row, this one included. The
    longer of the two holds; from the third block on it is multiplied by the rate group's `factor` for each
    further block, up to `ceiling_sec`. The ceiling limits the growth only: it never shortens what was set or
    asked for. A factor of 1 (or less) means always the same.
    """
    longest = max(0, base_sec, min(retry_after or 0, MAX_RETRY_AFTER_SEC))
    growths = max(0, consecutive_blocks - BLOCKS_BEFORE_GROWTH)
    if longest == 0 or longest >= ceiling_sec or growths == 0 or factor <= 1:
        return longest
    # By logarithm first: the power itself overflows when a key was blocked a million times.
    if growths * math.log(factor) >= math.log(ceiling_sec / longest):
        return ceiling_sec
    grown = (longest * factor**growths).to_integral_value(ROUND_CEILING)
    return min(int(grown), ceiling_sec)


def extended(current_until: datetime | None, new_until: datetime) -> datetime:
    """The later of the two: a running cooldown is never shortened (DESIGN §6)."""
    return new_until if current_until is None else max(current_until, new_until)


def result_has_host_cooldown(value: object) -> bool:
    """Whether `host_cooldown:` stands anywhere in a result: in a text, or within dicts, lists, tuples and
    sets.

    This is how crawlers written before webqueue tell that a host turned them away (govcrawler's behaviour,
    kept). Walks without recursion and each container once, so that deep and cyclic results are harmless.
    """
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if HOST_COOLDOWN_MARK in item:
                return True
        elif isinstance(item, dict | list | tuple | set | frozenset) and id(item) not in seen:
            seen.add(id(item))
            waiting.extend(item)  # of a dict, its keys
            if isinstance(item, dict):
                waiting.extend(item.values())
    return False
