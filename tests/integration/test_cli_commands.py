"""Commands that read and change the database, on both engines: what they print, refuse, and leave behind."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from tests.helpers.admin import add_document, add_worker, finished_job, running_job
from tests.helpers.command_line import CommandLine, command_line
from webqueue import access, clock, jobs
from webqueue.cli import cli
from webqueue.database import Database
from webqueue.models import Document, Job, RateKey, Role, Site, StoredSetting, Target

FILE = """\
defaults:
  interval_sec: 5
sites:
  - code: example
    name: Example
    base_url: http://www.example.org/
    adapter: list
targets:
  - code: example_news
    site: example
    handler: crawl
    schedule: "0 3 * * *"
    params:
      list_url: "news/index_{page}.html"
      item_selector: "ul.list a"
  - code: example_old
    site: example
    handler: crawl
    params: {list_url: "old.html", max_pages: 1, item_selector: "a"}
"""
KEY = "www.example.org"


@pytest.fixture
def webqueue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database_url: str, instance: Path
) -> Iterator[CommandLine]:
    environment = [("WEBQUEUE_INSTANCE_PATH", str(instance)), ("WEBQUEUE_DATABASE_URL", database_url)]
    with command_line(monkeypatch, capsys, environment) as line:
        yield line


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "sites.yaml"
    file.write_text(FILE, encoding="utf-8")
    return file


@pytest.fixture
def configured(webqueue: CommandLine, file: Path) -> CommandLine:
    """A command line on a database with a site and two targets."""
    webqueue.done("import", file)
    return webqueue


def counted(database: Database, model: type[Site | Target | Job | Document]) -> int:
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(model)) or 0


BEGINNINGS = {
    "db upgrade", "demo", "import", "restore", "scheduler", "serve", "token add", "user add", "web", "worker"
}  # fmt: skip


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, with its words."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {verb}", below) for verb, below in command.commands.items())
        elif command is not None:
            yield name, command


def words_for(words: str, command: click.Command) -> list[str]:
    """The command with some value for each of its arguments and required options, and no question."""
    call = words.split()
    for one in command.params:
        if isinstance(one, click.Argument):
            call.append("1")
        elif one.name in {"yes", "password_stdin"}:
            call.append(one.opts[0])
    return call


@pytest.fixture
def nowhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[CommandLine]:
    """A command line in a folder in which nobody has installed anything."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with command_line(monkeypatch, capsys, []) as line:
        yield line


@pytest.mark.parametrize("words", sorted({words for words, _ in commands()} - BEGINNINGS))
def test_a_command_in_a_wrong_folder_says_so_and_makes_nothing(
    nowhere: CommandLine, words: str, tmp_path: Path
) -> None:
    said = nowhere(*words_for(words, dict(commands())[words]), stdin="correct horse battery\n")
    file = tmp_path / "elsewhere" / "instance" / "webqueue.sqlite3"
    assert said.complaint == (
        f"There is no installation in {file}. Set WEBQUEUE_INSTANCE_PATH to the one that is meant; "
        "`webqueue serve` makes a new one."
    )
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_database_without_tables_is_no_installation(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    empty_database_url: str,
    instance: Path,
    tmp_path: Path,
) -> None:
    Database(empty_database_url, instance_path=instance).close()
    environment = [("WEBQUEUE_INSTANCE_PATH", str(instance)), ("WEBQUEUE_DATABASE_URL", empty_database_url)]
    with command_line(monkeypatch, capsys, environment) as line:
        complaint = line("backup", tmp_path / "backup.tar.gz").complaint
    assert complaint.startswith("There is no installation in ")
    assert "Set WEBQUEUE_DATABASE_URL to the one that is meant" in complaint
    assert not (tmp_path / "backup.tar.gz").exists()


