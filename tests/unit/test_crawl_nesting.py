"""Pages that no parser should get as they are."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.helpers.documentation import PACKAGES, documentation
from webqueue.handlers.crawl.nesting import DEEPEST, LONGEST_TAG, tamed


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "deep" + "</div>" * 100_000,
        "<div/>" * 100_000 + "deep",
        "<font a=1>" * 100_000 + "<p>deep",
        "<a><div>" * 50_000 + "deep",
        "<section><DIV class='x'>" * 50_000 + "deep",
        "<p>deep <x " + " ".join(f"a{number}=1" for number in range(100_000)) + ">",
        "<p>deep <x " + " ".join(f"a{number}=1" for number in range(100_000)),
    ],
    ids=["div", "div-closed", "font", "a", "mixed", "attributes", "endless-tag"],
)
def test_what_would_take_minutes_takes_moments(html: str) -> None:
    started = time.process_time()
    tree = LexborHTMLParser(tamed(html))
    assert time.process_time() - started < 3
    assert "deep" in tree.html  # type: ignore[operator]


def test_what_comes_after_the_deep_part_keeps_its_elements() -> None:
    deep = "<div>" * 2_000 + "deep" + "</div>" * 2_000
    tree = LexborHTMLParser(tamed(f"{deep}<article>after</article>"))
    article = tree.css_first("body > article")
    assert article is not None
    assert article.text() == "after"


def test_tags_that_pages_leave_open_do_not_count() -> None:
    html = "<ul>" + "<li>x" * 5_000 + "</ul><p>y" * 5_000 + "<br><img src=a>" * 5_000 + '<a id="z"/>' * 5_000
    assert tamed(html) == html


def test_a_picture_inside_a_tag_is_dropped_with_it() -> None:
    html = f'<p>before<img src="data:image/png;base64,{"A" * LONGEST_TAG}">after'
    assert tamed(html) == "<p>beforeafter"


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_real_pages_stay_as_they_are(package: str) -> None:
    files = sorted(documentation(package).rglob("*.html"))[:60]
    assert files
    for file in files:
        html = file.read_text(encoding="utf-8", errors="replace")
        assert tamed(html) == html, file


@given(st.lists(st.sampled_from(["<div>", "</div>", "<p>", "x", "<", ">", "<b", "</", "<!--"]), max_size=400))
def test_anything_not_deep_stays_as_it_is(pieces: list[str]) -> None:
    html = "".join(pieces)
    assert len(pieces) < DEEPEST
    assert tamed(html) == html
