"""The pages. Small view modules: each reads through `queries`, acts through the verbs, and renders one template."""

from __future__ import annotations

from collections.abc import Collection

from flask import Blueprint, Flask

from webqueue.web import (
    addresses,
    audit,
    auth,
    challenges,
    demo,
    documents,
    errors,
    formats,
    job_bulk,
    jobs,
    kept_jobs,
    languages,
    notifications,
    overview,
    people,
    rag_export,
    rate_groups,
    rate_keys,
    schedule,
    security,
    sessions,
    settings,
    sites,
    target_bulk,
    targets,
    undo,
)


def register(app: Flask, *, guarded_elsewhere: Collection[Blueprint] = ()) -> None:
    """Add every page, the login, and the headers that keep them safe.

    Args:
        app: with its database.
        guarded_elsewhere: what checks for itself who asks, and takes no form: no login is asked for in front of it.
    """
    security.init_app(app, without_forms=guarded_elsewhere)
    auth.init_app(app, open_blueprints=frozenset(blueprint.name for blueprint in guarded_elsewhere))
    languages.init_app(app)
    addresses.init_app(app)
    formats.init_app(app)
    errors.init_app(app)
    for module in (
        overview,
        demo,
        targets,
        undo,
        target_bulk,
        sites,
        jobs,
        job_bulk,
        rate_keys,
        schedule,
        documents,
        settings,
        sessions,
        people,
        challenges,
        rate_groups,
        rag_export,
        notifications,
        kept_jobs,
        audit,
    ):
        app.register_blueprint(module.pages)