class TestImportAndExport:
    def test_a_dry_run_tells_and_writes_nothing(
        self, webqueue: CommandLine, file: Path, database: Database
    ) -> None:
        said = webqueue.done("import", file, "--dry-run")
        assert said.lines == [
            "site example created",
            "target example_news created",
            "target example_old created",
            "3 created, 0 changed, 0 unchanged (dry run: nothing was written)",
        ]
        assert (counted(database, Site), counted(database, Target)) == (0, 0)

    def test_a_dry_run_waits_for_nobody_who_writes(
        self, webqueue: CommandLine, file: Path, database: Database
    ) -> None:
        with database.transaction() as session:
            session.add(StoredSetting(name="held", value=1, changed_at=clock.now(session), changed_by="x"))
            session.flush()
            assert webqueue.done("import", file, "--dry-run").lines[-1].startswith("3 created")

    def test_the_second_time_changes_nothing(self, configured: CommandLine, file: Path) -> None:
        assert configured.done("import", file).lines == ["0 created, 0 changed, 3 unchanged"]

    def test_a_change_names_its_fields(self, configured: CommandLine, file: Path) -> None:
        file.write_text(FILE.replace("0 3 * * *", "0 4 * * *").replace("interval_sec: 5", "interval_sec: 6"))
        assert configured.done("import", file).lines == [
            "target example_news changed: schedule, interval_sec",
            "target example_old changed: interval_sec",
            "0 created, 2 changed, 1 unchanged",
        ]

    def test_it_reads_standard_input(self, webqueue: CommandLine) -> None:
        assert webqueue.done("import", "-", stdin=FILE).lines[-1] == "3 created, 0 changed, 0 unchanged"

    def test_what_is_exported_can_be_imported(
        self, configured: CommandLine, file: Path, database: Database
    ) -> None:
        exported = configured.done("export").out
        assert configured.done("import", "-", stdin=exported).lines[-1].startswith("0 created, 0 changed")
        with database.transaction() as session:
            for row in [*session.scalars(select(Target)), *session.scalars(select(Site))]:
                session.delete(row)
        again = configured.done("import", "-", stdin=exported).lines
        assert again[-1].startswith("3 created")
        assert configured.done("export").out == exported

    def test_every_mistake_is_named_by_line_and_field_and_nothing_is_written(
        self, webqueue: CommandLine, file: Path, database: Database
    ) -> None:
        wrong = FILE.replace("http://www.example.org/", "www.example.org")
        wrong = wrong.replace('"0 3 * * *"', '"61 3 * * *"').replace('"ul.list a"', '"ul[list a"')
        file.write_text(wrong)
        said = webqueue("import", file)
        *problems, summary = said.err.splitlines()
        assert (said.code, said.out) == (1, "")
        assert [problem.removeprefix(f"{file}: ").partition(": ")[0] for problem in problems] == [
            "line 6, sites[example].base_url",
            "line 12, targets[example_news].schedule",
            "line 15, targets[example_news].params.item_selector",
        ]
        assert summary == f"webqueue: {file}: 3 problems; nothing was changed."
        assert counted(database, Site) == 0

    @pytest.mark.parametrize(
        ("text", "told"),
        [("sites: [", "no YAML"), ("- a list", "mapping"), ("nonsense: 1", "nonsense"), ("\x07", "")],
    )
    def test_what_is_no_such_file_is_refused(self, webqueue: CommandLine, text: str, told: str) -> None:
        said = webqueue("import", "-", stdin=text)
        assert (said.code, said.out) == (1, "")
        assert told in said.err
        assert "Traceback" not in said.err

    def test_files_that_cannot_be_read(self, webqueue: CommandLine, tmp_path: Path) -> None:
        assert webqueue("import", tmp_path / "none.yaml").complaint.endswith("No such file or directory.")
        binary = tmp_path / "binary.yaml"
        binary.write_bytes(b"sites:\n\xff")
        assert webqueue("import", binary).complaint == f"{binary} is not UTF-8 text: byte 7 cannot be read."


