"""Servers that do what they should not: a clear error on the job, the key released, nothing lost, memory bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.conftest import Serve
from tests.helpers.installation import Installation, file_of, site_yaml, target_yaml
from tests.helpers.servers.base import Server, list_page
from tests.helpers.servers.hostile import ARTICLE, HostileSite
from webqueue.documents.originals import OriginalStore
from webqueue.queries import JobRow

MEBIBYTE = 1024**2
# The server sends 2 GiB, and 1.1 GiB in a MiB of gzip. At rest the process has about 120 MiB; an answer of 20 MB is
# allowed, and there are several at once.
MOST_MEMORY = 400 * MEBIBYTE


@dataclass(frozen=True)
class Trap:
    """A list page that is one, and words that have to be in the job's error."""

    path: str
    words: tuple[str, ...]


TRAPS = (
    Trap("/never", ("/never", "silent for 1 s")),
    Trap("/500", ("/500", "HTTP 500")),
    Trap("/cut", ("/cut", "not whole")),
    Trap("/huge", ("/huge", "larger than 20000000 bytes")),
    Trap("/huge-unannounced", ("/huge-unannounced", "larger than 20000000 bytes")),
    Trap("/loop", ("/loop", "in a circle")),
    Trap("/gzip-bomb", ("/gzip-bomb", "decompression bombs")),
    Trap("/gzip-broken", ("/gzip-broken", "cannot be unpacked")),
    Trap("/empty-list", ("/empty-list", "'ul.list a'", "was kept")),
    Trap("/there-is-none", ("/there-is-none", "404")),
    Trap("/nonsense", ("/nonsense", "HTTP")),
)


def describe(installation: Installation, servers: list[Server]) -> None:
    """For each trap a site with a key of its own, and two targets: the trap, and an ordinary list behind it."""
    sites, targets = [], []
    for number, (trap, server) in enumerate(zip(TRAPS, servers, strict=True)):
        site = f"site-{number}"
        # Only the server that never answers has to be waited for; a busy machine is no reason to give up.
        timeout_sec = 1 if trap.path == "/never" else 30
        sites.append(site_yaml(site, server.url, http={"timeout_sec": timeout_sec}))
        quick: dict[str, Any] = {"max_pages": 1, "title_selector": "h1", "content_selector": "article"}
        targets.append(target_yaml(f"trap-{number}", site, {"list_url": trap.path, **quick}))
        targets.append(target_yaml(f"next-{number}", site, {"list_url": "/", **quick}))
    installation.describe(file_of(sites, targets))


def kept_copy(installation: Installation, job: JobRow) -> bytes:
    """The copy of the page that the job names."""
    assert job.result is not None
    return OriginalStore(str(installation.instance / "store")).get(job.result["kept_page"])


def test_every_trap_is_a_clear_error_and_the_next_job_of_the_key_runs(
    installation: Installation, serve: Serve
) -> None:
    servers = [serve(HostileSite(), host=f"127.0.1.{number}") for number in range(1, len(TRAPS) + 1)]
    describe(installation, servers)
    served = installation.serve("--threads", "4")
    before = served.peak_memory
    sprung = [served.run(f"trap-{number}") for number in range(len(TRAPS))]
    following = [served.run(f"next-{number}") for number in range(len(TRAPS))]

    for trap, job_id in zip(TRAPS, sprung, strict=True):
        job = installation.wait_for_end(job_id)
        assert job.status == "failed", trap
        assert job.error_msg is not None
        missing = [word for word in trap.words if word not in job.error_msg]
        assert not missing, f"{trap.path}: {job.error_msg!r} does not say {missing}"
        assert "Traceback" not in job.error_msg
    for job_id in following:
        job = installation.wait_for_end(job_id)
        assert (job.status, job.error_msg) == ("done", None), "the key was released"

    assert len(installation.jobs()) == 2 * len(TRAPS), "nothing is lost, and nothing was made up"
    documents = installation.documents()
    assert len(documents) == len(TRAPS)
    assert {document.title for document in documents} == {"Café at the harbour"}
    keys = served.ask("GET", "rate-keys").data["items"]
    assert {key["state"] for key in keys} == {"idle"}
    peak = served.peak_memory
    assert peak < MOST_MEMORY, f"{before // MEBIBYTE} MiB before, and then {peak // MEBIBYTE} MiB"

    empty = installation.job(sprung[[trap.path for trap in TRAPS].index("/empty-list")])
    assert kept_copy(installation, empty) == list_page([]).encode(), "what the server sent, byte for byte"
    assert served.terminate() == 0
    assert "Traceback" not in served.log.read_text()


def test_articles_that_cannot_be_had_are_counted_and_the_others_are_stored(
    installation: Installation, serve: Serve
) -> None:
    server = serve(HostileSite(), host="127.0.1.1")
    quick = {"max_pages": 1, "title_selector": "h1", "content_selector": "article"}
    bad = ("/cut", "/loop", "/gzip-bomb", "/huge")
    targets = [
        target_yaml(f"article-{number}", "site", {"list_url": f"/list-to?to={path}", **quick})
        for number, path in enumerate(bad)
    ]
    targets.append(target_yaml("article-good", "site", {"list_url": "/list-to?to=/ok", **quick}))
    installation.describe(file_of([site_yaml("site", server.url)], targets))
    served = installation.serve()
    ids = [served.run(str(target["code"])) for target in targets]
    for path, job_id in zip(bad, ids, strict=False):
        job = installation.wait_for_end(job_id)
        assert job.status == "failed", "a run that got nothing is not green"
        assert job.error_msg is not None
        assert path in job.error_msg
    assert installation.wait_for_end(ids[-1]).status == "done"
    (document,) = installation.documents()
    assert document.text.split() == _words_of_the_article()


def _words_of_the_article() -> list[str]:
    inside = ARTICLE.partition("<article>")[2].partition("</article>")[0]
    for tag in ("<h1>", "</h1>", "<p>", "</p>"):
        inside = inside.replace(tag, " ")
    return inside.split()
