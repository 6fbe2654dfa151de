"""Copies of tables without a key: one piece, at one point of the stream.

Their rows cannot be told apart, so a row that changed meanwhile cannot be left out. A
snapshot is taken, the stream goes on to its mark, and the copy is written there if no
transaction that the snapshot may not have seen touched the table on the way; else another is
taken. The rows are read while the stream waits, straight into one log transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tailrace.sources.bags import ACTIVE, emptied, truncate_note
from tailrace.sources.declare import copied_again
from tailrace.sources.mysql.chunks import (
    Snapshot,
    TableChanged,
    TextRows,
    pin,
    read_rows,
    take_snapshot,
)
from tailrace.sources.mysql.filters import condition_of
from tailrace.sources.mysql.reception import Reception
from tailrace.sources.mysql.server import Server, TableDefinition, quoted
from tailrace.sources.mysql.table import shape_of

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Attempt:
    server: Server
    snapshot: Snapshot
    definition: TableDefinition


class KeylessCopies:
    """The copies of tables without a key that are under way."""

    def __init__(
        self, reception: Reception, connect: Callable[[], Server], stopped: Callable[[], bool]
    ) -> None:
        self._reception = reception
        self._connect = connect
        self._stopped = stopped
        self._attempts: dict[str, _Attempt] = {}

    def work(self) -> None:
        """Take a snapshot of every table that waits for one."""
        journal = self._reception.journal
        for name, state in list(journal.copies.items()):
            schema = journal.schemas.get(name)
            if schema is None or schema.key or state.get("state") not in ACTIVE:
                continue
            if name not in self._attempts:
                self._begin(name)

    def _begin(self, name: str) -> None:
        reception = self._reception
        schema, _, table = name.partition(".")
        known = reception.known
        reception.keyless_touched[name] = []
        server = self._connect()
        try:
            gate = reception.position, None if known is None else known.copy()
            snapshot = take_snapshot(server, gate, reception.source.lock, self._stopped)
            definition = None if snapshot is None else pin(server, schema, table)
        except BaseException as error:
            server.connection.close()
            if isinstance(error, TableChanged):
                return
            raise
        if snapshot is None or definition is None or definition.key:
            server.connection.close()
            if definition is not None and definition.key:
                # The stream will tell of the key, and then its rows are read by it.
                reception.looks.add(name)
            return
        self._attempts[name] = _Attempt(server, snapshot, definition)

    def due(self) -> bool:
        """Write the copies whose point the stream has reached; whether there were any."""
        reception = self._reception
        if not self._attempts or reception.transaction is not None:
            return False
        if reception.resume.part is not None:
            return False
        found = [n for n, a in self._attempts.items() if a.snapshot.mark <= reception.position]
        for name in found:
            attempt = self._attempts.pop(name)
            try:
                touched = reception.keyless_touched.get(name, ())
                if all(attempt.snapshot.sees(*place) for place in touched):
                    self._write(name, attempt)
            finally:
                attempt.server.connection.close()
        return bool(found)

    def _write(self, name: str, attempt: _Attempt) -> None:
        reception, definition = self._reception, attempt.definition
        journal = reception.journal
        if journal.copies[name].get("state") not in ACTIVE:
            return
        shape = shape_of(
            reception.source, definition.schema, definition.table, definition.fields, ()
        )
        table = reception.registered(shape)
        if journal.dirty:
            reception.cut()
        held = journal.copies[name]
        state: dict[str, Any] = copied_again(held, str(held.get("reason", "first copy")))
        first = state["state"] == "copying"
        frame = reception._copy_frame(table, "true" if first else "incremental")
        point, topic = reception.position - 1, table.schema.topic
        order = reception._next_order()
        reached = emptied(journal, topic, state, frame, point, order)
        if reached > order:
            now = reception.clock.wall_ms()
            journal.note(truncate_note(reception._copy_id, name, topic, now))
        order = reached
        texts = TextRows(definition, table.wanted)
        query = (
            f"SELECT {texts.columns} FROM {quoted(definition.schema)}.{quoted(definition.table)}"
        )
        chosen = condition_of(reception.source, definition.schema, definition.table)
        if chosen is not None:
            query += f" WHERE ({chosen})"
        values: list[bytes | None] = []
        count = 0
        for packet in read_rows(attempt.server, query):
            order += 1
            count += 1
            row = table.json_of(texts.row(packet))
            values.append(frame.event("r", b"null", row, point, order, count))
            if len(values) >= reception.settings.spill_rows:
                journal.add(topic, [None] * len(values), values)
                journal.spill()
                values = []
        if values:
            journal.add(topic, [None] * len(values), values)
        state |= {"state": "done", "rows": count, "bag": table.schema.version}
        journal.record_copy(name, state)
        reception._copied = (reception.position, order)
        reception.cut()
        log.info("copy finished", extra={"table": name, "rows": count})

    def close(self) -> None:
        for attempt in self._attempts.values():
            attempt.server.connection.close()
        self._attempts.clear()
