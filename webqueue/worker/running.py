"""Running one claimed job: handler, outcome, end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue import jobs, logs
from webqueue.errors import LeaseLostError
from webqueue.handlers import raised
from webqueue.handlers.protocol import Handler, MayBeIsolated, Parameters
from webqueue.models import Job, JobStatus
from webqueue.outcomes import Ending, Failed, Outcome
from webqueue.sentences import stored
from webqueue.worker.context import RunContext, Services
from webqueue.worker.endings import HandBack, Nothing, ending_of
from webqueue.worker.isolated import Isolation
from webqueue.worker.refusals import is_refused
from webqueue.worker.runs import Run, Stop

log = logs.get(__name__)

# Between two tries to write the end of a run while the database cannot: from the first to the longest, in seconds.
_FIRST_PAUSE_SEC: Final = 1.0
_LONGEST_PAUSE_SEC: Final = 10.0


class Handlers(Protocol):
    """What a worker needs of `webqueue.handlers.registry.Registry`."""

    def get(self, kind: str) -> Handler: ...
    def check_params(self, kind: str, params: Mapping[str, Any], *, adapter: str) -> Parameters: ...


class Runner:
    """Runs jobs, one a call, in the thread of the caller.

    Args:
        services: what the runs share.
        handlers: those that are installed.
        isolation: runs those that are to have a process of their own.
        policy: the environment's part in what follows a run.
        gone: set when the process gives up the runs that are left; nothing is written then any more.
    """

    def __init__(
        self,
        services: Services,
        *,
        handlers: Handlers,
        isolation: Isolation,
        policy: jobs.Policy,
        gone: threading.Event,
    ) -> None:
        self._services = services
        self._database = services.database
        self._handlers = handlers
        self._isolation = isolation
        self._policy = policy
        self._gone = gone

    def run(self, run: Run) -> None:
        """Run the job to its end. What goes wrong is the job's end or is logged; nothing is raised."""
        lease = run.lease
        with structlog.contextvars.bound_contextvars(
            job=lease.job_id, rate_key=lease.rate_key, worker=lease.worker_id, target=run.claimed.target.code
        ):
            try:
                self._run(run)
            except Exception:
                log.exception("run broke off; its job is recovered when the lease ends")

    def hand_back(
        self, run: Run, *, stopped: bool, last_request_at: datetime | None = None, attempts: int = 8
    ) -> None:
        """Give the run's job back with its checkpoint. Raises LeaseLostError."""
        self._database.run(
            lambda session: jobs.hand_back(
                session, run.lease, stopped=stopped, last_request_at=last_request_at
            ),
            read_back=lambda session: self._left(session, run),
            attempts=attempts,
        )

    def _run(self, run: Run) -> None:
        log.info("job started", source=run.claimed.job.source)
        context, outcome = None, None
        try:
            context = RunContext(run, self._services)
            outcome = self._outcome(run, context)
        except Exception as error:
            log.exception("context of the job could not be made")
            outcome = raised.outcome_of(error)
        finally:
            run.closing = True
            if context is not None:
                self._close(context)
        self._end(run, context, outcome)

    def _close(self, context: RunContext) -> None:
        try:
            context.close()
        except Exception:
            log.exception("connections of the job could not be closed")

    def _outcome(self, run: Run, context: RunContext) -> Outcome | None:
        try:
            handler = self._handlers.get(context.target.handler)
            context.params = self._handlers.check_params(
                handler.kind, context.target.params, adapter=context.site.adapter
            )
            if isinstance(context.params, MayBeIsolated) and context.params.isolated is True:
                return self._isolation.run(run, context)
            return raised.checked(handler.run(context), handler.kind)
        except LeaseLostError:
            # Past its deadline it may still be nobody else's: its end is tried, and the database refuses it or not.
            if run.stop is not Stop.LEASE_ENDED and not run.lease_ended:
                run.request_stop(Stop.LEASE_LOST)
            return None
        except (
            BaseException
        ) as error:  # the thread of a job outlives whatever its handler does, sys.exit() too
            made_of_it = raised.outcome_of(error)
            if isinstance(made_of_it, Failed):
                log.warning("handler failed", error=made_of_it.error, exc_info=error)
            return made_of_it

    def _end(self, run: Run, context: RunContext | None, outcome: Outcome | None) -> None:
        """Write how the run ended, as often as it takes: while the lease holds, the end of a run is not given up."""
        pause = _FIRST_PAUSE_SEC
        while not self._gone.is_set():
            try:
                ending = ending_of(run, outcome)
                if not isinstance(ending, Nothing):
                    self._write_end(run, context, ending)
            except LeaseLostError:
                run.request_stop(Stop.LEASE_LOST)
            except Exception as error:
                # The database is away or full, or a value that it refuses: that must not keep the key for ever.
                log.exception("end of the run not written")
                if is_refused(error):
                    outcome = Failed(
                        stored(
                            "The end of the run could not be stored: %(type)s: %(why)s",
                            type=type(error).__name__,
                            why=str(error),
                        ),
                        raised.failure(error),
                    )
                self._gone.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SEC)
                continue
            if run.stop is Stop.LEASE_LOST:
                log.warning("lease lost; nothing was written")
            return

    def _write_end(self, run: Run, context: RunContext | None, ending: Ending | HandBack) -> None:
        last_request_at, evidence = None, []
        if context is not None:
            context.flush()
            last_request_at, evidence = context.last_request_at, context.evidence
        if isinstance(ending, HandBack):
            self.hand_back(run, stopped=True, last_request_at=last_request_at)
            log.info("job handed back", why=run.stop.value if run.stop else "")
            return
        finished = self._database.run(
            lambda session: jobs.finish(
                session,
                run.lease,
                ending,
                self._policy,
                last_request_at=last_request_at,
                evidence=evidence,
            ),
            read_back=lambda session: self._left(session, run),
        )
        log.info("job finished", status=finished.status, follow_up=finished.follow_up_id)

    def _left(self, session: Session, run: Run) -> jobs.Finished | None:
        """What became of the job when the answer to a COMMIT was lost; None when it still runs under this lease."""
        found = session.execute(
            select(Job.status, Job.lease_token).where(Job.seq == run.lease.job_seq)
        ).one_or_none()
        if found is None or found.lease_token != run.lease.token or found.status == JobStatus.RUNNING:
            return None
        return jobs.Finished(found.status)
