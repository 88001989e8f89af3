"""The import file: each field wrong once, and everything that is wrong told together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webqueue.config import MASK, parse_file
from webqueue.errors import InvalidInputError, Problem

GOOD = """\
defaults:
  interval_sec: 10
  tags: [news]
rate_groups:
  - key: gd_gkmlpt_shared
    adapter: gkmlpt
    host_suffix: gd.gov.cn
    grow_interval: true
    cooldown_factor: 2
sites:
  - code: example
    name: Example
    base_url: http://www.example.org/
    adapter: list
    timezone: Asia/Shanghai
    rate_key: null
    min_gap_sec: 0
    cooldown_sec: null
    allowed_hours: null
    obey_robots: true
    http:
      user_agent: null
      headers: {}
      proxy: null
      verify_tls: true
      legacy_tls: false
      timeout_sec: 30
targets:
  - code: example_news
    site: example
    handler: crawl
    schedule: "0 3 * * *"
    timezone: null
    interval_sec: 0.5
    overlap: queue_one
    catch_up: one
    catch_up_limit: 24
    jitter_sec: 0
    start_at: null
    end_at: null
    track_checkpoint: true
    max_runtime_sec: 14400
    retry:
      times: 2
      wait_sec: 300
    enabled: true
    note: ""
    owner: ""
    params:
      list_url: "news/index_{page}.html"
      first_list_url: "news/index.html"
      page_start: 1
      next_selector: null
      max_pages: 50
      item_selector: "ul.list a"
      title_selector: null
      content_selector: null
      ignore_selectors: []
      recheck_days: 0
