"""A site that does everything that servers should not do."""

from __future__ import annotations

import os
import socket
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Final
from urllib.parse import quote

from tests.helpers.servers.base import HTML, Exchange, Site, list_page, not_found

HUGE_BYTES: Final = 2 * 1024**3
BOMB_BYTES: Final = 1100 * 1024**2
NESTED_DIVS: Final = 100_000
MEBIBYTE: Final = bytes(1024**2)
ARTICLE: Final = (
    '<!doctype html>\n<html lang="en"><head><title>Café at the harbour</title></head><body><article>'
    "<h1>Café at the harbour</h1><p>The café at the old harbour is open again after long repairs, and its naïve "
    "façade has kept the colour that it had before the flood took the quay away.</p></article></body></html>\n"
)
# 镕 is not in GB2312 but in GBK; 㐂 and 𠮷 need the four bytes of GB18030.
CHINESE: Final = (
    '<!doctype html>\n<html lang="zh-CN"><head><meta charset="gb2312"><title>朱镕基与㐂寿司</title></head>'
    "<body><article><h1>朱镕基与㐂寿司</h1><p>本页声明为 gb2312，却使用了只有 GB18030 才有的汉字：镕、㐂、𠮷。"
    "阅读者应当看到完整的文字，而不是问号或者乱码。</p></article></body></html>\n"
)


class HostileSite(Site):
    """One path for each misbehaviour.

    ============================= ===================================================================
    /                             a list page with an ordinary article, /ok
    /ok                           the article
    /never                        takes the request and never answers
    /slow-drip                    promises 600 bytes and sends one each second
    /status/N, /500               that status
    /cut                          closes the connection in the middle of the promised body
    /huge                         2 GiB, announced; /huge-unannounced: without a Content-Length
    /loop                         a redirect to itself
    /chain/N                      N redirects, then the article
    /redirect?to=URL              a redirect to wherever is asked
    /redirect-nowhere             a redirect without Location
    /gzip-bomb                    about 1 MiB of gzip that inflates to 1.1 GiB
    /gzip-broken                  gzip that is cut off
    /brotli-claimed               plain HTML that says it is brotli
    /empty-list                   a list page without a link
    /list-to?to=PATH              a list page whose one link goes there
    /latin1-claimed-utf8          Latin-1 bytes under charset=utf-8
    /gb2312                       says gb2312 (header and meta) and uses characters of GB18030
    /bad-charset/unknown          a charset that does not exist
    /bad-charset/none             UTF-8 that says nothing
    /bad-charset/contradiction    the header says gbk, the meta element and the bytes are UTF-8
    /bad-charset/bom              a UTF-8 byte order mark under charset=gbk
    /bad-charset/broken-utf8      UTF-8 with impossible bytes in the middle
    /bad-charset/binary           random bytes called text/html
    /reset                        the connection is reset instead of an answer
    /nonsense                     an answer that is not HTTP
    /headers-huge                 200 header fields of 8 KiB
    /deep-nesting                 100,000 div elements, each in the other
    ============================= ===================================================================
    """

    def respond(self, exchange: Exchange) -> None:
        first, _, rest = exchange.request.path.removeprefix("/").partition("/")
        if first in {"status", "chain"} and rest.isdecimal():
            (_status if first == "status" else _chain)(exchange, int(rest))
            return
        answer = ANSWERS.get(exchange.request.path)
        if answer is None:
            not_found(exchange)
        else:
            answer(exchange)


def _never(exchange: Exchange) -> None:
    exchange.wait()


def _slow_drip(exchange: Exchange) -> None:
    exchange.start(200, {"Content-Type": HTML, "Content-Length": "600"})
    for _ in range(600):
        exchange.write(b"x")
        exchange.wait(1)


def _status(exchange: Exchange, status: int) -> None:
    exchange.send(f"<!doctype html><title>{status}</title>", status=status)


