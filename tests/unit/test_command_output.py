"""What the output of a program may be, and what becomes of it: lines, and the marks among them."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.errors import InvalidInputError
from webqueue.handlers import registry
from webqueue.handlers.command.markers import (
    BlockedMark,
    CheckpointMark,
    DocumentMark,
    MalformedError,
    Mark,
    ProgressMark,
    parse,
)
from webqueue.handlers.command.parameters import CommandParameters
from webqueue.handlers.lines import (
    LONGEST_SHOWN,
    LONGEST_TOLD,
    MOST_TOLD,
    Line,
    LineSplitter,
    Thinning,
    shown,
    told,
)


class TestLines:
    @given(st.lists(st.binary(max_size=30), max_size=10))
    def test_pieces_do_not_matter(self, pieces: list[bytes]) -> None:
        splitter = LineSplitter()
        found = [line for piece in pieces for line in splitter.feed(piece)] + splitter.rest()
        whole = b"".join(pieces)
        wanted = whole.split(b"\n")
        if not wanted[-1]:
            wanted.pop()
        assert [line.data for line in found] == wanted
        assert not any(line.cut for line in found)

    def test_a_line_without_end_takes_no_more_memory_than_allowed(self) -> None:
        splitter = LineSplitter(longest=1000)
        for _ in range(100):
            assert splitter.feed(b"x" * 999) == []
        (line,) = splitter.feed(b"y\nnext")
        assert line == Line(b"x" * 1000, 99_900 + 1 - 1000)
        assert splitter.rest() == [Line(b"next")]

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"plain", "plain"),
            ("räksmörgås 中文 👩‍💻".encode(), "räksmörgås 中文 👩‍💻"),
            (b"caf\xe9", "caf\ufffd"),
            (b"a\tb  ", "a\tb"),
            (b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok", "red ok"),
            (b"10%\r 50%\r100%\r", "100%"),
            (b"nul\x00 bell\x07", "nul\ufffd bell\ufffd"),
            ("safe\u202egpj.exe".encode(), "safe\ufffdgpj.exe"),
            (b"\r\n", ""),
        ],
    )
    def test_what_is_shown(self, data: bytes, text: str) -> None:
        assert shown(Line(data)) == text

    def test_a_megabyte_is_cut(self) -> None:
        text = shown(Line(b"z" * 1_000_000))
        assert text == "z" * LONGEST_SHOWN + "… (a line of 1,000,000 bytes, cut)"


class TestTold:
    @pytest.mark.parametrize(
        ("message", "lines"),
        [
            ("plain", ["plain"]),
            ("räksmörgås\t中文", ["räksmörgås\t中文"]),
            ("", [""]),
            ("one\r\ntwo\n\nthree\n", ["one", "two", "three"]),
            ("\x1b[31mred\x1b[0m nul\x00 half\ud800", ["red nul\ufffd half\ufffd"]),
            ("safe\u202egpj.exe\u2028x", ["safe\ufffdgpj.exe", "x"]),
        ],
    )
    def test_a_message_is_lines_without_what_is_not_seen(self, message: str, lines: list[str]) -> None:
        assert told(message) == lines

    @given(st.text())
    def test_no_control_character_but_tab_is_left(self, message: str) -> None:
        lines = told(message)
        assert lines
        signs = set("".join(lines)) - {"\t"}
        assert [sign for sign in signs if unicodedata.category(sign) in {"Cc", "Cs", "Zl", "Zp"}] == []

    def test_what_is_too_long_says_how_long_it_was(self) -> None:
        assert told("z" * 1_000_000) == ["z" * LONGEST_TOLD + "… (a message of 1,000,000 characters, cut)"]
        lines = told("x\n" * 1_000)
        assert lines[: MOST_TOLD - 1] == ["x"] * (MOST_TOLD - 1)
        assert lines[MOST_TOLD - 1 :] == ["… (901 lines more)"]


class TestThinning:
    def test_a_flood_is_thinned_and_counted(self) -> None:
        thinning = Thinning(0.0, burst=10, per_sec=5, many=1000)
        written = [thinning.take(second / 1000) for second in range(2000)]
        # The burst, and five a second for two seconds.
        assert sum(taken for taken, _ in written) in {19, 20}
        assert sum(gap for _, gap in written) + thinning.end() == thinning.left_out
        assert thinning.left_out + sum(taken for taken, _ in written) == 2000

    def test_a_calm_program_loses_nothing(self) -> None:
        thinning = Thinning(0.0, burst=2, per_sec=5, many=10**6)
        assert all(thinning.take(second / 5)[0] for second in range(500))
        assert thinning.left_out == 0

    def test_after_very_many_only_one_a_second_is_written(self) -> None:
        thinning = Thinning(0.0, burst=2, per_sec=100, many=100)
        taken = [thinning.take(number / 100)[0] for number in range(1000)]
        assert sum(taken) <= 100 + 2 + 10


class TestMarks:
    @pytest.mark.parametrize(
        ("line", "mark"),
        [
            ("::progress 3/40 third of forty", ProgressMark(3, 40, "third of forty")),
            ("::progress 3", ProgressMark(3)),
            ("::progress 3 pages", ProgressMark(3, None, "pages")),
            ('::checkpoint {"page": 3}', CheckpointMark(3, {})),
            ('::checkpoint {"page": 0, "cursor": "x"}', CheckpointMark(0, {"cursor": "x"})),
            ('::checkpoint {"cursor": [1]}', CheckpointMark(None, {"cursor": [1]})),
            ("::blocked", BlockedMark("blocked")),
            ("::blocked HTTP 429 at page 3 retry_after=60", BlockedMark("HTTP 429 at page 3", 60)),
            ("::blocked retry_after=5", BlockedMark("blocked", 5)),
            ("::blocked too much retry_after=999999999", BlockedMark("too much", 86_400)),
            (
                '::document {"url": "/a", "title": "A", "published_at": "2026-01-02T00:00:00Z"}',
                DocumentMark(url="/a", title="A", published_at=datetime(2026, 1, 2, tzinfo=UTC)),
            ),
            ("::other 3", None),
            ("::progressive", None),
            (" ::progress 3", None),
            ("", None),
        ],
    )
    def test_they_are_understood(self, line: str, mark: Mark | None) -> None:
        assert parse(line) == mark

    @pytest.mark.parametrize(
        "line",
        [
            "::progress",
            "::progress three/40",
            "::progress -1/40",
            "::progress 99999999999999999999",
            "::checkpoint",
            "::checkpoint 3",
            "::checkpoint [3]",
            '::checkpoint {"page": "3"}',
            '::checkpoint {"page": true}',
            '::checkpoint {"page": -1}',
            '::checkpoint {"page": 99999999999}',
            "::checkpoint " + "[" * 100_000,
            "::blocked slow retry_after=soon",
            "::blocked slow retry_after=-5",
            "::document {}",
            '::document {"url": "/a", "published_at": "2026-11-29"}',
            '::document {"url": "/a", "published_at": "2026-11-29T08:00:00"}',
            '::document {"url": "/a", "colour": "red"}',
        ],
    )
    def test_what_cannot_be_read_is_told(self, line: str) -> None:
        with pytest.raises(MalformedError) as error:
            parse(line)
        assert str(error.value)

    @given(st.text(), st.sampled_from(["::progress ", "::checkpoint ", "::blocked ", "::document "]))
    def test_nothing_else_is_ever_raised(self, text: str, word: str) -> None:
        with suppress(MalformedError):
            parse(word + text)


class TestParameters:
    @pytest.fixture(autouse=True)
    def _commands_are_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WEBQUEUE_ALLOW_COMMANDS", "true")

    def check(self, **params: Any) -> Any:
        return registry.check_params("command", params, adapter="list")

    def test_what_is_left_out_has_a_default(self) -> None:
        params = self.check(argv=["wget", "-q"])
        assert params == CommandParameters(argv=("wget", "-q"), env={}, cwd=None, grace_sec=5)

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({}, "params.argv"),
            ({"argv": []}, "params.argv"),
            ({"argv": "wget -q"}, "params.argv"),
            ({"argv": ["a\0b"]}, "params.argv.0"),
            ({"argv": ["sh", "-c", "one\ntwo"]}, "params.argv.2"),
            ({"argv": ["grep", ""]}, "params.argv.1"),
            ({"argv": ["a"], "env": {"A B": "1"}}, "params.env"),
            ({"argv": ["a"], "env": {"WEBQUEUE_JOB": "1"}}, "params.env"),
            ({"argv": ["a"], "cwd": "relative"}, "params.cwd"),
            ({"argv": ["a"], "grace_sec": -1}, "params.grace_sec"),
            ({"argv": ["a"], "shell": True}, "params.shell"),
        ],
    )
    def test_what_is_wrong_is_named(self, params: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidInputError) as error:
            self.check(**params)
        assert error.value.problems[0].field.startswith(field)

    def test_a_form_has_words_for_every_field(self) -> None:
        for name, field in CommandParameters.model_fields.items():
            assert field.title, name
            assert field.description, name

    def test_they_are_refused_while_commands_are_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("WEBQUEUE_ALLOW_COMMANDS")
        with pytest.raises(InvalidInputError, match="WEBQUEUE_ALLOW_COMMANDS") as error:
            self.check(argv=["true"])
        assert error.value.problems[0].field == "handler"
