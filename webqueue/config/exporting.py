"""`export`: everything that is configured, as a file that imports back to no change."""

from __future__ import annotations

from typing import Any

import yaml
from sqlalchemy.orm import Session

from webqueue.config.importing import stored_objects
from webqueue.config.masks import masked

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def export_file(session: Session, *, secrets: bool = False) -> str:
    """The configuration as YAML.

    Args:
        session: reads only.
        secrets: write secrets in clear. Else they are masked: an import here keeps what the masks stand for, an
            import elsewhere refuses them by line and field.
    """
    stored = stored_objects(session)

    def shown(data: dict[str, Any]) -> dict[str, Any]:
        return data if secrets else masked(data)

    data = {
        "rate_groups": list(stored.groups.values()),
        "sites": [shown(site) for site in stored.sites.values()],
        "targets": [shown(target) for target in stored.targets.values()],
    }
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
