"""The program that runs one handler in a process of its own: `python -P -m webqueue.handlers.isolated WIRE_FD`.

It is started by a worker (`webqueue.worker.isolated`) below the guardian of `webqueue.handlers.process_guardian`, which
has set the parent-death signal and looked whether its parent is still the expected one.
"""

from __future__ import annotations

import faulthandler
import io
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

from webqueue.errors import LeaseLostError
from webqueue.handlers import raised, registry
from webqueue.handlers.isolated.context import IsolatedContext
from webqueue.handlers.isolated.wire import Channel, pack, unpack
from webqueue.handlers.json_safe import json_safe_dict
from webqueue.outcomes import Outcome


class _Terminated(SystemExit):
    """SIGTERM: the grace is over. No Exception, so that a function that catches those ends all the same."""


def main(arguments: list[str]) -> None:
    """Run the handler that the first message names; its outcome is the last one."""
    descriptor = int(arguments[0])
    # What the function starts must not hold the wire open.
    os.set_inheritable(descriptor, False)
    channel = Channel(socket.socket(fileno=descriptor))
    _prepare_output()
    start = channel.receive()
    if start is None:
        return  # the worker is gone already
    signal.signal(signal.SIGTERM, _terminate)
    channel.send(_run(channel, unpack(start["start"])))


def _run(channel: Channel, start: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome as the worker is told it; an exception means what it means in a thread."""
    # What the worker can import this process can too, and in the same order.
    sys.path[:] = start["path"]
    outcome: Outcome | None
    try:
        context = IsolatedContext(channel, start)
        kind = context.target.handler
        handler = registry.get(kind)
        context.params = registry.check_params(kind, context.target.params, adapter=context.site.adapter)
        outcome = raised.checked(handler.run(context), kind)
    except _Terminated:
        # Its clean-up is done. Now it ends by the signal, so that the worker sees what it was.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        raise
    except LeaseLostError:
        return {"end": None, "lease_lost": True}
    except BaseException as error:  # noqa: BLE001 - sys.exit() too, as in a thread
        outcome = raised.outcome_of(error)
    if outcome is not None:
        outcome = replace(outcome, result=json_safe_dict(outcome.result))
    return {"end": pack(outcome), "lease_lost": False}


def _terminate(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one is enough; a second would break the clean-up off
    raise _Terminated("asked to end by SIGTERM")


def _prepare_output() -> None:
    """What is printed goes to the job's log: line by line, whatever its characters are, and the last words of a crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    faulthandler.enable()


if __name__ == "__main__":
    main(sys.argv[1:])
