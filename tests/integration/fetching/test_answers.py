"""What becomes of good, bad and hostile answers."""

from __future__ import annotations

import gzip
import tracemalloc
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.helpers.fetching import JOB, KEY, Fetchers, Scripted, failure, utc_now
from tests.helpers.servers.base import Exchange, Server
from tests.helpers.servers.blocking import BlockingSite
from tests.helpers.servers.hostile import ARTICLE, HostileSite, gzip_bomb
from webqueue.handlers.protocol import BlockedError, FetchError, HttpOptions, Request


def test_an_answer(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)
    before = utc_now()

    response = fetcher.fetch(Request(f"{hostile.url}/ok?token=geheim#part", headers={"X-Own": "1"}))

    assert (response.status, response.url) == (200, f"{hostile.url}/ok?token=geheim")
    assert response.body.decode() == ARTICLE
    assert response.headers["content-type"].startswith("text/html")
    (request,) = hostile.requests
    assert request.headers["user-agent"] == "webqueue-test/1 (+mailto:nobody@example.org)"
    assert request.headers["accept-encoding"] == "gzip, deflate"
    assert request.headers["host"] == f"127.0.0.1:{hostile.port}"
    assert request.headers["x-own"] == "1"
    assert (fetcher.requests, fetcher.bytes, fetcher.statuses) == (1, len(ARTICLE.encode()), {200: 1})
    assert fetcher.last_request_at is not None
    assert before <= fetcher.last_request_at <= utc_now()
    (line,) = make.lines
    assert (line.key, line.job, line.host, line.method) == (KEY, JOB, "127.0.0.1", "GET")
    assert (line.status, line.error, line.bytes, line.robots) == (200, None, len(ARTICLE.encode()), "off")
    assert line.url == f"{hostile.url}/ok?token=***"
    assert before <= line.at <= fetcher.last_request_at
    assert 0 < line.ms < 5000


def test_nothing_comes_from_the_environment(
    make: Fetchers, hostile: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password geheim\n")
    monkeypatch.setenv("NETRC", str(netrc))

    make(hostile.url).fetch(Request(f"{hostile.url}/ok"))

    assert "authorization" not in hostile.requests[0].headers


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418])
def test_statuses_of_the_400s_are_answers(make: Fetchers, hostile: Server, status: int) -> None:
    assert make(hostile.url).fetch(Request(f"{hostile.url}/status/{status}")).status == status
    assert len(hostile.requests) == 1


def test_a_server_error_is_tried_three_times(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)

    error = failure(fetcher, f"{hostile.url}/500")

    assert (error.kind, error.status) == ("status", 500)
    assert str(error).startswith(f"{hostile.url}/500: HTTP 500 from 127.0.0.1 (3 tries).")
    assert len(hostile.requests) == 3
    assert (fetcher.requests, fetcher.statuses) == (3, {500: 3})
    assert [line.status for line in make.lines] == [500, 500, 500]


def test_the_third_try_may_succeed(make: Fetchers) -> None:
    def answer(exchange: Exchange) -> None:
        match exchange.request.number:
            case 1:
                exchange.send("no", status=502)
            case 2:
                exchange.keep_alive = False
                exchange.start(200, {"Content-Length": "100"}, b"cut")
            case _:
                exchange.send("yes")

    with Server(Scripted({"/": answer})) as server:
        assert make(server.url).fetch(Request(server.url)).body == b"yes"
        assert len(server.requests) == 3
    assert [(line.status, line.error) for line in make.lines] == [
        (502, None),
        (200, "network"),
        (200, None),
    ]


@pytest.mark.parametrize("path", ["/cut", "/nonsense", "/headers-huge"])
def test_broken_connections_are_tried_three_times(make: Fetchers, hostile: Server, path: str) -> None:
    error = failure(make(hostile.url), f"{hostile.url}{path}")

    assert error.kind == "network"
    assert "3 tries" in str(error)
    assert path in str(error)
    assert len(hostile.requests) == 3
    assert [line.error for line in make.lines] == ["network"] * 3


def test_chunks_that_end_too_early_are_a_broken_connection(make: Fetchers) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.keep_alive = False
        exchange.start(200, {"Transfer-Encoding": "chunked"}, b"5\r\nhello\r\n")

    with Server(Scripted({"/": answer})) as server:
        assert failure(make(server.url), server.url).kind == "network"


def test_a_packed_body_that_is_cut_where_only_the_end_of_the_connection_ends_it(make: Fetchers) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.keep_alive = False
        exchange.start(
            200, {"Content-Encoding": "gzip", "Connection": "close"}, gzip.compress(b"x" * 999)[:-4]
        )

    with Server(Scripted({"/": answer})) as server:
        assert failure(make(server.url), server.url).kind == "network"
        assert len(server.requests) == 3


