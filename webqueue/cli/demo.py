"""`demo`: an instance of its own, with sites to crawl, offline."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from webqueue import access, clock, config, jobs
from webqueue.cli.opening import load_settings, opened
from webqueue.cli.serving import host_option, port_option, run_roles
from webqueue.database import Database
from webqueue.errors import WebqueueError
from webqueue.models import JobSource, Role

_USER: Final = "demo"
_TARGETS: Final = (
    "gazette_notices",
    "gazette_archive",
    "rivers_notices",
    "forests_notices",
    "harbour_notices",
)
# Two ministries behind one firewall share a key; the harbour office blocks half-way; the registry's list is empty; the
# museum's articles have no text.
_FILE: Final = """\
defaults:
  interval_sec: 0.5
sites:
  - {code: gazette, name: Northfield Gazette, base_url: "http://127.0.0.2:PORT/", adapter: list}
  - {code: rivers, name: Ministry of Rivers, base_url: "http://127.0.0.3:PORT/", adapter: list, rate_key: ministries}
  - {code: forests, name: Ministry of Forests, base_url: "http://127.0.0.4:PORT/", adapter: list, rate_key: ministries}
  - {code: harbour, name: Harbour Office, base_url: "http://127.0.0.5:PORT/", adapter: list, cooldown_sec: 10}
  - {code: registry, name: Old Registry, base_url: "http://127.0.0.6:PORT/", adapter: list}
  - {code: museum, name: City Museum, base_url: "http://127.0.0.7:PORT/", adapter: list}
targets:
  - code: gazette_notices
    site: gazette
    handler: crawl
    schedule: "* * * * *"
    note: Every minute; stops at the first page without a new notice.
    params: PARAMS
  - code: gazette_archive
    site: gazette
    handler: crawl
    schedule: "*/2 * * * *"
    note: Shares the gazette's host, so it waits until the other crawl is through.
    params: PARAMS
  - code: rivers_notices
    site: rivers
    handler: crawl
    schedule: "* * * * *"
    note: Shares a key with forests_notices; both ministries are behind one firewall.
    params: PARAMS
  - code: forests_notices
    site: forests
    handler: crawl
    schedule: "* * * * *"
    params: PARAMS
  - code: harbour_notices
    site: harbour
    handler: crawl
    schedule: "* * * * *"
    interval_sec: 0.3
    note: This server answers 429 half-way; after the cooldown the crawl goes on from its checkpoint, more slowly.
    params: PARAMS
  - code: registry_notices
    site: registry
    handler: crawl
    schedule: "*/5 * * * *"
    retry: {times: 0, wait_sec: 60}
    note: Its list lost all links in a redesign; a crawl that finds nothing is not green.
    params: PARAMS
  - code: museum_notices
    site: museum
    handler: crawl
    schedule: "*/5 * * * *"
    note: Its articles are drawn by a script, so their pages have no text; the crawl is done, and asks to be looked at.
    params: MUSEUM
"""
# A list page is enough to tell.
_MUSEUM: Final = '{list_url: "notices/index_{page}.html", item_selector: "ul.notices a", max_pages: 1}'
_PARAMS: Final = '{list_url: "notices/index_{page}.html", item_selector: "ul.notices a", max_pages: 6}'


@click.command()
@host_option
@port_option
@click.option("--fresh", is_flag=True, help="Forget everything that the demo has done so far.")
def demo(host: str, port: int, fresh: bool) -> None:
    """Show webqueue at work on six small sites of its own, offline."""
    folder = load_settings().instance_path / "demo"
    with _alone(folder):
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        _serve(folder, host, port)


def _serve(folder: Path, host: str, port: int) -> None:
    settings = load_settings(
        keeps_running=True,
        instance_path=folder,
        # Nothing of the demo may end in a real installation's database or store.
        database_url=f"sqlite:///{folder / 'webqueue.sqlite3'}",
        store_url=str(folder / "store"),
        allow_private_addresses=True,
        # Its servers are its own; the warning that crawls name no contact would puzzle who has just begun.
        contact="https://webqueue.invalid/demo",
    )
    with _sites(folder) as sites_port, opened(settings, creates=True) as (database, _settings):
        _fill(database, sites_port)
        run_roles(
            database,
            settings,
            web_at=(host, port),
            works=True,
            schedules=True,
            ready=lambda address: _announce(database, address),
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second demo out of the folder: the sites of two would answer at one place, and end with whichever stops first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, which `--fresh` deletes. A program that is started meanwhile must not keep the lock.
    lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WebqueueError(
                f"A demo runs in {folder} already. Stop it first, or start another one with another WEBQUEUE_INSTANCE_PATH."
            ) from None
        yield
    finally:
        os.close(lock)


@contextmanager
def _sites(folder: Path) -> Iterator[int]:
    """The demo's sites in a process of their own, which ends when this one does; their port."""
    command = [sys.executable, "-m", "webqueue.demo", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise WebqueueError("The demo's sites did not start; the reason stands above.")
        yield int(json.loads(line)["port"])
        assert process.stdin is not None
        process.stdin.close()


def _fill(database: Database, sites_port: int) -> None:
    """Describe the sites, and at the first start let every target run once."""
    text = _FILE.replace("PARAMS", _PARAMS).replace("MUSEUM", _MUSEUM).replace("PORT", str(sites_port))
    report = database.run(
        lambda session: config.import_file(session, text, by=_USER, now=clock.now(session), dry_run=False)
    )
    if "target gazette_notices" in report.created:
        for target in (*_TARGETS, "registry_notices", "museum_notices"):
            database.run(
                lambda session, target=target: jobs.submit(session, target, source=JobSource.MANUAL, by=_USER)  # type: ignore[misc]
            )


def _announce(database: Database, address: str) -> None:
    """Print a link that logs in once; the demo's user has a password that nobody knows."""
    new = access.new_user(_USER, secrets.token_urlsafe(24), Role.ADMIN)

    def link() -> str:
        with database.transaction() as session:
            now = clock.now(session)
            user = access.find_user(session, _USER)
            if user is None:
                user = access.create_user(session, new, by=_USER, now=now)
            return access.new_login_link(session, user, now)

    click.echo(f"webqueue demo is at {address}")
    click.echo(f"Log in here, once, within 30 minutes: {address}/login/{link()}")
    click.echo(f"Stop it with Ctrl-C; `{sys.argv[0]} demo --fresh` starts from nothing.")
    sys.stdout.flush()
