"""Functions of `python` targets that behave in every way a function can, in a thread or in a process of its own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from webqueue.handlers.protocol import BlockedError, Context, DocumentDraft, Known, Request, StopRequested
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done


class SurpriseError(Exception):
    """Nobody expects it."""


def done(ctx: Context) -> Done:
    ctx.page(7)
    ctx.progress(3, 40, "three of forty")
    ctx.log("hello")
    ctx.log("careful", "warning")
    ctx.checkpoint(6, {"cursor": "räksmörgås", "seen": {1}, "huge": 10**5_000})
    return Done({"items": 40, "where": Path("x"), "not a number": float("nan")}, attention="look at it")


def blocked(ctx: Context) -> Blocked:
    return Blocked("HTTP 429", 5, Checkpoint(4, {"a": 1}), {"n": 1})


def raises_blocked(ctx: Context) -> None:
    raise BlockedError("HTTP 503", "http://www.example.org/x", 7)


def raises(ctx: Context) -> None:
    raise SurpriseError("somewhere deep")


def exits(ctx: Context) -> None:
    sys.exit(3)


def stops_unasked(ctx: Context) -> None:
    raise StopRequested


def a_wrong_call(ctx: Context) -> None:
    ctx.store("no document")  # type: ignore[arg-type]


def what_it_sees(ctx: Context, *, word: str) -> dict[str, Any]:
    """Everything a context has, by what it answers."""
    url = "http://www.example.org/1"
    stored = ctx.store(DocumentDraft(url, "Title", "Text", original=b"\x00\xff", aliases=(url + "?a",)))
    later = ctx.known_all([url, url + "?a", url + "?b"])
    ctx.seen(url)
    return {
        "word": word,
        "job": [ctx.job.source, ctx.job.rate_key, ctx.job.from_page, ctx.job.force, ctx.force],
        "site": [ctx.site.code, ctx.site.base_url, ctx.site.http.headers["X-A"], ctx.site.http.timeout_sec],
        "target": [ctx.target.code, ctx.target.interval_sec, sorted(ctx.target.params)],
        "checkpoint": [ctx.checkpoint_at_start.page, dict(ctx.checkpoint_at_start.data)],
        "stored": stored.what,
        "known": [later[url] == Known.IN_CHAIN, later[url + "?a"] == Known.IN_CHAIN, later[url + "?b"]],
        "times": sorted(ctx.stored_times([url, url + "?b"])),
        "validators": dict(ctx.validators(url)),
        "previous": dict(ctx.previous_result()),
        "zone": str(ctx.now().tzinfo),
        "stop": ctx.should_stop(),
        "kept": bool(ctx.keep_page("a page", b"<html>")),
    }


def fetches(ctx: Context, *, url: str) -> dict[str, Any]:
    response = ctx.fetch(Request(url, headers={"X-B": "c"}, is_list_page=True))
    return {"status": response.status, "type": response.headers["content-type"], "bytes": len(response.body)}


def like_govcrawler(
    target_code: str,
    *,
    stop_on_duplicate: bool,
    stop_check: Callable[[], bool],
    job_id: str,
    resume_from_page: int,
    progress_callback: Callable[[Any], None],
) -> dict[str, Any]:
    for page in (1, 2, 3):
        progress_callback(page)
    return {"target": target_code, "stop": stop_check(), "from": resume_from_page}


# From here on: what only a process of its own survives.


def segfaults(ctx: Context) -> None:
    sys.stderr.write("before the end\n")
    ctypes.string_at(0)


def leaves(ctx: Context, *, code: int) -> None:
    sys.stderr.write("words without an end")
    sys.stderr.flush()
    os._exit(code)


def kills_itself(ctx: Context) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def floods(ctx: Context, *, lines: int) -> Done:
    for number in range(lines):
        sys.stdout.write(f"line {number} " + "x" * 200 + "\n")
    sys.stderr.buffer.write(b"\xff" * 10_000_000)
    return Done({"lines": lines})


def breaks_the_wire(ctx: Any) -> None:
    ctx._channel._socket.sendall(b'{"call": "__class__", "with": null}\n')
    time.sleep(60)


def forks(ctx: Context) -> dict[str, Any]:
    """A process that it forks holds the wire and the pipes, and has no part in the context."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            ctx.log("from the fork")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        time.sleep(60)
        os._exit(0)
    os.close(write)
    return {"told": os.read(read, 1000).decode()}


def talks_in_threads(ctx: Context) -> dict[str, Any]:
    answers: list[str] = []

    def ask(number: int) -> None:
        for _ in range(20):
            url = f"http://www.example.org/{number}"
            answers.append("ok" if list(ctx.known_all([url])) == [url] else "mixed up")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"answers": {word: answers.count(word) for word in set(answers)}}


def tidies_up(ctx: Context, *, file: str) -> None:
    """Never asks whether it should stop, catches every Exception, and leaves its mark when it ends."""
    Path(file).write_text("started")
    try:
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # noqa: BLE001 - that is what it is about
                continue
    finally:
        Path(file).write_text("tidied up")


def spins(ctx: Context, *, file: str, page: int = 0) -> None:
    """Ignores everything that can be ignored, holds the lock of the interpreter in C for ever, and has a child."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 0.05; done"])
    if page:
        ctx.checkpoint(page)
    Path(file).write_text(f"{os.getpid()} {child.pid}")
    # memcmp of a huge block with itself, again and again, without giving the lock back.
    block = ctypes.create_string_buffer(1 << 24)
    compare = ctypes.PyDLL(None).memcmp
    while True:
        compare(block, block, 1 << 24)


def polite(ctx: Context, *, file: str) -> Cancelled:
    """Stops when it is asked to."""
    ctx.checkpoint(2)
    Path(file).write_text("started")
    while not ctx.should_stop():
        time.sleep(0.01)
    Path(file).write_text("was asked")
    return Cancelled({"asked": True})


def never_stops(ctx: Context, *, file: str, gate: str) -> Done:
    """In a thread: does not listen, until the gate is there."""
    ctx.checkpoint(1)
    Path(file).write_text("started")
    while not Path(gate).exists():
        time.sleep(0.01)
    return Done()
