"""From records of the log to Arrow rows, and what becomes of those that cannot be read.

The value of a change topic is Debezium's envelope: `before`, `after`, `op`. A table's
rows come from `after` alone and its record key; weights are `keyed`'s business, because
`before` need not match what a reader holds. What cannot be read is given back with the
reason, never skipped in silence.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.engine.evaluate import evaluate
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.reading.reader import Range, Records
from tailrace.pipelines.reading.wire import to_json
from tailrace.pipelines.values.columns import (
    COPIED,
    DELETED,
    KEY,
    OFFSET,
    PARTITION,
    PLACED,
    SHARD,
    TIME,
    VERSIONED_AT,
    WEIGHT,
)
from tailrace.records.decode import shown_name
from tailrace.records.decode_columns import RecordColumns
from tailrace.records.rows import Refused, read_column, read_objects


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows in the order of the log, as `TableInput` says they arrive, and dead records."""

    rows: pa.Table
    dead: list[DeadRecord]
    indices: Sequence[int] | None = None  # the record of each row; None: they are not told


def decode(table: TableInput, records: Records, shards: int, *, envelope: bool = True) -> Decoded:
    """Turn records of a topic into the rows its operators take.

    `envelope` False: the value is the row itself, and every record is a fact.
    """
    if table.reading is not None:
        return table.reading.decode(table, records, shards)
    if table.wire:
        opened, bad = to_json(table.wire, records.values)
        decoded = decode(
            replace(table, wire=()), replace(records, values=opened), shards, envelope=envelope
        )
        return replace(decoded, dead=[_as_written(one, records, bad) for one in decoded.dead])
    match table.kind:
        case "bag":
            return _decode_bag(table, records, shards)
        case "stream":
            return _decode_stream(table, records, shards, envelope)
        case "history":
            return _decode_history(table, records, shards)
        case _:
            return _decode_table(table, records, shards, envelope)


def decode_whole(
    table: TableInput, columns: RecordColumns, shard: int, *, envelope: bool = True
) -> Decoded | None:
    """`decode` of records as columns, all at once; None where a record needs a closer look
    (one that cannot be read, a tombstone, one without key) or the kind of table does."""
    keyed = table.kind == "table"
    if table.reading is not None or table.wire:
        return None
    if not (keyed or (table.kind == "stream" and not envelope)):
        return None
    if keyed and columns.keys.null_count:
        return None
    whole = pa.struct(list(table.schema))
    parsed = read_column(
        columns.values, pa.schema([("after", whole)]) if envelope else table.schema
    )
    if parsed is None:
        return None
    count = parsed.num_rows
    shards = pa.repeat(pa.scalar(shard, pa.int32()), count)
    if not keyed:
        rows = pa.table([*parsed.columns, shards], schema=_with(table.schema, (SHARD, pa.int32())))
        return Decoded(rows, [], range(count))
    found, deleted = parsed.columns, pa.repeat(pa.scalar(False), count)
    if envelope:
        after = parsed["after"].combine_chunks()
        found, deleted = after.flatten(), pc.is_null(after)
    schema = _with(table.schema, (KEY, pa.binary()), (DELETED, pa.bool_()), (SHARD, pa.int32()))
    rows = pa.table([*found, columns.keys, deleted, shards], schema=schema)
    return Decoded(rows, [], range(count))


def _as_written(one: DeadRecord, records: Records, bad: Mapping[int, str]) -> DeadRecord:
    """A dead record with the bytes that stand in the log, and why they could not be opened."""
    index = records.offsets.index(one.offset)
    return replace(one, value=records.values[index], reason=bad.get(index, one.reason))


