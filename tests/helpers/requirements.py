"""What a test needs of the machine: skipped on a developer's machine where it is missing, failed in CI."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


class MissingRequirementError(RuntimeError):
    """The machine lacks something; the text names it and the package that brings it."""


def in_ci() -> bool:
    """Whether CI=true says that everything has to be there."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def lacking(what: str) -> NoReturn:
    """End the test: skipped locally, failed in CI, so that CI is never green because nothing ran."""
    if in_ci():
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
