"""The demo in an installation of one's own: put in with one button, and taken out again with all that came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import delete, exists, func, select
from sqlalchemy.orm import Session

from webqueue import jobs
from webqueue.config.editing import delete_site, delete_target, pause_target
from webqueue.config.importing import TURN, import_file
from webqueue.database import take_turn
from webqueue.errors import ConflictError
from webqueue.models import Document, Job, KeyEvent, RateKey, RateKeyNote, Site, Target
from webqueue.politeness.keys import rate_groups, site_key
from webqueue.sentences import say, say_some

# Named, not imported: what runs targets stands above, and workers find the function by its name as any operator's.
FUNCTION: Final = "webqueue.demo.walk:walk"
_FILE: Final = f"""\
defaults:
  handler: python
  interval_sec: 0.5
  tags: [demo]
sites:
  - {{code: demo_gazette, name: Northfield Gazette (demo), base_url: "https://gazette.invalid/"}}
  - {{code: demo_rivers, name: Ministry of Rivers (demo), base_url: "https://rivers.invalid/", rate_key: ministries.invalid}}
  - {{code: demo_forests, name: Ministry of Forests (demo), base_url: "https://forests.invalid/", rate_key: ministries.invalid}}
  - {{code: demo_harbour, name: Harbour Office (demo), base_url: "https://harbour.invalid/", cooldown_sec: 30}}
  - {{code: demo_registry, name: Old Registry (demo), base_url: "https://registry.invalid/"}}
  - {{code: demo_museum, name: City Museum (demo), base_url: "https://museum.invalid/"}}
targets:
  - code: demo_gazette_notices
    site: demo_gazette
    schedule: "*/15 * * * *"
    note: Every quarter of an hour.
    params: {{function: "{FUNCTION}", kwargs: {{site: gazette}}}}
  - code: demo_gazette_archive
    site: demo_gazette
    note: Shares the gazette's rate key, so it waits until the other job is through.
    params: {{function: "{FUNCTION}", kwargs: {{site: gazette}}}}
  - code: demo_rivers_notices
    site: demo_rivers
    schedule: "5 * * * *"
    note: Shares a key with demo_forests_notices, as two ministries behind one firewall do.
    params: {{function: "{FUNCTION}", kwargs: {{site: rivers, pages: 3}}}}
  - code: demo_forests_notices
    site: demo_forests
    schedule: "5 * * * *"
    params: {{function: "{FUNCTION}", kwargs: {{site: forests, pages: 3}}}}
  - code: demo_harbour_notices
    site: demo_harbour
    note: Is turned away after two pages; when the cooldown is over it goes on from its checkpoint, more slowly.
    params: {{function: "{FUNCTION}", kwargs: {{site: harbour, pages: 4, blocks_after: 2}}}}
  - code: demo_registry_notices
    site: demo_registry
    retry: {{times: 0, wait_sec: 60}}
    note: Its list lost all links in a redesign; a run that finds nothing is not green.
    params: {{function: "{FUNCTION}", kwargs: {{site: registry}}}}
  - code: demo_museum_notices
    site: demo_museum
    note: Its notices are drawn by a script, so they have no text; the run is done, and asks to be looked at.
    params: {{function: "{FUNCTION}", kwargs: {{site: museum, pages: 1}}}}
"""
_SITES: Final = ("gazette", "rivers", "forests", "harbour", "registry", "museum")
_HOSTS: Final = {f"demo_{site}": f"{site}.invalid" for site in _SITES}
_SITE_CODES: Final = tuple(_HOSTS)
_KEYS: Final = frozenset((*_HOSTS.values(), "ministries.invalid"))
_TARGET_CODES: Final = (*(f"demo_{site}_notices" for site in _SITES), "demo_gazette_archive")
_JOBS_AT_ONCE: Final = 200


@dataclass(frozen=True)
class Demo:
    """The demo as it is now: the codes of its targets, and how many jobs they have.

    Attributes:
        open_jobs: ids of those that wait or run.
    """

    targets: tuple[str, ...]
    jobs: int
    open_jobs: tuple[str, ...]


def find_demo(session: Session) -> Demo:
    """What of the demo is there; targets that somebody has made into something else are not counted."""
    codes = [target.code for target in _targets(session)]
    if not codes:
        return Demo((), 0, ())
    of_demo = Job.target_code.in_(codes)
    return Demo(
        tuple(codes),
        session.scalar(select(func.count()).select_from(Job).where(of_demo)) or 0,
        tuple(session.scalars(select(Job.id).where(of_demo, Job.finished_at.is_(None)).order_by(Job.seq))),
    )


def load_demo(session: Session, *, by: str, now: datetime) -> tuple[str, ...]:
    """Make the demo's sites and targets; their codes begin with `demo_`, the targets have the tag `demo`.

    Args:
        session: a writing transaction.
        by: who loads it, for the audit log.

    Returns:
        The codes of the targets, in the order in which to run them.

    Raises:
        ConflictError: the installation has targets already, or a site of such a code.
    """
    take_turn(session, TURN)
    if session.scalar(select(exists(select(Target.code)))):
        raise ConflictError(
            say(
                "There are targets already, so the demo is not loaded among them. `webqueue demo` starts one of its own."
            )
        )
    taken = session.scalar(select(Site.code).where(Site.code.in_(_SITE_CODES)).limit(1))
    if taken is not None:
        raise ConflictError(
            say(
                "The site %(code)s is in the way of the demo, whose sites are called so. Delete it first.",
                code=repr(taken),
            )
        )
    report = import_file(session, _FILE, by=by, now=now)
    return tuple(change.name for change in report.changes if change.kind == "target")


def pause_demo(session: Session, *, by: str, now: datetime) -> Demo:
    """Let the demo's schedules rest, so that nothing new comes while it is taken out; what is there now."""
    take_turn(session, TURN)  # somebody else may be taking it out: no target vanishes between look and lock
    for target in _targets(session):
        pause_target(session, target.code, by=by, now=now)
    return find_demo(session)


