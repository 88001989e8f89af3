"""What pages cost on a large installation, alone and with many readers: `python -m benchmarks.pages`.

A real server on SQLite with 300 targets and 40 keys. First each page by itself, with 10,000 and with 300,000 jobs; then
20 open overviews and 6 job pages poll it as browsers do, while `GET /targets` is measured.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2
from sqlalchemy.orm import Session

from tests.helpers.admin import log_lines, running_job
from tests.helpers.large import fill_large
from tests.helpers.waiting import wait_until
from webqueue import access, clock, migrations
from webqueue.database import Database

SIZES: Final = (10_000, 300_000)
ROUNDS: Final = 15
OVERVIEWS, TAILS = 20, 6
READ_SEC: Final = 30.0
POLL_SEC: Final = 2.0
# Page 100 against page 1, and 300,000 jobs against 10,000.
ALLOWED_RATIO: Final = 1.5
_POLL: Final = re.compile(r'id="poll"[^>]* hx-get="([^"]+)"')


def main() -> int:
    """Print the tables; the exit code is 1 where page 100, or many jobs, cost much more."""
    times = {size: measured(size, with_readers=size == SIZES[0]) for size in SIZES}
    broken = False
    for size, seconds in times.items():
        ratio = seconds["/jobs, page 100"] / seconds["/jobs"]
        say(f"{size:,} jobs: page 100 costs {ratio:.2f} times page 1")
        broken |= ratio > ALLOWED_RATIO
    few, many = (times[size] for size in SIZES)
    for path in few:
        ratio = many[path] / few[path]
        say(f"{path}: with {SIZES[1]:,} jobs {ratio:.2f} times what it costs with {SIZES[0]:,}")
        broken |= ratio > ALLOWED_RATIO
    return int(broken)


def measured(size: int, *, with_readers: bool) -> dict[str, float]:
    """The median seconds of each page."""
    with tempfile.TemporaryDirectory(prefix="webqueue-pages-") as folder, serving(Path(folder), size) as at:
        client, job = at
        pages = {path: path for path in ("/", "/jobs", "/targets", "/rate-keys", "/schedule")}
        pages["/jobs, page 100"] = f"/jobs?cursor={size - 99 * 50 + 1}"
        seconds: dict[str, list[float]] = {name: [] for name in pages}
        sizes: dict[str, int] = {}
        for _ in range(ROUNDS):  # in turns, so that whatever else the machine does meets all alike
            for name, path in pages.items():
                took, answer = timed(client, path)
                seconds[name].append(took)
                sizes[name] = len(answer.content)
        say(f"{size:,} jobs, each page alone, {ROUNDS} times:")
        for name, times in seconds.items():
            middle = statistics.median(times)
            say(f"  {name:18}{middle * 1e3:6.0f} ms (longest {max(times) * 1e3:4.0f}), {sizes[name]:,} bytes")
        if with_readers:
            read_together(client, job)
        return {name: statistics.median(times) for name, times in seconds.items()}


def read_together(client: httpx2.Client, job: str) -> None:
    """Print what /targets costs while many pages are open."""
    stopping, answers = threading.Event(), Counter[int]()
    paths = ["/"] * OVERVIEWS + [f"/jobs/{job}"] * TAILS
    threads = [
        threading.Thread(target=keep_open, args=(client, path, stopping, answers), daemon=True)
        for path in paths
    ]
    for thread in threads:
        thread.start()
    times, until = [], time.monotonic() + READ_SEC
    while time.monotonic() < until:
        times.append(timed(client, "/targets")[0])
    stopping.set()
    for thread in threads:
        thread.join()
    p95 = statistics.quantiles(times, n=20)[-1]
    say(
        f"  {OVERVIEWS} overviews and {TAILS} job pages open: /targets {statistics.median(times) * 1e3:.0f} ms, "
        f"p95 {p95 * 1e3:.0f} ms ({len(times)} times); {sum(answers.values())} polls: {dict(answers)}"
    )


def keep_open(client: httpx2.Client, path: str, stopping: threading.Event, answers: Counter[int]) -> None:
    """Do what an open page does: poll its own address every 2 s."""
    poll = poll_of(client.get(path))
    while not stopping.wait(POLL_SEC):
        answer = client.get(poll)
        answers[answer.status_code] += 1
        if answer.status_code == httpx2.codes.OK:
            poll = poll_of(answer)


def poll_of(answer: httpx2.Response) -> str:
    found = _POLL.search(answer.text)
    assert found is not None, f"{answer.url} does not say where to poll"
    return found[1].replace("&amp;", "&")


def timed(client: httpx2.Client, path: str) -> tuple[float, httpx2.Response]:
    began = time.perf_counter()
    answer = client.get(path)
    seconds = time.perf_counter() - began
    answer.raise_for_status()
    return seconds, answer


@contextmanager
def serving(folder: Path, size: int) -> Iterator[tuple[httpx2.Client, str]]:
    """A web process on a filled database: a client that is logged in, and the id of a running job with a log."""
    database = Database(f"sqlite:///{folder / 'webqueue.sqlite3'}", instance_path=folder)
    migrations.upgrade(database)

    def fill(session: Session) -> tuple[str, str]:
        now = clock.now(session)
        fill_large(session, size)
        running = running_job(session, "target_007")
        log_lines(session, running, *(f"List page {number}: 20 links" for number in range(500)))
        user = access.create_user(session, "reader", "a long password", "viewer", by="benchmark", now=now)
        return access.new_login_link(session, user, now), running.id

    token, job = database.run(fill)
    database.close()
    command: list[str | Path] = [Path(sys.executable).parent / "webqueue", "web", "--port", "0"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, env={"WEBQUEUE_INSTANCE_PATH": str(folder)}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = wait_until(process.stdout.readline, timeout=30)
        address = re.search(r"http://\S+", line)
        assert address is not None, line
        limits = httpx2.Limits(max_connections=OVERVIEWS + TAILS + 4)
        with httpx2.Client(base_url=address[0], follow_redirects=True, timeout=60.0, limits=limits) as client:
            client.get(f"/login/{token}").raise_for_status()
            yield client, job
    finally:
        process.terminate()
        process.wait()


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
