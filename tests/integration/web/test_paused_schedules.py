"""A key that nothing starts because its schedules are paused is not told as one that is started by hand."""

from __future__ import annotations

from tests.helpers.browsing import Browser
from webqueue.database import Database


def test_paused_schedules_are_told_where_the_next_start_would_stand(
    browser: Browser, example: None, database: Database
) -> None:
    key = "/rate-keys/www.example.org"
    for path in ("/rate-keys", key):
        assert "paused schedules" not in browser.get(path).text
    assert browser.post("/targets/news/pause").status_code == 303
    listed = browser.get("/rate-keys").text
    assert "paused schedules" in listed
    assert "only by hand" not in listed
    assert "The schedules of its targets are paused." in browser.get(key).text
    assert browser.post("/targets/news/resume").status_code == 303
    assert "paused schedules" not in browser.get("/rate-keys").text
