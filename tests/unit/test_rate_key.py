from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

from webqueue.errors import InvalidInputError
from webqueue.politeness.rate_key import (
    RateGroup,
    group_of,
    host_of,
    key_of_site,
    key_of_url,
)

# The one that webqueue is shipped with.
DEFAULT_GROUPS = (RateGroup(key="gd_gkmlpt_shared", adapter="gkmlpt", host_suffix="gd.gov.cn"),)
CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "rate_keys.jsonl").read_text("utf-8").splitlines()
    if line.strip()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['url']} {case['adapter']}")
def test_shared_cases(case: dict[str, Any]) -> None:
    if case.get("error"):
        with pytest.raises(InvalidInputError):
            key_of_url(case["url"], adapter=case["adapter"], groups=DEFAULT_GROUPS, site_keys={})
        return
    assert (
        key_of_url(case["url"], adapter=case["adapter"], groups=DEFAULT_GROUPS, site_keys={}) == case["key"]
    )
    site_key = key_of_site(
        own_key=None, base_url=case["url"], adapter=case["adapter"], code="code", groups=DEFAULT_GROUPS
    )
    assert site_key == case["key"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("HTTP://Example.COM", "example.com"),
        ("https://example.com?a=http://other.org/", "example.com"),
        ("https://example.com#@other.org", "example.com"),
        ("http://example.com:/", "example.com"),
        ("http://example.com:00080/", "example.com"),
        ("http://example.com:65535/", "example.com"),
        ("http://example.com./", "example.com"),
        ("http://u%40x:p%40y@example.com/", "example.com"),
        ("http://:@example.com/", "example.com"),
        ("http://example.com/a@b", "example.com"),
        ("http://example.com/a\\b", "example.com"),
        ("http://example.com/附件 1.pdf", "example.com"),
        ("http://localhost:8000/", "localhost"),
        ("http://127.0.0.2:8000/", "127.0.0.2"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://1.2.3.4.example/", "1.2.3.4.example"),
        ("http://0x7f.example/", "0x7f.example"),
        ("http://[::1]/", "::1"),
        ("http://[::1]:8080/", "::1"),
        ("http://u@[2001:0DB8::0001]/", "2001:db8::1"),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.1"),
        ("http://[::FFFF:7F00:1]/", "127.0.0.1"),
        ("http://XN--MXTQ1M.XN--FIQS8S/", "xn--mxtq1m.xn--fiqs8s"),
        ("http://政府．中国/", "xn--mxtq1m.xn--fiqs8s"),
        ("http://政府。中国｡/", "xn--mxtq1m.xn--fiqs8s"),
        ("http://ｅｘａｍｐｌｅ．ＣＯＭ/", "example.com"),
        ("http://１２７．０．０．１/", "127.0.0.1"),
        ("http://straße.de/", "xn--strae-oqa.de"),
        ("http://STRASSE.de/", "strasse.de"),
        ("http://BÜCHER.example/", "xn--bcher-kva.example"),
        ("http://bu\u0308cher.example/", "xn--bcher-kva.example"),
        ("http://ex\u00adample.com/", "example.com"),
        ("http://क्\u200dष.com/", "xn--11b2ezcw70k.com"),
        ("http://a_b.政府.中国/", "a_b.xn--mxtq1m.xn--fiqs8s"),
        ("http://-a-.example.com/", "-a-.example.com"),
        (f"http://{'a' * 63}.com/", f"{'a' * 63}.com"),
    ],
)
def test_hosts(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "no scheme"),
        ("example.com", "no scheme"),
        ("example.com:80/x", "no scheme"),
        ("localhost:8000", "no scheme"),
        ("//example.com/", "no scheme"),
        ("/a/b", "no scheme"),
        ("ftp://example.com/", "'ftp'"),
        ("javascript:alert(1)", "'javascript'"),
        ("file:///etc/passwd", "'file'"),
        ("http:example.com", "no //"),
        ("http:/example.com", "no //"),
        ("http:\\\\example.com", "no //"),
        ("http://", "no host"),
        ("http:///example.com/", "no host"),
        ("http://:80/", "no host"),
        ("http://user@/", "no host"),
        ("http://./", "no host"),
        ("http://?x", "no host"),
        ("http://example.com:0/", "port"),
        ("http://example.com:65536/", "port"),
        ("http://example.com:-1/", "port"),
        ("http://example.com:80a/", "port"),
        ("http://example.com:８０/", "port"),
        ("http://example.com:²/", "port"),
        (f"http://example.com:{'9' * 5000}/", "port"),
        ("http://example.com:80:80/", "more than one colon"),
        ("http://::1/", "more than one colon"),
        ("http://[::1", "brackets"),
        ("http://::1]/", "brackets"),
        ("http://[::1]x/", "brackets"),
        ("http://[[::1]]/", "brackets"),
        ("http://a[::1]/", "brackets"),
        ("http://[]/", "not an IPv6"),
        ("http://[::1]:x/", "port"),
        ("http://[1.2.3.4]/", "not an IPv6"),
        ("http://[example.com]/", "not an IPv6"),
        ("http://[v1.x]/", "not an IPv6"),
        ("http://[::１]/", "not an IPv6"),
        ("http://[fe80::1%eth0]/", "zone"),
        ("http://[fe80::1%25eth0]/", "zone"),
        ("http://evil.com\\.example.com/", "backslash"),
        ("http://example.com\\/", "backslash"),
        ("http://a@b@example.com/", "more than one @"),
        ("http://a@evil.com:80@example.com/", "more than one @"),
        (" http://example.com/", "spaces around"),
        ("http://example.com/ ", "spaces around"),
        ("http://example.com/\u3000", "spaces around"),
        ("http://exam\tple.com/", "control"),
        ("http://example.com/a\nb", "control"),
        ("ht\ntp://example.com/", "control"),
        ("http://example.com\r\n/", "control"),
        ("http://example.com\x00/", "control"),
        ("http://example.com\x7f/", "control"),
        ("http://example.com\x85/", "control"),
        ("http://exam ple.com/", "space before its path"),
        ("http://us er@example.com/", "space before its path"),
        ("http://exam%70le.com/", "characters that no host has"),
        ("http://example%2ecom/", "characters that no host has"),
        ("http://example.com%00.evil.com/", "characters that no host has"),
        ("http://*.example.com/", "characters that no host has"),
        ("http://a,b.example.com/", "characters that no host has"),
        ("http://<b>.com/", "characters that no host has"),
        ("http://example.com../", "empty part"),
        ("http://a..example.com/", "empty part"),
        ("http://.example.com/", "empty part"),
        ("http://政府..中国/", "empty part"),
        ("http://政府．．中国/", "empty part"),
        (f"http://{'a' * 64}.com/", "longer than 63"),
        (f"http://{'a.' * 200}com/", "allowed are 253"),
        (f"http://{'a.' * 2000}com/", "allowed are 253"),
        (f"http://{'政' * 63}.com/", "international"),
        (f"http://example.com/{'a' * 9000}", "allowed are 8192"),
        ("http://127.1/", "IPv4"),
        ("http://0x7f.1/", "IPv4"),
        ("http://0x7f000001/", "IPv4"),
        ("http://2130706433/", "IPv4"),
        ("http://0177.0.0.1/", "IPv4"),
        ("http://127.0.0.01/", "IPv4"),
        ("http://127.0.0.0x1/", "IPv4"),
        ("http://127.0.0.1.1/", "IPv4"),
        ("http://256.0.0.1/", "IPv4"),
        ("http://example.123/", "IPv4"),
        ("http://example.0X/", "IPv4"),
        ("http://２１３０７０６４３３/", "IPv4"),
        ("http://a\u200db.com/", "international"),
        ("http://\u00ad.com/", "empty part"),
        ("http://a／b.com/", "characters that no host has"),
        ("http://℀.com/", "characters that no host has"),
        ("http://ﷺ.com/", "international"),
        ("http://☃.net/", "international"),
        ("http://\ud800.com/", "international"),
        ("http://exam\u2003ple.com/", "space before its path"),
        ("http://政府％2e.中国/", "international"),
    ],
)
def test_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        host_of(url)
    assert [problem.field for problem in caught.value.problems] == ["url"]
    assert said in caught.value.problems[0].message


