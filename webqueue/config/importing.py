"""`import`: a file applied as a whole, or not at all (DESIGN section 8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.config.plan import Stored, plan_file
from webqueue.config.report import ImportReport
from webqueue.config.rows import group_data, site_data, target_data
from webqueue.config.specs import File
from webqueue.config.store import Store
from webqueue.config.yaml_text import YamlDocument, read_yaml
from webqueue.database import take_turn
from webqueue.models import RateGroupRow, Site, Target

# Two that edit at the same time take turns, so that each checks against what the other has committed.
TURN: Final = "configuration"


@dataclass(frozen=True)
class PreparedFile:
    """A file that was read and checked against what is stored, before the transaction that writes.

    A large file takes seconds; in the writing transaction of an SQLite database they would hold up every heartbeat.
    """

    document: YamlDocument
    stored: Stored
    file: File


def prepare_import(session: Session, text: str) -> PreparedFile:
    """Read and check a file, for `import_file`.

    Args:
        session: reads only.
        text: the YAML.

    Raises:
        InvalidInputError: with every problem of the file, by line and field.
    """
    document = read_yaml(text)
    stored = stored_objects(session)
    return PreparedFile(document, stored, plan_file(document, stored))


def import_file(
    session: Session, given: PreparedFile | str, *, by: str, now: datetime, dry_run: bool = False
) -> ImportReport:
    """Bring sites, targets and rate groups to what the file says; what it leaves out stays as it is.

    Of an object that exists, a field that the file leaves out keeps its value; `defaults` count as said by every
    target of the file that does not say otherwise. Learned intervals, pauses and jobs are never touched. A second
    import of the same file changes nothing and writes no audit entry.

    Args:
        session: a writing transaction; of a dry run, any.
        given: the file, prepared; what has changed in the database since then is taken into account. The YAML of a
            small one may be given instead, and is read here.
        by: who imports, for the audit log.
        now: when; changed schedules count from here.
        dry_run: only report.

    Raises:
        InvalidInputError: with every problem of the file, by line and field; nothing was written.
        ConflictError: the file moves a target with open jobs to another site.
    """
    prepared = prepare_import(session, given) if isinstance(given, str) else given
    if not dry_run:
        take_turn(session, TURN)
    stored = stored_objects(session)
    file = prepared.file if stored == prepared.stored else plan_file(prepared.document, stored)
    store = Store(session, by=by, now=now, dry_run=dry_run)
    changes = store.groups(file.rate_groups)
    changes += [store.site(spec) for spec in file.sites]
    if not dry_run:
        store.settle_sites()
    changes += [store.target(spec) for spec in file.targets]
    return ImportReport(tuple(changes), dry_run=dry_run)


def stored_objects(session: Session) -> Stored:
    """Everything that an import can be on top of."""
    groups = session.scalars(select(RateGroupRow).order_by(RateGroupRow.position, RateGroupRow.id))
    sites = session.scalars(select(Site).order_by(Site.code))
    targets = session.scalars(select(Target).order_by(Target.code))
    return Stored(
        groups={(row.adapter, row.host_suffix): group_data(row) for row in groups},
        sites={row.code: site_data(row) for row in sites},
        targets={row.code: target_data(row) for row in targets},
    )
