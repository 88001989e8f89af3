"""Writing checked sites, targets and rate groups, with everything that a change brings with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from webqueue import jobs
from webqueue.config.masks import masked
from webqueue.config.report import Change, What, compare
from webqueue.config.rows import (
    GROUP_FIELDS,
    SITE_FIELDS,
    TARGET_FIELDS,
    group_data,
    site_data,
    spec_data,
    target_data,
    write_group,
    write_site,
    write_target,
)
from webqueue.config.specs import RateGroupSpec, SiteSpec, TargetSpec
from webqueue.config.ticks import change_jitter, restart_ticks
from webqueue.errors import ConflictError
from webqueue.models import AuditEntry, IntervalChange, Job, RateGroupRow, Site, Target
from webqueue.sentences import say

M = TypeVar("M", Site, Target)

# Fields that decide when a target ticks, and those that decide which rate key a site has and when its jobs are due.
_TICKING: Final = frozenset({"schedule", "timezone", "start_at", "end_at", "enabled", "site"})
_KEYING: Final = frozenset({"rate_key", "base_url", "adapter", "allowed_hours", "timezone"})


class Store:
    """Writes into one transaction.

    Args:
        by: who changes, for the audit log.
        now: when.
        dry_run: only tell what would change.
    """

    def __init__(self, session: Session, *, by: str, now: datetime, dry_run: bool = False) -> None:
        self._session = session
        self._by = by
        self._now = now
        self._dry_run = dry_run
        self._entries: list[AuditEntry] | None = None
        self._other_keys: set[str] = set()
        self._other_zones: set[str] = set()
        # FOR NO KEY UPDATE: inserting a job checks its foreign keys while it holds its rate key, and must not have to
        # wait for this transaction, which may want the rate key next.
        self._lock: Any = None if dry_run else {"key_share": True}

    def groups(self, specs: Sequence[RateGroupSpec]) -> list[Change]:
        """Store rate groups; among themselves they take the order of `specs`, for the first that matches wins.

        `settle_sites` has to follow.
        """
        rows = list(
            self._session.scalars(select(RateGroupRow).order_by(RateGroupRow.position, RateGroupRow.id))
        )
        known = {(row.adapter, row.host_suffix): row for row in rows}
        named = [known.get((spec.adapter, spec.host_suffix)) for spec in specs]
        old_order = [row for row in rows if row in named]
        new_order = [row for row in named if row is not None]
        changes = []
        for spec, row in zip(specs, named, strict=True):
            after = spec_data(spec, GROUP_FIELDS)
            before = None if row is None else group_data(row)
            change = compare("rate_group", f"{spec.adapter} {spec.host_suffix}", before, after)
            if row is not None and change.what is What.UNCHANGED and old_order != new_order:
                change = Change(change.kind, change.name, What.CHANGED, ("order",))
            changes.append(change)
            self._audit(change, before, after)
        if not self._dry_run and any(change.what is not What.UNCHANGED for change in changes):
            self._write_groups(specs, named, rows, new_order)
        return changes

    def site(self, spec: SiteSpec) -> Change:
        """Store a site; `settle_sites` has to follow."""
        row = self._find(Site, spec.code)
        before = None if row is None else site_data(row)
        after = spec_data(spec, SITE_FIELDS)
        change = compare("site", spec.code, before, after)
        if self._dry_run or change.what is What.UNCHANGED:
            return change
        if row is None:
            row = Site(code=spec.code, created_at=self._now)
            self._session.add(row)
        write_site(row, spec, self._now)
        self._audit(change, before, after)
        if change.what is What.CREATED or _KEYING & set(change.fields):
            # Also gives a new site's key its row, so that it can be paused before its first job.
            self._other_keys.add(spec.code)
        if "timezone" in change.fields:
            self._other_zones.add(spec.code)
        return change

    def settle_sites(self) -> None:
        """Let queued jobs move to the rate keys that their sites have now, and targets tick in their sites' zones.

        Keys first, all at once: a scheduler locks a key and then its target, and everybody locks keys by name.
        """
        self._session.flush()
        if self._other_keys:
            jobs.rekey_sites(self._session, sorted(self._other_keys))
        of_sites = select(Target).where(Target.site_code.in_(self._other_zones), Target.timezone.is_(None))
        for target in (
            self._session.scalars(of_sites.order_by(Target.code)).all() if self._other_zones else ()
        ):
            restart_ticks(target, self._session.get_one(Site, target.site_code), self._now)
        self._other_keys.clear()
        self._other_zones.clear()

    def target(self, spec: TargetSpec) -> Change:
        """Store a target, of a site that is stored; a changed schedule counts from now."""
        row = self._find(Target, spec.code)
        return self.write_target(row, None if row is None else target_data(row), spec)

    def write_target(
        self, row: Target | None, before: Mapping[str, object] | None, spec: TargetSpec
    ) -> Change:
        """Store a target that was looked up already; `before` are its fields."""
        before = before if row is not None else None
        after = spec_data(spec, TARGET_FIELDS)
        change = compare("target", spec.code, before, after)
        if self._dry_run or change.what is What.UNCHANGED:
            return change
        with self._session.no_autoflush:
            if "site" in change.fields and row is not None:
                self._refuse_moving_jobs(row)
            site = self._session.get_one(Site, spec.site)
        if row is None:
            row = Target(code=spec.code, created_at=self._now)
            self._session.add(row)
        write_target(row, spec, self._now)
        if change.what is What.CREATED or _TICKING & set(change.fields):
            restart_ticks(row, site, self._now)
        elif "jitter_sec" in change.fields:
            change_jitter(row, self._now)
        if change.what is What.CREATED:
            self._begin_with(row, spec)
        self._audit(change, before, after)
        return change

    @contextmanager
    def audited_at_once(self) -> Iterator[None]:
        """Write all entries of the audit log in one statement, at the end of the block: else each would be one."""
        self._entries = []
        yield
        entries, self._entries = self._entries, None
        if entries:
            self._session.flush()
            columns = AuditEntry.__table__.columns.keys()
            rows = [{name: getattr(entry, name) for name in columns if name != "id"} for entry in entries]
            self._session.execute(insert(AuditEntry), rows)

    def _begin_with(self, row: Target, spec: TargetSpec) -> None:
        """Give a new target what it had learned elsewhere."""
        learned = spec.learned_interval_sec
        if learned is None or learned <= spec.interval_sec:
            return
        row.learned_interval_sec = learned
        self._session.flush()  # the change points to the target
        self._session.add(
            IntervalChange(
                target_code=spec.code,
                at=self._now,
                old_sec=spec.interval_sec,
                new_sec=learned,
                cause=f"learned elsewhere, and imported by {self._by}",
            )
        )

    def _find(self, model: type[M], code: str) -> M | None:
        with self._session.no_autoflush:  # hundreds of rows are written in a few statements at the end
            return self._session.get(model, code, with_for_update=self._lock)

    def _write_groups(
        self,
        specs: Sequence[RateGroupSpec],
        named: Sequence[RateGroupRow | None],
        rows: Sequence[RateGroupRow],
        new_order: Sequence[RateGroupRow],
    ) -> None:
        # The rows of the file share out the places they had; the others stay where they are.
        in_order = iter(new_order)
        order = [next(in_order) if row in new_order else row for row in rows]
        for spec, found in zip(specs, named, strict=True):
            row = found or RateGroupRow()
            write_group(row, spec)
            if found is None:
                self._session.add(row)
                order.append(row)
        for position, row in enumerate(order):
            row.position = position
        self._session.flush()
        # Moved with those of changed sites: two rounds would lock keys out of their order.
        self._other_keys.update(self._session.scalars(select(Site.code)))

    def _refuse_moving_jobs(self, target: Target) -> None:
        """A queued job has the site and the key that its target had when it was submitted."""
        open_jobs = self._session.scalar(
            select(func.count()).where(Job.target_code == target.code, Job.finished_at.is_(None))
        )
        if open_jobs:
            raise ConflictError(
                say(
                    "Target %(code)s has %(open_jobs)s queued or running jobs, so it cannot move to another "
                    "site. Cancel them first.",
                    code=repr(target.code),
                    open_jobs=open_jobs,
                )
            )

    def _audit(
        self, change: Change, before: Mapping[str, object] | None, after: Mapping[str, object]
    ) -> None:
        if self._dry_run or change.what is What.UNCHANGED:
            return
        if before is not None:
            # Of a changed object only what changed, so that a person sees it at once.
            before = {name: before[name] for name in change.fields if name in before}
            after = {name: after[name] for name in change.fields if name in after}
        entry = AuditEntry(
            at=self._now,
            by=self._by,
            action=str(change.what),
            object_kind=change.kind,
            object_name=change.name,
            before=None if before is None else masked(before),
            after=masked(after),
        )
        if self._entries is None:
            self._session.add(entry)
        else:
            self._entries.append(entry)
