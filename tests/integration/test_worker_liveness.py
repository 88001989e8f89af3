"""Who lives: lock files that the kernel gives up with their process (DESIGN P5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.waiting import wait_until
from webqueue.jobs import Life
from webqueue.worker import Liveness

HOLDER = """
import pathlib, subprocess, sys
from webqueue.worker import Liveness
Liveness(pathlib.Path(sys.argv[1])).enter("holder")
child = subprocess.Popen(["sleep", "60"], close_fds=False)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def liveness(tmp_path: Path) -> Liveness:
    return Liveness(tmp_path / "workers")


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that holds the lock of "holder", and the process id of a child that it started."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "workers")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    child = int(process.stdout.readline())
    yield process, child
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    os.kill(child, signal.SIGKILL)


def test_a_worker_without_a_file_is_unknown(liveness: Liveness) -> None:
    assert liveness.life("nobody") is Life.UNKNOWN
    assert liveness.dead_workers() == []


def test_a_worker_lives_until_it_leaves(liveness: Liveness, tmp_path: Path) -> None:
    other = Liveness(tmp_path / "workers")
    liveness.enter("me")
    assert liveness.life("me") is Life.ALIVE
    assert other.life("me") is Life.ALIVE
    assert other.dead_workers() == []
    liveness.leave("me")
    assert other.life("me") is Life.UNKNOWN


def test_a_killed_process_is_dead_at_once_although_its_child_lives(
    liveness: Liveness, holder: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, child = holder
    assert liveness.life("holder") is Life.ALIVE
    process.kill()
    process.wait()
    os.kill(child, 0)  # still there
    assert liveness.life("holder") is Life.DEAD
    assert liveness.dead_workers() == ["holder"]
    liveness.remove_dead(["holder"])
    assert liveness.life("holder") is Life.UNKNOWN


def test_a_stopped_process_is_alive(liveness: Liveness, holder: tuple[subprocess.Popen[bytes], int]) -> None:
    process, _ = holder
    process.send_signal(signal.SIGSTOP)
    assert liveness.life("holder") is Life.ALIVE


def test_a_forked_child_keeps_no_lock(liveness: Liveness, tmp_path: Path) -> None:
    """O_CLOEXEC does nothing for a child that starts no program."""
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:  # the worker
        liveness.enter("forker")
        if os.fork() == 0:  # its child, which outlives it
            os.close(writer)
            os.read(os.open("/dev/zero", os.O_RDONLY), 1)
            signal.pause()
        os.write(writer, b".")
        signal.pause()
    os.close(writer)
    try:
        assert os.read(reader, 1) == b"."
        assert liveness.life("forker") is Life.ALIVE
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        # The child closes its copy right after the fork.
        wait_until(lambda: not _holds(int(children[0]), tmp_path / "workers" / "forker.lock"))
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        assert liveness.life("forker") is Life.DEAD
        os.kill(int(children[0]), signal.SIGKILL)
    finally:
        os.close(reader)


def _holds(process: int, path: Path) -> bool:
    return any(
        os.path.realpath(link) == str(path.resolve()) for link in Path(f"/proc/{process}/fd").iterdir()
    )


def test_nobody_sees_a_worker_that_enters_as_dead(liveness: Liveness, tmp_path: Path) -> None:
    observer = Liveness(tmp_path / "workers")
    done = threading.Event()
    seen: list[str] = []

    def observe() -> None:
        while not done.is_set():
            seen.extend(observer.dead_workers())

    thread = threading.Thread(target=observe)
    thread.start()
    for number in range(300):
        liveness.enter(f"w{number}")
        liveness.leave(f"w{number}")
    done.set()
    thread.join()
    assert seen == []


def test_a_worker_that_leaves_while_somebody_looks_is_not_dead(
    liveness: Liveness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer = Liveness(tmp_path / "workers")
    liveness.enter("me")
    real_open = os.open

    def open_and_then_it_leaves(path: Any, *rest: Any) -> int:
        opened = real_open(path, *rest)
        liveness.leave("me")
        return opened

    monkeypatch.setattr(os, "open", open_and_then_it_leaves)
    assert observer.life("me") is Life.UNKNOWN


def test_two_observers_do_not_take_each_other_for_the_owner(
    liveness: Liveness, tmp_path: Path, holder: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, _ = holder
    process.kill()
    process.wait()
    lives: list[Life] = []

    def observe() -> None:
        observer = Liveness(tmp_path / "workers")
        lives.extend(observer.life("holder") for _ in range(500))

    threads = [threading.Thread(target=observe) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(lives) == {Life.DEAD}


def test_what_a_crash_left_half_made_is_removed(liveness: Liveness, tmp_path: Path) -> None:
    folder = tmp_path / "workers"
    folder.mkdir()
    old, young = folder / "old.new", folder / "young.new"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    liveness.remove_dead([])
    assert not old.exists()
    assert young.exists(), "it may be about to be locked"
