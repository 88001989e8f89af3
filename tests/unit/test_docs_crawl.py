"""The reference of crawl targets names every parameter of every adapter, with its default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from webqueue.handlers import registry
from webqueue.handlers.crawl.adapters import ADAPTERS
from webqueue.handlers.crawl.parameters import ArticleParameters

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
CODE = re.compile(r"`([^`]+)`")


def documented(section: str) -> dict[str, str]:
    """The parameters of a section's tables, with what stands in the column of their default."""
    text = (REFERENCE / "crawl.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found: dict[str, str] = {}
    for line in part.splitlines():
        if line.startswith("| `"):
            names, default = line.split("|")[1:3]
            parameters = CODE.findall(names)
            defaults = [text.strip().strip("`") for text in default.split(",")]
            defaults = defaults if len(defaults) == len(parameters) else [default.strip()] * len(parameters)
            found |= dict(zip(parameters, defaults, strict=True))
    return found


def as_written(default: object) -> str:
    if default is None:
        return "null"
    if default == ():
        return "[]"
    return str(default).lower() if isinstance(default, bool) else str(default)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_parameter_with_its_default(adapter: str) -> None:
    fields = {
        name: field
        for name, field in ADAPTERS[adapter].parameters.model_fields.items()
        if name not in ArticleParameters.model_fields
    }
    said = documented(adapter)
    assert set(said) == set(fields)
    for name, field in fields.items():
        expected = (
            {"", "null"} if field.is_required() or field.default is None else {as_written(field.default)}
        )
        assert said[name] in expected, name


def test_the_parameters_of_every_adapter() -> None:
    said = documented("Articles")
    assert said == {name: as_written(field.default) for name, field in ArticleParameters.model_fields.items()}


def test_the_least_of_the_import_file_is_enough() -> None:
    text = (REFERENCE / "import-file.md").read_text(encoding="utf-8")
    block = text.partition("The least that `params`")[2].partition("```yaml\n")[2].partition("```")[0]
    examples = yaml.safe_load(block)
    assert list(examples) == list(ADAPTERS)
    for adapter, params in examples.items():
        registry.check_params("crawl", params, adapter=adapter)
