"""A fetcher for tests, with everything that a worker would give it, and small sites."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.helpers.servers.base import Exchange, Site, not_found
from webqueue.handlers.fetching import Fetcher
from webqueue.handlers.protocol import FetchError, HttpOptions, Request, SiteView
from webqueue.politeness.evidence import EvidenceLog, RequestLine

KEY = "the-key"
JOB = "0123456789ab"


class Scripted(Site):
    """Answers each path by a function; the others with 404."""

    def __init__(
        self, answers: Mapping[str, Callable[[Exchange], None]], *, robots: str | bytes | None = None
    ) -> None:
        self.answers = dict(answers)
        self.robots = robots

    def answer(self, exchange: Exchange) -> None:
        if exchange.request.path in self.answers:
            self.answers[exchange.request.path](exchange)
        else:
            super().answer(exchange)

    def respond(self, exchange: Exchange) -> None:
        not_found(exchange)


class Fetchers:
    """Makes fetchers, one evidence log for all, and closes them in the end."""

    def __init__(self, instance: Path, stack: ExitStack) -> None:
        self.evidence = EvidenceLog(instance)
        self.crawl_delays: list[float] = []
        self._stack = stack

    def __call__(
        self,
        url: str,
        *,
        obey_robots: bool = False,
        http: HttpOptions | None = None,
        interval_sec: float = 0.0,
        last_request_at: datetime | None = None,
        key_of: Callable[[str], str] = lambda _: KEY,
        should_stop: Callable[[], bool] = lambda: False,
        check_lease: Callable[[], None] = lambda: None,
        user_agent: str = "webqueue-test/1 (+mailto:nobody@example.org)",
        allow_private: bool = True,
        **others: Any,
    ) -> Fetcher:
        """A fetcher for the site at `url`, unspaced and with hardly any backoff unless told otherwise.

        It waits for a server longer than `Background.join` for its end: what ends in time was ended by something else.
        """
        site = SiteView(
            code="harbour",
            base_url=url,
            adapter="list",
            timezone="UTC",
            rate_key=KEY,
            obey_robots=obey_robots,
            http=http or HttpOptions(timeout_sec=60),
        )
        others.setdefault("backoff_sec", 0.001)
        fetcher = Fetcher(
            site,
            rate_key=KEY,
            interval_sec=interval_sec,
            last_request_at=last_request_at,
            key_of=key_of,
            should_stop=should_stop,
            check_lease=check_lease,
            evidence=self.evidence,
            job_id=JOB,
            user_agent=user_agent,
            allow_private=allow_private,
            on_crawl_delay=self.crawl_delays.append,
            **others,
        )
        self._stack.callback(fetcher.close)
        return fetcher

    @property
    def lines(self) -> list[RequestLine]:
        """The evidence so far."""
        return [line for day in self.evidence.days() for line in self.evidence.read(day)]


@contextmanager
def fetchers(instance: Path) -> Iterator[Fetchers]:
    """A maker of fetchers."""
    with ExitStack() as stack:
        made = Fetchers(instance, stack)
        stack.callback(made.evidence.close)
        yield made


def failure(fetcher: Fetcher, request: Request | str) -> FetchError:
    """The error that fetching ends with.

    Raises:
        AssertionError: it ended with an answer.
    """
    try:
        response = fetcher.fetch(Request(request) if isinstance(request, str) else request)
    except FetchError as error:
        return error
    raise AssertionError(f"There was an answer: {response}")


class Background:
    """Runs something in a thread and keeps how it ended."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.outcome: object = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def ends_within(self, seconds: float) -> bool:
        """Whether it has ended, or does so in the next seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def join(self, timeout: float = 20) -> object:
        """Wait for the end; what was returned, or the exception that was raised."""
        if not self.ends_within(timeout):
            raise AssertionError(f"It did not end within {timeout} s.")
        return self.outcome

    def _run(self) -> None:
        try:
            self.outcome = self._work()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.outcome = error


def resolver(names: Mapping[str, Sequence[str]]) -> Callable[[str, int], Sequence[str]]:
    """A resolver that knows these names only."""

    def resolve(host: str, port: int) -> Sequence[str]:
        return names.get(host, [host])

    return resolve


def utc_now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)


__all__ = [
    "JOB",
    "KEY",
    "Background",
    "Fetchers",
    "Scripted",
    "failure",
    "fetchers",
    "resolver",
    "utc_now",
]
