"""`db upgrade` and `check`."""

from __future__ import annotations

from typing import Final

import click

from webqueue import disk, migrations, queries
from webqueue.cli.opening import load_settings, opened, reached
from webqueue.cli.output import json_option, show_one

NO_CONTACT: Final = "crawls name no contact, so who runs a server can only block them. Set WEBQUEUE_CONTACT to a mail address or URL."


@click.group()
def db() -> None:
    """Look after the database."""


@db.command()
def upgrade() -> None:
    """Bring the tables up to this version; one process at a time does it."""
    with reached(load_settings(), creates=True) as database:
        changed = migrations.upgrade(database)
    click.echo("upgraded" if changed else "up to date already")


@click.command()
@json_option
def check(as_json: bool) -> None:
    """Check settings and database, and tell what runs on it."""
    with opened() as (database, settings), database.reading() as session:
        status = queries.get_status(session)
        row = {
            "database": database.url.render_as_string(hide_password=True),
            "instance": str(settings.instance_path),
            "user_agent": settings.crawl_agent,
            "names_contact": settings.names_contact,
            **{name: value for name, value in vars(status).items() if not isinstance(value, tuple)},
            "processes": len(status.processes),
        }
    disks = disk.look(settings)
    row["disks"] = [one.words() for one in disks]
    show_one(row, as_json=as_json)
    for one in disks:
        if one.is_low:
            click.echo(
                f"webqueue: warning: the disk is low: {one.words()}. Crawls stop until there is room.",
                err=True,
            )
    if not settings.names_contact:
        click.echo(f"webqueue: warning: {NO_CONTACT}", err=True)
