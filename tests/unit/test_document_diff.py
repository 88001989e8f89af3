"""What changed between two texts: right for any texts, readable, and quick for large ones."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from webqueue.queries import document_diff
from webqueue.queries.document_diff import Diff, Op, text_diff


def side(diff: Diff, op: Op) -> str:
    """The text of one side as the diff has it, lines put together again."""
    kept = {"same", op}
    return "\n".join(
        "".join(span.text for span in passage.spans if span.op in kept) for passage in diff.passages
    )


def marked(diff: Diff) -> list[tuple[Op, str]]:
    return [(span.op, span.text) for passage in diff.passages for span in passage.spans if span.op != "same"]


TEXT = st.text(st.sampled_from("ab c\n。政府"), max_size=60)


@given(before=TEXT, after=TEXT)
def test_both_texts_can_be_read_from_it(before: str, after: str) -> None:
    diff = text_diff(before, after)
    # A passage that only one side has leaves an empty line on the other.
    assert side(diff, "del").replace("\n", "") == "".join(before.splitlines())
    assert side(diff, "ins").replace("\n", "") == "".join(after.splitlines())
    assert diff.cut == ()
    assert diff.is_empty == (not marked(diff) or not "".join(text for _, text in marked(diff)).strip())


def test_words_are_marked_and_not_whole_lines() -> None:
    diff = text_diff("The fee is 20 euros a year.\nSame.", "The fee is 25 euros per year.\nSame.")
    assert marked(diff) == [("del", "20"), ("ins", "25"), ("del", "a"), ("ins", "per")]
    assert (diff.added, diff.removed) == (2, 2)


def test_of_chinese_signs_are_marked() -> None:
    assert marked(text_diff("会议定于三月五日召开。", "会议定于三月九日召开。")) == [
        ("del", "五"),
        ("ins", "九"),
    ]


def test_a_long_line_of_chinese_and_english_keeps_small_changes_small() -> None:
    """Every sign of it stands in it more than once, the short words too."""
    before = "本市发布 AI 政策。" + "企业可以申请 AI 补贴,每年 20 万元。" * 12
    after = before.replace("申请", "提交", 1)[:-3] + "欧元。"
    diff = text_diff(before, after)
    assert marked(diff) == [("del", "申请"), ("ins", "提交"), ("del", "万"), ("ins", "欧")]


UNITS = st.lists(st.sampled_from(["政", "府", "AI ", "the ", "5%", "。"]), min_size=3, max_size=60)


@given(units=UNITS, times=st.integers(1, 6), data=st.data())
def test_two_replaced_words_are_two_changes_however_often_the_others_stand(
    units: list[str], times: int, data: st.DataObject
) -> None:
    old = units * times
    first = data.draw(st.integers(0, len(old) - 3))
    last = data.draw(st.integers(first + 2, len(old) - 1))
    assume(any(unit[0].isalnum() for unit in old[first + 1 : last]))
    new = [*old[:first], "新", *old[first + 1 : last], "改", *old[last + 1 :]]
    diff = text_diff("".join(old), "".join(new))
    assert diff.added == 2
    assert diff.removed == sum(len(re.findall(r"\w+|[^\w\s]", old[place])) for place in (first, last))


def test_unchanged_lines_are_folded_and_those_beside_a_change_are_shown() -> None:
    lines = [f"line {number}" for number in range(40)]
    diff = text_diff("\n".join(lines), "\n".join([*lines[:20], "new", *lines[20:]]))
    assert [passage.folded for passage in diff.passages] == [18, 0, 0, 0, 18]
    assert diff.passages[1].spans[0].text == "line 18\nline 19"
    assert marked(diff) == [("ins", "new")]


def test_equal_texts_have_no_change() -> None:
    diff = text_diff("a\nb", "a\nb")
    assert diff.is_empty
    assert marked(diff) == []


def test_a_long_line_shows_what_is_around_its_changes() -> None:
    words = [f"word{number}" for number in range(1_000)]
    after = [*words[:500], "other", *words[501:]]
    diff = text_diff(" ".join(words), " ".join(after))
    assert marked(diff)[1:3] == [("del", "word500"), ("ins", "other")]
    (passage,) = diff.passages
    assert sum(len(span.text) for span in passage.spans) < 600
    assert sum(span.count for span in passage.spans) > 5_000


def large_pairs() -> dict[str, tuple[str, str]]:
    dice = random.Random(7)
    words = [f"w{dice.randrange(5_000)}" for _ in range(200_000)]
    other = [f"v{dice.randrange(5_000)}" for _ in range(200_000)]
    lines = [" ".join(words[start : start + 10]) for start in range(0, 200_000, 10)]
    every_other = [line.replace("w1", "x1") if number % 2 else line for number, line in enumerate(lines)]
    return {
        "one word": (" ".join(words), " ".join([*words[:9], "other", *words[10:]])),
        "nothing alike": (" ".join(words), " ".join(other)),
        "no line alike": ("\n".join(lines), "\n".join(reversed(lines))),
        "every other line": ("\n".join(lines), "\n".join(every_other)),
        "one sign": ("a" * 1_000_000, "a" * 999_999 + "b"),
        "lines of one sign": ("a\nb\n" * 250_000, "b\na\n" * 250_000),
        "blank lines": ("\n" * 500_000, "\n x \n" * 250_000),
        "one sign, and every other": (("政" * 400 + "\n=\n") * 20, ("府" + "政府" * 199 + "x\n=\n") * 20),
        "spaces": ("a " * 500_000, "b " * 500_000),
        "few words": ("x y z " * 160_000 + "\n", "z y x " * 160_000 + "\n"),
    }


@pytest.mark.parametrize("name", large_pairs())
def test_a_megabyte_is_quick_and_says_what_is_left_out(name: str) -> None:
    before, after = large_pairs()[name]
    began = time.process_time()
    diff = text_diff(before, after)
    assert time.process_time() - began < 4, name
    shown = sum(len(span.text) for passage in diff.passages for span in passage.spans)
    assert shown <= document_diff.MAX_SHOWN + 100
    assert not diff.is_empty
    if name not in {"one word", "blank lines", "one sign, and every other"}:
        assert diff.cut, name
