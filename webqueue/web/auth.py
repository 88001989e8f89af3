"""Login, the one-time links, and the guard: nothing is open without login but what is named here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from flask import (
    Blueprint,
    Flask,
    Response,
    g,
    make_response,
    redirect,
    render_template,
    request,
    session,
    url_for,
)
from flask.sessions import SecureCookieSessionInterface, SessionMixin
from flask_login import LoginManager, current_user, login_user, logout_user
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import Forbidden, SecurityError
from werkzeug.wrappers import Response as AnyResponse

from webqueue import access, clock, logs
from webqueue.access import Action
from webqueue.db import database, read_anew, reading
from webqueue.errors import InvalidInputError, WebqueueError
from webqueue.models import User
from webqueue.sentences import say
from webqueue.web.answers import address_in, by_htmx, came_from, path_of, safe_path
from webqueue.web.languages import gettext, told, told_error

P = ParamSpec("P")
R = TypeVar("R")

# The same words for a wrong name and a wrong password: nobody learns which names exist.
WRONG: Final = say("The name or the password is wrong.")
# As long as browsers keep a cookie at most (RFC 6265bis, section 5.5). Its key opens nothing when the session has ended,
# which the database knows; so the cookie needs not be sent anew with each answer to stay as long as it is used.
COOKIE_LIFETIME: Final = timedelta(days=400)
API_PREFIX: Final = "/api/"  # has its own guard: tokens instead of sessions
OPEN_ENDPOINTS: Final = frozenset(
    {"auth.login", "auth.try_login", "auth.setup", "auth.set_up", "auth.login_link", "static"}
)

log = logs.get(__name__)
pages = Blueprint("auth", __name__)
_manager = LoginManager()


class RoleForbiddenError(Forbidden):
    """The user's role does not allow it."""

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action


@dataclass(frozen=True)
class SignedIn:
    """The user of a browser's session."""

    id: int
    name: str
    role: str
    theme: str
    language: str | None
    session_id: int
    key: str
    is_authenticated: bool = True
    is_active: bool = True
    is_anonymous: bool = False

    @classmethod
    def of(cls, found: access.LoggedIn, key: str) -> SignedIn:
        user = found.user
        return cls(user.id, user.name, user.role, user.theme, user.language, found.session_id, key)

    def get_id(self) -> str:
        """What the cookie keeps."""
        return self.key


class _SessionInterface(SecureCookieSessionInterface):
    """The cookie of a session, which is sent when what it holds has changed, and with nothing else."""

    def get_cookie_secure(self, _app: Flask) -> bool:
        """Wherever the page came over TLS; on plain HTTP nobody could log in with such a cookie."""
        return request.is_secure

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Static files are everybody's: neither a browser nor a proxy may keep them by who asked."""
        if request.endpoint != "static":
            super().save_session(app, session, response)


def init_app(app: Flask, *, open_blueprints: frozenset[str] = frozenset()) -> None:
    """Put the guard in front of `app`.

    Args:
        open_blueprints: blueprints that check for themselves who asks (tokens), or that are open (health).
    """
    app.config.update(
        SESSION_COOKIE_NAME="webqueue",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        PERMANENT_SESSION_LIFETIME=COOKIE_LIFETIME,
        # An answer that was on its way while a button was pressed would bring the cookie of before back, and with it
        # lose the sentence that the next page is to say.
        SESSION_REFRESH_EACH_REQUEST=False,
    )
    app.session_interface = _SessionInterface()
    _manager.init_app(app)
    app.register_blueprint(pages)

    @app.before_request
    def guard() -> AnyResponse | None:
        if isinstance(request.routing_exception, SecurityError):
            return None  # a host name that is not ours: refused before anything else is said
        if request.endpoint in OPEN_ENDPOINTS or current_user.is_authenticated:
            return None
        if request.blueprint in open_blueprints or request.path.startswith(API_PREFIX):
            return None
        return to_login()

    @app.context_processor
    def who() -> dict[str, Any]:
        theme = current_user.theme if current_user.is_authenticated else "auto"
        # The shared pieces as a module: a block that is rendered alone does not run its template's imports.
        pieces = app.jinja_env.get_template("_parts.html").make_module({"may": may})
        return {"may": may, "theme": theme, "ui": pieces}


@_manager.user_loader  # type: ignore[untyped-decorator]
def _load_user(key: str) -> SignedIn | None:
    found = access.find_session(reading(), key)
    if found is None:
        return None
    if found.use_is_due:
        _note_use(found)
    return SignedIn.of(found, key)


def _note_use(found: access.LoggedIn) -> None:
    number, address = found.session_id, _address()
    try:
        database().run(lambda s: access.note_session(s, number, address, clock.now(s)), attempts=1)
    except DBAPIError as error:
        # A disk that is full must not keep anybody from looking at why.
        log.warning("use of a session not noted", user=found.user.name, error=str(error.orig))


def as_nobody_where_unknown() -> None:
    """Let the rest of a request be nobody's, where its user could not be read: an error page must not ask again."""
    if "_login_user" not in g:
        g._login_user = _manager.anonymous_user()  # noqa: SLF001 - where Flask-Login keeps it


def signed_in() -> SignedIn | None:
    """The user of this request's session, None without one."""
    return current_user._get_current_object() if current_user.is_authenticated else None  # noqa: SLF001 - the proxied


