"""Records of the log in the form a reader asks for: raw, JSON, Avro, changes of a table.

    raw       the record's own columns
    json      one column per declared column, from a JSON object; tombstones are left out
    avro      the same from Avro, plain or in Confluent's wire format
    inserts   the rows a change topic says were inserted (`snapshot`: the first copy too)
    changes   op, before, after and the position of every change of a table
    view      op (`u` or `d`), key and after of every change of a view
    events    one row per event, as views have it (`event_rows`); `reading`: how it is read, packed

What does not fit is given back with the reason (`Unreadable`), never left out in silence.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.errors import DeclarationError
from tailrace.pipelines.reading.reader import Records
from tailrace.pipelines.reading.wire import without_id
from tailrace.pipelines.values.types import parse_type
from tailrace.records.decode import shown_name
from tailrace.records.decode_columns import Numbers, RecordColumns
from tailrace.records.rows import read_objects

FORMS = ("raw", "json", "avro", "inserts", "changes", "view", "events")
_HEADERS_DDL = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_WHERE = [
    ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
]  # fmt: skip
_WHERE_DDL = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
RAW = f"key BINARY, value BINARY, headers {_HEADERS_DDL}, {_WHERE_DDL}"
_METADATA = pa.struct([("key", pa.binary()), ("headers", _HEADERS), *_WHERE])
_METADATA_DDL = (
    f"STRUCT<key: BINARY, headers: {_HEADERS_DDL}, topic: STRING, partition: INT, "
    "offset: BIGINT, timestamp: TIMESTAMP>"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Records to be formed, and where they come from: one partition, or with `origins`
    (topic, partition, offset of each) several."""

    topic: str
    partition: int
    records: RecordColumns
    origins: list[tuple[str, int, int]] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def origin(self, index: int) -> tuple[str, int, int]:
        """Topic, partition and offset at which a record was first written."""
        return self.location(index) if self.origins is None else self.origins[index]

    def location(self, index: int) -> tuple[str, int, int]:
        """Where a record was read, if from a retry topic then there."""
        return self.topic, self.partition, int(self.records.offsets[index])

    def only(self, wanted: Sequence[int]) -> Piece:
        """The records at these places."""
        places = np.array(wanted, np.int64)
        taken, records = pa.array(places), self.records
        headers = records.headers
        return Piece(
            self.topic,
            self.partition,
            RecordColumns(
                records.offsets[places],
                records.timestamps[places],
                records.keys.take(taken),
                records.values.take(taken),
                None if headers is None else [headers[i] for i in wanted],
            ),
            None if self.origins is None else [self.origins[i] for i in wanted],
        )

    def where(self) -> list[pa.Array]:
        """Topic, partition, offset and timestamp of every record."""
        count = len(self)
        times = pa.array(self.records.timestamps * 1000).cast(pa.timestamp("us", "UTC"))
        if self.origins is None:
            topic = pa.repeat(pa.scalar(self.topic, pa.string()), count)
            partition = pa.repeat(pa.scalar(self.partition, pa.int32()), count)
            return [topic, partition, pa.array(self.records.offsets), times]
        return [
            pa.array([topic for topic, _, _ in self.origins], pa.string()),
            pa.array([partition for _, partition, _ in self.origins], pa.int32()),
            pa.array([offset for _, _, offset in self.origins], pa.int64()),
            times,
        ]

    def headers(self) -> pa.Array:
        if self.records.headers is None:
            return pa.nulls(len(self), _HEADERS)
        return pa.array(
            [
                [{"key": shown_name(name), "value": value} for name, value in headers] or None
                for headers in self.records.headers
            ],
            _HEADERS,
        )

    def metadata(self) -> pa.Array:
        """The record itself as a struct, without its value."""
        return pa.StructArray.from_arrays(
            [self.records.keys, self.headers(), *self.where()], fields=list(_METADATA)
        )


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The place of a record that does not fit, and why."""

    index: int
    reason: str


def columns_of(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """The declared columns of a typed form."""
    try:
        return [(name, kind) for name, kind in orjson.loads(options["columns"])]
    except (KeyError, ValueError) as missing:
        raise DeclarationError(
            f"form {options.get('form')!r} needs columns",
            hint='option("columns", \'[["user", "STRING"]]\')',
        ) from missing


def form_of(options: Mapping[str, str]) -> str:
    """The form asked for, checked."""
    form = options.get("form", "raw")
    if form not in FORMS:
        raise DeclarationError(f"unknown form {form!r}", hint=f"one of {', '.join(FORMS)}")
    return form


def ddl_of(options: Mapping[str, str]) -> str:
    """The columns a form has, in Spark's words."""
    form = form_of(options)
    extra = f", `{options['metadata']}` {_METADATA_DDL}" if "metadata" in options else ""
    if form == "raw":
        return RAW
    columns = columns_of(options)
    row = ", ".join(f"`{name}`: {kind}" for name, kind in columns)
    if form == "changes":
        return f"op STRING, before STRUCT<{row}>, after STRUCT<{row}>, {_WHERE_DDL}{extra}"
    if form == "view":
        names = set(orjson.loads(options.get("key", "[]")))
        key = ", ".join(f"`{name}`: {kind}" for name, kind in columns if name in names)
        return f"op STRING, key STRUCT<{key or row}>, after STRUCT<{row}>, {_WHERE_DDL}{extra}"
    return ", ".join(f"`{name}` {kind}" for name, kind in columns) + extra