def _cut(exchange: Exchange) -> None:
    body = ARTICLE.encode()
    exchange.keep_alive = False
    exchange.start(200, {"Content-Type": HTML, "Content-Length": str(len(body))}, body[: len(body) // 2])


def _huge(exchange: Exchange) -> None:
    exchange.start(200, {"Content-Type": HTML, "Content-Length": str(HUGE_BYTES)})
    _write_zeros(exchange)


def _huge_unannounced(exchange: Exchange) -> None:
    exchange.keep_alive = False
    exchange.start(200, {"Content-Type": HTML, "Connection": "close"})
    _write_zeros(exchange)


def _write_zeros(exchange: Exchange) -> None:
    for _ in range(HUGE_BYTES // len(MEBIBYTE)):
        exchange.write(MEBIBYTE)


def _chain(exchange: Exchange, left: int) -> None:
    if left > 0:
        exchange.redirect(f"/chain/{left - 1}")
    else:
        exchange.send(ARTICLE)


def _redirect(exchange: Exchange) -> None:
    exchange.redirect(exchange.request.query.get("to", ["/ok"])[0])


def _redirect_nowhere(exchange: Exchange) -> None:
    exchange.send("Moved, but where?", status=302)


def _gzip_bomb(exchange: Exchange) -> None:
    exchange.send(gzip_bomb(), headers={"Content-Encoding": "gzip"})


def _gzip_broken(exchange: Exchange) -> None:
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    whole = packer.compress(ARTICLE.encode()) + packer.flush()
    exchange.send(whole[: len(whole) // 2], headers={"Content-Encoding": "gzip"})


def _list_to(exchange: Exchange) -> None:
    target = exchange.request.query.get("to", ["/ok"])[0]
    exchange.send(list_page([(quote(target, safe="/:?=&%#"), "The one link")]))


def _reset(exchange: Exchange) -> None:
    # With a linger time of 0 closing sends RST instead of FIN. The descriptor itself is closed, because the
    # handler's file objects would otherwise keep the socket open, and its orderly end would send FIN first.
    exchange.keep_alive = False
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(exchange.connection.detach())


def _nonsense(exchange: Exchange) -> None:
    exchange.keep_alive = False
    exchange.write(b"220 mail.example.org ESMTP ready\r\n")


def _headers_huge(exchange: Exchange) -> None:
    exchange.keep_alive = False
    fields = [("Content-Type", HTML), *((f"X-Padding-{number}", "x" * 8192) for number in range(200))]
    exchange.start(200, [*fields, ("Content-Length", "2")], b"ok")


def _deep_nesting(exchange: Exchange) -> None:
    exchange.send(f"<!doctype html><body>{'<div>' * NESTED_DIVS}deep{'</div>' * NESTED_DIVS}</body>")


def _page(body: bytes, content_type: str = HTML, **headers: str) -> Callable[[Exchange], None]:
    """An answer that is always the same; `_` in a header's name stands for `-`."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(body, content_type=content_type, headers=fields)


@cache
def gzip_bomb() -> bytes:
    """A gzip file of zeros, `BOMB_BYTES` long when it is unpacked; made once, in about a second.

    After a full flush a deflate block depends on nothing before it, so that the packed form of one MiB can be
    repeated.
    """
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(MEBIBYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    repeats = BOMB_BYTES // len(MEBIBYTE)
    checksum = 0
    for _ in range(repeats):
        checksum = zlib.crc32(MEBIBYTE, checksum)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # RFC 1952: gzip, deflate, no name, no time
    return head + block * repeats + packer.flush() + struct.pack("<II", checksum, BOMB_BYTES & 0xFFFFFFFF)


ANSWERS: Final[dict[str, Callable[[Exchange], None]]] = {
    "/": _page(list_page([("/ok", "An article")]).encode()),
    "/ok": _page(ARTICLE.encode()),
    "/never": _never,
    "/slow-drip": _slow_drip,
    "/500": lambda exchange: _status(exchange, 500),
    "/cut": _cut,
    "/huge": _huge,
    "/huge-unannounced": _huge_unannounced,
    "/loop": lambda exchange: exchange.redirect("/loop"),
    "/redirect": _redirect,
    "/redirect-nowhere": _redirect_nowhere,
    "/gzip-bomb": _gzip_bomb,
    "/gzip-broken": _gzip_broken,
    "/brotli-claimed": _page(ARTICLE.encode(), Content_Encoding="br"),
    "/empty-list": _page(list_page([]).encode()),
    "/list-to": _list_to,
    "/latin1-claimed-utf8": _page(ARTICLE.encode("latin-1")),
    "/gb2312": _page(CHINESE.encode("gb18030"), "text/html; charset=gb2312"),
    "/bad-charset/unknown": _page(ARTICLE.encode(), "text/html; charset=x-nobody-knows"),
    "/bad-charset/none": _page(ARTICLE.encode(), "text/html"),
    "/bad-charset/contradiction": _page(
        ARTICLE.replace("<title>", '<meta charset="utf-8"><title>').encode(), "text/html; charset=gbk"
    ),
    "/bad-charset/bom": _page(ARTICLE.encode("utf-8-sig"), "text/html; charset=gbk"),
    "/bad-charset/broken-utf8": _page(ARTICLE.encode().replace(b"old", b"\xc3\x28\xff")),
    "/bad-charset/binary": _page(bytes(range(256)) * 64, "text/html"),
    "/reset": _reset,
    "/nonsense": _nonsense,
    "/headers-huge": _headers_huge,
    "/deep-nesting": _deep_nesting,
}
