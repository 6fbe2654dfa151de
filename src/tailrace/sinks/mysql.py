"""Rows in a MySQL or MariaDB table, the position in the same transaction.

Text keys are compared byte by byte, whatever the server's default: case-insensitive
collations would merge rows that the view keeps apart. Timestamps with a zone are stored
as DATETIME(6) in UTC. DDL commits by itself here, so a switch of tables and the move of
their positions are two steps; `open` finishes one that was interrupted between them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson
import pyarrow as pa
import pymysql
import pymysql.cursors

from tailrace.config import resolve
from tailrace.records.rows import json_value, read_rows
from tailrace.sinks.base import Batch, Shape, Sink, SinkPosition
from tailrace.sinks.declare import MySQL
from tailrace.sinks.errors import (
    RowsRefusedError,
    ShapeError,
    SinkDeclarationError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import (
    MYSQL_TYPES,
    NEXT,
    POSITIONS,
    PREVIOUS,
    check_key,
    held_position,
    kept_position,
    largest_row,
    missing_columns,
    python_rows_of,
    quoted,
    quoted_table,
    split_unset,
    sql_type,
    text_columns,
)
from tailrace.sinks.widen import columns_to_widen

ACCESS = {1044, 1045, 1049, 1142, 1143, 1227, 1290, 1836}
SSL_MODES = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
SHAPE = {1054, 1146, 1136, 1170, 1071}


class MySQLSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, MySQL)
        self._copy = copy
        self._surroundings = surroundings
        self._declaration = copy.declaration
        self._name = copy.declaration.table
        self._table = quoted_table(self._name, "`")
        self._connection: Any = None
        self._epoch = 0

    def open(self, shape: Shape) -> None:
        with self._transaction() as cursor:
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {POSITIONS} (sink VARCHAR(255) "
                f"COLLATE {self._collation()} PRIMARY KEY, epoch BIGINT NOT NULL, "
                "position LONGTEXT) CHARACTER SET utf8mb4"
            )
            self._finish_switch(cursor)
            self._prepare(cursor, shape)
            cursor.execute(
                f"INSERT INTO {POSITIONS} (sink, epoch) VALUES (%s, 1) "
                "ON DUPLICATE KEY UPDATE epoch = epoch + 1",
                (self._copy.name,),
            )
            self._epoch = self._stored(cursor, self._copy.name)[0]

    def position(self) -> SinkPosition | None:
        return self._position_of(self._copy.name)

    def _position_of(self, name: str) -> SinkPosition | None:
        with self._transaction() as cursor:
            if not self._columns(cursor, POSITIONS):
                return None
            return held_position(self._stored(cursor, name)[1], self._name)

    def apply(self, batch: Batch) -> None:
        shape = batch.shape
        names = ", ".join(quoted(name, "`") for name in shape.names)
        places = ", ".join("%s" for _ in shape.names)
        insert = f"INSERT INTO {self._table} ({names}) VALUES ({places})"
        same = " AND ".join(f"{quoted(name, '`')} <=> %s" for name in shape.key)
        upserts = self._values(batch.upserts)
        with self._sized(upserts) as cursor:
            epoch, _ = self._stored(cursor, self._copy.name, lock=True)
            if epoch != self._epoch:
                raise SinkFencedError(
                    f"another writer took sink {self._copy.name!r} over",
                    detail=f"Ours is epoch {self._epoch}, the database has {epoch}.",
                    hint="run a project only once",
                )
            if shape.one_row and batch.changes.num_rows:
                cursor.execute(f"DELETE FROM {self._table}")
            elif batch.has_deletes:
                self._delete(cursor, same, self._values(batch.deletes))
            if shape.key:
                upserts, unset = split_unset(upserts, shape.key)
                if unset.num_rows:
                    # NULLs are distinct to a unique key: such rows are replaced by hand.
                    self._delete(cursor, same, unset.select(list(shape.key)))
                    cursor.executemany(insert, python_rows_of(unset))
                insert += (
                    " ON DUPLICATE KEY UPDATE "
                    + ", ".join(
                        f"{quoted(name, '`')} = VALUES({quoted(name, '`')})"
                        for name in shape.names
                        if name not in shape.key
                    )
                    if len(shape.key) < len(shape.names)
                    else _no_change(shape)
                )
            if upserts.num_rows:
                cursor.executemany(insert, python_rows_of(upserts))
            cursor.execute(
                f"UPDATE {POSITIONS} SET position = %s WHERE sink = %s",
                (kept_position(batch.position, self._name), self._copy.name),
            )

    def close(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close()
            except pymysql.MySQLError:
                self._connection._force_close()
            self._connection = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        names = ", ".join(quoted(name, "`") for name in shape.names)
        kinds = [field.type for field in shape.schema]
        with self._transaction(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(f"SELECT {names} FROM {self._table}")
            while rows := cursor.fetchmany(20_000):
                texts = [
                    orjson.dumps(
                        {
                            name: _plain(value, kind)
                            for name, value, kind in zip(shape.names, row, kinds, strict=True)
                        }
                    )
                    for row in rows
                ]
                yield read_rows(texts, shape.columns)[0]

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        declaration = replace(self._declaration, table=self._name + NEXT)
        copy = replace(self._copy, name=self._copy.name + NEXT, declaration=declaration)
        return MySQLSink(copy, self._surroundings)

    def discard(self) -> None:
        with self._transaction() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {quoted_table(self._name + NEXT, '`')}")
            cursor.execute(f"DELETE FROM {POSITIONS} WHERE sink = %s", (self._copy.name + NEXT,))

    def switch(self) -> None:
        self._rotate(PREVIOUS, NEXT)

    def previous(self) -> SinkPosition | None:
        return self._position_of(self._copy.name + PREVIOUS)

    def rollback(self) -> None:
        self._rotate(NEXT, PREVIOUS)

    def _rotate(self, away: str, back: str) -> None:
        """`table` becomes `table + away`, `table + back` becomes `table`, in one RENAME."""
        with self._transaction() as cursor:
            # Written first: with it `open` can tell a switch that did not come to its end.
            cursor.execute(
                f"INSERT INTO {POSITIONS} (sink, epoch, position) VALUES (%s, 0, %s) "
                "ON DUPLICATE KEY UPDATE position = VALUES(position)",
                (f"{self._copy.name}__switch", orjson.dumps([away, back]).decode()),
            )
        with self._transaction() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {quoted_table(self._name + away, '`')}")
            cursor.execute(
                f"RENAME TABLE {self._table} TO {quoted_table(self._name + away, '`')}, "
                f"{quoted_table(self._name + back, '`')} TO {self._table}"
            )
        with self._transaction() as cursor:
            self._finish_switch(cursor)

    def _finish_switch(self, cursor: Any) -> None:
        marker = f"{self._copy.name}__switch"
        _, text = self._stored(cursor, marker)
        if text is None:
            return
        away, back = orjson.loads(text)
        if not self._columns(cursor, self._name + back):  # renamed, positions not moved yet
            for source, target in (("", away), (back, "")):
                _, position = self._stored(cursor, self._copy.name + source)
                cursor.execute(
                    f"INSERT INTO {POSITIONS} (sink, epoch, position) VALUES (%s, 1, %s) "
                    "ON DUPLICATE KEY UPDATE position = VALUES(position), epoch = epoch + 1",
                    (self._copy.name + target, position),
                )
            cursor.execute(f"DELETE FROM {POSITIONS} WHERE sink = %s", (self._copy.name + back,))
        cursor.execute(f"DELETE FROM {POSITIONS} WHERE sink = %s", (marker,))

    # ------------------------------------------------------------------ the table

    def _prepare(self, cursor: Any, shape: Shape) -> None:
        held = self._columns(cursor, self._name)
        if not held and self._declaration.create:
            # A table that is gone takes with it what was said of it; CREATE commits this.
            cursor.execute(
                f"UPDATE {POSITIONS} SET position = NULL WHERE sink = %s", (self._copy.name,)
            )
            columns = [
                f"{quoted(n, '`')} {self._type(n, kind, shape)}" for n, kind in shape.columns
            ]
            if shape.key:
                key = ", ".join(quoted(name, "`") for name in shape.key)
                columns.append(f"UNIQUE KEY ({key})")
            cursor.execute(
                f"CREATE TABLE {self._table} ({', '.join(columns)}) CHARACTER SET utf8mb4"
            )
            return
        policy = self._declaration.schema_change if held else "park"
        for name, kind in missing_columns(shape, held, self._name, policy):
            cursor.execute(
                f"ALTER TABLE {self._table} ADD COLUMN {quoted(name, '`')} "
                f"{self._type(name, kind, shape)}"
            )
        for name, kind in columns_to_widen(shape, held, MYSQL_TYPES, self._name, policy):
            cursor.execute(
                f"ALTER TABLE {self._table} MODIFY COLUMN {quoted(name, '`')} "
                f"{self._type(name, kind, shape)}"
            )
        check_key(shape, self._name, self._unique_keys(cursor))

    def _type(self, name: str, kind: str, shape: Shape) -> str:
        chosen = sql_type(kind, MYSQL_TYPES)
        if name in shape.key and chosen == MYSQL_TYPES["string"]:
            return f"{MYSQL_TYPES['key']} COLLATE {self._collation()}"
        if name in shape.key and chosen == MYSQL_TYPES["binary"]:
            return "VARBINARY(255)"
        return chosen + " NULL"

    def _collation(self) -> str:
        """Byte by byte, trailing blanks included."""
        maria = "mariadb" in str(self._connection.get_server_info()).lower()
        return "utf8mb4_nopad_bin" if maria else "utf8mb4_0900_bin"

    def _columns(self, cursor: Any, name: str) -> dict[str, str]:
        schema, _, bare = name.rpartition(".")
        cursor.execute(
            "SELECT column_name, column_type FROM information_schema.columns "
            "WHERE table_name = %s AND table_schema = COALESCE(%s, DATABASE())",
            (bare, schema or None),
        )
        return dict(cursor.fetchall())

    def _unique_keys(self, cursor: Any) -> list[frozenset[str]]:
        schema, _, bare = self._name.rpartition(".")
        cursor.execute(
            "SELECT index_name, column_name FROM information_schema.statistics WHERE "
            "non_unique = 0 AND table_name = %s AND table_schema = COALESCE(%s, DATABASE())",
            (bare, schema or None),
        )
        keys: dict[str, set[str]] = {}
        for index, column in cursor.fetchall():
            keys.setdefault(index, set()).add(column)
        return [frozenset(columns) for columns in keys.values()]

    def _values(self, rows: pa.Table) -> pa.Table:
        """Rows as the driver takes them; DATETIME wants no zone letter."""
        plain = [
            column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
            for column in rows.columns
        ]
        return text_columns(pa.Table.from_arrays(plain, names=rows.column_names))

    @contextmanager
    def _sized(self, rows: pa.Table) -> Iterator[Any]:
        """A transaction for these rows. One larger than the server's packet would end the
        connection, again and again: it is refused instead."""
        largest, limit = largest_row(rows), 0
        try:
            with self._transaction() as cursor:
                if largest >= 1 << 20:
                    cursor.execute("SELECT @@max_allowed_packet")
                    limit = int(cursor.fetchone()[0])
                    if largest > limit:
                        raise self._too_large(largest, limit)
                yield cursor
        except TargetUnavailableError as reason:
            if limit and largest * 2 > limit:  # quoting may double every byte
                raise self._too_large(largest, limit) from reason
            raise

    def _too_large(self, largest: int, limit: int) -> RowsRefusedError:
        return RowsRefusedError(
            f"MySQL table {self._name!r} refuses rows",
            detail=f"A row has {largest} bytes, the server takes {limit} in a packet.",
            hint="raise max_allowed_packet, then `tailrace sink dead-letters NAME --retry`",
        )

    def _delete(self, cursor: Any, same: str, keys: pa.Table) -> None:
        rows = python_rows_of(keys)
        for start in range(0, len(rows), 200):
            part = rows[start : start + 200]
            cursor.execute(
                f"DELETE FROM {self._table} WHERE " + " OR ".join(f"({same})" for _ in part),
                [value for row in part for value in row],
            )

    def _stored(self, cursor: Any, name: str, *, lock: bool = False) -> tuple[int, str | None]:
        cursor.execute(
            f"SELECT epoch, position FROM {POSITIONS} WHERE sink = %s"
            + (" FOR UPDATE" if lock else ""),
            (name,),
        )
        row = cursor.fetchone()
        return (0, None) if row is None else (row[0], row[1])

    # ------------------------------------------------------------------ the connection

    @contextmanager
    def _transaction(self, kind: Any = None) -> Iterator[Any]:
        with self._errors():
            if self._connection is None:
                self._connection = pymysql.connect(**self._address())
            try:
                with self._connection.cursor(kind) as cursor:
                    yield cursor
                self._connection.commit()
            except BaseException:
                self._abandon()
                raise

    def _abandon(self) -> None:
        try:
            self._connection.rollback()
        except (pymysql.MySQLError, OSError):
            self.close()

    def _address(self) -> dict[str, Any]:
        text = resolve(self._declaration.dsn)
        parts = urlsplit(text)
        if parts.scheme not in ("mysql", "mariadb") or not parts.path.strip("/"):
            raise SinkDeclarationError(
                f"sink {self._copy.name!r} has no MySQL address",
                hint="mysql://user:password@host:3306/database",
            )
        return {
            "host": parts.hostname or "127.0.0.1",
            "port": parts.port or 3306,
            "user": unquote(parts.username or "root"),
            "password": unquote(parts.password or ""),
            "database": unquote(parts.path.strip("/")),
            "charset": "utf8mb4",
            "connect_timeout": 10,
            "read_timeout": 60,
            "write_timeout": 60,
            "init_command": "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES'",
            "autocommit": False,
            **self._encryption(parts.query),
        }

    def _encryption(self, query: str) -> dict[str, Any]:
        """What the address says about TLS, for the driver."""
        given = dict(parse_qsl(query, keep_blank_values=True))
        default = "VERIFY_IDENTITY" if "ssl-ca" in given else "DISABLED"
        mode = given.pop("ssl-mode", default).upper()
        files = {name: given.pop(f"ssl-{name}", None) for name in ("ca", "cert", "key")}
        if given or mode not in SSL_MODES:
            raise SinkDeclarationError(
                f"sink {self._copy.name!r} has an unknown option in its address",
                detail=", ".join(sorted(given)) or f"ssl-mode={mode}",
                hint=f"ssl-mode ({', '.join(SSL_MODES)}), ssl-ca, ssl-cert and ssl-key",
            )
        if mode == "DISABLED":
            return {"ssl_disabled": True}
        try:
            context = ssl.create_default_context(cafile=files["ca"])
            if files["cert"]:
                context.load_cert_chain(files["cert"], files["key"])
        except OSError as reason:
            raise SinkDeclarationError(
                f"sink {self._copy.name!r} cannot read its certificates",
                detail=f"{reason.strerror or reason}: {', '.join(filter(None, files.values()))}",
            ) from reason
        context.check_hostname = mode == "VERIFY_IDENTITY"
        if mode == "REQUIRED":
            context.verify_mode = ssl.CERT_NONE
        return {"ssl": context}

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"MySQL table {self._name!r}"
        try:
            yield
        except (pymysql.DataError, pymysql.IntegrityError) as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=_told(reason)) from reason
        except pymysql.MySQLError as reason:
            code = reason.args[0] if reason.args else 0
            if code in SHAPE:
                raise ShapeError(f"{where} does not fit", detail=_told(reason)) from reason
            if code in ACCESS:
                raise TargetRefusedError(
                    f"{where} may not be written",
                    detail=_told(reason),
                    hint="check user, rights and database; the sink tries again",
                ) from reason
            if code in (1153, 1366, 1406, 1264, 4025, 3819):
                raise RowsRefusedError(f"{where} refuses rows", detail=_told(reason)) from reason
            raise TargetUnavailableError(
                f"{where} cannot be reached",
                detail=_told(reason),
                hint="the sink tries again until it answers",
            ) from reason


def _told(reason: pymysql.MySQLError) -> str:
    return str(reason.args[1]) if len(reason.args) > 1 else str(reason)


def _no_change(shape: Shape) -> str:
    first = quoted(shape.key[0], "`")
    return f" ON DUPLICATE KEY UPDATE {first} = VALUES({first})"


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_boolean(kind):
        return bool(value)
    if pa.types.is_nested(kind):
        return orjson.loads(value)
    text = json_value(value)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return f"{text}Z"
    return text
