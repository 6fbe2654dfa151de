"""Rows in a table of a DuckDB file.

DuckDB locks a file for as long as it is open, so it is closed whenever there is nothing
to write, and every half second while there is: others can read then, and while they do
the sink waits. Rows are
replaced by delete and insert from an Arrow scan; the table carries no index, which makes
that several times faster than ON CONFLICT.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal

import duckdb
import orjson
import pyarrow as pa

from tailrace.clock import SYSTEM
from tailrace.records.rows import json_value, read_rows
from tailrace.sinks.base import Batch, Shape, Sink, SinkPosition
from tailrace.sinks.declare import DuckDB
from tailrace.sinks.errors import (
    RowsRefusedError,
    ShapeError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import (
    DUCKDB_TYPES,
    NEXT,
    POSITIONS,
    PREVIOUS,
    held_position,
    kept_position,
    missing_columns,
    quoted,
    quoted_table,
    sql_type,
)
from tailrace.sinks.widen import columns_to_widen

HOLD_SECONDS = 0.5


class DuckDBSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, DuckDB)
        self._copy = copy
        self._surroundings = surroundings
        self._declaration = copy.declaration
        self._path = surroundings.path(copy.declaration.path)
        self._name = copy.declaration.table
        self._table = quoted_table(self._name)
        self._epoch = 0
        self._connection: Any = None
        self._opened_at = 0.0

    def open(self, shape: Shape) -> None:
        with self._transaction(keep=True) as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {POSITIONS} "
                "(sink VARCHAR, epoch BIGINT, position VARCHAR)"
            )
            self._prepare(connection, shape)
            row = self._stored(connection)
            self._epoch = 1 if row is None else row[0] + 1
            self._store(connection, self._copy.name, self._epoch, None if row is None else row[1])

    def position(self) -> SinkPosition | None:
        return self._position_of(self._copy.name)

    def _position_of(self, name: str) -> SinkPosition | None:
        with self._transaction(keep=self._connection is not None) as connection:
            known = connection.execute(
                "SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [POSITIONS]
            ).fetchall()
            if not known:
                return None
            rows = connection.execute(
                f"SELECT position FROM {POSITIONS} WHERE sink = ?", [name]
            ).fetchall()
        return held_position(rows[0][0] if rows else None, self._name)

    def apply(self, batch: Batch) -> None:
        shape = batch.shape
        names = ", ".join(quoted(name) for name in shape.names)
        with self._transaction(keep=True) as connection:
            row = self._stored(connection)
            if row is None or row[0] != self._epoch:
                raise SinkFencedError(
                    f"another writer took sink {self._copy.name!r} over",
                    detail=f"Ours is epoch {self._epoch}, the file has {row and row[0]}.",
                    hint="run a project only once",
                )
            if batch.changes.num_rows:
                connection.register("batch", _with_json(batch.changes))
                if shape.key:
                    connection.execute(self._delete(batch))
                elif shape.one_row:
                    connection.execute(f"DELETE FROM {self._table}")
                connection.execute(
                    f"INSERT INTO {self._table} ({names}) "
                    f"SELECT {names} FROM batch WHERE NOT __deleted"
                )
                connection.unregister("batch")
            connection.execute(
                f"UPDATE {POSITIONS} SET position = ? WHERE sink = ?",
                [kept_position(batch.position, self._name), self._copy.name],
            )

    def rest(self) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        names = ", ".join(quoted(name) for name in shape.names)
        with self._transaction() as connection:
            relation = connection.sql(f"SELECT {names} FROM {self._table}")
            # Older versions have it under another name only.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            for batch in read(20_000):
                yield _typed(pa.Table.from_batches([batch]), shape)

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        declaration = replace(self._declaration, table=self._name + NEXT)
        copy = replace(self._copy, name=self._copy.name + NEXT, declaration=declaration)
        return DuckDBSink(copy, self._surroundings)

    def discard(self) -> None:
        with self._transaction() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {quoted_table(self._name + NEXT)}")
            connection.execute(f"DELETE FROM {POSITIONS} WHERE sink = ?", [self._copy.name + NEXT])

    def switch(self) -> None:
        self._rotate([("", PREVIOUS), (NEXT, "")])

    def previous(self) -> SinkPosition | None:
        return self._position_of(self._copy.name + PREVIOUS)

    def rollback(self) -> None:
        self._rotate([("", NEXT), (PREVIOUS, "")])

    def _rotate(self, renames: list[tuple[str, str]]) -> None:
        name = self._copy.name
        bare = self._name.rpartition(".")[2]
        with self._transaction() as connection:
            rows = connection.execute(f"SELECT sink, epoch, position FROM {POSITIONS}").fetchall()
            epochs = {sink: epoch for sink, epoch, _ in rows}
            held = {sink: position for sink, _, position in rows}
            for old, new in renames:
                connection.execute(f"DROP TABLE IF EXISTS {quoted_table(self._name + new)}")
                connection.execute(
                    f"ALTER TABLE {quoted_table(self._name + old)} RENAME TO {quoted(bare + new)}"
                )
                # The epoch grows: whoever still writes to the table that was here must not
                # go on with its own idea of the position.
                epoch = epochs.get(name + new, 0) + 1
                self._store(connection, name + new, epoch, held.get(name + old))
            connection.execute(f"DELETE FROM {POSITIONS} WHERE sink = ?", [name + renames[1][0]])

    # ------------------------------------------------------------------ the file

    def _stored(self, connection: Any) -> tuple[int, str | None] | None:
        """Epoch and position in the file. Fetched to the end: DuckDB does nothing else on
        a connection with an open result."""
        rows = connection.execute(
            f"SELECT epoch, position FROM {POSITIONS} WHERE sink = ?", [self._copy.name]
        ).fetchall()
        return rows[0] if rows else None

    def _store(self, connection: Any, name: str, epoch: int, position: str | None) -> None:
        connection.execute(f"DELETE FROM {POSITIONS} WHERE sink = ?", [name])
        connection.execute(f"INSERT INTO {POSITIONS} VALUES (?, ?, ?)", [name, epoch, position])

    def _delete(self, batch: Batch) -> str:
        key = batch.shape.key
        same = " AND ".join(
            f"t.{quoted(name)} "
            f"{'IS NOT DISTINCT FROM' if batch.changes[name].null_count else '='} b.{quoted(name)}"
            for name in key
        )
        return f"DELETE FROM {self._table} AS t USING batch AS b WHERE {same}"

    def _prepare(self, connection: Any, shape: Shape) -> None:
        if "." in self._name:
            schema = self._name.rpartition(".")[0]
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted_table(schema)}")
        schema, _, bare = self._name.rpartition(".")
        held = dict(
            connection.execute(
                "SELECT column_name, data_type FROM duckdb_columns() "
                "WHERE table_name = ? AND schema_name = ?",
                [bare, schema or "main"],
            ).fetchall()
        )
        if not held and self._declaration.create:
            # A table that is gone takes with it what was said of it.
            connection.execute(
                f"UPDATE {POSITIONS} SET position = NULL WHERE sink = ?", [self._copy.name]
            )
            columns = [f"{quoted(n)} {sql_type(kind, DUCKDB_TYPES)}" for n, kind in shape.columns]
            connection.execute(f"CREATE TABLE {self._table} ({', '.join(columns)})")
            return
        policy = self._declaration.schema_change if held else "park"
        for name, kind in missing_columns(shape, held, self._name, policy):
            connection.execute(
                f"ALTER TABLE {self._table} ADD COLUMN {quoted(name)} {sql_type(kind, DUCKDB_TYPES)}"
            )
        for name, kind in columns_to_widen(shape, held, DUCKDB_TYPES, self._name, policy):
            connection.execute(
                f"ALTER TABLE {self._table} ALTER COLUMN {quoted(name)} "
                f"TYPE {sql_type(kind, DUCKDB_TYPES)}"
            )

    @contextmanager
    def _transaction(self, *, keep: bool = False) -> Iterator[Any]:
        with self._errors():
            if self._connection is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = duckdb.connect(str(self._path))
                self._opened_at = SYSTEM.monotonic()
                self._connection.execute("SET TimeZone = 'UTC'")
            try:
                self._connection.execute("BEGIN")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self.close()  # rolls back what was not committed
                raise
            if not keep or SYSTEM.monotonic() - self._opened_at > HOLD_SECONDS:
                self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"DuckDB file {self._path}"
        try:
            yield
        except (
            duckdb.ConversionException,
            duckdb.ConstraintException,
            duckdb.OutOfRangeException,
        ) as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=str(reason)) from reason
        except (
            duckdb.BinderException,
            duckdb.CatalogException,
            duckdb.TypeMismatchException,
        ) as reason:
            raise ShapeError(f"table {self._name!r} does not fit", detail=str(reason)) from reason
        except (duckdb.PermissionException, PermissionError) as reason:
            raise TargetRefusedError(
                f"{where} may not be written", detail=str(reason), hint="check the file's rights"
            ) from reason
        except (duckdb.Error, OSError) as reason:
            raise TargetUnavailableError(
                f"{where} cannot be written now",
                detail=str(reason),
                hint="another process may have it open; the sink tries again",
            ) from reason


def _with_json(changes: pa.Table) -> pa.Table:
    """Nested columns as JSON text, the rest as it is."""
    for index, field in enumerate(changes.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None
                if value is None
                else orjson.dumps(
                    json_value(dict(value) if pa.types.is_map(field.type) else value)
                ).decode()
                for value in changes.column(index).to_pylist()
            ]
            changes = changes.set_column(index, field.name, pa.array(texts, pa.string()))
    return changes


def _typed(table: pa.Table, shape: Shape) -> pa.Table:
    """What DuckDB gives, in the types of the shape."""
    columns = []
    for field, ddl, column in zip(shape.schema, shape.columns, table.columns, strict=True):
        if pa.types.is_nested(field.type):
            name = orjson.dumps(field.name)
            texts = [b"{%b:%b}" % (name, (t or "null").encode()) for t in column.to_pylist()]
            column = read_rows(texts, (ddl,))[0].column(0)
        columns.append(column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=shape.schema)
