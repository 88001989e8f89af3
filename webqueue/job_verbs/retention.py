"""How long jobs and their logs are kept: the settings, and what single targets have instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy.orm import Session

from webqueue.database import take_turn
from webqueue.errors import InvalidInputError, NotFoundError, Problem
from webqueue.job_verbs.history import Cut
from webqueue.models import AuditEntry, StoredSetting, Target
from webqueue.sentences import say
from webqueue.settings import Settings

SETTING: Final = "retention"
_BOUNDS: Final = {
    "jobs": (1, 1_000_000),
    "days": (1, 36_500),
    "logs": (0, 1_000_000),
    "log_days": (1, 36_500),
}


@dataclass(frozen=True)
class Rule:
    """What is kept of a target; None: as the installation has it.

    Attributes:
        jobs, days: finished jobs, by count and by days since their end.
        logs, log_days: of those, the ones whose logs are kept.
    """

    jobs: int | None = None
    days: int | None = None
    logs: int | None = None
    log_days: int | None = None


@dataclass(frozen=True)
class Retention:
    """What is kept: `default` from the settings, and the rules of single targets with the default worked in."""

    default: Rule
    own: Mapping[str, Rule]

    def jobs(self, now: datetime) -> tuple[Cut, dict[str, Cut]]:
        """Where the history of jobs ends: by default, and of single targets."""
        return _jobs(self.default, now), {code: _jobs(rule, now) for code, rule in self.own.items()}

    def logs(self, now: datetime) -> tuple[Cut, dict[str, Cut]]:
        """The same of logs."""
        return _logs(self.default, now), {code: _logs(rule, now) for code, rule in self.own.items()}

    @property
    def forgets_logs(self) -> bool:
        """Whether any log goes before its job."""
        return any(
            rule.logs is not None or rule.log_days is not None for rule in (self.default, *self.own.values())
        )


def rules(session: Session) -> dict[str, Rule]:
    """The rules of single targets, as they were set."""
    return _parsed(StoredSetting.read(session, SETTING))


def retention(session: Session, settings: Settings) -> Retention:
    """What holds at present."""
    default = Rule(settings.keep_jobs, settings.keep_jobs_days, settings.keep_logs, settings.keep_logs_days)
    named = asdict(default)
    own = {
        code: Rule(
            **{name: value if value is not None else named[name] for name, value in asdict(rule).items()}
        )
        for code, rule in rules(session).items()
    }
    return Retention(default, own)


def set_rule(session: Session, target: str, rule: Rule, *, by: str, now: datetime) -> None:
    """Give a target a rule of its own; one without a number takes it away.

    Raises:
        NotFoundError: there is no such target.
        InvalidInputError: a number is out of bounds.
    """
    if session.get(Target, target) is None:
        raise NotFoundError("target", target)
    numbers = asdict(rule)
    problems = [
        Problem(name, say("must be %(low)s to %(high)s", low=f"{low:,}", high=f"{high:,}"))
        for name, (low, high) in _BOUNDS.items()
        if numbers[name] is not None and not low <= numbers[name] <= high
    ]
    if problems:
        raise InvalidInputError(problems)
    take_turn(session, SETTING)
    before = rules(session)
    after = {code: one for code, one in before.items() if code != target}
    if rule != Rule():
        after[target] = rule
    if after == before:
        return
    value = {code: asdict(one) for code, one in after.items()}
    StoredSetting.put(session, SETTING, value, at=now, by=by)
    AuditEntry.record(
        session, at=now, by=by, action="changed", kind="setting", name=f"{SETTING} of {target}",
        before=_told(before.get(target)), after=_told(after.get(target)),
    )  # fmt: skip


def _jobs(rule: Rule, now: datetime) -> Cut:
    return Cut(rule.jobs, None if rule.days is None else now - timedelta(days=rule.days))


def _logs(rule: Rule, now: datetime) -> Cut:
    return Cut(rule.logs, None if rule.log_days is None else now - timedelta(days=rule.log_days))


def _parsed(value: Any) -> dict[str, Rule]:
    return {code: Rule(**rule) for code, rule in value.items()} if isinstance(value, dict) else {}


def _told(rule: Rule | None) -> dict[str, Any]:
    return {} if rule is None else {name: value for name, value in asdict(rule).items() if value is not None}
