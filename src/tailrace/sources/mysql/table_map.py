"""The table map: what an event says of a table before its rows.

With `binlog_row_metadata=FULL` it has names, signs, character sets, the values of ENUM and
SET and the primary key; what it has not is told by the catalog (`fields.as_said`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tailrace.sources.errors import BinlogSettingsError, ReplicationProtocolError
from tailrace.sources.mysql.fields import Charset, Field
from tailrace.sources.mysql.packets import length_of

INTEGER_TYPES = {1: "tinyint", 2: "smallint", 9: "mediumint", 3: "int", 8: "bigint"}
NUMERIC_TYPES = {*INTEGER_TYPES, 4, 5, 13, 246}
TEXTS = {1: "tinytext", 2: "text", 3: "mediumtext", 4: "longtext"}
BLOBS = {1: "tinyblob", 2: "blob", 3: "mediumblob", 4: "longblob"}
TIMES = {
    7: "timestamp",
    10: "date",
    11: "time",
    12: "datetime",
    17: "timestamp",
    18: "datetime",
    19: "time",
}
TEXT_TYPES = (15, 253, 254, 252, 140, 141)
MOST_COLUMNS = 4096


@dataclass(frozen=True, slots=True)
class Wire:
    """How a column stands in a row: its type in the binlog and two numbers that go with it."""

    type: int
    first: int = 0
    second: int = 0


@dataclass(frozen=True, slots=True)
class TableMap:
    """`key` are the numbers of the primary key's columns."""

    id: int
    schema: str
    table: str
    fields: tuple[Field, ...]
    wires: tuple[Wire, ...]
    key: tuple[int, ...]


def read_names(body: bytes) -> tuple[int, str, str, int]:
    """Id, schema and table of a map, and where its columns begin."""
    identifier = int.from_bytes(body[:6], "little")
    length, at = length_of(body, 8)
    schema = body[at : at + length].decode()
    length, at = length_of(body, at + length + 1)
    table = body[at : at + length].decode()
    return identifier, schema, table, at + length + 1


