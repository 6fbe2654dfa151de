"""One Postgres source: from its slot into the log.

One thread reads the replication stream, decodes rows and writes log transactions; a
thread per table being copied reads chunks. Source transactions are grouped: a group is
written when the stream has nothing more at the moment, or when its first transaction has
waited for `group_seconds`.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import orjson

from tailrace.config import resolve
from tailrace.sources import outbox
from tailrace.sources.base import Part as TransactionPart
from tailrace.sources.base import Resume, SourceLog
from tailrace.sources.control import paused
from tailrace.sources.declare import Postgres, patterns
from tailrace.sources.journal import Journal
from tailrace.sources.postgres import catalog, ddl, keyless
from tailrace.sources.postgres.copies import Copies
from tailrace.sources.postgres.copy import MARK_PREFIX
from tailrace.sources.postgres.pgoutput import (
    Message,
    Relation,
    read_begin,
    read_commit,
    read_message,
    read_relation,
    read_truncate,
)
from tailrace.sources.postgres.replication import EPOCH_MICROSECONDS, ReplicationStream
from tailrace.sources.postgres.rows import RowWriter
from tailrace.sources.postgres.safety import HEARTBEAT_PREFIX, Safety
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.postgres.slot import open_slot
from tailrace.sources.postgres.table import (
    CapturedTable,
    Transaction,
    captured_table,
    shape_of,
)
from tailrace.sources.postgres.toast import RowStore
from tailrace.telemetry import metrics
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

DEFAULTS = CaptureSettings()
ROUND_SECONDS = 0.25

# Spark types of columns that Postgres may store out of line.
TOASTABLE = ("STRING",)


class StartAgain(Exception):
    """This attempt ends without an error: the source pauses, or a table without key
    appeared, which is copied at the next start."""


class PostgresCapture:
    """One attempt at capturing a source: from connecting until something ends it."""

    def __init__(
        self,
        source: Postgres,
        source_log: SourceLog,
        part: Part,
        settings: CaptureSettings | None = None,
    ) -> None:
        self.source = source
        self.settings = settings or DEFAULTS
        self._part = part
        self._clock = part.clock
        self._dsn = resolve(source.dsn)
        self._journal = Journal(source, source_log, clock=part.clock)
        self._connection = catalog.connect(self._dsn)
        self._stream: ReplicationStream | None = None
        self._types = catalog.read_types(self._connection)
        self._tables: dict[int, CapturedTable | None] = {}
        self._catalog: dict[int, catalog.CatalogTable] = {}
        self._transaction: Transaction | None = None
        self._resume = Resume(0, None)
        self._position = 0
        self._group_since: float | None = None
        self._group_rows = 0
        self._cut_now = False
        self._last_cut_at = 0.0
        self._last_round_at = 0.0
        self._last_commit_ms = 0
        self._store = RowStore(part.directory / "sources" / f"{source.name}.rows")
        self._rows = RowWriter(self._journal, self._store)
        self._copies = Copies(
            source, self._dsn, self._connection, self._journal, self._rows, self.settings,
            part.directory, part.clock, lambda: self._types,
        )  # fmt: skip
        self._safety = Safety(source, self._connection, part.clock)
        self._spill_rows = self.settings.spill_rows
        self._part_rows = 0
        self._patterns = any("*" in pattern for pattern in patterns(source))
        self._looked_at = 0.0
        self._table_marks: object = None

    # --- start -----------------------------------------------------------------------------

    def work(self) -> None:
        """Capture until the part is told to stop; raises when it cannot go on."""
        try:
            self._start()
            self._loop()
        except StartAgain:
            return
        finally:
            self._close()

    def _start(self) -> None:
        source, connection = self.source, self._connection
        catalog.check_server(connection, source)
        tables = catalog.wanted_tables(connection, source)
        catalog.ensure_publication(connection, source, tables)
        if source.ddl_trigger:
            ddl.install(connection)
        self._resume = self._journal.open()
        position = self._open_slot()
        self._position = position
        for table in tables:
            self._adopt(table, position)
        self._catch_up()
        if self._journal.dirty or self._resume.position is None:
            self._cut(position)
        if self._resume.part is None:
            keyless.copy_keyless(
                source, self._dsn, tables, self._journal, self._types, self.settings,
                position, self._clock,
            )  # fmt: skip
        self._stream = ReplicationStream(
            self._dsn, source.slot_name, source.publication_name, position, clock=self._clock
        )
        self._copies.work(self._catalog)
        log.info("capture started", extra={"source": source.name, "position": position})

    def _open_slot(self) -> int:
        """Where to read from; a lost slot begins a new epoch, in which tables are compared."""
        opened = open_slot(self.source, self._connection, self._resume)
        if opened.lost is not None:
            log.warning("slot lost", extra={"source": self.source.name, "reason": opened.lost})
            self._journal.epoch = self._resume.epoch + 1
            self._resume = Resume(self._journal.epoch, opened.position, None, self._resume.copies)
            self._copies.compare_all(opened.lost)
        elif self._resume.position is None:
            self._journal.epoch = 1
        return opened.position

    def _catch_up(self) -> None:
        """Bring the store of large rows to where the log ends."""
        for schema in self._journal.schemas.values():
            if schema.key and any(c.spark in TOASTABLE or "<" in c.spark for c in schema.columns):
                for records, end in self._journal.records_since(
                    schema.topic, self._store.next_offset
                ):
                    self._store.apply(schema.name, schema.topic, records, end)

    def _adopt(self, table: catalog.CatalogTable, position: int) -> None:
        """Take a table in: its first schema version and, if asked, its first copy."""
        self._catalog[table.relation.id] = table
        shape = shape_of(self.source, table.relation, table, self._types)
        # A shape that differs from the last version is not news yet: rows written before the
        # change may still be on their way, and the stream says where it happened.
        self._journal.register(self._journal.schemas.get(table.name, shape), position)
        self._copies.adopt(
            table.name,
            copy=self.source.snapshot and not outbox.is_outbox(self.source.outbox, table.name),
        )

    # --- the loop --------------------------------------------------------------------------

    def _loop(self) -> None:
        stream = self._stream
        assert stream is not None
        stopping = self._part.stopping
        while not stopping.is_set():
            take = self._take
            for lsn, data in stream.messages():
                take(lsn, data)
                if self._group_since is not None and self._group_due():
                    self._cut(self._position)
                    # A stream that never pauses must not keep the rest of the work waiting.
                    self._round(stream)
            # Nothing more at the moment: whoever waits has waited long enough.
            if self._group_since is not None or self._cut_now:
                self._cut(self._position)
            self._round(stream)
            stream.wait(0.1)

    def _group_due(self) -> bool:
        assert self._group_since is not None
        return (
            self._group_rows >= self.settings.group_rows
            or self._clock.monotonic() - self._group_since >= self.settings.group_seconds
        )

    def _round(self, stream: ReplicationStream) -> None:
        """What is done a few times a second: confirm, idle cuts, copies, report."""
        now = self._clock.monotonic()
        if now - self._last_round_at < ROUND_SECONDS:
            return
        self._last_round_at = now
        if paused(self._part.directory, self.source.name):
            raise StartAgain
        self._copies.work(self._catalog)
        if self._patterns and now - self._looked_at >= self.settings.look_seconds:
            self._look_for_tables()
        idle = self._transaction is None and self._group_since is None
        if (
            idle
            and stream.wal_end > self._position
            and now - self._last_cut_at >= self.settings.idle_cut_seconds
        ):
            self._cut(stream.wal_end)
        durable = self._journal.durable_position(delay=self.settings.confirm_delay)
        if durable is not None or stream.silent_for >= 1.0:
            stream.confirm(durable or 0, ask=True)
        self._report(stream)

    def _report(self, stream: ReplicationStream) -> None:
        behind = max(stream.wal_end - self._position, 0)
        now = self._clock.wall_ms()
        freshness = now - self._last_commit_ms if behind and self._last_commit_ms else 0
        labels = {"source": self.source.name}
        metrics.gauge("tailrace_source_lag_bytes", "WAL not yet in the log", ["source"]).labels(
            **labels
        ).set(behind)
        self._part.report(
            "running",
            freshness_ms=max(freshness, 0),
            lag=behind,
            position=self._journal.position_text(self._position),
            copying=self._copies.running,
            progress=self._copies.progress,
            events=self._journal.events_written,
            error=None,
            **self._safety.watch(),
        )

    # --- messages --------------------------------------------------------------------------

    def _take(self, lsn: int, data: bytes) -> None:
        kind = data[0]
        if kind == 0x49 or kind == 0x55 or kind == 0x44:  # I, U, D
            transaction = self._transaction
            assert transaction is not None
            transaction.messages += 1
            table = self._tables.get(int.from_bytes(data[1:5], "big"))
            if table is None:
                return
            if table.events is None:
                if transaction.commit_lsn < table.copied_until:
                    return
                if table.is_outbox:
                    if kind == 0x49 and transaction.messages > transaction.skip:
                        self._outbox_row(table, transaction, data)
                    return
                table.enter(transaction, self._journal.epoch)
            if kind == 0x49:
                self._rows.insert(table, transaction, lsn, data)
            elif kind == 0x55:
                self._rows.update(table, transaction, lsn, data)
            else:
                self._rows.delete(table, transaction, lsn, data)
            if transaction.messages == transaction.skip:
                self._skipped(transaction)
            elif transaction.rows >= self._spill_rows:
                self._spill(transaction)
        elif kind == 0x42:  # B
            begin = read_begin(data)
            transaction = self._transaction = Transaction(
                begin.commit_lsn,
                begin.xid,
                (begin.committed_at + EPOCH_MICROSECONDS) // 1000,
                self._clock.wall_ms(),
            )
            part = self._resume.part
            if part is not None and part.commit == begin.commit_lsn:
                transaction.skip = part.messages
                transaction.spilled = True
        elif kind == 0x43:  # C
            self._commit(data)
        elif kind == 0x52:  # R
            self._relation(read_relation(data))
        elif kind == 0x4D:  # M
            self._message(read_message(data))
        elif kind == 0x54:  # T
            self._truncate(read_truncate(data).relations, lsn)

    def _ddl(self, message: Message, transaction: Transaction) -> None:
        """What our event trigger tells: the shape of a table from here on."""
        command, table = ddl.read(message.content)
        if not catalog.matches(self.source, table.relation.schema, table.relation.table):
            return
        transaction.notes.append(
            {
                "status": "DDL",
                "command": command,
                "table": table.name,
                "id": transaction.id,
                "ts_ms": transaction.committed_ms,
            }
        )
        if table.name in self._journal.copies:  # else found with the other new tables
            self._catalog[table.relation.id] = table
            self._relation(table.relation)

    def _look_for_tables(self) -> None:
        """Take in tables that were created since and match the declaration's patterns."""
        self._looked_at = self._clock.monotonic()
        marks = self._connection.execute(
            "SELECT count(*), max(oid::int8) FROM pg_class WHERE relkind IN ('r', 'p')"
        ).fetchone()
        if marks == self._table_marks:
            return
        self._table_marks = marks
        found = [
            table
            for table in catalog.read_tables(self._connection)
            if table.name not in self._journal.copies
            and catalog.matches(self.source, table.relation.schema, table.relation.table)
        ]
        if found:
            catalog.ensure_publication(self._connection, self.source, found)
            self._types = catalog.read_types(self._connection)
            for table in found:
                log.info("new table", extra={"table": table.name})
                self._adopt(table, self._position)
            if self._transaction is None:
                self._cut(self._position)
            if any(not table.key for table in found) and self.source.snapshot:
                # Their copy needs a snapshot from before the stream goes on.
                raise StartAgain

    def _relation(self, relation: Relation) -> None:
        """A table as its next rows have it: a known version, or a new one."""
        found = self._catalog.get(relation.id)
        if found is None or found.relation.columns != relation.columns:
            fresh = catalog.read_tables(self._connection, relation.id)
            found = self._catalog[relation.id] = (
                fresh[0] if fresh else catalog.CatalogTable(relation, (), frozenset())
            )
        if not catalog.matches(self.source, relation.schema, relation.table):
            self._tables[relation.id] = None
            return
        if any(not self._types.knows(c.type) for c in relation.columns):
            self._types = catalog.read_types(self._connection)
        shape = shape_of(self.source, relation, found, self._types)
        previous = self._tables.get(relation.id)
        if previous is not None and previous.values and self._transaction is not None:
            self._spill(self._transaction)  # rows in the old form go first
        name = shape.name
        known = self._journal.schemas.get(name)
        if name not in self._journal.copies:
            self._adopt(found, self._position)
        schema = self._journal.register(shape, self._position)
        table = captured_table(
            self.source, relation, schema, self._types, self._connection.info.dbname
        )
        table.is_outbox = outbox.is_outbox(self.source.outbox, name)
        table.touched = self._copies.touched(name)
        table.copied_until = self._journal.copies[name].get("until", 0)
        self._tables[relation.id] = table
        if known is not None and not known.same_shape(shape):
            self._copies.reject(name)  # its waiting chunks were read in another shape

    def _leave(self, table: CapturedTable) -> None:
        """Hand a table's rows of the open transaction to the journal."""
        self._journal.add(table.schema.topic, table.keys, table.values)
        table.keys, table.values = [], []

    def _commit(self, data: bytes) -> None:
        commit = read_commit(data)
        transaction = self._transaction
        assert transaction is not None
        self._transaction = None
        part = self._resume.part
        if part is not None and part.commit == transaction.commit_lsn:
            self._resume = replace(self._resume, part=None)
        if (
            transaction.tables
            or transaction.notes
            or transaction.messages_out
            or transaction.spilled
        ):
            self._end(transaction)
        for table in transaction.tables:
            table.events = None
        self._position = commit.end_lsn
        self._last_commit_ms = transaction.committed_ms
        for mark in transaction.marks:
            self._group_rows += self._copies.arrived(mark, transaction, self._position)
            for captured in self._tables.values():
                if captured is not None:
                    captured.touched = self._copies.touched(captured.name)
        for request in transaction.requests:
            self._copy_again(request)
        if transaction.spilled:
            self._cut(commit.end_lsn)
        elif self._journal.dirty and self._group_since is None:
            self._group_since = self._clock.monotonic()

    def _end(self, transaction: Transaction) -> None:
        """The events of a transaction, between its BEGIN and END."""
        if not transaction.spilled:
            self._journal.note(self._begin_note(transaction))
        self._flush_rows(transaction)
        counts: dict[str, int] = {}
        for table in transaction.tables:
            counts[table.name] = counts.get(table.name, 0) + table.order
        end: dict[str, object] = {
            "status": "END",
            "id": transaction.id,
            "event_count": transaction.order,
            "data_collections": [
                {"data_collection": name, "event_count": count} for name, count in counts.items()
            ],
            "ts_ms": transaction.committed_ms,
        }
        if transaction.annotations:
            end["annotations"] = transaction.annotations
        self._journal.note(end)
        self._group_rows += transaction.rows

    def _begin_note(self, transaction: Transaction) -> dict[str, object]:
        return {"status": "BEGIN", "id": transaction.id, "ts_ms": transaction.committed_ms}

    def _flush_rows(self, transaction: Transaction) -> None:
        for table in transaction.tables:
            if table.values:
                self._leave(table)
        for note in transaction.notes:
            self._journal.note(note)
        for message in transaction.messages_out:
            self._journal.send_message(message)
        transaction.notes, transaction.messages_out = [], []

    def _outbox_row(self, table: CapturedTable, transaction: Transaction, data: bytes) -> None:
        """An inserted row of the outbox is a message for another topic."""
        assert self.source.outbox is not None
        _, after, _ = table.row(data, 6)
        row = orjson.loads(after or b"{}")
        transaction.messages_out.append(outbox.route_row(self.source.outbox, self.source.name, row))

    def _skipped(self, transaction: Transaction) -> None:
        """Here the log's last PART ended: from the next row on it is news."""
        self._forget(transaction)
        assert self._resume.part is not None
        transaction.order = self._resume.part.events

    def _forget(self, transaction: Transaction) -> None:
        """Rows that an earlier run wrote already, as the log's last PART says."""
        for table in transaction.tables:
            table.keys, table.values = [], []
        transaction.notes = []
        transaction.rows = 0

    def _spill(self, transaction: Transaction) -> None:
        """A large transaction goes to the log while it arrives."""
        if transaction.messages <= transaction.skip:
            self._forget(transaction)
            return
        if self._group_since is not None:
            self._cut(self._position)
        if not transaction.spilled:
            self._journal.note(self._begin_note(transaction))
            transaction.spilled = True
        self._flush_rows(transaction)
        self._part_rows += transaction.rows
        transaction.rows = 0
        if self._part_rows >= self.settings.part_rows:
            self._journal.cut_part(
                TransactionPart(transaction.commit_lsn, transaction.messages, transaction.order)
            )
            self._part_rows = 0
            self._store.commit(self._journal.single_ends())
        else:
            self._journal.spill()
        if self._stream is not None and self._stream.silent_for >= 1.0:
            self._stream.confirm(0)  # or the server takes us for dead

    def _message(self, message: Message) -> None:
        transaction = self._transaction
        if message.prefix == MARK_PREFIX:
            if transaction is not None:
                transaction.marks.append(message.content.decode())
        elif message.prefix == "tailrace.sync":
            self._cut_now = True
            if transaction is None:
                self._position = max(self._position, message.lsn + 1)
        elif message.prefix == HEARTBEAT_PREFIX:
            self._safety.beat(message.content)
        elif message.prefix == ddl.PREFIX:
            if transaction is not None:
                self._ddl(message, transaction)
        elif message.prefix == "tailrace.snapshot":
            if transaction is not None:
                transaction.requests.append(outbox.read_object(message.content))
        elif message.prefix == "tailrace.annotation" and transaction is not None:
            transaction.annotations |= outbox.read_object(message.content)
        elif (
            message.prefix == outbox.MESSAGE_PREFIX
            and transaction is not None
            and (
                routed := outbox.route_message(
                    self.source.outbox, self.source.name, message.content
                )
            )
        ):
            transaction.messages_out.append(routed)
        else:
            self._rows.message(transaction, message, self.source, self._clock.wall_ms())
            if transaction is None and self._group_since is None:
                self._position = max(self._position, message.lsn + 1)
                self._group_since = self._clock.monotonic()

    def _truncate(self, relations: tuple[int, ...], lsn: int) -> None:
        """One delete and tombstone per live key: the topic itself says which live."""
        transaction = self._transaction
        assert transaction is not None
        transaction.messages += 1
        if transaction.messages <= transaction.skip:
            return
        for relation in relations:
            table = self._tables.get(relation)
            if table is None:
                continue
            if self._group_since is not None:
                self._cut(self._position)
            # The live keys are read from the log, so everything before must be there.
            if not transaction.spilled:
                self._journal.note(self._begin_note(transaction))
                transaction.spilled = True
            self._flush_rows(transaction)
            self._journal.cut_part(
                TransactionPart(transaction.commit_lsn, transaction.messages - 1, transaction.order)
            )
            self._part_rows = 0
            if table.events is None:
                table.enter(transaction, self._journal.epoch)
            for key in self._journal.live_keys(table.schema.topic):
                self._rows.deleted(table, transaction, lsn, key)
                if len(table.values) >= self.settings.spill_rows:
                    self._leave(table)
                    self._journal.spill()
            transaction.notes.append(
                {
                    "status": "TRUNCATE",
                    "op": "t",
                    "id": transaction.id,
                    "table": table.name,
                    "topic": table.schema.topic,
                    "ts_ms": transaction.committed_ms,
                }
            )
            self._copies.reject(table.name)

    # --- copies ----------------------------------------------------------------------------

    def _copy_again(self, request: dict[str, object]) -> None:
        wanted = str(request.get("table", "*"))
        whole = wanted if "." in wanted or wanted == "*" else f"public.{wanted}"
        where = request.get("where")
        for table in self._catalog.values():
            if whole in ("*", table.name) and table.key:
                self._copies.again(table, None if where is None else str(where))
                self._refresh(table)

    def _refresh(self, table: catalog.CatalogTable) -> None:
        """Let a table's rows be noted, or no longer, as its copy begins or ends."""
        current = self._tables.get(table.relation.id)
        if current is not None:
            current.touched = self._copies.touched(table.name)

    # --- ends ------------------------------------------------------------------------------

    def _cut(self, position: int) -> None:
        if self._resume.part is not None:
            return  # the log ends inside a transaction: nothing may come before its rest
        self._position = max(self._position, position)
        self._journal.cut(self._position)
        if self._store.dirty:
            self._store.commit(self._journal.single_ends())
        self._group_since = None
        self._group_rows = 0
        self._part_rows = 0
        self._cut_now = False
        self._last_cut_at = self._clock.monotonic()

    def _close(self) -> None:
        self._copies.close()
        if self._stream is not None:
            self._stream.close()
        self._connection.close()
        self._store.close()
        self._journal.close()
