"""Delivering an export for retrieval: the documents of its window go out in chunks (SEEDS B)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from sqlalchemy import ColumnElement, Select, func, select, update
from sqlalchemy.orm import Session, undefer

from webqueue import clock, logs
from webqueue.deliveries import switches
from webqueue.deliveries.chunks import (
    Splitter,
    SplitterMissingError,
    document_key,
    lines_of,
    make_splitter,
)
from webqueue.deliveries.endpoint import Endpoint, EndpointError, RefusedDocumentError
from webqueue.deliveries.files import (
    FOLDER,
    FileBusyError,
    covered_until,
    note_covered,
    path_of,
    replace_documents,
)
from webqueue.deliveries.windows import KIND, give_back
from webqueue.deliveries.work import Again, Answer, Delivered, DeliveryLostError, Work
from webqueue.models import Document, Job, Target
from webqueue.sentences import Sentence, stored
from webqueue.settings import Settings

log = logs.get(__name__)

_BATCH: Final = 50
_BETWEEN_MARKS_SEC: Final = 1.0
# A document that was refused so often is left out for good; so many refused ones are the endpoint's fault.
_MOST_REFUSALS: Final = 3
_MANY_REFUSED: Final = 20
_FILE_BUSY_SEC: Final = 5.0
_OFF: Final = stored("the export was switched off before it was through")


@dataclass(frozen=True)
class _Progress:
    """How far a delivery is, as its row keeps it.

    Attributes:
        cursor: id of the last document that was tried.
        exported, chunks: documents and chunks that arrived.
        refused: ids of documents that were refused for what they are.
    """

    cursor: int = 0
    exported: int = 0
    chunks: int = 0
    refused: tuple[int, ...] = field(default=())

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> _Progress:
        kept = dict(payload.get("progress") or {})
        return cls(**{**kept, "refused": tuple(kept.get("refused", ()))})


class RagExporter:
    """Delivers exports, to a file of the instance or to an endpoint, as the settings say."""

    kind: ClassVar[str] = KIND

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def deliver(self, work: Work) -> Answer:
        """Deliver what is left of the window, and tell the job how it went."""
        export = _Export(work, self._settings)
        with work.database.reading() as session:
            is_on = switches.read(session).is_on(export.target)
        if not is_on:
            export.drop()
            return Delivered()
        try:
            splitter = make_splitter(self._settings.rag_export_chunk_chars)
            if self._settings.rag_export_url is None:
                return export.to_file(splitter)
            return export.to_endpoint(splitter, self._settings.rag_export_url)
        except SplitterMissingError as error:
            return export.failed(str(error))
        except DeliveryLostError:
            raise
        except Exception as error:
            # Told, or the job would show an export that runs for ever.
            log.exception("export failed", delivery=work.id, target=export.target)
            return export.failed(f"{type(error).__name__}: {error}")


class _StoppedError(Exception):
    """The process is about to end, or the lease is lost."""


class _Export:
    """One try to deliver one export."""

    def __init__(self, work: Work, settings: Settings) -> None:
        self._work = work
        self._settings = settings
        self._payload = dict(work.payload)
        self._progress = _Progress.of(work.payload)
        self._marked_at = time.monotonic()
        self._error = ""
        self.target = str(work.payload["target"])
        since = work.payload["since"]
        self._since = None if since is None else datetime.fromisoformat(since)
        self._until = datetime.fromisoformat(work.payload["until"])
        with work.database.reading() as session:
            self._site = session.scalar(select(Target.site_code).where(Target.code == self.target)) or ""
            self._total = self._count(session)

    def to_file(self, splitter: Splitter) -> Answer:
        """Put everything of the window into the target's file.

        Each machine that delivers has a file of its own. One that lacks what came before the window, since another machine
        delivered that, gets everything.
        """
        path = path_of(self._work.database.instance_path, self.target)
        covered = covered_until(path)
        if self._since is not None and (covered is None or covered < self._since):
            self._since = None
        with self._work.database.reading() as session:
            self._total = self._count(session)
            keys = {
                document_key(self.target, name) for name in session.scalars(self._window(Document.url_hash))
            }
        documents = 0

        def lines() -> Iterator[bytes]:
            nonlocal documents
            for document in self._documents(after=0):
                found = lines_of(document, self._site, splitter)
                documents += bool(found)
                yield from found

        try:
            if not keys:
                # Nothing new: the file, which may be large, stays as it is.
                note_covered(path, self._until)
                self.tell()
                return Delivered()
            chunks = replace_documents(path, keys, lines(), until=self._until)
        except _StoppedError:
            return Again()
        except FileBusyError:
            return Again(stored("another delivery writes the file"), _FILE_BUSY_SEC)
        except OSError as error:
            return self.failed(stored("%(path)s cannot be written: %(why)s", path=path, why=str(error)))
        self._progress = _Progress(exported=documents, chunks=chunks)
        self.tell(f"{FOLDER}/{path.name}", key="file")
        return Delivered()

    def to_endpoint(self, splitter: Splitter, url: str) -> Answer:
        """Post what is left of the window, document by document."""
        token = self._settings.rag_export_token
        try:
            with Endpoint(url, token.get_secret_value() if token else None) as endpoint:
                for document in self._refused_before():
                    self._post(endpoint, document, splitter)
                for document in self._documents(after=self._progress.cursor):
                    self._post(endpoint, document, splitter, cursor=document.id)
        except _StoppedError:
            self._mark()
            return Again()
        except EndpointError as error:
            return self.failed(str(error), error.wait_sec)
        refused = len(self._progress.refused)
        if refused and self._work.attempts + 1 < _MOST_REFUSALS:
            return self.failed(_refused(refused, self._error))
        self.tell(self._error)
        return Delivered()

    def _post(
        self, endpoint: Endpoint, document: Document, splitter: Splitter, *, cursor: int | None = None
    ) -> None:
        """Post one document; what came of it, and `cursor`, are noted together, or a crash would count it twice."""
        lines = lines_of(document, self._site, splitter)
        refused = set(self._progress.refused) - {document.id}
        exported, chunks = self._progress.exported, self._progress.chunks
        try:
            if lines:
                endpoint.post(lines, self._idempotency_key(document))
                exported, chunks = exported + 1, chunks + len(lines)
        except RefusedDocumentError as error:
            self._error = str(error)
            refused.add(document.id)
            log.warning("document refused", delivery=self._work.id, url=document.url, error=self._error)
        self._progress = _Progress(
            self._progress.cursor if cursor is None else cursor, exported, chunks, tuple(sorted(refused))
        )
        if len(refused) >= _MANY_REFUSED:
            raise EndpointError(_refused(len(refused), self._error))
        if time.monotonic() - self._marked_at >= _BETWEEN_MARKS_SEC:
            self._mark()

    def _idempotency_key(self, document: Document) -> str:
        """The same for each try to deliver this version of the document with this delivery."""
        key = document_key(self.target, document.url_hash)
        named = f"{self._work.dedupe_key}\n{key}\n{document.version}\n{document.content_hash}"
        return hashlib.sha256(named.encode()).hexdigest()[:40]

    def failed(self, error: str, wait_sec: float | None = None) -> Again:
        """Note how far it came, and that it is tried again."""
        wait = max(self._work.retry_after_sec, wait_sec or 0.0)
        self.tell(error, again_in_sec=wait)
        return Again(error, wait_sec)

    def drop(self) -> None:
        """End it, since the export is off; its window goes out when it is on again."""
        self.tell(_OFF, along=lambda session: give_back(session, self.target, self._payload["since"]))

    def tell(
        self,
        said: str = "",
        *,
        key: str = "error",
        again_in_sec: float | None = None,
        along: Callable[[Session], None] | None = None,
    ) -> None:
        """Write into the job's result what has become of its export."""
        progress = self._progress
        failed = 0 if key == "file" else max(0, self._total - progress.exported)
        if said == "" or key == "file":
            status = "completed"
        else:
            status = "partial_failed" if progress.exported else "failed"
        told: dict[str, Any] = {
            "status": status,
            "target_code": self.target,
            "total": max(self._total, progress.exported),
            "exported": progress.exported,
            "failed": failed if status != "completed" else 0,
            "chunks": progress.chunks,
            "attempts": self._work.attempts + 1,
        }
        if said:
            told[key] = said

        def write(session: Session) -> None:
            if again_in_sec is not None:
                next_try = clock.now(session) + timedelta(seconds=again_in_sec)
                told["next_try_at"] = next_try.isoformat()
            _tell_job(session, str(self._payload["job"]), told)
            if along is not None:
                along(session)

        self._work.mark(self._marked_payload(), along=write)

    def _mark(self) -> None:
        self._work.mark(self._marked_payload())
        self._marked_at = time.monotonic()

    def _marked_payload(self) -> dict[str, Any]:
        return {**self._payload, "progress": asdict(self._progress)}

    def _refused_before(self) -> list[Document]:
        if not self._progress.refused:
            return []
        query = self._window(Document).where(Document.id.in_(self._progress.refused)).order_by(Document.id)
        with self._work.database.reading() as session:
            return list(session.scalars(query.options(undefer(Document.text))))

    def _documents(self, *, after: int) -> Iterator[Document]:
        """The documents of the window that have a text, in the order of their numbers.

        Raises:
            _StoppedError: the process is about to end.
        """
        while True:
            query = self._window(Document).where(Document.id > after, Document.text != "")
            query = query.order_by(Document.id).limit(_BATCH).options(undefer(Document.text))
            with self._work.database.reading() as session:
                batch = list(session.scalars(query))
            for document in batch:
                if not self._work.may_go_on():
                    raise _StoppedError
                yield document
            if len(batch) < _BATCH:
                return
            after = batch[-1].id

    def _count(self, session: Session) -> int:
        return session.scalar(self._window(func.count()).where(Document.text != "")) or 0

    def _window(self, what: Any) -> Select[Any]:
        return select(what).select_from(Document).where(*self._conditions())

    def _conditions(self) -> list[ColumnElement[bool]]:
        conditions = [Document.target_code == self.target, Document.changed_at <= self._until]
        if self._since is not None:
            conditions.append(Document.changed_at > self._since)
        return conditions


def _tell_job(session: Session, job_id: str, told: Mapping[str, Any]) -> None:
    """The job is final: nobody else writes its result. One that was deleted meanwhile is told nothing."""
    found = session.execute(select(Job.result).where(Job.id == job_id).with_for_update()).one_or_none()
    if found is not None:
        values = {"result": {**(found.result or {}), KIND: dict(told)}, "modified_at": clock.now(session)}
        statement = update(Job).where(Job.id == job_id).values(**values)
        session.execute(statement.execution_options(synchronize_session=False))


def _refused(documents: int, error: str) -> Sentence:
    return stored("%(count)s documents were refused, the last with %(why)s", count=documents, why=error)
