"""What is looked after while workers run: this machine's evidence, the history of jobs, and old documents."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from webqueue import clock, documents, jobs, logs
from webqueue.database import Database
from webqueue.loops import Loop
from webqueue.politeness.keeping import compress_day, days_to_summarise, figures_of, store_day
from webqueue.settings import Settings

log = logs.get(__name__)
_EVERY_SEC: Final = 600.0
_SOON_SEC: Final = 1.0
_BATCH: Final = 500  # small, so that no writer waits long


def keep_evidence(database: Database, instance: Path, now: datetime) -> list[date]:
    """Summarise and compress the days that are over, and delete those of more than 13 months ago.

    Several processes of an instance may call it: one does it. After a crash it is done again, to the same result.

    Args:
        now: this machine's time; days are those of UTC.

    Returns:
        The days that were compressed.
    """
    with days_to_summarise(instance, now) as days:
        for day in days:
            figures = figures_of(instance, day)
            database.run(partial(store_day, instance=instance, day=day, figures=figures))
            compress_day(instance, day)
        return days


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


class HistoryKeeper:
    """Deletes finished jobs, and logs, by count and age per target, in small transactions; documents stay."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self.loop = Loop("history keeper", self.keep, longest_backoff_sec=_EVERY_SEC)

    def keep(self) -> float:
        """One batch of jobs and one of logs; the next ones soon, while there is more."""
        deleted = self._database.run(self._forget)
        if deleted.jobs or deleted.lines:
            log.info("finished jobs deleted", jobs=deleted.jobs, lines=deleted.lines)
        # Found before the transaction: it may look at every finished job, and no writer waits for that.
        with self._database.reading() as session:
            old = self._old_logs(session)
        is_all = deleted.is_all and len(old) < _BATCH
        if old:
            logs_deleted = self._database.run(lambda session: jobs.forget_logs(session, old))
            log.info("logs of finished jobs deleted", lines=logs_deleted.lines)
            is_all &= logs_deleted.is_all
        return _EVERY_SEC if is_all else _SOON_SEC

    def _forget(self, session: Session) -> jobs.Forgotten:
        holds = jobs.retention(session, self._settings)
        cut, own = holds.jobs(clock.now(session))
        assert cut.keep is not None
        assert cut.before is not None
        return jobs.forget_finished(session, keep=cut.keep, before=cut.before, limit=_BATCH, own=own)

    def _old_logs(self, session: Session) -> list[jobs.Old]:
        holds = jobs.retention(session, self._settings)
        if not holds.forgets_logs:
            return []
        cut, own = holds.logs(clock.now(session))
        return jobs.logs_to_forget(session, cut, limit=_BATCH, own=own)


class DocumentKeeper:
    """Deletes documents that no request found for long, in small transactions; off unless the settings say how long."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._days = settings.keep_documents_days
        self.loop = Loop("document keeper", self.keep, longest_backoff_sec=_EVERY_SEC)

    def keep(self) -> float:
        """One batch; the next one soon, while there is more."""
        deleted = 0 if self._days is None else self._database.run(self._forget)
        if deleted:
            log.info("old documents deleted", documents=deleted)
        # However few: a batch ends with many documents, or with long ones.
        return _SOON_SEC if deleted else _EVERY_SEC

    def _forget(self, session: Session) -> int:
        assert self._days is not None
        now = clock.now(session)
        before = now - timedelta(days=self._days)
        return documents.forget_documents(session, before=before, now=now, limit=_BATCH)
