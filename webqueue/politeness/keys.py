"""The keys of saved sites, and what the sites that share a key ask for together (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from webqueue.models import RateGroupRow, Site
from webqueue.politeness.cooldown import DEFAULT_COOLDOWN_FACTOR
from webqueue.politeness.rate_key import RateGroup, group_of, key_of_site, key_of_url


def rate_groups(session: Session) -> list[RateGroup]:
    """The rate groups in their order; the first that matches wins."""
    rows = session.scalars(select(RateGroupRow).order_by(RateGroupRow.position, RateGroupRow.id))
    return [
        RateGroup(
            key=row.key,
            adapter=row.adapter,
            host_suffix=row.host_suffix,
            grow_interval=row.grow_interval,
            cooldown_factor=Decimal(str(row.cooldown_factor)),
        )
        for row in rows
    ]


def site_key(site: Site, groups: Sequence[RateGroup]) -> str:
    """The rate key of a saved site. Worked out each time: a failed look-up is never remembered."""
    return key_of_site(
        own_key=site.rate_key, base_url=site.base_url, adapter=site.adapter, code=site.code, groups=groups
    )


def resolve_url(session: Session, url: str, adapter: str | None = None) -> str:
    """Which key a URL has: the saved site of its host, the groups, the host.

    Raises:
        InvalidInputError: the URL has no host that every client would agree about.
    """
    groups = rate_groups(session)
    return key_of_url(url, adapter=adapter, groups=groups, site_keys=_keys_of_hosts(session, groups))


def keys_by_adapter(session: Session, url: str) -> dict[str, str]:
    """The adapters with which a new site at this URL gets another key than without one, and that key.

    Raises:
        InvalidInputError: as for `resolve_url`.
    """
    groups = rate_groups(session)
    hosts = _keys_of_hosts(session, groups)
    plain = key_of_url(url, adapter=None, groups=groups, site_keys=hosts)
    found = {
        adapter: key_of_url(url, adapter=adapter, groups=groups, site_keys=hosts)
        for adapter in sorted({group.adapter for group in groups if group.adapter is not None})
    }
    return {adapter: key for adapter, key in found.items() if key != plain}


def _keys_of_hosts(session: Session, groups: Sequence[RateGroup]) -> dict[str, str]:
    keys: dict[str, str] = {}
    for site in session.scalars(select(Site).order_by(Site.code)):
        keys.setdefault(site.host, site_key(site, groups))
    return keys


@dataclass(frozen=True)
class SharedPoliteness:
    """What the sites of one key ask for together: of each the largest.

    Attributes:
        min_gap_sec: seconds between two jobs of the key.
        cooldown_sec: seconds after a block; None when no site says, and the environment's holds.
    """

    min_gap_sec: float = 0.0
    cooldown_sec: int | None = None


def shared_politeness(session: Session, key: str, groups: Sequence[RateGroup]) -> SharedPoliteness:
    """The largest gap and cooldown of the sites that share `key`."""
    asking = session.scalars(select(Site).where(or_(Site.min_gap_sec > 0, Site.cooldown_sec.is_not(None))))
    sharing = [site for site in asking if site_key(site, groups) == key]
    cooldowns = [site.cooldown_sec for site in sharing if site.cooldown_sec is not None]
    return SharedPoliteness(
        min_gap_sec=max((site.min_gap_sec for site in sharing), default=0.0),
        cooldown_sec=max(cooldowns, default=None),
    )


def cooldown_factor_of_key(name: str, groups: Sequence[RateGroup]) -> Decimal:
    """The cooldown factor of a key that was met on the way, not through one of its sites: its group's."""
    return next((group.cooldown_factor for group in groups if group.key == name), DEFAULT_COOLDOWN_FACTOR)


def reaction_of_group(site: Site, groups: Sequence[RateGroup]) -> tuple[Decimal, bool]:
    """The cooldown factor, and whether intervals grow, for a site: its group's, else the defaults."""
    group = group_of(site.host, site.adapter, groups)
    return (DEFAULT_COOLDOWN_FACTOR, True) if group is None else (group.cooldown_factor, group.grow_interval)
