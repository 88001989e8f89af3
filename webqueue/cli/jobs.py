"""`run`, `try` and `jobs`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

import click

from webqueue import clock, logs, queries
from webqueue import jobs as verbs
from webqueue.api import shapes
from webqueue.cli.opening import opened, person
from webqueue.cli.output import json_option, plain, show_one, show_rows
from webqueue.database import Database
from webqueue.errors import WebqueueError
from webqueue.models import JobSource, JobStatus
from webqueue.queries.jobs import CANCELLING
from webqueue.queries.stopping import stopping
from webqueue.worker.liveness import life_in

log = logs.get(__name__)
# Another process runs the job: there is nothing to be woken by, so its row is read this often (seconds).
_POLL: Final = 0.5
_ID_LENGTH: Final = 12
# In digits; a database's integers have not many more, and complain about them.
_LONGEST_NUMBER: Final = 18
_COLUMNS: Final = (
    "seq",
    "id",
    "target",
    "rate_key",
    "source",
    "status",
    "enqueued_at",
    "running_for_sec",
    "error_msg",
)


@click.command()
@click.argument("target")
@click.option("--wait", is_flag=True, help="Wait for the end; exit code 1 unless it is done.")
@click.option("--force", is_flag=True, help="Do not stop at known pages.")
@click.option(
    "--from-page", default=0, show_default=True, type=click.IntRange(0), help="First list page, 0 = page 1."
)
@json_option
def run(target: str, wait: bool, force: bool, from_page: int, as_json: bool) -> None:
    """Queue a run of TARGET; a running `serve` or `worker` takes it."""
    new_id = verbs.new_job_id()
    with opened() as (database, _settings):
        submitted = database.run(
            lambda session: verbs.submit(
                session,
                target,
                source=JobSource.MANUAL,
                by=person(),
                force=force,
                from_page=from_page,
                new_id=new_id,
            )
        )
        if not as_json:
            click.echo(_told(submitted), err=wait)
            if not wait:
                _tell_why_it_waits(database, submitted.id)
        row = _wait(database, submitted.id) if wait else _job(database, submitted.id)
        _finish(row, waited=wait, as_json=as_json)


@click.command("try")
@click.argument("target")
@json_option
def try_(target: str, as_json: bool) -> None:
    """Try TARGET through its key: shows the matched links and the first article, and stores nothing."""
    new_id = verbs.new_job_id()
    with opened() as (database, _settings):
        submitted = database.run(
            lambda session: verbs.submit(session, target, source=JobSource.TRY, by=person(), new_id=new_id)
        )
        row = _wait(database, submitted.id)
        if not as_json and row["status"] == JobStatus.DONE:
            click.echo(json.dumps(row["result"], ensure_ascii=False, indent=2))
            return
        _finish(row, waited=True, as_json=as_json)


@click.group()
def jobs() -> None:
    """List, show, cancel, force and retry jobs."""


@jobs.command("list")
@click.option("--status", type=click.Choice(queries.JOB_STATUSES))
@click.option("--site")
@click.option("--target")
@click.option("--rate-key")
@click.option("--source", type=click.Choice([source.value for source in JobSource]))
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, queries.MAX_LIMIT))
@json_option
def list_(limit: int, as_json: bool, **filters: Any) -> None:
    """List jobs, newest first."""
    with opened() as (database, _settings), database.reading() as session:
        page = queries.list_jobs(session, queries.JobFilter(**filters), limit=limit)
        rows = [shapes.job(row) for row in page.items]
    show_rows(rows, _COLUMNS, as_json=as_json, empty="No job fits. Start one with `webqueue run TARGET`.")


@jobs.command()
@click.argument("job")
@json_option
def show(job: str, as_json: bool) -> None:
    """Show one job, by its id or by its number (#8123)."""
    with opened() as (database, _settings):
        show_one(_job(database, _id_of(database, job)), as_json=as_json)


@jobs.command()
@click.argument("job")
def cancel(job: str) -> None:
    """Cancel a job; a running one stops within seconds."""
    with opened() as (database, settings):
        job_id = _id_of(database, job)
        life = life_in(settings.instance_path)
        answer = database.run(lambda session: verbs.cancel(session, job_id, by=person(), life=life))
        click.echo(answer)


@jobs.command("force-stop")
@click.argument("job")
@click.option("--yes", is_flag=True, help="Do not ask.")
def force_stop(job: str, yes: bool) -> None:
    """Stop a job that was cancelled and does not listen; asks, because it may end a whole worker."""
    with opened() as (database, settings):
        job_id = _id_of(database, job)
        with database.reading() as session:
            state = stopping(session, queries.get_job(session, job_id).seq)
        asked = state is not None and not yes
        if state is not None and asked:
            click.confirm(f"{state.force_does}\nForce it to stop?", abort=True)
        life = life_in(settings.instance_path)
        answer = database.run(lambda session: verbs.force_stop(session, job_id, by=person(), life=life))
        click.echo(answer)
        if answer == CANCELLING and state is not None:
            told = "" if asked else f"{state.force_does}\n"  # who was asked has read it already
            click.echo(f"{told}`webqueue jobs show {job_id}` tells when it is cancelled.")


@jobs.command()
@click.argument("job")
def retry(job: str) -> None:
    """Run a failed or cancelled job again from its checkpoint."""
    with opened() as (database, _settings):
        job_id, new_id = _id_of(database, job), verbs.new_job_id()
        again = database.run(lambda session: verbs.retry(session, job_id, by=person(), new_id=new_id))
        click.echo(_told(again))
        _tell_why_it_waits(database, again.id)


def _told(submitted: verbs.Submitted) -> str:
    if submitted.deduplicated:
        return f"An equal job stands already: #{submitted.seq} ({submitted.id})"
    return f"Queued #{submitted.seq} ({submitted.id}) in {submitted.rate_key}, place {submitted.position}"


def _tell_why_it_waits(database: Database, job_id: str) -> None:
    """What the page of a job says under "Why is it not running?"."""
    with database.reading() as session:
        waiting = queries.get_job(session, job_id).waiting
        now = clock.now(session)
    if waiting is None or waiting.reason == "starting":
        return
    for sentence in (waiting.message, *waiting.also, _when(waiting.earliest_start, now)):
        click.echo(plain(sentence))


def _when(earliest: datetime | None, now: datetime) -> str:
    if earliest is None:
        return "Nobody can say when it starts."
    if earliest <= now:
        return "It starts as soon as its turn comes."
    return f"It can start {earliest.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC at the earliest."


def _id_of(database: Database, job: str) -> str:
    """The id of a job that is named by its id, or by its number."""
    number = job.removeprefix("#")
    if len(number) == _ID_LENGTH or len(number) > _LONGEST_NUMBER or not number.isdecimal():
        return job
    with database.reading() as session:
        return queries.job_id_of(session, int(number))


def _job(database: Database, job_id: str) -> dict[str, Any]:
    with database.reading() as session:
        return shapes.job(queries.get_job(session, job_id))


def _wait(database: Database, job_id: str) -> dict[str, Any]:
    """Wait until the job is final; tells why it does not run, and how far it is, whenever that changes."""
    told: str | None = None
    hinted = False
    while True:
        seen = database.wakeup.generation
        with database.reading() as session:
            found, now = queries.get_job(session, job_id), clock.now(session)
        row = shapes.job(found)
        if found.is_final:
            return row
        state = _state(found, now)
        if state != told:
            told = state
            if state and found.waiting and not hinted:
                hinted = True
                state += " Ctrl-C ends the waiting, not the job."
            if state:
                click.echo(state, err=True)
        database.wakeup.wait(seen, _POLL)


def _state(row: queries.JobRow, now: datetime) -> str | None:
    """Why a job waits, or which list page it is at: one line each, not one for each article."""
    if row.waiting is None:
        return f"list page {row.current_page}" if row.current_page else None
    earliest = row.waiting.earliest_start
    when = f" {_when(earliest, now)}" if earliest is not None and earliest > now else ""
    return plain(row.waiting.message + when)


def _finish(row: dict[str, Any], *, waited: bool, as_json: bool) -> None:
    if as_json:
        show_one(row, as_json=True)
    elif waited:
        click.echo(f"#{row['seq']} {row['status']}")
    if waited and row["status"] != JobStatus.DONE:
        raise WebqueueError(f"#{row['seq']} {row['status']}: {row['error_msg'] or 'no reason was given'}")