class TestRunAndJobs:
    def test_run_queues(self, configured: CommandLine, database: Database) -> None:
        said = configured.done("run", "example_news", "--force", "--from-page", "3")
        with database.reading() as session:
            job = session.scalars(select(Job)).one()
        assert said.lines == [
            f"Queued #{job.seq} ({job.id}) in {KEY}, place 1",
            "No worker is alive: start one with `webqueue serve` or `webqueue worker`.",
            "Nobody can say when it starts.",
        ]
        assert (job.source, job.force, job.from_page, job.status) == ("manual", True, 3, "queued")

    def test_a_run_that_waits_says_why_and_when_it_can_start(
        self, configured: CommandLine, database: Database
    ) -> None:
        until = datetime(2126, 3, 1, 12, 0, 5, tzinfo=UTC)

        def cool_down(session: Session) -> None:
            add_worker(session, clock.now(session))
            key = session.get_one(RateKey, KEY)
            key.cooldown_until, key.cooldown_cause = until, "HTTP 429"

        configured.done("run", "example_old")
        database.run(cool_down)
        _queued, *told = configured.done("run", "example_news").lines
        assert told[0] == f"Rate key {KEY} is cooling down (HTTP 429)."
        assert told[1].startswith("2nd in line, behind #")
        assert told[2:] == ["It can start 2126-03-01 12:00:05 UTC at the earliest."]
        (again,) = configured.done("jobs", "list", "--target", "example_old", "--json").json
        configured.done("jobs", "cancel", again["id"])
        _queued, *again_told = configured.done("jobs", "retry", again["id"]).lines
        assert (again_told[0], again_told[-1]) == (told[0], told[-1])

        configured.done("rate-keys", "pause", KEY, "--note", "they asked \x1b[31mus")
        _queued, *told = configured.done("run", "example_news", "--from-page", "2").lines
        assert told[0].endswith(": they asked  [31mus."), "no control characters reach the terminal"
        assert f"Rate key {KEY} is cooling down (HTTP 429)." in told
        assert told[-1] == "Nobody can say when it starts."

    def test_an_equal_run_names_the_one_that_stands(
        self, configured: CommandLine, database: Database
    ) -> None:
        configured.done("run", "example_news")
        said = configured.done("run", "example_news")
        assert said.lines[0].startswith("An equal job stands already: #")
        assert counted(database, Job) == 1

    def test_run_as_json(self, configured: CommandLine) -> None:
        job = configured.done("run", "example_news", "--json").json
        assert (job["target"], job["status"], job["rate_key"]) == ("example_news", "queued", KEY)

    @pytest.mark.parametrize(
        "arguments", [("run", "nothing"), ("try", "nothing"), ("run", "../x"), ("run", "")]
    )
    def test_an_unknown_target(self, configured: CommandLine, arguments: tuple[str, ...]) -> None:
        assert configured(*arguments).complaint == f"There is no target {arguments[1]!r}."

    def test_list_and_show_by_id_and_by_number(self, configured: CommandLine) -> None:
        first = configured.done("run", "example_news", "--json").json
        second = configured.done("run", "example_old", "--json").json
        listed = configured.done("jobs", "list", "--json").json
        assert [job["id"] for job in listed] == [second["id"], first["id"]]
        heads, *rows = configured.done("jobs", "list").lines
        assert heads.split()[:3] == ["SEQ", "ID", "TARGET"]
        assert [row.split()[1] for row in rows] == [second["id"], first["id"]]
        for name in (first["id"], str(first["seq"]), f"#{first['seq']}"):
            assert configured.done("jobs", "show", name, "--json").json["id"] == first["id"]
        assert f"id                    {first['id']}" in configured.done("jobs", "show", first["id"]).out
        only = configured.done("jobs", "list", "--target", "example_old", "--limit", "1", "--json").json
        assert [job["id"] for job in only] == [second["id"]]
        assert configured.done("jobs", "list", "--status", "done", "--json").json == []

    def test_an_empty_list_says_what_to_do(self, configured: CommandLine) -> None:
        said = configured("jobs", "list")
        assert (said.code, said.out) == (0, "")
        assert "webqueue run TARGET" in said.err

    @pytest.mark.parametrize("name", ["#999", "999", "0123456789ab", "nonsense", "#", "99999999999999999999"])
    @pytest.mark.parametrize("verb", ["show", "cancel", "retry"])
    def test_an_unknown_job(self, configured: CommandLine, name: str, verb: str) -> None:
        assert configured("jobs", verb, name).complaint.startswith("There is no job ")

    def test_cancel_a_queued_one_and_run_it_again(self, configured: CommandLine) -> None:
        job = configured.done("run", "example_news", "--json").json
        assert configured.done("jobs", "cancel", f"#{job['seq']}").out == "cancelled\n"
        assert configured.done("jobs", "cancel", job["id"]).out == "cancelled\n", "the answer is repeated"
        said = configured.done("jobs", "retry", str(job["seq"]))
        assert said.lines[0].startswith("Queued #")
        newest = configured.done("jobs", "list", "--json").json[0]
        assert (newest["source"], newest["retry_of"]) == ("manual", job["id"])

    def test_cancel_a_running_one_tells_the_truth(self, configured: CommandLine, database: Database) -> None:
        job_id = database.run(lambda session: running_job(session, "example_news").id)
        assert configured.done("jobs", "cancel", job_id).out == "cancelling\n"
        assert configured.done("jobs", "show", job_id, "--json").json["status"] == "cancelling"

    @pytest.mark.parametrize("status", ["done", "failed"])
    def test_what_is_final_cannot_be_cancelled(
        self, configured: CommandLine, database: Database, status: str
    ) -> None:
        job_id = database.run(
            lambda session: (
                finished_job(session, "example_news", ago=timedelta(hours=1), seconds=1, status=status).id
            )
        )
        assert status in configured("jobs", "cancel", job_id).complaint
        if status == "done":
            assert "done" in configured("jobs", "retry", job_id).complaint
        else:
            assert configured.done("jobs", "retry", job_id).lines[0].startswith("Queued #")


