"""Which sites share which rate key. Worked out anew each time: a failed look-up is never remembered (SEEDS C2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.models import Site
from webqueue.politeness.keys import rate_groups
from webqueue.politeness.rate_key import key_of_site


def keys_of_sites(session: Session, codes: Collection[str] | None = None) -> Mapping[str, str]:
    """The rate key of each site, by site code.

    Args:
        codes: of these sites only.
    """
    groups = rate_groups(session)
    query = select(Site.code, Site.rate_key, Site.base_url, Site.adapter).order_by(Site.code)
    rows = session.execute(query if codes is None else query.where(Site.code.in_(codes)))
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
