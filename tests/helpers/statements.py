"""Statements compiled once for all databases of a test process: with a new engine a test, most of it would be compiling."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class CompiledStatements:
    """A cache of compiled statements for the engines of every database of one kind.

    SQLAlchemy takes any mapping as its `compiled_cache`. Its keys begin with the engine's own dialect; here the name of
    the dialect stands for it, as all engines of the tests are made alike and ask servers of one version.
    """

    def __init__(self) -> None:
        self._compiled: dict[Hashable, Any] = {}

    def get(self, key: tuple[Any, ...]) -> Any:
        """What was compiled for a statement, or None."""
        return self._compiled.get(self._shared(key))

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        self._compiled[self._shared(key)] = compiled

    @staticmethod
    def _shared(key: tuple[Any, ...]) -> Hashable:
        dialect, *statement = key
        return (dialect.name, *statement)
