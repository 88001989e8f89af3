"""The servers that the tests crawl do what they say, with clients that know nothing of webqueue."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.helpers.documentation import PACKAGES, documentation
from tests.helpers.servers import hostile
from tests.helpers.servers.base import Exchange, Server, Site
from tests.helpers.servers.blocking import BlockingSite
from tests.helpers.servers.hostile import HostileSite
from tests.helpers.servers.news import NewsSite
from tests.helpers.servers.static import StaticSite
from tests.helpers.waiting import wait_until


def get(server: Server, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(http.client.HTTPConnection(server.host, server.port, timeout=10)) as client:
        client.request(
            "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        answer = client.getresponse()
        return answer, answer.read()


def status_of(server: Server, path: str, **headers: str) -> int:
    return get(server, path, **headers)[0].status


def text_of(server: Server, path: str) -> str:
    return get(server, path)[1].decode()


def links_of(page: str) -> list[str]:
    """The links of the list, not those of the navigation."""
    return re.findall(r'<li><a href="([^"]*)">', page)


def raw(server: Server, path: str) -> socket.socket:
    """A connection on which a request has been sent and nothing been read."""
    connection = socket.create_connection((server.host, server.port), timeout=10)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
    return connection


@pytest.fixture
def nasty(serve: Serve) -> Server:
    return serve(HostileSite())


class TestServer:
    def test_each_request_is_logged_with_times_and_headers(self, serve: Serve) -> None:
        server = serve(NewsSite(), delay_sec=0.05)
        before = time.monotonic()
        get(server, "/news/index_1.html?a=1&b=%C3%A9", X_Probe="yes")
        get(server, "/nowhere")

        first, second = server.requests
        assert (first.number, first.method, first.path) == (1, "GET", "/news/index_1.html")
        assert first.query == {"a": ["1"], "b": ["é"]}
        assert first.headers["x-probe"] == "yes"
        assert first.status == 200
        wait_until(lambda: second.complete)
        assert first.complete
        assert first.ended is not None
        assert before <= first.started <= first.ended - 0.05
        assert second.status == 404
        assert second.started >= first.ended
        assert server.max_concurrent == 1
        assert server.paths == ["/news/index_1.html", "/nowhere"]

    def test_a_client_that_asks_again_at_once_is_not_taken_for_two(self, serve: Serve) -> None:
        server = serve(NewsSite())
        with closing(http.client.HTTPConnection(server.host, server.port, timeout=10)) as client:
            for _ in range(300):
                client.request("GET", "/news/index.html")
                client.getresponse().read()
        assert server.max_concurrent == 1

    def test_concurrent_requests_are_counted(self, serve: Serve) -> None:
        server = serve(HostileSite())
        with raw(server, "/never"), raw(server, "/never"), raw(server, "/never"):
            wait_until(lambda: server.in_flight == 3)
        wait_until(lambda: server.in_flight == 0, message="the server to notice that its clients are gone")
        assert server.max_concurrent == 3
        assert sorted(request.concurrent for request in server.requests) == [1, 2, 3]
        assert not any(request.complete for request in server.requests)

    def test_one_connection_serves_many_requests(self, serve: Serve) -> None:
        server = serve(NewsSite())
        with closing(http.client.HTTPConnection(server.host, server.port, timeout=10)) as client:
            for _ in range(3):
                client.request("HEAD", "/news/index.html")
                answer = client.getresponse()
                assert int(answer.headers["Content-Length"]) > 100
                assert answer.read() == b""
        assert len(server.requests) == 3

    def test_a_body_is_kept(self, serve: Serve) -> None:
        server = serve(NewsSite())
        with closing(http.client.HTTPConnection(server.host, server.port, timeout=10)) as client:
            client.request("POST", "/hook", body=b"hello")
            client.getresponse().read()
        assert server.requests[0].body == b"hello"

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "127.0.0.6"])
    def test_it_listens_on_any_loopback_address(self, serve: Serve, host: str) -> None:
        server = serve(NewsSite(), host=host)
        assert server.url == f"http://{host}:{server.port}"
        assert status_of(server, "/news/index.html") == 200

    def test_stopping_ends_what_hangs_and_leaves_no_thread(self) -> None:
        threads = set(threading.enumerate())
        server = Server(HostileSite())
        server.start()
        idle = http.client.HTTPConnection(server.host, server.port, timeout=10)
        idle.request("GET", "/ok")
        idle.getresponse().read()
        waiting = [raw(server, path) for path in ("/never", "/slow-drip", "/huge", "/huge-unannounced")]
        wait_until(lambda: server.in_flight == 4)

        server.stop()

        assert set(threading.enumerate()) == threads
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((server.host, server.port))
        for connection in waiting:
            connection.close()
        idle.close()

    def test_a_defect_of_a_site_is_reported(self) -> None:
        class Broken(Site):
            def respond(self, exchange: Exchange) -> None:
                raise ZeroDivisionError

        server = Server(Broken())
        server.start()
        with pytest.raises(http.client.RemoteDisconnected):
            get(server, "/")
        with pytest.raises(ExceptionGroup) as caught:
            server.stop()
        assert caught.value.subgroup(ZeroDivisionError)

    def test_robots(self, serve: Serve) -> None:
        site = NewsSite()
        server = serve(site)
        assert status_of(server, "/robots.txt") == 404
        site.robots = "User-agent: *\nDisallow: /news/article_3.html\n"
        assert text_of(server, "/robots.txt") == site.robots
        site.robots = b"\xef\xbb\xbfUser-agent: *\n"
        assert get(server, "/robots.txt")[1] == site.robots


class TestStaticSite:
    @pytest.mark.parametrize("package", PACKAGES)
    def test_lists_lead_to_every_file_byte_for_byte(self, serve: Serve, package: str) -> None:
        folder = documentation(package)
        site = StaticSite(folder)
        server = serve(site)

        listed = []
        page = 1
        while links := links_of(text_of(server, f"/list/index_{page}.html")):
            assert len(links) <= 20
            listed += links
            page += 1

        assert page - 1 == site.list_pages
        assert listed == [site.url_path(file) for file in site.files]
        assert len(set(listed)) == len(list(folder.rglob("*.html")))
        for file in site.files[:: max(1, len(site.files) // 25)]:
            answer, body = get(server, site.url_path(file))
            assert body == (folder / file).read_bytes()
            assert answer.headers["Content-Type"] == "text/html"

    def test_the_python_documentation_has_more_than_500_pages(self) -> None:
        assert len(StaticSite(documentation("python3.11-doc")).files) > 500

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "pages"
        (folder / "sub folder").mkdir(parents=True)
        (folder / "a.html").write_bytes(b"<p>\xff\x00 as it is")
        (folder / "sub folder" / "页 & 1.html").write_text("<p>deep", encoding="utf-8")
        (folder / "sub folder" / "index.html").write_text("<p>index", encoding="utf-8")
        (folder / "style.css").write_text("p {}", encoding="utf-8")
        (tmp_path / "secret.html").write_text("<p>outside", encoding="utf-8")
        return folder

    def test_odd_names_can_be_followed_and_other_files_are_served(self, serve: Serve, folder: Path) -> None:
        server = serve(StaticSite(folder, list_size=2))
        links = [
            *links_of(text_of(server, "/list/index_1.html")),
            *links_of(text_of(server, "/list/index_2.html")),
        ]
        assert [text_of(server, link)[:5] for link in links[1:]] == ["<p>in", "<p>de"]
        assert get(server, links[0])[1] == b"<p>\xff\x00 as it is"
        assert text_of(server, "/sub%20folder/") == "<p>index"
        assert get(server, "/style.css")[0].headers["Content-Type"] == "text/css"

    @pytest.mark.parametrize(
        "path",
        [
            "/../secret.html",
            "/%2e%2e/secret.html",
            "/nothing.html",
            "/list/index_0.html",
            "/list/index_x.html",
        ],
    )
    def test_what_does_not_exist_is_404(self, serve: Serve, folder: Path, path: str) -> None:
        assert status_of(serve(StaticSite(folder)), path) == 404

    def test_pages_after_the_last_are_empty_lists(self, serve: Serve, folder: Path) -> None:
        server = serve(StaticSite(folder, limit=1))
        assert len(links_of(text_of(server, "/list/index_1.html"))) == 1
        for number in (2, 3):
            page = text_of(server, f"/list/index_{number}.html")
            assert '<ul class="list">' in page
            assert links_of(page) == []

    def test_conditional_requests(self, serve: Serve, folder: Path) -> None:
        server = serve(StaticSite(folder, validators=True))
        stamp = get(server, "/a.html")[0].headers["Last-Modified"]
        answer, body = get(server, "/a.html", If_Modified_Since=stamp)
        assert (answer.status, body) == (304, b"")

    def test_it_is_a_program(self, folder: Path) -> None:
        command = [sys.executable, "-W", "error", "-m", "tests.helpers.servers.static", str(folder)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        ) as program:
            assert program.stdout is not None
            url = program.stdout.readline().strip()
            with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)) as client:
                client.request("GET", "/a.html")
                assert client.getresponse().read() == b"<p>\xff\x00 as it is"
            program.send_signal(signal.SIGTERM)
            assert program.wait(timeout=10) == 0


class TestNewsSite:
    @pytest.fixture
    def site(self) -> NewsSite:
        return NewsSite(pages=2, per_page=3, etags=True)

    @pytest.fixture
    def server(self, serve: Serve, site: NewsSite) -> Server:
        return serve(site)

    def test_the_newest_come_first_and_next_links_lead_through(self, server: Server, site: NewsSite) -> None:
        first = text_of(server, "/news/index.html")
        assert first == text_of(server, "/news/index_1.html")
        assert links_of(first) == [site.path_of(number) for number in (6, 5, 4)]
        following = re.findall(r'class="next" href="([^"]+)"', first)
        assert following == ["/news/index_2.html"]
        second = text_of(server, following[0])
        assert links_of(second) == [site.path_of(number) for number in (3, 2, 1)]
        assert 'class="next"' not in second
        assert links_of(text_of(server, "/news/index_3.html")) == []

    def test_articles_are_added_changed_and_removed(self, server: Server, site: NewsSite) -> None:
        site.add("A ship & a <storm>", "It was late.")
        page = text_of(server, site.path_of(7))
        assert "<h1>A ship &amp; a &lt;storm&gt;</h1>" in page
        assert "<p>It was late.</p>" in page
        assert links_of(text_of(server, "/news/index.html"))[0] == site.path_of(7)

        site.change(7, text="It was early.")
        assert "<p>It was early.</p>" in text_of(server, site.path_of(7))

        site.remove(7)
        site.remove(6, status=410)
        assert status_of(server, site.path_of(7)) == 404
        assert status_of(server, site.path_of(6)) == 410
        assert links_of(text_of(server, "/news/index.html"))[0] == site.path_of(5)

    def test_an_etag_holds_until_the_article_changes(self, server: Server, site: NewsSite) -> None:
        etag = get(server, site.path_of(1))[0].headers["ETag"]
        assert status_of(server, site.path_of(1), If_None_Match=etag) == 304
        site.change(1, title="Another")
        assert status_of(server, site.path_of(1), If_None_Match=etag) == 200

    def test_pinned_articles_head_every_page(self, server: Server, site: NewsSite) -> None:
        site.pin(1)
        for page in (1, 2):
            assert links_of(text_of(server, f"/news/index_{page}.html"))[0] == site.path_of(1)
        assert links_of(text_of(server, "/news/index_3.html")) == []

    def test_a_counter_differs_each_time(self, serve: Serve) -> None:
        site = NewsSite(1, 1, counter=True)
        server = serve(site)
        assert text_of(server, site.path_of(1)) != text_of(server, site.path_of(1))


class TestBlockingSite:
    def test_it_blocks_after_so_many_requests_until_it_is_told(self, serve: Serve) -> None:
        site = BlockingSite(NewsSite(), after=2, retry_after=10)
        server = serve(site)
        assert [status_of(server, "/news/index.html") for _ in range(4)] == [200, 200, 429, 429]
        answer, _ = get(server, "/news/index.html")
        assert answer.headers["Retry-After"] == "10"
        assert status_of(server, "/robots.txt") == 404
        assert [request.number for request in site.refused] == [3, 4, 5]
        assert site.blocks == 1
        site.unblock()
        assert [status_of(server, "/news/index.html") for _ in range(4)] == [200] * 4

    def test_it_blocks_for_a_time(self, serve: Serve) -> None:
        site = BlockingSite(NewsSite(), after=1, status=503, for_seconds=0.3)
        server = serve(site)
        assert [status_of(server, "/news/index.html") for _ in range(2)] == [200, 503]
        assert get(server, "/news/index.html")[0].headers["Retry-After"] is None
        wait_until(lambda: not site.blocking)
        assert [status_of(server, "/news/index.html") for _ in range(3)] == [200] * 3

    def test_it_blocks_again_and_again(self, serve: Serve) -> None:
        site = BlockingSite(NewsSite(), after=1, for_seconds=0.2, every=True)
        server = serve(site)
        for _ in range(2):
            assert [status_of(server, "/news/index.html") for _ in range(2)] == [200, 429]
            wait_until(lambda: not site.blocking)
        assert site.blocks == 2

    def test_a_block_by_hand_leaves_the_counting_alone(self, serve: Serve) -> None:
        site = BlockingSite(NewsSite(), after=1)
        server = serve(site)
        site.block()
        assert status_of(server, "/news/index.html") == 429
        site.unblock()
        assert [status_of(server, "/news/index.html") for _ in range(2)] == [200, 429]


class TestHostileSite:
    def test_never_answers(self, nasty: Server) -> None:
        with raw(nasty, "/never") as connection:
            wait_until(lambda: nasty.in_flight == 1)
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                connection.recv(1)

    def test_slow_drip_sends_a_byte_a_second(self, nasty: Server) -> None:
        begin = time.monotonic()
        with raw(nasty, "/slow-drip") as connection:
            got = b""
            while not got.endswith(b"\r\n\r\nxxx"):
                got += connection.recv(1)
            assert time.monotonic() - begin > 1.8, "and not all at once"

    @pytest.mark.parametrize(("path", "status"), [("/500", 500), ("/status/403", 403), ("/status/521", 521)])
    def test_statuses(self, nasty: Server, path: str, status: int) -> None:
        assert status_of(nasty, path) == status

    def test_cut(self, nasty: Server) -> None:
        with pytest.raises(http.client.IncompleteRead) as caught:
            get(nasty, "/cut")
        assert len(caught.value.partial) > 100
        assert caught.value.expected is not None
        assert caught.value.expected > 100

    @pytest.mark.parametrize(("path", "length"), [("/huge", str(2 * 1024**3)), ("/huge-unannounced", None)])
    def test_huge(self, nasty: Server, path: str, length: str | None) -> None:
        with closing(http.client.HTTPConnection(nasty.host, nasty.port, timeout=10)) as client:
            client.request("GET", path)
            answer = client.getresponse()
            assert answer.headers["Content-Length"] == length
            got = sum(len(answer.read(1024**2)) for _ in range(100))
            assert got == 100 * 1024**2
            answer.close()

    def test_redirects(self, nasty: Server) -> None:
        assert get(nasty, "/loop")[0].headers["Location"] == "/loop"
        path = "/chain/3"
        for _ in range(3):
            answer, _ = get(nasty, path)
            assert answer.status == 302
            path = answer.headers["Location"]
        assert status_of(nasty, path) == 200
        target = "http://169.254.169.254/latest?a=1"
        assert (
            get(nasty, "/redirect?to=http%3A%2F%2F169.254.169.254%2Flatest%3Fa%3D1")[0].headers["Location"]
            == target
        )
        answer, _ = get(nasty, "/redirect-nowhere")
        assert (answer.status, answer.headers["Location"]) == (302, None)

    def test_gzip_bomb(self, nasty: Server) -> None:
        answer, body = get(nasty, "/gzip-bomb")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert len(body) < 2 * 1024**2
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        unpacked = sum(len(unpacker.decompress(body[at : at + 65536])) for at in range(0, len(body), 65536))
        assert unpacker.eof  # zlib has compared length and checksum
        assert unpacked == hostile.BOMB_BYTES > 1024**3

    def test_claimed_encodings(self, nasty: Server) -> None:
        answer, body = get(nasty, "/brotli-claimed")
        assert answer.headers["Content-Encoding"] == "br"
        assert body == hostile.ARTICLE.encode()
        _, broken = get(nasty, "/gzip-broken")
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
        assert hostile.ARTICLE.encode().startswith(unpacker.decompress(broken))
        assert not unpacker.eof

    def test_lists(self, nasty: Server) -> None:
        assert links_of(text_of(nasty, "/empty-list")) == []
        assert links_of(text_of(nasty, "/list-to?to=/cut")) == ["/cut"]
        assert links_of(text_of(nasty, "/")) == ["/ok"]
        assert status_of(nasty, "/ok") == 200

    def test_latin1_claimed_utf8(self, nasty: Server) -> None:
        answer, body = get(nasty, "/latin1-claimed-utf8")
        assert "charset=utf-8" in answer.headers["Content-Type"]
        with pytest.raises(UnicodeDecodeError):
            body.decode()
        assert body.decode("latin-1") == hostile.ARTICLE

    def test_gb2312_needs_gb18030(self, nasty: Server) -> None:
        answer, body = get(nasty, "/gb2312")
        assert answer.headers["Content-Type"] == "text/html; charset=gb2312"
        for too_small in ("gb2312", "gbk"):
            with pytest.raises(UnicodeDecodeError):
                body.decode(too_small)
        assert body.decode("gb18030") == hostile.CHINESE

    @pytest.mark.parametrize(
        ("name", "content_type", "real"),
        [
            ("unknown", "text/html; charset=x-nobody-knows", "utf-8"),
            ("none", "text/html", "utf-8"),
            ("contradiction", "text/html; charset=gbk", "utf-8"),
            ("bom", "text/html; charset=gbk", "utf-8-sig"),
            ("broken-utf8", "text/html; charset=utf-8", None),
            ("binary", "text/html", None),
        ],
    )
    def test_bad_charsets(self, nasty: Server, name: str, content_type: str, real: str | None) -> None:
        answer, body = get(nasty, f"/bad-charset/{name}")
        assert answer.headers["Content-Type"] == content_type
        if real is None:
            with pytest.raises(UnicodeDecodeError):
                body.decode()
        else:
            assert "naïve façade" in body.decode(real).replace("\n", " ")

    def test_reset(self, nasty: Server) -> None:
        with raw(nasty, "/reset") as connection, pytest.raises(ConnectionResetError):
            connection.recv(1)

    def test_nonsense(self, nasty: Server) -> None:
        with pytest.raises(http.client.BadStatusLine):
            get(nasty, "/nonsense")

    def test_huge_headers(self, nasty: Server) -> None:
        with pytest.raises(http.client.HTTPException, match="more than 100 headers"):
            get(nasty, "/headers-huge")
        with raw(nasty, "/headers-huge") as connection, connection.makefile("rb") as answer:
            assert sum(len(line) for line in answer) > 200 * 8192

    def test_deep_nesting(self, nasty: Server) -> None:
        assert text_of(nasty, "/deep-nesting").count("<div>") == 100_000

    def test_anything_else_is_404(self, nasty: Server) -> None:
        assert [status_of(nasty, path) for path in ("/nothing", "/status/x", "/chain/")] == [404] * 3
