"""What the worker processes of the acceptance tests run: a `python` function that leaves a trace outside the database."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from webqueue import clock
from webqueue.handlers.protocol import Context
from webqueue.outcomes import Cancelled, Done, Outcome

WITNESS_VARIABLE = "TEST_WITNESS"


def steps(
    ctx: Context,
    *,
    pages: int = 1,
    hold_at: int = 0,
    gate: str = "",
    stubborn: bool = False,
    page_sec: float = 0.0,
) -> Outcome:
    """Complete `pages` pages, each with a line for the witness.

    Args:
        ctx: the run's context.
        pages: in all; a run goes on after the last completed one.
        hold_at: the page at which it waits.
        gate: a file; it waits until the file is there, or it is asked to stop.
        stubborn: it does not look whether it should stop.
        page_sec: how long it works on a page.
    """
    _note(ctx, "start", ctx.checkpoint_at_start.page)
    try:
        for page in range(ctx.checkpoint_at_start.page + 1, pages + 1):
            if _stops(ctx, stubborn=stubborn):
                return Cancelled()
            ctx.page(page)
            _note(ctx, "page", page)
            time.sleep(page_sec)
            while page == hold_at and gate and not Path(gate).exists():
                if _stops(ctx, stubborn=stubborn):
                    return Cancelled()
                time.sleep(0.005)
            ctx.checkpoint(page)
            _note(ctx, "completed", page)
        return Done({"pages": pages})
    except BaseException as error:
        _note(ctx, type(error).__name__, 0)
        raise
    finally:
        _note(ctx, "end", 0)


def with_a_process(ctx: Context, **kwargs: Any) -> Outcome:
    """`steps`, beside a process that it has started and that listens to nothing.

    The witness is told which processes of an earlier run of the job are still there.
    """
    for line in map(json.loads, Path(os.environ[WITNESS_VARIABLE]).read_text(encoding="ascii").splitlines()):
        if line.get("job") == ctx.job.id:
            for pid in {line["pid"], line["page"]} if line["what"] == "beside" else {line["pid"]}:
                if lives(pid):
                    note("still there", job=ctx.job.id, key=ctx.job.rate_key, page=pid)
    script = "trap '' TERM INT HUP; while :; do sleep 0.05; done"
    beside = subprocess.Popen(["sh", "-c", script])
    note("beside", job=ctx.job.id, key=ctx.job.rate_key, page=beside.pid)
    return steps(ctx, **kwargs)


def lives(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _stops(ctx: Context, *, stubborn: bool) -> bool:
    return not stubborn and ctx.should_stop()


def _note(ctx: Context, what: str, page: int) -> None:
    note(what, job=ctx.job.id, key=ctx.job.rate_key, page=page)


def note(what: str, **facts: object) -> None:
    """Append a line to the witness's file, whole or not at all (O_APPEND)."""
    line = {"what": what, "pid": os.getpid(), "at": clock.boot_seconds(), **facts}
    witness = os.open(
        os.environ[WITNESS_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        os.write(witness, json.dumps(line).encode() + b"\n")
    finally:
        os.close(witness)
