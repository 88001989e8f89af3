"""The admin as a person meets it: a real server on a free port, and rows to look at."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from flask import Flask
from sqlalchemy import update
from sqlalchemy.orm import Session
from werkzeug.serving import WSGIRequestHandler, make_server

from webqueue import access, clock, config, jobs
from webqueue.app import create_app
from webqueue.database import Database
from webqueue.models import (
    Document,
    DocumentVersion,
    Job,
    JobLog,
    KeyEvent,
    Process,
    RateKey,
    RateKeyStatus,
    Target,
)
from webqueue.settings import Settings

HOSTILE = "<img src=x onerror=alert(1)>"
# The same, where it stands in an attribute of an element.
QUOTED = f"\"'>{HOSTILE}"
PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class Admin:
    """A running admin: where it is, its database, and the application that answers."""

    url: str
    database: Database
    app: Flask

    def login_link(self, role: str = "admin") -> str:
        """A link that logs the user in once who has the name of the role; makes that user when there is none."""

        def make(session: Session) -> str:
            now = clock.now(session)
            user = access.find_user(session, role) or access.create_user(
                session, access.new_user(role, PASSWORD, role), by="test", now=now
            )
            return access.new_login_link(session, user, now)

        return f"{self.url}/login/{self.database.run(make)}"

    def setup_link(self) -> str:
        """The link that makes the first administrator."""
        return f"{self.url}/setup/{self.database.run(lambda s: access.new_setup_link(s, clock.now(s)))}"


class _Quiet(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """No line a request."""


@contextmanager
def running_admin(settings: Settings, database: Database, port: int = 0) -> Iterator[Admin]:
    """Serve the pages until the block ends, on a free port if none is given."""
    app = create_app(settings, database)
    server = make_server("127.0.0.1", port, app, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, name="test web server")
    thread.start()
    try:
        yield Admin(f"http://127.0.0.1:{server.server_port}", database, app)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def add_site(session: Session, code: str, base_url: str, **more: object) -> None:
    """Describe a site, as the form does."""
    config.put_site(session, code, {"base_url": base_url, **more}, by="test", now=clock.now(session))


def add_target(session: Session, code: str, site: str, **more: object) -> None:
    """Describe a target that crawls a list, as the form does."""
    data: dict[str, object] = {
        "site": site,
        "handler": "crawl",
        "params": {"list_url": "news/index_{page}.html", "item_selector": "ul.list a"},
        **more,
    }
    config.put_target(session, code, data, by="test", now=clock.now(session))


def add_worker(session: Session, now: datetime, threads: int = 8) -> None:
    """A worker and a scheduler that have just told that they live."""
    for role in ("worker", "scheduler"):
        session.add(
            Process(
                id=secrets.token_hex(6),
                role=role,
                hostname="crawler-1",
                pid=4711,
                threads=threads if role == "worker" else 0,
                started_at=now - timedelta(hours=5),
                heartbeat_at=now + timedelta(minutes=10),  # so that it lives as long as the test
            )
        )


def finished_job(
    session: Session,
    target: str,
    *,
    ago: timedelta,
    seconds: float,
    status: str = "done",
    **more: object,
) -> Job:
    """A job that ended `ago` before now, after so many seconds."""
    submitted = jobs.submit(session, target, by="admin", source="api", from_page=_unlike_others())
    now = clock.now(session)
    end, start = now - ago, now - ago - timedelta(seconds=seconds)
    values = {
        "source": "schedule",
        "from_page": 0,
        "enqueued_at": start - timedelta(seconds=2),
        "due_at": start - timedelta(seconds=2),
        "started_at": start,
        "began_at": start,
        "finished_at": end,
        "retry_at": None,
        "status": status,
    }
    job = _changed(session, submitted.seq, **values, **more)
    jobs.settle(session, session.get_one(RateKey, job.rate_key), now)
    return job


def running_job(session: Session, target: str, **more: object) -> Job:
    """A job that a worker runs, with its key leased, as a claim leaves them."""
    submitted = jobs.submit(session, target, by="admin")
    job = session.get_one(Job, submitted.seq)
    now = clock.now(session)
    key = session.get_one(RateKey, job.rate_key)
    key.status, key.retry_at, key.leased_by = RateKeyStatus.LEASED, now + timedelta(hours=1), "worker-1"
    key.lease_token += 1
    session.flush()
    values = {
        "status": "running",
        "retry_at": key.retry_at,
        "leased_by": key.leased_by,
        "lease_token": key.lease_token,
        "started_at": now - timedelta(minutes=6),
        "began_at": now - timedelta(minutes=6),
        "enqueued_at": now - timedelta(minutes=7),
        "due_at": now - timedelta(minutes=7),
    }
    return _changed(session, job.seq, **{**values, **more})


def _changed(session: Session, seq: int, **values: object) -> Job:
    """The job with other values, written past the model: a queue row is not saved through the ORM outside its runner."""
    session.execute(
        update(Job).where(Job.seq == seq).values(values).execution_options(synchronize_session=False)
    )
    job = session.get_one(Job, seq)
    session.refresh(job)
    return job


def add_document(session: Session, job: Job, url: str, title: str, text: str, versions: int = 1) -> Document:
    """A stored page with its versions."""
    now = clock.now(session)
    document = Document(
        target_code=job.target_code,
        url=url,
        url_hash=sha256(url.encode()).hexdigest(),
        title=title,
        text=text,
        published_at=datetime(2026, 3, 1, tzinfo=UTC),
        first_seen_at=now - timedelta(days=2),
        last_seen_at=now,
        changed_at=now - timedelta(hours=1),
        version=versions,
        content_hash=sha256(text.encode()).hexdigest(),
        content_type="text/html",
        first_job_id=job.id,
        last_job_id=job.id,
        last_root_id=job.root_id,
    )
    session.add(document)
    session.flush()
    for number in range(1, versions + 1):
        session.add(
            DocumentVersion(
                document_id=document.id,
                version=number,
                stored_at=now - timedelta(days=versions - number),
                job_id=job.id,
                title=title,
                text=f"{text} (version {number})" if number < versions else text,
                content_hash=document.content_hash,
            )
        )
    return document


def log_lines(session: Session, job: Job, *messages: str, level: str = "info") -> None:
    """Lines of a job's log."""
    now = clock.now(session)
    for message in messages:
        session.add(JobLog(job_seq=job.seq, at=now, level=level, message=message))


