"""Where requests go: redirects, addresses, TLS, proxies."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

import pytest

from tests.helpers.fetching import KEY, Fetchers, Scripted, failure, resolver
from tests.helpers.requirements import lacking
from tests.helpers.servers.base import Exchange, Server
from tests.helpers.servers.hostile import ARTICLE, HostileSite
from webqueue.handlers.fetching import wire
from webqueue.handlers.fetching.addresses import why_refused
from webqueue.handlers.protocol import HttpOptions, Request


def test_redirects_are_followed(make: Fetchers, hostile: Server) -> None:
    fetcher = make(hostile.url)

    response = fetcher.fetch(Request(f"{hostile.url}/chain/10"))

    assert (response.status, response.url) == (200, f"{hostile.url}/chain/0")
    assert response.body.decode() == ARTICLE
    assert fetcher.statuses == {302: 10, 200: 1}
    assert [line.status for line in make.lines] == [302] * 10 + [200]


def test_eleven_are_too_many(make: Fetchers, hostile: Server) -> None:
    error = failure(make(hostile.url), f"{hostile.url}/chain/11")

    assert error.kind == "redirects"
    assert "more than 10 redirects" in str(error)
    assert len(hostile.requests) == 11


def test_a_circle_is_found(make: Fetchers, hostile: Server) -> None:
    error = failure(make(hostile.url), f"{hostile.url}/loop")

    assert (error.kind, error.status) == ("redirects", 302)
    assert "in a circle" in str(error)
    assert len(hostile.requests) == 1


def test_a_redirect_to_itself_that_sets_a_cookie_is_no_circle(make: Fetchers) -> None:
    def answer(exchange: Exchange) -> None:
        if "cookie" in exchange.request.headers:
            exchange.send("welcome")
        else:
            exchange.send(status=302, headers={"Location": "/", "Set-Cookie": "seen=1"})

    with Server(Scripted({"/": answer})) as server:
        assert make(server.url).fetch(Request(server.url)).body == b"welcome"


def test_a_redirect_without_a_location_is_an_answer(make: Fetchers, hostile: Server) -> None:
    response = make(hostile.url).fetch(Request(f"{hostile.url}/redirect-nowhere"))

    assert (response.status, response.body) == (302, b"Moved, but where?")


def test_not_modified_is_an_answer(make: Fetchers) -> None:
    with Server(Scripted({"/": lambda exchange: exchange.send("x", etag='"1"')})) as server:
        response = make(server.url).fetch(Request(server.url, headers={"If-None-Match": '"1"'}))

    assert (response.status, response.body) == (304, b"")


@pytest.mark.parametrize(("status", "method", "body"), [(303, "GET", b""), (307, "POST", b"a=1")])
def test_a_form_after_a_redirect(make: Fetchers, status: int, method: str, body: bytes) -> None:
    site = Scripted(
        {
            "/form": lambda exchange: exchange.redirect("/done", status),
            "/done": lambda exchange: exchange.send("ok"),
        }
    )
    with Server(site) as server:
        request = Request(f"{server.url}/form", "POST", headers={"Content-Type": "text/plain"}, body=b"a=1")
        assert make(server.url).fetch(request).body == b"ok"

        done = server.requests[-1]
        assert (done.method, done.body) == (method, body)
        assert ("content-type" in done.headers) is (method == "POST")


@pytest.mark.parametrize(
    "location", ["ftp://127.0.0.1/", "javascript:alert(1)", "http://127.1/", "http://a b/"]
)
def test_a_redirect_to_what_cannot_be_fetched(make: Fetchers, location: str) -> None:
    with Server(Scripted({"/": lambda exchange: exchange.redirect(location)})) as server:
        error = failure(make(server.url), server.url)

    assert (error.kind, error.status) == ("url", 302)
    assert "redirects (HTTP 302)" in str(error)


def test_a_redirect_to_another_key_is_not_followed(make: Fetchers) -> None:
    with Server(HostileSite(), host="127.0.0.2") as other:
        with Server(Scripted({"/": lambda exchange: exchange.redirect(f"{other.url}/ok")})) as server:
            fetcher = make(server.url, key_of=lambda url: KEY if "127.0.0.1" in url else "another")
            error = failure(fetcher, server.url)
        assert other.requests == []

    assert (error.kind, error.url) == ("other_key", f"{other.url}/ok")


def test_secrets_do_not_go_along_to_another_host_of_the_key(make: Fetchers) -> None:
    with Server(HostileSite(), host="127.0.0.2") as other:
        with Server(Scripted({"/": lambda exchange: exchange.redirect(f"{other.url}/ok")})) as server:
            options = HttpOptions(headers={"X-Api-Key": "geheim", "Accept-Language": "zh-CN"})
            request = Request(server.url, headers={"Authorization": "geheim", "Cookie": "geheim=1"})
            assert make(server.url, http=options).fetch(request).status == 200
            assert {"x-api-key", "authorization", "cookie"} <= server.requests[0].headers.keys()
        (arrived,) = other.requests

    assert "geheim" not in str(arrived.headers)
    assert arrived.headers["accept-language"] == "zh-CN"
    assert arrived.headers["host"] == f"127.0.0.2:{other.port}"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "inner.example"])
def test_private_addresses_are_refused(make: Fetchers, hostile: Server, host: str) -> None:
    url = f"http://{host}:{hostile.port}/ok"
    fetcher = make(
        url, allow_private=False, resolve=resolver({"inner.example": ["127.0.0.1"], "localhost": ["::1"]})
    )

    error = failure(fetcher, url)

    assert error.kind == "address"
    assert "a loopback address" in str(error)
    assert "WEBQUEUE_ALLOW_PRIVATE_ADDRESSES" in str(error)
    assert hostile.requests == []
    assert [line.error for line in make.lines] == ["address"]


def test_the_systems_resolver_is_asked(make: Fetchers, hostile: Server) -> None:
    url = f"http://localhost:{hostile.port}/ok"

    assert make(url).fetch(Request(url)).status == 200
    assert failure(make(url, allow_private=False), url).kind == "address"


@pytest.fixture
def public_second_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.2 passes for a public address, since tests reach no real one."""
    monkeypatch.setattr(
        wire, "why_refused", lambda address: None if address == "127.0.0.2" else why_refused(address)
    )


