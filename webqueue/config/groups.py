"""One rate group added, replaced or deleted, and which sites get another rate key by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue import jobs
from webqueue.config.check import check_group
from webqueue.config.importing import TURN
from webqueue.config.plan import dotted
from webqueue.config.report import Change
from webqueue.config.rows import group_data
from webqueue.config.specs import RateGroupSpec
from webqueue.config.store import Store
from webqueue.database import take_turn
from webqueue.errors import InvalidInputError, NotFoundError, Problem
from webqueue.models import AuditEntry, Job, JobStatus, RateGroupRow, Site
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.politeness.rate_key import RateGroup


@dataclass(frozen=True)
class KeyMove:
    """A site that gets another rate key, with so many queued jobs that move along."""

    site: str
    old: str
    new: str
    queued: int


def moves_by_group(session: Session, data: Mapping[str, Any]) -> list[KeyMove]:
    """Which sites would get another key if this group were stored. Reads only.

    Raises:
        InvalidInputError: with every problem, by field.
    """
    spec = _checked(data)
    new = RateGroup(
        key=spec.key,
        adapter=spec.adapter,
        host_suffix=spec.host_suffix,
        grow_interval=spec.grow_interval,
        cooldown_factor=Decimal(str(spec.cooldown_factor)),
    )
    groups = rate_groups(session)
    same = [(one.adapter, one.host_suffix) == (new.adapter, new.host_suffix) for one in groups]
    if any(same):
        groups = [new if is_same else one for one, is_same in zip(groups, same, strict=True)]
    else:
        groups = [*groups, new]
    return _moves(session, groups)


def moves_without_group(session: Session, number: int) -> list[KeyMove]:
    """Which sites would get another key if this group were deleted. Reads only.

    Raises:
        NotFoundError: there is no such group.
    """
    row = _row(session, number)
    groups = [
        one
        for one in rate_groups(session)
        if (one.adapter, one.host_suffix) != (row.adapter, row.host_suffix)
    ]
    return _moves(session, groups)


def put_group(session: Session, data: Mapping[str, Any], *, by: str, now: datetime) -> Change:
    """Store a rate group at the end of the list, or replace the one of its adapter and host suffix.

    Queued jobs of sites that get another key by it move along; running ones keep theirs.

    Raises:
        InvalidInputError: with every problem, by field.
    """
    take_turn(session, TURN)
    store = Store(session, by=by, now=now)
    (change,) = store.groups([_checked(data)])
    store.settle_sites()
    return change


def delete_group(session: Session, number: int, *, by: str, now: datetime) -> None:
    """Delete a rate group; its sites get the keys of their hosts, and their queued jobs move along.

    Raises:
        NotFoundError: there is no such group.
    """
    take_turn(session, TURN)
    row = _row(session, number)
    name = f"{row.adapter} {row.host_suffix}"
    AuditEntry.record(
        session, at=now, by=by, action="deleted", kind="rate_group", name=name, before=group_data(row)
    )
    session.delete(row)
    session.flush()
    jobs.rekey_sites(session, list(session.scalars(select(Site.code).order_by(Site.code))))


def _checked(data: Mapping[str, Any]) -> RateGroupSpec:
    checked = check_group(data)
    if checked.spec is None or checked.problems:
        raise InvalidInputError([Problem(dotted(one.path), one.message) for one in checked.problems])
    return checked.spec


def _row(session: Session, number: int) -> RateGroupRow:
    row = session.get(RateGroupRow, number)
    if row is None:
        raise NotFoundError("rate group", str(number))
    return row


def _moves(session: Session, groups: Sequence[RateGroup]) -> list[KeyMove]:
    before = rate_groups(session)
    sites = session.scalars(select(Site).order_by(Site.code)).all()
    moving = {
        site.code: (old, new)
        for site in sites
        if (old := site_key(site, before)) != (new := site_key(site, groups))
    }
    counted = session.execute(
        select(Job.site_code, func.count())
        .where(Job.status == JobStatus.QUEUED, Job.site_code.in_(list(moving)))
        .group_by(Job.site_code)
    )
    queued = {site: number for site, number in counted}  # noqa: C416 - rows are no plain tuples
    return [KeyMove(site, old, new, queued.get(site, 0)) for site, (old, new) in moving.items()]
