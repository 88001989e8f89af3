"""Whatever is sent to the API: never a 500, and every error a problem detail."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.api import SITE, TARGET, ApiClient, problem
from webqueue.api.blueprint import ROUTES
from webqueue.database import Database

words = st.text(max_size=20) | st.sampled_from(
    ["example", "news", "1", "0", "-1", "null", "true", "%", "_", "'", "\x00", "2026-01-01", "9" * 40, "http://a/", "* * * * *", "Asia/Shanghai", "queued"]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
PARAMETERS = (
    "cursor", "limit", "status", "site", "target", "rate_key", "source", "since", "until", "job", "q", "state", "url", "adapter",
    "from", "to", "cron", "tz", "after", "count", "version",
)  # fmt: skip
queries = st.dictionaries(st.sampled_from(PARAMETERS) | words, words, max_size=3)
mutation = st.sampled_from((SITE, TARGET)).flatmap(
    lambda good: st.dictionaries(
        st.sampled_from([*good, "interval_sec", "http", "retry", "tags", "start_at", "note", "code", "rate_key", "cooldown_sec"]), values, max_size=3
    ).map(lambda wrong: {**good, **wrong})
)  # fmt: skip
bodies = (
    st.none()
    | values
    | mutation
    | st.fixed_dictionaries({}, optional={"force": values, "from_page": values, "note": values})
)


@pytest.fixture
def client(database: Database) -> ApiClient:
    made = ApiClient(database)
    made.example()
    assert made.call("POST", "targets/news/run").status_code == 202
    return made


def answer_is_sound(client: ApiClient, method: str, path: str, **more: Any) -> None:
    answer = client.call(method, path, **more)
    assert answer.status_code != 500, answer.text
    if answer.status_code >= 400:
        problem(answer, answer.status_code)
    elif answer.status_code == 200:
        assert (
            answer.json is not None if answer.is_json else answer.text is not None
        )  # exports, read to the end


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    route=st.sampled_from(ROUTES),
    caught=words | st.sampled_from(["example", "news", "1", "www.example.org"]),
    query=queries,
    body=bodies,
)
def test_any_value_in_any_place(
    client: ApiClient, route: Any, caught: str, query: dict[str, str], body: Any
) -> None:
    place = quote(caught.encode("utf-8", "surrogatepass"), safe="")
    path = "/".join(
        place if part.startswith("<") else part for part in route.rule.removeprefix("/").split("/")
    )
    sent = {
        name.encode("utf-8", "replace").decode(): value.encode("utf-8", "replace").decode()
        for name, value in query.items()
    }
    answer_is_sound(
        client, route.method, path, query_string=sent, json=None if route.method == "GET" else body
    )


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    data=st.binary(max_size=200),
    content_type=st.sampled_from(["application/json", "text/plain", "application/json; charset=utf-16"]),
)
def test_any_bytes_as_a_body(client: ApiClient, data: bytes, content_type: str) -> None:
    answer_is_sound(client, "PUT", "targets/fuzzed", data=data, content_type=content_type)
    answer_is_sound(client, "POST", "targets/news/run", data=data, content_type=content_type)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=mutation)
def test_what_is_taken_can_be_read_and_put_back(client: ApiClient, body: dict[str, Any]) -> None:
    kind = "targets" if "handler" in body else "sites"
    answer = client.call("PUT", f"{kind}/fuzzed", body)
    assert answer.status_code in {200, 201, 400, 422}, answer.text
    if answer.status_code < 300:
        read = client.get(f"{kind}/fuzzed")
        again = client.call("PUT", f"{kind}/fuzzed", read)
        assert (again.status_code, again.json) == (200, read)
        assert client.call("DELETE", f"{kind}/fuzzed").status_code == 204
