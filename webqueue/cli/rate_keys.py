"""`rate-keys`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click
from sqlalchemy.orm import Session

from webqueue import jobs as verbs
from webqueue import queries
from webqueue.api import shapes
from webqueue.cli.opening import opened, person
from webqueue.cli.output import json_option, show_one, show_rows

_COLUMNS: Final = ("key", "state", "sites", "running_job", "queued", "next_start_at", "consecutive_blocks")


@click.group("rate-keys")
def rate_keys() -> None:
    """List, pause, resume rate keys, and end their cooldowns."""


@rate_keys.command("list")
@click.option("--state", type=click.Choice(["idle", "running", "cooling_down", "paused", "stuck"]))
@json_option
def list_(state: str | None, as_json: bool) -> None:
    """List every rate key."""
    with opened() as (database, _settings), database.reading() as session:
        rows = [shapes.rate_key(row) for row in _every_key(session, state)]
    show_rows(
        rows, _COLUMNS, as_json=as_json, empty="No rate key fits. Import sites with `webqueue import FILE`."
    )


def _every_key(session: Session, state: str | None) -> Iterator[queries.RateKeyRow]:
    cursor = None
    while True:
        page = queries.list_rate_keys(session, state=state, cursor=cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


@rate_keys.command()
@click.argument("key")
@json_option
def show(key: str, as_json: bool) -> None:
    """Show one rate key."""
    with opened() as (database, _settings), database.reading() as session:
        show_one(shapes.rate_key(queries.get_rate_key(session, key)), as_json=as_json)


@rate_keys.command()
@click.argument("key")
@click.option("--note", default="", help="Why; shown with the key.")
def pause(key: str, note: str) -> None:
    """Let KEY start nothing until it is resumed; what runs goes on."""
    with opened() as (database, _settings):
        database.run(lambda session: verbs.pause_key(session, key, by=person(), note=note))
        click.echo(f"{key} paused")


@rate_keys.command()
@click.argument("key")
def resume(key: str) -> None:
    """End the pause of KEY."""
    with opened() as (database, _settings):
        database.run(lambda session: verbs.resume_key(session, key, by=person()))
        click.echo(f"{key} resumed")


@rate_keys.command()
@click.argument("key")
@click.option("--yes", is_flag=True, help="Do not ask.")
def lift(key: str, yes: bool) -> None:
    """End the cooldown of KEY before its time."""
    if not yes:
        click.confirm(f"The server of {key} asked for this rest. End the cooldown all the same?", abort=True)
    with opened() as (database, _settings):
        database.run(lambda session: verbs.lift_cooldown(session, key, by=person()))
        click.echo(f"cooldown of {key} lifted")
