"""Handlers: the protocol, the registry, and one module a kind."""

from __future__ import annotations
