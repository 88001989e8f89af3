"""Which names, passwords and roles are taken."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from webqueue.errors import InvalidInputError, Problem
from webqueue.models import Role
from webqueue.sentences import say, say_some

MIN_PASSWORD: Final = 8  # NIST SP 800-63B section 5.1.1.2
MAX_PASSWORD: Final = 1024  # a longer one costs time and adds nothing
MAX_NAME: Final = 64
MAX_ADDRESS: Final = 64

# Letters of any language: many of the people who use this write Chinese.
_NAME = re.compile(r"\w[\w.@-]*")
_TOKEN_NAME = re.compile(r"\w[\w .@-]*")
_WORST = frozenset(
    {
        "password", "passw0rd", "password1", "password123", "12345678", "123456789", "1234567890", "11111111",
        "00000000", "88888888", "66666666", "qwertyui", "qwerty123", "qwertyuiop", "1q2w3e4r", "1qaz2wsx",
        "iloveyou", "abcd1234", "abc12345", "admin123", "administrator", "letmein1", "changeme", "webqueue",
        "a1b2c3d4", "asdfghjk", "woaini1314", "5201314520",
    }
)  # fmt: skip


def normal_name(name: str) -> str:
    """The one form of a user's name, so that nobody can look like somebody else by writing a letter in another way."""
    return unicodedata.normalize("NFKC", name.strip()).casefold()


def storable(text: str, longest: int) -> str:
    """What others sent, without what no database keeps and no page should show."""
    return "".join(char if char.isprintable() else "?" for char in text[:longest])


def name_problems(name: str) -> list[Problem]:
    """What is wrong with a user's name in its normal form."""
    if not name:
        return [Problem("name", say("The name is empty."))]
    if len(name) > MAX_NAME:
        return [
            Problem(
                "name",
                say(
                    "The name has %(count)s characters; allowed are %(most)s.", count=len(name), most=MAX_NAME
                ),
            )
        ]
    if _NAME.fullmatch(name) is None:
        return [
            Problem(
                "name", say("A name has letters, digits, _ . @ and -, and starts with a letter or digit.")
            )
        ]
    return []


def password_problems(password: str, name: str) -> list[Problem]:
    """What is wrong with a password. Length counts; rules about signs and capitals only make people write it down."""
    if len(password) < MIN_PASSWORD:
        return [
            Problem(
                "password",
                say_some(
                    "The password has %(count)s character; needed are %(least)s.",
                    "The password has %(count)s characters; needed are %(least)s.",
                    len(password),
                    least=MIN_PASSWORD,
                ),
            )
        ]
    if len(password) > MAX_PASSWORD:
        return [
            Problem(
                "password",
                say(
                    "The password has %(count)s characters; allowed are %(most)s.",
                    count=len(password),
                    most=MAX_PASSWORD,
                ),
            )
        ]
    if not password.strip() or len(set(password)) == 1:
        return [Problem("password", say("The password is one character repeated; choose another one."))]
    if password.casefold() in _WORST or normal_name(password) == name:
        return [
            Problem("password", say("The password is one of the first that are tried; choose another one."))
        ]
    if any("\ud800" <= char <= "\udfff" for char in password):
        return [Problem("password", say("The password contains something that is no character."))]
    return []


def checked_role(role: str) -> Role:
    """The role of this name.

    Raises:
        InvalidInputError: there is none.
    """
    try:
        return Role(role)
    except ValueError:
        known = ", ".join(Role)
        raise InvalidInputError.of(
            "role", say("There is no role %(role)s; there are %(known)s.", role=repr(role), known=known)
        ) from None


def token_name_problems(name: str) -> list[Problem]:
    """What is wrong with the name of a token."""
    if len(name) > MAX_NAME or _TOKEN_NAME.fullmatch(name) is None:
        message = say(
            "A token's name has up to %(most)s letters, digits, spaces, _ . @ and -.", most=MAX_NAME
        )
        return [Problem("name", message)]
    return []
