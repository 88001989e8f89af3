"""Causes: what is written of them is known again."""

from __future__ import annotations

import pytest

from webqueue.models import RateKey
from webqueue.politeness import causes, interval
from webqueue.politeness.reactions import told_interval
from webqueue.sentences import Sentence


@pytest.mark.parametrize(
    ("text", "message", "values"),
    [
        ("HTTP 429 from a.example", causes.ANSWERED, {"status": "429", "host": "a.example"}),
        (
            "HTTP 403 for a list page from a.example",
            causes.LIST_PAGE_REFUSED,
            {"status": "403", "host": "a.example"},
        ),
        (
            "HTTP 403 3 times in a row from a.example",
            causes.REFUSED_IN_A_ROW,
            {"status": "403", "count": "3", "host": "a.example"},
        ),
        (
            "challenge page (Cloudflare page, HTTP 403) from a.example",
            causes.CHALLENGED,
            {"firewall": "Cloudflare page", "status": "403", "host": "a.example"},
        ),
        ("clean run 4 in a row", causes.CLEAN_RUN, {"count": "4"}),
    ],
)
def test_a_cause_is_known_again(text: str, message: str, values: dict[str, str]) -> None:
    found = causes.known(text)
    assert isinstance(found, Sentence)
    assert (found, found.message, found.values) == (text, message, values)
    assert message % values == text


def test_a_cause_within_a_note_is_known_too() -> None:
    note = causes.COOLING_DOWN % {
        "cause": causes.DISCONNECTED % {"count": 3, "host": "a.example"},
        "seconds": 600,
    }
    found = causes.known(note)
    assert isinstance(found, Sentence)
    within = found.values["cause"]
    assert isinstance(within, Sentence)
    assert within.message == causes.DISCONNECTED


@pytest.mark.parametrize("kind", [interval.OWN, interval.LEARNED, interval.CRAWL_DELAY, None])
def test_the_interval_that_a_gap_is_kept_for_is_known_again(kind: str | None) -> None:
    told = told_interval(RateKey(interval_cause=kind, interval_sec=2.5))
    found = causes.known(causes.AFTER_REQUEST % {"interval": told})
    assert isinstance(found, Sentence)
    assert isinstance(found.values["interval"], Sentence)
    assert "2.5 s" in found


def test_what_somebody_wrote_stays() -> None:
    for text in ("the owner asked", "HTTP 429 from a.example, said a proxy", ""):
        assert not isinstance(causes.known(text), Sentence)
