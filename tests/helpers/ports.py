"""Ports for servers that stop and start again at the same place."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

# The ports that the system gives to whoever asks for any (Linux; elsewhere the range of IANA).
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST: Final = 10_000
_TRIES: Final = 100


def lasting_port() -> int:
    """A free port that nobody gets who asks for any: while its server is down it stays free.

    Where the system gives away nearly all of them, it is one of those.
    """
    given = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.exists() else 49_152
    for _ in range(_TRIES):
        wanted = _FIRST + secrets.randbelow(given - _FIRST) if given > _FIRST else 0
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", wanted))
            port: int = probe.getsockname()[1]
            return port
    raise AssertionError(f"No free port from {_FIRST} to {given} in {_TRIES} tries")
