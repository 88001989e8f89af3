"""The handler of `command` targets."""

from __future__ import annotations

from typing import ClassVar

from webqueue import settings
from webqueue.handlers.command.environment import environment_of
from webqueue.handlers.command.parameters import CommandParameters
from webqueue.handlers.command.watching import Watch
from webqueue.handlers.fetching.headers import user_agent_of
from webqueue.handlers.protocol import Context, Parameters
from webqueue.outcomes import Failed, Outcome
from webqueue.sentences import stored


class CommandHandler:
    """Runs a program, without a shell, and makes of its output and its end what a job needs."""

    kind: ClassVar[str] = "command"
    parameters: ClassVar[type[Parameters]] = CommandParameters

    def refusal(self) -> str | None:
        """Why commands are not run here; None where an administrator has turned them on."""
        return settings.commands_refusal()

    def run(self, ctx: Context) -> Outcome:
        """Run the program to its end. Whatever happens here, nothing of it is left running."""
        refusal = self.refusal()
        if refusal is not None:
            return Failed(refusal)
        params: CommandParameters = ctx.params
        agent = user_agent_of(ctx.site, settings.load().crawl_agent)
        try:
            watch = Watch(ctx, params, environment_of(ctx, params.env, agent))
        except OSError as error:
            return Failed(
                stored(
                    "The command %(program)s cannot be started: %(why)s",
                    program=repr(params.argv[0]),
                    why=str(error),
                )
            )
        with watch:
            return watch.until_end()
