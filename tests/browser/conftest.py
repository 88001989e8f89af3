"""The browser ring: Debian's Chromium, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect

from tests.conftest import SQLITE_FILE
from tests.helpers.admin import Admin, running_admin
from tests.helpers.chromium import chromium
from tests.helpers.large import bring_to_now, make_large_file
from tests.helpers.pages import every_page
from tests.helpers.requirements import MissingRequirementError, lacking
from webqueue import settings as webqueue_settings
from webqueue.database import Database
from webqueue.settings import Settings

Theme = Literal["light", "dark"]
# More than a page takes between two polls, on a machine that others have as well.
PATIENCE_MS: Final = 15_000


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
def large_file(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_large_file(_sqlite_template, tmp_path_factory.mktemp("large"))


@pytest.fixture
def large_settings(large_file: Path, tmp_path: Path) -> Settings:
    """Of an instance with 300 targets, 40 keys and 10,000 jobs: a copy of its own, which takes milliseconds."""
    return copied(large_file, tmp_path / "large")


@pytest.fixture
def large(large_settings: Settings) -> Iterator[Admin]:
    """A running admin on it, as the checks of the pages ask for."""
    with served(large_settings) as running:
        yield running


@pytest.fixture(scope="session")
def large_pages(large_file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All pages of such an admin: their addresses, and their HTML."""
    with served(copied(large_file, tmp_path_factory.mktemp("pages") / "large")) as running:
        return every_page(running)


def copied(file: Path, folder: Path) -> Settings:
    """The settings of a new instance with a copy of the database."""
    folder.mkdir()
    shutil.copyfile(file, folder / SQLITE_FILE)
    return webqueue_settings.load(
        instance_path=folder, database_url=f"sqlite:///{folder / SQLITE_FILE}", allow_private_addresses=True
    )


def opened(settings: Settings) -> Database:
    """The database of the instance."""
    return Database(str(settings.database_url), instance_path=settings.instance_path)


@contextmanager
def served(settings: Settings) -> Iterator[Admin]:
    """A running admin of the instance, as if it had been filled just now."""
    database = opened(settings)
    try:
        database.run(bring_to_now)
        with running_admin(settings, database) as running:
            yield running
    finally:
        database.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole run."""
    expect.set_options(timeout=PATIENCE_MS)
    with ExitStack() as stack:
        try:
            started = stack.enter_context(chromium())
        except MissingRequirementError as error:
            lacking(str(error))
        yield started


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
            context.set_default_timeout(PATIENCE_MS)
            context.set_default_navigation_timeout(60_000)  # other tests have the machine as well
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
