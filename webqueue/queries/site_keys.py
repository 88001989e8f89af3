"""Which sites share which rate key. Worked out anew each time: a failed look-up is never remembered (SEEDS C2)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.models import RateGroupRow, Site
from webqueue.politeness.rate_key import RateGroup, key_of_site, key_of_url

# Sites are written by people; more than this many are not asked for at once.
MAX_SITES = 5000


def rate_groups(session: Session) -> tuple[RateGroup, ...]:
    """The saved rate groups in their order."""
    rows = session.scalars(select(RateGroupRow).order_by(RateGroupRow.position, RateGroupRow.id))
    return tuple(
        RateGroup(
            key=row.key,
            adapter=row.adapter or None,
            host_suffix=row.host_suffix,
            grow_interval=row.grow_interval,
            cooldown_factor=Decimal(str(row.cooldown_factor)),
        )
        for row in rows
    )


def keys_of_sites(session: Session) -> Mapping[str, str]:
    """The rate key of each site, by site code."""
    groups = rate_groups(session)
    rows = session.execute(
        select(Site.code, Site.rate_key, Site.base_url, Site.adapter).order_by(Site.code).limit(MAX_SITES)
    )
    return {
        row.code: key_of_site(
            own_key=row.rate_key, base_url=row.base_url, adapter=row.adapter, code=row.code, groups=groups
        )
        for row in rows
    }


def sites_by_key(session: Session) -> Mapping[str, tuple[str, ...]]:
    """The codes of the sites that share each key, sorted."""
    found: dict[str, list[str]] = {}
    for site, key in keys_of_sites(session).items():
        found.setdefault(key, []).append(site)
    return {key: tuple(sorted(sites)) for key, sites in found.items()}


def resolve_url(session: Session, url: str, adapter: str | None = None) -> str:
    """The rate key of any URL (`GET rate-keys/resolve`).

    Raises:
        InvalidInputError: `url` is none that a crawl could fetch.
    """
    keys = keys_of_sites(session)
    hosts = session.execute(select(Site.code, Site.host).order_by(Site.code.desc()).limit(MAX_SITES))
    site_keys = {row.host: keys[row.code] for row in hosts if row.host}
    return key_of_url(url, adapter=adapter, groups=rate_groups(session), site_keys=site_keys)
