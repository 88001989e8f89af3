"""Importing and exporting, on both databases."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, select

from webqueue import config, jobs
from webqueue.config import ImportReport
from webqueue.database import Database
from webqueue.errors import ConflictError, InvalidInputError
from webqueue.models import AuditEntry, IntervalChange, Job, RateGroupRow, RateKey, Site, Target

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILE = """
defaults: {interval_sec: 3}
rate_groups:
  - {key: shared, adapter: list, host_suffix: example.org, grow_interval: false, cooldown_factor: 1.5}
sites:
  - code: one
    base_url: http://www.one.example/
    timezone: Asia/Shanghai
    http: {headers: {Authorization: Bearer s3cret, X-Plain: yes please}, proxy: "http://me:s3cret@proxy.example:3128"}
  - {code: two, name: 第二, base_url: "http://www.two.example/"}
targets:
  - code: one_news
    site: one
    handler: crawl
    schedule: 0 3 * * *
    interval_sec: 7
    tags: [news]
    params: {list_url: "news/{page}.html", item_selector: ul a, max_pages: 3}
  - {code: two_all, site: two, handler: python, params: {function: "os.path:join", kwargs: {a: 1, b: [1, null, 0.5]}}}
"""


def load(database: Database, text: str = FILE, *, now: datetime = NOW, dry_run: bool = False) -> ImportReport:
    return database.run(lambda s: config.import_file(s, text, by="ann", now=now, dry_run=dry_run))


def export(database: Database, *, secrets: bool = False) -> str:
    with database.reading() as session:
        return config.export_file(session, secrets=secrets)


def target(database: Database, code: str = "one_news") -> Target:
    with database.reading() as session:
        return session.get_one(Target, code)


def site(database: Database, code: str = "one") -> Site:
    with database.reading() as session:
        return session.get_one(Site, code)


def audit(database: Database) -> list[AuditEntry]:
    with database.reading() as session:
        return list(session.scalars(select(AuditEntry).order_by(AuditEntry.id)))


def change(database: Database, code: str, **values: Any) -> None:
    def work(session: Any) -> None:
        for name, value in values.items():
            setattr(session.get_one(Target, code), name, value)

    database.run(work)


def submit(database: Database, code: str = "one_news") -> str:
    return database.run(lambda s: jobs.submit(s, code, source="manual", by="ann")).id


def test_an_import_creates_everything(database: Database) -> None:
    report = load(database)
    assert report.created == [
        "rate group list example.org", "site one", "site two", "target one_news", "target two_all",
    ]  # fmt: skip
    assert str(report) == "5 created, 0 changed, 0 unchanged"
    news = target(database)
    assert (news.interval_sec, news.schedule, news.ticks_from) == (7, "0 3 * * *", NOW)
    assert news.next_tick_at == datetime(2026, 3, 1, 19, tzinfo=UTC)  # 03:00 in Shanghai
    other = target(database, "two_all")
    assert (other.interval_sec, other.schedule, other.next_tick_at) == (3, None, None)
    assert (site(database).host, site(database).name) == ("www.one.example", "one")
    entries = audit(database)
    assert [(entry.by, entry.action, entry.object_name) for entry in entries][1:3] == [
        ("ann", "created", "one"),
        ("ann", "created", "two"),
    ]


def test_a_second_import_changes_nothing(database: Database) -> None:
    load(database)
    written = len(audit(database))
    report = load(database, now=NOW + timedelta(days=9))
    assert (report.created, report.changed) == ([], [])
    assert len(report.unchanged) == 5
    assert len(audit(database)) == written
    assert target(database).ticks_from == NOW
    assert target(database).changed_at == NOW


def test_what_the_file_leaves_out_stays(database: Database) -> None:
    load(database)
    change(database, "one_news", learned_interval_sec=9.5, clean_runs=2, paused_at=NOW, paused_by="bob")
    report = load(
        database,
        """
