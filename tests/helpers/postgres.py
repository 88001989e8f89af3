"""A private PostgreSQL server for tests: its own data in a temporary folder, its own free port, gone afterwards.

It can be stopped, restarted and killed, so that tests may take the database away from a running webqueue.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

import psycopg

from tests.helpers.ports import lasting_port
from tests.helpers.requirements import MissingRequirementError
from tests.helpers.waiting import wait_until

SUPERUSER = "webqueue"
PREFIX = "webqueue-pg-"
OWNER = "owner"
# A path of a Unix socket holds 107 bytes; the server adds "/.s.PGSQL.65535".
LONGEST_SOCKET_FOLDER = 90
# Only what may go wrong on other people's machines is lost by this: a power failure ruins the data of a test.
FAST_AND_UNSAFE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


class PostgresServer:
    """One server process and its data folder.

    The process ends with the process that started it, also when that one is killed. As root it runs under another
    account, because PostgreSQL refuses to run as root.

    Args:
        durable: False turns fsync off, which makes tests fast; True keeps PostgreSQL's defaults.
        settings: further server settings, e.g. `{"max_connections": "20"}`.
    """

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self._binaries = _binaries()
        self._account = _account()
        self._settings = {**({} if durable else FAST_AND_UNSAFE), **(settings or {})}
        self._password = secrets.token_urlsafe(12)
        self._process: subprocess.Popen[bytes] | None = None
        self._template: str | None = None
        self._folder = self._make_folder()
        self.port = 0
        try:
            self._initialise()
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def running(self) -> bool:
        """Whether the server process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        path = self._folder / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    @property
    def folder(self) -> Path:
        """Holds the data, the log, and the Unix socket."""
        return self._folder

    def url(self, database: str = "postgres") -> str:
        """The SQLAlchemy URL of a database over TCP; it stays the same over restarts."""
        return f"postgresql+psycopg://{SUPERUSER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            RuntimeError: it did not start; the text has its log.
        """
        if self.running:
            raise RuntimeError("The PostgreSQL server runs already.")
        # More than one try: somebody may take the free port before the server does, and after a kill its orphaned
        # children hold the shared memory a moment longer.
        try:
            wait_until(self._launch, timeout=20)
        except AssertionError:
            raise RuntimeError(f"The PostgreSQL server did not start:\n{self.log}") from None

    def stop(self) -> None:
        """Shut down fast: open connections are cut, everything committed is kept."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server without warning, as a crash of the machine would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop (if it still runs) and start on the same port."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop and delete everything."""
        self._end(signal.SIGINT)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.close()

    def execute(self, statement: str, *, database: str = "postgres") -> None:
        """Run one statement as superuser, outside a transaction."""
        with self.connect(database) as connection:
            connection.execute(statement.encode())

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A connection of the superuser in autocommit mode, for looking and for doing damage."""
        return psycopg.connect(self._conninfo(database, self.port), autocommit=True, connect_timeout=10)

    def use_template(self, name: str) -> None:
        """Let `create_database` copy the database `name` from now on; nobody may be connected to it."""
        self._template = name

    def create_database(self, *, empty: bool = False) -> str:
        """Create a database of its own name, a copy of the template unless `empty`, and return its URL."""
        name = f"test_{secrets.token_hex(6)}"
        template = f" TEMPLATE {self._template}" if self._template and not empty else ""
        self.execute(f"CREATE DATABASE {name}{template}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database, with whoever is still connected to it."""
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def _make_folder(self) -> Path:
        parent = tempfile.gettempdir()
        if len(parent) > LONGEST_SOCKET_FOLDER - len(f"/{PREFIX}12345678"):
            parent = "/tmp"
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._owner = _own(folder)
        _sweep(Path(parent))
        self._give_away(folder)
        return folder

    def _initialise(self) -> None:
        password_file = self._folder / "password"
        password_file.write_text(self._password, encoding="ascii")
        self._give_away(password_file)
        # A password even here: a superuser of PostgreSQL can run programs, and other people may share the machine.
        self._run_as_account(
            str(self._binaries / "initdb"),
            f"--pgdata={self._folder / 'data'}",
            f"--username={SUPERUSER}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        )
        password_file.unlink()

    def _run_as_account(self, *command: str) -> None:
        done = subprocess.run(
            self._as_account(*command),
            cwd=self._folder,
            capture_output=True,
            check=False,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")

    def _as_account(self, *command: str) -> list[str]:
        """Run under the other account, if any, and end when the starting process ends (PR_SET_PDEATHSIG)."""
        prefix = ["setpriv", "--pdeathsig", "INT"]
        if self._account is not None:
            prefix += [f"--reuid={self._account.pw_uid}", f"--regid={self._account.pw_gid}", "--clear-groups"]
        return [*prefix, "--", *command]

    def _launch(self) -> bool:
        port = self.port or lasting_port()
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": str(self._folder),
            **self._settings,
        }
        arguments = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with self._open_log() as log:
            self._process = subprocess.Popen(
                self._as_account(
                    str(self._binaries / "postgres"), "-D", str(self._folder / "data"), *arguments
                ),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal is for the tests; they stop the server when they are done.
                start_new_session=True,
            )
        wait_until(lambda: not self.running or self._answers(port), timeout=60, message="PostgreSQL to start")
        if self.running:
            self.port = port
        return self.running

    def _open_log(self) -> IO[bytes]:
        log = (self._folder / "log").open("ab")
        self._give_away(self._folder / "log")
        return log

    def _give_away(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _answers(self, port: int) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self._conninfo("postgres", port)):
            return True
        return False

    def _conninfo(self, database: str, port: int) -> str:
        return f"host={self._folder} port={port} user={SUPERUSER} password={self._password} dbname={database}"

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self.running:
            self._process.send_signal(how)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=20)
        self._process = None


def _own(folder: Path) -> IO[bytes]:
    """Hold a lock in the folder as long as this process lives; it appears under its name when it is locked."""
    lock = (folder / "owner.new").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "owner.new").rename(folder / OWNER)
    return lock


def _sweep(parent: Path) -> None:
    """Delete the folders of test runs that were killed: nobody holds their lock any more."""
    for owner in parent.glob(f"{PREFIX}*/{OWNER}"):
        with suppress(OSError), owner.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(owner.parent, ignore_errors=True)


def _binaries() -> Path:
    """The folder of `postgres` and `initdb`: PostgreSQL's own word, else the newest of Debian's folders."""
    found: list[Path] = []
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, check=False, text=True)
        found.append(Path(answer.stdout.strip()))
    debian = Path("/usr/lib/postgresql")
    if debian.is_dir():
        versions = (folder for folder in debian.iterdir() if folder.name.isdigit())
        found += [
            folder / "bin" for folder in sorted(versions, key=lambda folder: int(folder.name), reverse=True)
        ]
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise MissingRequirementError(
        "These tests need a PostgreSQL server (Debian: apt-get install postgresql)."
    )


def _account() -> pwd.struct_passwd | None:
    """The account that the server runs under when the tests run as root; None: the tests' own."""
    if shutil.which("setpriv") is None:
        raise MissingRequirementError("These tests need setpriv (Debian: apt-get install util-linux).")
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise MissingRequirementError(
        "As root, these tests need an account postgres or nobody for the PostgreSQL server."
    )
