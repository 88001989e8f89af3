"""Who may do what, and who did: users, logins, roles, tokens and the audit log."""

from __future__ import annotations

from webqueue.access.auditing import audit
from webqueue.access.links import (
    LinkRefusedError,
    new_login_link,
    new_setup_link,
    setup_link_works,
    use_login_link,
    use_setup_link,
)
from webqueue.access.login import TooManyTriesError, authenticate, change_own_password
from webqueue.access.preferences import DEFAULT_ZONE, LANGUAGES, set_language, set_zone, zone_of
from webqueue.access.roles import Action, allows
from webqueue.access.tokens import (
    Bearer,
    add_token,
    bearer_of,
    list_tokens,
    note_use,
    revoke_token,
)
from webqueue.access.users import (
    create_user,
    disable_user,
    enable_user,
    find_user,
    has_users,
    list_users,
    set_password,
    set_role,
    user_of_session,
)
from webqueue.models import Role

__all__ = [
    "DEFAULT_ZONE",
    "LANGUAGES",
    "Action",
    "Bearer",
    "LinkRefusedError",
    "Role",
    "TooManyTriesError",
    "add_token",
    "allows",
    "audit",
    "authenticate",
    "bearer_of",
    "change_own_password",
    "create_user",
    "disable_user",
    "enable_user",
    "find_user",
    "has_users",
    "list_tokens",
    "list_users",
    "new_login_link",
    "new_setup_link",
    "note_use",
    "revoke_token",
    "set_language",
    "set_password",
    "set_role",
    "set_zone",
    "setup_link_works",
    "use_login_link",
    "use_setup_link",
    "user_of_session",
    "zone_of",
]
