"""What a file means on top of what is stored: every object whole and checked, or all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from webqueue.config.check import Checked, S, check_group, check_site, check_target
from webqueue.config.masks import unmasked
from webqueue.config.problems import found_problems, kind_of, unknown_field
from webqueue.config.specs import Defaults, File, RateGroupSpec, SiteSpec, TargetSpec
from webqueue.config.values import host_suffix
from webqueue.config.yaml_text import Found, Path, YamlDocument, read_yaml
from webqueue.errors import InvalidInputError, Problem

_SECTIONS: Final = ("defaults", "rate_groups", "sites", "targets")
# Mappings of fixed fields: what the file leaves out of them stays. Free ones (headers, kwargs, ...) are values.
_MERGED: Final = ("http", "retry", "params")

Data = dict[str, Any]
GroupName = tuple[str, str]


@dataclass(frozen=True)
class Stored:
    """What the database has, in the fields of the file; rate groups by adapter and host suffix."""

    groups: Mapping[GroupName, Data] = field(default_factory=dict)
    sites: Mapping[str, Data] = field(default_factory=dict)
    targets: Mapping[str, Data] = field(default_factory=dict)


def parse_file(text: str) -> File:
    """Check a file by itself, as if nothing were stored.

    Raises:
        InvalidInputError: with every problem, by line and field.
    """
    return plan_file(read_yaml(text), Stored())


def plan_file(document: YamlDocument, stored: Stored) -> File:
    """Work out what the objects of a file are: what it says, its defaults, what is stored, the defaults.

    Raises:
        InvalidInputError: with every problem, by line and field.
    """
    planner = _Planner(document, stored)
    file = planner.file()
    if planner.problems:
        raise InvalidInputError(planner.as_problems())
    return file


class _Planner:
    """Goes through a document section by section and gathers problems."""

    def __init__(self, document: YamlDocument, stored: Stored) -> None:
        self._document = document
        self._stored = stored
        self._names: dict[Path, str] = {}
        self.problems: list[Found] = []
        self._refused_by_yaml = {problem.path for problem in document.problems}
        self.problems += document.problems

    def file(self) -> File:
        sections = self._sections()
        defaults = self._defaults(sections.get("defaults"))
        groups = self._groups(self._items(sections, "rate_groups"))
        sites, site_data = self._sites(self._items(sections, "sites"))
        targets = self._targets(
            self._items(sections, "targets"), defaults, {**self._stored.sites, **site_data}
        )
        return File(rate_groups=groups, sites=sites, targets=targets)

    def as_problems(self) -> list[Problem]:
        """The problems in the order of the file; what YAML refused is not refused once more for its type."""
        found = {
            (self._document.line_of(problem.path), self._shown(problem.path), problem.message)
            for problem in self.problems
            if problem in self._document.problems or not self._is_below_refused(problem.path)
        }
        return [Problem(name, message, line) for line, name, message in sorted(found)]

    def _sections(self) -> Data:
        data = self._document.data
        if data is None:
            return {}
        if not isinstance(data, dict):
            self._add((), f"must be a mapping with {', '.join(_SECTIONS)}, not {kind_of(data)}")
            return {}
        for name in data:
            if name not in _SECTIONS:
                self._add((name,), unknown_field(name, list(_SECTIONS)))
        return data

    def _defaults(self, data: Any) -> Data:
        if data is None:
            return {}
        if not isinstance(data, dict):
            self._add(("defaults",), f"must be a mapping, not {kind_of(data)}")
            return {}
        try:
            Defaults.model_validate(data)
        except ValidationError as error:
            refused = [
                Found(("defaults", *problem.path), problem.message)
                for problem in found_problems(error, Defaults)
            ]
            self.problems += refused
            # Told once, and not again at every target.
            wrong = {problem.path[1] for problem in refused}
            return {name: value for name, value in data.items() if name not in wrong}
        return data

    def _items(self, sections: Data, name: str) -> list[tuple[Path, Data]]:
        items = sections.get(name)
        if items is None:
            return []
        if not isinstance(items, list):
            self._add((name,), f"must be a list, not {kind_of(items)}")
            return []
        found: list[tuple[Path, Data]] = []
        for number, item in enumerate(items):
            path: Path = (name, number)
            if isinstance(item, dict):
                if isinstance(code := item.get("code"), str):
                    self._names[path] = code
                found.append((path, item))
            else:
                self._add(path, f"must be a mapping, not {kind_of(item)}")
        return found

    def _groups(self, items: list[tuple[Path, Data]]) -> list[RateGroupSpec]:
        specs: list[RateGroupSpec] = []
        first: dict[GroupName, Path] = {}
        for path, data in items:
            spec = self._taken(path, check_group({**self._stored.groups.get(_group_name(data), {}), **data}))
            if spec is not None and self._is_first(
                path, "host_suffix", (spec.adapter, spec.host_suffix), first
            ):
                specs.append(spec)
        return specs

    def _sites(self, items: list[tuple[Path, Data]]) -> tuple[list[SiteSpec], dict[str, Data]]:
        specs: list[SiteSpec] = []
        whole: dict[str, Data] = {}
        first: dict[str, Path] = {}
        for path, data in items:
            code = _code(data)
            stored = self._stored.sites.get(code, {})
            merged = unmasked(_merged(stored, data), stored)
            spec = self._taken(path, check_site(merged))
            if code and not self._is_first(path, "code", code, first):
                continue
            whole[code] = merged
            if spec is not None:
                specs.append(spec)
        return specs, whole

    def _targets(
        self, items: list[tuple[Path, Data]], defaults: Data, sites: Mapping[str, Data]
    ) -> list[TargetSpec]:
        specs: list[TargetSpec] = []
        first: dict[str, Path] = {}
        for path, data in items:
            code = _code(data)
            stored = self._stored.targets.get(code, {})
            merged = unmasked(_merged(stored, data, defaults), stored)
            site = merged.get("site")
            spec = self._taken(path, check_target(merged, sites.get(site) if isinstance(site, str) else None))
            if code and not self._is_first(path, "code", code, first):
                continue
            if spec is not None:
                specs.append(spec)
        return specs

    def _taken(self, path: Path, checked: Checked[S]) -> S | None:
        self.problems += [Found((*path, *problem.path), problem.message) for problem in checked.problems]
        return checked.spec

    def _is_first(self, path: Path, name: str, identity: Any, first: dict[Any, Path]) -> bool:
        if identity not in first:
            first[identity] = path
            return True
        line = self._document.line_of((*first[identity], name))
        shown = identity if isinstance(identity, str) else " ".join(identity)
        self._add((*path, name), f"{shown!r} stands twice (first on line {line})")
        return False

    def _add(self, path: Path, message: str) -> None:
        self.problems.append(Found(path, message))

    def _is_below_refused(self, path: Path) -> bool:
        return any(path[:length] in self._refused_by_yaml for length in range(1, len(path) + 1))

    def _shown(self, path: Path) -> str:
        """`targets[example_news].params.item_selector`; by number where there is no code."""
        if (path and path[0] == "rate_groups") or path[:2] not in self._names:
            return dotted(path) or "file"
        return f"{path[0]}[{self._names[path[:2]]}]{dotted(('', *path[2:]))}"


def dotted(path: Iterable[str | int]) -> str:
    """`params.kwargs.pages[0]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    joined = "".join(parts)
    return joined.removeprefix(".")


def _code(data: Data) -> str:
    code = data.get("code")
    return code if isinstance(code, str) else ""


def _group_name(data: Data) -> GroupName:
    suffix = data.get("host_suffix")
    try:
        suffix = host_suffix(suffix) if isinstance(suffix, str) else ""
    except ValueError:
        suffix = ""
    return str(data.get("adapter")), suffix


def _merged(stored: Data, data: Data, defaults: Data | None = None) -> Data:
    """What the file says, else its defaults, else what is stored.

    Parameters of another handler, or of another kind of site, mean something else: they do not stay.
    """
    stays = dict(stored)
    said = {**(defaults or {}), **data}
    if stays.get("handler", said.get("handler")) != said.get("handler", stays.get("handler")):
        stays.pop("params", None)
    result = {**stays, **said}
    for name in _MERGED:
        layers = [layer[name] for layer in (stays, defaults or {}, data) if name in layer]
        if len(layers) > 1 and all(isinstance(layer, dict) for layer in layers):
            result[name] = {key: value for layer in layers for key, value in layer.items()}
    return result
