"""One site or target put or deleted, by pages and API alike, and a target paused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from webqueue.config.check import Checked, check_site, check_target
from webqueue.config.importing import TURN
from webqueue.config.masks import masked, unmasked
from webqueue.config.plan import dotted
from webqueue.config.report import Change
from webqueue.config.rows import site_data, target_data
from webqueue.config.specs import Spec
from webqueue.config.store import Store
from webqueue.config.ticks import restart_ticks
from webqueue.config.values import is_code
from webqueue.config.yaml_text import Found
from webqueue.database import take_turn
from webqueue.errors import ConflictError, InvalidInputError, NotFoundError, Problem
from webqueue.models import AuditEntry, Document, Job, Site, Target
from webqueue.sentences import Sentence, say

S = TypeVar("S", bound=Spec)
M = TypeVar("M", Site, Target)


def put_site(session: Session, code: str, data: Mapping[str, Any], *, by: str, now: datetime) -> Change:
    """Create a site, or replace it: what is left out gets its default.

    Args:
        session: a writing transaction.
        data: the fields of the file, without or with the same `code`; a mask keeps the stored secret.

    Raises:
        InvalidInputError: with every problem, by field.
    """
    store = Store(session, by=by, now=now)
    change = put_site_in(store, session, code, data)
    store.settle_sites()
    return change


def put_site_in(store: Store, session: Session, code: str, data: Mapping[str, Any]) -> Change:
    """As `put_site`, for one of several sites of a transaction, whose rate keys are locked all at once.

    `store.settle_sites` has to follow.
    """
    take_turn(session, TURN)
    row = _find(session, Site, code)
    said = unmasked(data, {} if row is None else site_data(row))
    return store.site(accepted(check_site({"code": code, **said}), code, said))


def put_target(session: Session, code: str, data: Mapping[str, Any], *, by: str, now: datetime) -> Change:
    """Create a target, or replace it: what is left out gets its default. Learned interval and pause stay.

    Args:
        session: a writing transaction.
        data: the fields of the file, without or with the same `code`; a mask keeps the stored secret.

    Raises:
        InvalidInputError: with every problem, by field.
        ConflictError: it has open jobs and would move to another site.
    """
    take_turn(session, TURN)
    row = _find(session, Target, code)
    said = unmasked(data, {} if row is None else target_data(row))
    site = _find(session, Site, said.get("site"))
    checked = check_target({"code": code, **said}, None if site is None else site_data(site))
    return Store(session, by=by, now=now).target(accepted(checked, code, said))


def delete_site(session: Session, code: str, *, by: str, now: datetime) -> None:
    """Delete a site and its targets.

    Raises:
        NotFoundError: there is no such site.
        ConflictError: it has jobs or documents.
    """
    take_turn(session, TURN)
    site = session.get(Site, code, with_for_update=True) if is_code(code) else None
    if site is None:
        raise NotFoundError("site", code)
    targets = list(session.scalars(select(Target).where(Target.site_code == code).order_by(Target.code)))
    _refuse_if_used(session, "site", code, [target.code for target in targets], Job.site_code == code)
    for target in targets:
        _delete_target(session, target, by=by, now=now)
    _record_deletion(session, "site", code, site_data(site), by=by, now=now)
    _delete_row(session, "site", code, delete(Site).where(Site.code == code))
    session.expunge(site)


def delete_target(session: Session, code: str, *, by: str, now: datetime) -> None:
    """Delete a target.

    Raises:
        NotFoundError: there is no such target.
        ConflictError: it has jobs or documents.
    """
    take_turn(session, TURN)
    target = _target(session, code, to_delete=True)
    _refuse_if_used(session, "target", code, [code], Job.target_code == code)
    _delete_target(session, target, by=by, now=now)


def pause_target(session: Session, code: str, *, by: str, now: datetime) -> None:
    """Let a target's schedule rest; runs by hand go on. A paused one stays as it is.

    Raises:
        NotFoundError: there is no such target.
    """
    target = _target(session, code)
    if target.paused_at is None:
        target.paused_at, target.paused_by = now, by
        AuditEntry.record(session, at=now, by=by, action="paused", kind="target", name=code)


def resume_target(session: Session, code: str, *, by: str, now: datetime) -> None:
    """Let a paused target's schedule go on from now: the ticks of the pause are not caught up.

    Raises:
        NotFoundError: there is no such target.
        InvalidInputError: its schedule cannot be read; it stays paused.
    """
    target = _target(session, code)
    if target.paused_at is not None:
        restart_ticks(target, session.get_one(Site, target.site_code), now)
        target.paused_at = target.paused_by = None
        AuditEntry.record(session, at=now, by=by, action="resumed", kind="target", name=code)


def accepted(checked: Checked[S], code: str, said: Mapping[str, Any]) -> S:
    """The spec of what was checked. Raises InvalidInputError, with every problem by its field."""
    problems = list(checked.problems)
    if said.get("code", code) != code:
        problems.append(
            Found(("code",), say("is not %(code)s, the code that the change is for", code=repr(code)))
        )
    if checked.spec is None or problems:
        unique = dict.fromkeys((dotted(problem.path), problem.message) for problem in problems)
        raise InvalidInputError([Problem(name, message) for name, message in unique])
    return checked.spec


def _find(session: Session, model: type[M], code: Any) -> M | None:
    """The row of this code; nothing that is no code is ever asked for, because not every text can be."""
    return session.get(model, code) if isinstance(code, str) and is_code(code) else None


def _target(session: Session, code: str, *, to_delete: bool = False) -> Target:
    # A row that is deleted is locked against new jobs, one that is changed is not (as in `Store`).
    lock: Any = True if to_delete else {"key_share": True}
    target = session.get(Target, code, with_for_update=lock) if is_code(code) else None
    if target is None:
        raise NotFoundError("target", code)
    return target


def _refuse_if_used(session: Session, kind: str, code: str, targets: list[str], of_object: Any) -> None:
    jobs = session.scalar(select(func.count()).select_from(Job).where(of_object)) or 0
    documents = session.scalar(select(func.count()).where(Document.target_code.in_(targets))) or 0
    if jobs or documents:
        facts = {"kind": Sentence(kind), "code": repr(code), "jobs": jobs, "documents": documents}
        raise ConflictError(
            say(
                "The %(kind)s %(code)s has %(jobs)s jobs and %(documents)s documents, so it is kept. "
                "Disable its targets instead (enabled: false).",
                **facts,
            )
            if kind == "site"
            else say(
                "The %(kind)s %(code)s has %(jobs)s jobs and %(documents)s documents, so it is kept. "
                "Disable it instead (enabled: false).",
                **facts,
            )
        )


def _delete_target(session: Session, target: Target, *, by: str, now: datetime) -> None:
    _record_deletion(session, "target", target.code, target_data(target), by=by, now=now)
    _delete_row(session, "target", target.code, delete(Target).where(Target.code == target.code))
    session.expunge(target)


def _delete_row(session: Session, kind: str, code: str, statement: Any) -> None:
    session.flush()
    try:
        session.execute(statement, execution_options={"synchronize_session": False})
    except IntegrityError as error:
        # Submitted between the count and here; the foreign key is what really holds.
        raise ConflictError(
            say(
                "The %(kind)s %(code)s has just got a job or document, so it is kept.",
                kind=Sentence(kind),
                code=repr(code),
            )
        ) from error


def _record_deletion(
    session: Session, kind: str, code: str, data: dict[str, Any], *, by: str, now: datetime
) -> None:
    AuditEntry.record(session, at=now, by=by, action="deleted", kind=kind, name=code, before=masked(data))
