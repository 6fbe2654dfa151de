"""What to know about an SQLite file before and while it is captured."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.config import resolve
from tailrace.sources.declare import SQLite
from tailrace.sources.sqlite import change_table
from tailrace.sources.sqlite.tracked import covers

if TYPE_CHECKING:
    from tailrace.sources.doctor import Finding


def examine_sqlite(source: SQLite) -> Iterator[Finding]:
    from tailrace.sources.doctor import Finding

    path = resolve(source.path)
    if not Path(path).exists():
        yield Finding("file", "bad", f"the file {path} does not exist", hint="correct `path=`")
        return
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    except sqlite3.Error as error:
        yield Finding("file", "bad", f"the file {path} is not readable as SQLite", str(error))
        return
    try:
        yield Finding("version", "good", f"SQLite {sqlite3.sqlite_version}")
        if mode == "wal":
            yield Finding("journal-mode", "good", "journal_mode is WAL")
        else:
            yield Finding(
                "journal-mode", "warning", f"journal_mode is {mode}",
                "Capture switches the file to WAL: readers and the writer do not block each other.",
                "PRAGMA journal_mode = WAL;",
            )  # fmt: skip
        shapes = [s for s in change_table.read_shapes(connection) if covers(source, s.table)]
        yield Finding("tables", "good", f"{len(shapes)} tables match")
        for shape in shapes:
            if not shape.key:
                yield Finding(
                    "no-key", "warning", f"{shape.table} has no primary key",
                    "Its records have no key: the topic keeps everything, and a first copy that is\n"
                    "interrupted starts again.",
                )  # fmt: skip
        yield Finding(
            "drop-column", "good",
            f'DROP COLUMN goes through `tailrace source alter {source.name} "ALTER TABLE …"`: '
            "SQLite refuses it while a trigger names the column",
        )  # fmt: skip
    finally:
        connection.close()
