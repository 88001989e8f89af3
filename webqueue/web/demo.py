"""The demo in an installation of one's own: a button that loads it, and one that takes it out again."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from webqueue import clock, config, jobs
from webqueue.access import Action
from webqueue.db import database, reading
from webqueue.errors import ConflictError, NotFoundError
from webqueue.models import JobSource
from webqueue.sentences import say_some
from webqueue.web import answers, confirm
from webqueue.web.auth import needs, user_name
from webqueue.web.jobs import worker_life
from webqueue.web.languages import gettext, ngettext

pages = Blueprint("demo", __name__)


@pages.post("/demo/load")
@needs(Action.CONFIGURE)
def load() -> AnyResponse:
    """Make the demo's sites and targets, and let each target run once."""
    by = user_name()

    def put_in(session: Session) -> int:
        # All at once: who removes the demo in this moment, or kills this process, leaves none of it or sees the whole.
        codes = config.load_demo(session, by=by, now=clock.now(session))
        for code in codes:
            jobs.submit(session, code, source=JobSource.MANUAL, by=by)
        return len(codes)

    return answers.acted(
        url_for("overview.index"),
        lambda: database().run(put_in),
        lambda count: ngettext(
            "The demo is loaded: %(count)s target, with a job in the queue.",
            "The demo is loaded: %(count)s targets, each with a job in the queue.",
            count,
        ),
        leave=True,
    )


@pages.post("/demo/remove")
@needs(Action.CONFIGURE)
def remove() -> AnyResponse:
    """Delete the demo's targets, sites and jobs, after asking; jobs that wait or run are cancelled."""
    fallback = url_for("overview.index")
    demo = config.find_demo(reading())
    if not demo.targets:
        return answers.refused(gettext("The demo is not loaded."), fallback)
    if not confirm.given():
        return confirm.ask(removal_question(demo), gettext("Remove the demo"), fallback)
    by = user_name()
    return answers.acted(
        fallback, lambda: _take_out(by), lambda _: gettext("The demo is removed."), leave=True
    )


def removal_question(demo: config.Demo) -> str:
    """What is to be known before the demo is removed; empty when it is not there."""
    if not demo.targets:
        return ""
    return gettext(
        "%(targets)s targets are deleted with their sites, and their %(jobs)s jobs with the logs; "
        "what waits or runs is cancelled. Sites and targets of your own stay.",
        targets=len(demo.targets),
        jobs=f"{demo.jobs:,}",
    )


def _is_stopping(job: str, by: str, life: Callable[[str], jobs.Life]) -> bool:
    """Cancel a job; whether its handler still runs."""
    try:
        return database().run(lambda s: jobs.cancel(s, job, by=by, life=life)) == "cancelling"
    except (ConflictError, NotFoundError):
        return False  # it ended since it was looked for, or somebody else has taken it out


def _take_out(by: str) -> None:
    """In several short transactions; the last one refuses while the demo has jobs, and the person can ask again.

    Raises:
        ConflictError: a job of the demo still runs.
    """
    db, life = database(), worker_life()
    demo = db.run(lambda s: config.pause_demo(s, by=by, now=clock.now(s)))
    stopping = 0
    asked: set[str] = set()
    # One that was blocked in this moment has left a retry.
    while fresh := [job for job in demo.open_jobs if job not in asked]:
        stopping += sum(_is_stopping(job, by, life) for job in fresh)
        asked.update(fresh)
        demo = db.run(config.find_demo)
    if stopping:
        raise ConflictError(
            say_some(
                "%(count)s job of the demo is stopping, and its schedules are paused. Remove the demo again in a moment.",
                "%(count)s jobs of the demo are stopping, and its schedules are paused. Remove the demo again in a moment.",
                stopping,
            )
        )
    while not db.run(config.forget_demo_jobs).is_all:
        pass
    db.run(lambda s: config.remove_demo(s, by=by, now=clock.now(s)))
