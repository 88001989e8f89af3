"""The command line. Errors are one line on standard error, with exit code 1; usage errors have 2."""

from __future__ import annotations

import sys

import click

import webqueue
from webqueue.cli import demo, documents, files, jobs, maintenance, people, politeness, rate_keys, serving
from webqueue.errors import WebqueueError


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
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        sys.exit("webqueue: aborted")
    except click.ClickException as error:
        sys.exit(f"webqueue: {error.format_message()}")
    except WebqueueError as error:
        sys.exit("webqueue: " + " ".join(str(error).split()))
    except BrokenPipeError:
        # The reader of a listing went away, as `webqueue jobs list | head` does.
        sys.stderr.close()
        sys.exit(1)
