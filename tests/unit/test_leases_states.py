"""The states, groups and columns that a model of the queue protocol declares."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from sqlalchemy import Column, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.helpers.queue_models import Binary, Crawl, Errand, Key, Snapshot
from webqueue.database import UTCDateTime
from webqueue.errors import WebqueueError
from webqueue.leases import (
    ACTIVE_STATE_LEASE_SECONDS,
    RETRY_AT_MAX,
    ClaimRefusedError,
    DefaultStatusChoices,
    ModelWithQueue,
    NotInSessionError,
    StatusEnum,
    extend_choices,
)
from webqueue.models.deliveries import Delivery
from webqueue.models.jobs import Job
from webqueue.models.rate_keys import RateKey, RateKeyStatus


def column(model: Any, name: str) -> Column[Any]:
    found: Column[Any] = model.__table__.columns[name]
    return found


def default_of(model: Any, name: str) -> Any:
    default: Any = column(model, name).default
    return None if default is None else default.arg


def test_default_states() -> None:
    assert list(DefaultStatusChoices) == ["queued", "started", "paused", "sealed"]
    assert DefaultStatusChoices.choices == (
        ("queued", "Queued"),
        ("started", "Started"),
        ("paused", "Paused"),
        ("sealed", "Sealed"),
    )


def test_constants() -> None:
    assert RETRY_AT_MAX.isoformat() == "9999-01-01T00:00:00+00:00"
    assert ACTIVE_STATE_LEASE_SECONDS == 60


def test_groups_of_the_default_states() -> None:
    assert (Crawl.INITIAL_STATE, Crawl.ACTIVE_STATE) == ("queued", "started")
    assert Crawl.FINAL_STATES == ("sealed",)
    assert Crawl.FINAL_OR_ACTIVE_STATES == ("sealed", "started")
    assert Crawl.RUNNABLE_STATES == ("queued", "started")
    assert Crawl.OPEN_STATES == ("queued", "started", "paused")
    assert Crawl.warn_on_save_outside_runner


def test_groups_of_the_mixin_itself_are_those_it_would_derive() -> None:
    for group in ("FINAL_OR_ACTIVE_STATES", "RUNNABLE_STATES", "OPEN_STATES"):
        assert getattr(ModelWithQueue, group) == getattr(Crawl, group)


def test_a_model_with_its_own_groups_keeps_them() -> None:
    assert Snapshot.RUNNABLE_STATES == ("queued", "started")
    assert Snapshot.OPEN_STATES == ("queued", "started")
    assert Snapshot.FINAL_OR_ACTIVE_STATES == ("sealed", "started")


def test_groups_of_two_states() -> None:
    assert Binary.FINAL_OR_ACTIVE_STATES == ("installed", "queued")
    assert Binary.RUNNABLE_STATES == ("queued",)
    assert Binary.OPEN_STATES == ("queued",)
    assert not Binary.warn_on_save_outside_runner


def test_groups_of_a_key() -> None:
    assert Key.FINAL_OR_ACTIVE_STATES == ("leased",)
    assert Key.OPEN_STATES == ("idle", "leased")


def test_a_given_group_is_inherited_and_a_derived_one_is_not() -> None:
    class Given(ModelWithQueue):
        OPEN_STATES = (DefaultStatusChoices.QUEUED,)

    class Child(Given):
        StatusChoices = KeyStatusWithQueued
        INITIAL_STATE = KeyStatusWithQueued.QUEUED
        ACTIVE_STATE = KeyStatusWithQueued.RUNNING
        FINAL_STATES = ()

    assert Child.OPEN_STATES == ("queued",)
    assert Child.RUNNABLE_STATES == ("queued", "running")
    assert Child.FINAL_OR_ACTIVE_STATES == ("running",)


class KeyStatusWithQueued(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"


def test_an_agreeing_group_may_be_written_out() -> None:
    class Written(ModelWithQueue):
        FINAL_OR_ACTIVE_STATES = (DefaultStatusChoices.STARTED, DefaultStatusChoices.SEALED)

    assert set(Written.FINAL_OR_ACTIVE_STATES) == {"started", "sealed"}


def test_a_contradicting_group_is_refused() -> None:
    with pytest.raises(TypeError, match="FINAL_OR_ACTIVE_STATES is derived"):
        type("Wrong", (ModelWithQueue,), {"FINAL_OR_ACTIVE_STATES": ("sealed",)})


@pytest.mark.parametrize(
    ("name", "value"),
    [("INITIAL_STATE", "new"), ("ACTIVE_STATE", "busy"), ("FINAL_STATES", ("sealed", "gone"))],
)
def test_a_state_that_does_not_exist_is_refused(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"Wrong.{name}: .* is no state"):
        type("Wrong", (ModelWithQueue,), {name: value})


def test_replacing_the_states_without_the_groups_is_refused() -> None:
    with pytest.raises(TypeError, match="INITIAL_STATE: 'queued' is no state"):
        type("Wrong", (ModelWithQueue,), {"StatusChoices": RateKeyStatus})


def test_status_column() -> None:
    status = column(Crawl, "status")
    assert isinstance(status.type, String)
    assert (status.type.length, status.index, status.nullable) == (15, True, False)
    assert default_of(Crawl, "status") == "queued"


def test_retry_at_column() -> None:
    retry_at = column(Crawl, "retry_at")
    assert isinstance(retry_at.type, UTCDateTime)
    assert (retry_at.index, retry_at.nullable) == (True, True)
    assert retry_at.default is not None


def test_modified_at_is_set_by_every_write() -> None:
    modified_at = column(Crawl, "modified_at")
    assert modified_at.default is not None
    assert modified_at.onupdate is not None
    assert not modified_at.nullable


def test_fields_with_overrides() -> None:
    status = column(Binary, "status")
    assert isinstance(status.type, String)
    assert status.type.length == 16
    retry_at = column(Key, "retry_at")
    assert not retry_at.index
    assert retry_at.default is None


def test_the_first_state_of_an_undeclared_column_is_the_models() -> None:
    assert default_of(Key, "status") == "idle"


def test_a_state_longer_than_the_column_is_refused() -> None:
    with pytest.raises(ValueError, match="'installed' has more than 8 characters"):
        ModelWithQueue.StatusField(choices=Binary.StatusChoices, max_length=8)


def test_a_default_that_is_no_state_is_refused() -> None:
    with pytest.raises(ValueError, match="'queued' is none of idle, leased"):
        ModelWithQueue.StatusField(choices=RateKeyStatus)


def test_extend_choices() -> None:
    @extend_choices(DefaultStatusChoices)
    class Extended:
        """With two more."""

        ARCHIVED = "archived"
        GIVEN_UP = "given_up"

    # Type checkers do not follow a decorator that replaces a class.
    states: Any = Extended
    assert list(states) == ["queued", "started", "paused", "sealed", "archived", "given_up"]
    assert issubclass(states, StatusEnum)
    assert states.__name__ == "Extended"
    assert states.__doc__ == "With two more."
    assert states("archived").name == "ARCHIVED"
    assert states.choices[-1] == ("given_up", "Given up")
    assert ModelWithQueue.extend_choices is extend_choices


def test_extended_states_serve_a_model() -> None:
    @extend_choices(DefaultStatusChoices)
    class Extended(StrEnum):
        ARCHIVED = "archived"

    class Base(DeclarativeBase):
        pass

    class Page(ModelWithQueue, Base):
        __tablename__ = "pages"
        StatusChoices = Extended
        FINAL_STATES = (DefaultStatusChoices.SEALED, "archived")
        id: Mapped[int] = mapped_column(primary_key=True)

    assert Page.OPEN_STATES == ("queued", "started", "paused")
    assert Page.FINAL_OR_ACTIVE_STATES == ("sealed", "archived", "started")


@pytest.mark.parametrize(("name", "value"), [("QUEUED", "waiting"), ("WAITING", "queued")])
def test_extending_with_a_contradiction_is_refused(name: str, value: str) -> None:
    with pytest.raises(TypeError, match=f"More.{name} = '{value}' contradicts DefaultStatusChoices"):
        extend_choices(DefaultStatusChoices)(type("More", (), {name: value}))


def test_state_and_retry_at_are_other_names() -> None:
    crawl = Crawl(status="started", retry_at=RETRY_AT_MAX)
    assert (crawl.STATE, crawl.RETRY_AT) == ("started", RETRY_AT_MAX)
    crawl.STATE = "paused"
    crawl.RETRY_AT = None
    assert (crawl.status, crawl.retry_at) == ("paused", None)


def test_claim_verbs_refuse_where_the_model_does() -> None:
    errand = Errand()
    with pytest.raises(ClaimRefusedError, match="claimed through its key"):
        errand.claim_processing_lock()
    with pytest.raises(ClaimRefusedError, match="claimed through its key"):
        Errand.claim_for_worker(errand)


def test_a_row_without_a_session_is_not_written() -> None:
    crawl = Crawl(status="queued")
    with pytest.raises(NotInSessionError, match=r"A Crawl that belongs to no session.*safe_update") as caught:
        crawl.safe_update({"title": "x"})
    assert isinstance(caught.value, WebqueueError)
    with pytest.raises(NotInSessionError, match="claim_for_worker"):
        Crawl.claim_for_worker(crawl)


def test_a_job_is_only_claimed_through_its_key() -> None:
    with pytest.raises(ClaimRefusedError, match="section 5"):
        Job().claim_processing_lock()
    with pytest.raises(ClaimRefusedError, match="section 5"):
        Job.claim_for_worker(Job())


def test_a_rate_key_cannot_be_paused_by_the_protocol() -> None:
    key = RateKey(status=RateKeyStatus.IDLE)
    assert not key.is_paused
    assert not key.pause(save=False)
    assert not key.resume(save=False)
    assert RateKey.OUT_OF_QUEUE_STATES == ("idle",)


def test_a_delivery_has_two_states() -> None:
    assert Delivery.OPEN_STATES == Delivery.RUNNABLE_STATES == ("queued",)
    assert Delivery.FINAL_OR_ACTIVE_STATES == ("delivered", "queued")
