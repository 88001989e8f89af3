"""A crawler as govcrawler has them: it makes its own requests, and is told by callbacks when to stop and where to go on."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any


def crawl_target(
    target_code: str,
    *,
    stop_on_duplicate: bool,
    stop_check: Callable[[], bool],
    job_id: str,
    resume_from_page: int,
    progress_callback: Callable[[int], None],
    base_url: str,
    folder: str,
) -> dict[str, Any]:
    """Read list pages, and keep the titles of each in a file."""
    page = resume_from_page + 1
    items = 0
    while not stop_check():
        progress_callback(page)
        try:
            with urllib.request.urlopen(f"{base_url}news/index_{page}.html") as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            error.close()
            return {"status": "aborted", "reason": "cooldown", "last_completed_page": page - 1}
        titles = re.findall(r"<a [^>]*>(Report[^<]*)</a>", text)
        (Path(folder) / f"{target_code}-{page}.txt").write_text("\n".join(titles))
        items += len(titles)
        if 'class="next"' not in text:
            return {"status": "ok", "items": items, "job": job_id, "stop_on_duplicate": stop_on_duplicate}
        page += 1
    return {"status": "cancelled"}
