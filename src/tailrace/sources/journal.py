"""The writing side of every source: groups of transactions, cuts, versions, copy progress.

Several source transactions share one log transaction. Records of `<source>.transactions`:

    {"status":"BEGIN","id","ts_ms"}            before the events of a transaction
    {"status":"END","id","event_count","data_collections":[…],"ts_ms"}
    {"status":"PART","source","epoch","offsets","position","commit","messages","events","ts_ms"}
        ends a log transaction that holds only a piece of a large transaction
    {"status":"CUT","source","epoch","position","offsets","copying","ts_ms"}
        ends every other one; whoever reads up to `offsets` has whole transactions

Progress of copies is kept in `__tailrace_sources`, one compacted record per table,
written in the log transaction that holds the copied rows. Rows that are held back because
a value is not known have a record of their own there, keyed

    {"source", "incomplete": table, "row": record key}  →  {"op","key":[…]|null,"since_ms"}

and {"source", "owns": true} names what the source made in its database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.config import parse_duration
from tailrace.records.partitioner import partition_for
from tailrace.records.position import Position
from tailrace.sources.base import (
    COPIES_TOPIC,
    LARGEST_BYTES,
    Keys,
    LogRecord,
    Part,
    Resume,
    SourceLog,
    Values,
)
from tailrace.sources.declare import Source, for_table
from tailrace.sources.outbox import Routed
from tailrace.sources.schema import TableSchema, read_record

WEEK = timedelta(days=7)
# The broker writes these topics through to disk at least this often, so that a position
# can be confirmed to the database once a commit is older.
FLUSH_MS = 500


@dataclass(frozen=True, slots=True)
class IncompleteRow:
    """A row that is not in the log because a value of it is not known. `op` is how it came
    to its key ("c"), or that it was there ("u"); `key` are the database's own texts of its
    key, None where they must not be written down (masked)."""

    op: str
    key: tuple[str, ...] | None
    since_ms: int

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> IncompleteRow:
        key = document["key"]
        return cls(document["op"], None if key is None else tuple(key), document["since_ms"])


@dataclass(slots=True)
class _Topic:
    """Records that wait, by partition: lists that grow, and whole columns between them."""

    partitions: int
    blocks: list[list[tuple[Keys, Values]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.blocks = [[] for _ in range(self.partitions)]

    def lists(self, partition: int) -> tuple[list[bytes | None], list[bytes | None]]:
        """Where single records are put."""
        blocks = self.blocks[partition]
        if blocks:
            keys, values = blocks[-1]
            if isinstance(keys, list) and isinstance(values, list):
                return keys, values
        made: tuple[list[bytes | None], list[bytes | None]] = ([], [])
        blocks.append(made)
        return made


class Journal:
    """One source's open log transaction and what it ends with."""

    def __init__(self, source: Source, log: SourceLog, *, clock: Clock = SYSTEM) -> None:
        self._source = source
        self._log = log
        self._clock = clock
        self._topics: dict[str, _Topic] = {}
        self._keyed: dict[str, bool] = {}
        self._waiting = 0
        self._sent = False
        self.epoch = 1
        self.schemas: dict[str, TableSchema] = {}
        self._versions: dict[tuple[str, int], TableSchema] = {}
        self.copies: dict[str, dict[str, Any]] = {}
        # Rows held back, by table and record key, as the log has them.
        self.incomplete: dict[str, dict[bytes, IncompleteRow]] = {}
        # What the source made in its database, and under which names.
        self.owned: dict[str, Any] | None = None
        self.committed_position = 0
        # Beside a position: the server whose position it is, and what every cut says of it.
        self.origin = 0
        self.place: Mapping[str, Any] = {}
        self._cut_place: Mapping[str, Any] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._unconfirmed: list[tuple[float, int]] = []
        self.events_written = 0
        self.transactions_committed = 0
        self._oldest_ms: int | None = None  # commit of the oldest transaction not in the log yet
        self._latency_ms: int | None = None  # the longest since it was last asked for

    # --- start -----------------------------------------------------------------------------

    def open(self) -> Resume:
        """Fence older processes, then learn where they stopped."""
        self._log.init()
        one: Mapping[str, str] = {
            "flush.ms": str(FLUSH_MS),
            "max.message.bytes": str(LARGEST_BYTES),
        }
        # Cuts are needed back to the oldest tick that may still start from one.
        kept = {**one, "cleanup.policy": "delete", "retention.ms": "-1"}
        compacted = {**one, "cleanup.policy": "compact"}
        self._open_topic(self._source.transactions_topic, 1, kept)
        self._open_topic(self._source.schemas_topic, 1, compacted)
        self._open_topic(COPIES_TOPIC, 1, compacted)
        for record in self._log.read(self._source.schemas_topic, 0):
            if record.value is not None:
                found = read_record(record.value)
                self._versions[found.name, found.version] = self.schemas[found.name] = found
        for record in self._log.read(COPIES_TOPIC, 0):
            name = orjson.loads(record.key or b"{}")
            if name.get("source") != self._source.name:
                continue
            state = None if record.value is None else orjson.loads(record.value)
            if "incomplete" in name:
                self._note_incomplete(
                    name["incomplete"],
                    name["row"].encode(),
                    None if state is None else IncompleteRow.read(state),
                )
            elif "owns" in name:
                self.owned = state
            elif "table" in name:
                if state is None:
                    self.copies.pop(name["table"], None)
                else:
                    self.copies[name["table"]] = state
        last = self._log.last(self._source.transactions_topic)
        if last is None or last.value is None:
            return Resume(0, None)
        document = orjson.loads(last.value)
        self.epoch = document["epoch"]
        position = int(document["position"].rpartition(":")[2], 16) & (1 << 64) - 1
        self.committed_position = position
        self._cut_place = document.get("place", {})
        part = None
        if document["status"] == "PART":
            part = Part(document["commit"], document["messages"], document["events"])
        return Resume(self.epoch, position, part, dict(self.copies), self._cut_place)

    def _open_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        self._topics[name] = _Topic(self._log.ensure_topic(name, partitions, config))

    def ensure_table(self, schema: TableSchema) -> None:
        """Make sure the change topic of a table exists, with the retention it was promised.

        A compacted topic takes no record without a key, nor may it forget one that has no
        newer form: as long as rows without a key count, all is kept.
        """
        keyed = bool(schema.key) and not self.copies.get(schema.name, {}).get("bag")
        if schema.topic in self._topics and (keyed or not self._keyed[schema.topic]):
            return
        history = for_table(self._source.history, schema.schema, schema.table)
        config = {
            "flush.ms": str(FLUSH_MS),
            "max.message.bytes": str(LARGEST_BYTES),
            **kept_config(None if history is None else str(history), keyed=keyed),
        }
        if schema.topic in self._topics:
            self._log.ensure_topic(schema.topic, self._source.partitions, config)
        else:
            self._open_topic(schema.topic, self._source.partitions, config)
        self._keyed[schema.topic] = keyed

    def ensure_plain_topic(self, name: str) -> None:
        """A topic for outbox messages, with the log's own defaults."""
        if name not in self._topics:
            self._open_topic(name, self._source.partitions, {})

    # --- adding ----------------------------------------------------------------------------

    def add(self, topic: str, keys: Keys, values: Values) -> None:
        """Records of one topic, in order, each to the partition of its key."""
        held = self._topics[topic]
        self._waiting += len(values)
        if not isinstance(values, Sequence) and (held.partitions == 1 or keys is None):
            held.blocks[0].append((keys, values))
            return
        if not isinstance(values, Sequence) and not isinstance(keys, Sequence):
            from tailrace.records.columns import by_partition

            for index, some_keys, some_values in by_partition(keys, values, held.partitions):
                held.blocks[index].append((some_keys, some_values))
            return
        assert isinstance(keys, Sequence)
        assert isinstance(values, Sequence)
        if held.partitions == 1:
            key_list, value_list = held.lists(0)
            key_list.extend(keys)
            value_list.extend(values)
            return
        for key, value in zip(keys, values, strict=True):
            index = 0 if key is None else partition_for(key, held.partitions)
            key_list, value_list = held.lists(index)
            key_list.append(key)
            value_list.append(value)

    def send_message(self, message: Routed) -> None:
        """A message of the outbox, straight to its own topic."""
        self.ensure_plain_topic(message.topic)
        partitions = self._topics[message.topic].partitions
        index = 0 if message.key is None else partition_for(message.key, partitions)
        self._log.send(
            message.topic, index, [message.key], [message.value], self._clock.wall_ms(),
            [message.headers],
        )  # fmt: skip
        self._sent = True

    def note(self, document: Mapping[str, object]) -> None:
        """A record in `<source>.transactions`."""
        if document.get("status") == "END":
            self.committed_at(int(str(document["ts_ms"])))
        self.add(self._source.transactions_topic, [None], [orjson.dumps(document)])

    def register(self, shape: TableSchema, position: int) -> TableSchema:
        """The version of a table with this shape: the one there is, or a new one."""
        known = self.schemas.get(shape.name)
        kept = for_table(self._source.history, shape.schema, shape.table)
        history = None if kept is None else str(kept)
        number = 1 if known is None else known.version + 1
        if known is not None and known.same_shape(shape):
            if known.history == history:
                self.ensure_table(known)
                return known
            number = known.version
        made = replace(shape, version=number, history=history)
        self.ensure_table(made)
        key, value = made.record(self.position_text(position))
        self.add(self._source.schemas_topic, [key], [value])
        self._versions[made.name, number] = self.schemas[made.name] = made
        return made

    def same_columns(self, schema: TableSchema, version: int) -> frozenset[str]:
        """The columns that mean in an earlier version of a table what they mean in this one."""
        if version == schema.version:
            return frozenset(column.name for column in schema.columns)
        earlier = self._versions.get((schema.name, version))
        held = () if earlier is None else tuple((c.name, c.type) for c in earlier.columns)
        return frozenset(c.name for c in schema.columns if (c.name, c.type) in held)

    def record_copy(self, table: str, state: dict[str, Any]) -> None:
        """Where the copy of `table` stands, from this log transaction on."""
        self.copies[table] = state
        key = orjson.dumps({"source": self._source.name, "table": table})
        self.add(COPIES_TOPIC, [key], [orjson.dumps(state)])

    def record_owned(self, owned: dict[str, Any]) -> None:
        """What the source makes in its database, from this log transaction on."""
        if owned != self.owned:
            self.owned = owned
            key = orjson.dumps({"source": self._source.name, "owns": True})
            self.add(COPIES_TOPIC, [key], [orjson.dumps(owned)])

    def record_incomplete(self, table: str, key: bytes, row: IncompleteRow | None) -> None:
        """A row is held back from this log transaction on; None: no longer."""
        self._note_incomplete(table, key, row)
        name = {"source": self._source.name, "incomplete": table, "row": key.decode()}
        value = None if row is None else orjson.dumps(asdict(row))
        self.add(COPIES_TOPIC, [orjson.dumps(name)], [value])

    def _note_incomplete(self, table: str, key: bytes, row: IncompleteRow | None) -> None:
        rows = self.incomplete.setdefault(table, {})
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row
        if not rows:
            del self.incomplete[table]

    @property
    def copying(self) -> list[str]:
        """Tables of which the log does not have every row as it was at some position: they
        are copied for the first time, or rows are held back or read for a new column."""
        first = {
            table
            for table, state in self.copies.items()
            if state.get("state") == "copying" or state.get("waits") or state.get("fills")
        }
        return sorted(first | self.incomplete.keys())

    # --- writing ---------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Records added and not yet sent."""
        return self._waiting

    @property
    def dirty(self) -> bool:
        """Whether the open log transaction holds anything."""
        return self._sent or self._waiting > 0

    def push(self) -> None:
        """Send what was added, so that memory stays small; the transaction stays open."""
        now = self._clock.wall_ms()
        for name, held in self._topics.items():
            for index, blocks in enumerate(held.blocks):
                for keys, values in blocks:
                    self._log.send(name, index, keys, values, now)
                    self.events_written += len(values)
                    self._sent = True
                if blocks:
                    held.blocks[index] = []
        self._waiting = 0

    def spill(self) -> None:
        """Send now what was added: bounds what is held in memory."""
        self.push()
        self._log.hand_over()

    def cut(self, position: int) -> None:
        """End the log transaction: everything up to `position` is in the log."""
        self.push()
        ends = self._log.flush() if self._sent else {}
        self._ends.update(ends)
        self._cut_place = self.place
        self._finish(
            {
                "status": "CUT",
                "source": self._source.name,
                "epoch": self.epoch,
                "position": self.position_text(position),
                "offsets": self._offsets(ends),
                "copying": self.copying,
                **({"place": self.place} if self.place else {}),
                "ts_ms": self._clock.wall_ms(),
            }
        )
        self.committed_position = position
        self._unconfirmed.append((self._clock.monotonic(), position))

    def cut_part(self, part: Part, **open_place: object) -> None:
        """End a log transaction in the middle of a large source transaction; `open_place` is
        added to what the last cut said of its place."""
        self.push()
        ends = self._log.flush()
        self._ends.update(ends)
        self._finish(
            {
                "status": "PART",
                "source": self._source.name,
                "epoch": self.epoch,
                # A reader adds these up with the cut that follows, which names only
                # what its own log transaction touched.
                "offsets": self._offsets(ends),
                "position": self.position_text(self.committed_position),
                "commit": part.commit,
                "messages": part.messages,
                "events": part.events,
                **({"place": {**self._cut_place, **open_place}} if self.place else {}),
                "ts_ms": self._clock.wall_ms(),
            }
        )

    def _offsets(self, ends: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), end in ends.items():
            if topic != self._source.transactions_topic:
                offsets.setdefault(topic, {})[str(partition)] = end
        return offsets

    def _finish(self, document: Mapping[str, object]) -> None:
        self._log.send(
            self._source.transactions_topic, 0, [None], [orjson.dumps(document)],
            self._clock.wall_ms(),
        )  # fmt: skip
        self._log.commit()
        if self._oldest_ms is not None:
            taken = max(0, self._clock.wall_ms() - self._oldest_ms)
            self._latency_ms = max(taken, self._latency_ms or 0)
            self._oldest_ms = None
        self._sent = False
        self.transactions_committed += 1

    def committed_at(self, wall_ms: int) -> None:
        """A transaction of this time, or a later one, is on its way to the log."""
        if self._oldest_ms is None or wall_ms < self._oldest_ms:
            self._oldest_ms = wall_ms

    def latency_ms(self) -> int | None:
        """How long the slowest transaction took from its commit to the log, of those that came
        there since this was last asked; None if none did."""
        found, self._latency_ms = self._latency_ms, None
        return found

    def durable_position(self, *, delay: float = FLUSH_MS * 3 / 1000) -> int | None:
        """The newest position whose commit the broker has had time to write to disk."""
        now = self._clock.monotonic()
        found = None
        while self._unconfirmed and now - self._unconfirmed[0][0] >= delay:
            found = self._unconfirmed.pop(0)[1]
        return found

    def position_text(self, position: int) -> str:
        """`pg:shop:0000000201A2B3C4`; of MySQL with the server's number before it."""
        kind = self._source.position_kind
        version = f"{self.origin:08X}{position:016X}" if kind == "mysql" else f"{position:016X}"
        return str(Position(kind, self._source.name, version))

    def is_empty(self, topic: str) -> bool:
        """Whether nothing was ever written to a topic, nor added to it."""
        held = self._topics[topic]
        return not any(held.blocks) and not any(
            self._log.end(topic, partition) for partition in range(held.partitions)
        )

    def live_keys(self, topic: str) -> list[bytes]:
        """Keys of the rows a topic says are there, in the order of their last change.

        Reads the topic, so what was added before must be committed first.
        """
        live: dict[bytes, None] = {}
        held = self._topics[topic]
        for partition in range(held.partitions):
            # A log may answer a commit before it can be read: read to where we know it ends.
            end = self._ends.get((topic, partition))
            for record in self._log.read(topic, partition, 0, end):
                if record.key is None:
                    continue
                live.pop(record.key, None)
                if record.value is not None:  # a delete is followed by its tombstone
                    live[record.key] = None
        return list(live)

    def live_rows(self, topic: str) -> Iterator[tuple[bytes, bytes | None]]:
        """Key and value of every committed record, in order; the last of a key counts."""
        for partition in range(self._topics[topic].partitions):
            for record in self._log.read(topic, partition, 0, self._ends.get((topic, partition))):
                if record.key is not None:
                    yield record.key, record.value

    def inserted_keys(self, topic: str) -> set[bytes]:
        """Keys of the rows that a topic says were inserted, not copied."""
        return {
            key
            for key, value in self.live_rows(topic)
            if value is not None and b'"op":"c"' in value and orjson.loads(value)["op"] == "c"
        }

    def records_since(
        self, topic: str, start: Callable[[str, int], int]
    ) -> Iterator[tuple[Iterator[LogRecord], int]]:
        """Committed records of a topic of one partition, from `start(topic, end)` to the end.

        Topics of several partitions are read from their beginning: one offset cannot say
        where they stand.
        """
        partitions = self._topics[topic].partitions
        for partition in range(partitions):
            end = self._log.end(topic, partition)
            offset = start(topic, end) if partitions == 1 else 0
            if offset < end:
                yield self._log.read(topic, partition, offset, end), end if partitions == 1 else 0

    def single_ends(self) -> dict[str, int]:
        """Known ends of the topics that have one partition."""
        return {t: end for (t, _), end in self._ends.items() if self._topics[t].partitions == 1}

    def close(self) -> None:
        self._log.close()


def kept_config(history: str | None, *, keyed: bool) -> dict[str, str]:
    """The settings of a change topic by which it keeps what was promised.

    Every change for as long as `history` says (a week without it), and the last row of every
    key for ever: a view that begins later needs the rows that have not changed since. Rows
    without a key cannot be told from each other, so their topic keeps all.
    """
    if not keyed or history == "forever":
        return {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "delete.retention.ms": _milliseconds(WEEK),
        }
    kept = WEEK if history is None else parse_duration(history)
    return {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": _milliseconds(kept),
        "delete.retention.ms": _milliseconds(max(kept, WEEK)),
    }


def _milliseconds(duration: timedelta) -> str:
    return str(int(duration.total_seconds() * 1000))
