"""Stored queries matched against a stream.

    queries ──► keyed ──► readable ──► everywhere ──┐
                             │                      ├──► percolate ──► limited ──► told
    topic ────► stream ──────┼──────────────────────┘                     ▲
                             └────────────────────────────────────────────┘

Documents stay in their shards; every shard holds all queries. Its state:

    "q" + key     -> marshal (version, row)           the row of `Queries.columns`
    "v"           -> marshal (number, digest)         changes so far, and what they were
    "c" + number  -> marshal (digest before, keys)    the last changes, for whoever is behind

The compiled queries are kept by the process, for all shards, under the digest of the changes
that made them: an attempt that is thrown away leaves nothing behind that a later one would
believe. `limited` keeps what it has told of the queries that say how often:

    key           -> marshal (version told, times in milliseconds)
"""

from __future__ import annotations

import hashlib
import marshal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.changelog import json_objects
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.percolate.batch import Documents
from tailrace.pipelines.engine.percolate.fields import Fields
from tailrace.pipelines.engine.percolate.language import QueryFault, parse_query
from tailrace.pipelines.engine.percolate.queries import QuerySet
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import OFFSET, PARTITION, WEIGHT
from tailrace.pipelines.values.keys import bounded, encode_keys
from tailrace.pipelines.values.rows import (
    Row,
    dumps,
    physical,
    to_array,
    to_rows,
    weighted,
    weights,
)
from tailrace.pipelines.values.shards import shards_of

TO = "__to"
ID, VERSION, EVENT = "query_id", "query_version", "event"
ONCE, HOURLY = "__once", "__hourly"
BATCH = 2_000  # documents that are matched at once
MOST_HOURLY = 10_000
HOUR_MS = 3_600_000
_KEPT_CHANGES = 256
_MOST_CHANGED = 10_000  # keys of one change that are written down


@dataclass(frozen=True, slots=True)
class Queries:
    """The columns of stored queries: the first is the id, the second the text; then what is
    carried, and the options that are asked for (`ONCE`, `HOURLY`). `topic` is where they stand."""

    topic: str
    schema: pa.Schema
    fields: Fields

    @property
    def columns(self) -> list[str]:
        """Without the place in the log."""
        return [name for name in self.schema.names if name not in (PARTITION, OFFSET)]

    @property
    def kept(self) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in self.columns])

    @property
    def carried(self) -> list[str]:
        return [name for name in self.columns[2:] if name not in (ONCE, HOURLY)]


@dataclass(frozen=True, slots=True)
class Readable:
    """Stored queries that can be read; of the others it is said why."""

    queries: Queries
    kind: ClassVar[str] = "readable"
    wakes: ClassVar[bool] = False
    stateless: ClassVar[bool] = True

    def describe(self) -> str:
        return f"readable queries of {self.queries.topic}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        from tailrace.pipelines.engine.dead_record import DeadRecord

        table, columns = inputs[0], self.queries.columns
        keep: list[bool] = []
        rows = zip(to_rows(table, [*columns, PARTITION, OFFSET]), weights(table), strict=True)
        for row, weight in rows:
            fault = unreadable(self.queries, row[: len(columns)])
            keep.append(fault is None)
            if fault is not None and weight > 0:
                shown = pa.table([to_array([row[0]], self.queries.schema.field(0).type)], ["id"])
                tick.dead.append(
                    DeadRecord(
                        self.queries.topic, cast(int, row[-2]), cast(int, row[-1]),
                        f"stored query {_shown_id(row[0])} cannot be read: {fault}",
                        json_objects(["id"], shown)[0].as_py(),
                        None if row[1] is None else str(row[1]).encode(),
                    )
                )  # fmt: skip
        left = table.filter(pa.array(keep, pa.bool_())).select([*columns, WEIGHT])
        return left.cast(weighted(self.queries.kept))


