"""`serve` and the single roles, and how they stop."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Final, NoReturn

import click
from waitress.server import create_server

from webqueue import access, clock, jobs, logs
from webqueue.app import create_app
from webqueue.cli.opening import load_settings, opened, person
from webqueue.database import Database
from webqueue.deliveries.telling import Teller
from webqueue.errors import WebqueueError
from webqueue.scheduler import Scheduler
from webqueue.settings import Settings
from webqueue.worker import WorkerPool

log = logs.get(__name__)
# What a process ends with that somebody has to start again: EX_TEMPFAIL, which no service manager takes for a success.
_FORCED: Final = 75
host_option = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
port_option = click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 = a free one."
)
threads_option = click.option("--threads", type=click.IntRange(1, 256), help="Worker threads (default 8).")


@click.command()
@host_option
@port_option
@threads_option
@click.option("--paused", is_flag=True, help="Start with everything paused, as after restoring a copy.")
def serve(host: str, port: int, threads: int | None, paused: bool) -> None:
    """Run web, scheduler and workers in one process."""
    with opened(load_settings(keeps_running=True, threads=threads), creates=True) as (database, settings):
        if paused:
            database.run(lambda session: jobs.pause_all(session, by=person()))
        run_roles(database, settings, web_at=(host, port), works=True, schedules=True)


@click.command()
@host_option
@port_option
def web(host: str, port: int) -> None:
    """Run the pages and the API only."""
    with opened(load_settings(keeps_running=True), creates=True) as (database, settings):
        run_roles(database, settings, web_at=(host, port))


@click.command()
@threads_option
def worker(threads: int | None) -> None:
    """Run jobs only."""
    with opened(load_settings(keeps_running=True, threads=threads), creates=True) as (database, settings):
        run_roles(database, settings, works=True)


@click.command()
def scheduler() -> None:
    """Make the jobs of due ticks only."""
    with opened(load_settings(keeps_running=True), creates=True) as (database, settings):
        run_roles(database, settings, schedules=True)


def run_roles(
    database: Database,
    settings: Settings,
    *,
    web_at: tuple[str, int] | None = None,
    works: bool = False,
    schedules: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Run the given roles in this process until SIGTERM or Ctrl-C; then stop them cleanly (P9).

    Args:
        web_at: address and port of the web server; None runs none.
        ready: called with the web server's address once everything runs.

    Raises:
        WebqueueError: the address cannot be listened on.
    """
    pool: WorkerPool | None = None
    with _stopping_on_signals(), ExitStack() as stack:
        # Listening comes first: a port that is taken must not start, and then stop, the workers.
        server = stack.enter_context(_listening(database, settings, web_at)) if web_at else None
        try:
            if works:
                pool = WorkerPool(database, settings, threads=settings.threads)
                pool.start()
            if schedules:
                ticker = Scheduler(database)
                ticker.start()
                stack.callback(ticker.stop)
            if schedules and not works:
                # Somebody must be left to tell that the last worker has died.
                teller = Teller(database)
                teller.start()
                stack.callback(teller.stop)
            if server is None:
                log.info("running", workers=works, scheduler=schedules)
                signal.pause()
            else:
                address = f"http://{_shown(server)}"
                (ready or (lambda at: announce(database, at)))(address)
                server.run()
        except (KeyboardInterrupt, SystemExit):
            log.info("stopping")
        finally:
            if pool is not None and not pool.stop(settings.stop_grace_sec):
                _leave(_FORCED if pool.forced else 0)
    if pool is not None and pool.forced:
        # Its handler has stopped in the end; the process was told to end all the same.
        raise SystemExit(_FORCED)


def announce(database: Database, address: str) -> None:
    """Print where the admin is, and the one-time set-up link while there is no user."""
    click.echo(f"webqueue is at {address}")
    with database.reading() as session:
        has_users = access.has_users(session)
    if not has_users:
        token = database.run(lambda session: access.new_setup_link(session, clock.now(session)))
        click.echo(f"Nobody can log in yet. Make the first administrator here, once: {address}/setup/{token}")
    sys.stdout.flush()


@contextmanager
def _listening(database: Database, settings: Settings, web_at: tuple[str, int]) -> Iterator[Any]:
    host, port = web_at
    app = create_app(settings, database)
    try:
        server = create_server(
            app,
            host=host,
            port=port,
            threads=settings.web_threads,
            ident="webqueue",
            **_behind(settings.trusted_proxy),
        )
    except OSError as error:
        raise WebqueueError(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another --port."
        ) from error
    try:
        yield server
    finally:
        server.close()


def _behind(proxy: str) -> dict[str, Any]:
    """How the web server learns the client's address and scheme; from others such headers are thrown away."""
    if not proxy:
        return {}
    return {"trusted_proxy": proxy, "trusted_proxy_headers": {"x-forwarded-for", "x-forwarded-proto"}}


@contextmanager
def _stopping_on_signals() -> Iterator[None]:
    """Let SIGTERM end the main thread as Ctrl-C does: a plain SIGTERM runs no clean-up under waitress."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        # A second signal must not break the clean-up off half-way.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(0)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(TypeError):  # a handler that was not installed from Python
                signal.signal(number, handler)


def _leave(code: int) -> NoReturn:
    """End the process although a handler's thread still runs: its job was handed back, its key is shut (P9)."""
    log.error("a handler did not stop in time; its job was handed back, the process ends without it")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _shown(server: Any) -> str:
    host, port = server.effective_host, server.effective_port
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