class TestRateKeys:
    def test_list_and_show(self, configured: CommandLine) -> None:
        configured.done("run", "example_news")
        (key,) = configured.done("rate-keys", "list", "--json").json
        assert (key["key"], key["queued"], key["sites"]) == (KEY, 1, ["example"])
        assert configured.done("rate-keys", "show", KEY, "--json").json["key"] == KEY
        assert KEY in configured.done("rate-keys", "list").out
        assert configured.done("rate-keys", "list", "--state", "paused", "--json").json == []

    def test_pause_and_resume(self, configured: CommandLine, database: Database) -> None:
        configured.done("run", "example_news")
        assert (
            configured.done("rate-keys", "pause", KEY, "--note", "They asked us to").out == f"{KEY} paused\n"
        )
        shown = configured.done("rate-keys", "show", KEY, "--json").json
        assert (shown["state"], shown["paused_note"]) == ("paused", "They asked us to")
        assert shown["paused_by"].startswith("cli:")
        assert (
            database.run(lambda session: jobs.claim(session, "w", limit=5, life=lambda _: jobs.Life.UNKNOWN))
            == []
        )
        assert configured.done("rate-keys", "resume", KEY).out == f"{KEY} resumed\n"
        assert configured.done("rate-keys", "show", KEY, "--json").json["state"] == "idle"

    def test_lift_asks_first(self, configured: CommandLine, database: Database) -> None:
        configured.done("run", "example_news")
        until = datetime.now(UTC) + timedelta(hours=1)
        with database.transaction() as session:
            key = session.get_one(RateKey, KEY)
            key.cooldown_until, key.cooldown_cause, key.retry_at = until, "HTTP 429", until
        refused = configured("rate-keys", "lift", KEY, stdin="n\n")
        assert (refused.code, refused.err.splitlines()[-1]) == (1, "webqueue: aborted")
        assert configured.done("rate-keys", "show", KEY, "--json").json["state"] == "cooling_down"
        assert configured.done("rate-keys", "lift", KEY, "--yes").out == f"cooldown of {KEY} lifted\n"
        assert configured.done("rate-keys", "show", KEY, "--json").json["state"] == "idle"

    @pytest.mark.parametrize("verb", ["show", "pause", "resume", "lift"])
    def test_an_unknown_key(self, configured: CommandLine, verb: str) -> None:
        options = ["--yes"] if verb == "lift" else []
        assert configured("rate-keys", verb, "nobody.example", *options).complaint == (
            "There is no rate key 'nobody.example'."
        )


