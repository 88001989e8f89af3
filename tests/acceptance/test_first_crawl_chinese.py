"""Chinese manuals that nobody here wrote, with title and text found by themselves, are readable afterwards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import html as lxml_html  # type: ignore[import-untyped]

from tests.conftest import Serve
from tests.helpers.documentation import documentation
from tests.helpers.installation import Installation, file_of, site_yaml, target_yaml
from tests.helpers.servers.static import StaticSite
from webqueue.models import Document

CJK = re.compile(r"[一-鿿]")
# Long enough to be no chance, and without the marks that tables and lists get.
CLAUSE = re.compile(r"[一-鿿]{8,}")
LETTERS = re.compile(r"[A-Za-z]")
# What Latin-1 or GBK readings of UTF-8 Chinese are full of.
GARBLED = re.compile(r"[ÃÂäåæçèé]{2}|锟斤拷|烫烫")


def share_of_chinese(text: str) -> float:
    """Chinese characters among all letters of the text; commands and names of packages are Latin."""
    chinese, latin = len(CJK.findall(text)), len(LETTERS.findall(text))
    return chinese / max(1, chinese + latin)


def test_thirty_chinese_pages_are_readable(installation: Installation, serve: Serve) -> None:
    sites = {
        code: StaticSite(documentation(package))
        for code, package in (("reference", "debian-reference-zh-cn"), ("faq", "debian-faq-zh-cn"))
    }
    assert sum(len(site.files) for site in sites.values()) >= 30
    servers = {
        code: serve(site, host=f"127.0.1.{number}") for number, (code, site) in enumerate(sites.items(), 1)
    }
    params = {"list_url": "list/index_{page}.html"}
    installation.describe(
        file_of(
            [site_yaml(code, server.url, timezone="Asia/Shanghai") for code, server in servers.items()],
            [target_yaml(code, code, params) for code in sites],
        )
    )
    served = installation.serve()
    jobs = [served.run(code) for code in sites]
    for job_id in jobs:
        job = installation.wait_for_end(job_id)
        assert (job.status, job.error_msg, job.attention) == ("done", None, None)

    for code, site in sites.items():
        documents = {document.url: document for document in installation.documents(code)}
        assert len(documents) == len(site.files)
        for file in site.files:
            read(documents[servers[code].url + site.url_path(file)], site.folder / file)


def read(document: Document, file: Path) -> None:
    """Compare a document with its file as another parser reads it."""
    tree = lxml_html.document_fromstring(file.read_bytes())
    title = " ".join(tree.findtext(".//title").split())
    heading = " ".join("".join(element.text_content() for element in tree.xpath("(//h1)[1]")).split())
    assert document.title in {title, heading}, f"{document.url} is called {document.title!r}"
    for text in (document.title, document.text):
        assert "\ufffd" not in text, f"{document.url} was decoded wrongly"
        assert not GARBLED.search(text), f"{document.url} was decoded wrongly"
    if len(tree.text_content()) < 500:
        return  # a page that only leads elsewhere has nothing to read
    assert share_of_chinese(document.text) > 0.3, f"{document.url}: {document.text[:200]!r}"
    clauses = CLAUSE.findall(document.text)
    assert clauses, document.url
    whole = "".join(tree.text_content().split())
    strange = [clause for clause in clauses if clause not in whole]
    # Trafilatura drops an element here and there, so that what was around it meets.
    assert len(strange) <= 0.05 * len(clauses), f"{document.url} has what its file has not: {strange}"


@pytest.mark.parametrize("text", ["中文可读", "\ufffd", "ä¸æ\x96\x87"])
def test_the_measures_tell_chinese_from_rubbish(text: str) -> None:
    assert (share_of_chinese(text) > 0.3 and not GARBLED.search(text)) == (text == "中文可读")
