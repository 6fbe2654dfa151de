"""Takes triggers and tables of ours out of an SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tailrace.sources.sqlite.change_table import CHANGES, META, TABLES, connect, quoted


def remove_from_file(path: str) -> Iterator[str]:
    """In one transaction: an application that writes meanwhile finds all of it or nothing."""
    with closing(connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = connection.execute(
                "SELECT type, name FROM sqlite_schema WHERE type = 'trigger' "
                "AND name LIKE '\\_tailrace\\_%' ESCAPE '\\' "
                "OR type = 'table' AND name IN (?, ?, ?) ORDER BY type DESC, name",
                [CHANGES, TABLES, META],
            ).fetchall()
            for kind, name in found:
                connection.execute(f"DROP {kind.upper()} {quoted(name)}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    yield from (f"{kind} {name}" for kind, name in found)
