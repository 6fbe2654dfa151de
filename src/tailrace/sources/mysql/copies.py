"""The copies of a source: which tables are being read, and what becomes of their chunks.

States of a table in `__tailrace_sources`: `copying` (first copy), `again` (asked for, or
comparing after lost changes), `done`, `skipped`. `ranges` are the keys that are still to be
read as [after, to]: SQL literals of the key that was read last, and the last value of its
first column; a kill costs the chunks on their way. Tables without a key are in
`keyless.py`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailrace.records.envelope import TransactionFrame
from tailrace.sources.bags import ACTIVE
from tailrace.sources.compare import Comparison
from tailrace.sources.declare import MySQL, changed_declaration, made_anew
from tailrace.sources.errors import CopyBlockedError, SourceError
from tailrace.sources.journal import Journal
from tailrace.sources.mysql.chunks import (
    QueryRefused,
    Snapshot,
    TableChanged,
    TextRows,
    beyond,
    literal,
    order_of,
    pin,
    read_rows,
    take_snapshot,
)
from tailrace.sources.mysql.filters import condition_of
from tailrace.sources.mysql.gtid import Known
from tailrace.sources.mysql.server import Server, TableDefinition, quoted
from tailrace.sources.mysql.settings import MySQLSettings
from tailrace.sources.mysql.table import Captured, captured, shape_of

log = logging.getLogger(__name__)

Range = list[Any]
WHOLE: Range = [None, None]
GATES = 2


@dataclass(slots=True)
class Chunk:
    """Rows of a table as one snapshot saw them; `left` is what of its range comes after."""

    table: str
    generation: int
    range: Range
    left: Range | None
    snapshot: Snapshot
    captured: Captured
    definition: TableDefinition
    keys: list[bytes]
    values: list[bytes]


@dataclass(slots=True)
class _Reading:
    """One table that is being read."""

    generation: int
    conditions: list[str]
    gate: tuple[int, Known | None]
    waiting: deque[Range]
    out: int = 0
    split: bool = False


@dataclass(slots=True)
class _Shared:
    """What the readers and the writer hand to each other."""

    guard: threading.Condition = field(default_factory=threading.Condition)
    jobs: deque[tuple[str, int, Range]] = field(default_factory=deque)
    chunks: deque[Chunk] = field(default_factory=deque)
    errors: deque[tuple[str, BaseException]] = field(default_factory=deque)
    gone: deque[str] = field(default_factory=deque)
    stopped: bool = False


class Copies:
    """Readers of chunks, and the memory of keys that changed meanwhile."""

    def __init__(
        self,
        source: MySQL,
        connect: Callable[[], Server],
        journal: Journal,
        settings: MySQLSettings,
        directory: Path,
        place: Callable[[], tuple[int, Known | None]],
    ) -> None:
        self._source = source
        self._connect = connect
        self._journal = journal
        self._settings = settings
        self._directory = directory
        self._place = place
        self._shared = _Shared()
        self._readings: dict[str, _Reading] = {}
        self._threads: list[threading.Thread] = []
        self._generation = 0
        self._touched: dict[str, dict[bytes, tuple[int, str]]] = {}
        self._gates: dict[str, tuple[int, Known | None]] = {}
        self._inserted: dict[str, set[bytes]] = {}
        self._comparisons: dict[str, Comparison] = {}
        self._unmet: dict[str, set[bytes]] = {}
        self.blocked: dict[str, CopyBlockedError] = {}
        self._ready: list[Chunk] = []

    # --- what the stream tells ---------------------------------------------------------------

    def touched(self, name: str) -> dict[bytes, tuple[int, str]] | None:
        """Where to note the changed keys of a table; None when it is not being copied."""
        return self._touched.get(name)

    def inserted(self, name: str) -> set[bytes] | None:
        """Where to note the keys told as inserted while the first copy runs."""
        return self._inserted.get(name)

    def adopt(self, name: str, declared: dict[str, object]) -> None:
        """Begin the copy of a table that has none yet, or go on with one."""
        held = self._journal.copies.get(name)
        if held is None:
            state = "copying" if self._source.snapshot else "skipped"
            self._journal.record_copy(name, {"state": state, "rows": 0, "declared": declared})
        elif (changed := changed_declaration(held, declared)) is not None:
            log.warning("declaration changed", extra={"table": name})
            changed.pop("ranges", None)
            self._journal.record_copy(name, changed)
        self.track(name)

    def track(self, name: str) -> None:
        """Begin to remember changed keys, if the table is to be read."""
        state = self._journal.copies.get(name, {}).get("state")
        schema = self._journal.schemas.get(name)
        if state not in ACTIVE or name in self._touched:
            return
        if schema is not None and not schema.key:
            return
        self._touched[name] = {}
        place, known = self._place()
        self._gates[name] = place, None if known is None else known.copy()
        if schema is not None and schema.history is not None and state == "copying":
            self._inserted[name] = self._journal.inserted_keys(schema.topic)

    def reject(self, name: str) -> None:
        """The table was emptied or altered: chunks on their way are worth nothing."""
        reading = self._readings.get(name)
        if reading is None:
            return
        self._generation += 1
        reading.generation = self._generation
        reading.waiting = deque(self._ranges(name))
        reading.out = 0
        self._ready = [chunk for chunk in self._ready if chunk.table != name]

    def begin(self, name: str, state: dict[str, Any]) -> None:
        """Read a table again, under a new state; what was read of it before is forgotten."""
        self._readings.pop(name, None)
        self._ready = [chunk for chunk in self._ready if chunk.table != name]
        self._touched.pop(name, None)
        self._unmet.pop(name, None)
        self._drop_comparison(name)
        state.pop("ranges", None)
        self._journal.record_copy(name, state)
        self.track(name)

    def again(self, name: str, where: str | None, keys: list[dict[str, str]] | None = None) -> None:
        """A re-snapshot that was asked for; `keys` are SQL literals by column."""
        held = self._journal.copies.get(name, {})
        if held.get("state") == "copying" or (held.get("state") == "again" and held.get("compare")):
            return  # every row is being read anyway
        if held.get("state") == "again":
            if keys and held.get("keys"):
                keys = [*held["keys"], *keys]
            elif where and held.get("where"):
                where = f"({held['where']}) OR ({where})"
            else:
                where, keys = None, None
        state: dict[str, Any] = {"state": "again", "rows": 0}
        state |= {
            word: held[word] for word in ("declared", "bag", "fills", "cascades") if word in held
        }
        if where:
            state["where"] = where
        if keys:
            state["keys"] = keys
        self.begin(name, state)
        log.info("copy asked for", extra={"table": name})

    def compare(self, name: str, reason: str) -> None:
        """Read a table and write what differs from the log."""
        held = self._journal.copies.get(name)
        if held is None or held.get("state") == "skipped":
            return
        self.begin(name, {**made_anew(held), "reason": reason})

    def fill_columns(self, name: str, columns: list[str]) -> None:
        """Read the rows that have a value in columns of which the log knows nothing yet."""
        held = self._journal.copies.get(name, {})
        if held.get("state") != "done" and not held.get("fills"):
            return
        wanted = [*held.get("fills", ()), *(c for c in columns if c not in held.get("fills", ()))]
        state = {"state": "again", "rows": 0, "fills": wanted}
        state |= {word: held[word] for word in ("declared", "cascades") if word in held}
        state["where"] = " OR ".join(f"{quoted(column)} IS NOT NULL" for column in wanted)
        self.begin(name, state)

    # --- reading -----------------------------------------------------------------------------

    def _ranges(self, name: str) -> list[Range]:
        found = self._journal.copies[name].get("ranges")
        return [list(one) for one in found] if found is not None else [list(WHOLE)]

    def work(self, names: Iterable[str]) -> None:
        """Keep the tables that are to be read being read; takes over what has been read."""
        shared = self._shared
        for name in names:
            state = self._journal.copies.get(name, {})
            schema = self._journal.schemas.get(name)
            if state.get("state") not in ACTIVE or schema is None or not schema.key:
                continue
            if name not in self._readings:
                self._read(name, state)
        with shared.guard:
            while shared.gone:
                name = shared.gone.popleft()
                if name in self._readings:
                    self._finish(name, {**self._journal.copies[name], "reason": "table dropped"})
            while shared.errors:
                name, error = shared.errors.popleft()
                self._stopped(name, error)
            while shared.chunks:
                chunk = shared.chunks.popleft()
                reading = self._readings.get(chunk.table)
                if reading is not None and reading.generation == chunk.generation:
                    self._ready.append(chunk)
            ahead = self._settings.chunks_ahead * max(1, self._source.copy_connections)
            for name, reading in self._readings.items():
                while reading.waiting and len(shared.jobs) + len(self._ready) < ahead:
                    shared.jobs.append((name, reading.generation, reading.waiting.popleft()))
                    reading.out += 1
            shared.guard.notify_all()
            wanted = len(shared.jobs)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        while wanted and len(self._threads) < min(self._source.copy_connections, wanted):
            thread = threading.Thread(target=self._work_reader, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _read(self, name: str, state: dict[str, Any]) -> None:
        self.track(name)
        self._generation += 1
        schema, _, table = name.partition(".")
        chosen = condition_of(self._source, schema, table)
        conditions = [] if chosen is None else [f"({chosen})"]
        if state.get("where"):
            conditions.append(f"({state['where']})")
        if state.get("compare") and name not in self._comparisons:
            state = {**state, "ranges": [list(WHOLE)]}
            self._journal.copies[name] = state
            self._comparisons[name] = Comparison(
                self._directory / "sources" / f"{self._source.name}.{name}.compare",
                self._journal.live_rows(self._journal.schemas[name].topic),
            )
        if state.get("keys") and name not in self._unmet:
            self._unmet[name] = {one["key"].encode() for one in state["keys"]}
        if state.get("keys"):
            conditions.append("(" + " OR ".join(one["where"] for one in state["keys"]) + ")")
        self._readings[name] = _Reading(
            self._generation, conditions, self._gates[name], deque(self._ranges(name))
        )

    def _work_reader(self) -> None:
        """A thread: takes ranges and reads a chunk of each."""
        shared = self._shared
        server: Server | None = None
        name = ""
        try:
            while True:
                with shared.guard:
                    if not shared.jobs and not shared.stopped:
                        shared.guard.wait(0.5)
                    if shared.stopped or not shared.jobs:
                        return
                    name, generation, wanted = shared.jobs.popleft()
                    reading = self._readings.get(name)
                if reading is None or reading.generation != generation:
                    continue
                if server is None:
                    server = self._connect()
                chunk = self._read_chunk(server, name, reading, generation, wanted)
                with shared.guard:
                    if chunk is None:
                        shared.gone.append(name)
                    else:
                        shared.chunks.append(chunk)
        except BaseException as error:
            with shared.guard:
                if not shared.stopped:
                    shared.errors.append((name, error))
        finally:
            if server is not None:
                server.connection.close()

    def _read_chunk(
        self, server: Server, name: str, reading: _Reading, generation: int, wanted: Range
    ) -> Chunk | None:
        schema, _, table = name.partition(".")
        while True:
            snapshot = take_snapshot(
                server, reading.gate, self._source.lock, lambda: self._shared.stopped
            )
            if snapshot is None:
                raise TableChanged
            try:
                definition = pin(server, schema, table)
                if definition is None or not definition.key:
                    return None
                return self._rows(server, name, reading, generation, wanted, snapshot, definition)
            except TableChanged:
                continue
            finally:
                server.rows("ROLLBACK")

    def _rows(
        self, server: Server, name: str, reading: _Reading, generation: int, wanted: Range,
        snapshot: Snapshot, definition: TableDefinition,
    ) -> Chunk:  # fmt: skip
        shape = shape_of(
            self._source, definition.schema, definition.table, definition.fields, definition.key
        )
        table = captured(self._source, shape)
        texts = TextRows(definition, table.wanted)
        conditions = list(reading.conditions)
        after, last = wanted
        if after is not None and len(after) == len(texts.key):
            conditions.append(f"({beyond(texts.key, after)})")
        if last is not None:
            conditions.append(f"{order_of(texts.key[0])} <= {last}")
        query = (
            f"SELECT {texts.columns} FROM {quoted(definition.schema)}.{quoted(definition.table)}"
        )
        if conditions:
            query += " WHERE " + " AND ".join(conditions)
        rows = self._settings.chunk_rows
        query += " ORDER BY " + ", ".join(order_of(one) for one in texts.key) + f" LIMIT {rows}"
        keys: list[bytes] = []
        values: list[bytes] = []
        packet = None
        for packet in read_rows(server, query):
            row = texts.row(packet)
            key = table.key_of(row)
            assert key is not None
            keys.append(key)
            values.append(table.json_of(row))
        left: Range | None = None
        if len(keys) >= rows and packet is not None:
            left = [texts.key_literals(packet), last]
        return Chunk(
            name, generation, wanted, left, snapshot, table, definition, keys, values
        )  # fmt: skip

    def split(self, name: str, chunk: Chunk, left: Range) -> list[Range]:
        """What is left of a large table, in pieces that are read side by side, where its key
        is one whole number."""
        reading = self._readings[name]
        first = next(f for f in chunk.definition.fields if f.name == chunk.definition.key[0])
        pieces = self._source.copy_connections
        if reading.split or pieces < 2 or left[1] is not None or not first.kind.endswith("int"):
            return [left]
        reading.split = True
        low = int(left[0][0])
        high = self._highest(chunk.definition, first.name)
        if high is None or high - low < pieces * self._settings.chunk_rows:
            return [left]
        step = (high - low) // pieces
        found: list[Range] = [[left[0], str(low + step)]]
        most = chunk.definition.key
        for number in range(1, pieces):
            start = low + step * number
            # Everything behind the first column's value: no row can come after such a key.
            after = [str(start)] if len(most) == 1 else None
            if after is None:
                return [left]
            found.append([after, str(start + step) if number < pieces - 1 else None])
        return found

    def _highest(self, definition: TableDefinition, column: str) -> int | None:
        server = self._connect()
        try:
            value = server.value(
                f"SELECT max({quoted(column)}) FROM "
                f"{quoted(definition.schema)}.{quoted(definition.table)}"
            )
        finally:
            server.connection.close()
        return None if value is None else int(value)

    # --- writing -----------------------------------------------------------------------------

    def due(self, position: int) -> list[Chunk]:
        """The chunks whose mark the stream has passed."""
        if not self._ready:
            return []
        found = [chunk for chunk in self._ready if chunk.snapshot.mark <= position]
        if found:
            self._ready = [chunk for chunk in self._ready if chunk.snapshot.mark > position]
        return found

    def write(
        self, chunk: Chunk, table: Captured, frames: Callable[[Captured, str], TransactionFrame],
        lsn: int, order: int,
    ) -> int:  # fmt: skip
        """The rows of a chunk that no unseen transaction has overtaken; the ordinal reached."""
        name = chunk.table
        self.blocked.pop(name, None)
        state: dict[str, Any] = dict(self._journal.copies[name])
        first = state.get("state") == "copying"
        ranges = self._ranges(name)
        if chunk.range in ranges:
            ranges.remove(chunk.range)
        reading = self._readings[name]
        reading.out -= 1
        if chunk.left is not None:
            pieces = self.split(name, chunk, chunk.left)
            ranges += pieces
            reading.waiting.extend(pieces)
        known = frames(table, "incremental")
        frame = frames(table, "true" if ranges else "last") if first else known
        touched = self._touched[name]
        inserted = self._inserted.get(name) or ()
        comparison = self._comparisons.get(name)
        unmet = self._unmet.get(name)
        sees = chunk.snapshot.sees
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        topic = table.schema.topic
        for key, value in zip(chunk.keys, chunk.values, strict=True):
            if unmet is not None:
                unmet.discard(key)
            place = touched.get(key)
            if place is not None and not sees(*place):
                if comparison is not None:
                    comparison.differs(key, value)
                continue
            if comparison is not None and not comparison.differs(key, value):
                continue
            order += 1
            keys.append(key)
            told = known if key in inserted else frame
            values.append(told.event("r", b"null", value, lsn, order, order))
            if len(values) >= self._settings.spill_rows:
                self._journal.add(topic, keys, values)
                self._journal.spill()
                keys, values = [], []
        gone: list[bytes] = []
        if not ranges:
            if comparison is not None:
                gone += comparison.unseen()
            if unmet:
                gone += sorted(unmet)
        for key in gone:
            if key in touched:
                continue
            order += 1
            keys += [key, key]
            values += [frame.event("d", key, b"null", lsn, order, order), None]
        if values:
            self._journal.add(topic, keys, values)
        state["rows"] = state.get("rows", 0) + len(chunk.keys)
        state["ranges"] = ranges
        if ranges:
            self._journal.record_copy(name, state)
            self._forget(name, chunk.snapshot)
        else:
            self._finish(name, state)
        return order

    def _forget(self, name: str, snapshot: Snapshot) -> None:
        """Forget keys whose change every chunk to come can see."""
        touched = self._touched[name]
        reading = self._readings[name]
        if len(touched) <= self._settings.touched_keys or reading.out:
            return
        for key in [key for key, place in touched.items() if snapshot.sees(*place)]:
            del touched[key]

    def _finish(self, name: str, state: dict[str, Any]) -> None:
        state = {**state, "state": "done"}
        for word in ("compare", "whole", "where", "keys", "ranges", "fills"):
            state.pop(word, None)
        self._readings.pop(name, None)
        self._touched.pop(name, None)
        self._inserted.pop(name, None)
        self._unmet.pop(name, None)
        self._drop_comparison(name)
        self._journal.record_copy(name, state)
        log.info("copy finished", extra={"table": name, "rows": state.get("rows", 0)})

    def _stopped(self, name: str, error: BaseException) -> None:
        """What ended a reader: the connection, or something about this table alone."""
        if isinstance(error, TableChanged):
            self._readings.pop(name, None)
            return
        if not isinstance(error, QueryRefused):
            if isinstance(error, SourceError):
                raise error
            raise error
        if name not in self.blocked:
            log.warning("copy blocked", extra={"table": name, "error": str(error)})
        schema, _, table = name.partition(".")
        self.blocked[name] = CopyBlockedError(
            f'table "{name}" cannot be read, so its copy waits',
            detail=str(error),
            hint=f"GRANT SELECT ON {quoted(schema)}.{quoted(table)} TO the user, "
            "or correct the condition of the re-snapshot",
        )
        self._readings.pop(name, None)
        self._ready = [chunk for chunk in self._ready if chunk.table != name]

    def _drop_comparison(self, name: str) -> None:
        comparison = self._comparisons.pop(name, None)
        if comparison is not None:
            comparison.close()

    @property
    def running(self) -> list[str]:
        return sorted(t for t, s in self._journal.copies.items() if s.get("state") in ACTIVE)

    @property
    def progress(self) -> dict[str, dict[str, object]]:
        return {name: {"rows": self._journal.copies[name].get("rows", 0)} for name in self.running}

    def close(self) -> None:
        with self._shared.guard:
            self._shared.stopped = True
            self._shared.guard.notify_all()
        for thread in self._threads:
            thread.join(30)
        for name in list(self._comparisons):
            self._drop_comparison(name)


def key_condition(definition: TableDefinition, texts: dict[str, bytes]) -> str:
    """The condition for one row."""
    by_name = {f.name: f for f in definition.fields}
    parts = [f"{order_of(by_name[n])} = {literal(by_name[n], texts[n])}" for n in definition.key]
    return "(" + " AND ".join(parts) + ")"
