"""The installed command as a process of its own: exit codes, the two streams, pipes, and databases that are not there."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

import webqueue
from tests.conftest import Serve
from tests.helpers.admin import add_document, finished_job
from tests.helpers.installation import (
    COMMAND,
    PATIENCE_SEC,
    Installation,
    file_of,
    site_yaml,
    target_yaml,
)
from tests.helpers.postgres import PostgresServer
from tests.helpers.servers.hostile import HostileSite
from tests.helpers.servers.news import NewsSite
from tests.helpers.waiting import wait_until
from webqueue.models import UserSession

PARAMS = {"list_url": "news/index_{page}.html", "title_selector": "h1", "content_selector": "div.content"}


@pytest.fixture
def news(installation: Installation, serve: Serve) -> NewsSite:
    """A site with a good target, `news`, and one whose list is not there, `lost`."""
    site = NewsSite(pages=1, per_page=3)
    server = serve(site)
    installation.describe(
        file_of(
            [site_yaml("news", server.url)],
            [
                target_yaml("news", "news", PARAMS),
                target_yaml("lost", "news", {**PARAMS, "list_url": "none/{page}"}),
            ],
        )
    )
    return site


def one_line(text: str) -> str:
    (line,) = text.splitlines()
    return line


def test_a_first_command_makes_the_instance_and_has_nothing_to_say_about_it(tmp_path: Path) -> None:
    with Installation(tmp_path / "new" / "instance") as installed:
        said = installed.command("token", "add", "scripts", "--role", "admin")
        assert (said.returncode, said.stderr) == (0, "")
        token = one_line(said.stdout)
        assert said.stdout == f"{token}\n"
        assert token.startswith("wq_")
        assert (installed.instance / "webqueue.sqlite3").is_file()


def test_exit_codes_and_one_line_on_standard_error(installation: Installation) -> None:
    version = installation.command("--version")
    assert (version.returncode, version.stdout) == (0, f"webqueue, version {webqueue.__version__}\n")
    refused = installation.command("run", "nothing")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert one_line(refused.stderr) == "webqueue: There is no target 'nothing'."
    wrong = installation.command("jobs", "show")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert one_line(wrong.stderr) == "webqueue: Missing argument 'JOB'. See `webqueue jobs show --help`."


def test_a_password_comes_through_the_pipe(installation: Installation) -> None:
    words = ("user", "add", "anna", "--role", "admin", "--password-stdin")
    said = installation.command(*words, stdin="correct horse battery\n")
    assert (said.returncode, said.stdout, said.stderr) == (0, "user anna added\n", "")
    listing = installation.command("user", "list", "--json")
    assert [user["name"] for user in json.loads(listing.stdout)] == ["anna"]


def test_a_setting_that_cannot_be_used_names_its_variable(instance: Path) -> None:
    with Installation(instance, {"WEBQUEUE_THREADS": "many"}) as installed:
        said = installed.command("jobs", "list")
        assert said.returncode == 1
        assert one_line(said.stderr).startswith("webqueue: WEBQUEUE_THREADS: ")


def test_run_wait_ends_as_the_job_does(installation: Installation, news: NewsSite) -> None:
    installation.serve()
    done = installation.command("run", "news", "--wait")
    seq = installation.jobs()[-1].seq
    assert (done.returncode, done.stdout) == (0, f"#{seq} done\n")
    assert done.stderr.splitlines()[0].startswith(f"Queued #{seq} (")
    assert len(installation.documents()) == len(news.articles)

    failed = installation.command("run", "lost", "--wait")
    seq = installation.jobs()[-1].seq
    assert (failed.returncode, failed.stdout) == (1, f"#{seq} failed\n")
    assert failed.stderr.splitlines()[-1].startswith(f"webqueue: #{seq} failed: ")
    assert "/none/1" in failed.stderr.splitlines()[-1]

    as_json = installation.command("run", "news", "--wait", "--json")
    assert as_json.returncode == 0
    assert json.loads(as_json.stdout)["status"] == "done"


def test_try_shows_and_stores_nothing(installation: Installation, news: NewsSite) -> None:
    installation.serve()
    said = installation.command("try", "news")
    assert said.returncode == 0, said
    found = json.loads(said.stdout)
    assert [link["text"] for link in found["links"]] == [article.title for article in news.articles]
    assert found["article"]["title"] == news.articles[0].title
    assert found["article"]["text"].split() == news.articles[0].text.split()
    assert installation.documents() == []
    lost = installation.command("try", "lost")
    assert lost.returncode == 1
    assert "/none/1" in lost.stderr


def test_run_wait_tells_why_nothing_happens_and_ends_at_ctrl_c(
    installation: Installation, news: NewsSite
) -> None:
    process = installation.start("run", "news", "--wait")
    try:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Queued #")
        assert "worker" in process.stderr.readline(), "there is none, and it says so"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_SEC)
    finally:
        process.kill()
    assert (process.returncode, out) == (1, "")
    assert err.splitlines()[-1] == "webqueue: aborted"
    (job,) = installation.jobs()
    assert job.status == "queued", "who stops waiting has not cancelled anything"


def test_the_reader_of_a_listing_may_go_away(installation: Installation, news: NewsSite) -> None:
    def crawled(session: Session) -> None:
        job = finished_job(session, "news", ago=timedelta(hours=1), seconds=1)
        add_document(session, job, "http://127.0.0.1/1", "One", "Text " * 50_000)

    installation.database.run(crawled)
    for words in ("documents export", "documents export --format csv", "jobs list --json"):
        piped = subprocess.run(
            # The reader is gone before the first line is written.
            ["bash", "-c", f"set -o pipefail; '{COMMAND}' {words} | true; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            env=installation.environment,
            timeout=PATIENCE_SEC,
            check=False,
        )
        assert piped.stderr == "", f"{words}: {piped.stderr}"
        assert piped.stdout.strip() in {"0", "1"}, words


UNREACHABLE = "postgresql://webqueue:secret@127.0.0.1:1/webqueue"


@pytest.mark.parametrize(
    ("words", "url", "told"),
    [
        ("check", UNREACHABLE, "postgresql://webqueue:***@127.0.0.1:1/webqueue"),
        ("db upgrade", UNREACHABLE, "postgresql://webqueue:***@127.0.0.1:1/webqueue"),
        ("serve --port 0", UNREACHABLE, "postgresql://webqueue:***@127.0.0.1:1/webqueue"),
        ("db upgrade", "sqlite:////proc/none/webqueue.sqlite3", "WEBQUEUE_INSTANCE_PATH"),
        ("db upgrade", "sqlite:////proc/webqueue.sqlite3", "unable to open database file"),
        ("check", "mysql://webqueue:secret@127.0.0.1/webqueue", "sqlite and postgresql"),
        ("check", "postgresql:secret", "WEBQUEUE_DATABASE_URL"),
    ],
)
def test_a_database_that_cannot_be_had_is_one_line_without_its_password(
    instance: Path, words: str, url: str, told: str
) -> None:
    with Installation(instance, {"WEBQUEUE_DATABASE_URL": url}) as installed:
        said = installed.command(*words.split())
    assert (said.returncode, said.stdout) == (1, "")
    line = one_line(said.stderr)
    assert line.startswith("webqueue: ")
    assert told in line
    assert "secret" not in line


@pytest.mark.postgresql
def test_tables_of_postgresql_are_upgraded_by_hand(instance: Path, postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database(empty=True)
    try:
        with Installation(instance, {"WEBQUEUE_DATABASE_URL": url}) as installed:
            for words in (("jobs", "list"), ("serve", "--port", "0")):
                refused = installed.command(*words)
                assert (refused.returncode, refused.stdout) == (1, "")
                assert "run `webqueue db upgrade` first" in one_line(refused.stderr)
            assert installed.command("db", "upgrade").stdout == "upgraded\n"
            assert installed.command("db", "upgrade").stdout == "up to date already\n"
            listed = installed.command("jobs", "list", "--json")
            assert (listed.returncode, listed.stdout) == (0, "[]\n")
    finally:
        postgres_server.drop_database(url)


def test_a_port_that_is_taken_is_one_line_and_starts_no_worker(installation: Installation) -> None:
    first = installation.serve()
    port = first.url.rpartition(":")[2]
    said = installation.command("serve", "--port", port)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.splitlines()[-1] == (
        f"webqueue: Cannot listen on 127.0.0.1:{port}: Address already in use. Choose another --port."
    )
    assert "worker started" not in said.stderr


def test_serve_paused_starts_nothing_until_it_is_resumed(installation: Installation, news: NewsSite) -> None:
    served = installation.serve("--paused")
    job_id = served.run("news")
    job = served.ask("GET", f"jobs/{job_id}").data
    assert job["status"] == "queued"
    assert "pause" in job["waiting"]["message"].lower()
    assert json.loads(installation.command("check", "--json").stdout)["paused_all"] is True


def test_roles_of_their_own(installation: Installation, serve: Serve) -> None:
    """`web` runs no job; `worker` does, without a port; both stop cleanly."""
    server = serve(HostileSite())
    params = {"list_url": "/", "max_pages": 1, "title_selector": "h1", "content_selector": "article"}
    installation.describe(file_of([site_yaml("ok", server.url)], [target_yaml("ok", "ok", params)]))
    web = installation.serve(role="web")
    web.token = installation.token()
    job_id = web.run("ok")
    assert installation.job(job_id).status == "queued"
    worker = installation.start("worker", "--threads", "1")
    scheduler = installation.start("scheduler")
    try:
        assert installation.wait_for_end(job_id).status == "done"
        roles = {"worker", "scheduler"}
        wait_until(
            lambda: {row["role"] for row in web.ask("GET", "status").data["processes"]} >= roles,
            timeout=PATIENCE_SEC,
        )
        for process in (worker, scheduler):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_SEC)
            assert process.returncode == 0
    finally:
        for process in (worker, scheduler):
            process.kill()
    assert web.terminate() == 0


@pytest.mark.parametrize(
    ("proxy", "secure", "address"), [("127.0.0.1", True, "203.0.113.7"), ("", False, "127.0.0.1")]
)
def test_a_client_is_known_through_the_web_server_in_front_that_is_named(
    installation: Installation, proxy: str, secure: bool, address: str
) -> None:
    installation.more["WEBQUEUE_TRUSTED_PROXY"] = proxy
    installation.command(
        "user", "add", "anna", "--role", "admin", "--password-stdin", stdin="correct horse battery\n"
    )
    port = urlsplit(installation.serve(role="web").url).port
    through = {"X-Forwarded-For": "10.9.9.9, 203.0.113.7", "X-Forwarded-Proto": "https"}

    def ask(method: str, fields: dict[str, str], cookie: str) -> tuple[int, str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SEC)
        headers = {**through, "Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request(method, "/login", urlencode(fields), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers["Set-Cookie"] or "", text

    _, cookie, page = ask("GET", {}, "")
    assert ("Secure" in cookie) == secure
    token = re.findall(r'name="csrf_token" value="([^"]+)"', page)[0]
    fields = {"csrf_token": token, "name": "anna", "password": "correct horse battery"}
    assert ask("POST", fields, cookie.partition(";")[0])[0] == 303
    with installation.database.reading() as session:
        assert session.scalars(select(UserSession.address)).one() == address
