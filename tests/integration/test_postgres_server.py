"""The tests' own PostgreSQL server: it survives what the tests do to it, and leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from tests.helpers.postgres import PostgresServer
from tests.helpers.waiting import wait_until

pytestmark = pytest.mark.postgresql


def count_rows(server: PostgresServer) -> int:
    with server.connect() as connection:
        row = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert row is not None
    return int(row[0])


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_killed_server_comes_back_with_what_was_committed(server: PostgresServer) -> None:
    server.execute("CREATE TABLE kept (n int)")
    server.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
    url, port = server.url(), server.port

    server.kill()
    assert not server.running
    with pytest.raises(psycopg.OperationalError):
        server.connect()
    server.start()

    assert server.url() == url
    assert server.port == port
    assert count_rows(server) == 1000


def test_stopping_cuts_open_connections_and_keeps_the_data(server: PostgresServer) -> None:
    server.execute("CREATE TABLE kept (n int)")
    with server.connect() as idle:
        server.restart()
        with pytest.raises(psycopg.OperationalError):
            idle.execute("SELECT 1")
    assert count_rows(server) == 0


def test_databases_are_copies_of_the_template_and_can_be_dropped_in_use(server: PostgresServer) -> None:
    template = server.create_database(empty=True).rpartition("/")[2]
    server.execute("CREATE TABLE kept AS SELECT 1 AS n", database=template)
    server.use_template(template)

    first, second = server.create_database(), server.create_database()
    server.execute("DELETE FROM kept", database=first.rpartition("/")[2])

    with server.connect(second.rpartition("/")[2]) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]
        server.drop_database(second)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_stranger_without_the_password_is_refused(server: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"host=127.0.0.1 port={server.port} user=webqueue password=guess dbname=postgres")


def test_removing_leaves_no_folder_and_no_server(server: PostgresServer) -> None:
    folder, port = server.folder, server.port
    assert folder.exists()
    assert accepts(port)

    server.remove()

    assert not folder.exists()
    assert not accepts(port)


def test_a_killed_test_process_leaves_nothing(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A temporary folder of its own, so that only this test sweeps it. The server's account has to get there.
    monkeypatch.setenv("TMPDIR", str(server.folder))
    program = (
        "import time\n"
        "from tests.helpers.postgres import PostgresServer\n"
        "server = PostgresServer()\n"
        "server.start()\n"
        "print(server.port, server.folder, flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        port, folder = child.stdout.readline().split(maxsplit=1)
        assert accepts(int(port))
        monkeypatch.setattr(tempfile, "tempdir", str(server.folder))
        PostgresServer().remove()
        assert Path(folder.strip()).exists(), "the folder of a living process was swept away"
        child.send_signal(signal.SIGKILL)

    wait_until(lambda: not accepts(int(port)), timeout=20, message="the orphaned server to end")
    PostgresServer().remove()
    assert not Path(folder.strip()).exists()