sites: [{code: one, http: {timeout_sec: 5}}]
targets: [{code: one_news, owner: bob, retry: {times: 9}, params: {max_pages: 8}}]
""",
        now=NOW + timedelta(hours=1),
    )
    assert [str(change) for change in report.changes] == [
        "site one changed: http",
        "target one_news changed: retry, owner, params",
    ]
    one, news = site(database), target(database)
    assert one.timezone == "Asia/Shanghai"
    assert one.http["timeout_sec"] == 5
    assert one.http["headers"]["Authorization"] == "Bearer s3cret"
    assert news.params == {"list_url": "news/{page}.html", "item_selector": "ul a", "max_pages": 8}
    assert (news.interval_sec, news.tags, news.retry_times, news.retry_wait_sec) == (7, ["news"], 9, 300)
    assert (news.learned_interval_sec, news.clean_runs, news.paused_by) == (9.5, 2, "bob")
    # The schedule did not change, so its ticks go on from where they were.
    assert news.ticks_from == NOW
    last = audit(database)[-1]
    assert (last.action, set(last.before or {}), (last.after or {})["owner"]) == (
        "changed",
        {"retry", "owner", "params"},
        "bob",
    )


def test_defaults_count_as_said_by_every_target_of_the_file(database: Database) -> None:
    load(database)
    load(database, "defaults: {interval_sec: 5}\ntargets: [{code: one_news}]")
    assert target(database).interval_sec == 5
    assert target(database, "two_all").interval_sec == 3


def test_null_takes_a_value_away(database: Database) -> None:
    load(database)
    load(database, "targets: [{code: one_news, schedule: null}]")
    assert (target(database).schedule, target(database).next_tick_at) == (None, None)


def test_other_params_of_another_handler_do_not_stay(database: Database) -> None:
    load(database)
    load(database, "targets: [{code: one_news, handler: python, params: {function: 'os.path:join'}}]")
    assert target(database).params == {"function": "os.path:join"}


def test_an_import_is_applied_as_a_whole_or_not_at_all(database: Database) -> None:
    load(database)
    before = export(database)
    text = FILE.replace("Asia/Shanghai", "UTC").replace("第二", "Second").replace("0 3 * * *", "0 3 * *")
    with pytest.raises(InvalidInputError) as caught:
        load(database, text)
    (problem,) = caught.value.problems
    assert (problem.field, problem.line) == ("targets[one_news].schedule", 15)
    assert export(database) == before


def test_an_import_that_fails_while_it_writes_leaves_nothing(database: Database) -> None:
    load(database)
    submit(database)
    before = export(database)
    with pytest.raises(ConflictError, match="has 1 queued or running jobs"):
        load(database, "sites: [{code: one, name: Other}]\ntargets: [{code: one_news, site: two}]")
    assert export(database) == before


def test_a_dry_run_tells_and_writes_nothing(database: Database) -> None:
    with database.reading() as session:
        report = config.import_file(session, FILE, by="ann", now=NOW, dry_run=True)
    assert len(report.created) == 5
    assert str(report).endswith("(dry run: nothing was written)")
    assert audit(database) == []
    load(database)
    before = export(database)
    report = load(database, FILE.replace("interval_sec: 7", "interval_sec: 8"), dry_run=True)
    assert report.changed == ["target one_news"]
    assert export(database) == before


def test_a_changed_schedule_counts_from_now(database: Database) -> None:
    load(database)
    later = NOW + timedelta(hours=1)
    load(database, "targets: [{code: one_news, schedule: '30 * * * *'}]", now=later)
    assert (target(database).ticks_from, target(database).next_tick_at) == (
        later,
        later + timedelta(minutes=30),
    )
    load(database, "targets: [{code: one_news, enabled: false}]", now=later)
    assert target(database).next_tick_at is None
    load(database, "targets: [{code: one_news, enabled: true, start_at: 2026-04-01T00:30:00Z}]", now=later)
    assert target(database).next_tick_at == datetime(2026, 4, 1, 0, 30, tzinfo=UTC)
    load(
        database,
        "targets: [{code: one_news, end_at: 2026-04-01T00:29:00Z, start_at: null}]",
        now=datetime(2026, 4, 1, tzinfo=UTC),
    )
    assert target(database).next_tick_at is None


def test_a_site_that_changes_its_timezone_moves_the_ticks_of_its_targets(database: Database) -> None:
    load(database)
    later = NOW + timedelta(hours=1)
    load(database, "sites: [{code: one, timezone: UTC}]", now=later)
    assert target(database).next_tick_at == datetime(2026, 3, 2, 3, tzinfo=UTC)
    load(
        database,
        "targets: [{code: one_news, timezone: Asia/Tokyo}]\nsites: [{code: one, timezone: Asia/Kolkata}]",
    )
    assert target(database).next_tick_at == datetime(2026, 3, 1, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("sites: [{code: one, rate_key: firewall}]", "firewall"),
        ("sites: [{code: one, base_url: 'http://new.one.example/'}]", "new.one.example"),
        ("rate_groups: [{key: wall, adapter: list, host_suffix: one.example}]", "wall"),
    ],
)
def test_queued_jobs_move_with_the_rate_key(database: Database, text: str, key: str) -> None:
    load(database)
    job_id = submit(database)
    load(database, text)
    with database.reading() as session:
        job = session.scalars(select(Job).where(Job.id == job_id)).one()
        assert job.rate_key == key
        assert session.get_one(RateKey, key).retry_at is not None
        assert session.get_one(RateKey, "www.one.example").retry_at is None


def test_groups_of_the_file_take_its_order(database: Database) -> None:
    database.run(lambda s: s.execute(delete(RateGroupRow)))
    names = ["a.example", "b.example", "c.example"]

    def file(*suffixes: str) -> str:
        return yaml.safe_dump(
            {"rate_groups": [{"key": "k", "adapter": "list", "host_suffix": name} for name in suffixes]}
        )

    def stored() -> list[str]:
        with database.reading() as session:
            return list(session.scalars(select(RateGroupRow.host_suffix).order_by(RateGroupRow.position)))

    load(database, file(*names))
    assert stored() == names
    assert load(database, file("c.example", "a.example")).changed == [
        "rate group list c.example",
        "rate group list a.example",
    ]
    assert stored() == ["c.example", "b.example", "a.example"]
    assert load(database, file("c.example", "a.example")).changed == []


def test_an_export_imports_back_to_no_change(database: Database) -> None:
    load(database)
    text = export(database)
    assert "s3cret" not in text
    assert "第二" in text
    report = load(database, text)
    assert (report.created, report.changed) == ([], [])
    assert site(database).http["headers"]["Authorization"] == "Bearer s3cret"
    assert site(database).http["proxy"] == "http://me:s3cret@proxy.example:3128"


def test_an_export_has_what_was_learned_and_an_import_keeps_it(database: Database) -> None:
    load(database)
    change(database, "one_news", learned_interval_sec=9.5)
    text = export(database, secrets=True)
    assert "  interval_sec: 7\n  learned_interval_sec: 9.5\n" in text
    assert text.count("learned_interval_sec") == 1

    # Here: what was learned since is newer than the file.
    change(database, "one_news", learned_interval_sec=12.0)
    assert load(database, text).changed == []
    assert target(database).learned_interval_sec == 12.0
    change(database, "one_news", learned_interval_sec=None)
    assert load(database, text).changed == []
    assert target(database).learned_interval_sec is None

    # Elsewhere: nothing is forgotten by a move.
    empty(database)
    load(database, text)
    assert target(database).learned_interval_sec == 9.5
    with database.reading() as session:
        (learned,) = session.scalars(select(IntervalChange))
        assert (learned.target_code, learned.old_sec, learned.new_sec) == ("one_news", 7, 9.5)
        assert learned.cause == "learned elsewhere, and imported by ann"
    assert export(database, secrets=True) == text


def test_a_learned_interval_that_is_none(database: Database) -> None:
    load(database)
    empty(database)
    load(
        database, FILE.replace("    interval_sec: 7\n", "    interval_sec: 7\n    learned_interval_sec: 6\n")
    )
    assert target(database).learned_interval_sec is None


def test_an_export_without_its_secrets_is_refused_elsewhere(database: Database) -> None:
    load(database)
    masked, clear = export(database), export(database, secrets=True)
    empty(database)
    with pytest.raises(InvalidInputError) as caught:
        load(database, masked)
    assert {problem.field for problem in caught.value.problems} == {
        "sites[one].http.headers.Authorization",
        "sites[one].http.headers.X-Plain",  # nobody knows what a site calls its keys
        "sites[one].http.proxy",
    }
    assert len(load(database, clear).created) == 6  # with the group that is shipped
    assert export(database, secrets=True) == clear


def test_no_secret_is_imported_for_another_server(database: Database) -> None:
    load(database)
    elsewhere = export(database).replace("http://www.one.example/", "http://evil.example/")
    with pytest.raises(InvalidInputError, match="another server") as caught:
        load(database, elsewhere)
    assert {problem.field for problem in caught.value.problems} == {
        "sites[one].http.headers.Authorization",
        "sites[one].http.headers.X-Plain",
    }


def test_a_secret_is_masked_in_the_audit_log(database: Database) -> None:
    load(database)
    load(database, FILE.replace("s3cret", "n3wsecret"))
    assert any(entry.action == "changed" for entry in audit(database))
    assert "s3cret" not in repr([(entry.before, entry.after) for entry in audit(database)])
    assert "n3wsecret" not in repr([(entry.before, entry.after) for entry in audit(database)])


def test_two_imports_at_once_both_succeed(database: Database) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(3)

    def work() -> None:
        start.wait()
        try:
            load(database)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Target)) == 2
        assert (
            session.scalar(
                select(func.count()).where(AuditEntry.action == "created", AuditEntry.object_kind == "site")
            )
            == 2
        )


def empty(database: Database) -> None:
    def work(session: Any) -> None:
        for table in (Target, Site, RateGroupRow, AuditEntry):
            session.execute(delete(table))

    database.run(work)


line = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30).filter(
    str.strip
)
codes = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,20}", fullmatch=True)
seconds = st.floats(0, 86_400) | st.integers(0, 86_400)
kwargs = st.dictionaries(
    line,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**14), 10**14) | st.floats(-1e14, 1e14) | line,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(line, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)
sites = st.fixed_dictionaries(
    {"code": codes, "name": line, "base_url": st.just("http://www.example.org/")},
    optional={
        "timezone": st.sampled_from(["UTC", "Asia/Shanghai", "America/New_York"]),
        "rate_key": st.none() | codes,
        "min_gap_sec": seconds,
        "cooldown_sec": st.none() | st.integers(0, 86_400),
        "obey_robots": st.booleans(),
        "http": st.fixed_dictionaries(
            {},
            optional={
                "headers": st.dictionaries(
                    st.sampled_from(["Cookie", "X-A", "authorization"]),
                    st.from_regex(r"[!-~]{1,20}", fullmatch=True),
                ),
                "proxy": st.sampled_from([None, "http://a:b@c:1", "http://c:3128"]),
                "timeout_sec": st.floats(0.1, 600),
            },
        ),
    },
)
targets = st.fixed_dictionaries(
    {"code": codes, "handler": st.just("python")},
    optional={
        "schedule": st.sampled_from([None, "0 3 * * *", "@daily", "*/5 * * * 1-5"]),
        "timezone": st.sampled_from([None, "Asia/Tokyo"]),
        "interval_sec": seconds,
        "start_at": st.none()
        | st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)).map(str),
        "retry": st.fixed_dictionaries(
            {}, optional={"times": st.integers(0, 100), "wait_sec": st.integers(0, 604_800)}
        ),
        "enabled": st.booleans(),
        "tags": st.lists(line, max_size=3, unique=True),
        "note": st.text(st.characters(blacklist_categories=("Cs", "Cc")) | st.just("\n"), max_size=40),
        "owner": line,
        "kwargs": kwargs,
    },
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(sites, min_size=1, max_size=3, unique_by=lambda one: str(one["code"])),
    st.lists(targets, max_size=3, unique_by=lambda one: str(one["code"])),
)
def test_any_configuration_survives_export_and_import(
    database: Database, made_sites: list[dict[str, Any]], made_targets: list[dict[str, Any]]
) -> None:
    empty(database)
    for made in made_targets:
        made["site"] = made_sites[0]["code"]
        made["params"] = {"function": "os.path:join", "kwargs": made.pop("kwargs", {})}
    load(database, yaml.safe_dump({"sites": made_sites, "targets": made_targets}, allow_unicode=True))
    clear = export(database, secrets=True)
    assert load(database, export(database)).changed == []
    assert load(database, clear).changed == []
    empty(database)
    load(database, clear)
    assert export(database, secrets=True) == clear
