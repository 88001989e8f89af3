"""Worker pools in the test's own process, with handlers that the test writes as plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict, ValidationError

from webqueue.database import Database
from webqueue.errors import InvalidInputError, Problem
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
        kind: ClassVar[str] = "python"
        parameters: ClassVar[type[Parameters]] = model

        def run(self, ctx: Context) -> Outcome:
            return run(ctx)  # type: ignore[no-any-return]

    return FunctionHandler()


@dataclass(frozen=True)
class FewHandlers:
    """The part of the registry that a worker needs, with handlers of the test's own."""

    handlers: Mapping[str, Handler]

    def get(self, kind: str) -> Handler:
        if kind not in self.handlers:
            raise InvalidInputError.of("handler", f"there is no handler {kind!r}")
        return self.handlers[kind]

    def check_params(self, kind: str, params: Mapping[str, Any], *, adapter: str) -> Parameters:
        try:
            return self.get(kind).parameters.model_validate(params)
        except ValidationError as error:
            raise InvalidInputError(
                [Problem(f"params.{detail['loc'][0]}", detail["msg"]) for detail in error.errors()]
            ) from None


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
        database,
        settings,
        threads=threads,
        timing=timing,
        worker_id=worker_id,
        handlers=FewHandlers(handlers),
    )
    pool.start()
    try:
        yield pool
    finally:
        pool.stop(grace_sec)
