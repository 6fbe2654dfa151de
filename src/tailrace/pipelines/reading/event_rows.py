"""Event topics as views read them: events as rows of a stream, published states as a table.

A row of a stream of events has its place and meta data, and one struct per type: that of its
own type is filled, the others are NULL; of one that was erased, `Erased`, all are. An event of an
older version is brought up first, by the functions its topic declares. What cannot be read (a type nobody declares, a newer version,
a record that is no event) is a dead record, never a row that is missing in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.reading.decode import Decoded
from tailrace.pipelines.reading.reader import Records
from tailrace.pipelines.values.columns import DELETED, KEY, SHARD
from tailrace.pipelines.values.types import BIGINT, STRING, TIMESTAMP
from tailrace.records.event_headers import (
    ERASED_TYPE,
    EVENT,
    META,
    STATE_TOPIC,
    VERSION,
    split_name,
)
from tailrace.records.rows import read_objects

Upcast = Callable[[dict[str, Any]], dict[str, Any]]
META_COLUMNS = ("id", "command", "name", "cause", "correlation", "actor")
COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("stream", STRING),
    ("version", BIGINT),
    ("type", STRING),
    ("at", TIMESTAMP),
    *((name, STRING) for name in META_COLUMNS),
)


@dataclass(frozen=True, slots=True)
class EventType:
    """One type: the version written today, its columns, and the way up from older ones."""

    name: str
    version: int
    schema: pa.Schema
    upcasts: tuple[tuple[int, Upcast], ...] = ()

    def lifted(self, version: int, value: bytes) -> bytes:
        """The value of an event as today's version has it. Raises ValueError, in one line."""
        if version == self.version:
            return value
        if version > self.version:
            raise ValueError(
                f"{self.name}.{version} is newer than this code, which knows {self.version}"
            )
        fields: dict[str, Any] = orjson.loads(value)
        steps = dict(self.upcasts)
        for step in range(version, self.version):
            if step not in steps:
                raise ValueError(f"no upcast from {self.name} version {step} to {step + 1}")
            try:
                fields = steps[step](fields)
            except Exception as error:
                raise ValueError(
                    f"the upcast of {self.name} {step} failed: {type(error).__name__}: {error}"
                ) from error
        return orjson.dumps(fields, default=str)


@dataclass(frozen=True, slots=True)
class EventRows:
    """How the records of an event topic are read. Upcasts are the user's own functions and
    travel to Spark's workers by value where their name does not lead to them."""

    types: tuple[EventType, ...]

    def __reduce__(self) -> tuple[Callable[..., EventRows], tuple[object, ...]]:
        plain = tuple((e.name, e.version, e.schema) for e in self.types)
        steps = tuple(each.upcasts for each in self.types)
        if not any(steps):
            return _events, (plain, None)
        from pyspark import cloudpickle

        return _events, (plain, cloudpickle.dumps(steps))  # type: ignore[no-untyped-call]

    def queries(self, topic: str) -> Mapping[str, str]:
        """The stream of each type: `accounts.deposited`."""
        return {f"{topic}.{each.name.lower()}": select_type(topic, each) for each in self.types}

    def decode(self, table: TableInput, records: Records, shards: int) -> Decoded:
        """Records as rows, and those that are none."""
        types = {each.name: each for each in self.types}
        dead: dict[int, str] = {}
        metas: dict[int, dict[str, Any]] = {}
        versions: dict[int, int] = {}
        by_type: dict[str, list[int]] = {}
        values: dict[int, bytes] = {}
        for index, (key, value) in enumerate(zip(records.keys, records.values, strict=True)):
            headers = _headers(records, index)
            try:
                kind, versions[index], metas[index] = _event(key, value, headers)
                name, version = split_name(kind)
                if kind == ERASED_TYPE:
                    by_type.setdefault(kind, []).append(index)
                    continue
                if name not in types:
                    raise ValueError(f"the event {kind} is not declared")
                assert value is not None
                values[index] = types[name].lifted(version, value)
            except ValueError as why:
                dead[index] = str(why)
                continue
            by_type.setdefault(name, []).append(index)
        structs: dict[str, tuple[pa.StructArray, dict[int, int]]] = {}
        for name, indices in by_type.items():
            if name not in types or not len(schema := types[name].schema):
                continue
            parsed, refused = read_objects([values[index] for index in indices], schema)
            lost = {indices[one.index]: one.reason for one in refused}
            dead |= lost
            kept = [index for index in indices if index not in lost]
            columns = [column.combine_chunks() for column in parsed.columns]
            whole = pa.StructArray.from_arrays(columns, fields=list(schema))
            structs[name] = whole, {index: row for row, index in enumerate(kept)}
        alive = [index for index in range(len(records.offsets)) if index not in dead]
        kinds = {index: name for name, indices in by_type.items() for index in indices}
        found: list[pa.Array] = [
            pa.array([_text(records.keys[index]) for index in alive], STRING),
            pa.array([versions[index] for index in alive], BIGINT),
            pa.array([kinds[index] for index in alive], STRING),
            pa.array([records.timestamps[index] * 1000 for index in alive], TIMESTAMP),
            *(
                pa.array([_word(metas[index].get(name)) for index in alive], STRING)
                for name in META_COLUMNS
            ),
        ]
        for each in self.types:
            if not len(each.schema):
                continue
            if each.name not in structs:
                found.append(pa.nulls(len(alive), pa.struct(list(each.schema))))
                continue
            whole, rows = structs[each.name]
            found.append(whole.take(pa.array([rows.get(index) for index in alive], pa.int64())))
        found.append(pa.repeat(pa.scalar(records.partition % shards, pa.int32()), len(alive)))
        schema = table.schema.append(pa.field(SHARD, pa.int32()))
        return Decoded(pa.table(found, schema=schema), _dead(records, dead), alive)


