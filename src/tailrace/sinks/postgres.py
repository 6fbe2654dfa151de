"""Rows in a Postgres table: COPY to a temporary table, one guarded merge, the position in
the same transaction.

The stage has the target's own types, so Postgres converts and checks the values; what it
does not take is refused by row. The row of `_tailrace_positions` is locked first: it is
the guard against a writer that was replaced.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal

import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import errors as pg

from tailrace.config import resolve
from tailrace.records.rows import read_rows
from tailrace.sinks.base import DELETED, Batch, Shape, Sink, SinkPosition
from tailrace.sinks.declare import Postgres
from tailrace.sinks.errors import (
    RowsRefusedError,
    ShapeError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import (
    NEXT,
    POSITIONS,
    POSTGRES_TYPES,
    PREVIOUS,
    check_key,
    held_position,
    kept_position,
    missing_columns,
    quoted,
    quoted_table,
    sql_type,
    text_columns,
)
from tailrace.sinks.widen import columns_to_widen

STAGE = "_tailrace_stage"


class PostgresSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Postgres)
        self._copy = copy
        self._surroundings = surroundings
        self._declaration = copy.declaration
        self._dsn = resolve(copy.declaration.dsn)
        self._name = copy.declaration.table
        self._table = quoted_table(self._name)
        self._positions = quoted_table(f"{_schema(self._name)}{POSITIONS}")
        self._connection: psycopg.Connection[Any] | None = None
        self._epoch = 0
        self._staged: tuple[str, ...] | None = None

    def open(self, shape: Shape) -> None:
        with self._transaction() as connection:
            # Two sinks that create the same things at once would both fail without it.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('tailrace'))")
            if schema := _schema(self._name)[:-1]:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}".encode())
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._positions} "
                "(sink text PRIMARY KEY, epoch bigint NOT NULL, position text)".encode()
            )
            self._prepare(connection, shape)
            row = connection.execute(
                f"INSERT INTO {self._positions} AS p (sink, epoch) VALUES (%s, 1) "
                "ON CONFLICT (sink) DO UPDATE SET epoch = p.epoch + 1 RETURNING epoch".encode(),
                [self._copy.name],
            ).fetchone()
            assert row is not None
            self._epoch = row[0]

    def position(self) -> SinkPosition | None:
        return self._position_of(self._copy.name)

    def _position_of(self, name: str) -> SinkPosition | None:
        with self._transaction() as connection:
            known = connection.execute("SELECT to_regclass(%s)", [self._positions]).fetchone()
            if known is None or known[0] is None:
                return None
            row = connection.execute(
                f"SELECT position FROM {self._positions} WHERE sink = %s".encode(), [name]
            ).fetchone()
        return held_position(row[0] if row else None, self._name)

    def apply(self, batch: Batch) -> None:
        shape = batch.shape
        with self._transaction() as connection:
            self._check_epoch(connection)
            if batch.changes.num_rows:
                if shape.one_row:
                    connection.execute(f"DELETE FROM {self._table}".encode())
                if not shape.key:
                    self._copy_rows(connection, self._table, batch.upserts)
                else:
                    self._stage(connection, shape)
                    columns = [*shape.names, DELETED]
                    self._copy_rows(connection, STAGE, batch.changes.select(columns))
                    self._merge(connection, batch)
            connection.execute(
                f"UPDATE {self._positions} SET position = %s WHERE sink = %s".encode(),
                [kept_position(batch.position, self._name), self._copy.name],
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._staged = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        names = ", ".join(quoted(name) for name in shape.names)
        with (
            self._transaction() as connection,
            connection.cursor("tailrace_scan") as cursor,
        ):
            # JSON from Postgres itself: every type in a form that `read_rows` knows.
            fields = ", ".join(
                _json_field(name, field.type)
                for name, field in zip(shape.names, shape.schema, strict=True)
            )
            cursor.execute(
                f"SELECT row_to_json(r)::text FROM (SELECT {fields} FROM "
                f"(SELECT {names} FROM {self._table}) t) r".encode()
            )
            while rows := cursor.fetchmany(20_000):
                yield read_rows([text.encode() for (text,) in rows], shape.columns)[0]

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        declaration = replace(self._declaration, table=self._name + NEXT)
        copy = replace(self._copy, name=self._copy.name + NEXT, declaration=declaration)
        return PostgresSink(copy, self._surroundings)

    def discard(self) -> None:
        with self._transaction() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {quoted_table(self._name + NEXT)}".encode())
            connection.execute(
                f"DELETE FROM {self._positions} WHERE sink = %s".encode(), [self._copy.name + NEXT]
            )

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
            for old, new in renames:
                connection.execute(
                    f"DROP TABLE IF EXISTS {quoted_table(self._name + new)}".encode()
                )
                connection.execute(
                    f"ALTER TABLE {quoted_table(self._name + old)} RENAME TO "
                    f"{quoted(bare + new)}".encode()
                )
                connection.execute(
                    # The epoch grows: whoever still writes to the table that was here must
                    # not go on with its own idea of the position.
                    f"INSERT INTO {self._positions} AS p (sink, epoch, position) "
                    f"SELECT %s, 1, position FROM {self._positions} WHERE sink = %s "
                    "ON CONFLICT (sink) DO UPDATE SET position = excluded.position, "
                    "epoch = p.epoch + 1".encode(),
                    [name + new, name + old],
                )
            connection.execute(
                f"DELETE FROM {self._positions} WHERE sink = %s".encode(), [name + renames[1][0]]
            )
        self._staged = None

    # ------------------------------------------------------------------ the table

    def _prepare(self, connection: psycopg.Connection[Any], shape: Shape) -> None:
        held = self._columns(connection)
        if not held and self._declaration.create:
            # A table that is gone takes with it what was said of it.
            connection.execute(
                f"UPDATE {self._positions} SET position = NULL WHERE sink = %s".encode(),
                [self._copy.name],
            )
            columns = [f"{quoted(n)} {sql_type(kind, POSTGRES_TYPES)}" for n, kind in shape.columns]
            if shape.key:
                distinct = "" if connection.info.server_version < 150_000 else " NULLS NOT DISTINCT"
                key = ", ".join(quoted(name) for name in shape.key)
                columns.append(f"UNIQUE{distinct} ({key})")
            connection.execute(f"CREATE TABLE {self._table} ({', '.join(columns)})".encode())
            return
        policy = self._declaration.schema_change if held else "park"
        for name, kind in missing_columns(shape, held, self._name, policy):
            connection.execute(
                f"ALTER TABLE {self._table} ADD COLUMN {quoted(name)} "
                f"{sql_type(kind, POSTGRES_TYPES)}".encode()
            )
            self._staged = None
        for name, kind in columns_to_widen(shape, held, POSTGRES_TYPES, self._name, policy):
            connection.execute(
                f"ALTER TABLE {self._table} ALTER COLUMN {quoted(name)} "
                f"TYPE {sql_type(kind, POSTGRES_TYPES)}".encode()
            )
            self._staged = None
        check_key(shape, self._name, self._unique_keys(connection))

    def _columns(self, connection: psycopg.Connection[Any]) -> dict[str, str]:
        rows = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [self._table],
        ).fetchall()
        return dict(rows)

    def _unique_keys(self, connection: psycopg.Connection[Any]) -> list[frozenset[str]]:
        rows = connection.execute(
            "SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) "
            "WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indpred IS NULL "
            "AND i.indexprs IS NULL GROUP BY i.indexrelid",
            [self._table],
        ).fetchall()
        return [frozenset(names) for (names,) in rows]

    # ------------------------------------------------------------------ one batch

    def _stage(self, connection: psycopg.Connection[Any], shape: Shape) -> None:
        """The temporary table, of the target's own types, once a session and shape."""
        if self._staged == shape.names:
            return
        columns = ", ".join(quoted(name) for name in shape.names)
        connection.execute(f"DROP TABLE IF EXISTS pg_temp.{STAGE}".encode())
        connection.execute(
            f"CREATE TEMPORARY TABLE {STAGE} ON COMMIT DELETE ROWS AS SELECT {columns}, "
            f"false AS {DELETED} FROM {self._table} WITH NO DATA".encode()
        )
        self._staged = shape.names

    def _copy_rows(self, connection: psycopg.Connection[Any], into: str, rows: pa.Table) -> None:
        names = ", ".join(quoted(name) for name in rows.column_names)
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {into} ({names}) FROM STDIN (FORMAT csv)".encode()) as copy,
        ):
            copy.write(_csv(rows))

    def _merge(self, connection: psycopg.Connection[Any], batch: Batch) -> None:
        shape = batch.shape
        names = ", ".join(quoted(name) for name in shape.names)
        key = ", ".join(quoted(name) for name in shape.key)
        unset = [name for name in shape.key if batch.changes[name].null_count]
        # Merge joins on IS NOT DISTINCT FROM are slow; it is asked only where NULLs are.
        same = " AND ".join(
            f"t.{quoted(name)} {'IS NOT DISTINCT FROM' if name in unset else '='} s.{quoted(name)}"
            for name in shape.key
        )
        if batch.has_deletes:
            connection.execute(
                f"DELETE FROM {self._table} t USING {STAGE} s WHERE s.{DELETED} AND {same}".encode()
            )
        if unset and connection.info.server_version < 150_000:
            nulls = " OR ".join(f"s.{quoted(name)} IS NULL" for name in unset)
            connection.execute(
                f"DELETE FROM {self._table} t USING {STAGE} s WHERE ({nulls}) AND {same}".encode()
            )
        rest = [quoted(name) for name in shape.names if name not in shape.key]
        action = (
            "DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in rest)
            if rest
            else "DO NOTHING"
        )
        connection.execute(
            f"INSERT INTO {self._table} ({names}) SELECT {names} FROM {STAGE} "
            f"WHERE NOT {DELETED} ON CONFLICT ({key}) {action}".encode()
        )

    def _check_epoch(self, connection: psycopg.Connection[Any]) -> None:
        row = connection.execute(
            f"SELECT epoch FROM {self._positions} WHERE sink = %s FOR UPDATE".encode(),
            [self._copy.name],
        ).fetchone()
        if row is None or row[0] != self._epoch:
            raise SinkFencedError(
                f"another writer took sink {self._copy.name!r} over",
                detail=f"Ours is epoch {self._epoch}, the database has {row and row[0]}.",
                hint="run a project only once",
            )

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        with self._errors():
            if self._connection is None or self._connection.closed:
                self._staged = None
                self._connection = psycopg.connect(
                    self._dsn, connect_timeout=10, application_name="tailrace"
                )
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._staged = None
                if not self._connection.closed:
                    self._connection.rollback()
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"Postgres table {self._name!r}"
        try:
            yield
        except (
            psycopg.DataError,
            psycopg.IntegrityError,
            pg.ProgramLimitExceeded,
            pg.CardinalityViolation,  # a key twice in a batch: halves of it have it once
        ) as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=_told(reason)) from reason
        except (pg.UndefinedTable, pg.UndefinedColumn, pg.DatatypeMismatch) as reason:
            raise ShapeError(
                f"{where} does not fit the view",
                detail=_told(reason),
                hint="`tailrace sink status` shows what it should look like",
            ) from reason
        except (
            pg.InsufficientPrivilege,
            pg.ReadOnlySqlTransaction,
            pg.InvalidAuthorizationSpecification,
            pg.InvalidPassword,
            pg.InvalidCatalogName,
        ) as reason:
            raise TargetRefusedError(
                f"{where} may not be written",
                detail=_told(reason),
                hint="check the role, its rights and the database; the sink tries again",
            ) from reason
        except psycopg.Error as reason:
            told = str(reason)
            refusal = "authentication" in told or "does not exist" in told
            kind = TargetRefusedError if refusal else TargetUnavailableError
            raise kind(
                f"{where} cannot be reached",
                detail=_told(reason),
                hint="the sink tries again until it answers",
            ) from reason


def _schema(name: str) -> str:
    """`reporting.` of `reporting.open_orders`; nothing for a bare name."""
    schema, dot, _ = name.rpartition(".")
    return schema + dot


def _told(reason: psycopg.Error) -> str:
    parts = [reason.diag.message_primary, reason.diag.message_detail, reason.diag.context]
    return "\n".join(part for part in parts if part) or str(reason).strip()


def _csv(rows: pa.Table) -> bytes:
    """CSV as COPY reads it: text always quoted, NULL empty."""
    columns = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_binary(column.type):
            column = pa.array(
                [None if value is None else "\\x" + value.hex() for value in column.to_pylist()],
                pa.string(),
            )
        columns[name] = column
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(
        text_columns(pa.table(columns)),
        buffer,
        pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed"),
    )
    return buffer.getvalue()


def _json_field(name: str, kind: pa.DataType) -> str:
    """A column in the form our JSON rows have."""
    column = quoted(name)
    if pa.types.is_decimal(kind):
        return f"{column}::text AS {column}"
    if pa.types.is_binary(kind):
        return f"encode({column}, 'base64') AS {column}"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return (
            f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS {column}"
        )
    if pa.types.is_floating(kind):
        return f"to_json({column}) AS {column}"
    return column