def _decode_table(table: TableInput, records: Records, shards: int, envelope: bool) -> Decoded:
    kind = pa.struct(list(table.schema))
    parsed, where, dead = _parse(
        records, pa.schema([("after", kind)]) if envelope else table.schema
    )
    where, dead = _keyed_only(table, records, where, dead)
    if envelope:
        rows = parsed["after"].combine_chunks()
    else:
        columns = [column.combine_chunks() for column in parsed.columns]
        rows = pa.StructArray.from_arrays(columns, fields=list(table.schema))
    after = rows.take(pa.array([r for _, r in where], pa.int64()))
    key = pa.array([records.keys[i] for i, _ in where], pa.binary())
    rows = pa.table(
        [*after.flatten(), key, pc.is_null(after), _shard(records, shards, len(where))],
        schema=_with(table.schema, (KEY, pa.binary()), (DELETED, pa.bool_()), (SHARD, pa.int32())),
    )
    return Decoded(rows, dead, [index for index, _ in where])


def _decode_history(table: TableInput, records: Records, shards: int) -> Decoded:
    kind = pa.struct(list(table.schema))
    about = pa.struct([("ts_ms", pa.int64())])
    schema = pa.schema([("op", pa.string()), ("after", kind), ("source", about)])
    parsed, where, dead = _parse(records, schema)
    where, dead = _keyed_only(table, records, where, dead)
    # The tombstone behind a delete only helps compaction; the delete has the time.
    where = [(index, row) for index, row in where if row is not None]
    gone = pc.is_null(parsed["after"].combine_chunks()).to_pylist()
    deletes = [index for index, row in where if gone[row]]
    keys, unread = _read_keys(table, [records.keys[index] for index in deletes])
    lost = {deletes[one.index]: one.reason for one in unread}
    dead = [
        *dead,
        *(_dead(records, i, f"the key of a delete cannot be read: {lost[i]}") for i in lost),
    ]
    where = [(index, row) for index, row in where if index not in lost]
    rows = parsed.take(pa.array([row for _, row in where], pa.int64()))
    after = rows["after"].combine_chunks()
    stamps = rows["source"].combine_chunks().field("ts_ms").to_pylist()
    versioned = [
        (records.timestamps[index] if ms is None else ms) * 1000
        for ms, (index, _) in zip(stamps, where, strict=True)
    ]
    made = pa.table(
        [
            *_with_keys(after, table, keys),
            pa.array([records.keys[index] for index, _ in where], pa.binary()),
            pa.array(versioned, pa.timestamp("us", tz="UTC")),
            pc.fill_null(pc.equal(rows["op"].combine_chunks(), "r"), False),
            pc.is_null(after),
            _shard(records, shards, len(where)),
        ],
        schema=_with(
            table.schema,
            (KEY, pa.binary()),
            (VERSIONED_AT, pa.timestamp("us", tz="UTC")),
            (COPIED, pa.bool_()),
            (DELETED, pa.bool_()),
            (SHARD, pa.int32()),
        ),
    )
    return Decoded(made, dead, [index for index, _ in where])


def _read_keys(table: TableInput, keys: Sequence[bytes | None]) -> tuple[pa.Table, list[Refused]]:
    """The key columns of records whose values have none."""
    schema = pa.schema([table.schema.field(name) for name in table.key])
    return read_objects([key or b"" for key in keys], schema)


def _with_keys(after: pa.StructArray, table: TableInput, keys: pa.Table) -> list[pa.Array]:
    """The columns of `after`; where it is NULL, the key columns are those of `keys`, in turn."""
    gone = pc.is_null(after)
    return [
        pc.replace_with_mask(column, gone, keys.column(field.name).combine_chunks())
        if field.name in table.key
        else column
        for field, column in zip(table.schema, after.flatten(), strict=True)
    ]


def _keyed_only(
    table: TableInput,
    records: Records,
    where: list[tuple[int, int | None]],
    dead: list[DeadRecord],
) -> tuple[list[tuple[int, int | None]], list[DeadRecord]]:
    """Without records that have no key, which a keyed table cannot take. Those of a time when
    it had none are no rows of it any more: a `t` stands behind them."""
    keyless = {i for i, key in enumerate(records.keys) if key is None}
    if not keyless:
        return where, dead
    if table.once_keyless:
        return [(i, row) for i, row in where if i not in keyless], dead
    dead = [
        *dead,
        *(_dead(records, i, "a record of a keyed table has no key") for i in sorted(keyless)),
    ]
    return [(i, row) for i, row in where if i not in keyless], dead


