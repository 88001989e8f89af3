"""Challenge pages told apart from pages about them, and the list that an administrator edits."""

from __future__ import annotations

from typing import Any

import pytest

from webqueue.errors import InvalidInputError
from webqueue.politeness.challenges import (
    BODY_START,
    DEFAULT_SIGNATURES,
    Signature,
    as_data,
    challenge_of,
    parse_signatures,
)

# The beginnings of what these products send, shortened.
PAGES: list[tuple[str, int, dict[str, str], str]] = [
    ("Cloudflare", 403, {"cf-mitigated": "challenge"}, ""),
    ("Cloudflare page", 200, {}, "<!DOCTYPE html><html><head><title>Just a moment...</title></head>"),
    ("AWS WAF", 202, {"x-amzn-waf-action": "challenge"}, ""),
    ("Aliyun WAF", 200, {}, "<html><script>\nvar arg1='26E6D4BD3D2A1A2F0C1B8D5B7A9E4F3C2D1B0A99';"),
    ("Ruishu", 202, {}, '<html><head><meta id="9DhefwqGPrzGxEp9hPaoag" content="x" r=\'m\'><script>'),
    ("Jiasule", 200, {}, "<script>document.cookie=('_')+('_')+('j')+('s')+('l');</script>"),
    ("Yunsuo", 200, {}, 'document.cookie="security_session_mid_verify=" + "1"'),
    ("SafeLine", 200, {}, "<script>SafeLineChallenge('mf', 'x')</script>"),
    ("Imperva", 200, {}, '<iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=1" frameborder=0>'),
    ("Akamai", 200, {}, '<meta http-equiv="refresh" content="5; URL=\'/?bm-verify=AAQ\'" />'),
    ("Sucuri", 200, {}, "<script>var s={},u,c,U,r,i,l=0;sucuri_cloudproxy_js='',S='cj0'"),
    ("DDoS-Guard", 200, {}, "<head><title>DDoS-Guard</title>"),
    ("Anubis", 200, {}, "<title>Making sure you&#39;re not a bot!</title>"),
    ("browser check", 200, {}, "<html><title> 安全验证 </title>"),
]


@pytest.mark.parametrize(("name", "status", "headers", "body"), PAGES, ids=[page[0] for page in PAGES])
def test_challenges(name: str, status: int, headers: dict[str, str], body: str) -> None:
    assert challenge_of(DEFAULT_SIGNATURES, status, headers, body.encode()) == name
    assert challenge_of(DEFAULT_SIGNATURES, 404, headers, body.encode()) is None


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<!doctype html><title>News</title><p>Just a moment... said the mayor.",
        "<title>关于开展网络安全验证工作的通知</title>",
        '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script><title>News</title>',
        '<script src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"></script>',
        "<html><head><meta charset=utf-8><script>$_ts=window['$_ts'];</script>",  # with 200: an ordinary page
        "x" * BODY_START + "<title>Just a moment...</title>",
    ],
)
def test_ordinary_pages(body: str) -> None:
    assert challenge_of(DEFAULT_SIGNATURES, 200, {"server": "cloudflare"}, body.encode()) is None


def test_everything_given_must_hold() -> None:
    both = (Signature("both", (200,), body="stop", header="X-Guard: ^on"),)

    assert challenge_of(both, 200, {"x-guard": "ON"}, b"please STOP") == "both"
    assert challenge_of(both, 200, {"x-guard": "off"}, b"stop") is None
    assert challenge_of(both, 200, {}, b"stop") is None
    assert challenge_of(both, 200, {"x-guard": "on"}, b"go") is None
    assert challenge_of((Signature("named", header="X-Guard"),), 202, {"x-guard": ""}, b"") == "named"


def test_a_redirect_to_where_challenges_live() -> None:
    there = "https://validate.perfdrive.com/?ssa=1"

    assert challenge_of(DEFAULT_SIGNATURES, 302, {}, b"", there) == "Radware"
    assert challenge_of(DEFAULT_SIGNATURES, 302, {}, b"", "https://www.example.org/?to=" + there) is None
    assert challenge_of(DEFAULT_SIGNATURES, 302, {}, b"") is None


def test_names_of_the_list_are_unique_and_it_can_be_written_and_read() -> None:
    assert len({one.name for one in DEFAULT_SIGNATURES}) == len(DEFAULT_SIGNATURES)
    assert parse_signatures([as_data(one) for one in DEFAULT_SIGNATURES]) == DEFAULT_SIGNATURES


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ("text", "challenge_signatures"),
        (["text"], "challenge_signatures[0]"),
        ([{"name": "x"}], "challenge_signatures[0]"),
        ([{"name": "", "body": "y"}], "challenge_signatures[0].name"),
        ([{"body": "y"}], "challenge_signatures[0].name"),
        ([{"name": "x", "body": "("}], "challenge_signatures[0].body"),
        ([{"name": "x", "body": ".*"}], "challenge_signatures[0].body"),
        ([{"name": "x", "body": "a|"}], "challenge_signatures[0].body"),
        ([{"name": "x", "body": 5}], "challenge_signatures[0].body"),
        # Written out when it is compiled, it would fill the memory of the process.
        ([{"name": "x", "body": "(?:(?:a{1000}){1000,}){1000}b"}], "challenge_signatures[0].body"),
        ([{"name": "x", "header": "X-Guard: (?:a{1000}){1000}"}], "challenge_signatures[0].header"),
        ([{"name": "x", "header": "X: ("}], "challenge_signatures[0].header"),
        ([{"name": "x", "body": "y", "statuses": []}], "challenge_signatures[0].statuses"),
        ([{"name": "x", "body": "y", "statuses": [True]}], "challenge_signatures[0].statuses"),
        ([{"name": "x", "body": "y", "statuses": [42]}], "challenge_signatures[0].statuses"),
        ([{"name": "x", "body": "y", "enabled": 1}], "challenge_signatures[0].enabled"),
        ([{"name": "x", "bdy": "y"}], "challenge_signatures[0].bdy"),
        ([{"name": "x", "body": "y"}, {"name": "x", "body": "z"}], "challenge_signatures"),
    ],
)
def test_what_is_refused(data: Any, field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_signatures(data)
    assert field in [problem.field for problem in caught.value.problems]