def form_records(piece: Piece, options: Mapping[str, str]) -> tuple[pa.Table, list[Unreadable]]:
    """Records as a table with the columns of `ddl_of`, and those that cannot be read."""
    form = form_of(options)
    if form == "raw":
        names = ["key", "value", "headers", *(name for name, _ in _WHERE)]
        columns = [piece.records.keys, piece.records.values, piece.headers(), *piece.where()]
        return pa.table(columns, names=names), []
    row = pa.schema([(name, parse_type(kind)) for name, kind in columns_of(options)])
    if form == "view":
        table, taken, bad = _view(piece, row, orjson.loads(options.get("key", "[]")))
    elif form == "events":
        table, taken, bad = _events(piece, row, options["reading"])
    else:
        live = _live(piece.records)
        if form == "avro":
            table, bad = _avro(piece, live, row, options)
        else:
            schema = row
            if form in ("inserts", "changes"):
                kind = pa.struct(list(row))
                schema = pa.schema([("op", pa.string()), ("before", kind), ("after", kind)])
                if form == "inserts":
                    schema = schema.remove(1)
                if form == "inserts" and options.get("snapshot") == "true":
                    about = pa.struct([("snapshot", pa.string())])
                    schema = schema.append(pa.field("source", about))
            values = piece.records.values
            chosen = values if len(live) == len(values) else values.take(pa.array(live))
            given = chosen.to_pylist()
            if options.get("wire") == "confluent":
                given = [without_id(value) for value in given]
            table, refused = read_objects(given, schema)
            bad = [Unreadable(live[one.index], one.reason) for one in refused]
        gone = {one.index for one in bad}
        taken = [index for index in live if index not in gone] if gone else live
    if form == "inserts":
        facts = _facts(table, copied=options.get("snapshot") == "true")
        after = table["after"].combine_chunks().take(pa.array(facts, pa.int64()))
        table = pa.table(after.flatten(), schema=row)
        taken = [taken[place] for place in facts]
    if form in ("changes", "view") or "metadata" in options:
        told = piece if len(taken) == len(piece) else piece.only(taken)
        if form in ("changes", "view"):
            for (name, _), column in zip(_WHERE, told.where(), strict=True):
                table = table.append_column(name, column)
        if "metadata" in options:
            table = table.append_column(options["metadata"], told.metadata())
    return table, bad


def _facts(table: pa.Table, *, copied: bool) -> list[int]:
    """The places of inserted rows; `copied`: with those of the first copy. Rows of a later one
    were told before."""
    ops = table["op"].to_pylist()
    if not copied:
        return [place for place, op in enumerate(ops) if op == "c"]
    kinds = table["source"].combine_chunks().field("snapshot").to_pylist()
    return [
        place
        for place, (op, kind) in enumerate(zip(ops, kinds, strict=True))
        if op == "c" or (op == "r" and kind != "incremental")
    ]