class TestDocuments:
    FORMULA = '=HYPERLINK("http://evil.example")'

    @pytest.fixture
    def crawled(self, configured: CommandLine, database: Database) -> CommandLine:
        """A command line on a database with three documents, one of them with a formula as title."""

        def store(session: Session) -> None:
            job = finished_job(session, "example_news", ago=timedelta(hours=1), seconds=1)
            add_document(session, job, "http://www.example.org/1", self.FORMULA, "One, with a\nline and 中文")
            add_document(session, job, "http://www.example.org/2", "-2+3", "@SUM(A1)")
            other = finished_job(session, "example_old", ago=timedelta(minutes=5), seconds=1)
            add_document(session, other, "http://www.example.org/3", "Three\x1b[31m", "Text")

        database.run(store)
        return configured

    def test_list_and_show(self, crawled: CommandLine) -> None:
        listed = crawled.done("documents", "list", "--json").json
        assert {row["title"] for row in listed} == {self.FORMULA, "-2+3", "Three\x1b[31m"}
        assert all("text" not in row for row in listed)
        assert "\x1b" not in crawled.done("documents", "list").out, "no page may colour the terminal"
        (only,) = crawled.done("documents", "list", "--target", "example_old", "--json").json
        shown = crawled.done("documents", "show", str(only["id"]), "--json").json
        assert (shown["text"], shown["url"]) == ("Text", "http://www.example.org/3")
        assert "\x1b" not in crawled.done("documents", "show", str(only["id"])).out
        assert crawled("documents", "show", "999").complaint == "There is no document '999'."
        assert crawled("documents", "show", "99999999999999999999").code == 2

    def test_export_as_lines_of_json(self, crawled: CommandLine) -> None:
        rows = [json.loads(line) for line in crawled.done("documents", "export").lines]
        assert {row["url"] for row in rows} == {f"http://www.example.org/{number}" for number in (1, 2, 3)}
        first = next(row for row in rows if row["url"].endswith("/1"))
        assert (first["title"], first["text"]) == (self.FORMULA, "One, with a\nline and 中文")

    def test_export_as_csv_has_no_formula(self, crawled: CommandLine) -> None:
        out = crawled.done("documents", "export", "--format", "csv", "--target", "example_news").out
        rows = list(csv.DictReader(io.StringIO(out, newline="")))
        assert {row["title"] for row in rows} == {f"'{self.FORMULA}", "'-2+3"}
        assert {row["text"] for row in rows} == {"One, with a\nline and 中文", "'@SUM(A1)"}
        assert all(
            not value.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for value in row.values()
        )

    def test_export_since(self, crawled: CommandLine) -> None:
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d")
        assert crawled.done("documents", "export", "--since", tomorrow).out == ""
        yesterday = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S")
        assert len(crawled.done("documents", "export", "--since", yesterday).lines) == 3
        said = crawled("documents", "export", "--since", "soon")
        assert said.code == 2
        assert "--since" in said.complaint


