from __future__ import annotations

import pytest

from tests.helpers.waiting import wait_until


def test_the_answer_is_returned_as_soon_as_it_is_true() -> None:
    answers = iter([0, None, "", "there", "too late"])
    assert wait_until(lambda: next(answers)) == "there"


def test_in_vain_it_says_what_was_waited_for_and_the_last_answer() -> None:
    with pytest.raises(AssertionError, match=r"0\.05 s in vain: the tide \(last answer: \[\]\)"):
        wait_until(list, timeout=0.05, message="the tide")


def test_the_condition_is_asked_even_without_time() -> None:
    assert wait_until(lambda: True, timeout=0)
