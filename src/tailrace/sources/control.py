"""Asking a running source for something, through its own database.

A request travels in the stream of changes, so it needs no connection to the process,
survives its restarts and takes effect at a known position. Pausing is a file beside the
project's state: a paused source holds no connection at all.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from tailrace.config import resolve
from tailrace.sources.declare import Postgres, Source
from tailrace.sources.errors import SnapshotRequestError


def ask_for_snapshot(source: Source, table: str | None, where: str | None) -> None:
    """Have tables copied again: all of them, one, or the rows of one that fulfil `where`."""
    if where is not None and table is None:
        raise SnapshotRequestError("a condition needs a table", hint="add `--table NAME`")
    request = orjson.dumps({"table": table or "*", "where": where})
    if isinstance(source, Postgres):
        from tailrace.sources.postgres import catalog

        with catalog.connect(resolve(source.dsn)) as connection:
            tables = {t.name: t for t in catalog.wanted_tables(connection, source)}
            if table is not None:
                whole = table if "." in table else f"public.{table}"
                if whole not in tables:
                    raise SnapshotRequestError(
                        f'table "{whole}" is not captured by source "{source.name}"',
                        detail=f"Captured are: {', '.join(tables) or 'none'}.",
                    )
                if not tables[whole].key:
                    raise SnapshotRequestError(
                        f'table "{whole}" has no primary key',
                        detail="It cannot be copied in pieces while its changes stream.",
                    )
            connection.execute(
                "SELECT pg_logical_emit_message(true, 'tailrace.snapshot', %s)", [request.decode()]
            )
        return
    from tailrace.sources.sqlite.change_table import ask_for_copy

    ask_for_copy(source, table, where)


def pause_path(directory: Path, name: str) -> Path:
    """The file whose presence keeps a source from running."""
    return directory / "sources" / f"{name}.paused"


def paused(directory: Path, name: str) -> bool:
    """Whether somebody asked this source to pause."""
    return pause_path(directory, name).exists()
