"""`command` targets: a program of the operator's, in a process group of its own (DESIGN section 8)."""

from __future__ import annotations

from webqueue.handlers.command.handler import CommandHandler

__all__ = ["CommandHandler"]