"""

# (number of the field's line among those that start with it, the line that replaces it, field, words of the message)
WRONG: list[tuple[str, str, str, str]] = [
    ("  interval_sec: 10", "  interval_sec: ten", "defaults.interval_sec", "must be a number"),
    ("  interval_sec: 10", "  code: x", "defaults.code", "is no field here"),
    ("  tags: [news]", "  tags: news", "defaults.tags", "must be a list"),
    ("  tags: [news]", "  tags: [news, news]", "defaults.tags", "twice"),
    ("  tags: [news]", "  tags: [1]", "defaults.tags[0]", "put it in quotes"),
    ("  - key: gd", "  - key: a b", "rate_groups[0].key", "is no rate key"),
    ("    adapter: gkmlpt", "    adapter: other", "rate_groups[0].adapter", "must be one of"),
    ("    host_suffix", "    host_suffix: a b", "rate_groups[0].host_suffix", "no host has"),
    ("    grow_interval", "    grow_interval: 1", "rate_groups[0].grow_interval", "must be true or false"),
    ("    cooldown_factor", "    cooldown_factor: 0.5", "rate_groups[0].cooldown_factor", "at least 1"),
    ("  - code: example\n", "  - code: Example", "sites[Example].code", "is no code"),
    ("  - code: example\n", "  - code: no", "sites[0].code", "put the text in quotes"),
    ("  - code: example\n", "  - code: 12", "sites[0].code", "put it in quotes"),
    ("    name: Example", "    name: ''", "sites[example].name", "must not be empty"),
    ("    name: Example", "    name: 2026", "sites[example].name", 'put it in quotes, "2026"'),
    ("    base_url", "    base_url: www.example.org/", "sites[example].base_url",
     "'www.example.org/' has no scheme; write http:// or https://"),
    ("    base_url", "    base_url: ftp://www.example.org/", "sites[example].base_url", "only http and https"),
    ("    base_url", "    base_url: http://[::1", "sites[example].base_url", "brackets"),
    ("    adapter: list", "    adapter: lists", "sites[example].adapter", "must be one of 'list'"),
    ("    timezone: Asia", "    timezone: Asia/Shanghia", "sites[example].timezone", "Did you mean Asia/Shanghai?"),
    ("    timezone: Asia", "    timezone: Asia/Beijing", "sites[example].timezone", "Did you mean Asia/Shanghai?"),
    ("    rate_key", "    rate_key: 'a b'", "sites[example].rate_key", "is no rate key"),
    ("    min_gap_sec", "    min_gap_sec: -1", "sites[example].min_gap_sec", "at least 0"),
    ("    min_gap_sec", "    min_gap_sec: '1'", "sites[example].min_gap_sec", "must be a number, not text in quotes"),
    ("    min_gap_sec", "    min_gap_sec: soon", "sites[example].min_gap_sec", "must be a number, not 'soon'"),
    ("    cooldown_sec", "    cooldown_sec: 1.5", "sites[example].cooldown_sec", "must be a whole number"),
    ("    allowed_hours", '    allowed_hours: "20:00"', "sites[example].allowed_hours", "no hours"),
    ("    obey_robots", "    obey_robots: maybe", "sites[example].obey_robots", "must be true or false"),
    ("      user_agent", '      user_agent: "a\\nb"', "sites[example].http.user_agent", "one line"),
    ("      headers", '      headers: {"a b": c}', "sites[example].http.headers.a b", "is no name of an HTTP header"),
    ("      headers", '      headers: {A: "b\\nc"}', "sites[example].http.headers.A", "one line"),
    ("      headers", "      headers: {A: 1}", "sites[example].http.headers.A", "put it in quotes"),
    ("      headers", f'      headers: {{Cookie: "{MASK}"}}', "sites[example].http.headers.Cookie", "masked"),
    ("      proxy", "      proxy: proxy:3128", "sites[example].http.proxy", "http://host:port"),
    ("      proxy", "      proxy: socks5://proxy:3128", "sites[example].http.proxy", "must be http://host:port"),
    ("      proxy", "      proxy: https://proxy:3128", "sites[example].http.proxy", "must be http://host:port"),
    ("      verify_tls", "      verify_tls: null", "sites[example].http.verify_tls", "not empty (null)"),
    ("      legacy_tls", "      legacy_tls: 'yes'", "sites[example].http.legacy_tls", "not text in quotes"),
    ("      timeout_sec", "      timeout_sec: 0", "sites[example].http.timeout_sec", "more than 0"),
    ("      timeout_sec", "      timeouts: 30", "sites[example].http.timeouts", "did you mean timeout_sec?"),
    ("  - code: example_news", "  - code: -x", "targets[-x].code", "is no code"),
    ("    site: example", "    site: exmaple", "targets[example_news].site", "there is no site 'exmaple'"),
    ("    handler", "    handler: command", "targets[example_news].handler", "WEBQUEUE_ALLOW_COMMANDS"),
    ("    handler", "    handler: crawler", "targets[example_news].handler", "there is no handler 'crawler'"),
    ("    schedule", "    schedule: 0 3 * *", "targets[example_news].schedule", "has 4 fields"),
    ("    schedule", "    schedule: '0 0 30 2 *'", "targets[example_news].schedule", "never fires"),
    ("    schedule", "    schedule: '61 * * * *'", "targets[example_news].schedule", "minute field"),
    ("    schedule", "    schedule: 5", "targets[example_news].schedule", "put it in quotes"),
    ("    timezone: null", "    timezone: Mars/Base", "targets[example_news].timezone", "no timezone"),
    ("    interval_sec: 0.5", "    interval_sec: -0.1", "targets[example_news].interval_sec", "at least 0"),
    ("    interval_sec: 0.5", "    interval_sec: .inf", "targets[example_news].interval_sec", "finite"),
    ("    interval_sec: 0.5", "    intervall_sec: 5", "targets[example_news].intervall_sec", "did you mean interval_sec?"),
    ("    overlap", "    overlap: queue", "targets[example_news].overlap", "must be one of 'skip', 'queue_one', 'allow'"),
    ("    catch_up: one", "    catch_up: yes", "targets[example_news].catch_up", "must be one of"),
    ("    catch_up_limit", "    catch_up_limit: 0", "targets[example_news].catch_up_limit", "at least 1"),
    ("    jitter_sec", "    jitter_sec: true", "targets[example_news].jitter_sec", "must be a whole number"),
    ("    start_at", "    start_at: 2026-01-31 03:00", "targets[example_news].start_at", "has no zone"),
    ("    start_at", "    start_at: tomorrow", "targets[example_news].start_at", "is no time"),
    ("    end_at", "    end_at: 2026-13-31T03:00Z", "targets[example_news].end_at", "is no time"),
    ("    end_at", "    end_at: 5", "targets[example_news].end_at", "must be a time"),
    ("    track_checkpoint", "    track_checkpoint: []", "targets[example_news].track_checkpoint", "not a list"),
    ("    max_runtime_sec", "    max_runtime_sec: 4h", "targets[example_news].max_runtime_sec", "must be a whole number"),
    ("      times", "      times: -1", "targets[example_news].retry.times", "at least 0"),
    ("      wait_sec", "      wait: 300", "targets[example_news].retry.wait", "did you mean wait_sec?"),
    ("    enabled", "    enabled: 0", "targets[example_news].enabled", "must be true or false"),
    ("    note", "    note: [a]", "targets[example_news].note", "must be text, not a list"),
    ("    owner", '    owner: "a\\nb"', "targets[example_news].owner", "one line"),
    ("      list_url", '      list_url: "ftp://x/{page}"', "targets[example_news].params.list_url", "ftp"),
    ("      page_start", "      page_start: one", "targets[example_news].params.page_start", ""),
    ("      next_selector", "      next_selector: a.next", "targets[example_news].params.next_selector", "list_url"),
    ("      max_pages", "      max_pages: 0", "targets[example_news].params.max_pages", "1"),
    ("      max_pages", "      max_pagse: 5", "targets[example_news].params.max_pagse", "not known"),
    ("      max_pages", "      max_pages: 10000000000000000", "targets[example_news].params.max_pages", "too large"),
    ("      item_selector", '      item_selector: "ul[["', "targets[example_news].params.item_selector", "CSS"),
    ("      title_selector", "      title_selector: '>>'", "targets[example_news].params.title_selector", "CSS"),
    ("      ignore_selectors", "      ignore_selectors: [p, '[[']", "targets[example_news].params.ignore_selectors[1]", "CSS"),
    ("      recheck_days", "      recheck_days: -3", "targets[example_news].params.recheck_days", "greater than or equal"),
]  # fmt: skip


def problems_of(text: str) -> list[Problem]:
    with pytest.raises(InvalidInputError) as caught:
        parse_file(text)
    return caught.value.problems


def replaced(start: str, line: str) -> tuple[str, int]:
    """GOOD with the one line that starts with `start` replaced, and that line's number."""
    lines = GOOD.splitlines()
    (number,) = [n for n, old in enumerate(lines, 1) if f"{old}\n".startswith(start)]
    lines[number - 1] = line
    return "\n".join(lines) + "\n", number


