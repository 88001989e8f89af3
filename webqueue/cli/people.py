"""`user` and `token`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import click

from webqueue import access, clock
from webqueue.cli.opening import opened, person
from webqueue.cli.output import json_option, show_rows

role_option = click.option(
    "--role", type=click.Choice([role.value for role in access.Role]), required=True, help="What they may do."
)
stdin_option = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")


@click.group()
def user() -> None:
    """Add, list and disable users, and set their passwords."""


@user.command("add")
@click.argument("name")
@role_option
@stdin_option
def add_user(name: str, role: str, password_stdin: bool) -> None:
    """Add the user NAME."""
    password = _password(from_stdin=password_stdin)
    with opened(creates=True) as (database, _settings):
        new = access.new_user(name, password, role)
        database.run(lambda session: access.create_user(session, new, by=person(), now=clock.now(session)))
        click.echo(f"user {name} added")


@user.command("list")
@json_option
def list_users(as_json: bool) -> None:
    """List users."""
    with opened() as (database, _settings), database.reading() as session:
        rows = [
            {
                "name": row.name,
                "role": row.role,
                "created_at": row.created_at,
                "last_login_at": row.last_login_at,
                "disabled_at": row.disabled_at,
            }
            for row in access.list_users(session)
        ]
    empty = "No user yet: `webqueue user add NAME --role admin`."
    show_rows(
        rows, ("name", "role", "created_at", "last_login_at", "disabled_at"), as_json=as_json, empty=empty
    )


@user.command()
@click.argument("name")
@stdin_option
def passwd(name: str, password_stdin: bool) -> None:
    """Give the user NAME another password; every session of theirs ends."""
    password = _password(from_stdin=password_stdin)
    with opened() as (database, _settings):
        hashed = access.new_password(name, password)
        database.run(
            lambda session: access.set_password(session, name, hashed, by=person(), now=clock.now(session))
        )
        click.echo(f"password of {name} set")


@user.command()
@click.argument("name")
@click.option("--revoke-tokens", is_flag=True, help="End the tokens that the user made, too.")
def disable(name: str, revoke_tokens: bool) -> None:
    """Shut the user NAME out, and tell which tokens that they made still work."""
    with opened() as (database, _settings):
        tokens = database.run(
            lambda session: access.disable_user(
                session, name, by=person(), now=clock.now(session), with_tokens=revoke_tokens
            )
        )
        click.echo(f"user {name} disabled")
        if tokens and revoke_tokens:
            click.echo(f"revoked: {', '.join(tokens)}")
        elif tokens:
            click.echo(
                f"{len(tokens)} of the tokens that {name} made still work: {', '.join(tokens)}. "
                f"`webqueue user disable {name} --revoke-tokens` ends them."
            )


@click.group()
def token() -> None:
    """Add, list and revoke tokens of the API."""


@token.command("add")
@click.argument("name")
@role_option
@click.option("--expires", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="When it ends (UTC).")
def add_token(name: str, role: str, expires: datetime | None) -> None:
    """Print a new token, and nothing else; it cannot be shown again."""
    expires_at = expires.replace(tzinfo=UTC) if expires else None
    with opened(creates=True) as (database, _settings):
        click.echo(
            database.run(
                lambda session: access.add_token(
                    session, name, role, expires_at, by=person(), now=clock.now(session)
                )
            )
        )


@token.command("list")
@json_option
def list_tokens(as_json: bool) -> None:
    """List tokens; never their text."""
    with opened() as (database, _settings), database.reading() as session:
        rows = [
            {
                "name": row.name,
                "role": row.role,
                "created_at": row.created_at,
                "created_by": row.created_by,
                "expires_at": row.expires_at,
                "last_used_at": row.last_used_at,
                "revoked_at": row.revoked_at,
            }
            for row in access.list_tokens(session)
        ]
    columns = ("name", "role", "created_at", "created_by", "expires_at", "last_used_at", "revoked_at")
    show_rows(rows, columns, as_json=as_json, empty="No token yet: `webqueue token add NAME --role viewer`.")


@token.command()
@click.argument("name")
def revoke(name: str) -> None:
    """End the token NAME at once."""
    with opened() as (database, _settings):
        database.run(lambda session: access.revoke_token(session, name, by=person(), now=clock.now(session)))
        click.echo(f"token {name} revoked")


def _password(*, from_stdin: bool) -> str:
    if from_stdin:
        # One line; what a shell's echo adds at its end is no part of the password.
        return sys.stdin.readline().rstrip("\r\n")
    entered: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    return entered
