"""How pages write times, durations, numbers and states. `app.js` writes relative times in the same words."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from flask import Flask, g, has_request_context, url_for
from flask_login import current_user
from markupsafe import Markup, escape

from webqueue import access, clock, cron
from webqueue.db import reading
from webqueue.errors import InvalidInputError
from webqueue.masking import masked_text
from webqueue.queries import Run
from webqueue.queries.waiting import ordinal
from webqueue.sentences import say
from webqueue.web import words
from webqueue.web.languages import gettext, language, ngettext, pgettext, told

_BREAKS = re.compile(r"(?<=[./_-])(?=[^./_-])")

MINUTE, HOUR, DAY = 60, 3600, 86400
BAR_WIDTH, BAR_STEP, STRIP_HEIGHT, LEAST_HEIGHT, LONG_STRIP = 5, 7, 20, 4, 200

WEEKDAYS = (say("Mon"), say("Tue"), say("Wed"), say("Thu"), say("Fri"), say("Sat"), say("Sun"))

# What is shown for each state: the style, the icon, and the word.
STATES = {
    "queued": ("queued", "queued", say("Queued")),
    "running": ("running", "running", say("Running")),
    "cancelling": ("cancelling", "stop", say("Cancelling")),
    "done": ("done", "done", say("Done")),
    "attention": ("attention", "attention", say("Look at it")),
    "failed": ("failed", "failed", say("Failed")),
    "cancelled": ("cancelled", "cancelled", say("Cancelled")),
    "skipped": ("cancelled", "skipped", say("Skipped")),
    "idle": ("queued", "idle", say("Idle")),
    "cooling_down": ("cooldown", "cooldown", say("Cooling down")),
    "paused": ("paused", "paused", say("Paused")),
    "stuck": ("lost", "attention", say("Stuck")),
    "live": ("done", "done", say("Live")),
    "gone": ("cancelled", "cancelled", say("Gone")),
}


def init_app(app: Flask) -> None:
    """Add the filters and functions to the templates of `app`."""
    app.jinja_env.filters.update(
        as_written=as_written,
        without_secrets=masked_text,
        duration=duration,
        number=number,
        ordinal=ordinal,
        outside=outside,
        seconds=plain_seconds,
        words=schedule_words,
        breakable=breakable,
        roughly=roughly,
    )
    app.jinja_env.globals.update(
        when=when,
        moment=moment,
        time_of_day=time_of_day,
        day=day,
        strip=strip,
        states=STATES,
        static_url=_StaticUrls(app),
        clip=clip,
        outside=outside,
        absolute=absolute,
        error_words=error_words,
        is_ahead=is_ahead,
        local=local,
        script_words=script_words,
        page_time=page_time,
        **words.GLOBALS,
    )


def duration(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `3 min 05 s`, `5 min`, `2 h 06 min`, `3 d 4 h`; empty for None."""
    if seconds is None:
        return ""
    if seconds < MINUTE:
        return gettext("%(s)s s", s=f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}")
    minutes, rest = divmod(int(seconds), MINUTE)
    if seconds < HOUR:
        full = gettext("%(min)s min %(s)s s", min=minutes, s=f"{rest:02}")
        return full if rest else gettext("%(min)s min", min=minutes)
    hours, minutes = divmod(minutes, 60)
    if seconds < DAY:
        full = gettext("%(h)s h %(min)s min", h=hours, min=f"{minutes:02}")
        return full if minutes else gettext("%(h)s h", h=hours)
    days, hours = divmod(hours, 24)
    return gettext("%(d)s d %(h)s h", d=days, h=hours) if hours else gettext("%(d)s d", d=days)


def roughly(seconds: float) -> str:
    """A guess, no more exact than it can be: `40 s`, `7 min`, `2 h 10 min`."""
    step = 10 if seconds < MINUTE else MINUTE if seconds < HOUR else 10 * MINUTE
    return duration(max(1, round(seconds / step)) * step)


