"""Looking after this machine's evidence while workers run (DESIGN section 6, "Evidence")."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from webqueue import clock, logs
from webqueue.database import Database
from webqueue.loops import Loop
from webqueue.politeness.keeping import keep_evidence

log = logs.get(__name__)
_EVERY_SEC: Final = 600.0


class EvidenceKeeper:
    """Summarises and compresses the days that are over: at the start, and then every ten minutes."""

    def __init__(self, database: Database, instance: Path) -> None:
        self._database = database
        self._instance = instance
        self.loop = Loop("evidence keeper", self.keep, longest_backoff_sec=_EVERY_SEC)

    def keep(self) -> float:
        """Look once."""
        packed = keep_evidence(self._database, self._instance, clock.local_now())
        if packed:
            log.info("evidence compressed", days=[day.isoformat() for day in packed])
        return _EVERY_SEC
