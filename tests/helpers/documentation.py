"""HTML that nobody here wrote: the documentation packages of Debian."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.helpers.requirements import lacking

PACKAGES: Final = {
    "python3.11-doc": "/usr/share/doc/python3.11/html",
    "apache2-doc": "/usr/share/doc/apache2-doc/manual",
    "debian-reference-zh-cn": "/usr/share/debian-reference",
    "debian-faq-zh-cn": "/usr/share/doc/debian/FAQ/zh-cn",
}


def documentation(package: str) -> Path:
    """The folder of HTML files of one of the `PACKAGES`; without it the test is skipped, or fails in CI."""
    folder = Path(PACKAGES[package])
    if not any(folder.glob("*.html")) and not any(folder.glob("*/*.html")):
        lacking(f"This test needs pages to crawl (Debian: apt-get install {package}).")
    return folder
