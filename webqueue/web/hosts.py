"""Host names that the admin answers to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from flask import Flask, Request


def init_app(app: Flask, trusted: Sequence[str], *, open_to_any: Collection[str] = ()) -> None:
    """Let `app` refuse requests that were sent to another host name.

    A page's links lead to the host that it was asked by, and a browser sends a site's cookies to whatever address that
    site's name has: a name that somebody made up must get no page (DNS rebinding, poisoned caches).

    Args:
        trusted: the names, without ports; none means any.
        open_to_any: paths that have neither links nor secrets. Probes ask for them by the address of the machine, which
            nobody can be expected to list.
    """

    class AdminRequest(Request):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.trusted_hosts = None if self.path in open_to_any else list(trusted) or None

    app.request_class = AdminRequest
