"""The position of a MySQL or MariaDB connection, for read-your-writes."""

from __future__ import annotations

from typing import Any

from tailrace.errors import UsageError
from tailrace.records.position import Position
from tailrace.sources.mysql.chunks import place_number


def position_of(connection: Any, source: str | None) -> str:
    """Where the binlog of its server ends: everything it has committed is before that."""
    if not source:
        raise UsageError(
            "cannot tell which source reads this server",
            hint='name it: tr.position(connection, source="shop")',
        )
    if not connection.get_autocommit() and connection.server_status & 1:
        raise UsageError(
            "a position is asked for inside a transaction",
            detail="What is not committed yet has no position.",
            hint="commit first, then ask",
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT version(), @@server_id")
        version, number = _values(cursor.fetchone())
        head = str(version).split("-")[0].split(".")
        modern = "mariadb" not in str(version).lower() and (int(head[0]), int(head[1])) >= (8, 2)
        cursor.execute("SHOW BINARY LOG STATUS" if modern else "SHOW MASTER STATUS")
        row = cursor.fetchone()
    if row is None:
        raise UsageError("the server writes no binlog", hint="nothing captures it")
    file, end = _values(row)[:2]
    return str(
        Position("mysql", source, f"{int(number):08X}{place_number(str(file), int(end)):016X}")
    )


def _values(row: Any) -> list[Any]:
    return list(row.values()) if isinstance(row, dict) else list(row)
