"""`politeness`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from webqueue import clock
from webqueue.cli.opening import opened
from webqueue.cli.output import json_option, show_rows
from webqueue.politeness.report import KeyReport, politeness_report

_COLUMNS: Final = (
    "key", "requests", "jobs", "smallest_gap_sec", "most_parallel", "blocks", "longest_cooldown_sec", "obeyed",
)  # fmt: skip


@click.command()
@click.option("--month", metavar="YYYY-MM", help="Of UTC; the present one when left out.")
@click.option("--key", help="Only this rate key.")
@json_option
def politeness(month: str | None, key: str | None, as_json: bool) -> None:
    """Prove how polite a month's visits were: smallest gap, requests at once, blocks, and what followed them."""
    with opened() as (database, settings), database.reading() as session:
        month = month or f"{clock.now(session):%Y-%m}"
        reports = politeness_report(session, settings.instance_path, month, key=key)
    rows = [_json(report) for report in reports] if as_json else [_row(report) for report in reports]
    show_rows(
        rows,
        _COLUMNS,
        as_json=as_json,
        empty=f"No request was made in {month}, as far as this machine knows.",
    )


def _row(report: KeyReport) -> dict[str, Any]:
    return {
        "key": report.key,
        "requests": report.requests,
        "jobs": report.jobs,
        "smallest_gap_sec": None if report.smallest_gap_sec is None else round(report.smallest_gap_sec, 3),
        "most_parallel": report.most_parallel,
        "blocks": len(report.blocks),
        "longest_cooldown_sec": max((block.seconds for block in report.blocks), default=None),
        "obeyed": all(block.obeyed for block in report.blocks),
    }


def _json(report: KeyReport) -> dict[str, Any]:
    data = asdict(report)
    times = {"first_at", "last_at"}
    blocks = [
        {**asdict(block), **_told(asdict(block), {"at", "until", "next_request_at"})}
        for block in report.blocks
    ]
    return {
        **data,
        **_told(data, times),
        "blocks": blocks,
        "obeyed": all(block.obeyed for block in report.blocks),
    }


def _told(data: dict[str, Any], times: set[str]) -> dict[str, Any]:
    return {
        name: None if data[name] is None else data[name].isoformat().replace("+00:00", "Z") for name in times
    }
