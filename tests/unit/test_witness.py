"""The witness of the acceptance tests sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.harness import Witness


def witness_of(path: Path, *events: tuple[str, int, str]) -> Witness:
    path.write_text(
        "".join(
            json.dumps({"what": what, "pid": pid, "at": 0.0, "job": job, "key": "k"}) + "\n"
            for what, pid, job in events
        )
    )
    return Witness(path)


def test_an_overlap_is_seen(tmp_path: Path) -> None:
    witness = witness_of(tmp_path / "w", ("start", 1, "a"), ("start", 2, "b"), ("end", 1, "a"))
    assert [(first.job, second.job) for first, second in witness.overlaps()] == [("a", "b")]


def test_one_after_the_other_is_no_overlap(tmp_path: Path) -> None:
    witness = witness_of(tmp_path / "w", ("start", 1, "a"), ("end", 1, "a"), ("start", 2, "b"))
    assert witness.overlaps() == []


def test_a_killed_process_runs_nothing(tmp_path: Path) -> None:
    witness = witness_of(tmp_path / "w", ("start", 1, "a"), ("killed", 1, ""), ("start", 2, "a"))
    assert witness.overlaps() == []
