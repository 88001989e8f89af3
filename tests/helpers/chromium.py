"""Debian's Chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.helpers.requirements import MissingRequirementError


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium that asks nobody for updates, and sends nothing home.

    Raises:
        MissingRequirementError: there is none.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise MissingRequirementError("These tests need Chromium (Debian: apt-get install chromium).")
    arguments = [
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]
    if os.geteuid() == 0:
        # Chromium's sandbox does not work as root. It only ever loads the pages of the tests.
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        # It may start beside other tests that have the machine.
        started = playwright.chromium.launch(executable_path=found, args=arguments, timeout=120_000)
        yield started
        started.close()