def _rebuilt(host: str) -> str:
    return f"http://[{host}]/" if ":" in host else f"http://{host}/"


@given(
    host=st.text(max_size=20)
    | st.text("aB9._-:[]%@\\ 中ßé\u200d．１", max_size=20)
    | st.ip_addresses().map(str)
    | st.ip_addresses(v=6).map(lambda address: f"[{address.exploded.upper()}]")
    | st.from_regex(r"\A[A-Za-z0-9_-]{1,20}(\.[A-Za-z0-9_-]{1,20}){0,3}\.?\Z"),
    tail=st.sampled_from(["", "/", ":80/", ":8080/a?b#c", "?x", "#y"]),
)
@example(host="xn--a.é", tail="/")
def test_a_host_is_normal_once_and_for_all(host: str, tail: str) -> None:
    try:
        normal = host_of(f"http://{host}{tail}")
    except InvalidInputError:
        reject()
    assert normal
    assert normal.isascii()
    assert normal == normal.lower()
    assert host_of(_rebuilt(normal)) == normal


@given(url=st.text() | st.text("htps:/[]@\\.%#?0x1a中\t", max_size=40))
def test_any_text_has_a_host_or_is_refused(url: str) -> None:
    fields = set()
    try:
        host_of(url)
    except InvalidInputError as error:
        fields = {problem.field for problem in error.problems}
    assert fields <= {"url"}