def test_a_name_that_does_not_exist(make: Fetchers) -> None:
    error = failure(make("http://x.invalid"), "http://x.invalid/")

    assert error.kind == "network"
    assert "x.invalid was not found" in str(error)


def test_a_post_is_not_repeated_once_it_may_have_arrived(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)

    assert failure(fetcher, Request(f"{hostile.url}/500", "POST", body=b"a=1")).status == 500
    assert failure(fetcher, Request(f"{hostile.url}/cut", "POST", body=b"a=1")).kind == "network"
    assert [request.body for request in hostile.requests] == [b"a=1", b"a=1"]


def test_a_method_without_a_body_in_the_answer(make: Fetchers, hostile: Server) -> None:
    response = make(hostile.url).fetch(Request(f"{hostile.url}/ok", "HEAD", max_bytes=10))

    assert (response.status, response.body) == (200, b"")
    assert int(response.headers["content-length"]) > 10


@pytest.mark.parametrize("status", [429, 503, 412, 521])
@pytest.mark.parametrize("retry_after", [None, 7, "date", "nonsense"])
def test_blocks(make: Fetchers, status: int, retry_after: int | str | None) -> None:
    now = datetime.fromisoformat("2026-11-29T12:00:00Z")
    header = "Sun, 29 Nov 2026 12:00:09 GMT" if retry_after == "date" else retry_after
    site = BlockingSite(HostileSite(), after=1, status=status, retry_after=header)
    with Server(site) as server:
        fetcher = make(server.url, now=lambda: now)
        fetcher.fetch(Request(f"{server.url}/ok"))
        with pytest.raises(BlockedError) as caught:
            fetcher.fetch(Request(f"{server.url}/ok"))

    assert caught.value.reason == f"HTTP {status} from 127.0.0.1"
    assert caught.value.url == f"{server.url}/ok"
    assert caught.value.retry_after == {None: None, 7: 7, "date": 9, "nonsense": None}[retry_after]
    assert len(site.refused) == 1, "a block is no failure to be tried again"
    assert [line.status for line in make.lines] == [200, status]


def test_two_gigabytes_that_are_announced_are_refused_unread(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)

    error = failure(fetcher, f"{hostile.url}/huge")

    assert error.kind == "too_large"
    assert "larger than 20000000 bytes" in str(error)
    assert (fetcher.bytes, len(hostile.requests)) == (0, 1)