def read_table_map(
    body: bytes, charset: Callable[[int], Charset], kinds: Mapping[str, str], *, mariadb: bool
) -> TableMap:
    """`charset` knows collations by number, `kinds` what the catalog calls a column."""
    from tailrace.sources.mysql.fields import as_said

    try:
        identifier, schema, table, at = read_names(body)
        count, at = length_of(body, at)
        if count > MOST_COLUMNS or count > len(body):
            raise ReplicationProtocolError("a table with too many columns", detail=f"{count:,}")
        types = body[at : at + count]
        length, at = length_of(body, at + count)
        wires = tuple(_wires(types, body[at : at + length]))
        at += length
        nulls = body[at : at + (count + 7) // 8]
        extra = dict(_extra(body, at + (count + 7) // 8))
        fields = [
            as_said(field, kinds.get(field.name))
            for field in _fields(f"{schema}.{table}", wires, nulls, extra, charset, mariadb=mariadb)
        ]
        return TableMap(identifier, schema, table, tuple(fields), wires, _key(extra))
    except (IndexError, UnicodeDecodeError, KeyError) as error:
        raise ReplicationProtocolError("a table map cannot be read", detail=repr(error)) from error


def _wires(types: bytes, meta: bytes) -> Iterator[Wire]:
    at = 0
    for kind in types:
        if kind in (15, 141, 16, 253):  # VARCHAR, compressed VARCHAR, BIT
            yield Wire(kind, int.from_bytes(meta[at : at + 2], "little"), 0)
            at += 2
        elif kind == 246:
            yield Wire(kind, meta[at], meta[at + 1])
            at += 2
        elif kind in (254, 247, 248):
            real, size = meta[at], meta[at + 1]
            at += 2
            if real & 0x30 != 0x30:
                size |= (real & 0x30 ^ 0x30) << 4
                real |= 0x30
            yield Wire(real, size)
        elif kind in (4, 5, 252, 140, 255, 245, 242, 17, 18, 19):
            yield Wire(kind, meta[at])
            at += 1
        elif kind in (1, 2, 3, 8, 9, 13, 10, 7, 11, 12, 14, 6):
            yield Wire(kind)
        else:
            raise ReplicationProtocolError(
                f"a column has the type {kind}, which this version does not know",
                hint="leave the table out with `exclude=`",
            )


def _extra(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at < len(body):
        kind = body[at]
        length, at = length_of(body, at + 1)
        yield kind, body[at : at + length]
        at += length


def _numbers(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        number, at = length_of(data, at)
        found.append(number)
    return found


def _texts(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        length, at = length_of(data, at)
        found.append(data[at : at + length])
        at += length
    return found


def _values(data: bytes) -> list[list[bytes]]:
    found, at = [], 0
    while at < len(data):
        count, at = length_of(data, at)
        if count > len(data):
            raise ReplicationProtocolError("a column with more values than bytes")
        some = []
        for _ in range(count):
            length, at = length_of(data, at)
            some.append(data[at : at + length])
            at += length
        found.append(some)
    return found


def _collations(count: int, every: bytes | None, default: bytes | None) -> list[int]:
    """The collation of each of `count` columns, told one by one or by what differs."""
    if every is not None:
        return _numbers(every)
    if default is None:
        return [63] * count
    first, *pairs = _numbers(default)
    found = [first] * count
    for place, collation in zip(pairs[::2], pairs[1::2], strict=True):
        found[place] = collation
    return found


def _key(extra: Mapping[int, bytes]) -> tuple[int, ...]:
    if 8 in extra:
        return tuple(_numbers(extra[8]))
    return tuple(_numbers(extra.get(9, b""))[::2])


def _fields(
    name: str, wires: tuple[Wire, ...], nulls: bytes, extra: Mapping[int, bytes],
    charset: Callable[[int], Charset], *, mariadb: bool,
) -> Iterator[Field]:  # fmt: skip
    if 4 not in extra:
        raise BinlogSettingsError(
            "the binlog has no column names",
            detail=f"Rows of {name} were written without them.",
            hint="SET GLOBAL binlog_row_metadata = 'FULL';",
        )
    names = _texts(extra[4])
    if len(names) != len(wires):
        raise ReplicationProtocolError("a table map with fewer names than columns", detail=name)
    # MariaDB tells the character set of geometry, too.
    told = (*TEXT_TYPES, 255) if mariadb else TEXT_TYPES
    texts = [w for w in wires if w.type in told]
    lists = [w for w in wires if w.type in (247, 248)]
    collations = iter(_collations(len(texts), extra.get(3), extra.get(2)))
    list_collations = iter(_collations(len(lists), extra.get(11), extra.get(10)))
    enums, sets = iter(_values(extra.get(6, b""))), iter(_values(extra.get(5, b"")))
    signs = extra.get(1, b"")
    numeric = 0
    for at, (raw, wire) in enumerate(zip(names, wires, strict=True)):
        label = raw.decode()
        nullable = bool(nulls[at >> 3] >> (at & 7) & 1)
        unsigned = False
        if wire.type in NUMERIC_TYPES:
            unsigned = bool(signs[numeric >> 3] >> (7 - (numeric & 7)) & 1)
            numeric += 1
        known = Field(label, "", nullable=nullable)
        if mariadb and wire.type == 255:
            next(collations)
        yield _field(known, wire, unsigned, charset, collations, list_collations, enums, sets)


def _field(
    known: Field, wire: Wire, unsigned: bool, charset: Callable[[int], Charset],
    collations: Iterator[int], list_collations: Iterator[int],
    enums: Iterator[list[bytes]], sets: Iterator[list[bytes]],
) -> Field:  # fmt: skip
    from dataclasses import replace

    kind = wire.type
    if kind in INTEGER_TYPES:
        return replace(known, kind=INTEGER_TYPES[kind], unsigned=unsigned)
    if kind in (4, 5):
        return replace(known, kind="float" if kind == 4 else "double", unsigned=unsigned)
    if kind == 13:
        return replace(known, kind="year")
    if kind == 246:
        return replace(
            known, kind="decimal", unsigned=unsigned, length=wire.first, scale=wire.second
        )
    if kind in TIMES:
        return replace(known, kind=TIMES[kind], digits=wire.first)
    if kind == 16:
        return replace(known, kind="bit", length=(wire.first >> 8) * 8 + (wire.first & 0xFF))
    if kind in (247, 248):
        found = charset(next(list_collations))
        decode = found.decode or (lambda raw: raw.decode("latin-1"))
        listed = tuple(decode(value) for value in next(enums if kind == 247 else sets))
        return replace(known, kind="enum" if kind == 247 else "set", values=listed)
    if kind == 245:
        return replace(known, kind="json")
    if kind == 255:
        return replace(known, kind="geometry")
    if kind == 242:
        return replace(known, kind="vector")
    found = charset(next(collations))
    is_text = found.decode is not None
    if kind in (252, 140):
        return replace(
            known,
            kind=(TEXTS if is_text else BLOBS)[wire.first],
            charset=found if is_text else None,
        )
    varies = kind in (15, 141, 253)
    size = wire.first - 1 if kind == 141 else wire.first
    if not is_text:
        return replace(known, kind="varbinary" if varies else "binary", length=size)
    length = size // found.widest
    return replace(known, kind="varchar" if varies else "char", length=length, charset=found)
