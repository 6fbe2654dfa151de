"""Databases as streams: declarations of sources and the processes that capture them.

Importing this package loads the declarations only; a database driver is loaded when a
source runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.sources.declare import (
    Changes,
    Inserts,
    Outbox,
    Postgres,
    Source,
    SQLite,
    TableRef,
)

if TYPE_CHECKING:
    from tailrace.sources.schema import TableSchema
    from tailrace.telemetry.part import Part

__all__ = [
    "Changes",
    "Inserts",
    "Outbox",
    "Postgres",
    "SQLite",
    "Source",
    "TableRef",
    "describe",
    "run",
]


def run(source: Source, part: Part) -> None:
    """Capture `source` into the log at `part.bootstrap` until `part.stopping` is set."""
    from tailrace.sources.runner import run as work

    work(source, part)


def describe(source: Source) -> list[TableSchema]:
    """The tables of a source as its database has them now."""
    from tailrace.sources.describe import describe as look

    return look(source)
