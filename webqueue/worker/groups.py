"""The process groups of runs, written down beside the lock of their worker (DESIGN section 5, "orphan").

What a run has started dies with its worker: the guardian of each group sees to that. Should it have been killed as well,
whoever finds the worker dead finds the group here, and kills it before the job is given to anybody else.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from webqueue import logs

log = logs.get(__name__)

_SUFFIX: Final = ".group"
_GONE_WITHIN_SEC: Final = 2.0


class GroupRecord:
    """The note that a group runs for a worker; `forget` removes it when the group has ended."""

    def __init__(self, folder: Path, worker_id: str, group: int) -> None:
        self._path = folder / f"{worker_id}.{group}{_SUFFIX}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.write_text(json.dumps({"group": group, "started": _started(group), **_machine()}))

    def forget(self) -> None:
        """Remove the note."""
        self._path.unlink(missing_ok=True)


def kill_groups_of(folder: Path, worker_id: str) -> None:
    """Kill the groups that a dead worker has left, and wait until they are gone."""
    for path in folder.glob("*" + _SUFFIX):
        if not path.name.startswith(f"{worker_id}."):
            continue
        try:
            noted = json.loads(path.read_text())
        except FileNotFoundError:
            continue  # another process was faster
        except ValueError:
            noted = {}  # the worker died while it wrote: nothing of the handler had been started
        if _is_the_same(noted):
            _kill(int(noted["group"]), worker_id)
        path.unlink(missing_ok=True)


def _is_the_same(noted: dict[str, object]) -> bool:
    """Whether the number still means the group that was noted, and not one after a restart or in another container."""
    machine = _machine()
    if not machine or any(noted.get(name) != value for name, value in machine.items()):
        return False
    # Without its leader the number stays taken as long as anybody is in the group.
    return _started(int(str(noted["group"]))) in {None, noted["started"]}


def _kill(group: int, worker_id: str) -> None:
    give_up_at = time.monotonic() + _GONE_WITHIN_SEC
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
        log.warning("processes of a dead worker were killed", worker=worker_id, group=group)
        while time.monotonic() < give_up_at and not _only_zombies(group):
            os.killpg(group, 0)
            time.sleep(0.005)


def _only_zombies(group: int) -> bool:
    """Whether what is left of the group only waits to be collected."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _parent, found = (
                stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[:3]
            )
            if int(found) == group and state not in "ZX":
                return False
    return True


def _started(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; None: there is none, or no Linux."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def _machine() -> dict[str, str]:
    """Where numbers of processes mean the same: one start of one machine, one container. Empty where nobody can tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return {"boot": boot, "space": str(Path("/proc/self/ns/pid").readlink())}
    except OSError:
        return {}
