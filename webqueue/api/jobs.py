"""Jobs: run, listed, read, cancelled, retried, moved to the front; their log."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from webqueue import jobs, queries
from webqueue.access import Action
from webqueue.api import answers, asked, shapes
from webqueue.api.asked import Query
from webqueue.api.problems import json_response
from webqueue.api.routes import CURSOR, Asked, Parameter, Route, limit
from webqueue.config.values import is_code
from webqueue.errors import NotFoundError
from webqueue.models import JobSource
from webqueue.worker.liveness import life_in

_LIMIT = 50
_LOG_LIMIT = 500
_LOG_MAX = 2000
_JOB_NAME = re.compile(r"[0-9a-f]{12}|#?[0-9]{1,18}", re.ASCII)


def run(ask: Asked, code: str) -> Response:
    Query().done()
    data = asked.body()
    asked.refuse_unknown(data, ("force", "from_page"))
    force, from_page = asked.flag(data, "force"), asked.number(data, "from_page")
    if not is_code(code):
        raise NotFoundError("target", code)
    new_id = jobs.new_job_id()
    return _submitted(
        ask,
        lambda session: jobs.submit(
            session,
            code,
            source=JobSource.API,
            by=ask.caller.name,
            force=force,
            from_page=from_page,
            new_id=new_id,
        ),
    )


def list_jobs(ask: Asked) -> Response:
    query = Query("status", "site", "target", "rate_key", "source", "since", "until", "cursor", "limit")
    said = {name: query.text(name) for name in ("status", "site", "target", "rate_key", "source")}
    since, until, cursor = query.moment("since"), query.moment("until"), query.cursor()
    limit = query.whole("limit", _LIMIT, 1, queries.MAX_LIMIT)
    query.done()
    filters = queries.JobFilter(
        status=said["status"],
        site=said["site"],
        target=said["target"],
        rate_key=said["rate_key"],
        source=said["source"],
        since=since,
        until=until,
    )
    with ask.database.reading() as session:
        page = queries.list_jobs(session, filters, cursor=cursor, limit=limit)
    return json_response(shapes.listing(map(shapes.job, page.items), page.next_cursor))


def get_job(ask: Asked, name: str) -> Response:
    Query().done()
    with ask.database.reading() as session:
        return json_response(shapes.job(_find(session, name)))


def cancel(ask: Asked, name: str) -> Response:
    life = life_in(ask.database.instance_path)
    return _changed(
        ask, name, lambda session, job_id: jobs.cancel(session, job_id, by=ask.caller.name, life=life)
    )


def force_stop(ask: Asked, name: str) -> Response:
    life = life_in(ask.database.instance_path)
    return _changed(
        ask, name, lambda session, job_id: jobs.force_stop(session, job_id, by=ask.caller.name, life=life)
    )


def retry(ask: Asked, name: str) -> Response:
    _no_more_said()
    new_id = jobs.new_job_id()
    return _submitted(
        ask,
        lambda session: jobs.retry(session, _find(session, name).id, by=ask.caller.name, new_id=new_id),
    )


def move_to_front(ask: Asked, name: str) -> Response:
    return _changed(
        ask, name, lambda session, job_id: jobs.move_to_front(session, job_id, by=ask.caller.name)
    )


def get_log(ask: Asked, name: str) -> Response:
    query = Query("after", "limit", "cursor")
    cursor = query.cursor()
    after = query.whole("after", 0, 0, 2**62)
    limit = query.whole("limit", _LOG_LIMIT, 1, _LOG_MAX)
    query.done()
    if cursor is not None and re.fullmatch(r"[0-9]{1,18}", cursor, re.ASCII):
        after = int(cursor)
    with ask.database.reading() as session:
        page = queries.job_log(session, _find(session, name).seq, after=after, limit=limit)
    answer = shapes.listing(map(shapes.log_line, page.lines), str(page.next_offset) if page.more else None)
    # Ask again with it to follow a log that still grows.
    return json_response(answer | {"next_after": page.next_offset})


_FILTERS = (
    Parameter("status", "Status."),
    Parameter("site", "Code of the site."),
    Parameter("target", "Code of the target."),
    Parameter("rate_key", "Rate key."),
    Parameter("source", "What made the job."),
    Parameter("since", "Queued at or after.", "moment"),
    Parameter("until", "Queued before.", "moment"),
)
_LOG = (
    Parameter("after", "Lines behind this one: `next_after` of the last answer.", "whole", 0, 2**62, 0),
    CURSOR,
    limit(_LOG_LIMIT, _LOG_MAX),
)
_SUBMITTED = {202: answers.SubmittedAnswer, 200: answers.SubmittedAnswer}
_AFTER = {200: answers.JobAnswer}
ROUTES = (
    Route(
        "POST", "/targets/<code>/run", Action.RUN, run, "Run a target now; 200 names the equal job that stands.",
        _SUBMITTED, body=answers.RunBody,
    ),
    Route(
        "GET", "/jobs", Action.READ, list_jobs, "List jobs, newest first.", {200: answers.Jobs},
        (*_FILTERS, CURSOR, limit(_LIMIT, queries.MAX_LIMIT)),
    ),
    Route("GET", "/jobs/<name>", Action.READ, get_job, "A job, by its id or number.", {200: answers.Job}),
    Route(
        "POST", "/jobs/<name>/cancel", Action.CANCEL, cancel, "Cancel a job.", _AFTER, body=answers.NoBody
    ),
    Route(
        "POST", "/jobs/<name>/force-stop", Action.CANCEL, force_stop,
        "End a cancelled job that does not stop; it may end a whole worker.", _AFTER, body=answers.NoBody,
    ),
    Route(
        "POST", "/jobs/<name>/retry", Action.RETRY, retry, "Run a failed or cancelled job again, from its checkpoint.",
        _SUBMITTED, body=answers.NoBody,
    ),
    Route(
        "POST", "/jobs/<name>/front", Action.FRONT, move_to_front, "Move a queued job to the front of its key.",
        _AFTER, body=answers.NoBody,
    ),
    Route("GET", "/jobs/<name>/log", Action.READ, get_log, "The log of a job.", {200: answers.Lines}, _LOG),
)  # fmt: skip


def _find(session: Session, name: str) -> queries.JobRow:
    if _JOB_NAME.fullmatch(name) is None:
        raise NotFoundError("job", name)
    return queries.get_job(session, name)


def _no_more_said() -> None:
    Query().done()
    asked.refuse_unknown(asked.body(), ())


def _changed(ask: Asked, name: str, change: Callable[[Session, str], Any]) -> Response:
    _no_more_said()

    def work(session: Session) -> queries.JobRow:
        job_id = _find(session, name).id
        change(session, job_id)
        session.flush()
        # Verbs write past the session's own copies.
        session.expire_all()
        return queries.get_job(session, job_id)

    return json_response({"job": shapes.job(ask.database.run(work))})


def _submitted(ask: Asked, submit: Callable[[Session], jobs.Submitted]) -> Response:
    def work(session: Session) -> tuple[jobs.Submitted, queries.JobRow]:
        submitted = submit(session)
        session.flush()
        session.expire_all()
        return submitted, queries.get_job(session, submitted.id)

    submitted, row = ask.database.run(work)
    answer = {"job": shapes.job(row), "deduplicated": submitted.deduplicated}
    return json_response(answer, 200 if submitted.deduplicated else 202)
