"""Reading a table in chunks: each a consistent snapshot that knows its place in the stream.

A commit is streamed before it can be seen, so rows that are read say nothing of what was
streamed by then. A snapshot therefore knows which transactions it sees: of MySQL all that
`gtid_executed` named before it was taken (it grows after the engine's commit), of MariaDB all
up to the position that it carries. Its rows are written once the stream has passed `mark`,
and none whose key was touched by a transaction that it may not have seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql

from tailrace.sources.errors import SourceError, UnsupportedServerError
from tailrace.sources.mysql import values
from tailrace.sources.mysql.fields import BINARIES, STRINGS, Field
from tailrace.sources.mysql.gtid import Known
from tailrace.sources.mysql.packets import Packets, length_of, read_error
from tailrace.sources.mysql.server import Server, TableDefinition, quoted, translated

COM_QUERY = 3
CHANGED_DEFINITION, NO_TABLE = 1412, 1146
PATIENCE = 600.0

Row = dict[str, Any]


class TableChanged(Exception):
    """The table was altered since the snapshot was taken: take another."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`known`: the transactions it surely sees; None: those before `mark`."""

    mark: int
    known: Known | None

    def sees(self, start: int, gtid: str) -> bool:
        return start < self.mark if self.known is None else self.known.has(gtid)


def place_number(file: str, position: int) -> int:
    """File and position as one number."""
    return int(file.rpartition(".")[2]) << 32 | position


