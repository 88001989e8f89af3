"""URLs in their one form, redirects, and which headers go where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from webqueue.handlers.fetching.headers import headers_for, user_agent_of
from webqueue.handlers.fetching.hops import Hop, parse_url, redirected
from webqueue.handlers.protocol import FetchError, HttpOptions, SiteView


def hop_to(url: str, method: str = "GET", **fields: object) -> Hop:
    parsed = parse_url(url)
    hop = Hop(method, parsed, {}, None, parsed, max_bytes=1000, total_sec=10)
    return replace(hop, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTP://Example.ORG.:80/a?b#c", "http://example.org/a?b"),
        ("https://example.org:443", "https://example.org/"),
        ("https://example.org:8443/", "https://example.org:8443/"),
        ("http://中文.cn/路 径?问=答", "http://xn--fiq228c.cn/%E8%B7%AF%20%E5%BE%84?%E9%97%AE=%E7%AD%94"),
        ("http://[0:0::1]:8080/", "http://[::1]:8080/"),
        ("http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"),
    ],
)
def test_a_url_has_one_form(text: str, url: str) -> None:
    assert str(parse_url(text)) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/relative",
        "example.org",
        "ftp://example.org/",
        "javascript:alert(1)",
        "http:///x",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://good.example\\@127.0.0.1/",
        "http://a@b@c/",
        "http://h:99999/",
        "http://h/\n",
    ],
)
def test_what_programs_read_differently_is_refused(text: str) -> None:
    with pytest.raises(FetchError) as caught:
        parse_url(text)

    assert caught.value.kind == "url"


@pytest.mark.parametrize(
    ("method", "status", "following"),
    [
        ("GET", 301, "GET"),
        ("GET", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("HEAD", 302, "HEAD"),
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("PUT", 303, "GET"),
        ("PUT", 302, "PUT"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
    ],
)
def test_methods_after_a_redirect(method: str, status: int, following: str) -> None:
    hop = hop_to("http://h/form", method, body=b"a=1", headers={"Content-Type": "x/y", "X-Own": "1"})

    after = redirected(hop, status, "/done")

    assert (str(after.url), after.method) == ("http://h/done", following)
    kept = following == method and (method, status) != ("GET", 303)
    assert after.body == (b"a=1" if kept else None)
    assert ("Content-Type" in after.headers) is kept
    assert "X-Own" in after.headers


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("next.html?x=1#part", "http://h/a/next.html?x=1"),
        ("../up", "http://h/up"),
        ("//other/x", "http://other/x"),
        (" https://h/s ", "https://h/s"),
        ("/新闻/一", "http://h/%E6%96%B0%E9%97%BB/%E4%B8%80"),
        ("", "http://h/a/b"),
    ],
)
def test_locations_are_resolved(location: str, url: str) -> None:
    assert str(redirected(hop_to("http://h/a/b"), 302, location).url) == url


@pytest.mark.parametrize(
    "location", ["ftp://h/x", "javascript:alert(1)", "http://127.1/", "file:///etc/passwd"]
)
def test_a_location_that_cannot_be_fetched(location: str) -> None:
    with pytest.raises(FetchError, match="redirects") as caught:
        redirected(hop_to("http://h/"), 302, location)

    assert (caught.value.kind, caught.value.status) == ("url", 302)


SITE = SiteView(
    code="s",
    base_url="http://www.example.org/",
    adapter="list",
    timezone="UTC",
    rate_key="k",
    http=HttpOptions(
        headers={
            "Authorization": "Bearer 1",
            "X-Api-Key": "2",
            "Cookie": "a=3",
            "Accept-Language": "zh-CN",
            "Host": "elsewhere",
            "Content-Length": "7",
            "Accept-Encoding": "br",
        }
    ),
)
SECRETS = {"authorization", "x-api-key", "cookie"}


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://www.example.org/a", True),
        ("http://WWW.example.org:80/a", True),
        ("https://www.example.org/a", True),
        ("http://static.example.org/a", False),
        ("http://example.org/a", False),
        ("http://www.example.org:8080/a", False),
    ],
)
def test_secrets_of_the_site_stay_with_the_site(url: str, told: bool) -> None:
    headers = headers_for(hop_to(url), SITE, "agent")

    assert SECRETS & headers.keys() == (SECRETS if told else set())
    assert headers["accept-language"] == "zh-CN"


def test_secrets_do_not_leave_https() -> None:
    site = replace(SITE, base_url="https://www.example.org/")

    assert not SECRETS & headers_for(hop_to("http://www.example.org/"), site, "agent").keys()


def test_headers_of_the_handler_stay_with_the_server_that_it_asked() -> None:
    asked = hop_to("http://static.example.org/", headers={"Authorization": "Basic x", "If-None-Match": '"1"'})
    led_away = redirected(asked, 302, "http://www.example.org/")

    assert headers_for(asked, SITE, "agent")["authorization"] == "Basic x"
    assert headers_for(led_away, SITE, "agent")["authorization"] == "Bearer 1"
    assert headers_for(led_away, SITE, "agent")["if-none-match"] == '"1"'


def test_framing_and_codings_are_not_for_the_site_to_set() -> None:
    headers = headers_for(hop_to("http://www.example.org/"), SITE, "agent")

    assert not {"host", "content-length"} & headers.keys()
    assert headers["accept-encoding"] == "gzip, deflate"
    assert headers["user-agent"] == "agent"


def test_the_user_agent_is_the_sites_else_its_headers_else_the_default() -> None:
    by_header = replace(SITE, http=HttpOptions(headers={"user-Agent": "header"}))
    by_setting = replace(SITE, http=HttpOptions(user_agent="setting", headers={"User-Agent": "header"}))

    assert [user_agent_of(site, "default") for site in (SITE, by_header, by_setting)] == [
        "default",
        "header",
        "setting",
    ]
