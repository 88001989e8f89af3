"""Requests in their turns, stops in the middle of anything, and the lease before each request."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.helpers.fetching import JOB, Background, Fetchers, Scripted, failure, utc_now
from tests.helpers.servers.base import Exchange, Server
from tests.helpers.waiting import wait_until
from webqueue.errors import LeaseLostError
from webqueue.handlers.fetching import Fetcher, interruption
from webqueue.handlers.protocol import HttpOptions, Request, StopRequested

INTERVAL = 0.2
# The server notes the end of an answer before it sends the last byte, and the beginning after the request has come:
# what it measures is never shorter than what the fetcher waited. This is for the clocks' resolution alone.
RESOLUTION = 0.001


def assert_spaced(server: Server, interval: float) -> None:
    """By the server's own log: never two at once, never closer than the interval from end to start."""
    requests = server.requests
    assert server.max_concurrent == 1
    for before, after in itertools.pairwise(requests):
        assert before.ended is not None
        gap = after.started - before.ended
        assert gap >= interval - RESOLUTION, f"{before.target} → {after.target}: {gap:.4f} s"


def test_robots_redirects_retries_and_pages_are_spaced(make: Fetchers) -> None:
    def unsteady(exchange: Exchange) -> None:
        exchange.send("x", status=500 if len(server.requests_for("/unsteady")) < 3 else 200)

    site = Scripted(
        {
            "/robots.txt": lambda exchange: exchange.redirect("/robots"),
            "/robots": lambda exchange: exchange.send(
                "User-agent: *\nDisallow: /no", content_type="text/plain"
            ),
            "/a": lambda exchange: exchange.redirect("/b"),
            "/b": lambda exchange: exchange.send("b"),
            "/unsteady": unsteady,
        }
    )
    with Server(site, delay_sec=0.05) as server:
        fetcher = make(server.url, obey_robots=True, interval_sec=INTERVAL)
        for path in ("/a", "/unsteady", "/b", "/missing"):
            fetcher.fetch(Request(server.url + path))

        assert server.paths == [
            *("/robots.txt", "/robots", "/a", "/b"),
            *("/unsteady", "/unsteady", "/unsteady", "/b", "/missing"),
        ]
        assert_spaced(server, INTERVAL)
    assert [line.robots for line in make.lines] == ["file"] * 2 + ["allowed"] * 7
    for before, after in itertools.pairwise(make.lines):
        assert after.at - before.at - timedelta(milliseconds=before.ms) >= timedelta(
            seconds=INTERVAL - RESOLUTION
        )


def test_the_interval_holds_between_two_jobs(make: Fetchers, hostile: Server) -> None:
    first = make(hostile.url, interval_sec=INTERVAL)
    first.fetch(Request(f"{hostile.url}/ok"))
    second = make(hostile.url, interval_sec=INTERVAL, last_request_at=first.last_request_at)
    second.fetch(Request(f"{hostile.url}/ok"))

    assert_spaced(hostile, INTERVAL)


def test_a_last_request_long_ago_delays_nothing(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url, interval_sec=3600, last_request_at=utc_now() - timedelta(hours=1))

    Background(lambda: fetcher.fetch(Request(f"{hostile.url}/ok"))).join()

    assert hostile.paths == ["/ok"]


def test_a_last_request_in_the_future_costs_one_interval(make: Fetchers, hostile: Server) -> None:
    """Another machine's clock is an hour ahead."""
    fetcher = make(hostile.url, interval_sec=0.3, last_request_at=utc_now() + timedelta(hours=1))
    began = time.monotonic()

    Background(lambda: fetcher.fetch(Request(f"{hostile.url}/ok"))).join()

    (request,) = hostile.requests
    assert request.started - began >= 0.3 - RESOLUTION, "one interval, and not an hour"


def test_threads_of_one_job_take_turns(make: Fetchers) -> None:
    with Server(Scripted({"/": lambda exchange: exchange.send("x")}), delay_sec=0.02) as server:
        fetcher = make(server.url, interval_sec=0.05)
        threads = [Background(lambda: fetcher.fetch(Request(server.url))) for _ in range(4)]
        for thread in threads:
            thread.join()

        assert len(server.requests) == 4
        assert_spaced(server, 0.05)


