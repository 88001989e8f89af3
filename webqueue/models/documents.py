"""What crawls stored, with every version."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, deferred, mapped_column

from webqueue.database import Text
from webqueue.models.base import Base


class DocumentState(StrEnum):
    LIVE = "live"
    GONE = "gone"


class Document(Base):
    """A page or file that a crawl stored; unique per target and URL."""

    __tablename__ = "documents"
    __table_args__ = (
        # URLs can be longer than an index entry may be.
        UniqueConstraint("target_code", "url_hash"),
        Index("ix_documents_target_id", "target_code", "id"),
        Index("ix_documents_changed", "changed_at", "id"),
        Index("ix_documents_last_job", "last_job_id", "id"),
        Index(
            "ix_documents_gone",
            "id",
            sqlite_where=text("state = 'gone'"),
            postgresql_where=text("state = 'gone'"),
        ),
        Index("ix_documents_found", "target_code", "first_seen_at"),
        Index("ix_documents_seen", "last_seen_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    target_code: Mapped[str] = mapped_column(ForeignKey("targets.code"))
    url: Mapped[str] = mapped_column(Text)
    url_hash: Mapped[str] = mapped_column(String(64))
    title: Mapped[str] = mapped_column(Text, default="")
    text: Mapped[str] = deferred(mapped_column(Text, default=""))
    published_at: Mapped[datetime | None]
    first_seen_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    state: Mapped[str] = mapped_column(String(8), default=DocumentState.LIVE)
    # Since when it is gone; NULL while it is live.
    gone_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(default=1)
    content_hash: Mapped[str] = mapped_column(String(64))
    content_type: Mapped[str] = mapped_column(String(255), default="")
    etag: Mapped[str | None] = mapped_column(Text)
    last_modified: Mapped[str | None] = mapped_column(Text)
    original: Mapped[str | None] = mapped_column(String(255))
    misses: Mapped[int] = mapped_column(default=0)
    # The chain that stored it last (a job's root_id): its pages are not fetched again within the chain.
    first_job_id: Mapped[str] = mapped_column(String(12))
    last_job_id: Mapped[str] = mapped_column(String(12))
    last_root_id: Mapped[str] = mapped_column(String(12))


class DocumentVersion(Base):
    """One state of a document's text."""

    __tablename__ = "document_versions"
    __table_args__ = (
        UniqueConstraint("document_id", "version"),
        Index("ix_document_versions_job", "job_id", "document_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    version: Mapped[int]
    stored_at: Mapped[datetime]
    job_id: Mapped[str] = mapped_column(String(12))
    title: Mapped[str] = mapped_column(Text, default="")
    text: Mapped[str] = deferred(mapped_column(Text, default=""))
    content_hash: Mapped[str] = mapped_column(String(64))
    original: Mapped[str | None] = mapped_column(String(255))


class DocumentAlias(Base):
    """Another URL under which a list linked to a document, so that its link is known the next time.

    A page may name its address itself (rel=canonical); the document then has that one, and the link's is kept here.
    """

    __tablename__ = "document_aliases"
    __table_args__ = (Index("ix_document_aliases_document_id", "document_id"),)

    target_code: Mapped[str] = mapped_column(ForeignKey("targets.code"), primary_key=True)
    url_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))


class ForgottenDocument(Base):
    """A URL whose document retention has deleted: it stays known, so that no crawl fetches it as if it were new."""

    __tablename__ = "forgotten_documents"

    target_code: Mapped[str] = mapped_column(ForeignKey("targets.code", ondelete="CASCADE"), primary_key=True)
    url_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    forgotten_at: Mapped[datetime]