@pytest.mark.usefixtures("public_second_loopback")
def test_a_redirect_to_a_private_address_is_refused(make: Fetchers, hostile: Server) -> None:
    inner = f"http://inner.example:{hostile.port}/ok"
    with Server(Scripted({"/": lambda exchange: exchange.redirect(inner)}), host="127.0.0.2") as server:
        fetcher = make(server.url, allow_private=False, resolve=resolver({"inner.example": ["127.0.0.1"]}))
        error = failure(fetcher, server.url)
        assert len(server.requests) == 1

    assert error.kind == "address"
    assert error.url == inner
    assert hostile.requests == []


@pytest.mark.usefixtures("public_second_loopback")
def test_a_name_that_answers_differently_the_second_time(make: Fetchers) -> None:
    """DNS rebinding: whoever checks one answer and connects to the next would reach the inner server."""
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

    def closing_page(exchange: Exchange) -> None:
        exchange.keep_alive = False
        exchange.send("outer", headers={"Connection": "close"})

    with ExitStack() as stack:
        outer = stack.enter_context(Server(Scripted({"/": closing_page}), host="127.0.0.2"))
        inner = stack.enter_context(Server(HostileSite(), host="127.0.0.1", port=outer.port))
        url = f"http://rebinding.example:{outer.port}/"
        fetcher = make(url, allow_private=False, resolve=resolve)

        assert fetcher.fetch(Request(url)).body == b"outer"
        assert asked == ["rebinding.example"], "one look-up for one connection"
        assert failure(fetcher, url).kind == "address"
        assert inner.requests == []


@pytest.mark.usefixtures("public_second_loopback")
def test_of_several_addresses_only_permitted_ones_are_connected_to(make: Fetchers, hostile: Server) -> None:
    with Server(HostileSite(), host="127.0.0.2", port=hostile.port) as outer:
        url = f"http://both.example:{outer.port}/ok"
        names = resolver({"both.example": ["127.0.0.1", "10.0.0.1", "127.0.0.2"]})

        assert make(url, allow_private=False, resolve=names).fetch(Request(url)).status == 200
        assert (len(outer.requests), len(hostile.requests)) == (1, 0)


def test_an_address_that_does_not_answer_gives_way_to_the_next(make: Fetchers, hostile: Server) -> None:
    url = f"http://both.example:{hostile.port}/ok"

    assert (
        make(url, resolve=resolver({"both.example": ["127.0.0.9", "127.0.0.1"]})).fetch(Request(url)).status
        == 200
    )


