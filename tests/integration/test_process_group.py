"""Process groups of real processes: their ends, their stops, and the death of who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.waiting import wait_until
from webqueue.handlers.process_group import ProcessGroup

ENV = {"PATH": os.defpath}
# Writes the numbers of a process of the group and of one that left it, and takes no notice of SIGTERM.
STUBBORN = """trap '' TERM
sleep 1000 & echo $! >> pids
setsid sleep 1000 & echo $! >> pids
echo ready >> pids
while :; do sleep 0.05; done"""


# Starts its first argument in a thread that ends: that is no reason for the group to end.
WORKER = """import sys, threading, time
from webqueue.handlers.process_group import ProcessGroup
groups = []
env = {"PATH": "/usr/bin:/bin"}
thread = threading.Thread(target=lambda: groups.append(ProcessGroup(["sh", "-c", sys.argv[1]], env=env)))
thread.start()
thread.join()
open("pids", "a").write(f"{groups[0].pid}\\n")
time.sleep(1000)"""


def lives(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pids_of(folder: Path) -> list[int]:
    file = folder / "pids"
    wait_until(lambda: file.exists() and "ready" in file.read_text(), message="the processes have started")
    return [int(line) for line in file.read_text().split() if line.isdigit()]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -USR1 $$"], -signal.SIGUSR1),
        (["no-such-program"], 127),
        (["/"], 126),
    ],
)
def test_the_program_s_own_end_is_told(argv: list[str], code: int) -> None:
    with ProcessGroup(argv, env=ENV, stderr=subprocess.PIPE) as group:
        assert group.wait(10)
        assert group.close() == code


def test_output_environment_and_descriptors_are_the_program_s(tmp_path: Path) -> None:
    read, write = os.pipe()
    with ProcessGroup(
        ["sh", "-c", f"pwd; cat; env; echo wire > /dev/fd/{write}"],
        env={**ENV, "WORD": "räksmörgås"},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[write],
    ) as group:
        os.close(write)
        assert group.stdin is not None
        assert group.stdout is not None
        group.stdin.write(b"told\n")
        group.stdin.close()
        output = group.stdout.read().decode()
        with os.fdopen(read, "rb") as wire:
            assert wire.read() == b"wire\n"
        assert output.startswith(f"{tmp_path}\ntold\n")
        assert "WORD=räksmörgås" in output
        assert group.wait(10)
        assert group.close() == 0


def test_sigterm_reaches_the_program_which_ends_by_itself() -> None:
    script = "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done"
    with ProcessGroup(["sh", "-c", script], env=ENV, stdout=subprocess.PIPE) as group:
        assert group.stdout is not None
        assert group.stdout.readline() == b"ready\n"
        assert group.stop(10)
        assert group.close() == 4


def test_one_that_takes_no_notice_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    with ProcessGroup(["sh", "-c", STUBBORN], env=ENV, cwd=tmp_path) as group:
        pids = pids_of(tmp_path)
        assert all(lives(pid) for pid in pids)
        assert not group.stop(0.2)
        assert [pid for pid in pids if lives(pid)] == []
        assert group.close() == -signal.SIGKILL


def test_what_a_program_leaves_behind_ends_before_it_counts_as_ended(tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! >> pids; setsid sleep 1000 & echo $! >> pids; echo ready >> pids; exit 0"
    with ProcessGroup(["sh", "-c", script], env=ENV, cwd=tmp_path) as group:
        assert group.wait(10)
        assert [pid for pid in pids_of(tmp_path) if lives(pid)] == []
        assert group.close() == 0


def test_the_group_dies_with_a_worker_that_was_killed(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            WORKER,
            STUBBORN,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    try:
        pids = pids_of(tmp_path)
        wait_until(lambda: len(pids_of(tmp_path)) == 3, message="the group's number is written")
        pids = pids_of(tmp_path)
        assert all(lives(pid) for pid in pids)
    finally:
        worker.kill()
        worker.wait()
    wait_until(
        lambda: not any(lives(pid) for pid in pids), message="every process of the group is gone", timeout=5
    )


def test_a_guardian_that_was_killed_takes_its_program_along(tmp_path: Path) -> None:
    script = "echo $$ >> pids; echo ready >> pids; exec sleep 1000"
    with ProcessGroup(["sh", "-c", script], env=ENV, cwd=tmp_path) as group:
        pids = pids_of(tmp_path)
        os.kill(group.pid, signal.SIGKILL)
        wait_until(lambda: not any(lives(pid) for pid in pids), message="the program is gone", timeout=5)
        assert group.close() == -signal.SIGKILL


def test_a_guardian_that_is_stopped_does_not_save_the_group(tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! >> pids; echo $$ >> pids; echo ready >> pids; wait"
    with ProcessGroup(["sh", "-c", script], env=ENV, cwd=tmp_path) as group:
        pids = pids_of(tmp_path)
        os.kill(group.pid, signal.SIGSTOP)
        group.kill()
        wait_until(lambda: not any(lives(pid) for pid in pids), message="every process is gone", timeout=5)


def test_a_process_that_the_worker_forked_does_not_keep_the_group_alive(tmp_path: Path) -> None:
    """As multiprocessing does it in the function of another target: it has copies of all that the worker has open."""
    forking = WORKER.replace("time.sleep(1000)", "import os; pid = os.fork()\n") + (
        "open('forked', 'w').write(f'{pid}') if pid else None\ntime.sleep(1000)"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", forking, STUBBORN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    note = tmp_path / "forked"
    try:
        wait_until(lambda: note.exists() and note.read_text(), message="it has forked")
        wait_until(lambda: len(pids_of(tmp_path)) == 3, message="the group's number is written")
        group, forked = pids_of(tmp_path), int(note.read_text())
    finally:
        worker.kill()
        worker.wait()
    wait_until(lambda: not any(lives(pid) for pid in group), message="the group is gone", timeout=5)
    assert lives(forked)
    os.kill(forked, signal.SIGKILL)
