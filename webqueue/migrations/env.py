"""How Alembic runs the migrations: on the connection that `webqueue.migrations.upgrade` opened."""

from __future__ import annotations

from alembic import context

from webqueue.migrations.search_index import is_own
from webqueue.models import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
    include_name=is_own,
    user_module_prefix="types.",
)
with context.begin_transaction():
    context.run_migrations()
# On SQLite the driver's transaction was begun by webqueue's own event, which Alembic does not know of.
if connection.in_transaction():
    connection.commit()
