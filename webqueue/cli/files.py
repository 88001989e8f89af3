"""`import` and `export`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from webqueue import clock, config
from webqueue.cli.opening import opened, person
from webqueue.errors import InvalidInputError, WebqueueError

_SHOWN = 50


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Check the file and tell what would change.")
def import_(file: Path, dry_run: bool) -> None:
    """Apply FILE (YAML; - is standard input) as a whole, or not at all."""
    text = _read(file)
    with opened(creates=True) as (database, _settings):
        try:
            with database.reading() as session:
                prepared = config.prepare_import(session, text)
                if dry_run:
                    report = config.import_file(
                        session, prepared, by=person(), now=clock.now(session), dry_run=True
                    )
            if not dry_run:
                report = database.run(
                    lambda session: config.import_file(session, prepared, by=person(), now=clock.now(session))
                )
        except InvalidInputError as error:
            for problem in error.problems[:_SHOWN]:
                click.echo(f"{file}: {problem}", err=True)
            count = len(error.problems)
            more = f", the first {_SHOWN} are shown" if count > _SHOWN else ""
            raise WebqueueError(
                f"{file}: {count} problem{'' if count == 1 else 's'}{more}; nothing was changed."
            ) from None
    for change in report.changes:
        if change.what is not config.What.UNCHANGED:
            click.echo(str(change))
    click.echo(str(report))


@click.command()
def export() -> None:
    """Print everything that is configured, as a file that `import` takes."""
    with opened() as (database, _settings), database.reading() as session:
        click.echo(config.export_file(session), nl=False)


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise WebqueueError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise WebqueueError(f"{file} is not UTF-8 text: byte {error.start} cannot be read.") from error
