"""What SQLAlchemy makes when a statement is first run, made before there are threads.

The ORM runs a DELETE or UPDATE as one of a class of its own (`AnnotatedDelete`), which is made at the first such statement
and published before it is complete. A second thread that meets it then takes it for one without a cache key: it warns, and
from then on every such statement of the process is compiled anew. SQLAlchemy itself makes the classes of columns and tables
when it is imported; those of statements it leaves for later (seen with 2.1.9).
"""

from __future__ import annotations

from sqlalchemy import Delete, Insert, Select, Update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.annotation import (
    Annotated,
    _new_annotation_type,  # there is no public way; a test says when it is of no use any more
)


def make_statement_classes() -> None:
    """Make the classes of annotated statements that are still missing."""
    for kind in (Select, Insert, Update, Delete, sqlite.Insert, postgresql.Insert):
        _new_annotation_type(kind, Annotated)
