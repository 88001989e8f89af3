"""What a crawl counts, and what it says in the end."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from webqueue.sentences import Sentence, part, part_message, stored

_LISTED_FAILURES = 20

_SINCE: Final = {
    "new": part_message("%(count)s new"),
    "changed": part_message("%(count)s changed"),
    "unchanged": part_message("%(count)s unchanged"),
    "known": part_message("%(count)s known"),
    "in_chain": part_message("%(count)s in chain"),
    "duplicates": part_message("%(count)s duplicates"),
    "skipped_other_key": part_message("%(count)s skipped other key"),
    "missing": part_message("%(count)s missing"),
    "failed": part_message("%(count)s failed"),
}


@dataclass
class Counters:
    """The counters of one run; a resumed run counts from zero.

    Attributes:
        pages: list pages read.
        links: links found on them, each once a page.
        new: articles stored for the first time; `changed` got a new version, `unchanged` were fetched again in vain.
        known: links that were stored before the chain began, and were not fetched.
        in_chain: links that an earlier run of the chain stored, and were not fetched again.
        rechecked: known links that were fetched again all the same: recent ones, and ones that the list calls newer.
        duplicates: links that this run had met already.
        left_out: links that a spider did not follow, because it had enough.
        without_link: items of the list whose link could not be made out.
        skipped_other_key: links to hosts of another rate key, not fetched in this job.
        missing: stored articles whose page answers 404 or 410 now; `gone` are those that were marked so by this run.
        failed: articles that could not be fetched.
        read: web pages whose text was looked for.
        empty: those without a text.
        selector_missed: those on which `content_selector` matched nothing.
        attachments: files of articles that were stored; `attachments_failed` could not be had, or are too large.
        files_unchanged: files of a sitemap that had not changed, and were not read again.
        files_failed: files of a sitemap that could not be read.
        total: how many articles the site says it has.
        links_on_page_1: links on list page 1, None when this run did not read it.
        failures: the first messages about articles that could not be fetched.
    """

    pages: int = 0
    links: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    known: int = 0
    in_chain: int = 0
    rechecked: int = 0
    duplicates: int = 0
    left_out: int = 0
    without_link: int = 0
    skipped_other_key: int = 0
    missing: int = 0
    gone: int = 0
    failed: int = 0
    read: int = 0
    empty: int = 0
    selector_missed: int = 0
    attachments: int = 0
    attachments_failed: int = 0
    files_unchanged: int = 0
    files_failed: int = 0
    total: int | None = None
    links_on_page_1: int | None = None
    failures: list[str] = field(default_factory=list)

    def since(self, before: Counters) -> Sentence | None:
        """What came of the articles since `before`, for a line of the log: `18 new, 2 known`; None: nothing."""
        grown = [
            part(message, count=count)
            for name, message in _SINCE.items()
            if (count := getattr(self, name) - getattr(before, name))
        ]
        told: Sentence | None = None
        for one in reversed(grown):
            told = one if told is None else part("%(what)s, %(more)s", what=one, more=told)
        return told

    @property
    def fetched(self) -> int:
        """Articles that were fetched and read."""
        return self.new + self.changed + self.unchanged

    @property
    def incomplete(self) -> bool:
        """Whether something that the lists name was not stored, and should be tried again by the next run."""
        return bool(self.failed or self.files_failed or self.attachments_failed)

    def fail(self, message: str) -> None:
        """Count an article that could not be fetched, and keep the first few messages."""
        self.failed += 1
        if len(self.failures) < _LISTED_FAILURES:
            self.failures.append(message)

    def result(self, stopped_because: str) -> dict[str, Any]:
        """The result of the job."""
        return {**asdict(self), "stopped_because": stopped_because}

    def attention(self) -> str | None:
        """Why a person should look at a run that is done (DESIGN P12), or None."""
        return self._attention_to_lists() or self._attention_to_articles()

    def _attention_to_lists(self) -> str | None:
        if self.links and self.skipped_other_key == self.links:
            return stored("Every link leads to the host of another rate key; nothing was fetched.")
        if not self.links and self.pages and not self.files_unchanged:
            return stored("The list pages of this run had no link.")
        if self.without_link > self.links:
            return stored(
                "%(without)s items of the list have no link, %(links)s have one.",
                without=self.without_link,
                links=self.links,
            )
        if self.files_failed:
            return stored(
                "%(count)s files of the sitemap could not be read; the job's log names them.",
                count=self.files_failed,
            )
        return None

    def _attention_to_articles(self) -> str | None:
        if self.failed and not self.fetched:
            return stored(
                "None of the %(count)s new articles could be fetched: %(why)s",
                count=self.failed,
                why=self.failures[0],
            )
        if self.read and self.selector_missed * 2 > self.read:
            return stored(
                "content_selector matched nothing on %(count)s of %(all)s pages.",
                count=self.selector_missed,
                all=self.read,
            )
        if self.read and self.empty * 2 > self.read:
            return stored("%(count)s of %(all)s pages have no text.", count=self.empty, all=self.read)
        return None
