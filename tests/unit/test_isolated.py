"""The parts of isolated handlers that need no process: the wire, the steps of a stop, printed lines, noted groups."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.waiting import wait_until
from webqueue import clock
from webqueue.errors import LeaseLostError, NotFoundError, WebqueueError
from webqueue.handlers.isolated.context import IsolatedContext
from webqueue.handlers.isolated.wire import (
    CALLS,
    TELLS,
    Channel,
    WireError,
    pack,
    pack_error,
    unpack,
    unpack_error,
)
from webqueue.handlers.lines import LONGEST_SHOWN
from webqueue.handlers.output import Output
from webqueue.handlers.protocol import (
    BlockedError,
    Context,
    DocumentDraft,
    FetchError,
    HttpOptions,
    Response,
    SiteView,
    StopRequested,
)
from webqueue.jobs import Claimed, Lease
from webqueue.models import Target
from webqueue.outcomes import Blocked, Checkpoint, Done
from webqueue.worker.context import RunContext
from webqueue.worker.escalation import Escalation, escalation_of
from webqueue.worker.groups import GroupRecord, kill_groups_of
from webqueue.worker.runs import Run, Stop

GRACE = 8.0


class TestWire:
    @pytest.mark.parametrize(
        "value",
        [
            None,
            {"$": "bytes", "base64": "no bytes"},
            (1, [2.5, "ä\u0000\ud800"], {"a": {"$": None}}),
            b"\x00\xff",
            datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=UTC),
            DocumentDraft(
                "u", "t", "x", original=b"\x01", aliases=("a", "b"), published_at=datetime.now(UTC)
            ),
            Response("u", 200, {"content-type": "x"}, b"\x00" * 1000, 3),
            SiteView("c", "u", "list", "UTC", "k", http=HttpOptions(headers={"A": "b"})),
            Done({"n": [1, None, True]}, "look"),
            Blocked("429", 5, Checkpoint(4, {"x": 1}), {"n": 1}, "other.example.org"),
        ],
    )
    def test_what_goes_in_comes_out(self, value: object) -> None:
        ours, theirs = socket.socketpair()
        here, there = Channel(ours), Channel(theirs)
        there.send({"it": pack(value)})
        received = here.receive()
        assert received is not None
        assert unpack(received["it"]) == value
        here.close()
        there.close()

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
        )
    )
    def test_so_does_anything_made_of_it(self, value: Any) -> None:
        assert unpack(pack(value)) == value

    def test_what_it_has_no_word_for_becomes_text(self) -> None:
        assert unpack(pack({1: Path("x"), "set": {2}, "huge": 10**5_000})) == {
            "1": "x",
            "set": [2],
            "huge": "an integer of 16610 bits",
        }

    @pytest.mark.parametrize(
        "error",
        [
            FetchError("status", "http://a/", "404 at http://a/", 404),
            BlockedError("HTTP 429", "http://a/", 7, "other"),
            StopRequested(),
            LeaseLostError("0123456789ab"),
            WebqueueError("It says what to do."),
            ValueError("no"),
            KeyError("x"),
        ],
    )
    def test_an_exception_keeps_its_class_and_its_facts(self, error: Exception) -> None:
        again = unpack_error(pack_error(error))
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert str(again).strip("'\"") == str(error).strip("'\"")

    def test_one_that_only_the_worker_has_keeps_its_words(self) -> None:
        class OddError(Exception):
            pass

        assert str(unpack_error(pack_error(OddError("so")))) == "OddError: so"
        assert type(unpack_error(pack_error(NotFoundError("job", "x")))) is WebqueueError

    @pytest.mark.parametrize(
        ("line", "what"),
        [(b"{\n", "no JSON"), (b"[]\n", "no message"), (b"\xff\n", "no JSON")],
    )
    def test_what_is_no_message(self, line: bytes, what: str) -> None:
        ours, theirs = socket.socketpair()
        theirs.sendall(line)
        with pytest.raises(WireError, match=what):
            Channel(ours).receive()
        ours.close()
        theirs.close()

    @pytest.mark.parametrize(
        "packed", [{}, {"$": "os.system"}, {"$": "bytes"}, {"$": "Done", "fields": {"x": 1}}]
    )
    def test_what_pack_never_makes(self, packed: Any) -> None:
        with pytest.raises(WireError):
            unpack(packed)

    def test_an_end_in_the_middle_of_a_line_is_an_end(self) -> None:
        ours, theirs = socket.socketpair()
        theirs.sendall(b'{"end": ')
        theirs.close()
        channel = Channel(ours)
        assert channel.receive() is None
        channel.close()

    def test_shut_wakes_whoever_waits_and_loses_nothing(self) -> None:
        ours, theirs = socket.socketpair()
        channel, received = Channel(ours), []
        theirs.sendall(b'{"end": null}\n')
        channel.shut()
        received.append(channel.receive())
        thread = threading.Thread(target=lambda: received.append(channel.receive()))
        thread.start()
        thread.join(5)
        assert received == [{"end": None}, None]
        channel.close()
        theirs.close()

    def test_a_handler_has_the_whole_context_at_the_other_end(self) -> None:
        """What the protocol has, the wire has: by a verb of its own, and of the worker's context."""
        verbs = {
            name for name in dir(Context) if not name.startswith("_") and callable(getattr(Context, name))
        }
        assert verbs <= set(dir(IsolatedContext))
        assert verbs == CALLS | TELLS
        assert set(dir(RunContext)) >= CALLS | TELLS


