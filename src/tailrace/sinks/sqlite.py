"""Rows in a table of an SQLite file; positions in `_tailrace_positions` beside it.

Types: integers, reals and blobs as they are, everything else as text in the form the log
has (decimals exact, times in ISO 8601).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, Literal

import orjson
import pyarrow as pa

from tailrace.records.rows import json_value, read_rows
from tailrace.sinks.base import Batch, Shape, Sink, SinkPosition
from tailrace.sinks.declare import SQLite
from tailrace.sinks.errors import (
    RowsRefusedError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import (
    NEXT,
    POSITIONS,
    PREVIOUS,
    SQLITE_TYPES,
    check_key,
    held_position,
    kept_position,
    missing_columns,
    python_rows_of,
    quoted,
    split_unset,
    sql_type,
    text_columns,
)

BUSY_SECONDS = 10.0


class SQLiteSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, SQLite)
        self._copy = copy
        self._surroundings = surroundings
        self._declaration = copy.declaration
        self._path = surroundings.path(copy.declaration.path)
        self._table = copy.declaration.table
        self._connection: sqlite3.Connection | None = None
        self._epoch = 0

    def open(self, shape: Shape) -> None:
        if self._connection is None:
            self._connection = self._connect()
        with self._writing() as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {POSITIONS} "
                "(sink TEXT PRIMARY KEY, epoch BIGINT NOT NULL, position TEXT)"
            )
            self._prepare(connection, shape)
            (self._epoch,) = connection.execute(
                f"INSERT INTO {POSITIONS} (sink, epoch) VALUES (?, 1) "
                "ON CONFLICT (sink) DO UPDATE SET epoch = epoch + 1 RETURNING epoch",
                (self._copy.name,),
            ).fetchone()

    def position(self) -> SinkPosition | None:
        return self._position_of(self._copy.name)

    def _position_of(self, name: str) -> SinkPosition | None:
        with self._errors():
            connection = self._open_connection
            if not connection.execute(
                "SELECT 1 FROM pragma_table_info(?)", (POSITIONS,)
            ).fetchone():
                return None
            row = connection.execute(
                f"SELECT position FROM {POSITIONS} WHERE sink = ?", (name,)
            ).fetchone()
        return held_position(row[0] if row else None, self._table)

    def apply(self, batch: Batch) -> None:
        shape = batch.shape
        table, names = quoted(self._table), [quoted(name) for name in shape.names]
        places = ", ".join("?" for _ in names)
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"
        same = " AND ".join(f"{quoted(name)} IS ?" for name in shape.key)
        upserts = text_columns(batch.upserts)
        with self._writing() as connection:
            self._check_epoch(connection)
            if shape.one_row and batch.changes.num_rows:
                connection.execute(f"DELETE FROM {table}")
            elif batch.has_deletes:
                connection.executemany(
                    f"DELETE FROM {table} WHERE {same}",
                    python_rows_of(text_columns(batch.deletes)),
                )
            if shape.key:
                upserts, unset = split_unset(upserts, shape.key)
                if unset.num_rows:
                    # NULLs are distinct to a unique key: such rows are replaced by hand.
                    connection.executemany(
                        f"DELETE FROM {table} WHERE {same}",
                        python_rows_of(unset.select(list(shape.key))),
                    )
                    connection.executemany(insert, python_rows_of(unset))
                insert += _on_conflict(shape)
            connection.executemany(insert, python_rows_of(upserts))
            connection.execute(
                f"UPDATE {POSITIONS} SET position = ? WHERE sink = ?",
                (kept_position(batch.position, self._table), self._copy.name),
            )

    def scrub(self) -> None:
        with self._errors():
            connection = self._open_connection
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise TargetUnavailableError(
                f"somebody reads {self._path}, so its log still holds earlier rows",
                detail="the log beside the file (…-wal) is emptied when nobody reads",
                hint="it is tried again; end long transactions on the file",
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        names = ", ".join(quoted(name) for name in shape.names)
        blobs = [pa.types.is_binary(field.type) for field in shape.schema]
        booleans = [pa.types.is_boolean(field.type) for field in shape.schema]
        nested = [pa.types.is_nested(field.type) for field in shape.schema]
        with self._errors():
            cursor = self._open_connection.execute(f"SELECT {names} FROM {quoted(self._table)}")
            while rows := cursor.fetchmany(20_000):
                texts = [
                    orjson.dumps(
                        {
                            name: bool(value)
                            if boolean and value is not None
                            else orjson.loads(value)
                            if deep and value is not None
                            else json_value(value)
                            if blob
                            else value
                            for name, value, boolean, blob, deep in zip(
                                shape.names, row, booleans, blobs, nested, strict=True
                            )
                        }
                    )
                    for row in rows
                ]
                yield read_rows(texts, shape.columns)[0]

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        declaration = replace(self._declaration, table=self._table + NEXT)
        copy = replace(self._copy, name=self._copy.name + NEXT, declaration=declaration)
        return SQLiteSink(copy, self._surroundings)

    def discard(self) -> None:
        with self._writing() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {quoted(self._table + NEXT)}")
            connection.execute(f"DELETE FROM {POSITIONS} WHERE sink = ?", (self._copy.name + NEXT,))

    def switch(self) -> None:
        self._rotate([(self._table, self._table + PREVIOUS), (self._table + NEXT, self._table)])

    def previous(self) -> SinkPosition | None:
        return self._position_of(self._copy.name + PREVIOUS)

    def rollback(self) -> None:
        self._rotate([(self._table, self._table + NEXT), (self._table + PREVIOUS, self._table)])

    def _rotate(self, renames: list[tuple[str, str]]) -> None:
        name = self._copy.name
        with self._writing() as connection:
            for old, new in renames:
                connection.execute(f"DROP TABLE IF EXISTS {quoted(new)}")
                connection.execute(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(new)}")
                source = name + old.removeprefix(self._table)
                target = name + new.removeprefix(self._table)
                # The epoch grows: whoever still writes to the table that was here must not
                # go on with its own idea of the position.
                connection.execute(
                    f"INSERT INTO {POSITIONS} (sink, epoch, position) SELECT ?, 1, position "
                    f"FROM {POSITIONS} WHERE sink = ? "
                    "ON CONFLICT (sink) DO UPDATE SET position = excluded.position, "
                    "epoch = epoch + 1",
                    (target, source),
                )
            connection.execute(
                f"DELETE FROM {POSITIONS} WHERE sink = ?",
                (name + renames[1][0].removeprefix(self._table),),
            )

    # ------------------------------------------------------------------ the file

    @property
    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        with self._errors():
            fresh = not self._path.exists()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            if fresh:
                connection.execute("PRAGMA journal_mode = WAL")
            # A commit lost in a power cut takes its position with it and is applied again.
            connection.execute("PRAGMA synchronous = NORMAL")
            if self._declaration.open:
                # What was opened and is written over stays in no free page.
                connection.execute("PRAGMA secure_delete = ON")
            return connection

    def _prepare(self, connection: sqlite3.Connection, shape: Shape) -> None:
        held = self._columns(connection)
        if not held and self._declaration.create:
            # A table that is gone takes with it what was said of it.
            connection.execute(
                f"UPDATE {POSITIONS} SET position = NULL WHERE sink = ?", [self._copy.name]
            )
            columns = [f"{quoted(n)} {sql_type(kind, SQLITE_TYPES)}" for n, kind in shape.columns]
            if shape.key:
                columns.append(f"PRIMARY KEY ({', '.join(quoted(name) for name in shape.key)})")
            connection.execute(f"CREATE TABLE {quoted(self._table)} ({', '.join(columns)})")
            return
        for name, kind in missing_columns(
            shape, held, self._table, self._declaration.schema_change if held else "park"
        ):
            connection.execute(
                f"ALTER TABLE {quoted(self._table)} ADD COLUMN "
                f"{quoted(name)} {sql_type(kind, SQLITE_TYPES)}"
            )
        check_key(shape, self._table, self._unique_keys(connection))

    def _columns(self, connection: sqlite3.Connection) -> dict[str, str]:
        rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (self._table,))
        return dict(rows.fetchall())

    def _unique_keys(self, connection: sqlite3.Connection) -> list[frozenset[str]]:
        keys = [
            frozenset(
                name
                for (name,) in connection.execute(
                    "SELECT name FROM pragma_table_info(?) WHERE pk > 0", (self._table,)
                )
            )
        ]
        for (index,) in connection.execute(
            'SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial', (self._table,)
        ).fetchall():
            columns = connection.execute("SELECT name FROM pragma_index_info(?)", (index,))
            keys.append(frozenset(name for (name,) in columns))
        return keys

    def _check_epoch(self, connection: sqlite3.Connection) -> None:
        row = connection.execute(
            f"SELECT epoch FROM {POSITIONS} WHERE sink = ?", (self._copy.name,)
        ).fetchone()
        if row is None or row[0] != self._epoch:
            raise SinkFencedError(
                f"another writer took sink {self._copy.name!r} over",
                detail=f"Ours is epoch {self._epoch}, the file has {row and row[0]}.",
                hint="run a project only once",
            )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        connection = self._open_connection
        with self._errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"SQLite file {self._path}"
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError) as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=str(reason)) from reason
        except OverflowError as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=str(reason)) from reason
        except (sqlite3.Error, OSError) as reason:
            kind = TargetRefusedError if _is_refusal(reason) else TargetUnavailableError
            raise kind(
                f"{where} cannot be written",
                detail=str(reason),
                hint="the sink tries again; check the file, its directory and free space",
            ) from reason


def _is_refusal(reason: Exception) -> bool:
    text = str(reason).lower()
    return "readonly" in text or "permission" in text or "not a database" in text


def _on_conflict(shape: Shape) -> str:
    target = ", ".join(quoted(name) for name in shape.key)
    rest = [quoted(name) for name in shape.names if name not in shape.key]
    if not rest:
        return f" ON CONFLICT ({target}) DO NOTHING"
    return f" ON CONFLICT ({target}) DO UPDATE SET " + ", ".join(
        f"{n} = excluded.{n}" for n in rest
    )
