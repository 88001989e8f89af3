"""`rag-export`."""

from __future__ import annotations

import click

from webqueue import clock
from webqueue.cli.opening import opened, person
from webqueue.cli.output import json_option, show_one
from webqueue.deliveries import switches


@click.group("rag-export")
def rag_export() -> None:
    """Switch the export for retrieval on and off, for all targets or one."""


@rag_export.command()
@json_option
def show(as_json: bool) -> None:
    """Show the switches, and where the export goes."""
    with opened() as (database, settings), database.reading() as session:
        found = switches.read(session)
    row = {
        "installation": _word(found.installation),
        "targets": {code: _word(on) for code, on in sorted(found.targets.items())},
        "to": settings.rag_export_url or f"{settings.instance_path}/exports",
    }
    show_one(row, as_json=as_json)


@rag_export.command()
@click.argument("target", required=False)
def on(target: str | None) -> None:
    """Export what jobs find: of TARGET, or of every target without a switch of its own."""
    _switch(target, on=True)


@rag_export.command()
@click.argument("target", required=False)
def off(target: str | None) -> None:
    """Export nothing of TARGET, or of any target without a switch of its own."""
    _switch(target, on=False)


@rag_export.command()
@click.argument("target")
def reset(target: str) -> None:
    """Let TARGET have no switch of its own."""
    _switch(target, on=None)


def _switch(target: str | None, *, on: bool | None) -> None:
    with opened() as (database, _settings):
        database.run(
            lambda session: switches.switch(session, target, on, by=person(), now=clock.now(session))
        )
    what = "every target without a switch of its own" if target is None else target
    click.echo(f"export of {what}: {'as the installation' if on is None else _word(on)}")


def _word(on: bool) -> str:
    return "on" if on else "off"