def _decode_bag(table: TableInput, records: Records, shards: int) -> Decoded:
    kind = pa.struct(list(table.schema))
    schema = pa.schema([("op", pa.string()), ("before", kind), ("after", kind)])
    parsed, where, dead = _parse(records, schema)
    both = pa.concat_arrays([parsed["before"].combine_chunks(), parsed["after"].combine_chunks()])
    ops, count = parsed["op"].to_pylist(), parsed.num_rows
    known = pc.is_valid(parsed["before"]).to_pylist()
    taken: list[int | None] = []
    weights: list[int] = []
    deleted: list[bool] = []
    for index, row in where:
        if row is None or records.keys[index] is not None:
            continue  # of a time when the table had a key: its rows were deleted with it
        if ops[row] in ("u", "d") and not known[row]:
            dead.append(_dead(records, index, "a change of a row without a key must say which"))
            continue
        if ops[row] == "t":
            taken.append(None)
            weights.append(0)
            deleted.append(True)
        if ops[row] in ("u", "d"):
            taken.append(row)
            weights.append(-1)
            deleted.append(False)
        if ops[row] in ("u", "c", "r"):
            taken.append(count + row)
            weights.append(1)
            deleted.append(False)
    rows = pa.table(
        [
            *both.take(pa.array(taken, pa.int64())).flatten(),
            pa.array(weights, pa.int64()),
            pa.array(deleted, pa.bool_()),
            _shard(records, shards, len(taken)),
        ],
        schema=_with(
            table.schema, (WEIGHT, pa.int64()), (DELETED, pa.bool_()), (SHARD, pa.int32())
        ),
    )
    return Decoded(rows, dead)


def _decode_stream(table: TableInput, records: Records, shards: int, envelope: bool) -> Decoded:
    kind = pa.struct(list(table.schema))
    schema = _with(table.schema, (SHARD, pa.int32()))
    if envelope:
        about = pa.struct([("snapshot", pa.string())])
        asked = [("op", pa.string()), ("after", kind), ("source", about)]
        parsed, where, dead = _parse(records, pa.schema(asked if table.copied else asked[:2]))
        ops = parsed["op"].to_pylist()
        wanted = {row for row, op in enumerate(ops) if op == "c"}
        if table.copied:  # rows of a later copy were told before
            kinds = parsed["source"].combine_chunks().field("snapshot").to_pylist()
            wanted |= {r for r, op in enumerate(ops) if op == "r" and kinds[r] != "incremental"}
        taken = [(i, row) for i, row in where if row is not None and row in wanted]
        facts = [row for _, row in taken]
        columns = parsed["after"].combine_chunks().take(pa.array(facts, pa.int64())).flatten()
    else:
        parsed, where, dead = _parse(records, table.schema)
        taken = [(i, row) for i, row in where if row is not None]
        facts = [row for _, row in taken]
        columns = [c.combine_chunks() for c in parsed.take(pa.array(facts, pa.int64())).columns]
    rows = pa.table([*columns, _shard(records, shards, len(facts))], schema=schema)
    return Decoded(rows, dead, [index for index, _ in taken])


def placed(table: TableInput, decoded: Decoded, wanted: Range, columns: RecordColumns) -> Decoded:
    """The rows of a stream with their event times and places in the log. A row without an event
    time has no place in the order: it is a dead record."""
    assert table.order is not None
    assert decoded.indices is not None
    rows = decoded.rows
    times = evaluate(table.order, rows)
    times = times.combine_chunks() if isinstance(times, pa.ChunkedArray) else times
    times = times.cast(PLACED.field(TIME).type)
    places = np.asarray(decoded.indices, dtype="i8")
    dead = decoded.dead
    if times.null_count:
        known = np.asarray(pc.is_valid(times))
        records = {int(index) for index in places[~known]}
        dead = [*dead, *(_without_time(wanted, columns, index) for index in sorted(records))]
        rows, times, places = (
            rows.filter(pa.array(known)),
            times.filter(pa.array(known)),
            places[known],
        )
    count = rows.num_rows
    offsets = np.asarray(columns.offsets)[places]
    added = [
        times, times.cast(pa.int64()),
        pa.repeat(pa.scalar(wanted.partition, pa.int64()), count), pa.array(offsets, pa.int64()),
    ]  # fmt: skip
    recorded = [rows.column(name) for name in table.recorded.names]
    names = [*table.schema.names, SHARD]
    made = pa.table([*recorded, *added, rows.column(SHARD)], names=names)
    return Decoded(made, dead, places.tolist())


