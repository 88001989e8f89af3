"""WARC files: what the server sent, read back by warcio; whole after a kill, and never two writers in one."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.helpers.pools import pool_of
from tests.helpers.servers.base import Exchange, Server, Site, list_page
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue.database import Database
from webqueue.documents import warc
from webqueue.documents.warc import Exchanged, WarcWriter, whole_members_end
from webqueue.errors import WebqueueError
from webqueue.handlers.crawl import CrawlHandler
from webqueue.models import Job
from webqueue.settings import Settings

T0 = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def engine_name() -> str:
    """WARC files have nothing to do with the database."""
    return "sqlite"


class PackingSite(Site):
    """A list and its articles, plain, packed by gzip, and in chunks; keeps the bodies as they went over the wire.

    Attributes:
        sent: by path.
    """

    def __init__(self) -> None:
        self.sent: dict[str, bytes] = {}

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path == "/news":
            links = [(f"/a/{number}", f"Article {number}") for number in range(6)] + [("/moved", "moved")]
            self._send(exchange, list_page(links))
        elif path == "/moved":
            exchange.redirect("/a/0")
        elif path == "/a/1":
            packed = gzip.compress(f"<title>{path}</title><p>Packed 北京市人民政府</p>".encode(), mtime=0)
            self._send(exchange, packed, {"Content-Encoding": "gzip", "Set-Cookie": "seen=1"})
        elif path == "/a/2":
            body = f"<title>{path}</title><p>In two chunks.</p>".encode()
            self.sent[path] = body
            exchange.start(200, {"Content-Type": "text/html", "Transfer-Encoding": "chunked"})
            for chunk in (body[:7], body[7:], b""):
                exchange.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        elif path == "/a/3":
            self._send(exchange, "not here", status=404)
        elif path == "/robots.txt":
            self._send(exchange, "User-agent: *\nAllow: /\n", {"Content-Type": "text/plain"})
        else:
            self._send(exchange, f"<title>{path}</title><p>The text of {path}.</p>")

    def _send(
        self, exchange: Exchange, body: bytes | str, headers: dict[str, str] | None = None, status: int = 200
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.sent[exchange.request.path] = content
        exchange.send(content, status=status, headers=headers)


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a file, their digests checked."""
    with path.open("rb") as file:
        return [
            {
                "type": record.rec_type,
                "url": record.rec_headers.get_header("WARC-Target-URI"),
                "id": record.rec_headers.get_header("WARC-Record-ID"),
                "with": record.rec_headers.get_header("WARC-Concurrent-To"),
                "http": record.http_headers,
                "body": record.raw_stream.read(),
            }
            for record in ArchiveIterator(file, check_digests="raise")
        ]


def exchanged(number: int, size: int = 400) -> Exchanged:
    dice = random.Random(number)
    return Exchanged(
        url=f"http://example.org/{number}",
        at=T0,
        method="GET",
        target=f"/{number}",
        request_headers=[("Host", "example.org")],
        request_body=b"",
        http_version="HTTP/1.1",
        status=200,
        reason="OK",
        response_headers=[("Content-Type", "text/plain")],
        body=dice.randbytes(size),
    )


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.warc.gz*"))


def responses(path: Path) -> list[str]:
    return [record["url"] for record in records(path) if record["type"] == "response"]


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


@pytest.fixture
def site() -> PackingSite:
    return PackingSite()


@pytest.fixture
def server(site: PackingSite) -> Iterator[Server]:
    with Server(site) as server:
        yield server


class TestACrawl:
    def crawl(self, world: World, settings: Settings, server: Server, **params: Any) -> Job:
        world.add_site("example", f"{server.url}/", http={"headers": {"X-Api-Key": "geheim"}})
        known = {"list_url": "/news", "max_pages": 1, "item_selector": "ul.list a"}
        world.add_target("news", handler="crawl", params=known | params)
        job_id = world.submit("news").id
        with pool_of(world.database, settings, {"crawl": CrawlHandler()}, threads=1):
            wait_until(lambda: world.job(job_id).finished_at, timeout=30, message="the job to end")
        return world.job(job_id)

    def test_keeps_what_the_server_sent(
        self, world: World, settings: Settings, server: Server, site: PackingSite
    ) -> None:
        job = self.crawl(world, settings.model_copy(update={"warc": True}), server, warc=True)
        assert job.status == "done", job.error_msg
        (path,) = files(settings.instance_path / "warc")
        assert path.name.endswith(".warc.gz"), "it is closed"
        info, *found = records(path)
        assert info["type"] == "warcinfo"
        pairs = list(zip(found[::2], found[1::2], strict=True))
        for response, request in pairs:
            # warcio writes the response first; each names the other.
            assert {response["type"], request["type"]} == {"response", "request"}
            assert request["with"] == response["id"]
            assert request["url"] == response["url"]
        by_path = {pair[0]["url"].removeprefix(server.url): pair for pair in pairs}
        assert set(by_path) == {"/robots.txt", *site.sent}
        assert len(pairs) == len(site.sent) + 2, "what a redirect led to was read twice, and is there twice"
        for name, (response, request) in ((name, by_path[name]) for name in site.sent):
            assert response["body"] == site.sent[name], name
            assert request["http"].statusline.endswith(f"{name} HTTP/1.1")
            assert request["http"].get_header("User-Agent")
            assert "geheim" not in str(request["http"])
        assert by_path["/a/3"][0]["http"].get_statuscode() == "404"
        packed = by_path["/a/1"][0]
        assert packed["http"].get_header("Content-Encoding") == "gzip"
        assert "人民政府" in gzip.decompress(packed["body"]).decode()
        chunked = by_path["/a/2"][0]["http"]
        assert chunked.get_header("Transfer-Encoding") is None
        assert chunked.get_header("X-Archive-Orig-Transfer-Encoding") == "chunked"

    @pytest.mark.parametrize(("installation", "target"), [(True, False), (False, True)])
    def test_keeps_nothing_unless_both_want_it(
        self, world: World, settings: Settings, server: Server, installation: bool, target: bool
    ) -> None:
        job = self.crawl(world, settings.model_copy(update={"warc": installation}), server, warc=target)
        assert job.status == "done"
        assert files(settings.instance_path / "warc") == []


