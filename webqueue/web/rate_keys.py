"""Rate keys: what each does now, its line, why it is shut, and pausing."""

from __future__ import annotations

from flask import Blueprint, Response, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, jobs, queries
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import InvalidInputError
from webqueue.queries.blocks import blocks_of_key
from webqueue.queries.bookings import bookings
from webqueue.queries.expected import expected_starts, min_gap_of_key
from webqueue.web import answers, confirm, live
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.forms import Form
from webqueue.web.languages import gettext, told

pages = Blueprint("rate_keys", __name__)

QUEUE_SHOWN = 50
MAX_NOTE = 500


@pages.get("/rate-keys")
def index() -> Response:
    """Every rate key, and the box that tells which key a URL has."""
    session = reading()
    version = queries.state_version(session)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    state = request.args.get("state") or None
    url = request.args.get("url", "").strip()
    resolved, by_adapter, problem = _resolve(url)
    return live.page(
        "rate_keys.html",
        version=version,
        blocks=("keys",),
        section="rate_keys",
        page=queries.list_rate_keys(session, state=state, cursor=request.args.get("cursor")),
        state=state,
        url=url,
        resolved=resolved,
        by_adapter=by_adapter,
        sharing=queries.sites_by_key(session).get(resolved or "", ()),
        problem=problem,
    )


@pages.get("/rate-keys/<path:key>")
def show(key: str) -> Response:
    """One key: state, line, causes, events."""
    session = reading()
    version = queries.state_version(session)
    if (nothing := live.unchanged(version)) is not None:
        return nothing
    return _key_page(session, key, version)


def _key_page(session: Session, key: str, version: str, described: Form | None = None) -> Response:
    """The page of a key; `described` is what was said about it and refused."""
    row, now = queries.get_rate_key(session, key), clock.now(session)
    queue, gap_sec = queries.list_key_queue(session, key, limit=QUEUE_SHOWN), min_gap_of_key(session, key)
    return live.page(
        "rate_key.html",
        version=version,
        blocks=("head", "now", "queue", "evidence", "events"),
        section="rate_keys",
        key=row,
        described=described or Form({"owner": row.owner, "note": row.note}),
        queue=queue,
        expected=expected_starts(session, row.running_job, queue, gap_sec=gap_sec, now=now),
        min_gap_sec=gap_sec,
        events=queries.key_events(session, key),
        blocked=blocks_of_key(session, key, now),
        booking=next(iter(bookings(session, now, rate_key=key)), None),
        targets=queries.targets_of_sites(session, row.sites),
        recent=queries.list_jobs(session, queries.JobFilter(rate_key=key), limit=10).items,
    )


@pages.post("/rate-keys/<path:key>/pause")
@needs(Action.PAUSE)
def pause(key: str) -> AnyResponse:
    """Let a key start nothing until it is resumed; a note may say why."""
    by, note = user_name(), request.form.get("note", "").strip()[:MAX_NOTE]
    return acted(
        _page_of(key),
        lambda: database().run(lambda s: jobs.pause_key(s, key, by=by, note=note)),
        lambda _: gettext("%(key)s is paused. What runs goes on; nothing new starts.", key=key),
    )


@pages.post("/rate-keys/<path:key>/resume")
@needs(Action.PAUSE)
def resume(key: str) -> AnyResponse:
    """End a pause."""
    by = user_name()
    return acted(
        _page_of(key),
        lambda: database().run(lambda s: jobs.resume_key(s, key, by=by)),
        lambda _: gettext("%(key)s is resumed.", key=key),
    )


@pages.post("/rate-keys/<path:key>/lift-cooldown")
@needs(Action.LIFT)
def lift_cooldown(key: str) -> AnyResponse:
    """End a cooldown, after asking: the server asked for it."""
    if not confirm.given():
        question = gettext(
            "The server of %(key)s asked for a pause. Visiting it again at once may get you blocked for longer.",
            key=key,
        )
        return confirm.ask(question, gettext("End cooldown"), _page_of(key))
    by = user_name()
    return acted(
        _page_of(key),
        lambda: database().run(lambda s: jobs.lift_cooldown(s, key, by=by)),
        lambda _: gettext("The cooldown of %(key)s is over.", key=key),
    )


@pages.post("/rate-keys/<path:key>/describe")
@needs(Action.CONFIGURE)
def describe(key: str) -> AnyResponse:
    """Write down who looks after a key, and what others should know."""
    by, owner = user_name(), request.form.get("owner", "").strip()
    note = request.form.get("note", "").replace("\r\n", "\n").strip()
    try:
        database().run(lambda s: config.describe_key(s, key, owner=owner, note=note, by=by, now=clock.now(s)))
    except InvalidInputError as error:
        form = Form({"owner": owner, "note": note}, shown={"owner", "note"})
        form.refuse(error)
        session = reading()
        response = _key_page(session, key, queries.state_version(session), form)
        response.status_code = 422
        return response
    read_anew()
    return answers.done(gettext("Owner and note of %(key)s are saved.", key=key), _page_of(key))


@pages.post("/pause-all")
@needs(Action.PAUSE)
def pause_all() -> AnyResponse:
    """Let nothing start anywhere, after asking."""
    if not confirm.given():
        question = gettext("What runs goes on; nothing new starts in any rate key until you resume.")
        return confirm.ask(question, gettext("Pause all"), url_for("overview.index"))
    by = user_name()
    return acted(
        url_for("overview.index"),
        lambda: database().run(lambda s: jobs.pause_all(s, by=by)),
        lambda _: gettext("Everything is paused. What runs goes on."),
    )


@pages.post("/resume-all")
@needs(Action.PAUSE)
def resume_all() -> AnyResponse:
    """Let everything go on."""
    by = user_name()
    return acted(
        url_for("overview.index"),
        lambda: database().run(lambda s: jobs.resume_all(s, by=by)),
        lambda _: gettext("Everything goes on. Paused rate keys stay paused."),
    )


def _page_of(key: str) -> str:
    return url_for("rate_keys.show", key=key)


def _resolve(url: str) -> tuple[str | None, dict[str, str], str | None]:
    """The key of a URL, those that it has with single adapters, and what is wrong with it."""
    if not url:
        return None, {}, None
    try:
        return queries.resolve_url(reading(), url), queries.keys_by_adapter(reading(), url), None
    except InvalidInputError as error:
        return None, {}, told(error.problems[0].message)