def run_with(stop: Stop | None = None, *, limit_in: int = 1_000) -> Run:
    lease = Lease("key", 1, "aaaaaaaaaaaa", 1, "worker")
    target = Target(code="news", max_runtime_sec=limit_in)
    run = Run(
        Claimed(lease, cast("Any", None), cast("Any", None), target, None, clock.local_now()),
        lease_deadline=clock.boot_seconds() + 60,
    )
    run.time_limit_at = float(limit_in)
    if stop is not None:
        run.request_stop(stop)
    run.stop_at = 100.0
    return run


class TestEscalation:
    """The run was asked to stop at 100; its time limit is at 1,000; the grace is 8 s."""

    @pytest.mark.parametrize(
        ("stop", "expected"),
        [
            (None, Escalation(1008, 1012)),
            (Stop.CANCEL, Escalation(108, 1012)),
            (Stop.DISK, Escalation(108, 1012)),
            (Stop.TIME_LIMIT, Escalation(108, 112)),
            (Stop.CLOSING, Escalation(108, 112)),
            (Stop.LEASE_ENDED, Escalation(100, 101)),
            (Stop.LEASE_LOST, Escalation(0, 0)),
        ],
    )
    def test_by_the_reason(self, stop: Stop | None, expected: Escalation) -> None:
        assert escalation_of(run_with(stop), grace_sec=GRACE) == expected

    @pytest.mark.parametrize("stop", [None, *Stop])
    def test_force_is_at_once(self, stop: Stop | None) -> None:
        run = run_with(stop)
        run.forced = True
        assert escalation_of(run, grace_sec=GRACE) == Escalation(0, 0)

    def test_a_shutdown_fits_into_its_own_grace_also_after_a_cancel(self) -> None:
        run = run_with(Stop.CANCEL)
        run.shutdown = (200.0, 10.0)
        assert escalation_of(run, grace_sec=1_000) == Escalation(206, 208)

    def test_a_cancel_shortly_before_the_time_limit_lengthens_nothing(self) -> None:
        assert escalation_of(run_with(Stop.CANCEL, limit_in=99), grace_sec=GRACE) == Escalation(107, 111)

    @pytest.mark.parametrize("stop", [None, Stop.CANCEL, Stop.DISK, Stop.TIME_LIMIT])
    def test_at_the_end_of_its_lease_a_run_is_over_whatever_stopped_it_before(
        self, stop: Stop | None
    ) -> None:
        run = run_with(stop)
        run.lease_deadline = 50.0
        assert escalation_of(run, grace_sec=GRACE) == Escalation(50, 51)
        with pytest.raises(LeaseLostError):
            run.check_lease()

    def test_never_is_never(self) -> None:
        assert Escalation() == Escalation(math.inf, math.inf)


