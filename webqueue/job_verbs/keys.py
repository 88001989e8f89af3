"""What an operator does to rate keys: pause, resume, lift a cooldown, pause all; and sites that change their key."""

from __future__ import annotations

from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from webqueue import clock, jobs_sql
from webqueue.database import request_wakeup
from webqueue.errors import NotFoundError
from webqueue.job_verbs.settling import lock_key, settle
from webqueue.jobs_sql.heads import QUEUED
from webqueue.models import Job, Site, StoredSetting
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.politeness.reactions import note_event

_PAUSED_ALL: Final = "paused_all"


def pause_key(session: Session, key: str, *, by: str, note: str = "") -> None:
    """Let a key start nothing until it is resumed; what runs in it goes on. A second pause changes the note.

    Raises:
        NotFoundError: there is no such key.
    """
    row = lock_key(session, key)
    now = clock.now(session)
    if row.paused_at is None:
        row.paused_at = now
    row.paused_by = by
    row.paused_note = note
    note_event(session, row, "paused", at=now, by=by, message=note)
    settle(session, row, now)


def resume_key(session: Session, key: str, *, by: str) -> None:
    """End the pause of a key; a key that is not paused stays as it is.

    Raises:
        NotFoundError: there is no such key.
    """
    row = lock_key(session, key)
    if row.paused_at is None:
        return
    now = clock.now(session)
    row.paused_at = row.paused_by = None
    row.paused_note = ""
    note_event(session, row, "resumed", at=now, by=by)
    settle(session, row, now)


def lift_cooldown(session: Session, key: str, *, by: str) -> None:
    """End the cooldown of a key, and nothing else: gap, pause and the count of blocks stay.

    Raises:
        NotFoundError: there is no such key.
    """
    row = lock_key(session, key)
    now = clock.now(session)
    if row.cooldown_until is not None and row.cooldown_until > now:
        note_event(
            session,
            row,
            "cooldown_lifted",
            at=now,
            by=by,
            message=f"was to end {row.cooldown_until:%F %T} UTC",
        )
    row.cooldown_until = row.cooldown_cause = None
    settle(session, row, now)


def paused_all(session: Session) -> bool:
    """Whether the one stored flag is set under which nothing is claimed."""
    return bool(session.scalar(select(StoredSetting.value).where(StoredSetting.name == _PAUSED_ALL)))


def pause_all(session: Session, *, by: str) -> None:
    """Let no key start anything, in any process, until `resume_all`; it survives restarts."""
    _set_paused_all(session, paused=True, by=by)


def resume_all(session: Session, *, by: str) -> None:
    """Take the flag of `pause_all` away; paused keys stay paused."""
    _set_paused_all(session, paused=False, by=by)
    request_wakeup(session)


def rekey_site(session: Session, site_code: str) -> None:
    """Give the site's queued jobs the key that it has now; a running one keeps its key.

    To be called in the transaction that changed the site or the groups, after it was flushed.

    Raises:
        NotFoundError: there is no such site.
    """
    site = session.get(Site, site_code)
    if site is None:
        raise NotFoundError("site", site_code)
    new = site_key(site, rate_groups(session))
    of_site = (Job.site_code == site_code, QUEUED, Job.rate_key != new)
    now = clock.now(session)
    old = set(session.scalars(select(Job.rate_key).where(*of_site).distinct()))
    keys = jobs_sql.lock_keys(session, {new, *old}, now=now)
    session.execute(
        update(Job)
        .where(*of_site, Job.rate_key.in_(old))
        .values(rate_key=new, modified_at=now)
        .execution_options(synchronize_session=False)
    )
    for key in keys.values():
        settle(session, key, now)


def _set_paused_all(session: Session, *, paused: bool, by: str) -> None:
    now = clock.now(session)
    row = session.get(StoredSetting, _PAUSED_ALL)
    if row is None:
        session.add(StoredSetting(name=_PAUSED_ALL, value=paused, changed_at=now, changed_by=by))
    elif row.value != paused:
        row.value, row.changed_at, row.changed_by = paused, now, by
