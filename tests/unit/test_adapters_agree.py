"""The adapters that a file may name are those that the crawl has."""

from __future__ import annotations

from webqueue.config.specs import BUILT_ADAPTERS
from webqueue.handlers.crawl.adapters import ADAPTERS


def test_every_adapter_of_the_file_is_one_of_the_crawl() -> None:
    """Written out for the type checker in one place, and with what each does in the other."""
    assert tuple(ADAPTERS) == BUILT_ADAPTERS