def _live(records: RecordColumns) -> list[int]:
    """The places of records that have a value."""
    if not records.values.null_count:
        return list(range(len(records)))
    alive: Numbers = np.flatnonzero(records.values.is_valid().to_numpy(zero_copy_only=False))
    return [int(index) for index in alive]


def _view(
    piece: Piece, row: pa.Schema, key: Sequence[str]
) -> tuple[pa.Table, list[int], list[Unreadable]]:
    """A view's changelog: `{"row": …}` or null under the key's JSON."""
    of_key = pa.schema([row.field(name) for name in key]) if key else row
    keys, refused = read_objects([k or b"{}" for k in piece.records.keys.to_pylist()], of_key)
    bad = {one.index: one.reason for one in refused}
    values = [v or b"{}" for v in piece.records.values.to_pylist()]
    rows, refused = read_objects(values, pa.schema([("row", pa.struct(list(row)))]))
    bad_values = {one.index: one.reason for one in refused}
    taken = [i for i in range(len(piece)) if i not in bad and i not in bad_values]
    # both came back without their own unreadable rows
    of_keys = _places(len(piece), bad)
    of_rows = _places(len(piece), bad_values)
    named = keys.take(pa.array([of_keys[i] for i in taken], pa.int64()))
    after = rows["row"].combine_chunks().take(pa.array([of_rows[i] for i in taken], pa.int64()))
    ops = pc.if_else(pc.is_null(after), "d", "u")
    whole = pa.StructArray.from_arrays(
        [column.combine_chunks() for column in named.columns], fields=list(named.schema)
    )
    table = pa.table([ops, whole, after], names=["op", "key", "after"])
    return table, taken, [Unreadable(i, r) for i, r in sorted({**bad_values, **bad}.items())]


def packed(table: TableInput) -> str:
    """How the records of an input are read, as the text of an option."""
    return base64.b64encode(pickle.dumps(table)).decode()


def _events(
    piece: Piece, row: pa.Schema, reading: str
) -> tuple[pa.Table, list[int], list[Unreadable]]:
    """Events, through the upcasts of their topic."""
    table: TableInput = _unpacked(reading)
    assert table.reading is not None
    records = piece.records
    given = Records(
        piece.topic,
        piece.partition,
        list(range(len(piece))),  # not their offsets: those of a retry topic are another's
        records.keys.to_pylist(),
        records.values.to_pylist(),
        records.timestamps.tolist(),
        list(records.headers or ()),
    )
    found = table.reading.decode(table, given, 1)
    bad = [Unreadable(one.offset, one.reason) for one in found.dead]
    gone = {one.index for one in bad}
    taken = [index for index in range(len(piece)) if index not in gone]
    return found.rows.select(row.names).cast(row), taken, bad


@lru_cache(maxsize=16)
def _unpacked(reading: str) -> TableInput:
    table: TableInput = pickle.loads(base64.b64decode(reading))
    return table


def _places(count: int, left_out: Mapping[int, str]) -> dict[int, int]:
    """Where each record is in a table that lacks those left out."""
    remaining = [index for index in range(count) if index not in left_out]
    return {index: place for place, index in enumerate(remaining)}


def _avro(
    piece: Piece, live: Sequence[int], row: pa.Schema, options: Mapping[str, str]
) -> tuple[pa.Table, list[Unreadable]]:
    from tailrace.pipelines.values.avro import decoder

    read = decoder(options)
    rows: list[dict[str, Any]] = []
    bad: list[Unreadable] = []
    for index in live:
        try:
            found = read(piece.records.values[index].as_py())
            for field in row:
                pa.scalar(found.get(field.name), field.type)
        except Exception as reason:  # fastavro raises whatever its parser stumbles over
            bad.append(Unreadable(index, f"{type(reason).__name__}: {reason}"))
            continue
        rows.append(found)
    return pa.Table.from_pylist(rows, schema=row), bad
