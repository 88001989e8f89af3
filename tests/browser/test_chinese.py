"""The admin as somebody meets it whose browser asks for Chinese."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from sqlalchemy import select

from tests.browser.conftest import BrowserPage
from tests.browser.looks import misfits
from tests.helpers.admin import PASSWORD, Admin, fill
from tests.helpers.axe import grave_violations
from tests.helpers.pages import every_page, one_of_each_kind
from webqueue.models import Job

CHINESE = "zh-CN"


def running(admin: Admin) -> Job:
    with admin.database.reading() as session:
        return session.scalars(select(Job).where(Job.status == "running")).one()


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no script"])
def test_a_chinese_browser_runs_cancels_and_chooses(
    admin: Admin, browser_page: BrowserPage, console_errors: list[str], javascript: bool
) -> None:
    admin.login_link()
    fill(admin.database)
    job = running(admin)
    page = browser_page(javascript=javascript, locale=CHINESE)
    page.goto(f"{admin.url}/login")
    expect(page.get_by_role("heading", name="登录")).to_be_visible()
    page.get_by_label("名称").fill("admin")
    page.get_by_label("密码").fill("not it")
    page.get_by_role("button", name="登录").click()
    expect(page.get_by_role("alert")).to_have_text("名称或密码错误。")
    console_errors.clear()  # the browser notes the refusal
    page.get_by_label("密码").fill(PASSWORD)
    page.get_by_role("button", name="登录").click()
    expect(page.get_by_role("heading", name="概览")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", CHINESE)

    page.get_by_role("link", name="目标", exact=True).click()
    page.get_by_role("button", name="立即运行：gz_notices").click()
    expect(page.get_by_role("status")).to_contain_text("已排队：#")

    page.goto(f"{admin.url}/jobs/{job.id}")
    page.locator("#head").get_by_role("button", name="取消").click()
    asked = page.get_by_role("dialog") if javascript else page.locator("main")
    expect(asked).to_contain_text("会在当前请求结束后停止")
    asked.get_by_role("button", name="取消任务").click()
    expect(page.locator("#why")).to_contain_text("正在取消")

    page.goto(f"{admin.url}/settings")
    page.get_by_label("English").check()
    page.get_by_role("button", name="使用此语言").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("The language is changed.")
    page.goto(f"{admin.url}/jobs/{job.id}")
    expect(page.locator("#why")).to_contain_text("Cancelling.")
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("#why")).to_contain_text("正在取消")
    expect(page.get_by_role("button", name="简体中文")).to_have_attribute("aria-pressed", "true")


def test_what_the_script_writes_is_chinese_too(
    admin: Admin, browser_page: BrowserPage, console_errors: list[str]
) -> None:
    page = browser_page(locale=CHINESE)
    page.goto(admin.login_link())
    fill(admin.database)
    page.goto(f"{admin.url}/rate-keys/shop.example.com")
    expect(page.locator("#updated")).to_have_text(re.compile(r"更新于 \d\d:\d\d:\d\d UTC"))
    expect(page.locator("#now time[data-relative]").first).to_have_text(re.compile(r"\d+ 分钟后"))
    page.context.set_offline(True)
    page.evaluate("document.dispatchEvent(new CustomEvent('webqueue:changed'))")
    expect(page.locator("#updated")).to_have_text(re.compile("没有响应"))
    console_errors.clear()  # the browser notes that it is offline


def test_every_page_fits_and_is_readable_in_chinese(admin: Admin, browser_page: BrowserPage) -> None:
    page = browser_page(locale=CHINESE)
    page.goto(admin.login_link())
    fill(admin.database)
    wrong = []
    for path in one_of_each_kind(admin.app, every_page(admin)):
        page.goto(admin.url + path)
        wrong += [f"{path}: {one}" for one in (*misfits(page), *grave_violations(page))]
    assert not wrong, "\n".join(wrong)