def may(action: str | Action) -> bool:
    """Whether the user may do `action` (an Action, or its name in lower case for templates)."""
    wanted = action if isinstance(action, Action) else Action[action.upper()]
    return bool(current_user.is_authenticated) and access.allows(current_user.role, wanted)


def needs(action: Action) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A view that only users who may do `action` reach; 403 for the others."""

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @wraps(view)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if not may(action):
                raise RoleForbiddenError(action)
            return view(*args, **kwargs)

        checked.needs = action  # type: ignore[attr-defined]
        return checked

    return decorate


def user_name() -> str:
    """The name of the user who acts, for the log and the audit."""
    name: str = current_user.name
    return name


def to_login() -> AnyResponse:
    """Lead to the login, and from there back to the same page."""
    if by_htmx():
        back = path_of(address_in("HX-Current-URL")) or "/"
        response: Response = make_response("", 401)
        response.headers["HX-Redirect"] = url_for("auth.login", next=back)
        return response
    back = request.full_path.rstrip("?") if request.method == "GET" else came_from("/")
    return redirect(url_for("auth.login", next=back if back != "/" else None), 303)


@pages.get("/login")
def login() -> AnyResponse | str:
    """The login form."""
    back = safe_path(request.args.get("next")) or "/"
    if current_user.is_authenticated:
        return redirect(back, 303)
    return render_template(
        "login.html", back=back, name="", wrong=None, first=not access.has_users(reading())
    )


@pages.post("/login")
def try_login() -> AnyResponse:
    """Log in, or show the form again."""
    back = safe_path(request.form.get("next")) or "/"
    name, password = request.form.get("name", ""), request.form.get("password", "")
    try:
        user = access.authenticate(database(), name, password, clock.now(reading()), address=_address())
    except access.TooManyTriesError as error:
        page = render_template("login.html", back=back, name=name, wrong=told_error(error), first=False)
        return make_response(page, 429, {"Retry-After": str(error.wait_sec)})
    if user is None:
        page = render_template("login.html", back=back, name=name, wrong=WRONG, first=False)
        return make_response(page, 422)
    return _enter(user, back)


@pages.get("/login/<token>")
def login_link(token: str) -> AnyResponse:
    """Log in by a link that works once."""
    try:
        user = database().run(lambda s: access.use_login_link(s, token, clock.now(s)))
    except access.LinkRefusedError as error:
        if current_user.is_authenticated:
            return redirect("/", 303)
        page = render_template("login.html", back="/", name="", wrong=told_error(error), first=False)
        return make_response(page, 410)
    return _enter(user, "/")


@pages.get("/setup/<token>")
def setup(token: str) -> AnyResponse:
    """The form that makes the first administrator; the link is used up by the form, not by looking at it."""
    if not access.setup_link_works(reading(), token, clock.now(reading())):
        page = render_template(
            "login.html", back="/", name="", wrong=told_error(access.LinkRefusedError()), first=False
        )
        return make_response(page, 410)
    return make_response(render_template("setup.html", name="admin", errors={}))


@pages.post("/setup/<token>")
def set_up(token: str) -> AnyResponse:
    """Make the first administrator, and log in."""
    name, password = request.form.get("name", ""), request.form.get("password", "")
    try:
        if password != request.form.get("again", password):
            raise InvalidInputError.of("again", gettext("The two passwords are not the same."))
        # Anybody may send this form: nothing slow is done for a link that does not work.
        if not access.setup_link_works(reading(), token, clock.now(reading())):
            raise access.LinkRefusedError
        new = access.new_user(name, password, access.Role.ADMIN)
        user = database().run(lambda s: access.use_setup_link(s, token, new, clock.now(s)))
    except InvalidInputError as error:
        errors = {problem.field: told(problem.message) for problem in error.problems}
        return make_response(render_template("setup.html", name=name, errors=errors), 422)
    except WebqueueError as error:
        page = render_template("login.html", back="/", name="", wrong=told_error(error), first=False)
        return make_response(page, 410)
    return _enter(user, "/")


@pages.post("/logout")
def logout() -> AnyResponse:
    """End this browser's session: whoever has its cookie is out as well."""
    if (user := signed_in()) is not None:
        number, name = user.session_id, user.name
        database().run(lambda s: access.log_out(s, number, by=name, now=clock.now(s)))
    logout_user()
    session.clear()
    return redirect(url_for("auth.login"), 303)


def let_in(user: User) -> bool:
    """Begin a session of this browser; False: the user was shut out, or got another password, in this moment."""
    address, agent = _address(), request.headers.get("User-Agent", "")
    key = database().run(
        lambda s: access.begin_session(s, user, address=address, agent=agent, now=clock.now(s))
    )
    read_anew()
    found = None if key is None else access.find_session(reading(), key)
    if key is None or found is None:
        return False
    session.permanent = True
    login_user(SignedIn.of(found, key))
    return True


def _address() -> str:
    return request.remote_addr or ""


def _enter(user: User, back: str) -> AnyResponse:
    # A session that existed before the login may be known to somebody else.
    session.clear()
    if let_in(user):
        return redirect(back, 303)
    page = render_template("login.html", back=back, name=user.name, wrong=WRONG, first=False)
    return make_response(page, 422)
