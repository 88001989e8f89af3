"""The long chaos: `make chaos`. Sizes, seed and engines come from variables `CHAOS_…`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.acceptance.chaos.plan import Plan
from tests.acceptance.chaos.report import words
from tests.acceptance.chaos.run import make_room, run


def main() -> int:
    """Run it on each engine; the exit code is 1 when a promise was broken."""
    plan = Plan.long().from_environment()
    folder = Path(os.environ.get("CHAOS_FOLDER") or tempfile.mkdtemp(prefix="webqueue-chaos-"))
    engines = os.environ.get("CHAOS_ENGINES", "sqlite,postgresql").split(",")
    say(f"CHAOS_SEED={plan.seed}, everything is kept in {folder}")
    broken = False
    for engine in engines:
        verdict = run(plan, engine, make_room(folder / engine))
        say(words(verdict))
        broken |= bool(verdict.findings)
    return int(broken)


def say(text: str) -> None:
    """Print at once: whoever runs this for an hour wants to see how far it is."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
