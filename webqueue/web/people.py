"""Users and tokens: who may do what, changed by administrators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from flask import Blueprint, make_response, render_template, request, url_for
from flask_login import current_user
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from webqueue import access, clock
from webqueue.access import Action, Role
from webqueue.db import database, read_anew, reading
from webqueue.errors import ConflictError, InvalidInputError
from webqueue.queries.numbers import whole
from webqueue.web import answers, confirm, words
from webqueue.web.answers import acted
from webqueue.web.auth import needs, user_name
from webqueue.web.forms import Form
from webqueue.web.languages import between_sentences, gettext, ngettext, pgettext, told, told_error

pages = Blueprint("people", __name__)

ROLES: Final = tuple((role.value, words.ROLES[role.value]) for role in Role)
MOST_DAYS: Final = 3650


@pages.get("/settings/users")
@needs(Action.USERS)
def users() -> AnyResponse:
    """Every user, and the form that adds one."""
    return _users_page(Form({"role": Role.VIEWER.value}))


@pages.post("/settings/users")
@needs(Action.USERS)
def add_user() -> AnyResponse:
    """Make a user."""
    sent, by = request.form, user_name()
    name, password, role = (sent.get(field, "") for field in ("name", "password", "role"))
    # A password is never sent back to the browser.
    form = Form({"name": name, "role": role}, shown={"name", "password", "role"})
    try:
        new = access.new_user(name, password, role)
        database().run(lambda s: _nothing(access.create_user(s, new, by=by, now=clock.now(s))))
    except InvalidInputError as error:
        form.refuse(error)
        return _users_page(form, 422)
    except ConflictError as error:
        form.errors["name"] = [told_error(error)]
        return _users_page(form, 422)
    read_anew()
    return answers.done(gettext("%(name)s can log in now.", name=name), url_for("people.users"))


@pages.post("/settings/users/<name>/role")
@needs(Action.USERS)
def set_role(name: str) -> AnyResponse:
    """Give a user another role."""
    role = request.form.get("role", "")
    return _on_user(
        name,
        access.set_role,
        gettext("%(name)s is %(role)s now.", name=name, role=told(words.ROLES.get(role, role))),
        role,
    )


@pages.post("/settings/users/<name>/password")
@needs(Action.USERS)
def set_password(name: str) -> AnyResponse:
    """Give another user another password; their sessions end.

    One's own is changed by `settings.password`, which asks for the old one: a screen that was left open must not let
    anybody lock its user out.
    """
    password = request.form.get("password", "")
    user = access.find_user(reading(), name)
    if user is not None and user.id == current_user.id:
        refusal = gettext("Your own password is changed under You and health, with the old one.")
        return _users_page(Form({"role": Role.VIEWER.value}), 422, refused={user.name: refusal})
    try:
        return _on_user(
            name,
            access.set_password,
            gettext("%(name)s has another password; their sessions ended.", name=name),
            access.new_password(name, password),
        )
    except InvalidInputError as error:
        refusals = {} if user is None else {user.name: told(error.problems[0].message)}
        return _users_page(Form({"role": Role.VIEWER.value}), 422, refused=refusals)


@pages.post("/settings/users/<name>/disable")
@needs(Action.USERS)
def disable(name: str) -> AnyResponse:
    """Shut a user out, after asking; with the tokens that they made, where that is ticked."""
    back, by, with_tokens = url_for("people.users"), user_name(), "tokens" in request.form
    if not confirm.given():
        return _ask_to_disable(name, back)

    def told_of(tokens: list[str]) -> str:
        said = gettext("%(name)s is shut out.", name=name)
        if not tokens:
            return said
        names = pgettext("list", ", ").join(tokens)
        more = (
            ngettext(
                "%(count)s token is revoked: %(names)s",
                "%(count)s tokens are revoked: %(names)s",
                len(tokens),
                names=names,
            )
            if with_tokens
            else ngettext(
                "%(count)s token that %(name)s made still works: %(names)s",
                "%(count)s tokens that %(name)s made still work: %(names)s",
                len(tokens),
                name=name,
                names=names,
            )
        )
        return between_sentences().join([said, f"{more}{gettext('.')}"])

    return acted(
        back,
        lambda: database().run(
            lambda s: access.disable_user(s, name, by=by, now=clock.now(s), with_tokens=with_tokens)
        ),
        told_of,
    )


def _ask_to_disable(name: str, back: str) -> AnyResponse:
    question = [
        gettext(
            "%(name)s is logged out at once, and cannot log in. What %(name)s did stays in the audit log.",
            name=name,
        )
    ]
    session = reading()
    tokens = [token.name for token in access.working_tokens(session, clock.now(session), made_by=name)]
    count, choice = len(tokens), None
    if tokens:
        names = pgettext("list", ", ").join(tokens)
        question.append(
            ngettext(
                "%(count)s token of the API that %(name)s made works on, for whoever has it: %(names)s",
                "%(count)s tokens of the API that %(name)s made work on, for whoever has them: %(names)s",
                count,
                name=name,
                names=names,
            )
            + gettext(".")
        )
        choice = ("tokens", ngettext("Revoke this token too", "Revoke these %(count)s tokens too", count))
    return confirm.ask(between_sentences().join(question), gettext("Disable user"), back, choice=choice)


@pages.post("/settings/users/<name>/enable")
@needs(Action.USERS)
def enable(name: str) -> AnyResponse:
    """Let a user in again."""
    return _on_user(name, access.enable_user, gettext("%(name)s can log in again.", name=name))


@pages.get("/settings/tokens")
@needs(Action.TOKENS)
def tokens() -> AnyResponse:
    """Every token, and the form that makes one."""
    return _tokens_page(Form({"role": Role.VIEWER.value, "days": "365"}))


@pages.post("/settings/tokens")
@needs(Action.TOKENS)
def add_token() -> AnyResponse:
    """Make a token, and show it this once: only its hash is kept."""
    sent, by = request.form, user_name()
    name, role = sent.get("name", "").strip(), sent.get("role", "")
    form = Form({"name": name, "role": role, "days": sent.get("days", "")}, shown={"name", "role", "days"})
    try:
        days = _days(sent.get("days", "").strip())

        def make(session: Session) -> str:
            now = clock.now(session)
            expires = None if days is None else now + timedelta(days=days)
            return access.add_token(session, name, role, expires, by=by, now=now)

        plaintext = database().run(make)
    except InvalidInputError as error:
        form.refuse(error)
        return _tokens_page(form, 422)
    except ConflictError as error:
        form.errors["name"] = [told_error(error)]
        return _tokens_page(form, 422)
    read_anew()
    return _tokens_page(Form({"role": role, "days": "365"}), made=(name, plaintext))


@pages.post("/settings/tokens/<name>/revoke")
@needs(Action.TOKENS)
def revoke(name: str) -> AnyResponse:
    """End a token, after asking."""
    back = url_for("people.tokens")
    if not confirm.given():
        question = gettext(
            "Whoever uses the token %(name)s is refused from now on. It cannot be taken back.", name=name
        )
        return confirm.ask(question, gettext("Revoke token"), back)
    by = user_name()
    return acted(
        back,
        lambda: database().run(lambda s: access.revoke_token(s, name, by=by, now=clock.now(s))),
        lambda _: gettext("The token %(name)s is revoked.", name=name),
    )


def _on_user(name: str, change: Callable[..., Any], sentence: str, *more: str) -> AnyResponse:
    by = user_name()
    return acted(
        url_for("people.users"),
        lambda: database().run(lambda s: _nothing(change(s, name, *more, by=by, now=clock.now(s)))),
        lambda _: sentence,
    )


def _nothing(_changed: Any) -> None:
    """A row must not leave the transaction that it belongs to."""


def _days(text: str) -> int | None:
    if not text:
        return None
    days = whole(text, 1, MOST_DAYS)
    if days is None:
        raise InvalidInputError.of(
            "days",
            gettext(
                "%(value)s is no number of days between 1 and %(most)s.",
                value=repr(text[:20]),
                most=MOST_DAYS,
            ),
        )
    return days


def _users_page(form: Form, status: int = 200, *, refused: Mapping[str, str] | None = None) -> AnyResponse:
    """The page; `refused` has what is wrong with the new password of a user, by name."""
    session = reading()
    page = render_template(
        "users.html",
        section="settings",
        form=form,
        users=access.list_users(session),
        refused=refused or {},
        sessions=access.count_sessions(session, clock.now(session)),
        tokens=Counter(token.created_by for token in access.working_tokens(session, clock.now(session))),
        roles=ROLES,
    )
    return make_response(page, status)


def _tokens_page(form: Form, status: int = 200, made: tuple[str, str] | None = None) -> AnyResponse:
    session = reading()
    page = render_template(
        "tokens.html",
        section="settings",
        form=form,
        tokens=access.list_tokens(session),
        now=clock.now(session),
        roles=ROLES,
        made=made,
    )
    return make_response(page, status)
