"""What the worker processes run: a function that leaves a line at its start, before each step, and at its end."""

from __future__ import annotations

import random
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.acceptance.chaos.witness import note
from webqueue.handlers.protocol import Context
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome

CHECKPOINT_EACH = 3


@dataclass(frozen=True)
class Script:
    """What a job does: so many steps of such a length, and then its outcome. The same each time it is run."""

    steps: int
    step_sec: float
    outcome: str
    outcome_of_retry: str

    @classmethod
    def of(cls, seed: int, number: int) -> Self:
        """The script of the job with this number."""
        dice = random.Random(f"{seed} {number}")
        outcome = dice.choices(["done", "blocked", "failed", "error"], [84, 6, 8, 2])[0]
        again = dice.choices(["done", outcome], [75, 25])[0]
        if dice.random() < 0.1:
            return cls(dice.randint(20, 60), 0.05, outcome, again)
        return cls(dice.randint(1, 4), dice.uniform(0.002, 0.01), outcome, again)


def work(ctx: Context, *, seed: int) -> Outcome:
    """Do the steps of the job's script from its checkpoint on; each step stands for one request.

    It looks whether it should stop before each step, as `ctx.fetch` does before each request, so that a step is written
    after a takeover only when the thread was suspended between the look and the step.
    """
    if ctx.should_stop():
        return Cancelled()
    script = Script.of(seed, ctx.job.from_page)
    run = _Run(ctx)
    run.note("start")
    outcome = "broken off"
    try:
        for step in range(ctx.checkpoint_at_start.page + 1, script.steps + 1):
            if ctx.should_stop():
                outcome = "stopped"
                return Cancelled()
            run.note("step", step=step)
            time.sleep(script.step_sec)
            if step % CHECKPOINT_EACH == 0:
                ctx.checkpoint(step)
        outcome = script.outcome if ctx.job.source != "retry" else script.outcome_of_retry
        return _outcome(outcome, script)
    finally:
        run.note("end", outcome=outcome)


def keep_on(ctx: Context, *, gate: str, step_sec: float = 0.05) -> Outcome:
    """Step on, each step with a read and a checkpoint, until the file `gate` is there."""
    run = _Run(ctx)
    run.note("start")
    outcome, step = "broken off", ctx.checkpoint_at_start.page
    try:
        while not Path(gate).exists():
            if ctx.should_stop():
                outcome = "stopped"
                return Cancelled()
            step += 1
            run.note("step", step=step)
            ctx.known(f"{ctx.site.base_url}{step}")
            time.sleep(step_sec)
            ctx.checkpoint(step)
        outcome = "done"
        return Done({"steps": step})
    finally:
        run.note("end", outcome=outcome)


def _outcome(outcome: str, script: Script) -> Outcome:
    match outcome:
        case "done":
            return Done({"steps": script.steps})
        case "blocked":
            return Blocked("HTTP 429")
        case "failed":
            return Failed("it did not work")
        case _:
            raise RuntimeError("a surprise")


class _Run:
    """Writes the lines of one call of `work`."""

    def __init__(self, ctx: Context) -> None:
        # The lease is not part of what a handler gets; a witness may look behind it.
        claimed = ctx.run.claimed  # type: ignore[attr-defined]
        self._facts: dict[str, Any] = {
            "run": secrets.token_hex(6),
            "job": ctx.job.id,
            "key": ctx.job.rate_key,
            "token": claimed.lease.token,
            "claimed_at": claimed.job.started_at.timestamp(),
        }

    def note(self, what: str, **more: Any) -> None:
        note(what, **self._facts, **more)
