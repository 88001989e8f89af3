"""webqueue: polite, durable crawling, one job at a time per rate key."""

from __future__ import annotations

__version__ = "0.1.0"
