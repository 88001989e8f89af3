"""What pages cost on a large installation, alone, with many readers and in a browser: `python -m benchmarks.pages`.

Real servers on SQLite with 300 targets and 40 keys. First each page by itself, with 10,000 and with 300,000 jobs in turns; then
20 open overviews and 6 job pages poll it as browsers do, while `GET /targets` is measured; then a browser presses
Run now, and looks at a server that is stopped. At the end all figures stand in a table, one row a check of the pages.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx2
from playwright.sync_api import Page
from sqlalchemy.orm import Session

import webqueue
from benchmarks.waiting import until_previewed, until_told, until_visible, words
from tests.helpers.admin import log_lines, running_job
from tests.helpers.chromium import chromium
from tests.helpers.large import QUEUED, TARGETS, fill_large
from tests.helpers.waiting import wait_until
from webqueue import access, clock, migrations
from webqueue.database import Database

SIZES: Final = (10_000, 300_000)
ROUNDS: Final = 15
OVERVIEWS, TAILS = 20, 6
READ_SEC: Final = 30.0
POLL_SEC: Final = 2.0
LEAST_READS: Final = 20
# Page 100 against page 1, and 300,000 jobs against 10,000.
ALLOWED_RATIO: Final = 1.5
PAGE_100: Final = "/jobs, page 100"
# Those of which check 9 speaks, and others to compare with.
ASKED: Final = ("/", "/jobs", PAGE_100)
PAGES: Final = (*ASKED, "/targets", "/rate-keys", "/schedule")
_POLL: Final = re.compile(r'id="poll"[^>]* hx-get="([^"]+)"')
# Of each kind, as many presses as rows stand on one page.
PRESSES: Final = 15
# The target whose job runs, with a log that people follow.
RUNNING: Final = 7


@dataclass
class Serving:
    """A web process on a filled database.

    Attributes:
        client: logged in.
        job: the id of a running job with a log.
        token: logs a browser in, once.
    """

    folder: Path
    client: httpx2.Client
    job: str
    token: str
    process: subprocess.Popen[str]
    url: str

    def start_again(self) -> None:
        """After its end, at the same address."""
        self.process, _ = started(self.folder, port=self.url.rpartition(":")[2])


@dataclass(frozen=True)
class Figures:
    """What came of one size of database: the seconds of each page, and what it was at last."""

    times: dict[str, list[float]] = field(default_factory=lambda: {path: [] for path in PAGES})
    htmls: dict[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """The median of each page."""
        return {path: statistics.median(times) for path, times in self.times.items()}

    def table(self) -> dict[str, str]:
        """The row of the table for the times of Overview and Jobs."""
        return {"9": "; ".join(f"{path} {words(self.times[path])}" for path in ("/", "/jobs"))}

    def sizes(self) -> str:
        """How large Overview and Jobs are."""
        return "; ".join(
            f"{path} {len(self.htmls[path].encode()):,} bytes with {rows_of(self.htmls[path])} rows"
            for path in ("/", "/jobs")
        )


def main() -> int:
    """Print the tables; the exit code is 1 where page 100, or many jobs, cost much more."""
    say(f"Load of the machine before: {load()}")
    with ExitStack() as stack:
        folders = {size: stack.enter_context(TemporaryDirectory(prefix="webqueue-pages-")) for size in SIZES}
        served = {size: stack.enter_context(serving(Path(folder), size)) for size, folder in folders.items()}
        figures = measured(served)
        few, many = (figures[size].seconds for size in SIZES)
        crowd = read_together(served[SIZES[0]].client, served[SIZES[0]].job)
        shown = {
            size: figures[size].table() | browse(served[size], size, everything=size == SIZES[0])
            for size in SIZES
        }
    deep = {size: figures[size].seconds[PAGE_100] / figures[size].seconds["/jobs"] for size in SIZES}
    growths = {path: many[path] / few[path] for path in few}
    rows = {
        **shown[SIZES[0]],
        "8": crowd,
        "9, HTML": figures[SIZES[0]].sizes(),
        "9, CSS and JS": f"{code_bytes():,} bytes gzip",
        "9, page 100": "; ".join(
            f"with {size:,} jobs {ratio:.2f} times page 1" for size, ratio in deep.items()
        ),
        f"9, {SIZES[1]:,} jobs, ratios": "; ".join(
            f"{path} {growth:.2f} times" for path, growth in growths.items()
        ),
        **{f"{check}, {SIZES[1]:,} jobs": row for check, row in shown[SIZES[1]].items()},
    }
    say("\n| check | measured |\n|---|---|")
    for check, row in sorted(rows.items(), key=lambda one: int(one[0].partition(",")[0])):
        say(f"| {check} | {row} |")
    say(f"\nLoad of the machine after: {load()}")
    return int(max(*deep.values(), *(growths[path] for path in ASKED)) > ALLOWED_RATIO)


def measured(served: Mapping[int, Serving]) -> dict[int, Figures]:
    """Each page alone, on each size of database; all in turns, so that whatever else the machine does meets all alike."""
    figures = {size: Figures() for size in served}
    for _ in range(ROUNDS):
        for path in PAGES:
            for size, at in served.items():
                deep = f"/jobs?cursor={size - 99 * 50 + 1}"
                took, answer = timed(at.client, deep if path == PAGE_100 else path)
                figures[size].times[path].append(took)
                figures[size].htmls[path] = answer.text
    for size, found in figures.items():
        say(f"{size:,} jobs, each page alone, {ROUNDS} times:")
        for path, times in found.times.items():
            html = found.htmls[path]
            say(f"  {path:18}{words(times)}; {len(html.encode()):,} bytes, {rows_of(html)} rows")
    return figures


def browse(at: Serving, size: int, *, everything: bool) -> dict[str, str]:
    """Rows of the table for what is measured in a browser."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{at.url}/login/{at.token}")
        targets = idle_targets(size)
        page.goto(f"{at.url}/targets?cursor=target_{int(targets[0][-3:]) - 1:03}")
        table = {"1": f"Run now until the row says Queued: {words(until_visible(page, targets))}"}
        if everything:
            page.goto(f"{at.url}/targets/target_200/edit")
            crons = [f"{number} {number} * * *" for number in range(1, 1 + PRESSES)]
            table["2, preview"] = f"last key until the times are there: {words(until_previewed(page, crons))}"
            table["10"] = stopped(at, page)
        return table


