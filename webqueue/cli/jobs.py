"""`run`, `try` and `jobs`."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from webqueue import jobs as verbs
from webqueue import logs, queries
from webqueue.api import shapes
from webqueue.cli.opening import opened, person
from webqueue.cli.output import json_option, show_one, show_rows
from webqueue.database import Database
from webqueue.errors import WebqueueError
from webqueue.models import JobSource, JobStatus
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
        if state is not None and not yes:
            click.confirm(f"{state.force_does}\nForce it to stop?", abort=True)
        life = life_in(settings.instance_path)
        click.echo(database.run(lambda session: verbs.force_stop(session, job_id, by=person(), life=life)))


@jobs.command()
@click.argument("job")
def retry(job: str) -> None:
    """Run a failed or cancelled job again from its checkpoint."""
    with opened() as (database, _settings):
        job_id, new_id = _id_of(database, job), verbs.new_job_id()
        again = database.run(lambda session: verbs.retry(session, job_id, by=person(), new_id=new_id))
        click.echo(_told(again))


def _told(submitted: verbs.Submitted) -> str:
    if submitted.deduplicated:
        return f"An equal job stands already: #{submitted.seq} ({submitted.id})"
    return f"Queued #{submitted.seq} ({submitted.id}) in {submitted.rate_key}, place {submitted.position}"


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
        row = _job(database, job_id)
        if row["finished_at"] is not None:
            return row
        state = _state(row)
        if state != told:
            told = state
            if state and row["waiting"] and not hinted:
                hinted = True
                state += " Ctrl-C ends the waiting, not the job."
            if state:
                click.echo(state, err=True)
        database.wakeup.wait(seen, _POLL)


def _state(row: dict[str, Any]) -> str | None:
    """Why a job waits, or which list page it is at: one line each, not one for each article."""
    if row["waiting"]:
        return str(row["waiting"]["message"])
    return f"list page {row['current_page']}" if row["current_page"] else None


def _finish(row: dict[str, Any], *, waited: bool, as_json: bool) -> None:
    if as_json:
        show_one(row, as_json=True)
    elif waited:
        click.echo(f"#{row['seq']} {row['status']}")
    if waited and row["status"] != JobStatus.DONE:
        raise WebqueueError(f"#{row['seq']} {row['status']}: {row['error_msg'] or 'no reason was given'}")
