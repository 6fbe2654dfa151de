"""Asking a running source for something, through its own database.

A request travels in the stream of changes, so it needs no connection to the process,
survives its restarts and takes effect at a known position. Pausing is a file beside the
project's state: a paused source holds no connection at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from tailrace.config import resolve
from tailrace.sources.declare import MySQL, Postgres, Source
from tailrace.sources.errors import SnapshotRequestError, keyless_request

# A request travels as one message and becomes one condition.
MOST_KEYS = 50_000


def ask_for_snapshot(
    source: Source, table: str | None, where: str | None, keys: Sequence[object] | None = None
) -> None:
    """Have tables copied again: all of them, one, the rows of one that fulfil `where`, or
    those with the given keys."""
    if (where is not None or keys is not None) and table is None:
        raise SnapshotRequestError("a condition needs a table", hint="add `--table NAME`")
    if where is not None and keys is not None:
        raise SnapshotRequestError("give a condition or keys, not both")
    if keys is not None and not 0 < len(keys) <= MOST_KEYS:
        raise SnapshotRequestError(
            f"{len(keys)} keys", hint=f"give 1 to {MOST_KEYS:,}, or a condition with `--where`"
        )
    if isinstance(source, Postgres):
        _ask_postgres(source, table, where, keys)
        return
    if isinstance(source, MySQL):
        from tailrace.sources.mysql.requests import ask_for_copy as ask

        ask(source, table, where, keys)
        return
    from tailrace.sources.sqlite.change_table import ask_for_copy

    ask_for_copy(source, table, where, keys)


def _ask_postgres(
    source: Postgres, table: str | None, where: str | None, keys: Sequence[object] | None
) -> None:
    from tailrace.sources.postgres import catalog

    with catalog.connect(resolve(source.dsn)) as connection:
        tables = {t.name: t for t in catalog.wanted_tables(connection, source)}
        request: dict[str, object] = {"table": table or "*", "where": where}
        if table is not None:
            whole = table if "." in table else f"public.{table}"
            if whole not in tables:
                raise SnapshotRequestError(
                    f'table "{whole}" is not captured by source "{source.name}"',
                    detail=f"Captured are: {', '.join(tables) or 'none'}.",
                )
            if (where is not None or keys is not None) and not tables[whole].key:
                raise keyless_request(whole)
            if keys is not None:
                request["keys"] = catalog.key_texts(
                    connection, tables[whole], key_objects(keys, tables[whole].key)
                )
        connection.execute(
            "SELECT pg_logical_emit_message(true, 'tailrace.snapshot', %s)",
            [orjson.dumps(request).decode()],
        )


def key_objects(keys: Sequence[object], columns: Sequence[str]) -> list[dict[str, object]]:
    """Keys as objects by column name; a bare value is meant for a key of one column."""
    found: list[dict[str, object]] = []
    for key in keys:
        if not isinstance(key, Mapping):
            if len(columns) != 1:
                raise SnapshotRequestError(
                    f"{key!r} is no whole key",
                    hint="give an object, " + orjson.dumps(dict.fromkeys(columns, "…")).decode(),
                )
            key = {columns[0]: key}
        if set(key) != set(columns):
            raise SnapshotRequestError(
                f"{dict(key)!r} is no key of this table", detail=f"Key: {', '.join(columns)}."
            )
        found.append(dict(key))
    return found


def pause_path(directory: Path, name: str) -> Path:
    """The file whose presence keeps a source from running."""
    return directory / "sources" / f"{name}.paused"


def paused(directory: Path, name: str) -> bool:
    """Whether somebody asked this source to pause."""
    return pause_path(directory, name).exists()
