"""Handlers in a process of their own: the worker's thread asks, writes and fetches for them, and has the last word."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from webqueue import logs
from webqueue.errors import LeaseLostError
from webqueue.handlers.isolated.wire import CALLS, TELLS, Channel, WireError, pack, pack_error, unpack
from webqueue.outcomes import Blocked, Cancelled, Done, Failed, Outcome
from webqueue.sentences import part, stored
from webqueue.worker.child import Child
from webqueue.worker.context import RunContext
from webqueue.worker.runs import Run

log = logs.get(__name__)

# After its last word a process may tidy up this long; then it is killed.
_EXIT_SEC: Final = 3.0
# Who stops a service may signal all of its processes at once (systemd does); the worker hears of it a moment later.
_STOP_HEARD_WITHIN_SEC: Final = 2.0


class Isolation:
    """Runs handlers in processes of their own, one a call, for the threads of a worker.

    Args:
        grace_sec: how long a handler gets to see that it should stop.
    """

    def __init__(self, *, grace_sec: float) -> None:
        self._grace_sec = grace_sec

    def run(self, run: Run, context: RunContext) -> Outcome | None:
        """Run the handler that the context's target names; its outcome, None when it only stopped.

        When this returns, no process of the run is left: nothing of it can make a request any more.

        Raises:
            LeaseLostError: so the handler said; or the lease was lost before it began.
            StopRequested: the run was stopped before it began.
            OSError: no further process can be started.
        """
        run.isolated = True
        child = Child(run, grace_sec=self._grace_sec, tell=context.log)
        try:
            end = _talk(context, child)
            child.close(patience_sec=_EXIT_SEC)
        except WireError as error:
            log.warning("process of a handler sent what is no message", error=str(error))
            return Failed(
                stored("The process of the handler broke the rules of the wire: %(why)s", why=str(error))
            )
        finally:
            child.close()
        if end is None:
            return _died(run, child)
        if end["lease_lost"]:
            raise LeaseLostError(run.lease.job_id)
        return _outcome(end)


def _talk(context: RunContext, child: Child) -> dict[str, Any] | None:
    """Serve the process to its last word; None when it ended without one."""
    # Nothing of the handler runs before this: the process waits for its start.
    context.started(child.group)
    child.channel.send({"start": pack(_start_of(context))})
    while (message := child.channel.receive()) is not None:
        if "end" in message:
            return message
        _serve(context, child.channel, message)
    return None


def _start_of(context: RunContext) -> dict[str, Any]:
    return {
        "job": context.job,
        "site": context.site,
        "target": context.target,
        "force": context.force,
        "checkpoint": context.checkpoint_at_start,
        "path": list(sys.path),
    }


def _serve(context: RunContext, channel: Channel, message: Mapping[str, Any]) -> None:
    """Do what the process asks for, and answer it; only what the wire names can be asked for."""
    call, tell = message.get("call"), message.get("tell")
    if call not in CALLS and tell not in TELLS:
        raise WireError(f"There is no {call or tell!r}.")
    verb = getattr(context, str(call or tell))
    arguments = unpack(message.get("with"))
    if call is None:
        verb(**arguments)
        return
    try:
        answer = {"answer": pack(verb(**arguments))}
    except Exception as error:  # noqa: BLE001 - it is the handler's, as in a thread
        answer = {"raise": pack_error(error)}
    channel.send(answer)


def _outcome(end: Mapping[str, Any]) -> Outcome | None:
    outcome = unpack(end["end"])
    if outcome is None or isinstance(outcome, Done | Failed | Blocked | Cancelled):
        return outcome
    return Failed(
        stored(
            "The process of the handler ended with %(outcome)s instead of an outcome.",
            outcome=repr(outcome)[:200],
        )
    )


def _died(run: Run, child: Child) -> Outcome | None:
    """What it means that the process ended without an outcome: a stop, or else a failure that says how."""
    code = child.exit_code
    if code == -signal.SIGTERM:
        give_up_at = time.monotonic() + _STOP_HEARD_WITHIN_SEC
        while run.stop is None and time.monotonic() < give_up_at:
            time.sleep(0.02)
    if run.stop is not None:
        return None
    how = _how(code)
    log.warning("process of a handler died", how=how)
    words = child.last_words
    error = (
        stored(
            "The process of the handler %(what)s. The last lines of its standard error:\n%(last)s",
            what=how,
            last=words,
        )
        if words
        else stored("The process of the handler %(what)s.", what=how)
    )
    return Failed(error, {"exit_code": code, "stderr": words})


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return part("ended with exit code %(code)s before the function had returned", code=code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    meaning = signal.strsignal(-code)
    told = f"{name} ({meaning})" if meaning else name
    if code == -signal.SIGKILL:
        return part(
            "died by %(signal)s; somebody killed it, or the system did because memory ran out", signal=told
        )
    return part("died by %(signal)s", signal=told)
