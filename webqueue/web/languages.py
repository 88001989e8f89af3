"""In which language pages speak, and how they say things in it. Only this file knows Flask-Babel."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from babel.messages.mofile import read_mo
from flask import Flask, Response, g, has_request_context, request
from flask_babel import Babel, get_locale, get_translations
from flask_babel import force_locale as speaking
from flask_login import current_user

from webqueue.access import LANGUAGES
from webqueue.sentences import PART, STORED, Messages, Sentence, StoredText, said

# What `<html lang>` says; it also chooses the shapes of signs that Chinese and Japanese write differently.
TAGS: Final = {code: {"zh": "zh-CN"}.get(code, code) for code in LANGUAGES}
DEFAULT: Final = "en"

__all__ = [
    "TAGS",
    "between_sentences",
    "gettext",
    "init_app",
    "language",
    "ngettext",
    "of_browser",
    "pgettext",
    "speaking",
    "told",
    "told_error",
]


def init_app(app: Flask) -> None:
    """Let the pages of `app` speak the language of their reader."""
    Babel(app, default_locale=DEFAULT, locale_selector=_chosen)
    # Whatever a template prints, a Sentence is said in the reader's language.
    app.jinja_env.finalize = _printed
    app.jinja_env.globals.update(told=told, gap=between_sentences)
    app.jinja_env.filters["stored"] = StoredText
    app.after_request(_add_headers)

    @app.context_processor
    def spoken() -> dict[str, Any]:
        return {
            "language": language(),
            "language_tag": TAGS[language()],
            "languages": LANGUAGES,
            "language_tags": TAGS,
        }


def language() -> str:
    """The language of this request's pages: `en` or `zh`."""
    locale = get_locale() if has_request_context() else None
    return DEFAULT if locale is None else str(locale.language)


def gettext(message: str, /, **values: object) -> str:
    """`message` in the reader's language, with `values` in place of its placeholders."""
    text: str = get_translations().ugettext(message) if has_request_context() else message
    return text % values if values else text


def pgettext(context: str, message: str, /) -> str:
    """`message` in the reader's language, where it means what `context` says."""
    text: str = get_translations().upgettext(context, message) if has_request_context() else message
    return text


def between_sentences() -> str:
    """What stands between two sentences: Chinese full stops bring their own space."""
    return "" if language() == "zh" else " "


def ngettext(one: str, many: str, number: int, /, **values: object) -> str:
    """`one` or `many` in the reader's language; `%(count)s` is the number, with commas between thousands."""
    text: str = one if number == 1 else many
    if has_request_context():
        text = get_translations().ungettext(one, many, number)
    return text % {"count": f"{number:,}", **values}


def told(sentence: str) -> str:
    """What a lower layer says or has stored, in the reader's language; other texts as they are."""
    if isinstance(sentence, StoredText):
        sentence = _made_as(str(sentence)) or str(sentence) if language() != DEFAULT else str(sentence)
    if not isinstance(sentence, Sentence) or not sentence:
        return sentence  # the empty message is the header of a catalog
    values = {
        name: told(value) if isinstance(value, Sentence | StoredText) else value
        for name, value in sentence.values.items()
    }
    if not sentence.context:
        if sentence.plural:
            return ngettext(sentence.message, sentence.plural, sentence.number, **values)
        return gettext(sentence.message, **values)
    text: str = sentence.message
    if sentence.plural and sentence.number != 1:
        text = sentence.plural
    if has_request_context():
        translations = get_translations()
        text = (
            translations.unpgettext(sentence.context, sentence.message, sentence.plural, sentence.number)
            if sentence.plural
            else translations.upgettext(sentence.context, sentence.message)
        )
    return text % values if values else text


def told_error(error: Exception) -> str:
    """The text of an error, in the reader's language."""
    return told(said(error))


def of_browser() -> str:
    """The first of the browser's languages that pages speak. Any Chinese is served with the Chinese that there is."""
    for tag, quality in request.accept_languages:
        primary = tag.partition("-")[0].lower()
        if quality > 0 and primary in LANGUAGES:
            return primary
    return DEFAULT


def _chosen() -> str:
    if current_user and current_user.is_authenticated and current_user.language in LANGUAGES:
        chosen: str = current_user.language
        return chosen
    return of_browser()


def _printed(value: Any) -> Any:
    return told(value) if isinstance(value, Sentence | StoredText) else value


@lru_cache(maxsize=2048)
def _made_as(text: str) -> Sentence | None:
    """What a stored text was made of, as far as the catalogs know its message."""
    return _stored_messages().made_as(text)


@cache
def _stored_messages() -> Messages:
    """Every message that stored texts are made of; it stands in each catalog."""
    translated = next(code for code in LANGUAGES if code != DEFAULT)
    file = Path(__file__).parents[1] / "translations" / translated / "LC_MESSAGES" / "messages.mo"
    with file.open("rb") as opened:
        catalog = read_mo(opened)
    found = [message for message in catalog if message.id and message.context in {STORED, PART}]
    return Messages(
        (*((one.id, "") if isinstance(one.id, str) else one.id), str(one.context)) for one in found
    )


def _add_headers(response: Response) -> Response:
    """A cache must not serve somebody the page of another language."""
    if response.mimetype == "text/html" or response.status_code == 204:
        response.vary.add("Accept-Language")
    if response.mimetype == "text/html" and g.get("_flask_babel") is not None:
        response.content_language.add(TAGS[language()])
    return response
