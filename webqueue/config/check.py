"""A whole site or target checked: every field by itself, and what only shows between fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from webqueue import cron
from webqueue.config.masks import masks_left
from webqueue.config.problems import found_problems
from webqueue.config.specs import BUILT_ADAPTERS, RateGroupSpec, SiteSpec, Spec, TargetSpec
from webqueue.config.values import is_code
from webqueue.config.yaml_text import Found, Path
from webqueue.errors import InvalidInputError, NotBuiltError, NotFoundError
from webqueue.handlers.registry import check_params
from webqueue.sentences import said, say

S = TypeVar("S", bound=Spec)

# PostgreSQL keeps JSON numbers as exact decimals: larger ones would come back as other numbers than were written.
_LARGEST_NUMBER: Final = 10**15
_FIELD_PART = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True)
class Checked(Generic[S]):
    """What a check came to: the spec when nothing was wrong, else the problems."""

    spec: S | None
    problems: list[Found] = field(default_factory=list)


def check_group(data: Mapping[str, Any]) -> Checked[RateGroupSpec]:
    """Check a rate group."""
    return _validated(RateGroupSpec, data)


def check_site(data: Mapping[str, Any]) -> Checked[SiteSpec]:
    """Check a site; a name left out is the code."""
    if "name" not in data:
        code = data.get("code")
        data = {**data, "name": code if isinstance(code, str) and is_code(code) else "-"}
    return _with(_validated(SiteSpec, data), _masks(data))


def check_target(data: Mapping[str, Any], site: Mapping[str, Any] | None) -> Checked[TargetSpec]:
    """Check a target.

    Args:
        data: the whole target in the fields of the file.
        site: its site in the same form; None when there is no such site, which is a problem of the target too.
    """
    checked = _validated(TargetSpec, data)
    refused = {problem.path[0] for problem in checked.problems if problem.path}
    more = _masks(data)
    if site is None and isinstance(data.get("site"), str) and "site" not in refused:
        more.append(
            Found(
                ("site",),
                say(
                    "there is no site %(data)s; describe it first, or in the same file",
                    data=repr(data["site"]),
                ),
            )
        )
    more += _schedule_problems(data, site or {}, refused)
    if not refused & {"handler", "params"}:
        more += _params_problems(data, site or {})
    spec = checked.spec
    if spec is not None and spec.start_at and spec.end_at and spec.end_at <= spec.start_at:
        more.append(Found(("end_at",), say("must be later than start_at")))
    return _with(checked, more)


def _validated(model: type[S], data: Mapping[str, Any]) -> Checked[S]:
    try:
        return Checked(model.model_validate(dict(data)))
    except ValidationError as error:
        return Checked(None, found_problems(error, model))


def _with(checked: Checked[S], more: list[Found]) -> Checked[S]:
    return Checked(None, checked.problems + more) if more else checked


def _masks(data: Mapping[str, Any]) -> list[Found]:
    message = say(
        "is masked, and nothing is stored that the mask stands for, or only what was meant for another server; "
        "write the value itself"
    )
    return [Found(path, message) for path in masks_left(data)]


def _schedule_problems(
    data: Mapping[str, Any], site: Mapping[str, Any], refused: set[str | int]
) -> list[Found]:
    schedule = data.get("schedule")
    if not isinstance(schedule, str) or "schedule" in refused:
        return []
    zone = data.get("timezone") or site.get("timezone") or "UTC"
    try:
        cron.parse(schedule, zone if isinstance(zone, str) else "UTC")
    except InvalidInputError as error:
        # A wrong timezone is the timezone's problem, told by its own field.
        return [
            Found(("schedule",), problem.message) for problem in error.problems if problem.field == "schedule"
        ]
    return []


def _params_problems(data: Mapping[str, Any], site: Mapping[str, Any]) -> list[Found]:
    params = data.get("params", {})
    large = [
        Found(("params", *path), say("is too large a number; write it as text"))
        for path in _large_numbers(params)
    ]
    if large:
        return large
    adapter = site.get("adapter", "list")
    if adapter not in BUILT_ADAPTERS:
        adapter = BUILT_ADAPTERS[0]  # told at the site; the parameters are still checked
    try:
        check_params(str(data.get("handler")), params, adapter=adapter)
    except InvalidInputError as error:
        return [Found(_params_path(problem.field), problem.message) for problem in error.problems]
    except (NotBuiltError, NotFoundError) as error:
        return [Found(("handler",), said(error))]
    return []


def _params_path(name: str) -> Path:
    """`item_selector` or `params.kwargs.list[0]`, as the handler names it, as a path of the target."""
    if name in {"handler", "adapter"}:
        return ("handler",)
    parts = tuple(int(part) if part.isdecimal() else part for part in _FIELD_PART.findall(name))
    return parts if parts[:1] == ("params",) else ("params", *parts)


def _large_numbers(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _large_numbers(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _large_numbers(item, (*path, number))
    elif isinstance(value, int | float) and not -_LARGEST_NUMBER < value < _LARGEST_NUMBER:
        yield path
