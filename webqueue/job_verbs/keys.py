"""What an operator does to rate keys: pause, resume, lift a cooldown, pause all; and sites that change their key."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue import clock, jobs_sql
from webqueue.database import request_wakeup, share_turn, take_turn
from webqueue.errors import NotFoundError
from webqueue.job_verbs.settling import lock_key, settle
from webqueue.jobs_sql.heads import QUEUED
from webqueue.models import Job, Site, StoredSetting
from webqueue.models.base import PAUSED_ALL
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.politeness.reactions import note_event
from webqueue.sentences import stored


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
            message=stored("was to end %(time)s UTC", time=f"{row.cooldown_until:%F %T}"),
        )
    row.cooldown_until = row.cooldown_cause = None
    settle(session, row, now)


def share_pause(session: Session) -> None:
    """Let `pause_all` wait for this transaction, so that nothing starts after it was answered."""
    share_turn(session, PAUSED_ALL)


def paused_all(session: Session) -> bool:
    """Whether the one stored flag is set under which nothing is claimed."""
    return bool(StoredSetting.read(session, PAUSED_ALL))


def pause_all(session: Session, *, by: str) -> None:
    """Let no key start anything, in any process, until `resume_all`; it survives restarts."""
    _set_paused_all(session, paused=True, by=by)


def resume_all(session: Session, *, by: str) -> None:
    """Take the flag of `pause_all` away; paused keys stay paused."""
    _set_paused_all(session, paused=False, by=by)
    request_wakeup(session)


def rekey_site(session: Session, site_code: str) -> None:
    """Give the site's queued jobs the key that it has now; a running one keeps its key. See `rekey_sites`."""
    rekey_sites(session, [site_code])


def rekey_sites(session: Session, site_codes: Iterable[str]) -> None:
    """Give the queued jobs of these sites the keys and hours that the sites have now; running ones keep their keys.

    To be called in the transaction that changed the sites or the groups, after it was flushed. A job that is
    submitted with the old key at the same moment, or comes back from a lost worker, is moved when it is claimed.

    Raises:
        NotFoundError: there is no such site.
    """
    groups = rate_groups(session)
    now = clock.now(session)
    moves = []
    for code in site_codes:
        site = session.get(Site, code)
        if site is None:
            raise NotFoundError("site", code)
        new = site_key(site, groups)
        queued = (Job.site_code == code, QUEUED, Job.rate_key != new)
        old = set(session.scalars(select(Job.rate_key).where(*queued).distinct()))
        moves.append((code, old, new))
    # All at once, and sorted.
    names = {name for _code, old, new in moves for name in (*old, new)}
    keys = jobs_sql.lock_keys(session, names, now=now)
    for code, old, new in moves:
        if old:
            jobs_sql.move_queued(session, code, old, new, now)
    # Those that the allowed hours had put off: the claim puts them off again where the site is closed now, too.
    jobs_sql.unpostpone(session, [code for code, _old, _new in moves], now)
    for key in keys.values():
        settle(session, key, now)


def _set_paused_all(session: Session, *, paused: bool, by: str) -> None:
    take_turn(session, PAUSED_ALL)
    if StoredSetting.read(session, PAUSED_ALL) != paused:  # who asks again has not paused it
        StoredSetting.put(session, PAUSED_ALL, paused, at=clock.now(session), by=by)
