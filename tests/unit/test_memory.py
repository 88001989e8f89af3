"""Where the tests' own temporary folders are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.helpers import memory
from tests.helpers.memory import use_memory_for_files

TESTS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _roomy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    monkeypatch.setattr(memory, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(memory, "NEEDED_BYTES", 1)


def test_in_memory_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "")  # so that it is put back
    monkeypatch.delenv("TMPDIR")
    use_memory_for_files([f"{TESTS}/integration", f"{TESTS}/unit/test_cron.py::test_words"])
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(tmp_path)


@pytest.mark.parametrize(
    "asked",
    [f"{TESTS}/acceptance", f"{TESTS}/acceptance/chaos/test_chaos.py::test_x", f"{TESTS}", f"{TESTS.parent}"],
)
def test_commits_of_the_acceptance_ring_go_to_the_disk(asked: str) -> None:
    use_memory_for_files([f"{TESTS}/unit", asked])
    assert "TMPDIR" not in os.environ


def test_a_choice_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    use_memory_for_files([f"{TESTS}/unit"])
    assert os.environ["TMPDIR"] == "/elsewhere"


@pytest.mark.parametrize(("name", "value"), [("NEEDED_BYTES", 10**18), ("SHARED_MEMORY", Path("/none"))])
def test_on_disk_where_memory_is_short_or_not_there(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(memory, name, value)
    use_memory_for_files([f"{TESTS}/unit"])
    assert "TMPDIR" not in os.environ
