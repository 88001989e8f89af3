"""The parameters of `command` targets, checked when they are saved."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from webqueue.handlers.protocol import Parameters
from webqueue.sentences import say

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Told by webqueue itself; a target that could set them could pass for another job.
RESERVED: Final = ("WEBQUEUE_", "TASK_QUEUE_")
_LONGEST_ARGUMENT: Final = 8_000


def _argument(value: str) -> str:
    if "\0" in value or len(value.splitlines()) > 1:
        raise ValueError(say("must be one line; put a longer script into a file, and run that"))
    if not value or value != value.strip():
        raise ValueError(say("must not be empty, nor begin or end with a space"))
    return value


def _variable(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(say("%(name)s is no name of an environment variable", name=repr(name)))
    if name.startswith(RESERVED):
        raise ValueError(say("%(name)s is set by webqueue; choose another name", name=repr(name)))
    return name


def _value(value: str) -> str:
    if "\0" in value:
        raise ValueError(say("must not contain the character NUL"))
    return value


def _folder(value: str) -> str:
    if "\0" in value or not Path(value).is_absolute():
        raise ValueError(say("%(value)s is no absolute path, such as /srv/crawler", value=repr(value)))
    return value


def _nothing_for_blank(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


Argument = Annotated[str, Field(max_length=_LONGEST_ARGUMENT), AfterValidator(_argument)]
Variable = Annotated[str, AfterValidator(_variable)]
Value = Annotated[str, AfterValidator(_value)]
Folder = Annotated[str, AfterValidator(_folder)]


class CommandParameters(Parameters):
    """What a `command` target says."""

    argv: tuple[Argument, ...] = Field(
        min_length=1,
        max_length=500,
        title="Command",
        description="The program and its arguments. No shell reads them: no quotes, no * and no |.",
    )
    env: dict[Variable, Value] = Field(
        default_factory=dict,
        title="Environment",
        description='Variables that the program gets besides those of webqueue, such as {"API_TOKEN": "…"}. '
        "Keep secrets here, not in the command.",
    )
    cwd: Annotated[Folder | None, BeforeValidator(_nothing_for_blank)] = Field(
        None,
        title="Folder",
        description="Where the program starts, as an absolute path; else where the worker was started.",
    )
    grace_sec: float = Field(
        5.0,
        ge=0,
        le=300,
        allow_inf_nan=False,
        title="Time to stop in (s)",
        description="Between the request to stop (SIGTERM) and the end by force (SIGKILL).",
    )
