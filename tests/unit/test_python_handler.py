"""The handler of `python` targets; its functions live in this module."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.errors import InvalidInputError
from webqueue.handlers import registry
from webqueue.handlers.json_safe import json_safe
from webqueue.handlers.protocol import Context, JobView, SiteView, TargetView
from webqueue.handlers.python import PythonParameters, outcome_of
from webqueue.outcomes import Blocked, Cancelled, Checkpoint, Done, Failed, Outcome


class Told:
    """The part of a context that a function and the handler use; it keeps what it was told."""

    def __init__(
        self, *, force: bool = False, from_page: int = 0, completed: int = 0, track_checkpoint: bool = True
    ) -> None:
        self.job = JobView("0123456789ab", 1, "0123456789ab", "k", "manual", force, from_page, 0, 0)
        self.site = SiteView("site", "http://example.org/", "list", "UTC", "k")
        self.target = TargetView("nightly", "python", {}, 10.0, track_checkpoint)
        self.force = force
        self.checkpoint_at_start = Checkpoint(completed)
        self.params: Any = None
        self.stop = False
        self.pages: list[int] = []
        self.checkpoints: list[int] = []

    def should_stop(self) -> bool:
        return self.stop

    def page(self, number: int) -> None:
        self.pages.append(number)

    def checkpoint(self, page: int, data: Mapping[str, Any] | None = None) -> None:
        assert data is None
        self.checkpoints.append(page)


def run(function: str, told: Told | None = None, **kwargs: Any) -> Outcome:
    context: Any = told or Told()
    context.params = registry.check_params("python", {"function": function, "kwargs": kwargs}, adapter="list")
    return registry.get("python").run(context)


def here(function: Callable[..., Any]) -> str:
    return f"{__name__}:{function.__qualname__}"


def greet(ctx: Context, *, name: str = "nobody") -> dict[str, Any]:
    return {"target": ctx.target.code, "name": name, "at": datetime(2026, 1, 2, tzinfo=UTC)}


def nothing(ctx: Context) -> None:
    assert ctx.job.id == "0123456789ab"


def a_list(ctx: Context) -> list[int]:
    return [1, 2]


def explode(ctx: Context) -> None:
    raise ZeroDivisionError("somewhere deep")


calls: list[dict[str, Any]] = []


def crawl_target(
    target_code: str,
    *,
    stop_on_duplicate: bool,
    stop_check: Callable[[], bool],
    job_id: str,
    resume_from_page: int,
    progress_callback: Callable[[Any], None],
    extra: str = "",
) -> dict[str, Any]:
    calls.append(
        {
            "target_code": target_code,
            "stop_on_duplicate": stop_on_duplicate,
            "stop": stop_check(),
            "job_id": job_id,
            "resume_from_page": resume_from_page,
            "extra": extra,
        }
    )
    for page in (
        resume_from_page + 1,
        resume_from_page + 2,
        resume_from_page + 2,
        resume_from_page + 3,
        None,
    ):
        progress_callback(page)
    return {"new": 3}


class Holder:
    """Functions may be attributes of classes."""

    @staticmethod
    def method(ctx: Context) -> dict[str, Any]:
        return {"from": "method"}


class TestCalling:
    def test_with_the_context_and_keyword_arguments(self) -> None:
        assert run(here(greet), name="Ann") == Done(
            {"target": "nightly", "name": "Ann", "at": "2026-01-02T00:00:00+00:00"}
        )

    @pytest.mark.parametrize("function", [nothing, a_list])
    def test_what_is_no_dict_counts_as_ok(self, function: Callable[..., Any]) -> None:
        assert run(here(function)) == Done({"ok": True})

    def test_an_attribute_of_a_class(self) -> None:
        assert run(here(Holder.method)) == Done({"from": "method"})

    def test_exceptions_pass_through(self) -> None:
        with pytest.raises(ZeroDivisionError, match="somewhere deep"):
            run(here(explode))

    def test_a_wrong_keyword_argument_is_a_surprise(self) -> None:
        with pytest.raises(TypeError, match="colour"):
            run(here(greet), colour="red")

    @pytest.mark.parametrize(
        ("function", "what"),
        [
            ("nowhere_at_all.module:f", "no module 'nowhere_at_all'"),
            ("json.nowhere:f", "no module 'json.nowhere'"),
            ("json:nothing_there", "has no 'nothing_there'"),
            ("math:pi", "not a function"),
        ],
    )
    def test_a_function_that_is_not_there(self, function: str, what: str) -> None:
        outcome = run(function)
        assert isinstance(outcome, Failed)
        assert outcome.error.startswith("params.function: ")
        assert what in outcome.error

    def test_a_module_that_lacks_its_own_import_is_a_surprise(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "needs_more.py").write_text("import not_installed_anywhere\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
            run("needs_more:f")


class TestGovcrawlerSignature:
    def call(self, told: Told, **kwargs: Any) -> dict[str, Any]:
        calls.clear()
        assert run(here(crawl_target), told, **kwargs) == Done({"new": 3})
        return calls[0]

    def test_what_it_gets(self) -> None:
        told = Told()
        told.stop = True
        assert self.call(told, extra="x") == {
            "target_code": "nightly",
            "stop_on_duplicate": True,
            "stop": True,
            "job_id": "0123456789ab",
            "resume_from_page": 0,
            "extra": "x",
        }

    def test_force_does_not_stop_on_duplicates(self) -> None:
        assert not self.call(Told(force=True))["stop_on_duplicate"]

    def test_a_callback_for_page_n_counts_n_minus_1_as_completed(self) -> None:
        told = Told()
        self.call(told)
        assert told.pages == [1, 2, 2, 3, 0]
        assert told.checkpoints == [1, 2]

    def test_it_resumes_from_the_last_completed_page(self) -> None:
        told = Told(completed=7)
        assert self.call(told)["resume_from_page"] == 7
        assert told.checkpoints == [8, 9]

    def test_from_page_is_the_first_page_fetched(self) -> None:
        assert self.call(Told(from_page=4))["resume_from_page"] == 3

    def test_without_track_checkpoint_nothing_is_completed(self) -> None:
        told = Told(completed=7, track_checkpoint=False)
        assert self.call(told)["resume_from_page"] == 0
        assert told.checkpoints == []
        assert told.pages


class TestOutcomes:
    @pytest.mark.parametrize(
        "outcome",
        [Done({"a": 1}, "look"), Failed("no"), Blocked("429", 5, Checkpoint(2)), Cancelled({"b": 2})],
    )
    def test_an_outcome_stays_one(self, outcome: Outcome) -> None:
        assert outcome_of(outcome) == outcome

    def test_its_result_is_made_storable(self) -> None:
        assert outcome_of(Done({"s": {1}})) == Done({"s": [1]})

    @pytest.mark.parametrize("word", ["reason", "abort_reason"])
    @pytest.mark.parametrize(
        ("pages", "checkpoint"),
        [
            ({"checkpoint_page": 5, "last_completed_page": 9}, Checkpoint(5)),
            ({"checkpoint_page": 0, "last_completed_page": 9}, Checkpoint(9)),
            ({"last_completed_page": "4"}, Checkpoint(4)),
            ({"checkpoint_page": "many", "last_completed_page": 3}, Checkpoint(3)),
            ({"checkpoint_page": -1}, None),
            ({}, None),
        ],
    )
    def test_aborted_by_a_cooldown_is_a_block(
        self, word: str, pages: dict[str, Any], checkpoint: Checkpoint | None
    ) -> None:
        result = {"status": "aborted", word: "cooldown", **pages}
        assert outcome_of(result) == Blocked("cooldown", None, checkpoint, result)

    def test_aborted_for_another_reason_is_done(self) -> None:
        result = {"status": "aborted", "reason": "no time"}
        assert outcome_of(result) == Done(result)

    def test_cancelled(self) -> None:
        assert outcome_of({"status": "cancelled", "new": 1}) == Cancelled({"status": "cancelled", "new": 1})

    def test_a_host_cooldown_inside_is_left_for_others_to_find(self) -> None:
        result = {"errors": [{"text": "host_cooldown:www.example.org"}]}
        assert outcome_of(result) == Done(result)


class TestParameters:
    @pytest.mark.parametrize(
        "function", ["", "module", "module:", ":f", "a b:c", "a..b:c", "a:b()", "a:b;c", "1a:b"]
    )
    def test_what_names_no_function(self, function: str) -> None:
        with pytest.raises(InvalidInputError) as caught:
            registry.check_params("python", {"function": function}, adapter="list")
        assert [problem.field for problem in caught.value.problems] == ["params.function"]

    def test_what_does(self) -> None:
        params = registry.check_params("python", {"function": " pack.mod:Class.name "}, adapter="list")
        assert params == PythonParameters(function="pack.mod:Class.name")


class Colour(IntEnum):
    RED = 1


class TestJsonSafe:
    def test_what_json_has_no_word_for(self) -> None:
        made = json_safe(
            {
                1: math.nan,
                "infinite": math.inf,
                "bytes": b"a\xff",
                "path": Path("x"),
                "set": {3},
                "colour": Colour.RED,
                "huge": 10**9_999,
                None: (1, 2.5, True),
            }
        )
        assert made == {
            "1": "nan",
            "infinite": "inf",
            "bytes": "a�",
            "path": "x",
            "set": [3],
            "colour": 1,
            "huge": "an integer of 33216 bits",
            "None": [1, 2.5, True],
        }

    def test_what_contains_itself_ends(self) -> None:
        loop: list[Any] = []
        loop.append(loop)
        json.dumps(json_safe(loop))

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=20,
        )
    )
    def test_json_stays_as_it_is(self, value: Any) -> None:
        assert json_safe(value) == value
