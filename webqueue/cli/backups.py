"""`backup` and `restore`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from webqueue import backup as backups
from webqueue.cli.opening import load_settings, person, reached
from webqueue.errors import WebqueueError

_TOLD: Final = ("sites", "targets", "jobs", "documents")


@click.command()
@click.argument("target", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
def backup(target: Path) -> None:
    """Write a backup of this installation, which may run meanwhile.

    A FOLDER gets a file named by its time. The archive has secrets: keep it as you keep the instance folder.
    """
    settings = load_settings()
    with reached(settings) as database:
        try:
            made = backups.back_up(database, settings, target)
        except OSError as error:
            raise WebqueueError(
                f"The backup cannot be written: {error.strerror or error}. Nothing is left of it."
            ) from error
    click.echo(f"{made.path} ({made.bytes:,} bytes): {_counted(made.manifest.counts)}")


@click.command()
@click.argument("archive", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what this instance has.")
@click.option(
    "--paused/--not-paused",
    default=True,
    show_default=True,
    help="Pause everything, so that the copy and the original do not crawl at once.",
)
def restore(archive: Path, force: bool, paused: bool) -> None:
    """Restore a backup into this instance, in which nothing may run."""
    settings = load_settings()
    with reached(settings, creates=True) as database:
        try:
            done = backups.restore(database, settings, archive, force=force, paused=paused, by=person())
        except OSError as error:
            raise WebqueueError(f"The backup cannot be restored: {error.strerror or error}.") from error
    click.echo(f"restored the state of {done.manifest.made_at}: {_counted(done.manifest.counts)}")
    if done.recovered:
        click.echo(f"{done.recovered} jobs that ran then will go on from their checkpoints")
    if done.kept is not None:
        click.echo(f"the database that was here is kept as {done.kept}")
    if done.paused:
        click.echo(
            "Everything is paused, so that two copies do not crawl at once. Stop the original, then press Resume all."
        )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts.get(name, 0):,} {name}" for name in _TOLD)
