"""Backups of a running installation in one archive, and their restoration (DESIGN section 8)."""

from __future__ import annotations

from webqueue.backup.archive import BackupError
from webqueue.backup.making import Made, back_up
from webqueue.backup.restoring import Restored, restore

__all__ = ["BackupError", "Made", "Restored", "back_up", "restore"]
