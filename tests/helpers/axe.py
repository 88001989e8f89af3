"""axe-core, which finds what keeps people with disabilities out."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

GRAVE = ("serious", "critical")


def grave_violations(page: Page, *rules: str) -> list[str]:
    """The serious and critical violations on a page, one line each: rule, element, what is wrong.

    Args:
        page: that is open.
        rules: of axe-core, by default all of them.

    The script is evaluated by the browser's debugger, which a content security policy does not hold back.
    """
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(_source())
    chosen = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found: dict[str, Any] = page.evaluate(
        "(chosen) => axe.run(document, {resultTypes: ['violations'], preload: false, ...chosen})", chosen
    )
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]


@cache
def _source() -> str:
    return (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