def test_the_good_file_is_good() -> None:
    file = parse_file(GOOD)
    (site,), (target,) = file.sites, file.targets
    assert (site.code, site.timezone, site.http.timeout_sec) == ("example", "Asia/Shanghai", 30)
    assert (target.schedule, target.interval_sec, target.tags) == ("0 3 * * *", 0.5, ["news"])
    assert file.rate_groups[0].host_suffix == "gd.gov.cn"


@pytest.mark.parametrize(
    ("start", "line", "field", "words"), WRONG, ids=[f"{f}-{n}" for n, (_, _, f, _) in enumerate(WRONG)]
)
def test_each_field_wrong_once(start: str, line: str, field: str, words: str) -> None:
    text, number = replaced(start, line)
    found = problems_of(text)
    named = [problem for problem in found if problem.field == field]
    assert named, found
    assert named[0].line == number
    assert words in named[0].message
    # A wrong code of the site is the target's problem too; nothing else follows from anything else.
    others = {problem.field for problem in found} - {field}
    assert others <= ({"targets[example_news].site"} if field.endswith(".code") else set())
    assert f"line {number}, {field}: " in str(InvalidInputError(found))


def test_all_problems_are_told_together_in_the_order_of_the_file() -> None:
    text = GOOD
    for start, line, _, _ in (WRONG[1], WRONG[5], WRONG[13], WRONG[16], WRONG[42], WRONG[60]):
        lines = text.splitlines()
        number = next(n for n, old in enumerate(lines) if f"{old}\n".startswith(start))
        lines[number] = line
        text = "\n".join(lines) + "\n"
    found = problems_of(text)
    fields = [problem.field for problem in found]
    for _, _, field, _ in (WRONG[1], WRONG[5], WRONG[13], WRONG[16], WRONG[42], WRONG[60]):
        assert field in fields
    assert [problem.line for problem in found] == sorted(problem.line or 0 for problem in found)


def test_every_field_of_the_specification_is_wrong_once() -> None:
    keys = {line.strip(" -").partition(":")[0] for line in GOOD.splitlines()}
    structure = {"defaults", "rate_groups", "sites", "targets", "http", "retry", "params"}
    free_text = {"first_list_url", "content_selector"}  # checked as list_url and title_selector are
    tried = {start.strip(" -\n").partition(":")[0] for start, _, _, _ in WRONG}
    missing = {
        key
        for key in keys - structure - free_text
        if not any(key.startswith(name) or name.startswith(key) for name in tried)
    }
    assert missing == set()


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("5", 1, "file", "must be a mapping"),
        ("- a\n", 1, "file", "must be a mapping"),
        ("site: []\n", 1, "site", "did you mean sites?"),
        ("sites: {}\n", 1, "sites", "must be a list"),
        ("\ndefaults: []\n", 2, "defaults", "must be a mapping"),
        ("sites:\n  - example\n", 2, "sites[0]", "must be a mapping"),
        ("sites:\n  - name: x\n    base_url: http://a.example/\n", 2, "sites[0].code", "is missing"),
        ("sites:\n  - code: x\n", 2, "sites[x].base_url", "is missing"),
        ("targets:\n  - code: x\n", 2, "targets[x].site", "is missing"),
        ("targets:\n  - code: x\n", 2, "targets[x].handler", "is missing"),
        ("sites:\n  - code: x\n    http: 5\n    base_url: http://a/\n", 3, "sites[x].http", "must be a mapping"),
        ("sites:\n  - code: x\n    http:\n    base_url: http://a/\n", 3, "sites[x].http", "must be a mapping"),
        ("sites:\n  - &a {code: x, base_url: http://a/}\n  - *a\n", 3, "sites[1]", "repeats another value"),
        ("sites:\n  - {code: x, base_url: http://a/}\n  - {code: x, base_url: http://b/}\n", 3, "sites[x].code", "first on line 2"),
    ],
)  # fmt: skip
def test_a_wrong_structure_names_its_line(text: str, line: int, field: str, words: str) -> None:
    found = [problem for problem in problems_of(text) if problem.field == field]
    assert found
    assert found[0].line == line
    assert words in found[0].message


