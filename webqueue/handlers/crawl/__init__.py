"""Crawls of sites: list pages, articles, and what is stored of them (DESIGN section 6)."""

from __future__ import annotations

from webqueue.handlers.crawl.handler import CrawlHandler

__all__ = ["CrawlHandler"]