class TestPeople:
    def test_a_user_is_added_and_can_log_in(self, webqueue: CommandLine, database: Database) -> None:
        said = webqueue.done(
            "user", "add", "anna", "--role", "operator", "--password-stdin", stdin="correct horse battery\n"
        )
        assert said.out == "user anna added\n"

        def login(password: str) -> bool:
            now = datetime.now(UTC)
            return access.authenticate(database, "anna", password, now, address="") is not None

        assert login("correct horse battery")
        webqueue.done("user", "passwd", "anna", "--password-stdin", stdin="another staple altogether")
        assert not login("correct horse battery")
        assert login("another staple altogether")
        (row,) = webqueue.done("user", "list", "--json").json
        assert (row["name"], row["role"], row["disabled_at"]) == ("anna", "operator", None)
        webqueue.done(
            "user", "add", "bert", "--role", "admin", "--password-stdin", stdin="correct horse battery\n"
        )
        assert webqueue.done("user", "disable", "anna").out == "user anna disabled\n"
        assert not login("another staple altogether")

    @pytest.mark.parametrize(
        ("arguments", "stdin"),
        [
            (("add", "anna", "--role", "admin", "--password-stdin"), ""),
            (("add", "anna", "--role", "admin", "--password-stdin"), "short\n"),
            (("add", "", "--role", "admin", "--password-stdin"), "correct horse battery\n"),
            (("passwd", "nobody", "--password-stdin"), "correct horse battery\n"),
            (("disable", "nobody"), ""),
        ],
    )
    def test_what_cannot_be(self, webqueue: CommandLine, arguments: tuple[str, ...], stdin: str) -> None:
        said = webqueue("user", *arguments, stdin=stdin)
        assert said.code == 1
        assert said.complaint
        assert webqueue.done("user", "list", "--json").json == []

    def test_who_disables_a_user_is_told_of_their_tokens(
        self, webqueue: CommandLine, database: Database
    ) -> None:
        words = ("--role", "viewer", "--password-stdin")
        webqueue.done("user", "add", "anna", *words, stdin="correct horse battery\n")
        for name in ("ci", "cron"):
            database.run(
                lambda s, name=name: access.add_token(s, name, "viewer", by="anna", now=clock.now(s))  # type: ignore[misc]
            )
        said = webqueue.done("user", "disable", "anna").out
        assert "2 of the tokens that anna made still work: ci, cron." in said
        assert "webqueue user disable anna --revoke-tokens" in said
        assert webqueue.done("user", "disable", "anna", "--revoke-tokens").out == (
            "user anna disabled\nrevoked: ci, cron\n"
        )
        rows = webqueue.done("token", "list", "--json").json
        assert {row["name"]: (row["created_by"], row["revoked_at"] is None) for row in rows} == {
            "ci": ("anna", False),
            "cron": ("anna", False),
        }

    def test_no_user_twice(self, webqueue: CommandLine) -> None:
        words = ("user", "add", "anna", "--role", "admin", "--password-stdin")
        webqueue.done(*words, stdin="correct horse battery\n")
        assert "anna" in webqueue(*words, stdin="correct horse battery\n").complaint

    def test_a_role_that_does_not_exist_is_wrong_usage(self, webqueue: CommandLine) -> None:
        said = webqueue("token", "add", "scripts", "--role", "king")
        assert said.code == 2
        assert "'king' is not one of" in said.complaint

    def test_a_token_is_printed_once_and_nothing_else(
        self, webqueue: CommandLine, database: Database
    ) -> None:
        token = webqueue.done("token", "add", "scripts", "--role", "viewer").out.removesuffix("\n")
        assert token.split() == [token]

        def role() -> str | None:
            with database.reading() as session:
                bearer = access.bearer_of(session, token, clock.now(session))
            return None if bearer is None else bearer.role

        assert role() == Role.VIEWER
        listing = webqueue.done("token", "list", "--json")
        assert [row["name"] for row in listing.json] == ["scripts"]
        assert token not in listing.out
        assert "scripts" in webqueue("token", "add", "scripts", "--role", "viewer").complaint
        assert webqueue.done("token", "revoke", "scripts").out == "token scripts revoked\n"
        assert role() is None
        assert webqueue("token", "revoke", "nobody").complaint

    def test_a_token_ends_in_the_future(self, webqueue: CommandLine) -> None:
        assert webqueue("token", "add", "old", "--role", "viewer", "--expires", "2020-01-01").complaint
        webqueue.done("token", "add", "new", "--role", "viewer", "--expires", "2099-01-01")
        (row,) = webqueue.done("token", "list", "--json").json
        assert row["expires_at"].startswith("2099-01-01")


class TestMaintenance:
    def test_check(self, configured: CommandLine, instance: Path) -> None:
        configured.monkeypatch.setenv("WEBQUEUE_USER_AGENT", "example-archive/1.0 (+mailto:you@example.org)")
        configured.done("run", "example_news")
        found = configured.done("check", "--json").json
        assert (found["queued"], found["running"], found["workers"]) == (1, 0, 0)
        assert found["instance"] == str(instance)
        assert "queued" in configured.done("check").out

    def test_db_upgrade_of_what_is_up_to_date(self, webqueue: CommandLine) -> None:
        assert webqueue.done("db", "upgrade").out == "up to date already\n"