@dataclass(frozen=True, slots=True)
class StateRows:
    """How the published states of an event topic are read: the stream is the record's key.
    `events` is that topic: whoever has read the states has what its events came to."""

    events: str

    def queries(self, topic: str) -> Mapping[str, str]:
        return {}

    def decode(self, table: TableInput, records: Records, shards: int) -> Decoded:
        """Records as upserts, and those that are none."""
        dead: dict[int, str] = {}
        versions: dict[int, int | None] = {}
        live: list[int] = []
        for index, (key, value) in enumerate(zip(records.keys, records.values, strict=True)):
            number = _headers(records, index).get(VERSION)
            if key is None:
                dead[index] = "the record of a state has no key"
            elif value is not None:
                live.append(index)
            versions[index] = int(number) if number is not None and number.isdigit() else None
        inner = pa.schema(list(table.schema)[2:])
        parsed, refused = read_objects([records.values[i] or b"" for i in live], inner)
        dead |= {live[one.index]: one.reason for one in refused}
        rows = {index: row for row, index in enumerate(i for i in live if i not in dead)}
        alive = [index for index in range(len(records.offsets)) if index not in dead]
        taken = pa.array([rows.get(index) for index in alive], pa.int64())
        gone = pc.is_null(taken)
        schema = pa.schema(
            [
                *table.schema,
                pa.field(KEY, pa.binary()),
                pa.field(DELETED, pa.bool_()),
                pa.field(SHARD, pa.int32()),
            ]
        )
        made = pa.table(
            [
                pa.array([_text(records.keys[index]) for index in alive], STRING),
                pa.array([versions[index] for index in alive], BIGINT),
                *(column.combine_chunks().take(taken) for column in parsed.columns),
                pa.array([records.keys[index] for index in alive], pa.binary()),
                gone,
                pa.repeat(pa.scalar(records.partition % shards, pa.int32()), len(alive)),
            ],
            schema=schema,
        )
        return Decoded(made, _dead(records, dead))


def event_table(topic: str, types: tuple[EventType, ...], upcasts: str = "") -> TableInput:
    """An event topic as an input of views. `upcasts` stands for the code of the upcasts: where it
    changes, views are computed again. Raises ValueError where two columns would have one name."""
    structs = [(each.name, pa.struct(list(each.schema))) for each in types if len(each.schema)]
    columns = [*COLUMNS, *structs]
    _refuse_twice([name for name, _ in columns])
    reading = EventRows(types)
    _refuse_twice(list(reading.queries(topic)))
    key = ("stream", "version")
    return TableInput(
        topic, topic, pa.schema(columns), key, "stream", reading=reading, upcasts=upcasts
    )


def state_table(topic: str, schema: pa.Schema) -> TableInput:
    """The published states of an event topic as a table. Raises ValueError as `event_table`."""
    columns = [("stream", STRING), ("version", BIGINT), *((f.name, f.type) for f in schema)]
    _refuse_twice([name for name, _ in columns])
    name = f"{topic}{STATE_TOPIC}"
    return TableInput(name, name, pa.schema(columns), ("stream",), reading=StateRows(topic))


def select_type(topic: str, kind: EventType) -> str:
    """The stream of one type, `accounts.deposited`, as a query of the stream of all. A field of
    the event covers what the record itself says under the same name."""
    fields = {name.lower() for name in kind.schema.names}
    ours = [f"`{name}`" for name, _ in COLUMNS if name != "type" and name not in fields]
    theirs = [f"`{kind.name}`.`{name}` AS `{name}`" for name in kind.schema.names]
    return f"SELECT {', '.join([*ours, *theirs])} FROM `{topic}` WHERE `type` = '{kind.name}'"


def _refuse_twice(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise ValueError(f"two of its columns are called {name!r}")
        seen.add(name.lower())


def _events(plain: tuple[tuple[str, int, pa.Schema], ...], steps: bytes | None) -> EventRows:
    if steps is None:
        return EventRows(tuple(EventType(*each) for each in plain))
    from pyspark import cloudpickle

    upcasts = cloudpickle.loads(steps)
    return EventRows(tuple(EventType(*each, way) for each, way in zip(plain, upcasts, strict=True)))


def _headers(records: Records, index: int) -> dict[str, bytes | None]:
    headers = records.headers[index] if records.headers else None
    return dict(reversed(headers)) if headers else {}


def _event(
    key: bytes | None, value: bytes | None, headers: dict[str, bytes | None]
) -> tuple[str, int, dict[str, Any]]:
    """Type, version in the stream and meta data. Raises ValueError for what is no event."""
    kind, number, meta = (headers.get(name) for name in (EVENT, VERSION, META))
    if key is None or value is None or kind is None or number is None or meta is None:
        raise ValueError("the record is no event")
    told = orjson.loads(meta)
    if not isinstance(told, dict):
        raise ValueError("the meta data of the event is no object")
    return kind.decode("ascii"), int(number), told


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode(errors="replace")


def _word(value: object) -> str | None:
    return None if value is None else str(value)


def _dead(records: Records, reasons: dict[int, str]) -> list[DeadRecord]:
    return [
        DeadRecord(
            records.topic,
            records.partition,
            records.offsets[index],
            reason[:400],
            records.keys[index],
            records.values[index],
            tuple(_pairs(records, index)),
        )
        for index, reason in sorted(reasons.items())
    ]


def _pairs(records: Records, index: int) -> list[tuple[str, bytes | None]]:
    headers = records.headers[index] if records.headers else None
    return list(headers or ())
