"""The first crawl, end to end: a real server, a real `webqueue serve`, and pages that nobody here wrote."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from lxml import html as lxml_html  # type: ignore[import-untyped]

from tests.conftest import Serve
from tests.helpers.documentation import documentation
from tests.helpers.installation import Installation, file_of, site_yaml, target_yaml
from tests.helpers.servers.base import Server
from tests.helpers.servers.static import LIST, StaticSite
from webqueue.models import Document

LIST_URL = "list/index_{page}.html"


def without_space(text: str) -> str:
    """`text` without any white space: where lines are broken is a matter of taste."""
    return "".join(text.split())


class Reading:
    """A file as another parser reads it."""

    def __init__(self, file: Path) -> None:
        self._tree: Any = lxml_html.document_fromstring(file.read_bytes())

    def text_of(self, xpath: str) -> str:
        """The text of every element that the expression finds."""
        return "".join(without_space(element.text_content()) for element in self._tree.xpath(xpath))


def test_five_hundred_pages_are_stored_as_their_files_have_them(
    installation: Installation, serve: Serve
) -> None:
    site = StaticSite(documentation("python3.11-doc"))
    server = serve(site)
    assert len(site.files) >= 500, "the package has fewer pages than the test is for"
    params = {"list_url": LIST_URL, "title_selector": "h1", "content_selector": "div.body"}
    installation.describe(
        file_of([site_yaml("manual", server.url)], [target_yaml("manual", "manual", params)])
    )
    served = installation.serve()
    job = installation.wait_for_end(served.run("manual"), timeout=240)

    assert (job.status, job.attention, job.attempt_count, job.error_msg) == ("done", None, 0, None)
    assert job.result is not None
    assert (job.result["new"], job.result["failed"]) == (len(site.files), 0)
    assert job.last_completed_page == site.list_pages + 1, "the empty one behind them ends the crawl"
    assert_each_is_stored_once(installation, server)
    assert_every_page_is_fetched_once(server, site)
    assert server.max_concurrent == 1
    compare(installation.documents(), site, server)
    assert served.terminate() == 0


def assert_each_is_stored_once(installation: Installation, server: Server) -> None:
    """One document and one version for each file of the site."""
    site = server.site
    assert isinstance(site, StaticSite)
    documents = installation.documents()
    wanted = sorted(server.url + site.url_path(file) for file in site.files)
    assert sorted(document.url for document in documents) == wanted
    assert {document.version for document in documents} == {1}


def assert_every_page_is_fetched_once(server: Server, site: StaticSite) -> None:
    """Articles, list pages, the empty one behind them, and robots.txt; nothing else."""
    wanted = [site.url_path(file) for file in site.files]
    wanted += [f"{LIST}{number}.html" for number in range(1, site.list_pages + 2)]
    assert Counter(request.target for request in server.requests) == Counter([*wanted, "/robots.txt"])


def compare(documents: list[Document], site: StaticSite, server: Server) -> None:
    """Title and text of each document are those of its file, whatever parser reads it."""
    files = {server.url + site.url_path(file): site.folder / file for file in site.files}
    compared = 0
    for document in documents:
        reading = Reading(files[document.url])
        text = reading.text_of("//div[@class='body']")
        if text:
            assert without_space(document.text) == text, f"the text of {document.url} is not that of its file"
            compared += 1
        title = reading.text_of("(//h1)[1]")
        if title:
            assert without_space(document.title) == title.removesuffix("¶"), document.url
    assert compared >= 500, f"only {compared} pages have the element that was compared"
