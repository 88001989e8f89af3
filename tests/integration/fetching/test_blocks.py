"""Every form in which servers say "too much", and what only looks like it (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.helpers.fetching import KEY, Fetchers, Scripted, failure
from tests.helpers.servers.base import Exchange, Server
from tests.helpers.servers.hostile import HostileSite
from webqueue.handlers.protocol import BlockedError, HttpOptions, Request
from webqueue.politeness.challenges import DEFAULT_SIGNATURES, Signature
from webqueue.politeness.rate_key import host_of

CHALLENGE = "<!doctype html><title>Just a moment...</title><script>window._cf_chl_opt={}</script>"


def status(code: int, body: str = "", **headers: str) -> Callable[[Exchange], None]:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(body, status=code, headers=fields)


def in_turn(*answers: Callable[[Exchange], None]) -> Callable[[Exchange], None]:
    left = iter(answers)

    def answer(exchange: Exchange) -> None:
        next(left)(exchange)

    return answer


def test_nobody_listens(make: Fetchers) -> None:
    with Server(HostileSite()) as server:
        url = server.url

    with pytest.raises(BlockedError) as caught:
        make(url).fetch(Request(url))

    assert caught.value.reason == "connection refused or reset 3 times by 127.0.0.1"
    assert [line.error for line in make.lines] == ["network"] * 3


def test_connections_that_are_reset(make: Fetchers) -> None:
    with Server(HostileSite()) as server:
        fetcher = make(server.url)
        with pytest.raises(BlockedError, match="refused or reset 3 times"):
            fetcher.fetch(Request(f"{server.url}/reset"))
        assert len(server.requests) == 3


def test_an_answer_in_between_starts_the_count_again(make: Fetchers) -> None:
    reset, fine = HostileSite().respond, status(200, "fine")

    def broken(exchange: Exchange) -> None:
        exchange.request.path = "/reset"
        reset(exchange)

    with Server(Scripted({"/": in_turn(broken, broken, fine, broken, broken, fine)})) as server:
        fetcher = make(server.url)
        assert [fetcher.fetch(Request(server.url)).body for _ in range(2)] == [b"fine", b"fine"]
        assert len(server.requests) == 6


def test_three_posts_that_are_reset_although_none_is_repeated(make: Fetchers) -> None:
    with Server(HostileSite()) as server:
        fetcher = make(server.url)
        request = Request(f"{server.url}/reset", "POST", body=b"a=1")
        assert [failure(fetcher, request).kind for _ in range(2)] == ["network", "network"]
        with pytest.raises(BlockedError):
            fetcher.fetch(request)
        assert len(server.requests) == 3


def test_a_connection_that_ends_quietly_is_no_block(make: Fetchers) -> None:
    with Server(HostileSite()) as server:
        assert failure(make(server.url), f"{server.url}/cut").kind == "network"


def test_a_proxy_that_refuses_says_nothing_about_the_host(make: Fetchers) -> None:
    with Server(HostileSite()) as server:
        proxy = server.url

    fetcher = make("http://www.example.org/", http=HttpOptions(proxy=proxy, timeout_sec=5))

    assert failure(fetcher, "http://www.example.org/").kind == "network"


def test_forbidden_list_page(make: Fetchers) -> None:
    with Server(Scripted({"/list": status(403, Retry_After="90")})) as server:
        with pytest.raises(BlockedError) as caught:
            make(server.url).fetch(Request(f"{server.url}/list", is_list_page=True))
        assert len(server.requests) == 1

    assert (caught.value.reason, caught.value.retry_after) == (
        "HTTP 403 for a list page from 127.0.0.1",
        90,
    )


def test_a_list_page_that_redirects_to_a_forbidden_one(make: Fetchers) -> None:
    answers = {"/list": lambda exchange: exchange.redirect("/login"), "/login": status(403)}
    with Server(Scripted(answers)) as server, pytest.raises(BlockedError):
        make(server.url).fetch(Request(f"{server.url}/list", is_list_page=True))


def test_forbidden_articles(make: Fetchers) -> None:
    forbidden, fine = status(403), status(200)
    answers = in_turn(forbidden, forbidden, fine, forbidden, forbidden, forbidden)
    with Server(Scripted({"/": answers})) as server:
        fetcher = make(server.url)
        statuses = [fetcher.fetch(Request(server.url)).status for _ in range(5)]
        assert statuses == [403, 403, 200, 403, 403]
        with pytest.raises(BlockedError, match=r"HTTP 403 3 times in a row from 127\.0\.0\.1"):
            fetcher.fetch(Request(server.url))


def test_redirects_between_forbidden_articles_do_not_hide_them(make: Fetchers) -> None:
    answers = {"/": lambda exchange: exchange.redirect("/login"), "/login": status(403)}
    with Server(Scripted(answers)) as server:
        fetcher = make(server.url)
        assert [fetcher.fetch(Request(server.url)).status for _ in range(2)] == [403, 403]
        with pytest.raises(BlockedError):
            fetcher.fetch(Request(server.url))


def test_a_forbidden_robots_file_is_none_and_does_not_count(make: Fetchers) -> None:
    answers = {"/robots.txt": status(403), "/": in_turn(status(403), status(403), status(200))}
    with Server(Scripted(answers)) as server:
        fetcher = make(server.url, obey_robots=True)
        assert [fetcher.fetch(Request(server.url)).status for _ in range(3)] == [403, 403, 200]


def test_a_412_that_was_asked_for_is_an_answer(make: Fetchers) -> None:
    with Server(Scripted({"/": status(412)})) as server:
        fetcher = make(server.url)
        assert fetcher.fetch(Request(server.url, headers={"If-Match": '"1"'})).status == 412
        with pytest.raises(BlockedError, match="HTTP 412"):
            fetcher.fetch(Request(server.url, headers={"If-None-Match": '"1"'}))


@pytest.mark.parametrize("code", [200, 202])
def test_challenge_pages(make: Fetchers, code: int) -> None:
    with Server(Scripted({"/": status(code, CHALLENGE, Retry_After="30")})) as server:
        with pytest.raises(BlockedError) as caught:
            make(server.url).fetch(Request(server.url))
        assert len(server.requests) == 1

    assert caught.value.reason == f"challenge page (Cloudflare page, HTTP {code}) from 127.0.0.1"
    assert (caught.value.retry_after, caught.value.rate_key) == (30, None)


def test_a_challenge_instead_of_robots_txt(make: Fetchers) -> None:
    with Server(Scripted({"/robots.txt": status(200, CHALLENGE)})) as server:
        with pytest.raises(BlockedError, match="challenge"):
            make(server.url, obey_robots=True).fetch(Request(server.url))
        assert server.paths == ["/robots.txt"]


def test_signatures_of_ones_own(make: Fetchers) -> None:
    own = (Signature("ours", (200,), body="bitte warten"), *DEFAULT_SIGNATURES)
    with Server(Scripted({"/": status(200, "<p>Bitte warten</p>")})) as server:
        assert make(server.url).fetch(Request(server.url)).status == 200
        with pytest.raises(BlockedError, match="ours"):
            make(server.url, challenges=own).fetch(Request(server.url))


def test_a_redirect_to_a_challenge_host_names_that_hosts_key(make: Fetchers) -> None:
    there = "http://127.0.0.3:1/captcha?from=x"
    own = (Signature("captcha host", (302,), location=r"^http://127\.0\.0\.3[:/]"),)

    def key_of(url: str) -> str:
        return "captcha-key" if host_of(url) == "127.0.0.3" else KEY

    with Server(Scripted({"/": lambda exchange: exchange.redirect(there)})) as server:
        fetcher = make(server.url, challenges=own, key_of=key_of)
        with pytest.raises(BlockedError) as caught:
            fetcher.fetch(Request(server.url))

    assert (caught.value.url, caught.value.rate_key) == (there, "captcha-key")


def test_the_last_twenty_responses_are_remembered(make: Fetchers) -> None:
    with Server(HostileSite()) as server:
        fetcher = make(server.url)
        for number in range(25):
            fetcher.fetch(Request(f"{server.url}/ok?n={number}"))

    recent = fetcher.recent
    assert len(recent) == 20
    assert [line.url.rpartition("n=")[2] for line in recent] == [str(number) for number in range(5, 25)]
    assert {line.status for line in recent} == {200}