def forget_demo_jobs(session: Session) -> jobs.Forgotten:
    """Delete finished jobs of the demo, and their logs; to be called again, in a new transaction, until it is all."""
    return jobs.forget_all_of(session, [target.code for target in _targets(session)], limit=_JOBS_AT_ONCE)


def remove_demo(session: Session, *, by: str, now: datetime) -> tuple[str, ...]:
    """Delete the demo's targets, its sites, and their rate keys; what somebody uses for something of their own stays.

    Args:
        session: a writing transaction.
        by: who removes it, for the audit log.

    Returns:
        The codes of the targets that were there.

    Raises:
        ConflictError: one of them has jobs.
    """
    take_turn(session, TURN)
    targets = _targets(session)
    codes = tuple(target.code for target in targets)
    keys = _lock_keys(session, targets)
    left = session.scalar(select(func.count()).select_from(Job).where(Job.target_code.in_(codes))) or 0
    if left:
        raise ConflictError(
            say_some(
                "The demo has got %(count)s job meanwhile. Remove it again.",
                "The demo has got %(count)s jobs meanwhile. Remove it again.",
                left,
            )
        )
    for code in codes:
        delete_target(session, code, by=by, now=now)
    for code in _unused_sites(session):
        delete_site(session, code, by=by, now=now)
    _delete_unused(session, keys)
    return codes


def _targets(session: Session) -> Sequence[Target]:
    """Those that are still the demo's: a target with documents was made into something else, if only for a while."""
    found = session.scalars(
        select(Target)
        .where(
            Target.code.in_(_TARGET_CODES),
            Target.handler == "python",
            ~exists().where(Document.target_code == Target.code),
        )
        .order_by(Target.code)
    )
    return [target for target in found if target.params.get("function") == FUNCTION]


def _lock_keys(session: Session, targets: Sequence[Target]) -> list[RateKey]:
    """The demo's rate keys, and those of its targets, locked before any target is: everybody does it in this order."""
    groups = rate_groups(session)
    names = {site_key(session.get_one(Site, target.site_code), groups) for target in targets} | _KEYS
    return list(
        session.scalars(select(RateKey).where(RateKey.key.in_(names)).order_by(RateKey.key).with_for_update())
    )


def _unused_sites(session: Session) -> list[str]:
    """The demo's sites that nobody has put a target on, or given another address.

    Named by the demo, and not by its targets: these may have been moved to a site of somebody's own. A target that was
    moved away leaves its jobs with the site.
    """
    found = session.scalars(
        select(Site)
        .where(
            Site.code.in_(_SITE_CODES),
            ~exists().where(Target.site_code == Site.code),
            ~exists().where(Job.site_code == Site.code),
        )
        .order_by(Site.code)
    )
    return [site.code for site in found if site.host == _HOSTS[site.code]]


def _delete_unused(session: Session, keys: Sequence[RateKey]) -> None:
    """Delete those of the demo's keys that no site, group or job has now; others say something of blocks, and stay."""
    groups = rate_groups(session)
    used = {site_key(site, groups) for site in session.scalars(select(Site))} | {
        group.key for group in groups
    }
    names = [key.key for key in keys if key.key in _KEYS - used]
    used.update(session.scalars(select(Job.rate_key).where(Job.rate_key.in_(names)).distinct()))
    unused = [name for name in names if name not in used]
    for model, column in (
        (KeyEvent, KeyEvent.rate_key),
        (RateKeyNote, RateKeyNote.key),
        (RateKey, RateKey.key),
    ):
        session.execute(delete(model).where(column.in_(unused)))
