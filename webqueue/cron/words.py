"""A schedule in words, in the languages of the pages."""

from __future__ import annotations

import calendar
import re
from datetime import datetime

from cron_descriptor import Options, get_description
from cronsim import CronSim

_DESCRIPTION_LOCALES = {"en": "en_US", "zh": "zh_CN"}
# cron-descriptor takes the names of days and months from the process, which speaks English.
_CHINESE_NAMES = {
    **dict(zip(calendar.day_name, ("周一", "周二", "周三", "周四", "周五", "周六", "周日"), strict=True)),
    **{name: f"{number} 月" for number, name in enumerate(calendar.month_name) if name},
}
# CronSim wants to know from when on; its words are the same for every time.
_ANY_TIME = datetime(2001, 1, 1)  # noqa: DTZ001 - a wall-clock time without a zone


def words_of(fields: str, language: str) -> str | None:
    """Five fields in words, with a 24 h clock; None where there are no true words in the language.

    Args:
        language: `en`, or `zh`.
    """
    if _is_beyond_cron_descriptor(fields):
        in_english = language not in _DESCRIPTION_LOCALES or language == "en"
        return CronSim(fields, _ANY_TIME).explain() if in_english else None
    options = Options()
    options.use_24hour_time_format = True
    # "every day" tells something beside a fixed hour; after "every minute" it is noise.
    options.verbose = not fields.split()[1].startswith("*")
    # Without one the words would depend on the environment of the process.
    options.locale_code = _DESCRIPTION_LOCALES.get(language, "en_US")
    words: str = get_description(fields, options)
    return _in_chinese(words) if language == "zh" else words


def _is_beyond_cron_descriptor(fields: str) -> bool:
    """Whether cron-descriptor would say something untrue: cronsim's own words are plainer, but right.

    It says "or" where a day field that starts with `*` means "and", drops the ordinals from lists such as
    `1#2,5#1`, and stumbles over `*` and steps in lists.
    """
    each = fields.split()
    _, _, day, _, weekday = each
    both_days = day != "*" and weekday != "*" and (day.startswith("*") or weekday.startswith("*"))
    return both_days or any("," in field and re.search(r"[*/#L]", field) for field in each)


def _in_chinese(words: str) -> str:
    named = re.sub(r"[A-Z][a-z]+", lambda name: _CHINESE_NAMES.get(name[0], name[0]), words)
    spaced = named.replace(", ", "，").removeprefix("在 ").strip()
    joined = re.sub(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])", "", spaced)
    # Its Chinese has some words in the order of the English ones, or not those that people say.
    ordered = re.sub("在(第.个周.)每月", r"每月的\1", joined)
    said = re.sub(r"每 (\d+) 月", r"每 \1 个月", ordered).replace("平日", "工作日")
    # The day comes before the time of the day.
    at, _, days = said.partition("，")
    if "，" in days or not re.fullmatch(r"\d\d:\d\d( 和 \d\d:\d\d)?", at) or not days:
        return said
    return f"{re.sub('^仅在(?=周)', '每', days)} {at}"
