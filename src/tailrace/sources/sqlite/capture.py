"""One SQLite source: the change table is drained into the log, and trimmed behind it.

SQLite does not tell where one transaction ends and the next begins, but a reader sees
whole ones only: what one read finds is one transaction here, never less than the user's.
Its identity is the first change it holds, so that a piece of a large one that is written
again after a crash keeps it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from tailrace.config import parse_duration, resolve
from tailrace.records.envelope import TransactionFrame
from tailrace.sources.bags import ACTIVE, emptied, is_outdated, is_waiting, truncate_note
from tailrace.sources.base import Part as TransactionPart
from tailrace.sources.base import Resume, SourceLog
from tailrace.sources.compare import Comparison
from tailrace.sources.control import paused
from tailrace.sources.declare import (
    SQLite,
    changed_declaration,
    copied_again,
    declared_for,
    made_anew,
)
from tailrace.sources.errors import ServerUnreachableError, TableMissingError
from tailrace.sources.journal import Journal
from tailrace.sources.sqlite import change_table
from tailrace.sources.sqlite.change_table import CHANGES, Value, quoted
from tailrace.sources.sqlite.settings import SQLiteSettings
from tailrace.sources.sqlite.tracked import Tracked, covers, missing_table, schema_of, track
from tailrace.sources.sqlite.values import freeze, row_json, thaw
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

DEFAULTS = SQLiteSettings()


@dataclass(slots=True)
class _Group:
    """What one read of the change table found, on its way to the log."""

    first: int
    now_ms: int
    last: int
    events: int = 0
    changes: int = 0
    rows: int = 0
    begun: bool = False
    counts: dict[str, int] | None = None

    @property
    def id(self) -> str:
        return f"{self.first}:{self.first}"


class SQLiteCapture:
    """One attempt at capturing a source: from opening until something ends it."""

    def __init__(
        self,
        source: SQLite,
        source_log: SourceLog,
        part: Part,
        settings: SQLiteSettings | None = None,
    ) -> None:
        self.source = source
        self.settings = settings or DEFAULTS
        self._part = part
        self._clock = part.clock
        self._path = resolve(source.path)
        self._poll = parse_duration(source.poll).total_seconds()
        self._journal = Journal(source, source_log, clock=part.clock)
        self._connection = change_table.connect(self._path)
        self._tracked: dict[tuple[str, int], Tracked] = {}
        self._current: dict[str, tuple[int, Tracked]] = {}
        self._frames: dict[str, TransactionFrame] = {}
        self._comparisons: dict[str, Comparison] = {}
        self._inserted: dict[str, set[bytes]] = {}
        self._resume = Resume(0, None)
        self._missing: TableMissingError | None = None
        self._position = 0
        self._schema_version = -1
        self._looked_ms: int | None = None
        self._not_before: int | None = None  # what is read now was committed after that
        self._data_version = -1
        self._trimmed_at = 0.0
        self._reported_at = 0.0

    def work(self) -> None:
        """Capture until the part is told to stop; raises when it cannot go on."""
        try:
            self._start()
            while not self._part.stopping.is_set():
                if paused(self._part.directory, self.source.name):
                    return
                busy = self._round()
                if not busy:
                    self._part.stopping.wait(self._poll)
        except sqlite3.OperationalError as error:
            raise ServerUnreachableError(
                f"the file {self._path} does not answer", detail=str(error)
            ) from error
        finally:
            for comparison in self._comparisons.values():
                comparison.close()
            self._connection.close()
            self._journal.close()

    # --- start -----------------------------------------------------------------------------

    def _start(self) -> None:
        identity = change_table.prepare(self._connection)
        self._resume = self._journal.open()
        newest = self._newest()
        held = {state.get("identity") for state in self._journal.copies.values()} - {None}
        if self._resume.position is None:
            self._position = newest
            self._journal.epoch = 1
        elif (held and held != {identity}) or self._resume.position > newest:
            self._begin_epoch(newest)
        else:
            self._position = self._resume.position
        self._identity = identity
        self._renew()
        if (self._journal.dirty or self._resume.position is None) and self._resume.part is None:
            self._journal.cut(self._position)
        log.info("capture started", extra={"source": self.source.name, "position": self._position})

    def _newest(self) -> int:
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", [CHANGES]
        ).fetchone()
        return 0 if row is None else int(row[0])

    def _begin_epoch(self, newest: int) -> None:
        """Another file stands in the place of the one we knew: compare every table."""
        log.warning("file replaced", extra={"source": self.source.name})
        self._journal.epoch = self._resume.epoch + 1
        self._resume = replace(self._resume, part=None)
        self._position = newest
        for name, state in list(self._journal.copies.items()):
            again = {**state, "after": None, "rows": 0, "identity": None}
            if state["state"] != "skipped":
                # A first copy, too: what it or a trigger has told may be gone since.
                first = state["state"] == "copying"
                again |= {"state": "copying" if first else "again", "compare": True}
                for word in ("where", "keys"):
                    again.pop(word, None)
            self._journal.record_copy(name, again)

    # --- shapes ----------------------------------------------------------------------------

    def _renew(self) -> None:
        """Make triggers fit the tables. Rows changed while they did not are read again."""
        connection = self._connection
        shapes = [s for s in change_table.read_shapes(connection) if covers(self.source, s.table)]
        self._missing = missing_table(
            self.source, shapes, change_table.read_shapes(connection), self._journal.copies
        )
        strays = change_table.strays(connection)
        outdated = [s for s in shapes if self._outdated(s)]
        if outdated or strays:
            connection.execute("BEGIN IMMEDIATE")
            try:
                stale: dict[str, list[tuple[Value, ...]]] = {}
                for trigger in strays:
                    connection.execute(f"DROP TRIGGER {quoted(trigger)}")
                for shape in outdated:
                    if change_table.installed(connection, shape.table) is not None:
                        stale[shape.table] = list(self._changed_keys(shape.table))
                    else:
                        self._made_anew(f"main.{shape.table}")
                    change_table.install(connection, shape)
                self._adopt_all(shapes)
                if stale and self._resume.part is None:
                    # Rows without a key are copied together with what changed in the old form.
                    self._drain(connection, stale, self._keyless_copies())
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        else:
            self._adopt_all(shapes)
        self._schema_version = self._read_schema_version()

    def _made_anew(self, name: str) -> None:
        """A table that had our triggers and has none: what was missed is found by comparing."""
        held = self._journal.copies.get(name)
        if held is None or held["state"] == "skipped":
            return
        log.warning("table made anew", extra={"table": name})
        if name in self._comparisons:
            self._comparisons.pop(name).close()
        self._journal.record_copy(name, made_anew(held))

    def _outdated(self, shape: change_table.Shape) -> bool:
        found = change_table.installed(self._connection, shape.table)
        return found is None or found[1] != shape or not change_table.whole(self._connection, shape)

    def _read_schema_version(self) -> int:
        return int(self._connection.execute("PRAGMA schema_version").fetchone()[0])

    def _changed_keys(self, table: str) -> Iterator[tuple[Value, ...]]:
        """Keys that changed under triggers that may not have known every column."""
        for _, version, op, values in self._changes(table):
            tracked = self._table(table, version)
            width = len(tracked.shape.columns)
            if op in "cu" and tracked.key:
                yield tracked.key_values(values[width:])

    def _changes(self, table: str) -> Iterator[tuple[int, int, str, list[Value]]]:
        rows = self._connection.execute(
            f"SELECT * FROM {CHANGES} WHERE id > ? AND tbl = ? ORDER BY id", [self._position, table]
        ).fetchall()
        sides = self._sides()
        for row in rows:
            version = row[2]
            width = len(self._table(table, version).shape.columns)
            values = [row[sides[f"b{i}"]] for i in range(width)]
            values += [row[sides[f"a{i}"]] for i in range(width)]
            yield row[0], version, row[3], values

    def _sides(self) -> dict[str, int]:
        info = self._connection.execute(f"PRAGMA table_info({CHANGES})")
        return {row[1]: row[0] for row in info}

    def _adopt_all(self, shapes: list[change_table.Shape]) -> None:
        for gone in set(self._current) - {shape.table for shape in shapes}:
            del self._current[gone]
        for shape in shapes:
            found = change_table.installed(self._connection, shape.table)
            assert found is not None
            version = found[0]
            for older in change_table.waiting(self._connection, shape.table, self._position):
                self._table(shape.table, older)  # so that versions are numbered as they came
            self._current[shape.table] = (version, self._table(shape.table, version))
            name = f"main.{shape.table}"
            declared = declared_for(self.source, "main", shape.table)
            if name not in self._journal.copies:
                state = "copying" if self.source.snapshot else "skipped"
                self._journal.record_copy(
                    name,
                    {"state": state, "after": None, "rows": 0, "identity": self._identity,
                     "declared": declared},
                )  # fmt: skip
            elif (again := changed_declaration(self._journal.copies[name], declared)) is not None:
                log.warning("declaration changed", extra={"table": name})
                self._journal.record_copy(name, {**again, "identity": self._identity})
            elif self._journal.copies[name].get("identity") != self._identity:
                self._journal.record_copy(
                    name, {**self._journal.copies[name], "identity": self._identity}
                )
            _, tracked = self._current[shape.table]
            held = self._journal.copies[name]
            if is_outdated(held, None if shape.key else tracked.schema.version):
                log.info("table is copied again", extra={"table": name})
                self._journal.record_copy(name, copied_again(held, "another form of its rows"))

    def _table(self, table: str, version: int) -> Tracked:
        if (table, version) not in self._tracked:
            shape = change_table.shape_of_version(self._connection, table, version)
            schema = self._journal.register(schema_of(self.source, shape), self._position)
            db = Path(self._path).name
            self._tracked[table, version] = track(self.source, version, shape, schema, db)
        return self._tracked[table, version]

    # --- the loop --------------------------------------------------------------------------

    def _round(self) -> bool:
        """Look once; whether there was something to do."""
        connection = self._connection
        copying = self._next_copies()
        # SQLite does not say when it commits: after the last look at the latest.
        before, self._looked_ms = self._looked_ms, self._clock.wall_ms()
        version = int(connection.execute("PRAGMA data_version").fetchone()[0])
        busy = False
        if version != self._data_version or copying:
            self._data_version = version
            if self._read_schema_version() != self._schema_version:
                self._renew()
                copying = self._next_copies()
            if copying:
                # A change of our own gives the copied rows a place in the order.
                connection.execute(
                    f"INSERT INTO {CHANGES} (tbl, version, op) VALUES ('{{}}', 0, 'm')"
                )
            connection.execute("BEGIN")
            try:
                # A table altered just now is for the next look: its triggers come first.
                busy = self._read_schema_version() != self._schema_version
                if busy:
                    self._data_version = -1
                else:
                    if before is not None:
                        self._not_before = before
                    busy = self._drain(connection, {}, copying)
            finally:
                connection.execute("ROLLBACK")
        now = self._clock.monotonic()
        if now - self._trimmed_at >= self.settings.trim_seconds:
            self._trim()
        if now - self._reported_at >= 0.5:
            self._report()
        return busy

    def _next_copies(self) -> list[str]:
        """Tables to copy from the next read: those without a key, which are copied in one
        piece, and one of the others."""
        keyed = (
            table
            for table, (_, tracked) in self._current.items()
            if tracked.key and self._journal.copies[f"main.{table}"].get("state") in ACTIVE
        )
        return [*self._keyless_copies(), *islice(keyed, 1)]

    def _keyless_copies(self) -> list[str]:
        return [
            table
            for table, (_, tracked) in self._current.items()
            if not tracked.key and self._journal.copies[f"main.{table}"].get("state") in ACTIVE
        ]

    def _drain(
        self,
        connection: sqlite3.Connection,
        stale: dict[str, list[tuple[Value, ...]]],
        copying: Sequence[str] = (),
    ) -> bool:
        """Write everything this read sees, and chunks of copies, as one transaction."""
        newest = connection.execute(f"SELECT max(id) FROM {CHANGES}").fetchone()[0] or 0
        if newest <= self._position:
            return False
        if self._not_before is not None:
            self._journal.committed_at(self._not_before)
        first = self._position + 1
        group = _Group(first, self._clock.wall_ms(), newest)
        part, self._resume = self._resume.part, replace(self._resume, part=None)
        skip = 0
        if part is not None:
            skip, group.events, group.begun = part.messages, part.events, True
        self._frames = {}
        group.counts = {}
        sides = self._sides()
        cursor = connection.execute(
            f"SELECT * FROM {CHANGES} WHERE id > ? AND id <= ? ORDER BY id",
            [self._position, newest],
        )
        requests: list[dict[str, Any]] = []
        while rows := cursor.fetchmany(self.settings.read_rows):
            for row in rows:
                group.changes += 1
                if group.changes <= skip:
                    continue
                if row[3] == "m":
                    requests.append(orjson.loads(row[1]))
                elif row[1] in self._current or covers(self.source, row[1]):
                    self._change(connection, group, row, sides)
            if self._journal.waiting:
                self._journal.spill()
            if group.rows >= self.settings.part_rows:
                self._journal.cut_part(TransactionPart(first, group.changes, group.events))
                group.rows = 0
        for table, keys in stale.items():
            self._read_again(connection, group, table, keys)
        if group.begun:
            self._end(group)
        for request in requests:
            self._asked(request)
        for table in copying:
            self._copy(connection, group, table)
        self._position = newest
        self._journal.cut(newest)
        return True

    def _begin(self, group: _Group) -> None:
        if not group.begun:
            group.begun = True
            self._journal.note({"status": "BEGIN", "id": group.id, "ts_ms": group.now_ms})

    def _end(self, group: _Group) -> None:
        counts = group.counts or {}
        self._journal.note(
            {
                "status": "END",
                "id": group.id,
                "event_count": group.events,
                "data_collections": [
                    {"data_collection": t, "event_count": n} for t, n in counts.items()
                ],
                "ts_ms": group.now_ms,
            }
        )

    # --- events ----------------------------------------------------------------------------

    def _change(
        self, connection: sqlite3.Connection, group: _Group, row: tuple[Any, ...],
        sides: dict[str, int],
    ) -> None:  # fmt: skip
        identifier, name, version, op = row[:4]
        tracked = self._table(name, version)
        if not tracked.key and self._journal.copies[f"main.{name}"].get("state") == "copying":
            return  # it is in the copy, and could not be told from it
        width = range(len(tracked.shape.columns))
        before: list[Value] = [row[sides[f"b{i}"]] for i in width]
        after: list[Value] = [row[sides[f"a{i}"]] for i in width]
        if op == "s":
            if self._was_replaced(connection, tracked, before, identifier):
                self._emit(group, tracked, identifier, "d", before, None)
        elif op == "c":
            self._emit(group, tracked, identifier, "c", None, after)
        elif op == "d":
            self._emit(group, tracked, identifier, "d", before, None)
        elif tracked.row_key(before) != tracked.row_key(after):
            self._emit(group, tracked, identifier, "d", before, None)
            self._emit(group, tracked, identifier, "c", None, after)
        else:
            self._emit(group, tracked, identifier, "u", before, after)

    def _was_replaced(
        self, connection: sqlite3.Connection, tracked: Tracked, values: list[Value], identifier: int
    ) -> bool:
        """Whether a row that was in the way of a REPLACE is gone without another word."""
        shape = tracked.shape
        if not shape.key:
            return change_table.was_replaced(connection, shape, tracked.version, values, identifier)
        key = tracked.key_values(values)
        match = " AND ".join(f"{quoted(name)} IS ? COLLATE BINARY" for name in shape.key)
        there = connection.execute(
            f"SELECT 1 FROM {quoted(shape.table)} WHERE {match}", key
        ).fetchone()
        # The next word about this key decides: a delete or an update says that it lived on.
        on_before = " AND ".join(f"b{i} IS ?" for i in tracked.key)
        on_after = " AND ".join(f"a{i} IS ?" for i in tracked.key)
        following = connection.execute(
            f"SELECT op FROM {CHANGES} WHERE id > ? AND tbl = ? AND ((op IN ('u', 'd', 's') AND "
            f"{on_before}) OR (op = 'c' AND {on_after})) ORDER BY id LIMIT 1",
            [identifier, shape.table, *key, *key],
        ).fetchone()
        if following is not None:
            return bool(following[0] == "c")
        return there is None

    def _emit(
        self, group: _Group, tracked: Tracked, identifier: int, op: str,
        before: list[Value] | None, after: list[Value] | None,
    ) -> None:  # fmt: skip
        self._begin(group)
        group.events += 1
        group.rows += 1
        name = tracked.schema.name
        assert group.counts is not None
        group.counts[name] = order = group.counts.get(name, 0) + 1
        values = before if after is None else after
        assert values is not None
        key = tracked.row_key(values)
        inserted = self._inserted_of(tracked) if op == "c" else None
        if inserted is not None and key is not None:
            inserted.add(key)
        event = self._frame(group, tracked).event(
            op,
            b"null" if before is None else tracked.row(before),
            b"null" if after is None else tracked.row(after),
            identifier, group.events, order,
        )  # fmt: skip
        if op == "d" and key is not None:
            self._journal.add(tracked.schema.topic, [key, key], [event, None])
        else:
            self._journal.add(tracked.schema.topic, [key], [event])

    def _inserted_of(self, tracked: Tracked) -> set[bytes] | None:
        """Keys told as inserted while the first copy of a table runs, which are not news in
        it; None where nobody can ask for all inserted rows."""
        name = tracked.schema.name
        copied = self._journal.copies.get(name, {}).get("state") != "copying"
        if copied or tracked.schema.history is None or not tracked.key:
            return None
        if name not in self._inserted:
            self._inserted[name] = self._journal.inserted_keys(tracked.schema.topic)
        return self._inserted[name]

    def _frame(self, group: _Group, tracked: Tracked) -> TransactionFrame:
        name = f"{tracked.schema.name}:{tracked.schema.version}"
        if name not in self._frames:
            self._frames[name] = TransactionFrame.of(
                tracked.frame, epoch=self._journal.epoch, commit=group.first, xid=group.first,
                committed_ms=group.now_ms, now_ms=group.now_ms,
            )  # fmt: skip
        return self._frames[name]

    def _read_again(
        self, connection: sqlite3.Connection, group: _Group, table: str,
        keys: list[tuple[Value, ...]],
    ) -> None:  # fmt: skip
        """Rows that changed between an ALTER TABLE and the renewal of the triggers."""
        _, tracked = self._current[table]
        match = " AND ".join(f"{quoted(name)} IS ?" for name in tracked.shape.key)
        columns = ", ".join(quoted(c) for c in tracked.shape.columns)
        for key in dict.fromkeys(keys):
            row = connection.execute(
                f"SELECT {columns} FROM {quoted(table)} WHERE {match}", key
            ).fetchone()
            if row is not None:
                self._emit(group, tracked, group.last, "u", None, list(row))

    # --- copies ----------------------------------------------------------------------------

    def _asked(self, request: dict[str, Any]) -> None:
        wanted = request.get("table")
        if wanted is None:
            return  # a mark of our own
        for table in self._current:
            name = f"main.{table}"
            held = self._journal.copies[name]
            if wanted not in ("*", table, name) or held["state"] == "copying":
                continue
            again = {**held, "state": "again", "after": None, "rows": 0}
            if held["state"] != "again":
                again = {w: v for w, v in again.items() if w not in ("where", "keys")}
                again |= {w: request[w] for w in ("where", "keys") if request.get(w)}
            elif held.get("keys") and request.get("keys"):
                again["keys"] = [*held["keys"], *request["keys"]]
            else:  # two requests at a time: all rows are those of both
                again.pop("where", None)
                again.pop("keys", None)
            self._journal.record_copy(name, again)

    def _copy(self, connection: sqlite3.Connection, group: _Group, table: str) -> None:
        """The next rows of a copy, from the same read as the changes: no race is possible."""
        _, tracked = self._current[table]
        name = f"main.{table}"
        state = dict(self._journal.copies[name])
        keyed, topic = bool(tracked.key), tracked.schema.topic
        empties = is_waiting(state, keyed=keyed)
        if empties:
            state = copied_again(state, str(state.get("reason", "first copy")))
            if not state.get("bag") and not self._journal.is_empty(topic):
                self._journal.cut(group.last)  # the rows under keys are read from the log
        if state.get("compare") and name not in self._comparisons:
            state["after"] = None
            self._comparisons[name] = Comparison(
                self._part.directory / "sources" / f"{self.source.name}.{name}.compare",
                self._journal.live_rows(tracked.schema.topic),
            )
        known, frame = (
            TransactionFrame.of(
                tracked.frame, epoch=self._journal.epoch, commit=group.first, xid=0,
                committed_ms=group.now_ms, now_ms=group.now_ms, snapshot=word,
                transaction=f"copy:{group.first}",
            )
            for word in ("incremental", "true")
        )  # fmt: skip
        if state["state"] != "copying":
            frame = known
        inserted = self._inserted_of(tracked) or ()
        order = group.events
        if empties:
            order = emptied(self._journal, topic, state, frame, group.last, order)
            if order > group.events:
                note = truncate_note(f"copy:{group.first}", name, topic, group.now_ms)
                self._journal.note(note)
            state.pop("bag", None)
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        count, last = 0, None
        comparison = self._comparisons.get(name)
        for row in self._rows_of(connection, tracked, state):
            count += 1
            last = row
            key, after = tracked.row_key(row), tracked.row(row)
            if comparison is not None and key is not None and not comparison.differs(key, after):
                continue
            order += 1
            keys.append(key)
            told = known if key in inserted else frame
            values.append(told.event("r", b"null", after, group.last, order, count))
            if not keyed and len(values) >= self.settings.read_rows:
                self._journal.add(tracked.schema.topic, keys, values)
                self._journal.spill()
                keys, values = [], []
        if state.get("keys"):
            met = set(keys)
            for asked in state["keys"]:
                gone = row_json(tracked.key_names, thaw(asked))
                if gone not in met:
                    met.add(gone)
                    order += 1
                    keys += [gone, gone]
                    values += [frame.event("d", gone, b"null", group.last, order, order), None]
        done = not keyed or state.get("keys") or count < self.settings.chunk_rows
        if done and comparison is not None:
            for gone in comparison.unseen():
                order += 1
                keys += [gone, gone]
                values += [frame.event("d", gone, b"null", group.last, order, order), None]
            comparison.close()
            del self._comparisons[name]
        self._journal.add(tracked.schema.topic, keys, values)
        state["rows"] = state.get("rows", 0) + count
        if last is not None and keyed:
            state["after"] = freeze(tracked.key_values(last))
        group.events = order
        if done:
            state["state"] = "done"
            self._inserted.pop(name, None)
            if not keyed:
                state["bag"] = tracked.schema.version
            for word in ("compare", "whole", "where", "keys"):
                state.pop(word, None)
        self._journal.record_copy(name, state)

    def _rows_of(
        self, connection: sqlite3.Connection, tracked: Tracked, state: dict[str, Any]
    ) -> Iterator[list[Value]]:
        shape = tracked.shape
        columns = ", ".join(quoted(c) for c in shape.columns)
        query = f"SELECT {columns} FROM {quoted(shape.table)}"
        conditions: list[str] = []
        parameters: list[Value] = []
        key = ", ".join(quoted(c) for c in shape.key)
        if state.get("keys"):
            match = " AND ".join(f"{quoted(name)} = ?" for name in shape.key)
            for asked in state["keys"]:
                for row in connection.execute(f"{query} WHERE {match}", thaw(asked)):
                    yield list(row)
            return
        if state.get("after") is not None and shape.key:
            parameters = thaw(state["after"])
            conditions.append(f"({key}) > ({', '.join('?' * len(parameters))})")
        if state.get("where"):
            conditions.append(f"({state['where']})")
        if conditions:
            query += " WHERE " + " AND ".join(conditions)
        if shape.key:
            query += f" ORDER BY {key} LIMIT {self.settings.chunk_rows}"
        for row in connection.execute(query, parameters):
            yield list(row)

    # --- housekeeping ----------------------------------------------------------------------

    def _trim(self) -> None:
        """Take out of the change table what the log has on disk."""
        self._trimmed_at = self._clock.monotonic()
        durable = self._journal.durable_position(delay=self.settings.confirm_delay)
        if durable is None:
            return
        while True:
            gone = self._connection.execute(
                f"DELETE FROM {CHANGES} WHERE id IN (SELECT id FROM {CHANGES} WHERE id <= ? LIMIT 5000)",
                [durable],
            ).rowcount
            if gone < 5000:
                return

    def _report(self) -> None:
        self._reported_at = self._clock.monotonic()
        copies = self._journal.copies
        self._part.report(
            "running" if self._missing is None else "lagging",
            freshness_ms=self._journal.latency_ms() or 0,
            lag=max(self._newest() - self._position, 0),
            position=self._journal.position_text(self._position),
            copying=[t for t, s in copies.items() if s.get("state") in ACTIVE],
            copied={t: s.get("rows", 0) for t, s in copies.items()},
            events=self._journal.events_written,
            error=None if self._missing is None else self._missing.as_dict(),
        )
