"""Title, text, date and address of an article."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.documentation import documentation
from webqueue.handlers.crawl import dates
from webqueue.handlers.crawl.articles import Article, Extractor, canonical_url
from webqueue.handlers.crawl.pages import Page
from webqueue.handlers.protocol import Response

URL = "http://www.example.org/news/a.html"
BODY = """<html><head><title>The harbour opens - Example news</title></head><body><nav><a href="/">Home</a></nav>
<article><h1>The harbour <i>opens</i> ¶</h1><div class="text"><p>The harbour is open again after long repairs, and the
boats are back.</p><p>Many people came to see it.</p><p class="views">Seen <b>17</b> times</p></div></article>
<footer>Example news</footer></body></html>"""


def page(html: str, url: str = URL) -> Page:
    return Page(Response(url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode(), 1))


def extract(
    html: str, *, title: str | None = None, content: str | None = None, ignore: tuple[str, ...] = ()
) -> Article:
    extractor = Extractor(
        title_selector=title, content_selector=content, ignore_selectors=ignore, timezone="Asia/Shanghai"
    )
    return extractor.extract(page(html))


class TestText:
    def test_by_itself(self) -> None:
        article = extract(BODY)
        assert article.title == "The harbour opens"
        assert "boats are back" in article.text
        assert "Home" not in article.text
        assert article.hashed_text is None

    def test_by_selectors(self) -> None:
        article = extract(BODY, title="title", content="div.text p:first-child")
        assert article.title == "The harbour opens - Example news"
        assert article.text == "The harbour is open again after long repairs, and the boats are back."
        assert not article.missed

    def test_where_the_careful_reading_loses_half_of_a_page_the_generous_one_is_taken(self) -> None:
        (file,) = documentation("apache2-doc").rglob("en/license.html")
        text = extract(file.read_text(encoding="utf-8")).text
        assert "Grant of Patent License" in text
        assert "Limitation of Liability" in text

    @pytest.mark.parametrize(
        "identifier", ['SYSTEM "about:legacy-compat"', 'PUBLIC "-//W3C//DTD" "strict.dtd"']
    )
    def test_any_document_type(self, identifier: str) -> None:
        html = f"<!DOCTYPE html {identifier}>{BODY}"
        assert "boats are back" in extract(html).text
        article = extract(html, content="div.text", ignore=(".views",))
        assert article.hashed_text is not None
        assert "17" not in article.hashed_text
        assert extract(f"<!DOCTYPE html {identifier}><title>x</title><div>short").text == "short"

    def test_the_mark_of_a_link_to_the_heading_is_no_part_of_a_title(self) -> None:
        html = '<h1>Glossary<a href="#glossary">¶</a></h1><p>text'
        assert extract(html, title="h1", content="p").title == "Glossary"

    def test_the_first_of_several_titles_is_the_title(self) -> None:
        assert extract("<h1> </h1><h1>One</h1><p>text<h1>Two</h1>", title="h1", content="p").title == "One"

    def test_what_the_selectors_find_is_not_looked_for_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Trafilatura takes seconds for a large page, during which a cancelled crawl could not stop."""
        monkeypatch.setattr("trafilatura.bare_extraction", lambda *_, **__: pytest.fail("it was asked"))
        article = extract(BODY, title="h1", content="div.text")
        assert (article.title, article.published_at) == ("The harbour opens", None)

    def test_a_page_too_large_for_an_article_is_taken_as_it_stands(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trafilatura.bare_extraction", lambda *_, **__: pytest.fail("it was asked"))
        row = "<tr><td>a row of the index</td></tr>"
        article = extract(f"<title>Index</title><table>{row * 20_000}</table>")
        assert article.title == "Index"
        assert article.text.count("a row of the index") == 20_000

    def test_every_match_of_the_content_selector_and_one_line_a_block(self) -> None:
        article = extract("<h1>t</h1><div>a<br>b<p>c <b>d</b></p></div><div>e</div>", content="div")
        assert article.text == "a\nb\nc d\ne"

    def test_a_content_selector_that_matches_nothing_is_told(self) -> None:
        article = extract(BODY, content="div.other")
        assert article.missed
        assert "boats are back" in article.text

    def test_ignored_parts_are_in_the_text_but_not_in_what_versions_compare(self) -> None:
        article = extract(BODY, content="div.text", ignore=(".views", ".views b", "aside"))
        assert article.text.endswith("Seen 17 times")
        assert article.hashed_text is not None
        assert article.hashed_text.endswith("came to see it.")
        other = extract(BODY.replace("17", "18"), content="div.text", ignore=(".views", ".views b", "aside"))
        assert other.hashed_text == article.hashed_text
        assert other.text != article.text

    def test_nothing_but_a_few_words(self) -> None:
        article = extract("<title>t</title><body><script>x()</script><style>y</style><p>two words")
        assert (article.title, article.text) == ("t", "two words")

    def test_a_large_page_with_many_ignored_parts(self) -> None:
        html = f"<title>t</title><main>{'<p>line <a href=#>x</a></p>' * 20_000}</main>"
        article = extract(html, title="title", content="main", ignore=("a",))
        assert article.hashed_text == "\n".join(["line"] * 20_000)

    @given(st.text(max_size=200))
    def test_any_page(self, html: str) -> None:
        article = extract(html.encode("utf-8", "replace").decode(), title="h1", ignore=("p", "a"))
        assert isinstance(article.text, str)


class TestCanonical:
    @pytest.mark.parametrize(
        ("href", "expected"),
        [
            ("/news/b.html", "http://www.example.org/news/b.html"),
            ("b.html?x=1#y", "http://www.example.org/news/b.html?x=1"),
            ("http://WWW.example.org:80/c", "http://www.example.org/c"),
            ("/?p=12", "http://www.example.org/?p=12"),
            ("/", None),
            ("http://www.example.org", None),
            ("https://www.example.org/news/a.html", None),
            ("http://example.org/news/a.html", None),
            ("mailto:x@example.org", None),
            ("http://[bad", None),
        ],
    )
    def test_where_it_counts(self, href: str, expected: str | None) -> None:
        assert canonical_url(page(f'<link rel="canonical" href="{href}"><p>x')) == expected

    def test_the_first_one_counts_alone(self) -> None:
        html = '<link rel="shortlink canonical" href="/"><link rel="canonical" href="/b.html">'
        assert canonical_url(page(html)) is None

    def test_none(self) -> None:
        assert canonical_url(page("<p>x")) is None


class TestPublished:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2024-03-05T10:20:30+08:00", datetime(2024, 3, 5, 2, 20, 30, tzinfo=UTC)),
            ("2024-03-05T10:20:30.123Z", datetime(2024, 3, 5, 10, 20, 30, tzinfo=UTC)),
            ("2024-03-05 10:20", datetime(2024, 3, 5, 2, 20, tzinfo=UTC)),
            ("2024/3/5", datetime(2024, 3, 4, 16, tzinfo=UTC)),
            ("2024年3月5日", datetime(2024, 3, 4, 16, tzinfo=UTC)),
            ("2024年03月05日 10:20:30", datetime(2024, 3, 5, 2, 20, 30, tzinfo=UTC)),
            ("2024-02-30", None),
            ("0001-01-01", None),
            ("yesterday", None),
            ("", None),
        ],
    )
    def test_as_pages_write_it(self, text: str, expected: datetime | None) -> None:
        assert dates.parse(text, dates.zone("Asia/Shanghai")) == expected

    @pytest.mark.parametrize(
        "html",
        [
            '<meta name="PubDate" content="2024-03-05 10:20">',
            '<meta property="article:published_time" content="2024-03-05T10:20:00+08:00">',
            '<time itemprop="datePublished" datetime="2024-03-05T02:20:00Z">5 March</time>',
            f'<script type="application/ld+json">{json.dumps({"@graph": [{"datePublished": "2024-03-05 10:20"}]})}</script>',
            '<script type="application/ld+json">{broken</script><meta name="publishdate" content="2024-03-05 10:20">',
        ],
    )
    def test_where_pages_say_it(self, html: str) -> None:
        assert extract(f"<title>t</title>{html}<p>text").published_at == datetime(
            2024, 3, 5, 2, 20, tzinfo=UTC
        )

    def test_a_zone_that_this_machine_does_not_know(self) -> None:
        assert dates.zone("Mars/Olympus") is UTC

    @given(st.text(max_size=40))
    def test_any_text(self, text: str) -> None:
        found = dates.parse(text, UTC)
        assert found is None or found.tzinfo is UTC
