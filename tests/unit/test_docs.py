"""The documentation tells what there is: settings, commands and options, and links that lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic_core import PydanticUndefined

from webqueue.cli import cli
from webqueue.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMMANDS_PAGE = ROOT / "docs" / "reference" / "commands.md"
SETTINGS_PAGE = ROOT / "docs" / "reference" / "settings.md"

CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\\)\[[^\]\n]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# What the table says in words: the default depends on where the instance is, or is not told.
DEFAULTS_IN_WORDS = {
    "WEBQUEUE_DATABASE_URL": "SQLite in the instance folder",
    "WEBQUEUE_STORE_URL": "`store` in the instance folder",
    "WEBQUEUE_USER_AGENT": "webqueue's own",
    "WEBQUEUE_TRUSTED_HOSTS": "any",
    "WEBQUEUE_TRUSTED_PROXY": "none",
    "WEBQUEUE_KEEP_LOGS": "none",
    "WEBQUEUE_KEEP_LOGS_DAYS": "none",
    "WEBQUEUE_CONTACT": "none",
    "WEBQUEUE_KEEP_DOCUMENTS_DAYS": "none: for ever",
    "WEBQUEUE_RAG_EXPORT_URL": "none",
    "WEBQUEUE_RAG_EXPORT_TOKEN": "none",
}


def rows_of(page: Path) -> list[list[str]]:
    """The cells of the rows of a page's tables, without their heads."""
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in rows if CODE.search(row[0])]


def commands_of(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its whole name: `jobs list`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, f"{prefix}{name} is listed, but is none"
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = dict(commands_of(cli))


def options_of(command: click.Command) -> set[str]:
    """The long options of a command."""
    return {
        option
        for parameter in command.params
        for option in [*parameter.opts, *parameter.secondary_opts]
        if option.startswith("--")
    } | {"--help"}


def command_in(text: str) -> str | None:
    """The command that a line of a shell, or a cell of the table, begins with."""
    words = text.split()
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return name
    return None


def calls_in(text: str) -> Iterator[str]:
    """What stands behind the word `webqueue` wherever a document calls it."""
    shells = [line for block in FENCE.findall(text) for line in block.splitlines()]
    inline = CODE.findall(FENCE.sub("", text))
    for line in [*shells, *inline]:
        line = line.partition(" #")[0]  # noqa: PLW2901 - a comment of the shell
        for call in re.findall(r"(?:^|[\s(&;=$]|bin/)webqueue((?: [^&;|)`]+)?)(?=[&;|)]|$)", line):
            if call.strip():
                yield call.strip()


def default_of(name: str) -> Any:
    field = Settings.model_fields[name]
    assert field.default is not PydanticUndefined, f"{name} has no default"
    return field.default


class TestSettings:
    def test_the_page_lists_exactly_the_settings(self) -> None:
        documented = [CODE.findall(row[0])[0] for row in rows_of(SETTINGS_PAGE)]
        existing = [f"WEBQUEUE_{name.upper()}" for name in Settings.model_fields]
        assert documented == existing

    @pytest.mark.parametrize("name", list(Settings.model_fields))
    def test_the_page_has_its_default(self, name: str) -> None:
        variable = f"WEBQUEUE_{name.upper()}"
        told = next(row[1] for row in rows_of(SETTINGS_PAGE) if variable in row[0])
        if variable in DEFAULTS_IN_WORDS:
            assert told == DEFAULTS_IN_WORDS[variable]
            assert not default_of(name), "it has a default that can be written down"
            return
        default = default_of(name)
        wanted = str(default).lower() if isinstance(default, bool) else f"{default}"
        assert told == f"`{wanted.removesuffix('.0')}`"

    def test_old_names_are_told(self) -> None:
        text = SETTINGS_PAGE.read_text(encoding="utf-8")
        for field in Settings.model_fields.values():
            for alias in getattr(field.validation_alias, "choices", ()):
                assert f"`{alias}`" in text


class TestCommands:
    def test_the_page_lists_exactly_the_commands(self) -> None:
        cells = [CODE.findall(row[0]) for row in rows_of(COMMANDS_PAGE)]
        documented = [command_in(text) for cell in cells for text in cell]
        assert None not in documented, f"there is no such command in {cells}"
        assert sorted(filter(None, documented)) == sorted(COMMANDS)

    def test_every_option_that_the_page_names_exists(self) -> None:
        for row in rows_of(COMMANDS_PAGE):
            names = [command_in(text) for text in CODE.findall(row[0])]
            known = set().union(*(options_of(COMMANDS[name]) for name in names if name))
            named = set(re.findall(r"--[a-z][a-z-]*", " ".join(row)))
            assert named <= known, f"{row[0]} has no {named - known}"

    @pytest.mark.parametrize("name", sorted(COMMANDS))
    def test_it_says_what_it_does(self, name: str) -> None:
        command = COMMANDS[name]
        assert command.help, "`--help` says nothing"
        assert command.help.splitlines()[0].endswith(".")

    @pytest.mark.parametrize(
        "name",
        [name for name in sorted(COMMANDS) if name.endswith((" list", " show"))],
    )
    def test_every_listing_has_json(self, name: str) -> None:
        assert "--json" in options_of(COMMANDS[name])

    def test_every_call_in_the_documents_is_of_a_command_with_these_options(self) -> None:
        calls = [(page, call) for page in DOCUMENTS for call in calls_in(page.read_text(encoding="utf-8"))]
        assert len(calls) > 10, "the calls are not found any more"
        for page, call in calls:
            where = f"{page.relative_to(ROOT)}: `webqueue {call}`"
            if call.split()[0] in {"COMMAND", "--version", "--help"}:
                continue
            name = command_in(call)
            assert name is not None or call.split()[0] in cli.list_commands(click.Context(cli)), (
                f"{where} is no command"
            )
            options = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", call))
            known = options_of(COMMANDS[name]) if name else set()
            assert options <= known, f"{where} has no {options - known}"


class TestDocuments:
    @pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
    def test_links_lead_to_files_and_headings_that_exist(self, page: Path) -> None:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{link} leads nowhere"
            assert target.is_relative_to(ROOT), f"{link} leads out of the project"
            if anchor:
                assert anchor in anchors_of(target), f"{link}: there is no such heading"

    def test_every_page_is_reached_from_the_readme(self) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        linked = {(ROOT / link.partition("#")[0]).resolve() for link in LINK.findall(readme)}
        for page in (ROOT / "docs").rglob("*.md"):
            assert page in linked or page.parent in linked, f"README leads nobody to {page.relative_to(ROOT)}"

    def test_the_changelog_says_what_is_not_released(self) -> None:
        headings = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        assert headings[:2] == ["Changelog", "Unreleased"]

    def test_make_targets_of_the_documents_exist(self) -> None:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
        for page in DOCUMENTS:
            text = page.read_text(encoding="utf-8")
            shells = [line for block in FENCE.findall(text) for line in block.splitlines()]
            named = [
                line.split()[1] for line in [*shells, *CODE.findall(text)] if re.match(r"make [a-z]", line)
            ]
            assert set(named) <= targets, f"{page.name}: {set(named) - targets}"


def anchors_of(page: Path) -> set[str]:
    """The anchors that a forge gives to the headings of a page."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
