"""`http` targets run by a real worker against real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from tests.conftest import Serve
from tests.helpers.pools import pool_of
from tests.helpers.servers.base import Exchange, Server, Site
from tests.helpers.waiting import wait_until
from tests.helpers.world import World
from webqueue import config, settings
from webqueue.database import Database
from webqueue.errors import InvalidInputError
from webqueue.handlers import registry
from webqueue.handlers.http import HttpHandler, HttpParameters
from webqueue.models import Document, Job, JobLog
from webqueue.settings import Settings


class Api(Site):
    """Answers by path, and redirects, refuses and blocks where it is told."""

    robots: str | bytes | None = "User-agent: *\nDisallow: /private\n"
    page = "<title>Notice 7</title><article><p>The text of notice seven, long enough to be one.</p></article>"

    def respond(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path == "/echo":
            told = {
                "method": exchange.request.method,
                "headers": dict(exchange.request.headers),
                "body": exchange.request.body.decode(),
            }
            exchange.send(json.dumps(told), content_type="application/json")
        elif path == "/page":
            exchange.send(self.page, etag=f'"{hash(self.page)}"')
        elif path == "/moved":
            exchange.redirect("/echo", 307)
        elif path == "/blocked":
            exchange.send("slow down", status=429, headers={"Retry-After": "1000"})
        elif path == "/created":
            exchange.send("", status=201)
        else:
            exchange.send("nothing here", status=404, content_type="text/plain")


@pytest.fixture
def engine_name() -> str:
    """Nothing here is new to the database."""
    return "sqlite"


@pytest.fixture
def site() -> Api:
    return Api()


@pytest.fixture
def server(site: Api, serve: Serve) -> Server:
    return serve(site)


@pytest.fixture
def world(database: Database, server: Server) -> World:
    world = World(database)
    world.add_site("api", server.url + "/")
    return world


@pytest.fixture
def pool(world: World, settings: Settings) -> Iterator[None]:
    with pool_of(world.database, settings, {"http": HttpHandler()}):
        yield


def run(world: World, **params: Any) -> Job:
    world.add_target("call", site="api", handler="http", params=params)
    return again(world)


def again(world: World, **more: Any) -> Job:
    job_id = world.submit("call", **more).id

    def found() -> Job | None:
        job = world.job(job_id)
        return job if job.finished_at is not None else None

    job = wait_until(found, message="the job to end")
    assert job is not None
    return job


@pytest.mark.usefixtures("pool")
class TestRequests:
    def test_method_headers_and_body_arrive_also_by_a_redirect(self, world: World) -> None:
        headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
        job = run(world, method="POST", url="moved", headers=headers, body='{"räka": 1}', keep="result")
        assert job.status == "done", job.error_msg
        assert job.result is not None
        told = json.loads(job.result["body"])
        assert (told["method"], told["body"]) == ("POST", '{"räka": 1}')
        assert told["headers"]["authorization"] == "Bearer secret"
        assert job.result["status"] == 200
        assert job.result["url"].endswith("/echo")
        assert job.counters["requests"] == 3  # robots.txt, the redirect, and what it leads to

    def test_nothing_is_kept_unless_it_is_said(self, world: World) -> None:
        job = run(world, url="created")
        assert job.status == "done"
        assert job.result is not None
        assert "body" not in job.result
        assert job.result["status"] == 201

    def test_another_status_than_expected_fails(self, world: World) -> None:
        job = run(world, url="created", ok_statuses=[200, 204])
        assert job.status == "failed"
        assert "HTTP 201" in (job.error_msg or "")
        assert "200, 204" in (job.error_msg or "")

    def test_one_that_is_expected_is_done(self, world: World) -> None:
        assert run(world, url="nothing", ok_statuses=[404]).status == "done"

    def test_robots_txt_is_obeyed(self, world: World, server: Server) -> None:
        job = run(world, url="private/list")
        assert job.status == "failed"
        assert "robots.txt" in (job.error_msg or "")
        assert "/private/list" not in server.paths

    @pytest.mark.parametrize("robots", ["User-agent: *\nDisallow: /private\n", None])
    def test_a_robots_txt_that_was_asked_for_is_told(
        self, world: World, site: Api, server: Server, robots: str | None
    ) -> None:
        site.robots = robots
        jobs = [run(world, url="page"), again(world)]
        with world.database.reading() as session:
            lines = [
                list(session.scalars(select(JobLog.message).where(JobLog.job_seq == job.seq))) for job in jobs
            ]
        told = [[line for line in of_job if "robots.txt" in line] for of_job in lines]
        found = "there is none" if robots is None else "read"
        assert told == [[f"robots.txt of {server.url}/: {found}; requests keep the interval"], []]

    def test_a_block_cools_the_key_down_and_is_retried(self, world: World) -> None:
        job = run(world, url="blocked")
        assert (job.error_msg or "").startswith("cooldown_abort; auto_retry_job=")
        key = world.key("127.0.0.1")
        assert key.cooldown_until is not None
        assert job.finished_at is not None
        assert (key.cooldown_until - job.finished_at).total_seconds() == pytest.approx(1000, abs=5)

    def test_another_key_s_host_is_not_asked(self, world: World) -> None:
        job = run(world, url="http://www.example.com/")
        assert job.status == "failed"
        assert "belongs to rate key www.example.com" in (job.error_msg or "")

    def test_the_answer_becomes_a_document_with_versions(self, world: World, site: Api) -> None:
        first = run(world, url="page", keep="document")
        assert first.status == "done", first.error_msg
        assert first.result is not None
        assert first.result["document"] == "new"
        second = again(world)
        assert second.result is not None
        assert second.result["not_modified"] is True
        site.page = site.page.replace("seven", "eight")
        third = again(world)
        assert third.result is not None
        assert third.result["document"] == "changed"
        with world.database.reading() as session:
            (document,) = session.scalars(select(Document)).all()
            assert (document.title, document.version) == ("Notice 7", 2)
            assert "notice eight" in document.text
            assert document.original is not None

    def test_a_trial_stores_nothing(self, world: World) -> None:
        world.add_target("call", site="api", handler="http", params={"url": "page", "keep": "document"})
        assert again(world, source="try").status == "done"
        with world.database.reading() as session:
            assert session.scalars(select(Document)).all() == []


def test_private_addresses_are_refused_unless_they_are_allowed(
    world: World, database_url: str, server: Server
) -> None:
    strict = settings.load(instance_path=world.database.instance_path, database_url=database_url)
    with pool_of(world.database, strict, {"http": HttpHandler()}):
        job = run(world, url="page")
    assert job.status == "failed"
    assert "WEBQUEUE_ALLOW_PRIVATE_ADDRESSES" in (job.error_msg or "")
    assert server.requests == []


class TestParameters:
    def check(self, **params: Any) -> Any:
        return registry.check_params("http", params, adapter="list")

    def test_defaults(self) -> None:
        assert self.check(url="/a") == HttpParameters(url="/a", method="GET", keep="nothing", ok_statuses=())

    def test_a_form_s_lines_are_numbers(self) -> None:
        assert self.check(url="/a", ok_statuses=["200", "404"]).ok_statuses == (200, 404)

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({}, "params.url"),
            ({"url": "ftp://a/"}, "params.url"),
            ({"url": "/", "method": "BREW"}, "params.method"),
            ({"url": "/", "headers": {"A B": "1"}}, "params.headers"),
            ({"url": "/", "headers": {"A": "1\r\nB: 2"}}, "params.headers"),
            ({"url": "/", "ok_statuses": [999]}, "params.ok_statuses"),
            ({"url": "/", "keep": "all"}, "params.keep"),
        ],
    )
    def test_what_is_wrong_is_named(self, params: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidInputError) as error:
            self.check(**params)
        assert error.value.problems[0].field.startswith(field)

    def test_a_form_has_words_for_every_field(self) -> None:
        for name, field in HttpParameters.model_fields.items():
            assert field.title, name
            assert field.description, name

    def test_secrets_are_masked(self) -> None:
        shown = config.masked(
            {"params": {"headers": {"Authorization": "Bearer secret", "X-Api-Key": "secret"}}}
        )
        assert "secret" not in str(shown)
