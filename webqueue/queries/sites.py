"""Sites, with the rate key that each has, and how many targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webqueue.errors import NotFoundError
from webqueue.models import Site, Target
from webqueue.queries.paging import Page, by_code
from webqueue.queries.site_keys import keys_of_sites


@dataclass(frozen=True)
class SiteRow:
    """A site in the fields of the file, with the rate key that it has (`own_rate_key` is the one written down)."""

    code: str
    name: str
    base_url: str
    adapter: str
    timezone: str
    rate_key: str
    own_rate_key: str | None
    min_gap_sec: float
    cooldown_sec: int | None
    allowed_hours: str | None
    obey_robots: bool
    http: Mapping[str, Any]
    targets: int
    created_at: datetime
    changed_at: datetime


def list_sites(session: Session, *, cursor: str | None = None, limit: int = 200) -> Page[SiteRow]:
    """Sites by code."""
    sites, following = by_code(session, select(Site), Site.code, cursor=cursor, limit=limit)
    return Page(_rows(session, sites), following)


def get_site(session: Session, code: str) -> SiteRow:
    """One site. Raises NotFoundError."""
    site = session.get(Site, code)
    if site is None:
        raise NotFoundError("site", code)
    return _rows(session, [site])[0]


def site_codes(session: Session) -> tuple[str, ...]:
    """The code of every site, sorted: for people to choose from."""
    return tuple(session.scalars(select(Site.code).order_by(Site.code)))


def _rows(session: Session, sites: Sequence[Site]) -> tuple[SiteRow, ...]:
    keys = keys_of_sites(session, [site.code for site in sites])
    counted = session.execute(
        select(Target.site_code, func.count())
        .where(Target.site_code.in_([site.code for site in sites]))
        .group_by(Target.site_code)
    )
    numbers: dict[str, int] = {code: number for code, number in counted}  # noqa: C416 - rows are no plain tuples
    return tuple(
        SiteRow(
            code=site.code,
            name=site.name,
            base_url=site.base_url,
            adapter=site.adapter,
            timezone=site.timezone,
            rate_key=keys.get(site.code, site.code),
            own_rate_key=site.rate_key,
            min_gap_sec=site.min_gap_sec,
            cooldown_sec=site.cooldown_sec,
            allowed_hours=site.allowed_hours,
            obey_robots=site.obey_robots,
            http=site.http,
            targets=numbers.get(site.code, 0),
            created_at=site.created_at,
            changed_at=site.changed_at,
        )
        for site in sites
    )
