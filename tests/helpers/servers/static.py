"""A folder of HTML files as a web site, byte for byte, with generated list pages.

Also a program: `python -m tests.helpers.servers.static FOLDER` prints its address and serves until it is ended.
"""

from __future__ import annotations

import argparse
import mimetypes
import signal
import threading
from email.utils import formatdate
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from tests.helpers.servers.base import Exchange, Server, Site, list_page, not_found

LIST = "/list/index_"


class StaticSite(Site):
    """Serves `folder`, and `/list/index_1.html`, `/list/index_2.html`, … with links to all its HTML files.

    The page after the last one has an empty list, like every later one. HTML is sent without a charset, as Debian's
    web servers do: the files say it themselves.

    Args:
        folder: a folder of HTML files; links in it are followed.
        list_size: links on a list page.
        limit: only the first so many files are linked.
        validators: send Last-Modified and answer conditional requests.
    """

    def __init__(
        self, folder: Path, *, list_size: int = 20, limit: int | None = None, validators: bool = False
    ) -> None:
        self.folder = folder
        self.list_size = list_size
        self.validators = validators
        self.files = sorted(path.relative_to(folder) for path in folder.rglob("*.html") if path.is_file())[
            :limit
        ]
        if not self.files:
            raise ValueError(f"There is no HTML file in {folder}.")

    @property
    def list_pages(self) -> int:
        """How many list pages have links."""
        return -(-len(self.files) // self.list_size)

    def url_path(self, file: Path) -> str:
        """The path under which a file of `files` is served."""
        return "/" + quote(file.as_posix())

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path.startswith(LIST):
            self._send_list(exchange, path.removeprefix(LIST).removesuffix(".html"))
        else:
            self._send_file(exchange, path)

    def _send_list(self, exchange: Exchange, number: str) -> None:
        if not number.isdecimal() or int(number) < 1:
            not_found(exchange)
            return
        first = (int(number) - 1) * self.list_size
        files = self.files[first : first + self.list_size]
        exchange.send(list_page((self.url_path(file), file.as_posix()) for file in files))

    def _send_file(self, exchange: Exchange, path: str) -> None:
        parts = PurePosixPath(path).parts[1:]
        file = self.folder.joinpath(*parts)
        if file.is_dir():
            file /= "index.html"
        if ".." in parts or not file.is_file():
            not_found(exchange)
            return
        exchange.send(
            file.read_bytes(),
            content_type=mimetypes.guess_type(file.name)[0] or "application/octet-stream",
            last_modified=formatdate(file.stat().st_mtime, usegmt=True) if self.validators else None,
        )


def main() -> None:
    """Serve a folder until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="Serve a folder of HTML files with list pages.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--list-size", type=int, default=20)
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    site = StaticSite(arguments.folder, list_size=arguments.list_size, limit=arguments.limit)
    with Server(site, host=arguments.host, port=arguments.port) as server:
        print(server.url, flush=True)  # noqa: T201 - the one thing the program says
        ended.wait()


if __name__ == "__main__":
    main()
