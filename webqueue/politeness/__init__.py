"""Politeness: which rate key a URL has, how long it cools down, how far apart its requests are (DESIGN §6)."""

from __future__ import annotations
