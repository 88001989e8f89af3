"""How many real pages are readable, and how much of their main text is found: `python -m benchmarks.texts`.

Debian's manuals in Chinese, Japanese, Russian, Arabic and Persian are fetched by `apt-get download`, written once more
in the encodings that such pages have on the web, and read in two ways: as `crawl` reads an answer, and by the command
line of trafilatura on the same files. The truth is the manual's own container of its text, taken by lxml.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lxml import html  # type: ignore[import-untyped]

from webqueue.handlers.crawl.articles import Extractor
from webqueue.handlers.crawl.encodings import REPLACEMENT
from webqueue.handlers.crawl.pages import Page
from webqueue.handlers.protocol import Response

FOUND: Final = 0.8
PAGES_EACH: Final = 20
_CHARSET: Final = re.compile(rb"(charset=)(utf-8)", re.IGNORECASE)
_PROLOGUE: Final = re.compile(r"<\?xml[^>]*\?>")
_NOT_MAIN: Final = "|".join(
    f".//*[contains(concat(' ', @class, ' '), ' {name} ')]"
    for name in ("navheader", "navfooter", "toc", "docnav", "list-of-figures", "list-of-tables", "titlepage")
)


@dataclass(frozen=True)
class Manual:
    """Pages of one language.

    Attributes:
        package: of Debian, that has them.
        pages: a glob below its root.
        encodings: besides UTF-8, those that pages of this language have.
    """

    language: str
    package: str
    pages: str
    encodings: tuple[str, ...]


MANUALS: Final = (
    Manual("Chinese", "debian-faq-zh-cn", "usr/share/doc/debian/FAQ/zh-cn/*.html", ("gb2312", "gb18030")),
    Manual(
        "Chinese (Taiwan)", "debian-handbook", "usr/share/doc/debian-handbook/html/zh-TW/*.html", ("big5",)
    ),
    Manual("Japanese", "debian-faq-ja", "usr/share/doc/debian/FAQ/ja/*.html", ("shift_jis", "euc-jp")),
    Manual("Russian", "debian-faq-ru", "usr/share/doc/debian/FAQ/ru/*.html", ("windows-1251", "koi8-r")),
    Manual("Arabic", "debian-handbook", "usr/share/doc/debian-handbook/html/ar-MA/*.html", ("windows-1256",)),
    Manual("Persian", "debian-handbook", "usr/share/doc/debian-handbook/html/fa-IR/*.html", ()),
)


@dataclass
class Score:
    """Of one language in one encoding."""

    pages: int = 0
    readable: int = 0
    found: int = 0
    readable_by_trafilatura: int = 0
    found_by_trafilatura: int = 0
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)


def main() -> int:
    """Print a table; the exit code is 1 where trafilatura alone does better in the whole."""
    total = Score()
    with tempfile.TemporaryDirectory(prefix="webqueue-texts-") as folder:
        roots = {package: fetched(package, Path(folder)) for package in {one.package for one in MANUALS}}
        say("language            encoding       pages  readable      found  trafilatura: readable      found")
        for manual in MANUALS:
            pages = some(sorted(roots[manual.package].glob(manual.pages)))
            for encoding in ("utf-8", *manual.encodings):
                score = judged(pages, encoding, Path(folder) / f"{manual.language} {encoding}")
                say(row(manual.language, encoding, score))
                for name, value in vars(score).items():
                    setattr(total, name, getattr(total, name) + value)
    say(row("together", "", total))
    return int(total.found < total.found_by_trafilatura or total.readable < total.readable_by_trafilatura)


def fetched(package: str, folder: Path) -> Path:
    """The files of a package, without installing it."""
    place = folder / package
    place.mkdir()
    download = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
    subprocess.run(download, cwd=place, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - names of packages
    (archive,) = place.glob("*.deb")
    subprocess.run(["dpkg-deb", "--extract", archive, place], check=True)  # noqa: S603, S607 - what was just fetched
    return place


def some(files: list[Path]) -> list[Path]:
    """PAGES_EACH of them, evenly spread, none of them a mere table of contents."""
    with_text = [file for file in files if len(truth(file.read_bytes())) > 500]
    return with_text[:: max(1, len(with_text) // PAGES_EACH)][:PAGES_EACH]


def judged(files: list[Path], encoding: str, folder: Path) -> Score:
    """Read the pages in this encoding in both ways."""
    folder.mkdir()
    bodies = dict(written(files, encoding, folder))
    # With --keep-dirs and whole paths a text is written beside its page, under the same name.
    command: list[str | Path] = ["--input-dir", folder, "--output-dir", folder, "--keep-dirs"]
    trafilatura = Path(sys.executable).parent / "trafilatura"
    subprocess.run([trafilatura, *command], check=True, capture_output=True)  # noqa: S603 - folders of this run
    score = Score()
    for name, body in bodies.items():
        expected = truth(files_by_name(files)[name].read_bytes())
        ours = extracted(body)
        output = folder / f"{Path(name).stem}.txt"
        theirs = output.read_text(encoding="utf-8") if output.exists() else ""
        score.pages += 1
        for text, readable, found, likeness in (
            (ours, "readable", "found", score.ours),
            (theirs, "readable_by_trafilatura", "found_by_trafilatura", score.theirs),
        ):
            alike = similarity(text, expected)
            likeness.append(alike)
            setattr(score, readable, getattr(score, readable) + is_readable(text, expected))
            setattr(score, found, getattr(score, found) + (alike >= FOUND))
    return score


def files_by_name(files: list[Path]) -> dict[str, Path]:
    """The pages by the names of their copies."""
    return {f"{number:03}.html": file for number, file in enumerate(files)}


def written(files: list[Path], encoding: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Copies of the pages in an encoding that they declare; characters that it lacks are written as references."""
    for name, file in files_by_name(files).items():
        text = _PROLOGUE.sub("", file.read_text(encoding="utf-8"))
        body = text.encode(encoding, "xmlcharrefreplace")
        body = _CHARSET.sub(rb"\1" + encoding.encode(), body)
        (folder / name).write_bytes(body)
        yield name, body