def with_places(
    table: TableInput, decoded: Decoded, wanted: Range, columns: RecordColumns
) -> Decoded:
    """The rows of a table with the places of their records."""
    assert decoded.indices is not None
    rows, count = decoded.rows, decoded.rows.num_rows
    offsets = np.asarray(columns.offsets)[np.asarray(decoded.indices, dtype="i8")]
    at = len(table.recorded)
    added = (
        (PARTITION, pa.repeat(pa.scalar(wanted.partition, pa.int64()), count)),
        (OFFSET, pa.array(offsets, pa.int64())),
    )
    for place, (name, column) in enumerate(added, at):
        rows = rows.add_column(place, name, column)
    return replace(decoded, rows=rows)


def _without_time(wanted: Range, columns: RecordColumns, index: int) -> DeadRecord:
    return DeadRecord(
        wanted.topic, wanted.partition, int(columns.offsets[index]),
        "the row has no event time", columns.keys[index].as_py(), columns.values[index].as_py(),
    )  # fmt: skip


def _parse(
    records: Records, schema: pa.Schema
) -> tuple[pa.Table, list[tuple[int, int | None]], list[DeadRecord]]:
    """Parsed values; for each readable record its parsed row (None for a tombstone)."""
    live = [i for i, value in enumerate(records.values) if value is not None]
    parsed, refused = read_objects([records.values[i] for i in live], schema)  # type: ignore[misc]
    reasons = {live[r.index]: r.reason for r in refused}
    dead = [_dead(records, index, reason) for index, reason in reasons.items()]
    where: list[tuple[int, int | None]] = []
    row = 0
    for index, value in enumerate(records.values):
        if value is None:
            where.append((index, None))
        elif index not in reasons:
            where.append((index, row))
            row += 1
    return parsed, where, dead


# A reason names the column first and the type last; a value between them can be megabytes.
_REASON_START, _REASON_END = 240, 120


def _dead(records: Records, index: int, reason: str) -> DeadRecord:
    if len(reason) > _REASON_START + _REASON_END:
        reason = f"{reason[:_REASON_START]} … {reason[-_REASON_END:]}"
    return DeadRecord(
        records.topic,
        records.partition,
        records.offsets[index],
        reason,
        records.keys[index],
        records.values[index],
    )


def _shard(records: Records, shards: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(records.partition % shards, pa.int32()), count)


def _with(schema: pa.Schema, *fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([*schema, *(pa.field(name, kind) for name, kind in fields)])


def dead_key(record: DeadRecord) -> bytes:
    return f"log:{record.topic}/{record.partition}:{record.offset}".encode()


def dead_letter(record: DeadRecord) -> bytes:
    """A dead record as the value of its dead-letter topic."""
    letter: dict[str, object] = {
        "reason": record.reason,
        "position": dead_key(record).decode(),
        "key": _text(record.key),
        "value": _text(record.value),
    }
    if record.headers:
        letter["headers"] = [[shown_name(name), _text(value)] for name, value in record.headers]
    if record.timestamp is not None:
        letter["timestamp"] = record.timestamp
    if record.stack:
        letter["stack"] = record.stack
    if record.blocked_by:
        letter["blocked_by"] = record.blocked_by
    return orjson.dumps(letter)


def dead_headers(record: DeadRecord) -> list[tuple[str, bytes]]:
    """What a plain consumer wants to see of a letter without opening it."""
    reason = record.reason.encode()[:1000]
    return [("tailrace.reason", reason), ("tailrace.position", dead_key(record))]


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