def unreadable(queries: Queries, row: Row) -> str | None:
    """Why a stored query cannot be read."""
    options = dict(zip(queries.columns, row, strict=True))
    if row[1] is None:
        return "it is NULL"
    hourly = cast("int | None", options.get(HOURLY))
    if hourly is not None and not 0 <= hourly <= MOST_HOURLY:
        return f"{hourly} an hour is not between 0 and {MOST_HOURLY:,}"
    try:
        parse_query(str(row[1]), queries.fields)
    except QueryFault as fault:
        return str(fault)
    return None


def _shown_id(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True)
class Everywhere:
    """Every row in each of the shards: `TO` routes them there."""

    schema: pa.Schema
    kind: ClassVar[str] = "everywhere"
    wakes: ClassVar[bool] = False
    stateless: ClassVar[bool] = True

    def describe(self) -> str:
        return "every query in each shard"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0]
        copies = [
            table.add_column(0, pa.field(TO, pa.int64()), pa.repeat(pa.scalar(to), table.num_rows))
            for to in addresses(tick.shards)
        ]
        schema = pa.schema([pa.field(TO, pa.int64()), *self.schema])
        return pa.concat_tables(copies).cast(weighted(schema))


@lru_cache(maxsize=16)
def addresses(shards: int) -> tuple[int, ...]:
    """A number for each shard that is routed there."""
    found: dict[int, int] = {}
    first = 0
    while len(found) < shards:
        table = pa.table({TO: pa.array(range(first, first + 1_000), pa.int64())})
        for number, shard in enumerate(shards_of(table, [TO], shards).tolist(), first):
            found.setdefault(shard, number)
        first += 1_000
    return tuple(found[shard] for shard in range(shards))


