"""The browser ring: Debian's Chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal, Protocol

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, sync_playwright

from tests.helpers.admin import Admin, running_admin
from tests.helpers.requirements import lacking
from webqueue.database import Database
from webqueue.settings import Settings

Theme = Literal["light", "dark"]


class BrowserPage(Protocol):
    """Opens a page in a browser profile of its own: no cookie is shared with another page."""

    def __call__(
        self, width: int = 1360, theme: Theme = "light", *, javascript: bool = True, locale: str = "en-GB"
    ) -> Page:
        """An empty page.

        Args:
            width: of the window, in pixels.
            theme: what the browser says that the person prefers.
            javascript: False switches it off, as some people do.
            locale: the language of the browser, which it asks for pages in.
        """


@pytest.fixture
def engine_name() -> str:
    """The pages are the same on both databases; what they read is tested on both elsewhere."""
    return "sqlite"


@pytest.fixture
def admin(settings: Settings, database: Database) -> Iterator[Admin]:
    """A running admin with an empty database."""
    with running_admin(settings, database) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole run. It asks nobody for updates, and sends nothing home."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        lacking("These tests need Chromium (Debian: apt-get install chromium).")
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
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()


@pytest.fixture
def console_errors() -> list[str]:
    """Errors that the test's pages met (scripts, content security policy, missing files).

    A test that provokes one clears the list; what is left at the end fails the test.
    """
    return []


@pytest.fixture
def browser_page(browser: Browser, console_errors: list[str]) -> Iterator[BrowserPage]:
    """Opens pages: `browser_page(390, "dark")`. A page that met an error fails the test at its end."""
    with ExitStack() as contexts:

        def opener(
            width: int = 1360, theme: Theme = "light", *, javascript: bool = True, locale: str = "en-GB"
        ) -> Page:
            context = contexts.enter_context(
                browser.new_context(
                    viewport={"width": width, "height": 900},
                    color_scheme=theme,
                    java_script_enabled=javascript,
                    locale=locale,
                    timezone_id="UTC",
                )
            )
            context.set_default_timeout(15_000)
            page = context.new_page()

            def on_console(message: ConsoleMessage) -> None:
                if message.type == "error":
                    console_errors.append(f"{page.url}: {message.text}")

            def on_error(error: Error) -> None:
                console_errors.append(f"{page.url}: {error.message}")

            page.on("console", on_console)
            page.on("pageerror", on_error)
            return page

        yield opener
    assert console_errors == []
