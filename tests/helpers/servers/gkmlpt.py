"""A server that behaves like the open government platform of Guangdong: columns of articles as JSON, and their pages."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from tests.helpers.servers.base import Exchange, Site, not_found

BEIJING: Final = timezone(timedelta(hours=8))
FIRST: Final = datetime(2024, 3, 1, 9, 30, tzinfo=BEIJING)


@dataclass(frozen=True)
class Post:
    """One article of a column."""

    id: int
    title: str
    text: str
    published: datetime


class GkmlptSite(Site):
    """`/gkmlpt/api/all/COLUMN?page=N&sid=SITE`, newest first, and `/gkmlpt/content/4/4321/post_ID.html`.

    As on the platform: beyond the last page the list is empty, an unknown column is an empty list too, a wrong `sid`
    answers nothing, and without a page number it is page 1. Titles have entities and marks of highlighting.

    Args:
        folder: path of the department, where several share the host.
        columns: articles by column.
        per_page: articles on a page.
        times_as: `unix` or `text`.
    """

    def __init__(
        self,
        columns: dict[int, int],
        *,
        folder: str = "",
        per_page: int = 20,
        sid: str = "755001",
        times_as: str = "unix",
    ) -> None:
        self.folder = folder
        self.per_page = per_page
        self.sid = sid
        self.times_as = times_as
        self.columns = {
            column: [_post(column, number) for number in range(1, count + 1)]
            for column, count in columns.items()
        }
        self.changed: Callable[[dict[str, Any]], Any] = lambda answer: answer

    def add(self, column: int) -> Post:
        """Publish an article."""
        post = _post(column, len(self.columns[column]) + 1)
        self.columns[column].append(post)
        return post

    def path_of(self, post: Post) -> str:
        """The path of an article's page."""
        return f"{self.folder}/gkmlpt/content/4/{post.id // 1000}/post_{post.id}.html"

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        listed = re.fullmatch(re.escape(self.folder) + r"/gkmlpt/api/all/(\d+)", path)
        if listed:
            self._send_list(exchange, int(listed[1]))
            return
        for posts in self.columns.values():
            for post in posts:
                if self.path_of(post) == path:
                    exchange.send(_page(post))
                    return
        not_found(exchange)

    def _send_list(self, exchange: Exchange, column: int) -> None:
        query = exchange.request.query
        posts = sorted(self.columns.get(column, []), key=lambda post: post.published, reverse=True)
        if query.get("sid", [self.sid]) != [self.sid]:
            posts = []
        first = (int(query.get("page", ["1"])[0]) - 1) * self.per_page
        host = exchange.request.headers["host"]
        answer = {
            "articles": [self._entry(post, host, column) for post in posts[first : first + self.per_page]],
            "classify": {"id": column, "name": f"栏目{column}"},
            "total": len(posts),
        }
        exchange.send(
            json.dumps(self.changed(answer), ensure_ascii=False),
            content_type="application/json; charset=utf-8",
        )

    def _entry(self, post: Post, host: str, column: int) -> dict[str, Any]:
        when: Any = int(post.published.timestamp())
        if self.times_as == "text":
            when = post.published.strftime("%Y-%m-%d %H:%M:%S")
        url = f"http://{host}{self.path_of(post)}"
        return {
            "id": post.id,
            "title": f"{html.escape(post.title)}<br/>",
            "url": url,
            "post_url": url,
            "date": post.published.strftime("%Y-%m-%d"),
            "display_publish_time": when,
            "publisher": "市商务局",
            "classify_main_name": f"栏目{column}",
        }


def _post(column: int, number: int) -> Post:
    return Post(
        column * 1_000_000 + number,
        f"关于印发《第{number}号通知》的通知 & 附件",
        f"各有关单位：现将第{number}号通知印发给你们，请认真贯彻执行。施行中如遇问题，请径向市商务局反映。",
        FIRST + timedelta(days=number),
    )


def _page(post: Post) -> str:
    title = html.escape(post.title)
    return (
        f'<!doctype html><html lang="zh-CN"><head><meta charset="utf-8"><title>{title}</title></head><body>'
        f'<h1 class="title">{title}</h1><div class="article-content"><p>{post.text}</p>'
        f'<p><a href="/files/{post.id}.pdf">附件：{post.id}.pdf</a></p></div></body></html>'
    )