class TestAFile:
    def test_goes_on_in_the_next_run_and_ends_when_it_is_full(self, tmp_path: Path) -> None:
        for number in range(6):
            now = T0 + timedelta(minutes=number)
            writer = WarcWriter(tmp_path, "news", lambda now=now: now, rotate_bytes=4_000)  # type: ignore[misc]
            writer.write(exchanged(number))
            writer.close()
        sizes = [path.stat().st_size for path in files(tmp_path)]
        assert len(sizes) == 2
        assert sorted(url for path in files(tmp_path) for url in responses(path)) == [
            f"http://example.org/{number}" for number in range(6)
        ]
        assert all(path.name.endswith(".warc.gz") for path in files(tmp_path))

    def test_has_one_writer(self, tmp_path: Path) -> None:
        one, other = (WarcWriter(tmp_path, "news", lambda: T0) for _ in range(2))
        for number in range(4):
            (one, other)[number % 2].write(exchanged(number))
        one.close()
        other.close()
        assert sorted(responses(path) for path in files(tmp_path)) == [
            ["http://example.org/0", "http://example.org/2"],
            ["http://example.org/1", "http://example.org/3"],
        ]

    def test_is_cut_back_to_its_last_whole_member_wherever_it_was_torn(self, tmp_path: Path) -> None:
        writer = WarcWriter(tmp_path, "news", lambda: T0)
        writer.write(exchanged(0))
        (path,) = files(tmp_path)
        whole = path.stat().st_size
        writer.write(exchanged(1))
        writer.close()
        (path,) = files(tmp_path)
        content = path.read_bytes()
        middle = next(
            end
            for end in range(len(content) - 1, whole, -1)
            if content[end : end + 3] == b"\x1f\x8b\x08" and whole_of(tmp_path, content[:end]) == end
        )
        torn = tmp_path / "torn"
        for end in range(whole, len(content)):
            torn.write_bytes(content[:end])
            assert whole_members_end(torn) == (middle if end >= middle else whole), end
        for rubbish in (b"\0" * 50, b"\x1f\x8b", b"x"):
            torn.write_bytes(content + rubbish)
            assert whole_members_end(torn) == len(content)

    def test_that_cannot_be_written_is_an_error_that_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "news").write_text("no folder")
        with pytest.raises(WebqueueError, match="The WARC file of news cannot be written"):
            WarcWriter(tmp_path, "news", lambda: T0).write(exchanged(0))

    def test_is_large_and_read_in_pieces(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(warc, "_CHUNK", 1_000)
        writer = WarcWriter(tmp_path, "news", lambda: T0)
        for number in range(5):
            writer.write(exchanged(number, size=10_000))
        writer.close()
        (path,) = files(tmp_path)
        assert whole_members_end(path) == path.stat().st_size > 50_000


def whole_of(folder: Path, content: bytes) -> int:
    path = folder / "probe"
    path.write_bytes(content)
    return whole_members_end(path)


WRITER = """
import random, sys
from datetime import UTC, datetime
from pathlib import Path
from webqueue.documents.warc import Exchanged, WarcWriter

writer = WarcWriter(Path(sys.argv[1]), "news", lambda: datetime.now(UTC), rotate_bytes=20_000_000)
number = int(sys.argv[2])
while True:
    body = random.Random(number).randbytes(300_000)
    writer.write(Exchanged(f"http://example.org/{number}", datetime.now(UTC), "GET", f"/{number}", [], b"", "HTTP/1.1", 200,
                           "OK", [], body))
    print('kept', number, flush=True)
    number += 1
"""


def kept(line: str) -> list[int]:
    """The number that a whole line of the writer tells; the others are of its log."""
    found = re.fullmatch(r"kept (\d+)\n", line)
    return [int(found[1])] if found else []


def test_after_kills_every_page_that_was_kept_is_there_once_and_whole(tmp_path: Path) -> None:
    told: list[int] = []
    for round_ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(round_ * 1_000)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        enough = len(told) + 2 + round_ * 3
        while len(told) < enough:
            told += kept(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = process.communicate()
        told += [number for line in rest.splitlines(keepends=True) for number in kept(line)]
        (path,) = files(tmp_path)
        assert path.name.endswith(".open")
        if round_ % 2:
            with path.open("ab") as file:  # what a kill, or a power cut, leaves of a member at worst
                file.write(gzip.compress(b"torn" * 1_000)[:-5])
    writer = WarcWriter(tmp_path, "news", lambda: T0)
    writer.write(exchanged(99_999))
    writer.close()
    (path,) = files(tmp_path)
    bodies: dict[str, list[str]] = {}
    for record in records(path):
        if record["type"] == "response":
            bodies.setdefault(record["url"], []).append(hashlib.sha256(record["body"]).hexdigest())
    for number in told:
        body = random.Random(number).randbytes(300_000)
        assert bodies.pop(f"http://example.org/{number}") == [hashlib.sha256(body).hexdigest()]
    assert len(bodies) <= 7, "at most one of each round that was not told any more, and the last"
