"""How `webqueue.jobs` does it, one module a group of verbs; everybody else imports `webqueue.jobs`."""

from __future__ import annotations
