"""The environment of a command: what a login would give, and the facts of the job."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from webqueue.handlers.protocol import Context
from webqueue.queries.numbers import written

# The rest of the worker's environment stays with the worker: the database's password and whatever else an
# administrator gave the service is not the business of a program that reads strangers' pages.
_TAKEN: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
)  # fmt: skip


def environment_of(ctx: Context, env: Mapping[str, str], user_agent: str) -> dict[str, str]:
    """All variables of the command of a job.

    Args:
        ctx: of the job.
        env: the target's own; they win over what is taken from the worker.
        user_agent: that of the crawls on this site.
    """
    taken = {name: value for name, value in os.environ.items() if name in _TAKEN or name.startswith("LC_")}
    # What is installed beside webqueue is found, also when its virtual environment was not activated.
    beside = str(Path(sys.executable).parent)
    taken["PATH"] = os.pathsep.join([taken.get("PATH") or os.defpath, beside])
    # Programs in Python would keep their lines back until a few kilobytes are full.
    return {"PYTHONUNBUFFERED": "1", **taken, **env, **_facts(ctx, user_agent)}


def page_at_start(ctx: Context) -> int:
    """The last page that counts as completed when the command starts."""
    completed = ctx.checkpoint_at_start.page if ctx.target.track_checkpoint else 0
    return completed or max(ctx.job.from_page - 1, 0)


def _facts(ctx: Context, user_agent: str) -> dict[str, str]:
    data: Mapping[str, Any] = ctx.checkpoint_at_start.data if ctx.target.track_checkpoint else {}
    page = page_at_start(ctx)
    return {
        "WEBQUEUE_JOB": ctx.job.id,
        "WEBQUEUE_JOB_SEQ": str(ctx.job.seq),
        "WEBQUEUE_ROOT_JOB": ctx.job.root_id,
        "WEBQUEUE_SOURCE": ctx.job.source,
        "WEBQUEUE_FORCE": "1" if ctx.force else "0",
        "WEBQUEUE_TARGET": ctx.target.code,
        "WEBQUEUE_SITE": ctx.site.code,
        "WEBQUEUE_BASE_URL": ctx.site.base_url,
        "WEBQUEUE_RATE_KEY": ctx.job.rate_key,
        "WEBQUEUE_INTERVAL_SEC": written(ctx.target.interval_sec),
        "WEBQUEUE_USER_AGENT": user_agent,
        "WEBQUEUE_CHECKPOINT": json.dumps({**data, "page": page}, ensure_ascii=False),
        "WEBQUEUE_CHECKPOINT_PAGE": str(page),
    }