@dataclass(frozen=True, slots=True)
class Percolate:
    """Pairs of an event and a query that matches it. `shown`: the columns of an event."""

    name: str
    queries: Queries
    shown: tuple[str, ...]
    schema: pa.Schema
    kind: ClassVar[str] = "percolate"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        fields = self.queries.fields
        texts = [f"{name}:{language}" if language else name for name, language in fields.texts]
        values = [name for name, _ in fields.values]
        return f"queries of {self.queries.topic} over ({', '.join([*texts, *values])})"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        changed, documents = inputs
        if changed.num_rows:
            self._store(state, changed, tick.number)
        if not documents.num_rows:
            return weighted(self.schema).empty_table()
        stored = stored_queries(self)
        with stored.lock:
            stored.bring(state)
            return self._match(stored, documents)

    def _store(self, state: OperatorState, changed: pa.Table, tick: int) -> None:
        """Take in what has changed: a query counts from this tick on."""
        names = self.queries.columns
        came: dict[bytes, Row | None] = {}
        digest = hashlib.blake2b(digest_size=16)
        rows = sorted(
            zip(
                map(bounded, encode_keys(changed, names[:1])), weights(changed),
                map(dumps, to_rows(changed, names)), strict=True,
            )
        )  # fmt: skip
        for key, weight, row in rows:  # what goes stands before what comes
            came[key] = cast(Row, marshal.loads(row)) if weight > 0 else None
        keys = list(came)
        known = state.get(b"v")
        number, before = (0, b"") if known is None else marshal.loads(known)
        digest.update(before)
        puts: list[tuple[bytes, bytes | None]] = []
        for key, old in zip(keys, state.get_many([b"q" + key for key in keys]), strict=True):
            new = came[key]
            value = None
            if new is not None:
                version = tick
                if old is not None:
                    was, former = marshal.loads(old)
                    version = was if former[1] == new[1] else tick
                value = dumps((version, new))
            digest.update(dumps((key, value)))
            puts.append((b"q" + key, value))
        number += 1
        noted = keys if len(keys) <= _MOST_CHANGED else None
        puts.append((b"v", dumps((number, digest.digest()))))
        puts.append((b"c" + number.to_bytes(8, "big"), dumps((before, noted))))
        if number > _KEPT_CHANGES:
            puts.append((b"c" + (number - _KEPT_CHANGES).to_bytes(8, "big"), None))
        state.put_many(sorted(puts, key=lambda put: put[0]))

    def _match(self, stored: StoredQueries, documents: pa.Table) -> pa.Table:
        order = pc.sort_indices(documents, [(PARTITION, "ascending"), (OFFSET, "ascending")])
        documents = documents.take(order).combine_chunks()
        keys: list[bytes] = []
        numbers: list[np.ndarray] = []
        counts: list[int] = []
        for first in range(0, documents.num_rows, BATCH):
            batch = self.documents(documents.slice(first, BATCH))
            for match in stored.queries.match(batch):
                found = _places(match.documents, batch.count)
                keys.append(match.key)
                counts.append(len(found))
                numbers.append(found + first)
        if not keys:
            return weighted(self.schema).empty_table()
        names = sorted(dict.fromkeys(keys))
        rank = {key: place for place, key in enumerate(names)}
        queries = np.repeat(np.fromiter(map(rank.__getitem__, keys), "i8", len(keys)), counts)
        events = np.concatenate(numbers)
        sequence = np.lexsort((queries, events))
        queries, events = queries[sequence], events[sequence]
        return self._pairs([stored.rows[key] for key in names], queries, documents, events)

    def documents(self, table: pa.Table) -> Documents:
        """Rows of the stream as a batch."""
        fields = self.queries.fields
        return Documents(fields, {name: physical(table.column(name)) for name in fields.names})

    def _pairs(
        self, rows: Sequence[tuple[int, Row]], queries: np.ndarray, documents: pa.Table,
        events: np.ndarray,
    ) -> pa.Table:  # fmt: skip
        by_query, by_event = pa.array(queries), pa.array(events)
        told, place = np.unique(events, return_inverse=True)
        texts = json_objects(self.shown, documents.take(pa.array(told)))
        columns: dict[str, pa.Array] = {
            VERSION: pa.array([version for version, _ in rows], pa.int64()).take(by_query),
            EVENT: texts.take(pa.array(place)),
            "op": pa.repeat(pa.scalar("match"), len(queries)),
        }
        for at, name in enumerate(self.queries.columns):
            if at != 1:
                kind = self.queries.schema.field(name).type
                values = to_array([row[at] for _, row in rows], kind)
                columns[ID if not at else name] = values.take(by_query)
        for name in (PARTITION, OFFSET):
            columns[name] = documents.column(name).combine_chunks().take(by_event)
        weight = pa.array(np.ones(len(queries), "i8"))
        arrays = [columns[name] for name in self.schema.names]
        return pa.Table.from_arrays([*arrays, weight], schema=weighted(self.schema))