def idle_targets(size: int) -> list[str]:
    """Targets beside each other that have no job in the queue, so that their rows do not say Queued before a press."""
    queued = {number % TARGETS for number in range(size - QUEUED, size)}
    idle = [number for number in range(RUNNING + 1, TARGETS) if number not in queued]
    return [f"target_{number:03}" for number in idle[:PRESSES]]


def stopped(at: Serving, page: Page) -> str:
    """How long until an open overview says that its server is killed, or silent, and that it is back."""
    page.goto(at.url)

    def kill() -> None:
        at.process.kill()
        at.process.wait()

    killed = until_told(page, "No answer", kill)
    back = until_told(page, "Updated", at.start_again)
    silent = until_told(page, "No answer", lambda: at.process.send_signal(signal.SIGSTOP))
    awake = until_told(page, "Updated", lambda: at.process.send_signal(signal.SIGCONT))
    return (
        f"said {killed:.1f} s after a SIGKILL and {silent:.1f} s after a SIGSTOP; "
        f"gone {back:.1f} s after the start and {awake:.1f} s after the SIGCONT"
    )


def rows_of(html: str) -> int:
    return html.count("<tr id=")


def code_bytes() -> int:
    """All CSS and JavaScript of the pages, each file by itself."""
    static = Path(webqueue.__file__).parent / "static"
    files = [path for path in static.iterdir() if path.suffix in {".css", ".js"}]
    return sum(len(gzip.compress(path.read_bytes())) for path in files)


def load() -> str:
    return ", ".join(f"{value:.2f}" for value in os.getloadavg())


def read_together(client: httpx2.Client, job: str) -> str:
    """What /targets costs while many pages are open."""
    stopping, answers = threading.Event(), Counter[int]()
    paths = ["/"] * OVERVIEWS + [f"/jobs/{job}"] * TAILS
    threads = [
        threading.Thread(target=keep_open, args=(client, path, stopping, answers), daemon=True)
        for path in paths
    ]
    for thread in threads:
        thread.start()
    times: list[float] = []
    until = time.monotonic() + READ_SEC
    while time.monotonic() < until or len(times) < LEAST_READS:
        times.append(timed(client, "/targets")[0])
    stopping.set()
    for thread in threads:
        thread.join()
    p95 = statistics.quantiles(times, n=20)[-1]
    told = ", ".join(f"{count} {status}" for status, count in sorted(answers.items()))
    return f"/targets {words(times)}, p95 {p95 * 1e3:.0f} ms; polls answered: {told}"


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
def serving(folder: Path, size: int) -> Iterator[Serving]:
    """A web process on a filled database."""
    database = Database(f"sqlite:///{folder / 'webqueue.sqlite3'}", instance_path=folder)
    migrations.upgrade(database)

    def fill(session: Session) -> tuple[str, str, str]:
        now = clock.now(session)
        fill_large(session, size)
        running = running_job(session, f"target_{RUNNING:03}")
        log_lines(session, running, *(f"List page {number}: 20 links" for number in range(500)))
        user = access.create_user(
            session, access.new_user("reader", "a long password", "admin"), by="benchmark", now=now
        )
        links = [access.new_login_link(session, user, now) for _ in range(2)]
        return running.id, links[0], links[1]

    job, token, browsers = database.run(fill)
    database.close()
    process, url = started(folder)
    limits = httpx2.Limits(max_connections=OVERVIEWS + TAILS + 4)
    with httpx2.Client(base_url=url, follow_redirects=True, timeout=60.0, limits=limits) as client:
        at = Serving(folder, client, job, browsers, process, url)
        try:
            client.get(f"/login/{token}").raise_for_status()
            yield at
        finally:
            at.process.terminate()
            at.process.wait()


def started(folder: Path, port: str = "0") -> tuple[subprocess.Popen[str], str]:
    """A web process, and where it answers."""
    command: list[str | Path] = [Path(sys.executable).parent / "webqueue", "web", "--port", port]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, env={"WEBQUEUE_INSTANCE_PATH": str(folder)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = wait_until(process.stdout.readline, timeout=30)
    address = re.search(r"http://[0-9.:]+", line)
    assert address is not None, line
    return process, address[0]


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
