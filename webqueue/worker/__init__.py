"""The worker: a pool of threads that takes jobs, runs their handlers, and keeps the leases alive."""

from __future__ import annotations

from webqueue.worker.context import RunContext, Services
from webqueue.worker.liveness import Liveness
from webqueue.worker.pool import WorkerPool
from webqueue.worker.timing import Timing

__all__ = ["Liveness", "RunContext", "Services", "Timing", "WorkerPool"]
