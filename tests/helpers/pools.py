"""Worker pools in the test's own process, with handlers that the test writes as plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from pydantic import ConfigDict

from webqueue.database import Database
from webqueue.errors import NotFoundError
from webqueue.handlers.protocol import Context, Handler, Parameters
from webqueue.outcomes import Outcome
from webqueue.settings import Settings
from webqueue.worker import Timing, WorkerPool

# Short enough for tests that wait for the next round, long enough for a machine with other things to do.
QUICK = Timing(poll_sec=0.5, sweep_sec=0.2, watch_sec=0.05, flush_sec=0.05, heartbeat_sec=1.0)


class _AnyParameters(Parameters):
    model_config = ConfigDict(extra="allow", frozen=True)


def handler(run: Callable[[Context], Any], parameters: type[Parameters] = _AnyParameters) -> Handler:
    """A handler whose `run` is a function."""
    model = parameters

    class FunctionHandler:
        kind: ClassVar[str] = "function"
        parameters: ClassVar[type[Parameters]] = model

        def run(self, ctx: Context) -> Outcome:
            return run(ctx)  # type: ignore[no-any-return]

    return FunctionHandler()


def finder(handlers: Mapping[str, Handler]) -> Callable[[str], Handler]:
    """Finds handlers as the registry does."""

    def find(kind: str) -> Handler:
        if kind not in handlers:
            raise NotFoundError("handler", kind)
        return handlers[kind]

    return find


@contextmanager
def pool_of(
    database: Database,
    settings: Settings,
    run: Callable[[Context], Any] | Mapping[str, Handler],
    *,
    threads: int = 4,
    timing: Timing = QUICK,
    grace_sec: float = 5.0,
    worker_id: str | None = None,
) -> Iterator[WorkerPool]:
    """A started pool whose targets of kind `python` run the function; stopped at the end, unless the test did."""
    handlers = run if isinstance(run, Mapping) else {"python": handler(run)}
    pool = WorkerPool(
        database, settings, threads=threads, timing=timing, worker_id=worker_id, find_handler=finder(handlers)
    )
    pool.start()
    try:
        yield pool
    finally:
        pool.stop(grace_sec)
