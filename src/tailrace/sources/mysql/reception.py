"""What arrives from the binlog becomes log transactions.

A transaction is kept until its commit is known, or until it is large; then it is written as
it comes. Its number is the place where it begins in its file, so that it is known from the
first row on; a cut stands where the last one ends.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tailrace.clock import Clock
from tailrace.records.envelope import TransactionFrame
from tailrace.sources import outbox
from tailrace.sources.bags import ACTIVE, emptied, is_outdated, truncate_note
from tailrace.sources.base import Part as TransactionPart
from tailrace.sources.base import Resume
from tailrace.sources.declare import MySQL, copied_again, declared_for, made_anew
from tailrace.sources.errors import ReplicationProtocolError
from tailrace.sources.journal import Journal
from tailrace.sources.mysql import events as kinds
from tailrace.sources.mysql.cascades import Cascades
from tailrace.sources.mysql.chunks import place_number
from tailrace.sources.mysql.copies import Chunk, Copies
from tailrace.sources.mysql.decoder import Row, RowDecoder
from tailrace.sources.mysql.events import Event, read_query, read_rows_head
from tailrace.sources.mysql.filters import RowFilter, RowFilters
from tailrace.sources.mysql.gtid import Known, read_gtid, read_tagged_gtid
from tailrace.sources.mysql.json_diffs import Diffs, DoesNotFit
from tailrace.sources.mysql.packets import length_of
from tailrace.sources.mysql.server import REQUESTS, Server, matches
from tailrace.sources.mysql.settings import MySQLSettings
from tailrace.sources.mysql.table import Captured, captured, shape_of
from tailrace.sources.mysql.table_map import read_names, read_table_map
from tailrace.sources.schema import TableSchema, new_columns

log = logging.getLogger(__name__)

DDL = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(CREATE|ALTER|DROP|RENAME|TRUNCATE|GRANT|REVOKE|FLUSH|ANALYZE|OPTIMIZE|"
    r"REPAIR|SET|COMMENT|INSTALL|UNINSTALL|CHANGE|PURGE|RESET)\b",
    re.IGNORECASE | re.DOTALL,
)
COMMENT = re.compile(r"^\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*|#[^\n]*\n\s*)+", re.DOTALL)
NAME = r"(?:`((?:[^`]|``)+)`|\"((?:[^\"]|\"\")+)\"|([\w$\x80-\U0010ffff]+))"
TRUNCATED = re.compile(rf"\s*TRUNCATE\s+(?:TABLE\s+)?{NAME}(?:\s*\.\s*{NAME})?", re.IGNORECASE)
CREATED = re.compile(
    rf"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{NAME}(?:\s*\.\s*{NAME})?",
    re.IGNORECASE,
)
ALTERED = re.compile(
    rf"\s*ALTER\s+(?:ONLINE\s+|IGNORE\s+)*TABLE\s+(?:IF\s+EXISTS\s+)?{NAME}(?:\s*\.\s*{NAME})?",
    re.IGNORECASE,
)
RENAMED = re.compile(rf"{NAME}(?:\s*\.\s*{NAME})?\s+TO\s+{NAME}(?:\s*\.\s*{NAME})?", re.IGNORECASE)
MARIADB_STANDALONE, MARIADB_PREPARED = 1, 64
PARTIAL_JSON = 1


@dataclass(slots=True)
class Transaction:
    """A transaction being received. `rows` counts its captured rows, `order` its events."""

    start: int
    id: str
    gtid: str | None
    committed_ms: int
    now_ms: int
    standalone: bool = False
    opened: bool = False
    xid: int = 0
    skip: int = 0
    rows: int = 0
    order: int = 0
    part_rows: int = 0
    bytes: int = 0
    begun: bool = False
    spilled: bool = False
    # In the log already: read again only for what it may have prepared.
    old: bool = False
    buffer: list[Event] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    entered: dict[str, Captured] = field(default_factory=dict)
    end: int = 0


class Reception:
    """Takes events one by one; `cut` ends a log transaction."""

    def __init__(
        self, source: MySQL, server: Server, connect: Callable[[], Server], journal: Journal,
        settings: MySQLSettings, directory: Path, clock: Clock, resume: Resume,
    ) -> None:  # fmt: skip
        self.source = source
        self.server = server
        self.journal = journal
        self.settings = settings
        self.clock = clock
        self.resume = resume
        self.file = ""
        self.position = 0
        self.known: Known | None = None
        self.servers: list[int] = []
        self.transaction: Transaction | None = None
        self.group_since: float | None = None
        self.group_rows = 0
        self.last_cut_at = 0.0
        self.last_commit_ms = 0
        self.last_cut_position = 0
        self.alarms: dict[str, dict[str, object]] = {}
        self._ids: dict[int, Captured | None] = {}
        self._maps: dict[bytes, Captured | None] = {}
        self._current: dict[str, Captured] = {}
        self._copied: tuple[int, int] = (0, 0)
        self._prepared: dict[str, Transaction] = {}
        self._before: dict[str, Any] = {}
        self.copies = Copies(
            source, connect, journal, settings, directory, lambda: (self.position, self.known)
        )
        self.filters = RowFilters(source, connect)
        self.cascades = Cascades(server, journal, settings.lost_rows)
        self.keyless_touched: dict[str, list[tuple[int, str]]] = {}
        self.requests: list[dict[str, Any]] = []
        self._looks: set[str] = set()

    # --- places ------------------------------------------------------------------------------

    def enter_file(self, name: str, position: int) -> None:
        self.file = name
        self.position = max(self.position, place_number(name, position))

    def number(self, position: int) -> int:
        return int(self.file.rpartition(".")[2]) << 32 | position

    def place(self) -> dict[str, Any]:
        """What a cut says beside its position."""
        found: dict[str, Any] = {
            "file": self.file, "pos": self.position & 0xFFFFFFFF, "servers": self.servers,
            "uuid": self.server.uuid, "copied": list(self._copied),
        }  # fmt: skip
        if self.known is not None:
            found["gtid"] = str(self.known)
        if self._before:
            found["prepared"] = self._before
        return found

    # --- events ------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """The next event of the stream."""
        kind = event.type
        transaction = self.transaction
        if kind in kinds.ROWS or kind == kinds.TABLE_MAP:
            if transaction is None:
                raise ReplicationProtocolError("rows outside a transaction")
            if transaction.spilled:
                self._apply(event)
                return
            transaction.buffer.append(event)
            transaction.bytes += len(event.body)
            if transaction.bytes > self.settings.spill_bytes and not transaction.old:
                self._spill(transaction)
            return
        match kind:
            case kinds.XID:
                if transaction is not None:
                    transaction.xid = int.from_bytes(event.body[:8], "little")
                    self._commit(event.end)
            case kinds.GTID | kinds.ANONYMOUS_GTID | kinds.TAGGED_GTID | kinds.MARIADB_GTID:
                self._begin(event)
                return
            case kinds.QUERY:
                self._query(event)
            case kinds.XA_PREPARE:
                self._prepare(event)
            case kinds.ROTATE:
                name = event.body[8:].decode("utf-8", "replace")
                if name != self.file or event.end == 0:
                    self._ids.clear()
                if self.transaction is None:
                    self.enter_file(name, int.from_bytes(event.body[:8], "little"))
                else:
                    self.file = name
                return
            case kinds.FORMAT:
                self._ids.clear()
                if self.transaction is not None:
                    self._abandon("the server stopped in the middle of a transaction")
            case kinds.INCIDENT:
                self._lost("the server lost events of its binlog", None)
            case kinds.HEARTBEAT | kinds.HEARTBEAT_V2:
                pass
            case _ if kind in kinds.IGNORED or event.flags & kinds.IGNORABLE_FLAG:
                pass
            case _:
                raise ReplicationProtocolError(
                    f"an event has the type {kind}, which this version does not know",
                    detail=f"In {self.file}, ending at {event.end:,}.",
                    hint="a newer version of Tailrace may; nothing behind it was read",
                )
        if self.transaction is None and event.end and self.file:
            reached = self.number(event.end)
            if reached > self.position:
                self.position = reached

    def _begin(self, event: Event) -> None:
        if self.transaction is not None:
            self._abandon("a transaction has no end")
        body, gtid = event.body, None
        made_ms = event.time * 1000
        standalone = False
        if event.type == kinds.GTID:
            gtid = read_gtid(body)
        elif event.type == kinds.TAGGED_GTID:
            gtid = read_tagged_gtid(body)
        elif event.type == kinds.MARIADB_GTID:
            number = int.from_bytes(body[:8], "little")
            domain = int.from_bytes(body[8:12], "little")
            gtid = f"{domain}-{event.server}-{number}"
            standalone = bool(body[12] & MARIADB_STANDALONE)
        start = self.number(event.start)
        name = gtid or f"{self.file}:{event.start}"
        self.transaction = transaction = Transaction(
            start,
            name,
            gtid,
            made_ms,
            self.clock.wall_ms(),
            standalone,
            opened=event.type == kinds.MARIADB_GTID and not standalone,
        )
        if gtid is None:
            transaction.old = start < self.written_to
        elif self.replayed is not None:
            transaction.old = self.replayed.has(gtid)
        part = self.resume.part
        if part is not None and not transaction.old:
            self.resume = Resume(self.resume.epoch, self.resume.position)
            if self._open_id == name:
                transaction.skip, transaction.order = part.messages, part.events
                transaction.begun = transaction.spilled = True
            else:
                raise ReplicationProtocolError(
                    "the server goes on with another transaction than the log",
                    detail=f"The log has a part of {self._open_id}, the server sends {name}.",
                )

    _open_id = ""
    # How far the log had got where the stream begins before that, for prepared transactions.
    written_to = 0
    replayed: Known | None = None

    def resume_inside(self, open_id: str) -> None:
        """The log has a part of this transaction already."""
        self._open_id = open_id

    def _query(self, event: Event) -> None:
        schema, text = read_query(event.body)
        transaction = self.transaction
        plain = COMMENT.sub("", text[:4096])
        word = plain[:24].upper().split(None, 2)
        first = word[0].rstrip(";") if word else ""
        if first == "BEGIN" or (first == "XA" and len(word) > 1 and word[1] in ("START", "BEGIN")):
            if transaction is not None:
                transaction.opened = True
            return
        if transaction is None:
            return
        if first == "COMMIT":
            self._commit(event.end)
            return
        if first == "ROLLBACK":
            if len(word) > 1 and word[1].startswith("TO"):
                self._undo(text)
            else:
                self._abandon("a transaction was rolled back in the binlog")
                if not transaction.old:
                    self._done(event.end, transaction.gtid)
            return
        if first == "SAVEPOINT":
            if not transaction.spilled:
                transaction.buffer.append(event)
            return
        if first == "XA":
            self._xa(event, word[1] if len(word) > 1 else "", text)
            return
        if transaction.old:
            if not transaction.opened or transaction.standalone:
                self.transaction = None
            return
        if transaction.opened and not DDL.match(text):
            self._statement(schema, text)
            return
        if not transaction.spilled and transaction.buffer:
            self._spill(transaction)
        self._ddl(transaction, schema, text)
        transaction.opened = transaction.opened or "START TRANSACTION" in text[-40:].upper()
        if not transaction.opened or transaction.standalone:
            self._commit(event.end)

    def _undo(self, text: str) -> None:
        """ROLLBACK TO SAVEPOINT in the binlog: what came after the savepoint never was."""
        transaction = self.transaction
        assert transaction is not None
        name = text.split()[-1]
        if not transaction.spilled:
            for number in range(len(transaction.buffer) - 1, -1, -1):
                event = transaction.buffer[number]
                if event.type == kinds.QUERY and read_query(event.body)[1].split()[-1] == name:
                    del transaction.buffer[number + 1 :]
                    return
        self._lost("a part of a large transaction was rolled back", list(transaction.entered))

    def _abandon(self, reason: str) -> None:
        """Forget a transaction without an end; what the log has of it is compared."""
        transaction, self.transaction = self.transaction, None
        assert transaction is not None
        log.warning(
            "transaction abandoned", extra={"transaction": transaction.id, "reason": reason}
        )
        if transaction.spilled and (transaction.rows or transaction.begun):
            self._leave(transaction)
            if transaction.begun:
                self.journal.note(self._end_note(transaction))
            self._lost(reason, list(transaction.counts))

    # --- transactions ------------------------------------------------------------------------

    def _spill(self, transaction: Transaction) -> None:
        """Write what was kept; the rest as it comes."""
        transaction.spilled = True
        kept, transaction.buffer = transaction.buffer, []
        for event in kept:
            self._apply(event)

    def _apply(self, event: Event) -> None:
        if event.type == kinds.TABLE_MAP:
            self._map(event)
        elif event.type != kinds.QUERY:
            self._rows(event)

    def _commit(self, end: int) -> None:
        transaction = self.transaction
        assert transaction is not None
        if transaction.old:
            self.transaction = None
            return
        if transaction.buffer:
            kept, transaction.buffer = transaction.buffer, []
            for event in kept:
                self._apply(event)
        self._leave(transaction)
        if transaction.begun:
            self.journal.note(self._end_note(transaction))
            self.group_rows += transaction.rows
        self._done(end, transaction.gtid)
        self.last_commit_ms = transaction.committed_ms
        self.transaction = None

    def _done(self, end: int, gtid: str | None) -> None:
        transaction = self.transaction
        self.transaction = None
        self.position = max(self.number(end), self.position)
        if gtid is not None and self.known is not None:
            self.known.add(gtid)
        written = transaction is not None and transaction.begun
        if (written or self.journal.dirty) and self.group_since is None:
            self.group_since = self.clock.monotonic()

    def _end_note(self, transaction: Transaction) -> dict[str, object]:
        return {
            "status": "END",
            "id": transaction.id,
            "event_count": transaction.order,
            "data_collections": [
                {"data_collection": t, "event_count": n} for t, n in transaction.counts.items()
            ],
            "ts_ms": transaction.committed_ms,
        }

    def _note_begin(self, transaction: Transaction) -> None:
        if not transaction.begun:
            transaction.begun = True
            self.journal.note(
                {"status": "BEGIN", "id": transaction.id, "ts_ms": transaction.committed_ms}
            )

    def _leave(self, transaction: Transaction) -> None:
        """Hand the rows that wait to the journal."""
        for table in transaction.entered.values():
            if table.values:
                self.journal.add(table.schema.topic, table.keys, table.values)
                table.keys, table.values = [], []

    # --- tables ------------------------------------------------------------------------------

    def _map(self, event: Event) -> None:
        body = event.body
        identifier = int.from_bytes(body[:6], "little")
        mark = body[6:]
        if mark not in self._maps:
            _, schema, table, _ = read_names(body)
            if schema == self.source.database and table == REQUESTS:
                self._maps[mark] = self._request_table(body)
            elif self.cascades.is_parent(f"{schema}.{table}") and not matches(
                self.source, schema, table
            ):
                self._maps[mark] = self._parent_table(body)
            elif matches(self.source, schema, table):
                self._maps[mark] = self._table(body, schema, table)
            else:
                self._maps[mark] = None
        table_now = self._ids[identifier] = self._maps[mark]
        if table_now is not None and self._current.get(table_now.name, table_now) is not table_now:
            self._adopt_shape(table_now)

    def _parent_table(self, body: bytes) -> Captured:
        """A table that is not captured; with its rows those of captured ones may go."""
        made = self._request_table(body)
        made.is_parent_only = True
        return made

    def _request_table(self, body: bytes) -> Captured:
        found = read_table_map(body, self.server.charset, {}, mariadb=self.server.mariadb)
        names = TableSchema(self.source.name, found.schema, found.table, (), ())
        made = captured(self.source, names)
        made.decoder = RowDecoder(found)
        return made

    def _table(self, body: bytes, schema: str, table: str) -> Captured:
        definition = self.server.definition(schema, table)
        said = {} if definition is None else {f.name: f.kind for f in definition.fields}
        earlier = self.journal.schemas.get(f"{schema}.{table}")
        if earlier is not None:
            said = {c.name: c.type.split("(")[0].split()[0] for c in earlier.columns} | said
        found = read_table_map(body, self.server.charset, said, mariadb=self.server.mariadb)
        key = [found.fields[number].name for number in found.key]
        made = self.registered(shape_of(self.source, schema, table, found.fields, key))
        made.filter = self.filters.find(schema, table, found.fields)
        made.decoder = RowDecoder(found, made.wanted if made.filter is None else None)
        return made

    def registered(self, shape: TableSchema) -> Captured:
        """A table in this shape; a shape that the log does not know is a new version."""
        name = shape.name
        known = self.journal.schemas.get(name)
        changed = known is not None and not known.same_shape(shape)
        transaction = self.transaction
        if changed and transaction is not None:
            self._leave(transaction)
        if changed and shape.key and self.journal.copies.get(name, {}).get("bag"):
            self._keyed_now(shape)
        made = captured(self.source, self.journal.register(shape, self.position))
        self._current[name] = made
        self.copies.adopt(name, declared_for(self.source, shape.schema, shape.table))
        if changed:
            assert known is not None
            self._changed(known, made.schema)
        return made

    def _adopt_shape(self, table: Captured) -> None:
        """A form that was seen before is that of the rows again."""
        known = self.journal.schemas[table.name]
        if known.same_shape(table.schema):
            return
        transaction = self.transaction
        if transaction is not None:
            self._leave(transaction)
        table.schema = self.journal.register(table.schema, self.position)
        fresh = captured(self.source, table.schema)
        table.frame, table.events = fresh.frame, None
        self._current[table.name] = table

    def _keyed_now(self, shape: TableSchema) -> None:
        """Rows without a key got one: their topic begins again, before the first of them."""
        name = shape.name
        state = self.journal.copies[name]
        known = self.journal.schemas[name]
        table = captured(self.source, known)
        now = self.clock.wall_ms()
        order = self._next_order()
        frame = self._copy_frame(table, "incremental")
        reached = emptied(self.journal, known.topic, state, frame, self.position, order)
        if reached > order:
            self.journal.note(truncate_note(self._copy_id, name, known.topic, now))
        self._copied = (self.position, reached)
        again = copied_again(state, "a key was added")
        again.pop("bag", None)
        self.journal.record_copy(name, again)

    def _changed(self, known: TableSchema, shape: TableSchema) -> None:
        """A table that the log knows has another shape from here on."""
        name = shape.name
        held = self.journal.copies[name]
        self.copies.reject(name)
        if is_outdated(held, None if shape.key else shape.version):
            log.info("table is copied again", extra={"table": name})
            self.copies.begin(name, copied_again(held, "another form of its rows"))
            self.keyless_touched.pop(name, None)
        elif known.key != shape.key and shape.key:
            self.copies.begin(name, {**made_anew(held), "reason": "another key"})
        elif shape.key and (columns := new_columns(known, shape)):
            self.copies.fill_columns(name, columns)

    # --- rows --------------------------------------------------------------------------------

    def _rows(self, event: Event) -> None:
        transaction = self.transaction
        assert transaction is not None
        identifier, count, before, after, at = read_rows_head(event)
        table = self._ids.get(identifier)
        if table is None:
            return
        assert table.decoder is not None
        body, op = event.body, kinds.ROWS[event.type]
        if count != len(table.decoder.table.fields):
            raise ReplicationProtocolError(
                "rows have another number of columns than their table", detail=table.name
            )
        if table.is_parent_only and _holds(before, count) < count:
            children = [key.child for key in self.cascades.of(table.name)]
            self._lost(f"rows of {table.name} came without all their columns", children)
            return
        partial = event.type == kinds.PARTIAL_UPDATE
        if _holds(before, count) < count or _holds(after, count) < count:
            if partial:
                self._incomplete(table, "updates of JSON carry only what changed (PARTIAL_JSON)")
            else:
                self._partial_rows(table, event, count, before, after, at)
            return
        try:
            rows = self._decoded(table, body, at, before, count, partial=partial)
        except DoesNotFit:
            self._incomplete(table, "a change of JSON (PARTIAL_JSON) is not one of the row before")
            return
        if table.schema.table == REQUESTS:
            self.requests += [orjson.loads(row["request"]) for row in rows if op == "c"]
            return
        name = table.name
        if op != "c" and self.cascades.of(name):
            if op == "d":
                for row in rows:
                    self.cascades.note(name, row, None)
            else:
                for number in range(0, len(rows), 2):
                    self.cascades.note(name, rows[number], rows[number + 1])
        if table.is_parent_only:
            return
        state = self.journal.copies.get(name, {})
        if not table.schema.key and state.get("state") in ACTIVE:
            self._touch_keyless(table, transaction)
            if state.get("state") == "copying":
                return
            if state.get("bag") != table.schema.version and op != "c":
                return  # the copy that comes has it, and nothing can be told from the rows before
        if table.filter is not None:
            self._filtered(table, table.filter, transaction, op, rows)
        elif op == "u":
            for number in range(0, len(rows), 2):
                self._one(table, transaction, "u", rows[number], rows[number + 1])
        elif op == "c":
            for row in rows:
                self._one(table, transaction, "c", None, row)
        else:
            for row in rows:
                self._one(table, transaction, "d", row, None)
        self._bound(table, transaction)

    def _filtered(
        self, table: Captured, judge: RowFilter, transaction: Transaction, op: str, rows: list[Row]
    ) -> None:
        """A row that begins to fulfil the condition is new, one that no longer does is gone."""
        good = judge.passes(rows)
        shown = [{name: row[name] for name in row if name in table.wanted} for row in rows]
        for number in range(0, len(rows), 2 if op == "u" else 1):
            row, passes = shown[number], good[number]
            if op != "u":
                if passes:
                    self._one(table, transaction, op, *((None, row) if op == "c" else (row, None)))
                else:
                    transaction.rows += 1  # a restart counts rows from the beginning
                continue
            after, still = shown[number + 1], good[number + 1]
            if passes and still:
                self._one(table, transaction, "u", row, after)
            elif passes:
                self._one(table, transaction, "d", row, None)
            elif still:
                self._one(table, transaction, "c", None, after)
            else:
                transaction.rows += 1

    def _bound(self, table: Captured, transaction: Transaction) -> None:
        if len(table.values) >= self.settings.spill_rows:
            self._leave(transaction)
            self.journal.spill()
        if transaction.part_rows >= self.settings.part_rows and transaction.spilled:
            self._leave(transaction)
            if self.journal.dirty:
                self.journal.cut_part(
                    TransactionPart(transaction.start, transaction.rows, transaction.order),
                    open=transaction.id,
                )
                self.last_cut_at = self.clock.monotonic()
            transaction.part_rows = 0

    def _decoded(
        self, table: Captured, body: bytes, at: int, present: bytes, count: int,
        *, partial: bool = False,
    ) -> list[Row]:  # fmt: skip
        decoder = table.decoder
        assert decoder is not None
        rows: list[Row] = []
        end = len(body)
        there = _holds(present, count)
        try:
            while at < end:
                row, at = decoder.rows(body, at, present, there)(body, at)
                rows.append(row)
                if partial:
                    row, at = _patched(decoder, body, at, present, there, row)
                    rows.append(row)
        except DoesNotFit:
            raise
        except (IndexError, ValueError, UnicodeDecodeError, OverflowError) as error:
            raise _unreadable(table.name, str(error)) from error
        except Exception as error:
            if type(error).__name__ == "error":  # struct.error
                raise _unreadable(table.name, str(error)) from error
            raise
        if at != end:
            raise _unreadable(table.name, "A row is longer than its event.")
        return rows

    def _one(
        self, table: Captured, transaction: Transaction, op: str, before: Row | None,
        after: Row | None,
    ) -> None:  # fmt: skip
        transaction.rows += 1
        if transaction.rows <= transaction.skip:
            return
        if table.is_outbox:
            if op == "c":
                assert after is not None
                self._routed(table, transaction, after)
            return
        if op == "u":
            old, new = table.key_of(before or {}), table.key_of(after or {})
            if old != new:
                self._emit(table, transaction, "d", old, before, None)
                self._emit(table, transaction, "c", new, None, after)
            else:
                self._emit(table, transaction, "u", new, before, after)
            return
        row = after if before is None else before
        assert row is not None
        self._emit(table, transaction, op, table.key_of(row), before, after)

    def _emit(
        self, table: Captured, transaction: Transaction, op: str, key: bytes | None,
        before: Row | None, after: Row | None,
    ) -> None:  # fmt: skip
        if not transaction.begun:
            self._note_begin(transaction)
        name = table.schema.name
        if table.events is None or table.entered != transaction.start:
            table.entered = transaction.start
            table.events = TransactionFrame.of(
                table.frame, epoch=self.journal.epoch, commit=transaction.start,
                xid=transaction.xid, committed_ms=transaction.committed_ms,
                now_ms=transaction.now_ms, transaction=transaction.id,
            )  # fmt: skip
        if transaction.entered.get(name) is not table:
            self._leave(transaction)
            transaction.entered[name] = table
        transaction.order += 1
        transaction.part_rows += 1
        order = transaction.counts[name] = transaction.counts.get(name, 0) + 1
        event = table.events.event(
            op,
            b"null" if before is None else table.json_of(before),
            b"null" if after is None else table.json_of(after),
            transaction.start, transaction.order, order,
        )  # fmt: skip
        table.keys.append(key)
        table.values.append(event)
        if key is None:
            return
        if op == "d":
            table.keys.append(key)
            table.values.append(None)
        touched = self.copies.touched(name)
        if touched is not None:
            touched[key] = transaction.start, transaction.gtid or ""
            if op == "c" and (inserted := self.copies.inserted(name)) is not None:
                inserted.add(key)

    def _routed(self, table: Captured, transaction: Transaction, row: Row) -> None:
        assert self.source.outbox is not None
        plain = {
            n: orjson.loads(v.contents) if isinstance(v, orjson.Fragment) else v
            for n, v in row.items()
        }
        routed = outbox.route_row(self.source.outbox, self.source.name, plain)
        self._note_begin(transaction)
        self.journal.send_message(routed)

    def _touch_keyless(self, table: Captured, transaction: Transaction) -> None:
        held = self.keyless_touched.setdefault(table.name, [])
        place = transaction.start, transaction.gtid or ""
        if not held or held[-1] != place:
            held.append(place)

    # --- what the binlog does not tell -----------------------------------------------------------

    def _partial_rows(
        self, table: Captured, event: Event, count: int, before: bytes, after: bytes, at: int
    ) -> None:
        """Rows without all columns, of a session that chose so: what is missing behind a
        change stands in the row before it, or the table is compared."""
        if table.schema.table == REQUESTS:
            return
        if table.filter is not None:
            self._incomplete(table, f"rows of {table.name} came without all their columns")
            return
        decoder, body = table.decoder, event.body
        transaction = self.transaction
        assert decoder is not None
        assert transaction is not None
        op = kinds.ROWS[event.type]
        there = _holds(before, count), _holds(after, count)
        pairs: list[tuple[Row | None, Row | None]] = []
        end = len(body)
        wanted = table.wanted
        whole = True
        try:
            while at < end:
                first, at = decoder.rows(body, at, before, there[0])(body, at)
                second: Row | None = None
                if op == "u":
                    second, at = decoder.rows(body, at, after, there[1])(body, at)
                    whole = (
                        whole
                        and wanted <= first.keys() | second.keys()
                        and (wanted <= first.keys())
                    )
                    second = {n: second[n] if n in second else first[n] for n in first | second}
                    pairs.append((first, second))
                else:
                    whole = whole and wanted <= first.keys()
                    pairs.append((first, None) if op == "d" else (None, first))
        except (IndexError, ValueError, KeyError) as error:
            raise _unreadable(table.name, str(error)) from error
        if not whole:
            self._incomplete(table, f"rows of {table.name} came without all their columns")
            return
        for old, new in pairs:
            ordered = new and {name: new[name] for name in (old or new)}
            self._one(table, transaction, op, old, ordered)
        self._bound(table, transaction)

    def _incomplete(self, table: Captured, reason: str) -> None:
        """Values that are not told: the table is read and what differs is written."""
        self._alarm("binlog-image", reason, "SET GLOBAL binlog_row_image = 'FULL';")
        self._lost(reason, [table.name, *(key.child for key in self.cascades.of(table.name))])

    def _statement(self, schema: str, text: str) -> None:
        """A statement instead of the rows it changed."""
        if re.match(r"\s*(?:FLUSH|ANALYZE|OPTIMIZE)\b", text, re.IGNORECASE):
            return
        reason = "a session wrote statements, not rows, into the binlog"
        self._alarm("binlog-statement", reason, "SET GLOBAL binlog_format = 'ROW';")
        named = [
            name for name in self.journal.copies
            if re.search(rf"(?<!\w){re.escape(name.partition('.')[2])}(?!\w)", text, re.IGNORECASE)
        ]  # fmt: skip
        triggers = self.server.value("SELECT count(*) FROM information_schema.triggers")
        self._lost(reason, None if triggers or not named else named)

    def _alarm(self, code: str, reason: str, hint: str) -> None:
        log.warning(reason, extra={"source": self.source.name, "code": code})
        self.alarms[code] = {
            "code": code, "message": reason, "hint": hint,
            "detail": "The tables are read again and what differs is written.",
        }  # fmt: skip

    def _lost(self, reason: str, names: list[str] | None) -> None:
        """Changes of tables are not in the stream: compare the tables (all of them)."""
        for name in list(self.journal.copies) if names is None else names:
            state = self.journal.copies.get(name)
            if state is None or state.get("state") == "skipped":
                continue
            schema = self.journal.schemas.get(name)
            if schema is not None and not schema.key:
                self.journal.record_copy(name, copied_again(state, reason))
                self.keyless_touched.pop(name, None)
            else:
                self.copies.compare(name, reason)

    # --- statements that define ------------------------------------------------------------------

    def _ddl(self, transaction: Transaction, schema: str, text: str) -> None:
        """What a statement changes beside rows; the next table map tells of columns."""
        plain = COMMENT.sub("", text)
        self._maps.clear()
        self.cascades.forget()
        if (found := TRUNCATED.match(plain)) is not None:
            self._truncate(transaction, _named(found, schema))
        elif (found := CREATED.match(plain)) is not None:
            name = _named(found, schema)
            if name in self.journal.copies and "IF NOT EXISTS" not in plain[:80].upper():
                self._anew(name)
            self.looks.add(name)
        elif (found := ALTERED.match(plain)) is not None:
            name = _named(found, schema)
            self.copies.reject(name)
            self.looks.add(name)
            rest = plain[found.end() :]
            if re.search(
                r"(?:DROP|TRUNCATE|EXCHANGE|IMPORT|DISCARD)\s+(?:PARTITION|TABLESPACE)", rest, re.I
            ):
                self._lost("a partition of the table was dropped, emptied or exchanged", [name])
            if (
                moved := re.search(
                    rf"\bRENAME\s+(?:TO\s+|AS\s+)?{NAME}(?:\s*\.\s*{NAME})?\s*(?:,|$)", rest, re.I
                )
            ) and not re.match(r"RENAME\s+(?:COLUMN|INDEX|KEY)\b", rest[moved.start() :], re.I):
                self._arrived(_named(moved, name.partition(".")[0]))
        elif re.match(r"\s*RENAME\s+TABLE", plain, re.IGNORECASE):
            for moved in RENAMED.finditer(plain):
                groups = moved.groups()
                self._arrived(_whole(groups[6:12], schema))

    @property
    def looks(self) -> set[str]:
        return self._looks

    def _arrived(self, name: str) -> None:
        """Another table has this name now."""
        schema, _, table = name.partition(".")
        if not matches(self.source, schema, table):
            return
        if name in self.journal.copies:
            self._anew(name)
        self.looks.add(name)

    def _anew(self, name: str) -> None:
        held = self.journal.copies[name]
        if held.get("state") == "skipped":
            return
        log.warning("table made anew", extra={"table": name})
        schema = self.journal.schemas.get(name)
        if schema is not None and not schema.key:
            self.journal.record_copy(name, copied_again(held, "the table was made anew"))
        else:
            self.copies.begin(name, made_anew(held))

    def _truncate(self, transaction: Transaction, name: str) -> None:
        """One delete and tombstone per live key: the topic itself says which live."""
        schema = self.journal.schemas.get(name)
        state = self.journal.copies.get(name, {})
        if schema is None:
            return
        if not schema.key and state.get("state") in ACTIVE:
            self._touch_keyless(captured(self.source, schema), transaction)
            if state.get("state") == "copying" or state.get("bag") != schema.version:
                return
        if self.group_since is not None or self.journal.dirty:
            self.cut()
        table = self._current.setdefault(name, captured(self.source, schema))
        self._note_begin(transaction)
        if schema.key:
            for key in self.journal.live_keys(schema.topic):
                row = orjson.loads(key)
                self._emit_key(table, transaction, key, row)
        else:
            self._emit(table, transaction, "t", None, None, None)
        self._leave(transaction)
        self.journal.note(
            {
                "status": "TRUNCATE",
                "op": "t",
                "id": transaction.id,
                "table": name,
                "topic": schema.topic,
                "ts_ms": transaction.committed_ms,
            }
        )
        self.copies.reject(name)

    def _emit_key(self, table: Captured, transaction: Transaction, key: bytes, row: Row) -> None:
        """The delete of a row of which only the key is known, as the topic has it."""
        masks, table.masks = table.masks, {}
        try:
            self._emit(table, transaction, "d", key, row, None)
        finally:
            table.masks = masks
        if len(table.values) >= self.settings.spill_rows:
            self._leave(transaction)
            self.journal.spill()

    # --- XA ----------------------------------------------------------------------------------

    def _prepare(self, event: Event) -> None:
        """Rows stand before XA PREPARE and count at XA COMMIT, whenever that is."""
        transaction = self.transaction
        if transaction is None:
            return
        body = event.body
        if body[0]:
            self._commit(event.end)
            return
        format_id, first, second = (int.from_bytes(body[n : n + 4], "little") for n in (1, 5, 9))
        data = body[13 : 13 + first + second]
        name = f"{data[:first].hex()},{data[first:].hex()},{format_id}"
        self._hold(transaction, name)
        if transaction.old:
            self.transaction = None
        else:
            self._done(event.end, transaction.gtid)

    def _hold(self, transaction: Transaction, name: str) -> None:
        if not self._prepared and not transaction.old:
            self._before = {"file": self.file, "pos": transaction.start & 0xFFFFFFFF}
            if self.known is not None:
                self._before["gtid"] = str(self.known)
        self._prepared[name] = transaction

    def _xa(self, event: Event, word: str, text: str) -> None:
        transaction = self.transaction
        assert transaction is not None
        if word not in ("COMMIT", "ROLLBACK"):
            return  # END; what follows says what becomes of it
        found = re.findall(r"[xX]?'([0-9a-fA-F]*)'", text)
        number = re.search(r",\s*(\d+)\s*(?:ONE\s+PHASE\s*)?$", text.strip())
        name = ",".join([*found[:2], number[1] if number else "1"])
        held = self._prepared.pop(name, None)
        if not self._prepared:
            self._before = {}
        if transaction.old:
            self.transaction = None
            return
        if word == "COMMIT" and held is not None:
            transaction.buffer = held.buffer + transaction.buffer
        elif word == "COMMIT" and "ONE PHASE" not in text.upper():
            self._lost("a prepared transaction was committed whose rows are not known", None)
        elif word == "ROLLBACK":
            transaction.buffer = []
        self._commit(event.end)

    # --- cuts and copies -----------------------------------------------------------------------

    def cut(self) -> None:
        """End the log transaction here."""
        self.journal.place = self.place()
        self.journal.cut(self.position)
        self.group_since = None
        self.group_rows = 0
        self.last_cut_at = self.clock.monotonic()
        self.last_cut_position = self.position

    def _next_order(self) -> int:
        position, order = self._copied
        return order if position == self.position else 0

    @property
    def _copy_id(self) -> str:
        return f"copy:{self.position}"

    def _copy_frame(self, table: Captured, word: str) -> TransactionFrame:
        """Copied rows stand between the transactions that end and begin here."""
        now = self.clock.wall_ms()
        return TransactionFrame.of(
            table.frame, epoch=self.journal.epoch, commit=self.position - 1, xid=0,
            committed_ms=now, now_ms=now, snapshot=word, transaction=self._copy_id,
        )  # fmt: skip

    def write_chunks(self) -> bool:
        """Write what was read of tables and may be written here."""
        if self.transaction is not None or self.resume.part is not None:
            return False
        due = self.copies.due(self.position)
        for chunk in due:
            self._write_chunk(chunk)
        return bool(due)

    def _write_chunk(self, chunk: Chunk) -> None:
        shape = chunk.captured.schema
        known = self.journal.schemas.get(chunk.table)
        if known is None or not known.same_shape(shape):
            generation = self.copies._generation
            self.registered(shape)
            if self.copies._generation != generation or chunk.table not in self.copies._readings:
                self.cut()
                return  # another shape begins another copy
        table = captured(self.source, self.journal.schemas[chunk.table])
        order = self._next_order()
        reached = self.copies.write(chunk, table, self._copy_frame, self.position - 1, order)
        self._copied = (self.position, reached)
        self.cut()


def _patched(
    decoder: RowDecoder, body: bytes, at: int, present: bytes, count: int, before: Row
) -> tuple[Row, int]:
    """The row after an update whose JSON columns may be told by their changes."""
    options, at = length_of(body, at)
    told = b""
    if options & PARTIAL_JSON:
        size = (decoder.json_columns + 7) // 8
        told, at = body[at : at + size], at + size
    row, at = decoder.rows(body, at, present, count, told)(body, at)
    made = {
        name: value.applied(before[name]) if isinstance(value, Diffs) else value
        for name, value in row.items()
    }
    return made, at


def _holds(bitmap: bytes, count: int) -> int:
    """How many of `count` bits are set."""
    return (int.from_bytes(bitmap, "little") & (1 << count) - 1).bit_count()


def _unreadable(name: str, detail: str) -> ReplicationProtocolError:
    return ReplicationProtocolError(f"rows of {name} cannot be read", detail=detail)


def _whole(groups: tuple[str | None, ...], schema: str) -> str:
    first = next((one for one in groups[:3] if one is not None), "")
    second = next((one for one in groups[3:6] if one is not None), None)
    first = first.replace("``", "`")
    return f"{schema}.{first}" if second is None else f"{first}.{second.replace('``', '`')}"


def _named(found: re.Match[str], schema: str) -> str:
    return _whole(found.groups(), schema)