def test_the_backoff_grows(make: Fetchers, hostile: Server) -> None:
    failure(make(hostile.url, backoff_sec=0.15), f"{hostile.url}/500")

    first, second, third = hostile.requests
    assert first.ended is not None
    assert second.ended is not None
    assert second.started - first.ended >= 0.15 - RESOLUTION
    assert third.started - second.ended >= 0.30 - RESOLUTION


def test_the_backoff_never_shortens_the_interval(make: Fetchers, hostile: Server) -> None:
    failure(make(hostile.url, backoff_sec=0.01, interval_sec=INTERVAL), f"{hostile.url}/500")

    assert_spaced(hostile, INTERVAL)


@pytest.fixture
def no_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits do not look for a stop by themselves, so that only the abort can have ended them."""
    monkeypatch.setattr(interruption, "LOOK_EVERY_SEC", 60.0)


def assert_abort_ends(fetcher: Fetcher, url: str) -> None:
    """Fetching the URL hangs; an abort ends it with StopRequested, and nothing can be fetched after."""
    running = Background(lambda: fetcher.fetch(Request(url)))
    assert not running.ends_within(0.3), f"it did not hang: {running.outcome}"

    fetcher.abort()

    assert isinstance(running.join(), StopRequested)
    with pytest.raises(StopRequested):
        fetcher.fetch(Request(url))


@pytest.mark.usefixtures("no_looking")
@pytest.mark.parametrize("path", ["/never", "/slow-drip"])
def test_an_abort_ends_a_hung_answer(make: Fetchers, hostile: Server, path: str) -> None:
    fetcher = make(hostile.url)

    assert_abort_ends(fetcher, hostile.url + path)

    (line,) = make.lines
    assert line.error == "stopped"
    wait_until(lambda: hostile.in_flight == 0, timeout=3, message="the server to see that the client is gone")


@pytest.mark.usefixtures("no_looking")
def test_an_abort_ends_an_endless_answer(make: Fetchers) -> None:
    """Bytes always there: nothing ever waits."""

    def answer(exchange: Exchange) -> None:
        exchange.start(200, {"Connection": "close"})
        while True:
            exchange.write(bytes(65_536))

    with Server(Scripted({"/": answer})) as server:
        fetcher = make(server.url)
        running = Background(lambda: fetcher.fetch(Request(server.url, max_bytes=10**15)))
        wait_until(lambda: server.in_flight == 1)
        fetcher.abort()
        assert isinstance(running.join(3), StopRequested)


@contextmanager
def hanging_port() -> Iterator[int]:
    """A port at which connections hang: its queue is full, and nobody takes from it."""
    with ExitStack() as stack:
        listener = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0), backlog=0)))
        port = int(listener.getsockname()[1])

        def hangs() -> bool:
            probe = stack.enter_context(closing(socket.socket()))
            probe.settimeout(0.2)
            try:
                probe.connect(("127.0.0.1", port))
            except TimeoutError:
                return True
            return False

        wait_until(hangs, timeout=20, message="the port's queue to be full")
        yield port


@pytest.mark.usefixtures("no_looking")
def test_an_abort_ends_a_connection_that_hangs(make: Fetchers) -> None:
    with hanging_port() as port:
        assert_abort_ends(make(f"http://127.0.0.1:{port}"), f"http://127.0.0.1:{port}/")


def test_a_connection_that_hangs_times_out(make: Fetchers) -> None:
    with hanging_port() as port:
        url = f"http://127.0.0.1:{port}/"
        error = failure(make(url, http=HttpOptions(timeout_sec=0.1)), url)

    assert error.kind == "timeout"
    assert f"no connection to 127.0.0.1 port {port} within 0.1 s (3 tries)" in str(error)


@pytest.mark.usefixtures("no_looking")
def test_an_abort_ends_a_handshake_that_hangs(make: Fetchers) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        assert_abort_ends(make(url), url)


@pytest.mark.usefixtures("no_looking")
def test_an_abort_ends_a_look_up_that_hangs(make: Fetchers) -> None:
    release = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        release.wait(30)
        return ["127.0.0.1"]

    try:
        assert_abort_ends(make("http://slow.example", resolve=resolve), "http://slow.example/")
    finally:
        release.set()


def test_a_look_up_that_hangs_times_out(make: Fetchers) -> None:
    release = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        release.wait(30)
        return ["127.0.0.1"]

    try:
        fetcher = make("http://slow.example", resolve=resolve, http=HttpOptions(timeout_sec=0.1))
        assert failure(fetcher, "http://slow.example/").kind == "timeout"
    finally:
        release.set()


@pytest.mark.usefixtures("no_looking")
def test_an_abort_ends_the_wait_for_a_turn(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url, interval_sec=300, last_request_at=utc_now())

    assert_abort_ends(fetcher, f"{hostile.url}/ok")

    assert hostile.requests == []
    assert make.lines == []


def test_an_abort_before_the_first_request(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)
    fetcher.abort()
    fetcher.abort()

    with pytest.raises(StopRequested):
        fetcher.fetch(Request(f"{hostile.url}/ok"))
    assert hostile.requests == []


def test_an_abort_after_the_end_does_no_harm(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)
    fetcher.close()
    fetcher.abort()
    fetcher.close()


@pytest.mark.parametrize("waiting_for", ["turn", "answer"])
def test_a_stop_that_nobody_tells_of_is_found(make: Fetchers, hostile: Server, waiting_for: str) -> None:
    stop = threading.Event()
    fetcher = make(
        hostile.url,
        interval_sec=300 if waiting_for == "turn" else 0,
        last_request_at=utc_now(),
        should_stop=stop.is_set,
    )
    running = Background(lambda: fetcher.fetch(Request(f"{hostile.url}/never")))
    assert not running.ends_within(0.2)

    stop.set()

    assert isinstance(running.join(), StopRequested)


def test_a_lost_lease_ends_the_wait_and_nothing_is_sent(make: Fetchers, hostile: Server) -> None:
    lost = threading.Event()

    def check_lease() -> None:
        if lost.is_set():
            raise LeaseLostError(JOB)

    fetcher = make(hostile.url, interval_sec=300, last_request_at=utc_now(), check_lease=check_lease)
    running = Background(lambda: fetcher.fetch(Request(f"{hostile.url}/ok")))
    assert not running.ends_within(0.2)

    lost.set()

    assert isinstance(running.join(), LeaseLostError)
    assert hostile.requests == []


def test_the_lease_is_checked_before_each_request_of_any_kind(make: Fetchers) -> None:
    """It ends after the second request: robots.txt and the first hop go out, the second hop does not."""
    site = Scripted(
        {"/a": lambda exchange: exchange.redirect("/b"), "/b": lambda exchange: exchange.send("b")}
    )
    with Server(site) as server:

        def check_lease() -> None:
            if len(server.requests) >= 2:
                raise LeaseLostError(JOB)

        fetcher = make(server.url, obey_robots=True, check_lease=check_lease)
        with pytest.raises(LeaseLostError):
            fetcher.fetch(Request(f"{server.url}/a"))

        assert server.paths == ["/robots.txt", "/a"]


def test_a_lost_lease_is_told_rather_than_the_stop_that_it_causes(make: Fetchers, hostile: Server) -> None:
    def check_lease() -> None:
        raise LeaseLostError(JOB)

    fetcher = make(hostile.url, should_stop=lambda: True, check_lease=check_lease)

    with pytest.raises(LeaseLostError):
        fetcher.fetch(Request(f"{hostile.url}/ok"))


def test_no_descriptor_is_left(make: Fetchers, hostile: Server) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("only Linux shows the open files of a process")
    fetcher = make(hostile.url)
    fetcher.fetch(Request(f"{hostile.url}/ok"))
    fetcher.close()
    before = len(list(descriptors.iterdir()))

    for _ in range(10):
        fetcher = make(hostile.url)
        for path in ("/ok", "/cut", "/chain/2", "/500"):
            try:
                fetcher.fetch(Request(hostile.url + path))
            except Exception:  # noqa: BLE001 - only what is left open is of interest
                continue
        fetcher.close()

    wait_until(lambda: len(list(descriptors.iterdir())) <= before + 2, message="the files to be closed")