def _places(bits: int, count: int) -> np.ndarray:
    """The numbers of the documents of a set, in order."""
    if bits.bit_count() == 1:
        return np.array([bits.bit_length() - 1], "i8")
    raw = np.frombuffer(bits.to_bytes((count + 7) // 8, "little"), "u1")
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


class StoredQueries:
    """The compiled queries of one operator in this process."""

    def __init__(self, operator: Percolate) -> None:
        self.lock = threading.Lock()
        self.queries = QuerySet(operator.queries.fields)
        self.rows: dict[bytes, tuple[int, Row]] = {}
        self._number, self._digest = 0, b""

    def bring(self, state: OperatorState) -> None:
        """Make this what a state holds."""
        known = state.get(b"v")
        number, digest = (0, b"") if known is None else marshal.loads(known)
        if digest == self._digest:
            return
        keys = self._behind(state, number)
        self._digest = b""  # whatever fails now, this is to be read anew
        if keys is None:
            self.queries = QuerySet(self.queries.fields)
            self.rows = {}
            for name, value in state.scan(b"q"):
                self._put(name[1:], value)
        else:
            for key, found in zip(keys, state.get_many([b"q" + key for key in keys]), strict=True):
                self._put(key, found)
        self._number, self._digest = number, digest

    def _behind(self, state: OperatorState, number: int) -> list[bytes] | None:
        """The keys that have changed since; None if that is not known."""
        if not self._digest or not 0 < number - self._number < _KEPT_CHANGES:
            return None
        keys: set[bytes] = set()
        for one in range(self._number + 1, number + 1):
            noted = state.get(b"c" + one.to_bytes(8, "big"))
            if noted is None:
                return None
            before, changed = marshal.loads(noted)
            if changed is None or (one == self._number + 1 and before != self._digest):
                return None
            keys.update(changed)
        return sorted(keys)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.queries.remove(key)
            self.rows.pop(key, None)
            return
        version, row = marshal.loads(value)
        before = self.rows.get(key)
        if before is None or before[0] != version:
            self.queries.put(key, row[1])
        # The text is in the state, and in the compiled query.
        self.rows[key] = (version, (row[0], None, *row[2:]))


@lru_cache(maxsize=16)
def stored_queries(operator: Percolate) -> StoredQueries:
    """One for all shards of a process."""
    return StoredQueries(operator)


def rows_of(state: OperatorState) -> Iterator[tuple[bytes, int, Row]]:
    """The queries that a shard holds: key, version, and the row of `Queries.columns`."""
    for name, value in state.scan(b"q"):
        version, row = marshal.loads(value)
        yield name[1:], version, row


@dataclass(frozen=True, slots=True)
class Limited:
    """Matches of queries that say how often they are told: once, or at most n within an hour.

    The second input is what changes among the queries, by which their memory ends."""

    schema: pa.Schema
    kind: ClassVar[str] = "limited"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        words = {ONCE: "once", HOURLY: "at most so often an hour"}
        return " or ".join(words[name] for name in (ONCE, HOURLY) if name in self.schema.names)

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        matches, changed = inputs
        self._forget(state, changed)
        if not matches.num_rows:
            return matches.cast(weighted(self.schema))
        count = matches.num_rows
        once = physical(matches.column(ONCE)) if ONCE in self.schema.names else [None] * count
        hourly = physical(matches.column(HOURLY)) if HOURLY in self.schema.names else [None] * count
        bound = [n for n in range(count) if once[n] or hourly[n] is not None]
        if not bound:
            return matches.cast(weighted(self.schema))
        keys = [bounded(key) for key in encode_keys(matches.take(pa.array(bound)), [ID])]
        places = list(
            zip(*(physical(matches.column(name)) for name in (PARTITION, OFFSET)), strict=True)
        )
        versions = cast("list[int]", physical(matches.column(VERSION)))
        told: dict[bytes, tuple[int | None, list[int]]] = {}
        named = sorted(set(keys))
        for key, known in zip(named, state.get_many(named), strict=True):
            told[key] = (None, []) if known is None else marshal.loads(known)
        keep = np.ones(count, dtype=bool)
        now = tick.now_ms
        for key, n in sorted(zip(keys, bound, strict=True), key=lambda one: places[one[1]]):
            version, times = told[key]
            most = cast("int | None", hourly[n])
            recent = [at for at in times if now - HOUR_MS < at <= now]
            repeated = once[n] and version == versions[n]
            if repeated or (most is not None and len(recent) >= most):
                keep[n] = False
            else:
                version = versions[n]
                if most is not None:
                    recent.append(now)
            told[key] = (version, recent)
        state.put_many((key, dumps(value)) for key, value in sorted(told.items()))
        return matches.filter(pa.array(keep)).cast(weighted(self.schema))

    def _forget(self, state: OperatorState, changed: pa.Table) -> None:
        if not changed.num_rows:
            return
        left: dict[bytes, int] = {}
        for key, weight in zip(encode_keys(changed, [ID]), weights(changed), strict=True):
            left[bounded(key)] = left.get(bounded(key), 0) + weight
        state.put_many((key, None) for key, weight in sorted(left.items()) if weight < 0)


def id_json(value: object, kind: pa.DataType) -> object:
    """An id as it stands in what is told."""
    found: object = orjson.loads(json_objects(["id"], pa.table([to_array([value], kind)], ["id"]))[0].as_py())["id"]  # fmt: skip
    return found
