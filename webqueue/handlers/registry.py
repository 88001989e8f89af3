"""The handlers that are installed, found through the entry point group `webqueue.handlers` (DESIGN section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from threading import Lock
from typing import Any, Final, Protocol, runtime_checkable

from pydantic import ValidationError

from webqueue import logs
from webqueue.errors import InvalidInputError, NotBuiltError, Problem, WebqueueError
from webqueue.handlers.protocol import Handler, Parameters
from webqueue.handlers.refusals import pydantic_sentence
from webqueue.sentences import Sentence, said, say

log = logs.get(__name__)

GROUP: Final = "webqueue.handlers"


class BrokenHandlerError(WebqueueError):
    """A handler is installed, but cannot be used."""

    def __init__(self, kind: str, where: str, error: BaseException) -> None:
        super().__init__(
            say(
                "The handler %(kind)s (%(where)s) cannot be loaded: %(error)s. "
                "Repair or remove the package that it came with.",
                kind=repr(kind),
                where=where,
                error=f"{type(error).__name__}: {error}",
            )
        )
        self.kind = kind


@runtime_checkable
class ChoosesParameters(Protocol):
    """A handler whose parameters depend on the adapter of the target's site."""

    def parameters_for(self, adapter: str) -> type[Parameters]:
        """The parameters for that adapter; raises NotBuiltError or InvalidInputError for one that it has not."""


@runtime_checkable
class MayBeOff(Protocol):
    """A handler that an installation may have turned off."""

    def refusal(self) -> str | None:
        """Why its targets can be neither saved nor run at present; None when they can."""


class Registry:
    """Handlers by kind; each is loaded when it is first needed, and one that cannot be loaded spoils no other.

    Args:
        points: the entry points of the handlers.
    """

    def __init__(self, points: Iterable[EntryPoint]) -> None:
        self._points: dict[str, EntryPoint] = {}
        for point in points:
            if point.name in self._points and self._points[point.name].value != point.value:
                log.error(
                    "two handlers of one kind",
                    kind=point.name,
                    used=self._points[point.name].value,
                    ignored=point.value,
                )
                continue
            self._points[point.name] = point
        self._loaded: dict[str, Handler | BrokenHandlerError] = {}
        self._lock = Lock()

    def kinds(self) -> list[str]:
        """The kinds whose handlers can be used, sorted; broken ones are logged and left out."""
        return [kind for kind in sorted(self._points) if not isinstance(self._find(kind), BrokenHandlerError)]

    def get(self, kind: str) -> Handler:
        """The handler of a kind.

        Raises:
            BrokenHandlerError: it is installed, but cannot be loaded.
            InvalidInputError: there is no such handler; the error names those there are.
        """
        if kind in self._points:
            found = self._find(kind)
            if isinstance(found, BrokenHandlerError):
                raise found
            return found
        names = self._names()
        raise InvalidInputError.of(
            "handler",
            say("there is no handler %(kind)s; this version has: %(names)s", kind=repr(kind), names=names),
        )

    def check_params(self, kind: str, params: Mapping[str, Any], *, adapter: str) -> Parameters:
        """The parameters of a target, checked.

        Args:
            kind: of the target's handler.
            params: as they were written.
            adapter: of the target's site.

        Raises:
            InvalidInputError: it names every wrong field as `params.item_selector`, or `handler`, or `adapter`.
        """
        try:
            handler = self.get(kind)
        except BrokenHandlerError as error:
            raise InvalidInputError.of("handler", said(error)) from error
        if isinstance(handler, MayBeOff) and (refusal := handler.refusal()) is not None:
            raise InvalidInputError.of("handler", refusal)
        model = handler.parameters
        if isinstance(handler, ChoosesParameters):
            try:
                model = handler.parameters_for(adapter)
            except NotBuiltError as error:
                raise InvalidInputError.of("adapter", said(error)) from error
        try:
            return model.model_validate(params)
        except ValidationError as error:
            raise InvalidInputError(
                [_problem(detail) for detail in error.errors(include_url=False)]
            ) from None

    def _find(self, kind: str) -> Handler | BrokenHandlerError:
        with self._lock:
            if kind not in self._loaded:
                self._loaded[kind] = _load(self._points[kind])
            return self._loaded[kind]

    def _names(self) -> str:
        usable = self.kinds()
        broken = [f"{kind} (broken)" for kind in sorted(self._points) if kind not in usable]
        return ", ".join([*usable, *broken])


def _load(point: EntryPoint) -> Handler | BrokenHandlerError:
    try:
        return _checked(point.load()(), point.name)
    except Exception as error:
        # Whatever somebody's package raises while it is imported: the other handlers go on.
        log.exception("handler cannot be loaded", kind=point.name, entry_point=point.value)
        return BrokenHandlerError(point.name, point.value, error)


def _checked(handler: Any, kind: str) -> Handler:
    if handler.kind != kind:
        raise TypeError(f"it calls itself {handler.kind!r}")
    if not callable(handler.run) or not issubclass(handler.parameters, Parameters):
        raise TypeError("it has no run method, or its parameters are no Parameters")
    checked: Handler = handler
    return checked


def get(kind: str) -> Handler:
    """`Registry.get` of the installed handlers."""
    return installed().get(kind)


def kinds() -> list[str]:
    """`Registry.kinds` of the installed handlers."""
    return installed().kinds()


def check_params(kind: str, params: Mapping[str, Any], *, adapter: str) -> Parameters:
    """`Registry.check_params` of the installed handlers."""
    return installed().check_params(kind, params, adapter=adapter)


@cache
def installed() -> Registry:
    """The handlers that are installed beside this process."""
    return Registry(entry_points(group=GROUP))


def _problem(detail: Any) -> Problem:
    context = detail.get("ctx") or {}
    path = [str(part) for part in detail["loc"]] or [
        str(context[key]) for key in ("field",) if key in context
    ]
    message: str
    if detail["type"] == "missing":
        message = say("is required")
    elif detail["type"] == "extra_forbidden":
        message = say("is not known; check its spelling")
    elif isinstance(error := context.get("error"), Exception):
        message = said(error)
    elif isinstance(context.get("message"), Sentence):
        message = context["message"]
    else:
        message = pydantic_sentence(detail)
    return Problem(".".join(["params", *path]), message)
