"""Positions for read-your-writes: what a view must have reached to show a write."""

from __future__ import annotations

import sqlite3
from typing import Any

from tailrace.errors import UsageError
from tailrace.records.position import Position
from tailrace.sources.sqlite.change_table import CHANGES

SYNC_PREFIX = "tailrace.sync"


def position(connection: Any, source: str | None = None) -> str:
    """The position of everything this connection has committed.

        connection.commit()
        views.get("open_orders", "NL", at_least=tr.position(connection, "shop"))

    `connection` is one of psycopg, `pymysql` or `sqlite3` outside a transaction;
    `source` is the name of the source that captures its database; without one it is told
    from the only Tailrace slot of the database. On Postgres a small message goes into the WAL,
    so that capture writes a cut at once, also when nothing that is captured was changed.
    """
    if isinstance(connection, sqlite3.Connection):
        return _sqlite(connection, source)
    if type(connection).__module__.startswith(("pymysql", "MySQLdb")):
        from tailrace.sources.mysql.place import position_of

        return position_of(connection, source)
    from psycopg.pq import TransactionStatus

    info = connection.info
    if info.transaction_status != TransactionStatus.IDLE:
        raise UsageError(
            "a position is asked for inside a transaction",
            detail="What is not committed yet has no position.",
            hint="commit first, then ask",
        )
    with connection.transaction(), connection.cursor() as cursor:
        if source is None:
            source = _only_source(cursor)
        cursor.execute(
            "SELECT (pg_current_wal_insert_lsn() - '0/0')::int8, "
            "pg_logical_emit_message(true, %s, '')",
            [SYNC_PREFIX],
        )
        row = cursor.fetchone()
    lsn = next(iter(row.values())) if isinstance(row, dict) else row[0]
    return str(Position("pg", source, f"{int(lsn):016X}"))


# What publications say about slots (`tailrace.sources.postgres.ownership`); a slot that none
# speaks of is from before, when its name was that of the source.
_SOURCES = """
WITH said AS (
  SELECT substr(obj_description(oid, 'pg_publication'), 10)::json AS claim FROM pg_publication
  WHERE obj_description(oid, 'pg_publication') LIKE %s)
SELECT DISTINCT coalesce(claim->>'source', substr(slot_name, 10))
FROM pg_replication_slots LEFT JOIN said ON claim->>'slot' = slot_name
WHERE (claim IS NOT NULL OR slot_name LIKE %s)
  AND database = current_database() AND NOT temporary
"""


def _only_source(cursor: Any) -> str:
    cursor.execute(_SOURCES, ["tailrace {%", "tailrace\\_%"])
    found = [next(iter(r.values())) if isinstance(r, dict) else r[0] for r in cursor.fetchall()]
    if len(found) != 1:
        raise UsageError(
            "cannot tell which source reads this database",
            detail=f"Tailrace slots in it: {', '.join(found) or 'none'}.",
            hint='name it: tr.position(connection, source="shop")',
        )
    return str(found[0])


def _sqlite(connection: sqlite3.Connection, source: str | None) -> str:
    if connection.in_transaction:
        raise UsageError("a position is asked for inside a transaction", hint="commit first")
    try:
        row = connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", [CHANGES]
        ).fetchone()
    except sqlite3.OperationalError:
        row = None  # no table has AUTOINCREMENT yet: nothing is captured
    if not source:
        raise UsageError("a SQLite file has no name of its own", hint='tr.position(file, "shop")')
    return str(Position("sqlite", source, f"{0 if row is None else int(row[0]):016X}"))