def take_snapshot(
    server: Server, gate: tuple[int, Known | None], lock: str | None, stopped: Callable[[], bool]
) -> Snapshot | None:
    """Begin a transaction that sees everything up to `gate`; None when told to stop."""
    reached, streamed = gate
    while not stopped():
        if server.mariadb:
            _run(server, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            told = dict(server.rows("SHOW STATUS LIKE 'binlog_snapshot_%'"))
            words = {str(name).lower(): str(value) for name, value in told.items()}
            mark = place_number(
                words["binlog_snapshot_file"], int(words["binlog_snapshot_position"])
            )
            if mark >= reached:
                return Snapshot(mark, None)
        elif server.gtids:
            known = server.executed()
            assert known is not None
            if streamed is None or known.includes(streamed):
                _run(server, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
                return Snapshot(place_number(*server.end()), known)
        elif lock == "moment":
            _run(server, "FLUSH TABLES WITH READ LOCK")
            try:
                _run(server, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
                mark = place_number(*server.end())
            finally:
                _run(server, "UNLOCK TABLES")
            if mark >= reached:
                return Snapshot(mark, None)
        else:
            raise UnsupportedServerError(
                "tables cannot be copied without GTIDs",
                detail="Nothing says which transactions a read sees, so rows could be stale.",
                hint="SET GLOBAL enforce_gtid_consistency = ON;\n"
                "SET GLOBAL gtid_mode = OFF_PERMISSIVE;\nSET GLOBAL gtid_mode = ON_PERMISSIVE;\n"
                'SET GLOBAL gtid_mode = ON;\nor lock="moment", which holds a read lock for a moment',
            )
        _run(server, "ROLLBACK")
        time.sleep(0.02)
    return None


def _run(server: Server, statement: str) -> None:
    server.rows(statement)


def pin(server: Server, schema: str, table: str) -> TableDefinition | None:
    """The definition that the open snapshot reads the table in; it cannot be altered before
    the transaction ends. None if there is no such table."""
    try:
        with server.connection.cursor() as cursor:
            cursor.execute(f"SELECT 1 FROM {quoted(schema)}.{quoted(table)} LIMIT 0")
    except pymysql.MySQLError as error:
        if error.args and error.args[0] == CHANGED_DEFINITION:
            raise TableChanged from error
        if error.args and error.args[0] == NO_TABLE:
            return None
        with translated(f"SELECT FROM {schema}.{table}"):
            raise
    return server.definition(schema, table)


# --- conditions ---------------------------------------------------------------------------


def order_of(field: Field) -> str:
    """How a key column is sorted and compared: ENUM and SET by their numbers."""
    name = quoted(field.name)
    return f"{name} + 0" if field.kind in ("enum", "set", "bit") else name


def literal(field: Field, text: bytes) -> str:
    """A key's value, as read, as SQL."""
    number = field.kind.endswith("int") or field.kind in (
        "decimal", "float", "double", "year", "enum", "set", "bit",
    )  # fmt: skip
    if number:
        return text.decode("ascii")
    if field.kind in BINARIES:
        return f"X'{text.hex()}'" if text else "''"
    return f"CONVERT(X'{text.hex()}' USING utf8mb4)" if text else "''"


def beyond(fields: Sequence[Field], after: Sequence[str]) -> str:
    """The rows whose key comes after `after` (SQL literals), in a form that uses the index."""
    columns = [order_of(one) for one in fields]
    parts = []
    for number in range(len(columns)):
        same = [f"{columns[i]} = {after[i]}" for i in range(number)]
        parts.append("(" + " AND ".join([*same, f"{columns[number]} > {after[number]}"]) + ")")
    found = " OR ".join(parts)
    return f"{columns[0]} >= {after[0]} AND ({found})" if len(columns) > 1 else found


def selected(field: Field) -> str:
    """The expression that gives a column's value exactly, as text."""
    name = quoted(field.name)
    if field.kind in ("float", "double"):
        return f"{name} + 0e0"
    return name


def key_expression(field: Field) -> str:
    return f"{order_of(field)} + 0e0" if field.kind in ("float", "double") else order_of(field)


# --- rows ---------------------------------------------------------------------------------


def read_rows(server: Server, query: str) -> Iterator[bytes]:
    """The rows of an answer as the server packs them, piece by piece."""
    with translated(query[:60]):
        packets = Packets(server.connection, COM_QUERY, query.encode())
    stage, columns = 0, 0
    for packet in packets.all(PATIENCE):
        if packet[:1] == b"\xff":
            number, text = read_error(packet)
            if number == CHANGED_DEFINITION:
                raise TableChanged
            raise QueryRefused(number, text)
        if stage == 0:
            columns, _ = length_of(packet, 0)
            stage = 1
        elif packet[:1] == b"\xfe" and len(packet) < 9:
            if stage == 2:
                return
            stage = 2
        elif stage == 2:
            yield packet
        else:
            columns -= 1


class QueryRefused(Exception):
    """The server refused to read a table: number and text."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{number}: {text}")
        self.number, self.text = number, text


def split_row(packet: bytes) -> list[bytes | None]:
    """The texts of one row."""
    found: list[bytes | None] = []
    at, end = 0, len(packet)
    while at < end:
        first = packet[at]
        if first < 251:
            at += 1
            found.append(packet[at : at + first])
            at += first
        elif first == 251:
            found.append(None)
            at += 1
        else:
            length, at = length_of(packet, at)
            found.append(packet[at : at + length])
            at += length
    return found


class TextRows:
    """From the rows of a SELECT to dicts with the values that the binlog would give."""

    def __init__(self, definition: TableDefinition, wanted: Collection[str]) -> None:
        self.fields = [f for f in definition.fields if f.name in wanted]
        by_name = {f.name: f for f in definition.fields}
        self.key = [by_name[name] for name in definition.key]
        self._plans = [(f.name, _converter(f)) for f in self.fields]

    @property
    def columns(self) -> str:
        """What to select: the values, then the key."""
        return ", ".join([*map(selected, self.fields), *map(key_expression, self.key)])

    def row(self, packet: bytes) -> Row:
        texts = split_row(packet)
        return {
            name: None if text is None else convert(text)
            for (name, convert), text in zip(self._plans, texts, strict=False)
        }

    def key_literals(self, packet: bytes) -> list[str]:
        texts = split_row(packet)[len(self.fields) :]
        return [literal(f, text or b"") for f, text in zip(self.key, texts, strict=True)]


def _converter(field: Field) -> Callable[[bytes], Any]:
    kind = field.kind
    if kind.endswith("int") or kind == "year":
        return int
    if kind == "double":
        return float
    if kind == "float":
        return lambda text: values.single(float(text))
    if kind == "decimal":
        return lambda text: values.plain_decimal(text.decode())
    if kind in STRINGS or kind in ("enum", "set", "date", "time", "inet4", "uuid"):
        return lambda text: text.decode()
    if kind == "datetime":
        return lambda text: text.decode().replace(" ", "T")
    if kind == "timestamp":
        return lambda text: text.decode().replace(" ", "T") + "Z"
    if kind == "bit":
        return lambda text: values.bits(text, field.length)
    if kind == "json":
        return lambda text: values.json_text(text.decode())
    if kind == "inet6":
        return lambda text: values.inet6_text(text.decode())
    if kind == "geometry":
        return values.geometry
    if kind == "vector":
        return values.vector
    if kind in BINARIES:
        return values.base64_text
    raise SourceError(f"a column has the type {kind}, which this version does not know")
