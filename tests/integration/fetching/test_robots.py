"""robots.txt (RFC 9309)."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from tests.helpers.fetching import KEY, Fetchers, Scripted, failure
from tests.helpers.servers.base import Exchange, Server
from tests.helpers.world import Clock
from webqueue.database import Database
from webqueue.handlers.protocol import BlockedError, FetchError, HttpOptions, Request
from webqueue.worker.robots import DatabaseRobots

FORBIDDING = "User-agent: *\nDisallow: /no\nAllow: /no/but\n"


def page(exchange: Exchange) -> None:
    exchange.send("a page")


def site(
    robots: str | bytes | Callable[[Exchange], None] | None, **answers: Callable[[Exchange], None]
) -> Scripted:
    pages = {"/yes": page, "/no": page, "/no/but": page}
    named = {f"/{name}": answer for name, answer in answers.items()}
    if callable(robots):
        return Scripted({**pages, **named, "/robots.txt": robots})
    return Scripted({**pages, **named}, robots=robots)


def test_what_is_forbidden_is_not_fetched(make: Fetchers) -> None:
    with Server(site(FORBIDDING)) as server:
        fetcher = make(server.url, obey_robots=True)

        error = failure(fetcher, f"{server.url}/no")
        assert fetcher.fetch(Request(f"{server.url}/yes")).status == 200
        assert fetcher.fetch(Request(f"{server.url}/no/but")).status == 200
        assert server.paths == ["/robots.txt", "/yes", "/no/but"], "the file once, the forbidden page never"

    assert error.kind == "robots"
    assert f"robots.txt of 127.0.0.1:{server.port} forbids it" in str(error)
    assert "obey_robots: false on site harbour" in str(error)


def test_it_can_be_switched_off(make: Fetchers) -> None:
    with Server(site(FORBIDDING)) as server:
        assert make(server.url, obey_robots=False).fetch(Request(f"{server.url}/no")).status == 200
        assert server.paths == ["/no"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_no_file_allows_everything(make: Fetchers, status: int) -> None:
    with Server(site(lambda exchange: exchange.send(FORBIDDING, status=status))) as server:
        assert make(server.url, obey_robots=True).fetch(Request(f"{server.url}/no")).status == 200


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_file_that_cannot_be_had_forbids_everything(make: Fetchers, status: int) -> None:
    with Server(site(lambda exchange: exchange.send("", status=status))) as server:
        fetcher = make(server.url, obey_robots=True)
        error = failure(fetcher, f"{server.url}/yes")
        failure(fetcher, f"{server.url}/no")
        assert server.paths == ["/robots.txt"] * 3, "three tries, once"

    assert (error.kind, error.status) == ("robots", status)
    assert f"HTTP {status} from 127.0.0.1 (3 tries)" in str(error)
    assert "obey_robots: false on site harbour" in str(error)


def test_a_connection_that_breaks_forbids_everything(make: Fetchers) -> None:
    def cut(exchange: Exchange) -> None:
        exchange.keep_alive = False
        exchange.start(200, {"Content-Length": "100"}, b"User-agent: *\n")

    with Server(site(cut)) as server:
        error = failure(make(server.url, obey_robots=True), f"{server.url}/yes")
        assert "/yes" not in server.paths

    assert error.kind == "robots"


def test_nobody_listens(make: Fetchers) -> None:
    with Server(site(None)) as server:
        url = server.url

    with pytest.raises(BlockedError, match="connection refused or reset 3 times"):
        make(url, obey_robots=True).fetch(Request(url))


@pytest.mark.parametrize("status", [429, 503, 412, 521])
def test_a_block_is_a_block(make: Fetchers, status: int) -> None:
    blocking = site(lambda exchange: exchange.send("", status=status, headers={"Retry-After": "30"}))
    with Server(blocking) as server:
        fetcher = make(server.url, obey_robots=True)
        with pytest.raises(BlockedError) as caught:
            fetcher.fetch(Request(f"{server.url}/yes"))

    assert (caught.value.reason, caught.value.retry_after) == (f"HTTP {status} from 127.0.0.1", 30)


@pytest.mark.parametrize(
    "robots",
    [
        FORBIDDING.encode("utf-8-sig"),
        FORBIDDING.replace("\n", "\r\n").encode(),
        FORBIDDING.replace("\n", "\r").encode(),
        b"# \xff\xfe broken\nUser-agent: *\nDisallow: /\xc3\x28\n" + FORBIDDING.encode(),
        FORBIDDING.encode() + b"\0" * 10,
        b"User-agent: webqueue-test\nDisallow: /no\n\nUser-agent: *\nDisallow: /\n",
    ],
    ids=["bom", "crlf", "cr", "broken utf-8", "nul", "by name"],
)
def test_files_as_they_come(make: Fetchers, robots: bytes) -> None:
    with Server(site(robots)) as server:
        fetcher = make(server.url, obey_robots=True)

        assert failure(fetcher, f"{server.url}/no").kind == "robots"
        assert fetcher.fetch(Request(f"{server.url}/yes")).status == 200


def test_it_is_asked_about_the_sites_own_user_agent(make: Fetchers) -> None:
    robots = "User-agent: harbourbot\nDisallow: /\n\nUser-agent: *\nDisallow:\n"
    with Server(site(robots)) as server:
        options = HttpOptions(user_agent="HarbourBot/2.0 (+https://example.org)")
        assert failure(make(server.url, obey_robots=True, http=options), f"{server.url}/yes").kind == "robots"
        assert make(server.url, obey_robots=True).fetch(Request(f"{server.url}/yes")).status == 200


def test_a_packed_file(make: Fetchers) -> None:
    packed = gzip.compress(FORBIDDING.encode())
    with Server(site(lambda exchange: exchange.send(packed, headers={"Content-Encoding": "gzip"}))) as server:
        assert failure(make(server.url, obey_robots=True), f"{server.url}/no").kind == "robots"


def test_half_a_megabyte_counts_and_the_rest_is_ignored(make: Fetchers) -> None:
    filling = "# filling\n" * 60_000
    with Server(site(FORBIDDING + filling + "Disallow: /yes\n")) as server:
        fetcher = make(server.url, obey_robots=True)

        assert fetcher.fetch(Request(f"{server.url}/yes")).status == 200
        assert failure(fetcher, f"{server.url}/no").kind == "robots"


def chain(exchange: Exchange) -> None:
    left = int(exchange.request.query.get("left", ["0"])[0])
    if left > 0:
        exchange.redirect(f"/chain?left={left - 1}")
    else:
        exchange.send(FORBIDDING, content_type="text/plain")


@pytest.mark.parametrize(("redirects", "obeyed"), [(1, True), (5, True), (6, False)])
def test_five_redirects_are_followed(make: Fetchers, redirects: int, obeyed: bool) -> None:
    start = f"/chain?left={redirects - 1}"
    with Server(site(lambda exchange: exchange.redirect(start), chain=chain)) as server:
        fetcher = make(server.url, obey_robots=True)
        if obeyed:
            assert failure(fetcher, f"{server.url}/no").kind == "robots"
        else:
            assert fetcher.fetch(Request(f"{server.url}/no")).status == 200
        assert len(server.requests_for("/chain")) == min(redirects, 5)


def test_a_redirect_to_another_key_is_not_followed(make: Fetchers) -> None:
    with Server(site(FORBIDDING), host="127.0.0.2") as other:
        away = site(lambda exchange: exchange.redirect(f"{other.url}/robots.txt"))
        with Server(away) as server:
            key_of = {server.url: KEY, other.url: "another"}
            fetcher = make(
                server.url, obey_robots=True, key_of=lambda url: key_of["/".join(url.split("/")[:3])]
            )

            assert fetcher.fetch(Request(f"{server.url}/no")).status == 200
            assert other.requests == []


def test_each_host_and_port_has_its_own(make: Fetchers) -> None:
    with Server(site(None)) as lenient, Server(site(FORBIDDING)) as strict:
        fetcher = make(lenient.url, obey_robots=True)

        assert fetcher.fetch(Request(f"{lenient.url}/no")).status == 200
        assert failure(fetcher, f"{strict.url}/no").kind == "robots"
        assert (lenient.paths, strict.paths) == (["/robots.txt", "/no"], ["/robots.txt"])


def test_a_redirect_does_not_lead_around_it(make: Fetchers) -> None:
    with Server(site(FORBIDDING)) as strict:
        with Server(site(None, away=lambda exchange: exchange.redirect(f"{strict.url}/no"))) as server:
            error = failure(make(server.url, obey_robots=True), f"{server.url}/away")
        assert strict.paths == ["/robots.txt"]

    assert error.kind == "robots"


@pytest.mark.parametrize(
    ("written", "reported", "in_force"),
    [
        ("0.3", [0.3], 0.3),
        ("0.01", [0.01], 0.05),
        ("100000", [300.0], 300.0),
        ("inf", [], 0.05),
        ("0", [], 0.05),
        ("-5", [], 0.05),
        ("nan", [], 0.05),
        ("soon", [], 0.05),
    ],
)
def test_a_crawl_delay_raises_the_interval(
    make: Fetchers, written: str, reported: list[float], in_force: float
) -> None:
    robots = f"User-agent: *\nDisallow: /no\nCrawl-delay: {written}\n"
    with Server(site(robots)) as server:
        fetcher = make(server.url, obey_robots=True, interval_sec=0.05)
        failure(fetcher, f"{server.url}/no")  # asks for the file and for nothing else
        failure(fetcher, f"{server.url}/no")

        assert make.crawl_delays == reported
        assert fetcher.interval_in_force == in_force
        assert server.paths == ["/robots.txt"]


def test_a_crawl_delay_holds_from_the_first_page_on(make: Fetchers) -> None:
    with Server(site("User-agent: *\nCrawl-delay: 0.3\n")) as server:
        fetcher = make(server.url, obey_robots=True)
        for _ in range(2):
            fetcher.fetch(Request(f"{server.url}/yes"))

        robots, first, second = server.requests
        assert robots.ended is not None
        assert first.ended is not None
        assert first.started - robots.ended >= 0.299
        assert second.started - first.ended >= 0.299


@pytest.fixture
def moment() -> Clock:
    return Clock()


def store_of(database: Database, moment: Clock, *, fresh: bool = False) -> DatabaseRobots:
    return DatabaseRobots(database, moment, fresh=fresh)


def test_a_file_is_kept_for_a_day_over_jobs(make: Fetchers, database: Database, moment: Clock) -> None:
    with Server(site(FORBIDDING + "Crawl-delay: 0.1\n")) as server:

        def run(*, fresh: bool = False) -> str:
            store = store_of(database, moment, fresh=fresh)
            fetcher = make(server.url, obey_robots=True, robots_store=store)
            error = failure(fetcher, f"{server.url}/no")
            assert fetcher.interval_in_force == 0.1
            return str(error)

        assert "asked for" not in run()
        moment.advance(86_399)
        assert "forbids it (asked for at 2026-11-29 12:00 UTC)" in run()
        assert len(server.requests) == 1
        moment.advance(1)
        run()
        assert len(server.requests) == 2
        run(fresh=True)
        assert server.paths == ["/robots.txt"] * 3


def test_that_there_is_none_is_kept_too(make: Fetchers, database: Database, moment: Clock) -> None:
    with Server(site(None)) as server:
        for _ in range(2):
            fetcher = make(server.url, obey_robots=True, robots_store=store_of(database, moment))
            assert fetcher.fetch(Request(f"{server.url}/no")).status == 200
        assert server.paths.count("/robots.txt") == 1


def test_one_that_cannot_be_had_forbids_for_a_while(
    make: Fetchers, database: Database, moment: Clock
) -> None:
    with Server(site(lambda exchange: exchange.send("", status=500))) as server:

        def run() -> FetchError:
            store = store_of(database, moment)
            return failure(make(server.url, obey_robots=True, robots_store=store), f"{server.url}/yes")

        run()
        moment.advance(299)
        error = run()
        assert (error.kind, error.status) == ("robots", 500)
        assert "could not be had (asked for at 2026-11-29 12:00 UTC)" in str(error)
        assert len(server.requests) == 3, "three tries, and no more"
        moment.advance(1)
        server.site = site(None)
        assert (
            make(server.url, obey_robots=True, robots_store=store_of(database, moment))
            .fetch(Request(f"{server.url}/yes"))
            .status
            == 200
        )


def test_a_block_for_robots_txt_is_not_kept(make: Fetchers, database: Database, moment: Clock) -> None:
    answers = iter([429, 404])
    blocking = site(lambda exchange: exchange.send("", status=next(answers)))
    with Server(blocking) as server:
        with pytest.raises(BlockedError):
            make(server.url, obey_robots=True, robots_store=store_of(database, moment)).fetch(
                Request(f"{server.url}/yes")
            )
        assert "/yes" not in server.paths
        fetcher = make(server.url, obey_robots=True, robots_store=store_of(database, moment))
        assert fetcher.fetch(Request(f"{server.url}/yes")).status == 200


def test_ports_have_files_of_their_own(make: Fetchers, database: Database, moment: Clock) -> None:
    with Server(site(FORBIDDING)) as one, Server(site(None)) as other:
        fetcher = make(one.url, obey_robots=True, robots_store=store_of(database, moment))
        assert failure(fetcher, f"{one.url}/no").kind == "robots"
        assert fetcher.fetch(Request(f"{other.url}/no")).status == 200


def test_files_that_no_database_takes_as_they_are(make: Fetchers, database: Database, moment: Clock) -> None:
    with Server(site(b"\0\xff\n" + FORBIDDING.encode() + b"# " + b"x" * 600_000)) as server:
        for _ in range(2):
            fetcher = make(server.url, obey_robots=True, robots_store=store_of(database, moment))
            assert failure(fetcher, f"{server.url}/no").kind == "robots"
        assert len(server.requests) == 1


def test_the_file_itself_may_be_fetched(make: Fetchers) -> None:
    with Server(site("User-agent: *\nDisallow: /\n")) as server:
        assert make(server.url, obey_robots=True).fetch(Request(f"{server.url}/robots.txt")).status == 200


def test_an_address_that_is_refused_is_told_as_such(make: Fetchers) -> None:
    with Server(site(None)) as server:
        error = failure(make(server.url, obey_robots=True, allow_private=False), f"{server.url}/yes")
        assert server.requests == []

    assert error.kind == "address"
