"""The messages of pgoutput (protocol version 1) that are not rows.

Rows (`I`, `U`, `D`) are read by the decoder generated for their relation; what is
parsed here is rare. Every integer is big-endian, every name ends with a zero byte.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tailrace.sources.errors import ReplicationProtocolError

_BEGIN = struct.Struct(">qqI")
_COMMIT = struct.Struct(">Bqqq")
_HEAD = struct.Struct(">BI")


@dataclass(frozen=True, slots=True)
class Begin:
    """`commit_lsn` is the commit record's own position, known at the beginning."""

    commit_lsn: int
    committed_at: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """`end_lsn` is the position after the commit: where the next one may begin."""

    commit_lsn: int
    end_lsn: int
    committed_at: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type: int
    modifier: int
    in_identity: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the next rows will have it. Sent before its first row and after DDL."""

    id: int
    schema: str
    table: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """What `pg_logical_emit_message` sent."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


def read_begin(data: bytes) -> Begin:
    commit_lsn, at, xid = _BEGIN.unpack_from(data, 1)
    return Begin(commit_lsn, at, xid)


def read_commit(data: bytes) -> Commit:
    _, commit_lsn, end_lsn, at = _COMMIT.unpack_from(data, 1)
    return Commit(commit_lsn, end_lsn, at)


def _name(data: bytes, position: int) -> tuple[str, int]:
    end = data.index(b"\0", position)
    return data[position:end].decode(), end + 1


def read_relation(data: bytes) -> Relation:
    (identifier,) = struct.unpack_from(">I", data, 1)
    schema, position = _name(data, 5)
    table, position = _name(data, position)
    identity = chr(data[position])
    (count,) = struct.unpack_from(">H", data, position + 1)
    position += 3
    columns: list[RelationColumn] = []
    for _ in range(count):
        flags = data[position]
        name, position = _name(data, position + 1)
        kind, modifier = struct.unpack_from(">Ii", data, position)
        position += 8
        columns.append(RelationColumn(name, kind, modifier, bool(flags & 1)))
    return Relation(identifier, schema or "pg_catalog", table, identity, tuple(columns))


def read_truncate(data: bytes) -> Truncate:
    (count,) = struct.unpack_from(">I", data, 1)
    return Truncate(struct.unpack_from(f">{count}I", data, 6))


def read_message(data: bytes) -> Message:
    flags, lsn = struct.unpack_from(">Bq", data, 1)
    prefix, position = _name(data, 10)
    (length,) = struct.unpack_from(">I", data, position)
    return Message(bool(flags & 1), lsn, prefix, data[position + 4 : position + 4 + length])


def read_values(data: bytes, position: int) -> tuple[list[bytes | bool | None], int]:
    """The slow, general way to read a tuple: (text, None for NULL, True for unchanged TOAST).

    The naive twin of the generated decoders, and their fallback for unchanged values.
    """
    (count,) = struct.unpack_from(">H", data, position)
    position += 2
    values: list[bytes | bool | None] = []
    for _ in range(count):
        kind, length = _HEAD.unpack_from(data, position)
        if kind == 0x74:
            position += 5
            values.append(data[position : position + length])
            position += length
        elif kind == 0x6E:
            values.append(None)
            position += 1
        elif kind == 0x75:
            values.append(True)
            position += 1
        else:
            raise ReplicationProtocolError(f"unknown kind of column value {kind:#x}")
    return values, position
