"""Several processes on one SQLite file: the short form of `python -m tests.acceptance.chaos.neighbours`."""

from __future__ import annotations

import pytest

from tests.acceptance.chaos.neighbours import neighbours
from tests.helpers.installation import Installation


@pytest.mark.slow
def test_nobody_waits_in_vain_and_no_lease_is_lost(installation: Installation) -> None:
    told = neighbours(installation, 20.0)
    print(told.figures)  # noqa: T201 - pytest shows it when the test fails
    assert told.findings == []
    assert told.figures["jobs"] >= 10
    assert told.figures["commands"] >= 5
