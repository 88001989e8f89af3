"""The pages. Small view modules: each reads through `queries`, acts through the verbs, and renders one template."""

from __future__ import annotations

from flask import Flask

from webqueue.web import (
    auth,
    documents,
    errors,
    formats,
    jobs,
    overview,
    rate_keys,
    security,
    settings,
    sites,
    targets,
)


def register(app: Flask) -> None:
    """Add every page, the login, and the headers that keep them safe."""
    security.init_app(app)
    auth.init_app(app)
    formats.init_app(app)
    errors.init_app(app)
    for module in (overview, targets, sites, jobs, rate_keys, documents, settings):
        app.register_blueprint(module.pages)