def test_the_name_stays_the_host(make: Fetchers, hostile: Server) -> None:
    url = f"http://名字.example:{hostile.port}/ok"
    fetcher = make(url, resolve=resolver({"xn--eqro3o.example": ["127.0.0.1"]}))

    assert fetcher.fetch(Request(url)).status == 200
    assert make.lines[0].host == "xn--eqro3o.example"
    assert hostile.requests[0].headers["host"] == f"xn--eqro3o.example:{hostile.port}"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its key for old.example, that nobody trusts."""
    if shutil.which("openssl") is None:
        lacking("These tests need openssl (Debian: apt-get install openssl).")
    folder = tmp_path_factory.mktemp("tls")
    both = folder / "both.pem"
    names = ["-subj", "/CN=old.example", "-addext", "subjectAltName=DNS:old.example"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files],
        check=True,
        capture_output=True,
    )
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return both


class TLSServer:
    """Answers everything with `secure`, and keeps heads and the names that TLS asked for."""

    def __init__(
        self, certificate: Path, *, newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED
    ) -> None:
        self.names: list[str | None] = []
        self.heads: list[bytes] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        if newest != ssl.TLSVersion.MAXIMUM_SUPPORTED:
            with pytest.warns(DeprecationWarning, match="TLSv1"):
                context.maximum_version = newest
        context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                with closing(plain), suppress(OSError):
                    self._answer(plain)

    def _answer(self, plain: socket.socket) -> None:
        plain.settimeout(5)
        with self._context.wrap_socket(plain, server_side=True) as connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)
            self.heads.append(head)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecure")


OLD = resolver({"old.example": ["127.0.0.1"]})


def test_a_certificate_that_nobody_trusts(make: Fetchers, certificate: Path) -> None:
    with TLSServer(certificate) as server:
        url = f"https://old.example:{server.port}/"
        fetcher = make(url, resolve=OLD)
        error = failure(fetcher, url)

        assert error.kind == "network"
        assert "the certificate was refused" in str(error)
        assert "verify_tls: false" in str(error)
        assert fetcher.requests == 1, "another try would end no better"
        assert server.heads == []


def test_it_can_be_switched_off(make: Fetchers, certificate: Path) -> None:
    with TLSServer(certificate) as server:
        url = f"https://old.example:{server.port}/"
        fetcher = make(url, resolve=OLD, http=HttpOptions(verify_tls=False))

        assert fetcher.fetch(Request(url)).body == b"secure"
        assert server.names == ["old.example"]
        assert f"host: old.example:{server.port}\r\n" in server.heads[0].decode().lower()


def test_the_certificate_is_checked_against_the_name(
    make: Fetchers, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the certificate trusted: right for its name, wrong for another name at the same address."""
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr("webqueue.handlers.fetching.transport.tls_context", lambda **_: trusting)
    names = resolver({"old.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]})
    with TLSServer(certificate) as server:
        right, wrong = (f"https://{name}.example:{server.port}/" for name in ("old", "other"))

        assert make(right, resolve=names).fetch(Request(right)).body == b"secure"
        assert "Hostname mismatch" in str(failure(make(wrong, resolve=names), wrong))


def test_an_old_server_needs_legacy_tls(make: Fetchers, certificate: Path) -> None:
    with TLSServer(certificate, newest=ssl.TLSVersion.TLSv1) as server:
        url = f"https://old.example:{server.port}/"
        error = failure(make(url, resolve=OLD, http=HttpOptions(verify_tls=False)), url)
        legacy = make(url, resolve=OLD, http=HttpOptions(verify_tls=False, legacy_tls=True))

        assert legacy.fetch(Request(url)).body == b"secure"

    assert error.kind == "network"
    assert "legacy_tls: true" in str(error)


def test_https_to_a_server_that_speaks_none(make: Fetchers, hostile: Server) -> None:
    error = failure(make(hostile.url), f"https://127.0.0.1:{hostile.port}/")

    assert error.kind == "network"
    assert "TLS could not be agreed on" in str(error)


def test_a_proxy_gets_the_whole_url(make: Fetchers) -> None:
    with Server(Scripted({"/page": lambda exchange: exchange.send("by proxy")})) as proxy:
        options = HttpOptions(proxy=f"http://user:pass@127.0.0.1:{proxy.port}")
        # A private proxy is an administrator's choice; names are looked up by it, not here.
        fetcher = make("http://far.example/", http=options, allow_private=False, resolve=resolver({}))

        assert fetcher.fetch(Request("http://far.example/page")).body == b"by proxy"
        (request,) = proxy.requests
        assert request.target == "http://far.example/page"
        assert request.headers["host"] == "far.example"
        assert request.headers["proxy-authorization"] == "Basic dXNlcjpwYXNz"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "a.localhost", "[::1]", "169.254.169.254"])
def test_private_addresses_are_refused_behind_a_proxy_too(make: Fetchers, host: str) -> None:
    with Server(HostileSite()) as proxy:
        fetcher = make("http://far.example/", http=HttpOptions(proxy=proxy.url), allow_private=False)

        assert failure(fetcher, f"http://{host}/").kind == "address"
        assert proxy.requests == []


def test_https_goes_through_a_proxy(make: Fetchers, certificate: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(TLSServer(certificate))
        proxy = stack.enter_context(Tunnel(server.port))
        url = "https://old.example/"
        options = HttpOptions(proxy=f"http://127.0.0.1:{proxy.port}", verify_tls=False)
        fetcher = make(url, http=options, allow_private=False, resolve=resolver({}))

        assert fetcher.fetch(Request(url)).body == b"secure"
        assert proxy.asked.startswith(b"CONNECT old.example:443 HTTP/1.1\r\n")
        assert server.names == ["old.example"]


def test_a_proxy_that_refuses(make: Fetchers, hostile: Server) -> None:
    fetcher = make("https://far.example/", http=HttpOptions(proxy=hostile.url), resolve=resolver({}))

    error = failure(fetcher, "https://far.example/")

    assert error.kind == "network"
    assert "Check the site's proxy" in str(error)


class Tunnel:
    """A proxy for one CONNECT, which leads to a port of this machine whatever was asked for."""

    def __init__(self, target_port: int) -> None:
        self.asked = b""
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(("127.0.0.1", self._target_port)) as server:
            while b"\r\n\r\n" not in self.asked:
                self.asked += client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_pump, args=(server, client))
            back.start()
            _pump(client, server)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
