"""Pages speak English or Chinese: as their user chose, else as the browser says."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from flask import Flask
from selectolax.lexbor import LexborHTMLParser
from sqlalchemy import select
from sqlalchemy.orm import Session

import webqueue
from tests.helpers.admin import fill, finished_job
from tests.helpers.browsing import Browser
from webqueue import cron
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.handlers import registry
from webqueue.models import Document, Job, RateKey, Target, User
from webqueue.sentences import say, say_some
from webqueue.web.languages import told

PACKAGE = Path(webqueue.__file__).parent

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}


@pytest.mark.parametrize(
    ("said", "tag"),
    [
        (None, "en"),
        ("", "en"),
        ("*", "en"),
        ("zh-CN", "zh-CN"),
        ("zh-CN,en;q=0.8", "zh-CN"),
        ("ZH-hans-cn;q=0.9, en;q=0.8", "zh-CN"),
        ("zh-TW", "zh-CN"),
        ("en-GB,zh-CN;q=0.9", "en"),
        ("fr-FR,zh;q=0.5,en;q=0.4", "zh-CN"),
        ("zh;q=0, fr", "en"),
        ("zhx-", "en"),
        ("de", "en"),
        (";;,=q=", "en"),
    ],
)
def test_the_login_speaks_the_language_of_the_browser(app: Flask, said: str | None, tag: str) -> None:
    headers = {} if said is None else {"Accept-Language": said}
    answer = app.test_client().get("/login", headers=headers)
    assert f'<html lang="{tag}"' in answer.text
    assert answer.headers["Content-Language"] == tag
    assert {"Accept-Language", "Cookie"} <= set(answer.vary)


def test_what_a_user_chose_weighs_more_than_the_browser(
    app: Flask, browser: Browser, database: Database
) -> None:
    assert '<html lang="zh-CN"' in browser.get("/settings", headers=CHINESE).text
    chosen = browser.post("/settings/language", language="en", headers=CHINESE)
    assert chosen.status_code == 303
    page = browser.get("/settings", headers=CHINESE).text
    assert '<html lang="en"' in page
    assert "The language is changed." in page
    browser.post("/settings/language", language="zh")
    page = browser.get("/settings").text
    assert '<html lang="zh-CN"' in page
    assert "语言已更改。" in page, "it is said in the new language"
    assert '<html lang="en"' in Browser(app, database, "viewer").get("/settings").text, "it is theirs alone"
    browser.post("/settings/language", language="", headers=CHINESE)
    assert "语言已更改。" in browser.get("/settings", headers=CHINESE).text
    assert '<html lang="en"' in browser.get("/settings").text
    with database.reading() as session:
        assert session.scalars(select(User.language).where(User.name == "admin")).one() is None


def test_a_language_that_pages_do_not_speak_is_refused(browser: Browser, database: Database) -> None:
    refused = browser.post("/settings/language", language="tlh")
    assert refused.status_code == 400
    assert "is none of en, zh" in refused.text
    with database.reading() as session:
        assert session.scalars(select(User.language)).one() is None


def test_choosing_leads_back_to_the_page_it_was_chosen_on(browser: Browser) -> None:
    back = {"Referer": "http://localhost/jobs?status=failed"}
    assert (
        browser.post("/settings/language", back, language="zh").headers["Location"] == "/jobs?status=failed"
    )
    elsewhere = {"Referer": "http://other.example/jobs"}
    assert browser.post("/settings/language", elsewhere, language="en").headers["Location"] == "/settings"


def test_a_poll_of_another_language_is_answered(browser: Browser) -> None:
    def poll_of(page: str) -> str:
        return page.partition('hx-get="')[2].partition('"')[0].replace("&amp;", "&")

    path = poll_of(browser.get("/jobs").text)
    unchanged = browser.get(path)
    assert unchanged.status_code == 204
    assert "Accept-Language" in unchanged.vary
    assert browser.get(path, headers=CHINESE).status_code == 200


def test_programs_are_answered_in_english(browser: Browser) -> None:
    missing = browser.get("/api/v1/jobs/x", headers=CHINESE)
    assert missing.status_code == 404
    assert missing.json is not None
    assert missing.json["detail"] == "There is no job 'x'."


def test_a_sentence_within_a_sentence_is_translated_whatever_its_values_are_called(app: Flask) -> None:
    with app.test_request_context(headers=CHINESE):
        with pytest.raises(InvalidInputError) as refused:
            cron.parse("0 0 3 * * *", "Europe/Brlin")
        schedule, zone = (told(problem.message) for problem in refused.value.problems)
        assert schedule == "'0 0 3 * * *' 有 6 个字段；必须正好是五个：分 时 日 月 星期。不支持秒或年的字段。"
        assert zone == "没有时区 'Europe/Brlin'。是否想写 Europe/Berlin？"
        assert told(say_some("%(count)s job", "%(count)s jobs", 3)) == "3 jobs", "what is in no catalog stays"
        odd = say("%(string)s %(num)s %(one)s %(message)s", string=1, num=2, one=3, message=4)
        assert told(odd) == "1 2 3 4"


def test_stored_causes_are_said_in_chinese_and_stay_english_for_programs(
    browser: Browser, database: Database
) -> None:
    fill(database)

    def block(session: Session) -> None:
        key = session.get_one(RateKey, "shop.example.com")
        key.cooldown_cause = "HTTP 429 from shop.example.com"

    database.run(block)
    for path in ("/", "/rate-keys", "/rate-keys/shop.example.com", "/jobs?status=queued"):
        page = browser.get(path, headers=CHINESE).text
        assert "shop.example.com 返回 HTTP 429" in page, path
        assert "HTTP 429 from" not in page.replace("HTTP 429 from shop.example.com, Retry-After", ""), path
    told_to_programs = browser.get("/api/v1/rate-keys/shop.example.com", headers=CHINESE)
    assert told_to_programs.json is not None
    assert told_to_programs.json["not_before"]["cause"] == "HTTP 429 from shop.example.com"


def test_what_is_wrong_with_a_form_is_told_in_chinese(browser: Browser, example: None) -> None:
    fields = {
        "code": "new",
        "site": "example",
        "handler": "crawl",
        "interval_sec": "soon",
        "schedule": "61 * * * *",
    }
    answer = browser.post("/targets/new", CHINESE, **fields, **{"params.max_pages": "0"})
    assert answer.status_code == 422
    assert "没有保存任何内容。" in answer.text
    for said in ("不是数字", "“分”字段为", "必填", "应大于或等于 1"):
        assert said in answer.text, said
    assert not [text for text in english_in(answer.text) if text != "text"]


# What a crawl, a person or an installation wrote; it is shown as it is.
DATA = re.compile(
    r"HTTP 429 from shop\.example\.com, Retry-After 1800 s|The site's owner asked|3\.1 pages/s|"
    r"Links on page 1: 4, under half the median of the last 10 runs \(20\)\.|"
    r"No link matched .*|List page 4 has no link|Kept a copy of the page|"
    r"The crawl failed|title: <img.*|.*right to left|A link that is( none)?|Second line\.|city notices|<img src=x.*|"
    r"note: 市政府公告|(?:各区人民政府: ?)+"
)
# Of the user, of a document, of a pause; and the words of a parameter, as files have them.
NAMES = frozenset({"admin", "text", "The site's owner asked", "nothing", "document"})
ENGLISH = re.compile(r"[A-Za-z']{2,}(?: [A-Za-z'-]{2,}){2,}")
PLACEHOLDER = re.compile(r"%\(\w+\)s")
# What holds no words of webqueue's: the names of fields in the audit log, and what is written as code.
WORDLESS = "script, style, code, kbd, pre, .mono, td.wide .sub b"


def shown_texts(page: str) -> list[str]:
    """What a person reads or hears of a page: its texts, and the attributes that hold words."""
    tree = LexborHTMLParser(page.replace("<wbr>", ""))
    for node in tree.css(WORDLESS):
        node.decompose()
    root = tree.root
    assert root is not None
    texts = [node.text_content or "" for node in root.traverse(include_text=True) if node.tag == "-text"]
    for name in ("aria-label", "title", "placeholder", "data-l", "data-confirm", "data-yes"):
        texts += [node.attributes.get(name) or "" for node in tree.css(f"[{name}]")]
    return [" ".join(text.split()) for text in texts if text.strip()]


@cache
def english_of_the_catalog() -> re.Pattern[str]:
    """Every English message whose Chinese is another, as it would stand alone in a page."""
    with (PACKAGE / "translations/zh/LC_MESSAGES/messages.po").open("rb") as opened:
        catalog = read_po(opened, locale="zh")
    pieces = set()
    for message in catalog:
        said = message.string if isinstance(message.string, str) else "".join(message.string or ())
        for english in [message.id] if isinstance(message.id, str) else message.id:
            if english and english != said and re.search("[A-Za-z]{3}", PLACEHOLDER.sub("", english)):
                plain = re.sub(r"<[^>]+>", "", english)
                pieces.add(".+?".join(map(re.escape, PLACEHOLDER.split(plain))))
    return re.compile("|".join(sorted(pieces)))


def english_in(page: str) -> list[str]:
    """The texts of a page that are English, and not data."""
    known = english_of_the_catalog()
    return [
        text
        for text in shown_texts(page)
        if text not in NAMES and (known.fullmatch(own := DATA.sub("", text)) or ENGLISH.search(own))
    ]


def addresses(app: Flask, session: Session) -> list[str]:
    """A page of each kind, with what the example has."""
    jobs = [job.id for job in session.scalars(select(Job).order_by(Job.seq))]
    documents = session.scalars(select(Document.id)).all()
    keys = session.scalars(select(RateKey.key)).all()
    targets = session.scalars(select(Target.code)).all()
    fixed = [
        str(rule)
        for rule in app.url_map.iter_rules()
        if "GET" in (rule.methods or ())
        and not rule.arguments
        and str(rule) != "/login"  # leads away who is logged in
        and not str(rule).startswith(("/api/", "/metrics", "/healthz", "/readyz"))
        and not str(rule).endswith((".csv", ".jsonl"))
    ]
    return [
        *fixed,
        *(f"/jobs/{job}" for job in jobs),
        *(f"/documents/{number}" for number in documents),
        *(f"/rate-keys/{key}" for key in keys),
        *(f"/targets/{code}{more}" for code in targets for more in ("", "/edit")),
        *(f"/targets/new?handler={kind}" for kind in registry.kinds()),
        "/sites/example",
        "/targets?select=1",
        "/targets?q=nothing+fits",
        "/jobs?select=1",
        "/jobs?status=failed&finished=7d&source=schedule",
        "/jobs?status=cancelling",
        "/rate-keys?state=stuck",
        "/rate-keys?url=https://www.example.org/",
        "/schedule?past=skipped",
        "/documents?q=no",
        "/documents?target=nothing",
        "/nowhere",
        "/jobs/nowhere",
        "/targets/preview?schedule=0+3+*+*+1-5&timezone=Europe/Berlin",
        "/targets/preview?schedule=61+3+*+*+*&timezone=Europe/Brlin",
    ]


def test_no_page_says_something_in_english_to_who_reads_chinese(
    app: Flask, browser: Browser, database: Database
) -> None:
    fill(database)
    with database.reading() as session:
        paths = addresses(app, session)
    assert len(paths) > 60
    found = {
        path: english for path in paths if (english := english_in(browser.get(path, headers=CHINESE).text))
    }
    nobody = app.test_client()
    found["/login"] = english_in(nobody.get("/login", headers=CHINESE).text)
    found["/setup/x"] = english_in(nobody.get("/setup/x", headers=CHINESE).text)
    found = {path: english for path, english in found.items() if english}
    assert not found, "\n".join(f"{path}: {english}" for path, english in found.items())


INLINE = re.compile(r"</?(?:a|b|code|span|strong|time|wbr)\b[^<>]*>")
HAN = "[\u4e00-\u9fff]"
# Latin punctuation between Chinese parts, also before a number with its Chinese unit; two sentences with a blank between.
BADLY_JOINED = re.compile(rf"{HAN}[,;:](?:\s|$)|[,;:] {HAN}|[,;:] #?\d+ {HAN}|{HAN}\.(?:\s|$)|[。；] {HAN}")


def test_parts_are_joined_as_chinese_joins_them(app: Flask, browser: Browser, database: Database) -> None:
    fill(database)
    with database.reading() as session:
        paths = addresses(app, session)
    found = []
    for path in paths:
        page = INLINE.sub("", browser.get(path, headers=CHINESE).text)
        found += [f"{path}: {text}" for text in shown_texts(page) if BADLY_JOINED.search(DATA.sub("", text))]
    assert found == [], "\n".join(found)


def test_a_failure_without_an_error_is_told_in_chinese(
    browser: Browser, example: None, database: Database
) -> None:
    database.run(lambda s: finished_job(s, "news", ago=timedelta(minutes=5), seconds=3, status="failed"))
    assert english_in(browser.get("/", headers=CHINESE).text) == []


def test_the_same_pages_are_english_without_a_language(browser: Browser, database: Database) -> None:
    fill(database)
    assert len(english_in(browser.get("/").text)) > 30, "the check above finds English"
    assert not re.search("[\u4e00-\u9fff]", browser.get("/").text.replace("简体中文", ""))