SHARED = RateGroup(key="shared", adapter=None, host_suffix=".Example.ORG.")
CHINESE = RateGroup(key="chinese", adapter="list", host_suffix="政府.中国", grow_interval=False)
GROUPS = (*DEFAULT_GROUPS, SHARED, CHINESE)


def test_a_group_has_its_suffix_in_normal_form() -> None:
    assert SHARED.host_suffix == "example.org"
    assert CHINESE.host_suffix == "xn--mxtq1m.xn--fiqs8s"
    assert (SHARED.grow_interval, SHARED.cooldown_factor) == (True, Decimal(2))


@pytest.mark.parametrize("suffix", ["", ".", "..", "a b", "*.example.org", "example.org:80", "0.0.1", "a/b"])
def test_a_group_with_a_wrong_suffix_is_refused(suffix: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        RateGroup(key="x", adapter=None, host_suffix=suffix)
    assert caught.value.problems[0].field == "host_suffix"


@pytest.mark.parametrize(
    ("host", "adapter", "key"),
    [
        ("gd.gov.cn", "gkmlpt", "gd_gkmlpt_shared"),
        ("a.b.gd.gov.cn", "gkmlpt", "gd_gkmlpt_shared"),
        ("gd.gov.cn.evil.com", "gkmlpt", None),
        ("gd.gov.cn", "list", None),
        ("gd.gov.cn", None, None),
        ("example.org", None, "shared"),
        ("www.example.org", "gkmlpt", "shared"),
        ("notexample.org", None, None),
        ("a.xn--mxtq1m.xn--fiqs8s", "list", "chinese"),
    ],
)
def test_groups(host: str, adapter: str | None, key: str | None) -> None:
    group = group_of(host, adapter, GROUPS)
    assert (group.key if group else None) == key


def test_the_first_matching_group_wins() -> None:
    narrow = RateGroup(key="narrow", adapter=None, host_suffix="www.example.org")
    assert group_of("www.example.org", None, [narrow, SHARED]) == narrow
    assert group_of("www.example.org", None, [SHARED, narrow]) == SHARED


@pytest.mark.parametrize(
    ("own_key", "base_url", "adapter", "key"),
    [
        ("mine", "http://x.gd.gov.cn/", "gkmlpt", "mine"),
        (" mine ", None, None, "mine"),
        ("", "http://x.gd.gov.cn/", "gkmlpt", "gd_gkmlpt_shared"),
        ("  ", "http://other.net/", None, "other.net"),
        (None, "http://Other.net:81/", "gkmlpt", "other.net"),
        (None, None, "gkmlpt", "code"),
        (None, "", None, "code"),
        (None, "gd.gov.cn", "gkmlpt", "code"),
        (None, "http://[::1", None, "code"),
    ],
)
def test_the_key_of_a_site(own_key: str | None, base_url: str | None, adapter: str | None, key: str) -> None:
    assert key_of_site(own_key=own_key, base_url=base_url, adapter=adapter, code="code", groups=GROUPS) == key


@pytest.mark.parametrize(
    ("url", "adapter", "key"),
    [
        ("http://WWW.example.org:8080/a", None, "of_the_site"),
        ("http://api.example.org/", None, "shared"),
        ("http://x.gd.gov.cn/", "gkmlpt", "gd_gkmlpt_shared"),
        ("http://elsewhere.net/", "gkmlpt", "elsewhere.net"),
    ],
)
def test_the_key_of_a_url(url: str, adapter: str | None, key: str) -> None:
    site_keys = {"www.example.org": "of_the_site"}
    assert key_of_url(url, adapter=adapter, groups=GROUPS, site_keys=site_keys) == key


def test_a_url_is_asked_anew_each_time() -> None:
    site_keys: dict[str, str] = {}
    assert key_of_url("http://a.net/", adapter=None, groups=(), site_keys=site_keys) == "a.net"
    site_keys["a.net"] = "later"
    assert key_of_url("http://a.net/", adapter=None, groups=(), site_keys=site_keys) == "later"
