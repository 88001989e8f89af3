"""Many targets written at once: checked before the transaction that writes, for which everybody else waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.config.check import check_target
from webqueue.config.editing import accepted
from webqueue.config.masks import unmasked
from webqueue.config.report import Change
from webqueue.config.rows import same, site_data, target_data
from webqueue.config.specs import TargetSpec
from webqueue.config.store import Store
from webqueue.errors import InvalidInputError, Problem
from webqueue.models import Site, Target
from webqueue.sentences import say

# What becomes of a target: gets the fields that it has, as the file writes them, none where there is no such target;
# gives those that it should have, masks in place of secrets that stay.
Becoming = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_NAMED: Final = 3  # of the targets that refuse


@dataclass(frozen=True)
class CheckedTarget:
    """What a target shall be, checked. It holds as long as the target and its site are as they were.

    Attributes:
        stored: the fields that the target had; empty where there was none.
        site: those of its site.
    """

    stored: Mapping[str, Any]
    site: Mapping[str, Any] | None
    spec: TargetSpec


@dataclass(frozen=True)
class StoredTargets:
    """Targets and sites as they are now, read in two statements."""

    rows: Mapping[str, Target]
    sites: Mapping[str, Mapping[str, Any]]
    # The session forgets rows that nobody holds, and would ask for the site of each target.
    site_rows: Sequence[Site]

    @classmethod
    def of(cls, session: Session, codes: Collection[str], *, locked: bool = False) -> StoredTargets:
        """Read them.

        Args:
            locked: until the end of the transaction, as each target that is changed (see `Store`).
        """
        found = select(Target).where(Target.code.in_(codes)).order_by(Target.code)
        if locked:
            # A session that has read them before would not look again at what it has.
            found = found.with_for_update(key_share=True).execution_options(populate_existing=True)
        rows = {row.code: row for row in session.scalars(found)}
        sites = session.scalars(select(Site)).all()
        return cls(rows, {site.code: site_data(site) for site in sites}, sites)

    def data(self, code: str) -> dict[str, Any]:
        """The fields of a target; empty where there is none."""
        row = self.rows.get(code)
        return {} if row is None else target_data(row)


def check_targets(
    stored: StoredTargets,
    wanted: Mapping[str, Becoming],
    sites: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, CheckedTarget]:
    """Check what targets shall become; reads nothing and writes nothing.

    Args:
        wanted: by code, what becomes of each.
        sites: those that will be there as well when it is written.

    Raises:
        InvalidInputError: some cannot be so. Each problem once, with the targets that it is one of, where others are
            not.
    """
    there = {**stored.sites, **(sites or {})}
    checked: dict[str, CheckedTarget] = {}
    refused: dict[tuple[str, str], list[str]] = {}
    for code, becoming in wanted.items():
        try:
            checked[code] = _checked(code, stored.data(code), becoming, there)
        except InvalidInputError as error:
            for problem in error.problems:
                refused.setdefault((problem.field, problem.message), []).append(code)
    if refused:
        raise InvalidInputError([_of_some(*one, codes, len(wanted)) for one, codes in refused.items()])
    return checked


def write_targets(
    store: Store,
    stored: StoredTargets,
    wanted: Mapping[str, Becoming],
    checked: Mapping[str, CheckedTarget],
) -> Iterable[Change]:
    """Write what was checked, all in a few statements; what has changed since is checked anew.

    Args:
        stored: as they are now, locked.

    Raises:
        InvalidInputError: as `check_targets`.
    """
    data = {code: stored.data(code) for code in wanted}
    anew = {
        code: becoming
        for code, becoming in wanted.items()
        if not _holds(checked.get(code), data[code], stored)
    }
    specs = {**checked, **check_targets(stored, anew)}
    with store.audited_at_once():
        return [
            store.write_target(stored.rows.get(code), data[code], specs[code].spec) for code in sorted(wanted)
        ]


def _holds(checked: CheckedTarget | None, data: Mapping[str, Any], stored: StoredTargets) -> bool:
    return (
        checked is not None
        and same(checked.stored, data)
        and same(checked.site, stored.sites.get(checked.spec.site))
    )


def _checked(
    code: str, data: Mapping[str, Any], becoming: Becoming, sites: Mapping[str, Mapping[str, Any]]
) -> CheckedTarget:
    said = unmasked(becoming(data), data)
    site = sites.get(str(said.get("site")))
    return CheckedTarget(data, site, accepted(check_target({"code": code, **said}, site), code, said))


def _of_some(field: str, message: str, codes: list[str], of: int) -> Problem:
    """A problem of some targets names them; one that each has is one of the value."""
    if len(codes) == of > 1:
        return Problem(field, message)
    named = ", ".join(codes[:_NAMED]) + (", …" if len(codes) > _NAMED else "")
    return Problem(field, say("%(value)s (%(code)s)", value=message, code=named))
