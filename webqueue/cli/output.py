"""Listings as aligned text for people, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

WIDEST = 60
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def show_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool, empty: str
) -> None:
    """Print `rows`: all of them as a JSON array, or `columns` as a table; `empty` says what to do without any."""
    if as_json:
        click.echo(json.dumps(list(rows), ensure_ascii=False, indent=2, default=str))
        return
    if not rows:
        click.echo(empty, err=True)
        return
    cells = [[column.upper().replace("_", " ") for column in columns]]
    cells += [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def show_one(row: Mapping[str, Any], *, as_json: bool) -> None:
    """Print every field of one thing, a line each, or as a JSON object."""
    if as_json:
        click.echo(json.dumps(row, ensure_ascii=False, indent=2, default=str))
        return
    width = max(len(name) for name in row)
    for name, value in row.items():
        text = (
            json.dumps(value, ensure_ascii=False, default=str)
            if isinstance(value, dict | list)
            else plain(value)
        )
        click.echo(f"{name.ljust(width)}  {text}")


def _cell(value: Any) -> str:
    text = plain(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def plain(value: Any) -> str:
    """A value as text on one line; control characters of crawled texts must not reach the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value) or "-"
    if isinstance(value, dict):
        value = value.get("id") or value.get("message") or json.dumps(value, default=str)
    return "".join(character if character.isprintable() else " " for character in str(value))
