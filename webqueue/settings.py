"""Settings from the environment (`WEBQUEUE_…`) and from an optional file `webqueue.env` in the instance folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from webqueue import __version__
from webqueue.errors import InvalidInputError, Problem
from webqueue.sentences import say

# A mail address or a web address.
_CONTACT: Final = re.compile(r"[^\s@(<+]+@[^\s@]+\.[^\s@]|https?://[^\s)]+\.", re.IGNORECASE)

# What can stand in an HTTP header, whatever else was pasted into the variable; an empty one counts as not set.
HeaderText = Annotated[str, Field(pattern=r"^[\x20-\x7e]*$", max_length=500)]


class Settings(BaseSettings):
    """One field a setting; every one is documented in docs/reference/settings.md (a test compares)."""

    model_config = SettingsConfigDict(
        env_prefix="WEBQUEUE_", extra="ignore", frozen=True, populate_by_name=True
    )

    instance_path: Path = Field(
        Path("instance"), description="Folder of the SQLite file, locks, and evidence."
    )
    database_url: str | None = Field(
        None, description="SQLAlchemy URL; the default is SQLite in the instance folder."
    )
    store_url: str | None = Field(
        None, description="fsspec URL of the store of originals; default: a folder there."
    )
    sqlite_synchronous: Literal["FULL", "NORMAL"] = Field("FULL", description="SQLite's synchronous mode.")
    threads: int = Field(8, ge=1, le=256, description="Worker threads of one process.")
    web_threads: int = Field(8, ge=1, le=256, description="Threads of the web server.")
    allow_private_addresses: bool = Field(
        False, description="Let crawls reach loopback, private and link-local addresses."
    )
    allow_commands: bool = Field(
        False, description="Let `command` targets run programs of this machine as the worker's user."
    )
    host_cooldown_delay_sec: int = Field(
        600,
        ge=0,
        le=86400,
        validation_alias=AliasChoices(
            "WEBQUEUE_HOST_COOLDOWN_DELAY_SEC", "TASK_QUEUE_HOST_COOLDOWN_DELAY_SEC"
        ),
        description="Seconds that a key cools down after a block when nothing longer was asked for.",
    )
    cooldown_auto_retry_max: int = Field(
        12,
        ge=0,
        le=1000,
        validation_alias=AliasChoices(
            "WEBQUEUE_COOLDOWN_AUTO_RETRY_MAX", "TASK_QUEUE_COOLDOWN_AUTO_RETRY_MAX"
        ),
        description="Automatic retries of a job after blocks.",
    )
    contact: HeaderText | None = Field(
        None,
        description="Mail address or URL at which a server's owner reaches you; named in the user agent.",
    )
    user_agent: HeaderText | None = Field(
        None, description="User agent of crawls, instead of webqueue's own; should name a contact."
    )
    keep_jobs: int = Field(
        1000, ge=20, le=1_000_000, description="Finished jobs that each target keeps in its history."
    )
    keep_jobs_days: int = Field(
        400, ge=1, le=36_500, description="Days after which a finished job is deleted."
    )
    keep_logs: int | None = Field(
        None, ge=0, le=1_000_000, description="Finished jobs of each target that keep their logs; none: all."
    )
    keep_logs_days: int | None = Field(
        None,
        ge=1,
        le=36_500,
        description="Days after which the log of a finished job is deleted, before the job.",
    )
    keep_documents_days: int | None = Field(
        None,
        ge=1,
        le=36_500,
        description="Days after which a document that no request found again is deleted; default: never.",
    )
    warc: bool = Field(
        False, description="Keep what servers sent as WARC files, for the targets that ask for it."
    )
    disk_free_mb: int = Field(
        256,
        ge=0,
        le=100_000_000,
        description="Free megabytes below which crawls stop, before the database does.",
    )
    disk_free_percent: float = Field(
        1.0, ge=0, le=90, description="The same as a part of the disk; the larger of both holds."
    )
    stop_grace_sec: float = Field(8.0, ge=0, le=300, description="Seconds that handlers get to stop in.")
    rag_export_url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = Field(
        None, description="Endpoint to which the export for retrieval is posted; none = a file a target."
    )
    rag_export_token: SecretStr | None = Field(None, description="Bearer token for that endpoint.")
    rag_export_chunk_chars: int = Field(
        1000, ge=100, le=20_000, description="Most characters of a chunk of that export."
    )
    log_json: bool = Field(False, description="Log JSON lines instead of text.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe level logged."
    )
    trusted_hosts: str = Field(
        "", description="Comma-separated host names the admin answers to; empty = any."
    )

    trusted_proxy: Annotated[str, Field(pattern=r"^(\*|[0-9A-Fa-f.:]+)?$")] = Field(
        "",
        description="Address of the web server in front, whose X-Forwarded-For and X-Forwarded-Proto are believed; "
        "* = whoever asks.",
    )

    @property
    def crawl_agent(self) -> str:
        """The user agent of crawls whose site names none."""
        if self.user_agent and self.user_agent.strip():
            return self.user_agent.strip()
        contact = (self.contact or "").strip()
        own = f"webqueue/{__version__}"
        return f"{own} (+{contact})" if contact else own

    @property
    def names_contact(self) -> bool:
        """Whether who runs a server can see in the user agent whom to write to."""
        return _CONTACT.search(self.crawl_agent) is not None

    @property
    def url(self) -> str:
        """The database's URL."""
        return self.database_url or f"sqlite:///{self.instance_path / 'webqueue.sqlite3'}"

    @property
    def store(self) -> str:
        """The store's fsspec URL."""
        return self.store_url or str(self.instance_path / "store")


def load(**overrides: object) -> Settings:
    """Read the settings: arguments first, then the environment, then `webqueue.env` in the instance folder.

    Raises:
        InvalidInputError: a value cannot be used; it names the variable.
    """
    instance = Path(
        str(overrides.get("instance_path") or os.environ.get("WEBQUEUE_INSTANCE_PATH") or "instance")
    )
    overrides["instance_path"] = instance.absolute()
    try:
        return Settings(_env_file=instance / "webqueue.env", **overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        raise InvalidInputError(
            [
                Problem("WEBQUEUE_" + str(detail["loc"][0]).upper().removeprefix("WEBQUEUE_"), detail["msg"])
                for detail in error.errors()
            ]
        ) from None


def commands_refusal() -> str | None:
    """Why targets of the kind `command` are not run here; None where they are.

    A target's program runs as the worker's user, so that whoever may write targets may do what that user can. That is
    decided by who administers the machine, in its environment or `webqueue.env`, never in the admin, whose password
    may be guessed.
    """
    if load().allow_commands:
        return None
    return say(
        "Targets of the kind 'command' are off. Whoever administers this machine turns them on by "
        "WEBQUEUE_ALLOW_COMMANDS=true in the environment or in webqueue.env of the instance folder; every process of "
        "webqueue then has to see it."
    )
