"""The command line. Errors are one line on standard error, with exit code 1; usage errors have 2."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

import click

import webqueue
from webqueue.errors import WebqueueError

_WRONG_USAGE: Final = 2
# The module of webqueue.cli that has a command, and its name there: a command loads what it needs, and no more.
_COMMANDS: Final = {
    "backup": "backups:backup",
    "check": "maintenance:check",
    "db": "maintenance:db",
    "demo": "demo:demo",
    "documents": "documents:documents",
    "export": "files:export",
    "import": "files:import_",
    "jobs": "jobs:jobs",
    "politeness": "politeness:politeness",
    "rag-export": "rag_export:rag_export",
    "rate-keys": "rate_keys:rate_keys",
    "restore": "backups:restore",
    "run": "jobs:run",
    "scheduler": "serving:scheduler",
    "serve": "serving:serve",
    "token": "people:token",
    "try": "jobs:try_",
    "user": "people:user",
    "web": "serving:web",
    "worker": "serving:worker",
}


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name; None when there is none."""
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(f"webqueue.cli.{module}"), name)
        return command


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(webqueue.__version__, prog_name="webqueue")
def cli() -> None:
    """Polite, durable crawling: one job at a time per rate key."""


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
