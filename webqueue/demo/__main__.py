"""`python -m webqueue.demo FOLDER`: serve the demo's sites until standard input is closed.

The first line of output is JSON: `{"port": 8801}`. FOLDER remembers port and time of opening, so that the sites are
the same after a restart.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
from pathlib import Path

from webqueue.demo.content import SITES
from webqueue.demo.servers import DemoServer

_USUAL_PORT = 8801


def main() -> None:
    """Open the servers, say where, and serve until the parent is gone."""
    # Ctrl-C goes to the whole terminal: the parent stops first, then closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    memory = Path(sys.argv[1]) / "sites.json"
    remembered = {"port": _USUAL_PORT, "opened_at": time.time()}
    with contextlib.suppress(OSError, ValueError):
        remembered |= json.loads(memory.read_text())
    try:
        servers, port = _open(int(remembered["port"]), remembered["opened_at"])
    except OSError as error:
        address = ", ".join(site.address for site in SITES)
        sys.exit(f"webqueue demo: cannot listen on {address}: {error.strerror}")
    memory.write_text(json.dumps({**remembered, "port": port}))
    for server in servers:
        threading.Thread(target=server.serve_forever, name=server.site.code, daemon=True).start()
    print(json.dumps({"port": port}), flush=True)  # noqa: T201 - the answer to the parent
    sys.stdin.read()


def _open(port: int, opened_at: float) -> tuple[list[DemoServer], int]:
    """Servers of all sites on one port: the remembered one, else any that is free."""
    for wanted in (port, 0):
        servers: list[DemoServer] = []
        try:
            for site in SITES:
                servers.append(DemoServer(site, wanted, opened_at))
                wanted = servers[0].server_port  # noqa: PLW2901 - the others take the first one's
        except OSError:
            for server in servers:
                server.server_close()
            if port == 0 or (not servers and wanted == 0):
                raise
        else:
            return servers, wanted
    raise OSError(None, "no port is free on all of these addresses")


main()
