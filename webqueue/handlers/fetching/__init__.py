"""Fetching: everything between a handler's `ctx.fetch(request)` and the network."""

from __future__ import annotations

from webqueue.handlers.fetching.client import Fetcher

__all__ = ["Fetcher"]