def fill(database: Database) -> None:
    """A morning in the life of an installation: something in every state, and hostile texts in every place."""
    database.run(_fill)


def _fill(session: Session) -> None:
    now = clock.now(session)
    add_worker(session, now)
    for code, url in (
        ("example", "https://www.example.org/"),
        ("gz_gov", "http://www.gz.example.cn/"),
        ("archive", "https://archive.example.net/"),
        ("shop", "https://shop.example.com/"),
        ("hostile", "https://hostile.example/"),
    ):
        add_site(
            session, code, url, name=code.title(), timezone="Asia/Shanghai" if code == "gz_gov" else "UTC"
        )
    add_target(session, "example_full", "example", schedule="0 19 * * *", owner="Ann")
    add_target(session, "example_news", "example", schedule="*/30 * * * *", tags=["news", "daily"])
    add_target(session, "gz_notices", "gz_gov", schedule="0 3 * * 1-5", note="市政府公告 (city notices)")
    add_target(session, "archive_letters", "archive", schedule="0 4 1 * *")
    add_target(session, "shop_prices", "shop", schedule="0 */6 * * *")
    add_target(session, "hostile_target", "hostile", note=HOSTILE, owner=HOSTILE)
    _history(session)
    _now(session, now)


def _history(session: Session) -> None:
    for number in range(11, 0, -1):
        ago = timedelta(hours=number)
        finished_job(session, "example_news", ago=ago, seconds=60 + 7 * number % 50)
        finished_job(session, "archive_letters", ago=ago * 30, seconds=20 + number)
        finished_job(
            session,
            "shop_prices",
            ago=ago * 6,
            seconds=30,
            status="failed" if number < 4 else "done",
            error_msg="cooldown_abort; auto_retry_max_reached" if number < 4 else None,
        )
    finished_job(
        session,
        "gz_notices",
        ago=timedelta(hours=2),
        seconds=95,
        attention="Links on page 1: 4, under half the median of the last 10 runs (20).",
        counters={"pages": 3, "links": 44, "new": 0, "changed": 1, "known": 43, "bytes": 812345},
    )
    failed = finished_job(
        session,
        "hostile_target",
        ago=timedelta(minutes=20),
        seconds=0.0,
        status="failed",
        error_msg=f"No link matched 'ul.list a' on https://hostile.example/{HOSTILE}",
        last_completed_page=3,
        counters={"pages": 4, "links": 61, "status": {"200": 60, "404": 1}},
    )
    log_lines(
        session, failed, "List page 4 has no link", f"title: {HOSTILE}", "\x1b[31mred\u202eright to left"
    )
    log_lines(session, failed, "Kept a copy of the page", level="warning")
    log_lines(session, failed, "The crawl failed", level="error")
    add_document(
        session, failed, f"https://hostile.example/{HOSTILE}", HOSTILE, f"{HOSTILE}\nSecond line.", 3
    )
    add_document(session, failed, "javascript:alert(1)", "A link that is none", "text")
    add_document(
        session,
        failed,
        "http://www.gz.example.cn/news/2026/03/01/1.html",
        "关于公布2026年政府信息公开的通知",
        "各区人民政府:\n" * 5,
    )


def _now(session: Session, now: datetime) -> None:
    running = running_job(
        session,
        "example_full",
        progress_current=1204,
        progress_total=4000,
        progress_message="3.1 pages/s",
        current_page=61,
        last_completed_page=60,
        counters={"pages": 60, "links": 1204, "new": 1180, "known": 20, "duplicates": 4},
    )
    log_lines(session, running, *(f"List page {number}: 20 links, 20 new" for number in range(1, 61)))
    jobs.submit(session, "example_news", by="admin")
    jobs.submit(session, "example_full", by="admin", force=True)
    jobs.submit(session, "shop_prices", by="admin")
    shop = session.get_one(RateKey, "shop.example.com")
    shop.cooldown_until = now + timedelta(minutes=28)
    shop.cooldown_cause = "HTTP 429 from shop.example.com, Retry-After 1800 s"
    shop.consecutive_blocks = 3
    session.flush()
    jobs.settle(session, shop, now)
    session.add(KeyEvent(rate_key=shop.key, at=now, kind="blocked", message=shop.cooldown_cause))
    jobs.pause_key(session, "archive.example.net", by="admin", note="The site's owner asked")
    session.get_one(Target, "archive_letters").paused_at = now
    session.get_one(Target, "archive_letters").paused_by = "admin"


def _unlike_others() -> int:
    """A start page that no equal job has, so that the submission is not deduplicated."""
    return 1 + secrets.randbelow(999_999)