def test_two_gigabytes_without_a_word_are_refused_at_the_limit(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)
    tracemalloc.start()
    try:
        error = failure(fetcher, Request(f"{hostile.url}/huge-unannounced", max_bytes=2_000_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert error.kind == "too_large"
    assert 2_000_000 < fetcher.bytes < 2_200_000
    assert peak < 8_000_000


def test_the_limit_is_exact(make: Fetchers) -> None:
    with Server(Scripted({"/": lambda exchange: exchange.send(b"x" * 1000)})) as server:
        fetcher = make(server.url)

        assert len(fetcher.fetch(Request(server.url, max_bytes=1000)).body) == 1000
        assert failure(fetcher, Request(server.url, max_bytes=999)).kind == "too_large"


def test_the_limit_counts_what_was_unpacked(make: Fetchers) -> None:
    packed = gzip.compress(bytes(range(256)) * 40)

    def answer(exchange: Exchange) -> None:
        exchange.send(packed, headers={"Content-Encoding": "gzip"})

    with Server(Scripted({"/": answer})) as server:
        fetcher = make(server.url)

        assert len(fetcher.fetch(Request(server.url, max_bytes=10_240)).body) == 10_240
        assert failure(fetcher, Request(server.url, max_bytes=10_239)).kind == "too_large"


def test_a_bomb_costs_little_memory(make: Fetchers, hostile: Server) -> None:
    gzip_bomb()  # made once; here, so that its making is not counted
    fetcher = make(hostile.url)
    tracemalloc.start()
    try:
        error = failure(fetcher, Request(f"{hostile.url}/gzip-bomb", max_bytes=2 * 1024**3))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert error.kind == "too_large"
    assert "bomb" in str(error)
    assert len(hostile.requests) == 1
    # Of the 1100 MiB that it would unpack to; the server's own copy of the packed form is in it.
    assert peak < 16 * 1024**2


@pytest.mark.parametrize(("path", "text"), [("/gzip-broken", "ends too early"), ("/brotli-claimed", "'br'")])
def test_what_cannot_be_unpacked(make: Fetchers, hostile: Server, path: str, text: str) -> None:
    error = failure(make(hostile.url), f"{hostile.url}{path}")

    assert error.kind == "decoding"
    assert text in str(error)
    assert len(hostile.requests) == 1


def test_silence_is_a_time_out(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url, http=HttpOptions(timeout_sec=0.1))

    error = failure(fetcher, f"{hostile.url}/never")

    assert error.kind == "timeout"
    assert "silent for 0.1 s (3 tries)" in str(error)
    assert [line.error for line in make.lines] == ["timeout"] * 3


def test_a_drip_ends_at_the_total_deadline(make: Fetchers, hostile: Server) -> None:
    error = failure(make(hostile.url), Request(f"{hostile.url}/slow-drip", total_sec=0.2))

    assert error.kind == "timeout"
    assert "not complete within 0.2 s (3 tries)" in str(error)
    assert [line.error for line in make.lines] == ["timeout"] * 3


def test_a_drip_of_headers_ends_at_the_total_deadline(make: Fetchers) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.keep_alive = False
        for _ in range(1000):
            exchange.write(b"H" if exchange.request.status else b"")
            exchange.request.status = 200
            exchange.wait(0.05)

    with Server(Scripted({"/": answer})) as server:
        error = failure(make(server.url), Request(server.url, total_sec=0.3))

    assert error.kind == "timeout"


@pytest.mark.parametrize("value", ["a\nb: c", "ü"])
def test_a_header_that_cannot_be_sent(make: Fetchers, hostile: Server, value: str) -> None:
    fetcher = make(hostile.url, http=HttpOptions(headers={"X-Own": value}))

    error = failure(fetcher, f"{hostile.url}/ok")

    assert error.kind == "network"
    assert "Check the headers" in str(error)
    assert hostile.requests == []


def test_cookies_are_kept_within_the_job(make: Fetchers) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.send("x", headers={"Set-Cookie": "visit=1; Path=/"})

    with (
        Server(Scripted({"/": answer})) as server,
        Server(Scripted({"/": answer}), host="127.0.0.2") as other,
    ):
        fetcher = make(server.url, http=HttpOptions(headers={"Cookie": "own=2"}))
        for url in (server.url, server.url, other.url):
            fetcher.fetch(Request(url))
        make(server.url).fetch(Request(server.url))

        assert [request.headers.get("cookie") for request in server.requests] == [
            "own=2",
            "own=2; visit=1",
            None,
        ]
        assert other.requests[0].headers.get("cookie") is None


def test_a_url_of_another_key_is_not_fetched(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url, key_of=lambda url: KEY if url.startswith(hostile.url) else "another")

    error = failure(fetcher, "http://user:geheim@www.example.org/")

    assert (error.kind, error.url) == ("other_key", "http://user:geheim@www.example.org/")
    assert "rate key another" in str(error)
    assert "geheim" not in str(error)
    assert fetcher.requests == 0


@pytest.mark.parametrize(
    "url", ["", "nonsense", "ftp://127.0.0.1/", "http://127.1/", "http://a@b@127.0.0.1/"]
)
def test_a_url_that_cannot_be_fetched(make: Fetchers, hostile: Server, url: str) -> None:
    error = failure(make(hostile.url), url)

    assert error.kind == "url"
    assert "cannot be fetched" in str(error)


def test_evidence_that_cannot_be_written_does_not_stop_the_crawl(
    make: Fetchers, hostile: Server, instance: Path
) -> None:
    (instance / "requests").write_text("in the way")

    assert make(hostile.url).fetch(Request(f"{hostile.url}/ok")).status == 200
    assert make.evidence.failures == 1


def test_a_proxy_that_cannot_be_used(make: Fetchers) -> None:
    with pytest.raises(FetchError, match="Site harbour: The site's proxy must be http://"):
        make("http://h/", http=HttpOptions(proxy="socks5://127.0.0.1:1080"))


def test_a_lull_longer_than_the_servers_patience(make: Fetchers) -> None:
    """The server closes the idle connection; the next request takes a new one and needs no second try."""

    def answer(exchange: Exchange) -> None:
        exchange.keep_alive = False
        exchange.send("x")

    with Server(Scripted({"/": answer})) as server:
        fetcher = make(server.url, interval_sec=0.1)
        for _ in range(3):
            fetcher.fetch(Request(server.url))

        assert fetcher.requests == len(server.requests) == 3
        assert fetcher.last_request_at is not None
        assert utc_now() - fetcher.last_request_at < timedelta(seconds=5)
