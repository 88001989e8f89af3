"""The databases that the tests are given: both engines, migrated, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text

from webqueue import settings as webqueue_settings
from webqueue.database import Database
from webqueue.settings import Settings


@pytest.fixture(scope="module", autouse=True)
def _settings_of_whoever_runs_the_tests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBQUEUE_THREADS", "5")
        yield


def test_the_engine_is_the_one_of_the_test_s_name(database: Database, engine_name: str) -> None:
    assert database.is_sqlite == (engine_name == "sqlite")


@pytest.mark.parametrize("time", [1, 2])
def test_each_test_gets_migrated_tables_without_rows(database: Database, time: int) -> None:
    with database.transaction() as session:
        assert session.execute(text("SELECT count(*) FROM sites")).scalar_one() == 0
        session.execute(text("CREATE TABLE left_by_the_other_test (n integer)"))
    with database.reading() as session:
        assert "left_by_the_other_test" in inspect(session.connection()).get_table_names()


def test_a_database_can_be_opened_twice(database: Database, open_database: Callable[[], Database]) -> None:
    with database.transaction() as session:
        session.execute(text("CREATE TABLE seen (n integer)"))
    with open_database().reading() as session:
        assert session.execute(text("SELECT count(*) FROM seen")).scalar_one() == 0


def test_an_empty_database_is_empty(empty_database_url: str) -> None:
    engine = create_engine(empty_database_url)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_settings_name_the_test_s_own_instance(settings: Settings, database_url: str, instance: Path) -> None:
    assert settings.url == database_url
    assert settings.instance_path == instance


def test_settings_from_outside_do_not_reach_the_tests(
    monkeypatch: pytest.MonkeyPatch, instance: Path
) -> None:
    assert webqueue_settings.load(instance_path=instance).threads == 8
