"""Secrets: their names, their places in texts, and masks that go out and come back."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webqueue.config.masks import MASK, masked, masks_left, unmasked
from webqueue.config.specs import HttpSpec, RetrySpec, SiteSpec, TargetSpec
from webqueue.handlers.command.parameters import CommandParameters
from webqueue.handlers.crawl import parameters as crawls
from webqueue.handlers.http import HttpParameters
from webqueue.handlers.protocol import Parameters
from webqueue.handlers.python import PythonParameters
from webqueue.masking import is_secret_name, masked_text

SECRETS = (
    "Authorization", "X-Api-Key", "X-Amz-Signature", "Set-Cookie", "APIKey", "apiKey", "AWS_SECRET_ACCESS_KEY",
    "PGPASSWORD", "access_token", "accesstoken", "api%5Fkey", "api_keys", "appkey", "auth", "clientSecret", "cookies",
    "db_pass", "jsessionid", "key", "oauth_token", "pwd", "secret", "session", "sid", "sig", "sign", "密码",
)  # fmt: skip
HARMLESS = (
    "author", "authority", "authors", "bypass", "design", "item_selector", "keys", "keyword", "max_tokens", "monkey",
    "passport", "possession", "rate_key", "secretary", "session_dir", "sign_in", "sort_key", "title_key", "token_url",
    "tokenizer", "turnkey", "", "-",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_the_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_name_that_only_looks_like_it(name: str) -> None:
    assert not is_secret_name(name)


def test_no_field_of_our_own_is_taken_for_a_secret() -> None:
    models: list[type[Any]] = [SiteSpec, TargetSpec, HttpSpec, RetrySpec]
    models += [CommandParameters, HttpParameters, PythonParameters]
    models += [one for one in vars(crawls).values() if isinstance(one, type) and issubclass(one, Parameters)]
    assert [name for model in models for name in model.model_fields if is_secret_name(name)] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://h/?access_token=a&api_key=b&page=2", f"https://h/?access_token={MASK}&api_key={MASK}&page=2"),
        ("https://tok3n@host/", f"https://{MASK}@host/"),
        ("http://me:p@ss@h/x", f"http://{MASK}@h/x"),
        ("//u@h/x@y", f"//{MASK}@h/x@y"),
        ("list?token=a&page={page}", f"list?token={MASK}&page={{page}}"),
        ("see http://a/ and http://b:c@d/?token=1 there", f"see http://a/ and http://{MASK}@d/?token={MASK} there"),
        ("Authorization: Bearer x", f"Authorization: {MASK}"),
        ("Cookie: a=b; c=d", f"Cookie: {MASK}"),
        ("--password=x", f"--password={MASK}"),
        ("TOKEN=http://a:b@h/x", f"TOKEN={MASK}"),
        ("--url=http://a@h/?q=1", f"--url=http://{MASK}@h/?q=1"),
        ("http://h/?keyword=a&author=b&monkey=c", "http://h/?keyword=a&author=b&monkey=c"),
        ("input[name=token]", "input[name=token]"),
        ("a[data-token=abc]", "a[data-token=abc]"),
        ("Password: ask Bob", "Password: ask Bob"),
        ("http://h/?token=", "http://h/?token="),
    ],
)  # fmt: skip
def test_a_text_without_its_secrets(text: str, shown: str) -> None:
    assert masked_text(text) == shown
    assert masked_text(shown) == shown


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"base_url": "https://tok3n@host/"}, {"base_url": f"https://{MASK}@host/"}),
        ({"kwargs": {"pwd": 123, "auth": ["a", "b"]}}, {"kwargs": {"pwd": MASK, "auth": [MASK, MASK]}}),
        ({"cookies": {"a": "b", "on": True}}, {"cookies": {"a": MASK, "on": True}}),
        (
            {"argv": ["curl", "-H", "Authorization: Bearer x", "--password", "y", "--token=z", "-u", "me:w", "-v"]},
            {"argv": ["curl", "-H", f"Authorization: {MASK}", "--password", MASK, f"--token={MASK}", "-u", MASK, "-v"]},
        ),
        ({"argv": ["x", "--auth", "--key", "-v", "--author", "a"]}, {"argv": ["x", "--auth", "--key", "-v", "--author", "a"]}),
        ({"rate_key": "h", "interval_sec": 5}, {"rate_key": "h", "interval_sec": 5}),
    ],
)  # fmt: skip
def test_a_configuration_without_its_secrets(data: dict[str, Any], shown: dict[str, Any]) -> None:
    assert masked(data) == shown
    assert unmasked(shown, data) == data


names = st.sampled_from([*SECRETS, *HARMLESS, "headers", "env", "kwargs", "url", "argv", "host", "note"])
words = st.text(alphabet="abAB01 :/?#&=@-.;'\"\n", max_size=12)
texts = st.one_of(
    words,
    st.builds("https://{}@{}/?{}={}&page=1".format, words, st.sampled_from(["h", "i:8"]), names, words),
    st.builds("--{}={}".format, names, words),
    st.builds("{}: {}".format, names, words),
    names.map("--{}".format),
)
trees = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(names, inner, max_size=4)),
    max_leaves=20,
)


@given(st.dictionaries(names, trees, max_size=4))
def test_what_is_shown_and_sent_back_is_what_was_stored(data: dict[str, Any]) -> None:
    before = copy.deepcopy(data)
    shown = masked(data)
    assert masked(shown) == shown, "nothing is left to be masked"
    assert unmasked(shown, data) == data == before


def test_around_a_mask_an_address_may_change() -> None:
    stored = {"url": "https://me:pw@h/a?token=t&page=1", "more": "x?sid=s"}
    sent = {"url": f"https://{MASK}@h/b?page=2&token={MASK}", "more": f"y?sid={MASK}"}
    assert unmasked(sent, stored) == {"url": "https://me:pw@h/b?page=2&token=t", "more": "y?sid=s"}
    assert unmasked({"url": f"https://me:{MASK}@h/"}, stored) == {"url": "https://me:pw@h/"}
    other = {"url": f"https://you:{MASK}@h/"}
    assert unmasked(other, stored) == other
    assert list(masks_left(other)) == [("url",)]


def test_an_address_within_another_is_a_server_too() -> None:
    stored = {"url": "http://h/?next=http://h/&token=t"}
    assert unmasked(masked(stored), stored) == stored
    for elsewhere in (
        f"http://evil/?next=http://h/&token={MASK}",
        f"http://h/?next=http://evil/&token={MASK}",
    ):
        assert unmasked({"url": elsewhere}, stored) == {"url": elsewhere}
    several = {"urls": "http://h/,http://h/", "key": "s"}
    sent = {"urls": "http://h/,http://evil/", "key": MASK}
    assert unmasked(sent, several) == sent


@pytest.mark.parametrize(
    "part", ["http://a@b/?token=1&", "http://a@b/?token=1 ", "x://a@", "a", "://", "?", "a=", "&token=1"]
)
def test_a_long_text_of_a_stranger_is_read_once(part: str) -> None:
    """A redirect may have a hundred thousand characters; looked for pair by pair this would take minutes."""
    text = part * (300_000 // len(part))
    assert masked_text(masked_text(text)) == masked_text(text)


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ({"tokens": ["a", "b"]}, {"tokens": [MASK]}),
        ({"argv": ["--token", "a", "--token", "b"]}, {"argv": ["--token", MASK]}),
        ({"password": "a"}, {"pwd": MASK}),
        ({"note": ""}, {"note": MASK}),
    ],
)
def test_nobody_guesses_what_a_mask_stands_for(stored: dict[str, Any], sent: dict[str, Any]) -> None:
    assert unmasked(sent, stored) == sent
    assert list(masks_left(sent))


def test_an_option_takes_its_secret_along() -> None:
    stored = {"argv": ["x", "--token", "a", "--password", "b"]}
    sent = {"argv": ["x", "--password", MASK, "-v", "--token", MASK]}
    assert unmasked(sent, stored) == {"argv": ["x", "--password", "b", "-v", "--token", "a"]}


SITE = {"base_url": "http://h/", "http": {"headers": {"Authorization": "s"}, "proxy": "http://u:p@proxy:1"}}
TARGET = {
    "site": "one",
    "params": {"url": "https://h/x", "headers": {"X-Key": "s"}, "kwargs": {"host": "h", "pwd": "s"}},
}


def headers_of(data: dict[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = data["http" if "http" in data else "params"]["headers"]
    return headers


def changed(data: dict[str, Any], *path: str, to: str) -> dict[str, Any]:
    """As it is shown, with one value changed."""
    whole = inner = masked(data)
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = to
    return whole


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        (SITE, changed(SITE, "base_url", to="http://evil/")),
        (SITE, changed(SITE, "base_url", to="http://h:8080/")),
        (SITE, changed(SITE, "base_url", to="http://h@evil/")),
        (SITE, changed(SITE, "http", "proxy", to="http://evil:1")),
        (TARGET, changed(TARGET, "params", "url", to="https://evil/x")),
        (TARGET, changed(TARGET, "params", "url", to="http://h/x")),
        (TARGET, changed(TARGET, "params", "url", to="//evil/x")),
        (TARGET, changed(TARGET, "site", to="two")),
    ],
)
def test_no_secret_follows_an_address_to_another_server(stored: dict[str, Any], sent: dict[str, Any]) -> None:
    assert set(headers_of(unmasked(sent, stored)).values()) == {MASK}


def test_no_argument_follows_its_host() -> None:
    sent = changed(TARGET, "params", "kwargs", "host", to="evil")
    assert unmasked(sent, TARGET)["params"]["kwargs"]["pwd"] == MASK


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        (SITE, changed(SITE, "base_url", to="https://H/other")),
        (SITE, changed(SITE, "note", to="as https://other.example/ says")),
        (SITE, changed(SITE, "http", "user_agent", to="me (+https://other.example/)")),
        (TARGET, changed(TARGET, "params", "url", to="https://h/y?page=2")),
    ],
)
def test_a_secret_stays_at_its_server(stored: dict[str, Any], sent: dict[str, Any]) -> None:
    whole = unmasked(sent, stored)
    assert headers_of(whole) == headers_of(stored)
    assert list(masks_left(whole)) == []
