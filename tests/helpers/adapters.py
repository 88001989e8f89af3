"""What the tests of every adapter look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from tests.helpers.crawling import TARGET, BenchContext, CrawlBench
from webqueue.models import Document, DocumentVersion
from webqueue.outcomes import Checkpoint, Done, Outcome


def stored(bench: CrawlBench) -> dict[str, Document]:
    """Documents by URL, without the address of the bench's site."""
    with bench.database.reading() as session:
        documents = session.scalars(select(Document).where(Document.target_code == TARGET)).all()
        for document in documents:
            document.text  # noqa: B018 - loads it
        return {document.url.removeprefix(bench.base_url.rstrip("/")): document for document in documents}


def version_count(bench: CrawlBench) -> int:
    """Versions of all documents."""
    with bench.database.reading() as session:
        return len(session.scalars(select(DocumentVersion.id)).all())


def counters(outcome: Any, *names: str) -> tuple[Any, ...]:
    """Counters of a result."""
    return tuple(outcome.result[name] for name in names)


def run_in_pieces(
    bench: CrawlBench, stop_when: Callable[[BenchContext], bool], *, most: int = 200, **of_the_job: Any
) -> tuple[Outcome, list[BenchContext]]:
    """Run a chain of jobs, each stopped by `stop_when` and followed by one from its checkpoint, until one is done."""
    checkpoint = Checkpoint()
    runs: list[BenchContext] = []
    for _ in range(most):
        outcome, context = bench.run(
            chain=runs[-1] if runs else None, checkpoint=checkpoint, stop_when=stop_when, **of_the_job
        )
        runs.append(context)
        checkpoint = context.checkpoints[-1] if context.checkpoints else checkpoint
        if isinstance(outcome, Done):
            return outcome, runs
    raise AssertionError(f"not done after {most} runs: {outcome}")
