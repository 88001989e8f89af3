"""What an import did, object by object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from webqueue.config.rows import same


class What(StrEnum):
    """What happened to an object."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Change:
    """One object of an import.

    Attributes:
        kind: `rate_group`, `site` or `target`.
        fields: the fields that changed, of a changed object.
    """

    kind: str
    name: str
    what: What
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        kind = self.kind.replace("_", " ")
        fields = f": {', '.join(self.fields)}" if self.fields else ""
        return f"{kind} {self.name} {self.what}{fields}"


@dataclass(frozen=True)
class ImportReport:
    """Everything that the file names, in its order."""

    changes: tuple[Change, ...]
    dry_run: bool = False

    def names(self, what: What) -> list[str]:
        """The objects to which this happened, as `site example`."""
        return [
            f"{change.kind.replace('_', ' ')} {change.name}" for change in self.changes if change.what is what
        ]

    @property
    def created(self) -> list[str]:
        return self.names(What.CREATED)

    @property
    def changed(self) -> list[str]:
        return self.names(What.CHANGED)

    @property
    def unchanged(self) -> list[str]:
        return self.names(What.UNCHANGED)

    def __str__(self) -> str:
        counts = f"{len(self.created)} created, {len(self.changed)} changed, {len(self.unchanged)} unchanged"
        return f"{counts} (dry run: nothing was written)" if self.dry_run else counts


def compare(kind: str, name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Change:
    """Tell what would become of an object."""
    if before is None:
        return Change(kind, name, What.CREATED)
    fields = tuple(field for field in after if not same(before.get(field), after[field]))
    return Change(kind, name, What.CHANGED if fields else What.UNCHANGED, fields)