def relative(at: datetime, now: datetime) -> str:
    """`in 28 min`, `4 h ago`, `just now`."""
    seconds = (at - now).total_seconds()
    size = abs(seconds)
    if size < 5:
        return gettext("now") if seconds >= 0 else gettext("just now")
    if size < MINUTE:
        text = gettext("%(s)s s", s=int(size))
    elif size < HOUR:
        text = gettext("%(min)s min", min=int(size // MINUTE))
    elif size < DAY:
        hours, rest = divmod(int(size), HOUR)
        minutes = rest // MINUTE
        if hours < 6 and minutes:
            text = gettext("%(h)s h %(min)s min", h=hours, min=f"{minutes:02}")
        else:
            text = gettext("%(h)s h", h=hours)
    else:
        text = gettext("%(d)s d", d=int(size // DAY))
    return gettext("in %(time)s", time=text) if seconds > 0 else gettext("%(time)s ago", time=text)


def as_written(value: Any) -> str:
    """A value as the API and the forms write it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def page_time() -> str:
    """When the page was made, by which `app.js` knows how wrong the clock of its computer is."""
    return clock.local_now().isoformat(timespec="milliseconds")


def script_words() -> str:
    """What `app.js` writes by itself, as JSON."""
    return json.dumps(
        {
            "now": gettext("now"),
            "justNow": gettext("just now"),
            "s": gettext("%(s)s s", s="{s}"),
            "min": gettext("%(min)s min", min="{min}"),
            "h": gettext("%(h)s h", h="{h}"),
            "hMin": gettext("%(h)s h %(min)s min", h="{h}", min="{min}"),
            "d": gettext("%(d)s d", d="{d}"),
            "ahead": gettext("in %(time)s", time="{time}"),
            "ago": gettext("%(time)s ago", time="{time}"),
            "updated": gettext("Updated %(time)s", time="{time}"),
            "late": gettext("No answer since %(time)s", time="{time}"),
        },
        ensure_ascii=False,
    )


def absolute(at: datetime, now: datetime | None = None, *, seconds: bool = True) -> str:
    """`16:21:05 UTC` today, else `2026-11-29 16:21 UTC`; by the clock of the user's zone, with its offset."""
    zone = user_zone()
    at = at.astimezone(zone)
    if now is not None and abs(at - now) < timedelta(days=1) and at.date() == now.astimezone(zone).date():
        return f"{at:%H:%M:%S} {_offset(at)}" if seconds else f"{at:%H:%M} {_offset(at)}"
    return f"{at:%Y-%m-%d %H:%M} {_offset(at)}"


def when(at: datetime | None, *, empty: str = "") -> Markup:
    """A relative time, with the absolute one beneath, to the minute: it is for lists."""
    if at is None:
        return escape(empty)
    now = clock.local_now()
    return Markup('<time datetime="{}" data-relative>{}</time><span class="sub">{}</span>').format(
        _machine(at), relative(at, now), absolute(at, now, seconds=False)
    )


def moment(at: datetime | None, *, empty: str = "", relative_only: bool = False) -> Markup:
    """A relative time, with the absolute one in parentheses, in one line; of what is to come, to the minute."""
    if at is None:
        return escape(empty)
    now = clock.local_now()
    time = Markup('<time datetime="{}" data-relative title="{}">{}</time>').format(
        _machine(at), _full(at), relative(at, now)
    )
    if relative_only:
        return time
    there = gettext(" (%(time)s)", time=absolute(at, now, seconds=at <= now))
    return time + Markup('<span class="muted">{}</span>').format(there)


def time_of_day(at: datetime) -> Markup:
    """`16:21:05` by the clock of the user's zone, for lines that follow each other; day and offset on demand."""
    here = at.astimezone(user_zone())
    return Markup('<time datetime="{}" title="{}">{:%H:%M:%S}</time>').format(_machine(at), _full(at), here)


def day(at: datetime) -> str:
    """`2026-11-29`, which it was by the clock of the user's zone."""
    return f"{at.astimezone(user_zone()):%Y-%m-%d}"


def local(at: datetime, timezone: str, *, with_date: bool = True) -> Markup:
    """A time by the clock of a zone, with its weekday and offset; without the date where that stands beside it."""
    there = at.astimezone(ZoneInfo(timezone))
    date = f"{there:%Y-%m-%d} " if with_date else ""
    text = f"{told(WEEKDAYS[there.weekday()])} {date}{there:%H:%M} {_digits(there)}"
    return Markup('<time datetime="{}">{}</time>').format(_machine(at), text)


def number(value: float | None) -> str:
    """With commas between thousands."""
    return "" if value is None else f"{value:,}"


def plain_seconds(value: float | None) -> str:
    """Seconds of a setting, without a useless `.0`."""
    return "" if value is None else f"{value:g}"


def clip(text: str | None, length: int) -> str:
    """`text`, shortened: a crawled title may have a megabyte."""
    text = told(text or "")
    return text if len(text) <= length else f"{text[:length]}…"


def breakable(text: str) -> Markup:
    """A host, URL or code that may break behind its dots and slashes, rather than anywhere."""
    parts = _BREAKS.split(text)
    return Markup("<wbr>").join(parts)


def is_ahead(at: datetime | None) -> bool:
    """Whether a time lies in the future by more than a moment."""
    return at is not None and at > clock.local_now() + timedelta(seconds=2)


def error_words(error: str | None) -> str:
    """The first line of an error in the reader's language, in words where it is one of webqueue's own codes."""
    lines = told(error or "").strip().splitlines()
    first = lines[0] if lines else ""
    if first.startswith("cooldown_abort; auto_retry_job="):
        return gettext("Blocked by the server. It is repeated by itself when the cooldown is over.")
    if first == "cooldown_abort; auto_retry_max_reached":
        return gettext("Blocked by the server, and every automatic retry was used up.")
    return first


def outside(url: str) -> str | None:
    """`url` when a browser may follow it as a link, else None: a crawled `javascript:` link must stay text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


def schedule_words(expression: str | None, timezone: str) -> str:
    """A schedule in words."""
    return _schedule_words(expression, timezone, language()) if expression else gettext("Only by hand")


@lru_cache(maxsize=1024)
def _schedule_words(expression: str, timezone: str, language: str) -> str:
    try:
        return cron.parse(expression, timezone).words(language)
    except InvalidInputError:
        return expression


def strip(runs: Sequence[Run], *, height: int = STRIP_HEIGHT) -> Markup:
    """The last runs as bars, whose height is the duration, with the same in words for who cannot see them."""
    if not runs:
        return Markup('<span class="muted nowrap">{}</span>').format(gettext("No runs yet"))
    longest = max((run.seconds or 0.0 for run in runs), default=0.0) or 1.0
    # One line a run, one path a kind of run: rectangles would be half of a page with fifty strips.
    drawn: dict[str, str] = {}
    for index, run in enumerate(runs):
        size = max(LEAST_HEIGHT, round((run.seconds or 0.0) / longest * height))
        kind = "attention" if run.attention else run.status
        drawn[kind] = drawn.get(kind, "") + f"M{index * BAR_STEP + BAR_WIDTH / 2} {height}v-{size}"
    bars = Markup("").join(
        Markup('<path class="bar-{}" d="{}"/>').format(kind, path) for kind, path in drawn.items()
    )
    width = len(runs) * BAR_STEP - (BAR_STEP - BAR_WIDTH)
    # Only a long strip has to shrink on a phone.
    box = Markup(' viewBox="0 0 {} {}"').format(width, height) if width > LONG_STRIP else ""
    return Markup('<svg class="strip" role="img" aria-label="{}" width="{}" height="{}"{}>{}</svg>').format(
        _strip_words(runs), width, height, box, bars
    )


def _strip_words(runs: Sequence[Run]) -> str:
    counted: dict[str, int] = {}
    for run in runs:
        name = gettext("to look at") if run.attention else told(words.STATUSES[run.status])
        counted[name] = counted.get(name, 0) + 1
    each = pgettext("list", ", ").join(f"{count} {name}" for name, count in counted.items())
    return ngettext("%(count)s run: %(each)s", "%(count)s runs: %(each)s", len(runs), each=each)


def user_zone() -> tzinfo:
    """The zone of the user of this request, asked for once; UTC for everybody else."""
    if not has_request_context():
        return UTC
    if "zone" not in g:
        known = current_user and current_user.is_authenticated
        name = access.zone_of(reading(), current_user.id) if known else access.DEFAULT_ZONE
        g.zone = UTC if name == access.DEFAULT_ZONE else ZoneInfo(name)
    zone: tzinfo = g.zone
    return zone


def _offset(at: datetime) -> str:
    return "UTC" if at.tzinfo is UTC else _digits(at)


def _digits(at: datetime) -> str:
    digits = at.strftime("%z")
    return f"{digits[:3]}:{digits[3:5]}"


def _machine(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _full(at: datetime) -> str:
    here = at.astimezone(user_zone())
    return f"{here:%Y-%m-%d %H:%M:%S} {_offset(here)}"


class _StaticUrls:
    """Addresses of static files that change with their contents, so that browsers may keep them for ever."""

    def __init__(self, app: Flask) -> None:
        self._folder = Path(app.static_folder or "")
        self._versions: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        if name not in self._versions:
            content = (self._folder / name).read_bytes()
            self._versions[name] = hashlib.blake2b(content, digest_size=6).hexdigest()
        return url_for("static", filename=name, v=self._versions[name])
