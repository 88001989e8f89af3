"""The states of queue rows, and the groups of them that follow from a model's choice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

if TYPE_CHECKING:
    from webqueue.leases.model import ModelWithQueue

RETRY_AT_MAX: Final = datetime(9999, 1, 1, tzinfo=UTC)
ACTIVE_STATE_LEASE_SECONDS: Final = 60


class _Choices:
    """`Enum.choices`: pairs of value and label, for forms. A descriptor, since an enum has no class properties."""

    def __get__(self, instance: object, owner: type[StrEnum]) -> tuple[tuple[str, str], ...]:
        return tuple((member.value, member.value.replace("_", " ").capitalize()) for member in owner)


class StatusEnum(StrEnum):
    """States of a queue row, with `choices` for forms; a model may use any StrEnum as well."""

    # Type checkers would take what is assigned to an enum's attribute for a member.
    if TYPE_CHECKING:
        choices: ClassVar[tuple[tuple[str, str], ...]]
    else:
        choices = _Choices()


class DefaultStatusChoices(StatusEnum):
    """The states of a queue row, where its model does not replace them."""

    QUEUED = "queued"
    STARTED = "started"
    PAUSED = "paused"
    SEALED = "sealed"


def extend_choices(base: type[StrEnum]) -> Callable[[type], type[StatusEnum]]:
    """A class decorator: the states of `base`, then those of the decorated class, as one enum.

    Raises:
        TypeError: a name or a value stands in both with a different meaning.
    """

    def extend(extra: type) -> type[StatusEnum]:
        members = {member.name: member.value for member in base}
        own = {
            name: value for name, value in vars(extra).items() if name.isupper() and isinstance(value, str)
        }
        for name, value in own.items():
            if members.get(name, value) != value or (name not in members and value in members.values()):
                raise TypeError(f"{extra.__name__}.{name} = {str(value)!r} contradicts {base.__name__}.")
            members[name] = str(value)
        # Type checkers cannot follow the functional form of an enum.
        make: Any = StatusEnum
        extended = make(extra.__name__, members, module=extra.__module__, qualname=extra.__qualname__)
        extended.__doc__ = extra.__doc__
        return cast("type[StatusEnum]", extended)

    return extend


def paused_state(model: type[ModelWithQueue]) -> str | None:
    """The paused state of a model, None when its states have none."""
    return cast("str | None", getattr(model.StatusChoices, "PAUSED", None))


def unfinished_states(model: type[ModelWithQueue]) -> list[str]:
    """Every state of a model that is not final."""
    return [state for state in model.StatusChoices if state not in model.FINAL_STATES]


def derive_states(model: type[ModelWithQueue]) -> None:
    """Complete the groups of states of a new model.

    Raises:
        TypeError: a group names a state that the model does not have, or contradicts what is derived.
    """
    known = set(model.StatusChoices)
    for name in ("INITIAL_STATE", "ACTIVE_STATE", "FINAL_STATES", "OUT_OF_QUEUE_STATES"):
        value: str | tuple[str, ...] = getattr(model, name)
        for state in (value,) if isinstance(value, str) else value:
            if state not in known:
                raise TypeError(f"{model.__name__}.{name}: {str(state)!r} is no state of its StatusChoices.")
    both = tuple(dict.fromkeys((*model.FINAL_STATES, model.ACTIVE_STATE)))
    if set(vars(model).get("FINAL_OR_ACTIVE_STATES", both)) != set(both):
        raise TypeError(f"{model.__name__}.FINAL_OR_ACTIVE_STATES is derived: leave it out.")
    model.FINAL_OR_ACTIVE_STATES = both
    derived: dict[str, tuple[str, ...]] = {
        "RUNNABLE_STATES": tuple(dict.fromkeys((model.INITIAL_STATE, model.ACTIVE_STATE))),
        "OPEN_STATES": tuple(unfinished_states(model)),
    }
    missing = [name for name in derived if not _is_given(model, name)]
    for name in missing:
        setattr(model, name, derived[name])
    model.derived_groups = frozenset(missing)


def _is_given(model: type[ModelWithQueue], name: str) -> bool:
    """Whether the model, or a class between it and the mixin, says itself what `name` is."""
    for ancestor in model.__mro__:
        if name in vars(ancestor) and name not in vars(ancestor).get("derived_groups", ()):
            return True
    return False
