"""Who may do what, and who did: users, logins, sessions, roles, tokens and the audit log."""

from __future__ import annotations

from webqueue.access.auditing import audit
from webqueue.access.bearers import bearer_in
from webqueue.access.links import (
    LinkRefusedError,
    new_login_link,
    new_setup_link,
    setup_link_works,
    use_login_link,
    use_setup_link,
)
from webqueue.access.login import TooManyTriesError, authenticate, change_own_password
from webqueue.access.preferences import DEFAULT_ZONE, LANGUAGES, set_language, set_theme, set_zone, zone_of
from webqueue.access.roles import Action, allows, roles_for
from webqueue.access.sessions import (
    LoggedIn,
    begin_session,
    count_sessions,
    end_session,
    end_sessions,
    find_session,
    list_sessions,
    log_out,
    note_session,
)
from webqueue.access.tokens import (
    Bearer,
    add_token,
    bearer_of,
    list_tokens,
    note_use,
    revoke_token,
    working_tokens,
)
from webqueue.access.users import (
    create_user,
    disable_user,
    enable_user,
    find_user,
    has_users,
    list_users,
    new_password,
    new_user,
    set_password,
    set_role,
)
from webqueue.models import Role

__all__ = [
    "DEFAULT_ZONE",
    "LANGUAGES",
    "Action",
    "Bearer",
    "LinkRefusedError",
    "LoggedIn",
    "Role",
    "TooManyTriesError",
    "add_token",
    "allows",
    "audit",
    "authenticate",
    "bearer_in",
    "bearer_of",
    "begin_session",
    "change_own_password",
    "count_sessions",
    "create_user",
    "disable_user",
    "enable_user",
    "end_session",
    "end_sessions",
    "find_session",
    "find_user",
    "has_users",
    "list_sessions",
    "list_tokens",
    "list_users",
    "log_out",
    "new_login_link",
    "new_password",
    "new_setup_link",
    "new_user",
    "note_session",
    "note_use",
    "revoke_token",
    "roles_for",
    "set_language",
    "set_password",
    "set_role",
    "set_theme",
    "set_zone",
    "setup_link_works",
    "use_login_link",
    "use_setup_link",
    "working_tokens",
    "zone_of",
]