def write_all(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


class TestOutput:
    def read(self, out: bytes, errors: bytes = b"") -> tuple[list[tuple[str, str]], Output]:
        told: list[tuple[str, str]] = []
        pipes = [os.pipe(), os.pipe()]
        for (_read, write), data in zip(pipes, (out, errors), strict=True):
            threading.Thread(target=write_all, args=(write, data)).start()
        streams = [os.fdopen(read, "rb") for read, _write in pipes]
        output = Output(streams[0], streams[1], lambda text, level: told.append((level, text)))
        wait_until(lambda: not output.read(0.01) and not output.is_open)
        output.end()
        output.close()
        for stream in streams:
            stream.close()
        return told, output

    def test_lines_with_their_levels_the_last_one_without_an_end(self) -> None:
        told, output = self.read(b"one\r\ntwo\xff", b"oh\nno")
        assert sorted(told) == [("info", "one"), ("info", "two�"), ("warning", "no"), ("warning", "oh")]
        assert output.last_errors == ["oh", "no"]

    def test_no_line_and_no_number_of_lines_is_too_long(self) -> None:
        told, _ = self.read(b"x" * 50_000)
        assert told == [("info", "x" * LONGEST_SHOWN + "… (a line of 50,000 bytes, cut)")]
        told, output = self.read(b"y\n" * 100_000)
        gaps = [text for level, text in told if level == "warning"]
        assert output.lines == 100_000
        assert output.left_out > 50_000
        assert len(told) - len(gaps) + output.left_out == 100_000
        assert sum(int(text.split()[0].replace(",", "")) for text in gaps) == output.left_out
        assert gaps[-1].endswith("lines were left out here: they came too fast.")

    def test_of_the_errors_the_last_ones_are_kept(self) -> None:
        _told, output = self.read(b"", b"".join(b"%d %s\n" % (number, b"z" * 90) for number in range(100)))
        assert output.last_errors[-1].startswith("99 z")
        assert len(output.last_errors) == 40
        assert sum(map(len, output.last_errors)) <= 4_000
        _told, output = self.read(b"", b"z" * 5_000)
        assert output.last_errors == ["z" * 500]


class TestGroups:
    def start(self, *, session: bool = True) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "1000"], start_new_session=session)

    def test_the_groups_of_a_dead_worker_are_killed_and_no_other(self, tmp_path: Path) -> None:
        mine, other, forgotten = self.start(), self.start(), self.start()
        GroupRecord(tmp_path, "worker-1", mine.pid)
        GroupRecord(tmp_path, "worker-12", other.pid)
        GroupRecord(tmp_path, "worker-1", forgotten.pid).forget()
        try:
            kill_groups_of(tmp_path, "worker-1")
            assert mine.wait(5) == -signal.SIGKILL
            assert (other.poll(), forgotten.poll()) == (None, None)
            assert [path.name for path in tmp_path.iterdir()] == [f"worker-12.{other.pid}.group"]
        finally:
            for process in (other, forgotten):
                process.kill()
                process.wait()

    @pytest.mark.parametrize("field", ["started", "boot", "space"])
    def test_a_number_that_is_somebody_else_s_by_now_is_left_alone(self, tmp_path: Path, field: str) -> None:
        process = self.start()
        GroupRecord(tmp_path, "w", process.pid)
        (note,) = tmp_path.iterdir()
        note.write_text(json.dumps({**json.loads(note.read_text()), field: "another"}))
        try:
            kill_groups_of(tmp_path, "w")
            assert process.poll() is None
            assert list(tmp_path.iterdir()) == [], "the note is of no use any more"
        finally:
            process.kill()
            process.wait()

    @pytest.mark.parametrize("text", ["", "{", "{}"])
    def test_a_note_that_was_never_finished(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "w.1.group").write_text(text)
        kill_groups_of(tmp_path, "w")
        assert list(tmp_path.iterdir()) == []