def extracted(body: bytes) -> str:
    """The text that `crawl` stores for an answer without a charset in its header."""
    extractor = Extractor(title_selector=None, content_selector=None, ignore_selectors=(), timezone="UTC")
    url = "http://www.example.org/page.html"
    return extractor.extract(Page(Response(url, 200, {"content-type": "text/html"}, body, 1))).text


def truth(body: bytes) -> str:
    """The text in the manual's container, without its navigation."""
    tree = html.document_fromstring(body, parser=html.HTMLParser(encoding="utf-8"))
    for node in tree.xpath(f"{_NOT_MAIN}|.//*[@id='banner']|.//script|.//style|.//title"):
        node.drop_tree()
    return str(tree.text_content())


def is_readable(text: str, expected: str) -> bool:
    """Whether there is text, all in characters of the page, none of them a replacement."""
    letters = {char for char in text if char.isalpha()}
    return len(text) > 100 and REPLACEMENT not in text and len(letters - set(expected)) <= len(letters) // 50


def similarity(text: str, expected: str) -> float:
    """The F-measure of runs of three characters, which needs no words: Chinese has none to split at."""
    one, other = (Counter(runs(text)), Counter(runs(expected)))
    both = sum((one & other).values())
    return 2 * both / max(1, sum(one.values()) + sum(other.values()))


def runs(text: str) -> Iterator[str]:
    """Every three characters in a row, white space left out."""
    dense = "".join(text.split())
    return (dense[place : place + 3] for place in range(len(dense) - 2))


def row(language: str, encoding: str, score: Score) -> str:
    """A line of the table."""

    def share(count: int) -> str:
        return f"{count:3} ({count / max(1, score.pages):4.0%})"

    return (
        f"{language:20}{encoding:13}{score.pages:7}  {share(score.readable)}  {share(score.found)}"
        f"             {share(score.readable_by_trafilatura)}  {share(score.found_by_trafilatura)}"
    )


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
