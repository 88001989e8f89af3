"""The handler of `python` targets: a function of the operator's own (DESIGN section 8, last paragraph)."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from pydantic import Field, field_validator

from webqueue.handlers.json_safe import json_safe_dict
from webqueue.handlers.protocol import Context, Parameters
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed, Outcome
from webqueue.sentences import say, stored

_FUNCTION: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
# A function that takes these is one of govcrawler's kind, and gets that signature.
_SIGNS_OF_GOVCRAWLER: Final = frozenset({"stop_check", "job_id"})


class PythonParameters(Parameters):
    """What a `python` target says."""

    function: str = Field(
        description="package.module:name of the function; workers must be able to import it."
    )
    kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Keyword arguments that it is called with."
    )
    isolated: bool = Field(
        default=False,
        title="Isolated",
        description=(
            "Run it in a process of its own: slower to start, but it can be killed at its time limit and by "
            "Force stop, "
            "and a crash of it harms no other job."
        ),
    )

    @field_validator("function")
    @classmethod
    def _check_function(cls, value: str) -> str:
        # Only its form: the web process need not have the package that the workers have.
        value = value.strip()
        if not _FUNCTION.fullmatch(value):
            raise ValueError(
                say("%(value)s does not name a function; write it as package.module:name", value=repr(value))
            )
        return value


class PythonHandler:
    """Calls a function in the worker's thread, or in a process of its own (`isolated`), which is the worker's business.

    It is called as `fn(ctx, **kwargs)`; one that takes `stop_check` and `job_id` as `fn(target_code, *,
    stop_on_duplicate, stop_check, job_id, resume_from_page, progress_callback, **kwargs)`. Exceptions pass through.
    """

    kind: ClassVar[str] = "python"
    parameters: ClassVar[type[Parameters]] = PythonParameters

    def run(self, ctx: Context) -> Outcome:
        """Call the function; what it returned as an outcome."""
        params: PythonParameters = ctx.params
        try:
            function = _load(params.function)
        except _CannotLoadError as error:
            return Failed(stored("params.function: %(why)s", why=str(error)))
        if _SIGNS_OF_GOVCRAWLER.issubset(_parameter_names(function)):
            returned = _call_like_govcrawler(function, ctx, params.kwargs)
        else:
            returned = function(ctx, **params.kwargs)
        return outcome_of(returned)


def outcome_of(returned: Any) -> Outcome:
    """What a function's return value means.

    An outcome stays one. A dict is the result of a done job, unless its `status` is `cancelled`, or `aborted` with the
    reason `cooldown`, which is a block (DESIGN section 6). Anything else counts as `{"ok": true}`.
    """
    if isinstance(returned, Done | Failed | Blocked | Cancelled):
        return replace(returned, result=json_safe_dict(returned.result))
    if not isinstance(returned, Mapping):
        return Done({"ok": True})
    result = json_safe_dict(returned)
    status = result.get("status")
    if status == "cancelled":
        return Cancelled(result)
    reason = result.get("reason") or result.get("abort_reason")
    if status == "aborted" and reason == "cooldown":
        page = _page(result.get("checkpoint_page")) or _page(result.get("last_completed_page"))
        return Blocked("cooldown", None, Checkpoint(page) if page else None, result)
    return Done(result)


class _CannotLoadError(Exception):
    """The function that a target names is not there; the text says why."""


def _load(path: str) -> Callable[..., Any]:
    module_name, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that the named one imports is a surprise, and is raised as such.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise _CannotLoadError(
            stored(
                "this worker has no module %(name)s; install it where the workers run", name=repr(error.name)
            )
        ) from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise _CannotLoadError(
                stored("the module %(module)s has no %(name)s", module=repr(module_name), name=repr(name))
            ) from None
    if not callable(found):
        raise _CannotLoadError(
            stored("%(path)s is a %(type)s, not a function", path=repr(path), type=type(found).__name__)
        )
    function: Callable[..., Any] = found
    return function


def _parameter_names(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()  # some built-in ones tell no signature


def _call_like_govcrawler(function: Callable[..., Any], ctx: Context, kwargs: Mapping[str, Any]) -> Any:
    completed = ctx.checkpoint_at_start.page if ctx.target.track_checkpoint else 0
    resume_from_page = completed or max(ctx.job.from_page - 1, 0)

    def progress_callback(page: Any) -> None:
        """Page `page` is being worked on, so that the one before it is completed."""
        nonlocal completed
        number = _page(page)
        ctx.page(number)
        if ctx.target.track_checkpoint and number - 1 > completed:
            ctx.checkpoint(number - 1)
            completed = number - 1

    return function(
        ctx.target.code,
        stop_on_duplicate=not ctx.force,
        stop_check=ctx.should_stop,
        job_id=ctx.job.id,
        resume_from_page=resume_from_page,
        progress_callback=progress_callback,
        **kwargs,
    )


def _page(value: Any) -> int:
    """A page number from a function, which may be anything; 0 for what is none."""
    try:
        return max(int(value or 0), 0)
    except (TypeError, ValueError, OverflowError):
        return 0
