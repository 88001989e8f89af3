"""The evidence files."""

from __future__ import annotations

import json
import multiprocessing
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from webqueue.politeness.evidence import EvidenceLog, RequestLine, masked_url

DAY = date(2026, 11, 29)
LINE = RequestLine(
    at=datetime(2026, 11, 29, 18, 0, 0, 1, tzinfo=UTC),
    key="www.example.org",
    host="www.example.org",
    method="GET",
    url="http://www.example.org/新闻?page=1",
    status=200,
    error=None,
    bytes=1234,
    ms=56.789,
    job="0123456789ab",
    robots="allowed",
)


def write_lines(folder: Path, writer: str, count: int) -> None:
    log = EvidenceLog(folder)
    for number in range(count):
        log.append(replace(LINE, job=writer, url=f"http://h/{number}?{'x' * 1000}"))
    log.close()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path)
    other = replace(LINE, key="other", status=None, error="timeout")
    log.append(LINE)
    log.append(other)

    assert list(log.read(DAY)) == [LINE, other]
    assert list(log.read(DAY, "other")) == [other]
    assert list(log.read(date(2026, 11, 28))) == []
    assert (log.days(), log.failures, log.problem) == ([DAY], 0, None)


def test_a_line_is_json_in_utc(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path)
    log.append(replace(LINE, at=LINE.at.astimezone(timezone(timedelta(hours=8)))))

    (text,) = (tmp_path / "requests" / "2026-11-29.jsonl").read_text(encoding="ascii").splitlines()
    assert json.loads(text)["at"] == "2026-11-29T18:00:00.000001Z"


def test_days_end_at_midnight_utc(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path)
    for seconds in (-1, 0):
        log.append(replace(LINE, at=datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=seconds)))

    assert log.days() == [DAY, date(2026, 11, 30)]
    assert all(len(list(log.read(day))) == 1 for day in log.days())


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path)
    log.append(LINE)

    assert log.path(DAY).stat().st_mode & 0o077 == 0


def test_threads_and_processes_do_not_mix_lines(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers: list[BaseProcess | threading.Thread] = [
        *(context.Process(target=write_lines, args=(tmp_path, f"process{n}", 300)) for n in range(2)),
        *(threading.Thread(target=write_lines, args=(tmp_path, f"thread{n}", 300)) for n in range(2)),
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    lines = list(EvidenceLog(tmp_path).read(DAY))
    assert len(lines) == 1200
    for job in {line.job for line in lines}:
        assert [line.url.partition("?")[0] for line in lines if line.job == job] == [
            f"http://h/{n}" for n in range(300)
        ]


def test_a_half_written_line_costs_only_itself(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path)
    log.append(LINE)
    with log.path(DAY).open("ab") as file:
        file.write(b'{"at":"2026-11-29T18:00\n[1]\n{}\n\xff\xfe\n')
    log.append(LINE)

    assert list(log.read(DAY)) == [LINE, LINE]


def test_a_file_that_was_moved_is_begun_anew(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path)
    log.append(LINE)
    log.path(DAY).rename(tmp_path / "elsewhere")
    log.append(LINE)

    assert len(list(log.read(DAY))) == 1


def test_a_failure_is_told_and_the_crawl_goes_on(tmp_path: Path) -> None:
    (tmp_path / "requests").write_text("a file where the folder should be")
    log = EvidenceLog(tmp_path)

    log.append(LINE)
    assert log.failures == 1
    assert log.problem is not None
    assert str(tmp_path) in log.problem

    (tmp_path / "requests").unlink()
    log.append(LINE)
    assert log.failures == 1
    assert [log.problem, *log.read(DAY)] == [None, LINE]


def test_a_full_disk_is_told() -> None:
    log = EvidenceLog(Path("/dev/full"))  # a path below a device: neither folder nor file can be made

    log.append(LINE)

    assert log.failures == 1


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("http://user:pass@h/x", "http://***@h/x"),
        ("//user@h/x", "//***@h/x"),
        ("http://h/x@y", "http://h/x@y"),
        ("http://h/?page=2&keyword=flood&author=x", "http://h/?page=2&keyword=flood&author=x"),
        ("http://h/?access_token=abc&page=2", "http://h/?access_token=***&page=2"),
        ("http://h/?a=1&api_key=abc;PASSWORD=x", "http://h/?a=1&api_key=***;PASSWORD=***"),
        ("http://h/?X-Amz-Signature=abc#session=1", "http://h/?X-Amz-Signature=***#session=***"),
        ("http://h/?sign=abc&sig=d&sid=e&design=f", "http://h/?sign=***&sig=***&sid=***&design=f"),
        ("http://h/?token=", "http://h/?token="),
    ],
)
def test_secrets_are_masked(url: str, masked: str) -> None:
    assert masked_url(url) == masked


def test_secrets_are_not_written(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path)
    log.append(replace(LINE, url="http://user:geheim@h/?token=geheim"))

    assert "geheim" not in log.path(DAY).read_text()