@pytest.mark.parametrize("text", ["", "# nothing\n", "sites:\n", "sites: []\ntargets: null\n", "{}"])
def test_a_file_may_say_nothing(text: str) -> None:
    assert parse_file(text) == parse_file("")


def test_codes_stand_once() -> None:
    text = (
        GOOD
        + "  - {code: example_news, site: example, handler: crawl, params: {list_url: x, max_pages: 1, item_selector: a}}\n"
    )
    (problem,) = problems_of(text)
    assert (problem.field, problem.line) == ("targets[example_news].code", GOOD.count("\n") + 1)
    assert "first on line 29" in problem.message


def test_the_same_group_stands_once_however_it_is_written() -> None:
    text = "rate_groups:\n- {key: a, adapter: list, host_suffix: GD.gov.cn}\n- {key: b, adapter: list, host_suffix: .gd.gov.cn}\n"
    (problem,) = problems_of(text)
    assert (problem.line, problem.field) == (3, "rate_groups[1].host_suffix")


def test_the_end_is_later_than_the_start() -> None:
    text, _ = replaced("    start_at", "    start_at: 2026-01-31T03:00:00+08:00")
    text = text.replace("end_at: null", "end_at: 2026-01-30T19:00:00Z")
    (problem,) = problems_of(text)
    assert problem.field == "targets[example_news].end_at"
    assert "later than start_at" in problem.message


def test_times_are_kept_in_utc() -> None:
    text, _ = replaced("    start_at", "    start_at: 2026-01-31T03:00:00+08:00")
    assert parse_file(text).targets[0].start_at == datetime(2026, 1, 30, 19, tzinfo=UTC)


def test_a_wrong_default_is_told_once() -> None:
    targets = [
        f"  - {{code: t{n}, site: s, handler: python, params: {{function: 'os.path:join'}}}}\n"
        for n in range(5)
    ]
    text = (
        "defaults: {overlap: never}\nsites: [{code: s, base_url: http://a.example/}]\ntargets:\n"
        + "".join(targets)
    )
    (problem,) = problems_of(text)
    assert (problem.line, problem.field) == (1, "defaults.overlap")


def test_defaults_hold_for_targets_that_do_not_say_otherwise() -> None:
    file = parse_file(
        """
defaults: {interval_sec: 2, retry: {times: 5}, handler: crawl, params: {item_selector: a, max_pages: 1}}
sites: [{code: s, base_url: http://a.example/}]
targets:
  - {code: one, site: s, params: {list_url: x}}
  - {code: two, site: s, interval_sec: 7, retry: {wait_sec: 1}, params: {list_url: y, item_selector: b}}
"""
    )
    one, two = file.targets
    assert (one.interval_sec, one.retry.times, one.retry.wait_sec) == (2, 5, 300)
    assert (two.interval_sec, two.retry.times, two.retry.wait_sec) == (7, 5, 1)
    assert one.params == {"item_selector": "a", "max_pages": 1, "list_url": "x"}
    assert two.params == {"item_selector": "b", "max_pages": 1, "list_url": "y"}


@pytest.mark.parametrize(
    "value", ["http://政府.中国/", "http://[2001:db8::1]:8080/x", "https://user:pw@a.example/"]
)
def test_sound_urls_are_taken(value: str) -> None:
    text, _ = replaced("    base_url", f'    base_url: "{value}"')
    assert parse_file(text).sites[0].base_url == value


def test_no_message_repeats_a_secret() -> None:
    secret: Any = "s3cret"
    text, _ = replaced("      headers", f'      headers: {{Authorization: "{secret}\\n"}}')
    text = text.replace("proxy: null", f"proxy: 'ftp://me:{secret}@proxy:1'")
    assert secret not in str(InvalidInputError(problems_of(text)))
