"""`export`: everything that is configured, as a file that imports back to no change."""

from __future__ import annotations

from typing import Any

import yaml
from sqlalchemy import select
from sqlalchemy.orm import Session

from webqueue.config.importing import stored_objects
from webqueue.config.masks import masked
from webqueue.config.rows import plain
from webqueue.models import Target

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def export_file(session: Session, *, secrets: bool = False) -> str:
    """The configuration as YAML.

    Args:
        session: reads only.
        secrets: write secrets in clear. Else they are masked: an import here keeps what the masks stand for, an
            import elsewhere refuses them by line and field.
    """
    stored = stored_objects(session)
    learned = {
        code: plain(seconds)
        for code, seconds in session.execute(
            select(Target.code, Target.learned_interval_sec).where(Target.learned_interval_sec.is_not(None))
        )
    }

    def shown(data: dict[str, Any]) -> dict[str, Any]:
        return data if secrets else masked(data)

    data = {
        "rate_groups": list(stored.groups.values()),
        "sites": [shown(site) for site in stored.sites.values()],
        "targets": [_with_learned(shown(target), learned) for target in stored.targets.values()],
    }
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def _with_learned(target: dict[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
    """The target, with what it has learned right behind its own interval: baseline and present value."""
    if target["code"] not in learned:
        return target
    shown: dict[str, Any] = {}
    for name, value in target.items():
        shown[name] = value
        if name == "interval_sec":
            shown["learned_interval_sec"] = learned[target["code"]]
    return shown
