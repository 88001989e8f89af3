"""The command line. Errors are one line on standard error, with exit code 1; usage errors have 2."""

from __future__ import annotations

import sys
from typing import Final

import click

import webqueue
from webqueue.cli import demo, documents, files, jobs, maintenance, people, politeness, rate_keys, serving
from webqueue.errors import WebqueueError

_WRONG_USAGE: Final = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(webqueue.__version__, prog_name="webqueue")
def cli() -> None:
    """Polite, durable crawling: one job at a time per rate key."""


for command in (
    *serving.COMMANDS,
    demo.demo,
    *files.COMMANDS,
    *jobs.COMMANDS,
    rate_keys.rate_keys,
    documents.documents,
    politeness.politeness,
    people.user,
    people.token,
    *maintenance.COMMANDS,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line, and turn errors into one line."""
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(_WRONG_USAGE)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "webqueue"
        _say(f"{error.format_message()} See `{command} --help`.")
        sys.exit(_WRONG_USAGE)
    except click.Abort:
        _say("aborted")
        sys.exit(1)
    except click.ClickException as error:
        _say(error.format_message())
        sys.exit(1)
    except WebqueueError as error:
        _say(str(error))
        sys.exit(1)
    except BrokenPipeError:
        # The reader of a listing went away, as `webqueue jobs list | head` does.
        sys.stderr.close()
        sys.exit(1)


def _say(message: str) -> None:
    click.echo("webqueue: " + " ".join(message.split()), err=True)
