"""robots.txt: what a host lets crawlers fetch, and how far apart (RFC 9309)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx2
from protego import Protego

from webqueue import logs
from webqueue.handlers.fetching.exchange import Answer
from webqueue.handlers.fetching.hops import Hop, redirected
from webqueue.handlers.protocol import FetchError
from webqueue.politeness.interval import MAX_CRAWL_DELAY_SEC
from webqueue.politeness.robots_store import NoStore, RobotsStore, RobotsText
from webqueue.sentences import Sentence, stored

MAX_BYTES = 500 * 1024  # RFC 9309 §2.5: what lies behind may be ignored
MAX_REDIRECTS = 5  # §2.3.1.2
TOTAL_SEC = 60.0

# Errors of the URL itself: the page's own error, told as such, and no word about its robots.txt.
_NOT_ABOUT_ROBOTS = frozenset({"address", "url", "other_key"})

_log = logs.get(__name__)


@dataclass(frozen=True)
class Rules:
    """What one robots.txt says.

    Attributes:
        parsed: its contents; None: everything is allowed.
        text: what was answered, as it is kept.
    """

    parsed: Protego | None
    text: RobotsText

    @classmethod
    def of(cls, text: RobotsText) -> Rules:
        """The rules of what was answered, now or in the last day."""
        return cls(None if text.body is None else Protego.parse(text.body), text)

    def allows(self, url: str, agent: str) -> bool:
        """Whether the agent may fetch the URL."""
        return self.parsed is None or bool(self.parsed.can_fetch(url, agent))

    def crawl_delay(self, agent: str) -> float | None:
        """Seconds between two requests, at most 300; None when the file does not say, or says nonsense."""
        delay = None if self.parsed is None else self.parsed.crawl_delay(agent)
        if delay is None or math.isnan(delay) or delay <= 0:
            return None
        return min(float(delay), float(MAX_CRAWL_DELAY_SEC))


class RobotsGate:
    """Lets a request pass, or raises; fetches robots.txt once for each scheme, host and port.

    Args:
        agent: the user agent; its product token is looked for in the file.
        site: code of the site, for the texts.
        get: sends a request in its turn, with retries, and follows no redirect.
        check_key: raises FetchError for a URL of another rate key.
        on_crawl_delay: gets the Crawl-delay (seconds, at most 300) of each file that has one.
        store: where files outlive the job.
    """

    def __init__(
        self,
        *,
        agent: str,
        site: str,
        get: Callable[[Hop], Answer],
        check_key: Callable[[httpx2.URL], None],
        on_crawl_delay: Callable[[float], None],
        store: RobotsStore | None = None,
    ) -> None:
        self._agent = agent
        self._site = site
        self._get = get
        self._check_key = check_key
        self._on_crawl_delay = on_crawl_delay
        self._store = store or NoStore()
        self._met: dict[str, Rules] = {}

    def check(self, hop: Hop) -> None:
        """Let the request pass.

        Raises:
            FetchError: of kind `robots`: forbidden, or nobody can know because the file cannot be had.
            BlockedError: robots.txt itself met a block; nothing is kept of that, and nothing fetched.
        """
        origin = str(hop.url.copy_with(username=None, password=None, raw_path=b"/"))
        rules = self._rules(origin, hop.url)
        host = hop.url.netloc.decode("ascii")
        facts = {"url": hop.shown, "host": host, "site": self._site, "why": rules.text.unreachable}
        if rules.text.at is not None:
            facts["time"] = f"{rules.text.at:%Y-%m-%d %H:%M}"
        if rules.text.unreachable is not None:
            raise FetchError("robots", str(hop.url), _unreachable(facts), rules.text.status)
        if not rules.allows(str(hop.url), self._agent):
            raise FetchError("robots", str(hop.url), _forbidden(facts))

    def _rules(self, origin: str, url: httpx2.URL) -> Rules:
        if origin in self._met:
            return self._met[origin]
        text = self._store.get(origin)
        if text is None:
            text = self._load(url)
            self._store.put(origin, text)
        rules = self._met[origin] = Rules.of(text)
        delay = rules.crawl_delay(self._agent)
        if delay is not None:
            self._on_crawl_delay(delay)
        return rules

    def _load(self, url: httpx2.URL) -> RobotsText:
        try:
            return self._fetch(url.copy_with(raw_path=b"/robots.txt"))
        except FetchError as error:
            if error.kind in _NOT_ABOUT_ROBOTS:
                raise
            return RobotsText(unreachable=str(error), status=error.status)

    def _fetch(self, url: httpx2.URL) -> RobotsText:
        hop = Hop(
            method="GET",
            url=url,
            headers={"accept": "text/plain,*/*;q=0.8"},
            body=None,
            origin=url,
            max_bytes=MAX_BYTES,
            total_sec=TOTAL_SEC,
            cut_at_limit=True,
            is_robots_file=True,
        )
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._get(hop)
            if answer.location is None:
                # Bytes that are not UTF-8 spoil their own line only.
                body = answer.body.decode("utf-8-sig", errors="replace")
                return RobotsText(body if 200 <= answer.status < 300 else None)
            following = self._following(hop, answer.status, answer.location)
            if following is None:
                return RobotsText()
            hop = following
        _log.info("robots_redirects_without_end", site=self._site, url=str(url))
        return RobotsText()

    def _following(self, hop: Hop, status: int, location: str) -> Hop | None:
        """The redirect's target; None where it may not be fetched: then there is no file (§2.3.1.3), not a locked one."""
        try:
            following = redirected(hop, status, location)
            self._check_key(following.url)
        except FetchError as error:
            _log.info("robots_redirect_not_followed", site=self._site, url=hop.shown, reason=str(error))
            return None
        return following


def _unreachable(facts: Mapping[str, object]) -> Sentence:
    if "time" in facts:
        return stored(
            "%(url)s was not fetched, because the robots.txt of %(host)s could not be had (asked for at %(time)s UTC), and "
            "until it can, nothing there may be fetched (RFC 9309): %(why)s Who may fetch it all the same sets "
            "obey_robots: false on site %(site)s.",
            **facts,
        )
    return stored(
        "%(url)s was not fetched, because the robots.txt of %(host)s could not be had, and until it can, nothing there may "
        "be fetched (RFC 9309): %(why)s Who may fetch it all the same sets obey_robots: false on site %(site)s.",
        **facts,
    )


def _forbidden(facts: Mapping[str, object]) -> Sentence:
    if "time" in facts:
        return stored(
            "%(url)s was not fetched, because the robots.txt of %(host)s forbids it (asked for at %(time)s UTC). Who may "
            "fetch it all the same sets obey_robots: false on site %(site)s.",
            **facts,
        )
    return stored(
        "%(url)s was not fetched, because the robots.txt of %(host)s forbids it. Who may fetch it all the same sets "
        "obey_robots: false on site %(site)s.",
        **facts,
    )
