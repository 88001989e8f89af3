"""What webqueue has stored in English is said in the language of the reader, and stays English for programs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from tests.helpers.admin import finished_job, log_lines, running_job
from tests.helpers.browsing import Browser
from webqueue import clock
from webqueue.database import Database
from webqueue.models import Delivery, DeliveryStatus, Job

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}
URL = "http://www.example.org/news/index.html"
NO_LINK = (
    f"No link on list page 1: item_selector 'ul.list a, ol a' matches no link at {URL}. "
    "Compare it with the copy of the page that was kept."
)
NO_LINK_SAID = f"列表第 1 页没有链接：在 {URL} 上，item_selector 'ul.list a, ol a' 没有匹配到链接。请与保留的页面副本对照。"
UNREACHED = f"List page 2 could not be read: {URL}: no connection to www.example.org port 80: Connection refused (3 tries)."
UNREACHED_SAID = (
    f"无法读取列表第 2 页：{URL}：无法连接 www.example.org 端口 80：Connection refused（尝试 3 次）。"
)
FEWER = "3 of 4 pages have no text."
SKIPPED = "overlap: job #8 was still running, and its target says skip"
LINES = {
    "List page 1: 20 links, 18 new, 2 known": "列表第 1 页：20 个链接，18 篇新增，2 篇已知",
    f"Article failed: HTTP 500 from {URL}": f"文章失败：{URL} 返回 HTTP 500",
    "stop requested by admin": "admin 请求停止",
    "restart_during_run (recovery attempt 1/3)": "运行期间重启（第 1/3 次恢复）",
}
FOREIGN = "my own program: nothing was found, said a server"


def unescaped(page: str) -> str:
    return page.replace("&#39;", "'")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NO_LINK, NO_LINK_SAID),
        (UNREACHED, UNREACHED_SAID),
        (
            f"{FOREIGN} | abandoned after 3 restart recoveries",
            f"{FOREIGN} | 故障后恢复 3 次之后放弃",
        ),
        (FOREIGN, FOREIGN),
    ],
)
def test_an_error_is_said_in_chinese_wherever_it_stands(
    browser: Browser, example: None, database: Database, error: str, said: str
) -> None:
    def fail(session: Session) -> str:
        job = finished_job(
            session, "news", ago=timedelta(minutes=2), seconds=3, status="failed", error_msg=error
        )
        return job.id

    job = database.run(fail)
    for path in ("/", "/jobs", f"/jobs/{job}"):
        page = unescaped(browser.get(path, headers=CHINESE).text)
        assert said in page, path
        assert said == error or error not in page, path
        assert error in unescaped(browser.get(path).text), path
    told = browser.get(f"/api/v1/jobs/{job}", headers=CHINESE).json
    assert told is not None
    assert told["error_msg"] == error
    assert error in browser.get("/jobs.csv", headers=CHINESE).text


def test_what_is_to_be_looked_at_and_what_was_skipped_is_said_in_chinese(
    browser: Browser, example: None, database: Database
) -> None:
    def make(session: Session) -> str:
        finished_job(session, "news", ago=timedelta(minutes=9), seconds=3, attention=FEWER)
        job = finished_job(
            session, "news", ago=timedelta(minutes=2), seconds=0, status="skipped", error_msg=SKIPPED
        )
        return job.id

    skipped = database.run(make)
    assert "4 页中有 3 页没有正文。" in browser.get("/", headers=CHINESE).text
    page = browser.get(f"/jobs/{skipped}", headers=CHINESE).text
    assert "重叠：任务 #8 当时仍是“运行中”，而其目标设为 skip" in page


def test_lines_of_a_log_and_the_progress_are_said_in_chinese(
    browser: Browser, example: None, database: Database
) -> None:
    def make(session: Session) -> str:
        job = running_job(
            session,
            "news",
            progress_current=1,
            progress_total=20,
            progress_message="articles of list page 3: 通知",
        )
        log_lines(session, job, *LINES, FOREIGN)
        return job.id

    job = database.run(make)
    page = browser.get(f"/jobs/{job}", headers=CHINESE).text
    assert "列表第 3 页的文章：通知" in page
    for line, said in LINES.items():
        assert said in page
        assert line not in page
    assert FOREIGN in page
    downloaded = browser.get(f"/jobs/{job}/log.txt", headers=CHINESE).text
    assert all(line in downloaded for line in LINES)


def test_figures_of_a_run_are_said_in_chinese(browser: Browser, example: None, database: Database) -> None:
    result = {
        "stopped_because": "time limit of 60 s",
        "failures": [f"HTTP 500 from {URL}"],
        "rag_export": {"status": "failed", "error": "HTTP 502 from the endpoint: sorry"},
    }

    def make(session: Session) -> Job:
        return finished_job(session, "news", ago=timedelta(minutes=2), seconds=60, result=result)

    page = browser.get(f"/jobs/{database.run(make).id}", headers=CHINESE).text
    assert "时限 60 秒" in page
    assert f"{URL} 返回 HTTP 500" in page


def test_what_keeps_a_message_back_is_said_in_chinese(
    browser: Browser, example: None, database: Database
) -> None:
    def make(session: Session) -> None:
        now = clock.now(session)
        session.add(
            Delivery(
                status=DeliveryStatus.QUEUED,
                retry_at=now,
                kind="message",
                dedupe_key="one",
                payload={"target": "mail"},
                attempts=1,
                last_error="mail did not take it: no reason given",
                created_at=now,
            )
        )

    database.run(make)
    assert "mail 未接受：没有说明原因" in browser.get("/settings/notifications", headers=CHINESE).text
