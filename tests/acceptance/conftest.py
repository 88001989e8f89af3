"""Fixtures of the acceptance tests: an installation whose server is a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.installation import Installation, copy_of


@pytest.fixture
def installation(instance: Path, _sqlite_template: Path) -> Iterator[Installation]:
    """An installation on SQLite, with no site yet; what is left of its processes is killed at the end."""
    with Installation(copy_of(_sqlite_template, instance)) as installed:
        yield installed
