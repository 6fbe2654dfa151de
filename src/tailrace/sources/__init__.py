"""Databases as streams: declarations of sources and the processes that capture them.

Importing this package loads the declarations only; a database driver is loaded when a
source runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tailrace.sources.declare import (
    Changes,
    Inserts,
    MySQL,
    Outbox,
    Postgres,
    Source,
    SQLite,
    TableRef,
)
from tailrace.sources.edges.declare import HTTP, Multicast, StatsD, Webhook, ZeroMQ

if TYPE_CHECKING:
    from tailrace.sources.schema import TableSchema
    from tailrace.telemetry.part import Part

__all__ = [
    "HTTP",
    "Changes",
    "Inserts",
    "Multicast",
    "MySQL",
    "Outbox",
    "Postgres",
    "SQLite",
    "Source",
    "StatsD",
    "TableRef",
    "Webhook",
    "ZeroMQ",
    "describe",
    "run",
    "snapshot",
]


def run(source: Source, part: Part) -> None:
    """Capture `source` into the log at `part.bootstrap` until `part.stopping` is set."""
    from tailrace.sources.runner import run as work

    work(source, part)


def snapshot(
    source: Source,
    table: str | None = None,
    *,
    where: str | None = None,
    keys: Sequence[object] | None = None,
) -> None:
    """Have a running source copy rows again while changes go on: of all tables, of one, of
    those that fulfil an SQL condition, or those with the given keys (a value, or an object
    by column name). A given key that the table no longer has becomes a delete. Returns
    once it is asked for in the database; `tailrace source status` shows progress."""
    from tailrace.sources.control import ask_for_snapshot

    ask_for_snapshot(source, table, where, keys)


def describe(source: Source) -> list[TableSchema]:
    """The tables of a source as its database has them now."""
    from tailrace.sources.describe import describe as look

    return look(source)
