"""Articles: title, text and date of a page, by selectors where the target has them, else by trafilatura."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webqueue import logs
from webqueue.handlers.crawl import dates
from webqueue.handlers.crawl.nesting import tamed
from webqueue.handlers.crawl.pages import Page, one_line
from webqueue.handlers.crawl.urls import is_root, is_same_host, join

log = logs.get(__name__)

_LONGEST_TITLE: Final = 500
# trafilatura takes 2 to 5 s for a million characters, and cannot be stopped meanwhile, although a cancelled crawl
# has to stop within 2 s. A page beyond this is an index or a log, not an article.
_LONGEST_FOR_TRAFILATURA: Final = 500_000
# With less than this share of what its generous reading finds, its careful one has lost text (`benchmarks.texts`).
_MUCH_OF: Final = 0.7
_NOT_TEXT: Final = ["script", "style", "noscript", "template", "svg", "iframe", "nav", "head"]
_BLOCKS: Final = frozenset(
    (
        "address",
        "article",
        "aside",
        "blockquote",
        "dd",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tr",
        "ul",
        "br",
    )
)


@dataclass(frozen=True)
class Article:
    """What was found on a page.

    Attributes:
        hashed_text: the text less what the target ignores, by which versions differ; None when it is `text`.
        missed: `content_selector` was set and matched nothing, so that the text was found without it.
    """

    title: str
    text: str
    published_at: datetime | None
    hashed_text: str | None = None
    missed: bool = False


class Extractor:
    """Finds an article on its page.

    Args:
        title_selector: CSS of the title, or None.
        content_selector: CSS of the text, or None.
        ignore_selectors: CSS of what makes no new version.
        timezone: name of the site's zone, for dates without an offset.
    """

    def __init__(
        self,
        *,
        title_selector: str | None,
        content_selector: str | None,
        ignore_selectors: tuple[str, ...],
        timezone: str,
    ) -> None:
        self._title_selector = title_selector
        self._content_selector = content_selector
        self._ignore_selectors = ignore_selectors
        self._timezone = dates.zone(timezone)

    def extract(self, page: Page) -> Article:
        """Find title, text and date; each may be empty, nothing is raised for a strange page."""
        article = self._extract(page.tree, page.text, page.url)
        without = self._without_ignored(page.tree)
        if without is None:
            return article
        return replace(article, hashed_text=self._extract(without, without.html or "", page.url).text)

    def _extract(self, tree: LexborHTMLParser, html: str, url: str) -> Article:
        title = _title_of(tree, self._title_selector)
        text = _text_of(tree, self._content_selector)
        missed = self._content_selector is not None and not text
        published = dates.published_at(tree, self._timezone)
        if (
            not text or not title
        ):  # a date alone is not worth the time, and trafilatura's is often that of something else
            found = _by_trafilatura(html, url, tree)
            title = title or _clean_title(found.title) or _own_title(tree)
            text = text or _tidy(found.text) or whole_text(tree)
            published = published or dates.parse(found.date, self._timezone)
        return Article(title[:_LONGEST_TITLE], text, published, missed=missed)

    def _without_ignored(self, tree: LexborHTMLParser) -> LexborHTMLParser | None:
        if not any(tree.css_first(selector) for selector in self._ignore_selectors):
            return None
        copy = _copy_of(tree)
        for selector in self._ignore_selectors:
            matches = copy.css(selector)
            matched = {node.mem_id for node in matches}
            for node in [node for node in matches if not _is_inside(node, matched)]:
                node.decompose()
        return copy


def canonical_url(page: Page) -> str | None:
    """The address that a page gives itself, where it counts: on the same host, and not its front page.

    A front page as canonical address is a common mistake of templates; it would make one document of a whole site.
    """
    for node in page.tree.css('link[rel~="canonical"][href]'):
        url = page.join(node.attributes.get("href") or "")
        if url is not None and is_same_host(url, join(page.url, "") or page.url) and not is_root(url):
            return url
        return None
    return None


def _copy_of(tree: LexborHTMLParser) -> LexborHTMLParser:
    """A tree that may be changed. `clone()` fails where the document type has a system identifier, as in
    `<!DOCTYPE html SYSTEM "about:legacy-compat">`, which the HTML standard allows.
    """
    return LexborHTMLParser(tree.html or "")


def _is_inside(node: LexborNode, matched: set[int]) -> bool:
    """Whether an element above `node` is matched too, and takes it along."""
    parent = node.parent
    while parent is not None:
        if parent.mem_id in matched:
            return True
        parent = parent.parent
    return False


@dataclass(frozen=True)
class _Found:
    title: str = ""
    text: str = ""
    date: str = ""


def _by_trafilatura(html: str, url: str, tree: LexborHTMLParser) -> _Found:
    if not html.strip() or len(html) > _LONGEST_FOR_TRAFILATURA:
        return _Found()
    try:
        found = _extracted(html, url)
        if len(html) > _LONGEST_FOR_TRAFILATURA // 2 or 2 * len(found.text) > len(whole_text(tree)):
            return found
        # Half of the page may be its menus, or the paragraphs of a manual that are no <p>.
        more = _extracted(html, url, favor_recall=True)
    except Exception:
        # Any page may come, and a library that cannot read one must not end the crawl: the plain text is taken.
        log.exception("trafilatura failed", url=url)
        return _Found()
    return replace(found, text=more.text) if len(found.text) < _MUCH_OF * len(more.text) else found


def _extracted(html: str, url: str, *, favor_recall: bool = False) -> _Found:
    # Takes half a second to import, and forms and lists never need it.
    from trafilatura import bare_extraction

    found: Any = bare_extraction(
        html,
        url=url,
        with_metadata=True,
        include_comments=False,
        favor_recall=favor_recall,
        # Only what a page says of itself: a date guessed from its text is often that of something else.
        date_extraction_params={"extensive_search": False, "original_date": True},
    )
    if found is None:
        return _Found()
    return _Found(found.title or "", found.text or "", found.date or "")


def _title_of(tree: LexborHTMLParser, selector: str | None) -> str:
    """The first text that `selector` matches; some pages have more than one `h1`, and one title all the same."""
    if selector is None:
        return ""
    titles = (_clean_title(_lines(node)) for node in tree.css(selector))
    return next((title for title in titles if title), "")


def _text_of(tree: LexborHTMLParser, selector: str | None) -> str:
    """The text of everything that `selector` matches, "" when it is not set or matches nothing."""
    if selector is None:
        return ""
    return _tidy("\n".join(_lines(node) for node in tree.css(selector)))


def _own_title(tree: LexborHTMLParser) -> str:
    for selector in ("title", "h1"):
        for node in tree.css(selector):
            title = _clean_title(node.text())
            if title:
                return title
    return ""


def whole_text(tree: LexborHTMLParser) -> str:
    """All the text of a page on which no main text was found, one block a line."""
    copy = _copy_of(tree)
    copy.strip_tags(_NOT_TEXT)
    return _tidy(_lines(copy.body)) if copy.body is not None else ""


def _lines(node: LexborNode) -> str:
    """The text of an element with a line break around each block in it."""
    pieces: list[str] = []
    for child in node.traverse(include_text=True):
        if child.tag == "-text":
            pieces.append(" ".join(child.text(deep=False).split("\n")))
        elif child.tag in _BLOCKS:
            pieces.append("\n")
    return "".join(pieces)


def _tidy(text: str) -> str:
    """Lines without white space around them, none of them empty."""
    lines = (one_line(line) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def plain_line(html: str) -> str:
    """A text that may contain markup and entities, as one line without them."""
    if "<" not in html and "&" not in html:
        return one_line(html)
    body = LexborHTMLParser(tamed(html)).body
    return _clean_title(body.text()) if body is not None else ""


def _clean_title(title: str) -> str:
    return (
        one_line(title).removesuffix("¶").rstrip()
    )  # the mark of a link to the heading, in technical manuals
