"""What arrives from the slot becomes log transactions.

Holds the source transaction being received, the tables as its rows have them, and the
group of transactions that will share the next cut. Nothing here waits for the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import orjson

from tailrace.clock import Clock
from tailrace.sources import outbox
from tailrace.sources.base import Part as TransactionPart
from tailrace.sources.base import Resume
from tailrace.sources.declare import Postgres, changed_declaration, declared_for
from tailrace.sources.journal import Journal
from tailrace.sources.postgres import catalog, ddl, keyless
from tailrace.sources.postgres.copies import Copies
from tailrace.sources.postgres.copy import MARK_PREFIX
from tailrace.sources.postgres.incomplete_rows import IncompleteRows
from tailrace.sources.postgres.pgoutput import (
    Message,
    Relation,
    read_begin,
    read_commit,
    read_message,
    read_relation,
    read_truncate,
)
from tailrace.sources.postgres.refill import incomplete_keys, plain_keys
from tailrace.sources.postgres.replication import (
    EPOCH_MICROSECONDS,
    ReplicationStream,
    RowRun,
)
from tailrace.sources.postgres.rows import RowWriter
from tailrace.sources.postgres.safety import HEARTBEAT_PREFIX, Safety
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.postgres.table import (
    CapturedTable,
    Transaction,
    captured_table,
    shape_of,
    smallest_row,
)
from tailrace.sources.postgres.toast import RowStore
from tailrace.sources.postgres.types import StaleType
from tailrace.sources.schema import TableSchema, new_columns
from tailrace.telemetry import metrics

log = logging.getLogger(__name__)

# Spark types of columns that Postgres never stores out of line.
FIXED = (
    "BOOLEAN", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP",
    "TIMESTAMP_NTZ",
)  # fmt: skip


class Reception:
    """Takes messages one by one or in runs; `cut` ends a log transaction.

    `between` is called while a large transaction arrives.
    """

    def __init__(
        self,
        source: Postgres,
        dsn: str,
        connection: catalog.Connection,
        journal: Journal,
        settings: CaptureSettings,
        directory: Path,
        clock: Clock,
        between: Callable[[], None],
        resume: Resume,
    ) -> None:
        self.source = source
        self.settings = settings
        self.clock = clock
        self.between = between
        self.connection = connection
        self.journal = journal
        self.stream: ReplicationStream | None = None
        self.types = catalog.read_types(connection)
        self.tables: dict[int, CapturedTable | None] = {}
        self.catalog: dict[int, catalog.CatalogTable] = {}
        # Announced by the stream, unknown to the log and dropped since: a partition, whose
        # rows come as those of its root, or a table, which is taken in with its first row.
        self._gone: dict[int, Relation] = {}
        self.transaction: Transaction | None = None
        self.resume = resume
        self.position = 0
        self.group_since: float | None = None
        self.group_rows = 0
        self.part_rows = 0
        self.cut_now = False
        self.last_cut_at = 0.0
        self.last_commit_ms = 0
        self.store = RowStore(directory / "sources" / f"{source.name}.rows")
        self.incomplete = IncompleteRows(journal, partial(catalog.newest_transaction, connection))
        self._incomplete_summary: dict[str, object] = {}
        self.rows = RowWriter(journal, self.store, self.incomplete)
        self.copies = Copies(
            source, dsn, connection, journal, self.rows, settings, directory, clock,
            lambda: self.types, self._keep_alive,
        )  # fmt: skip
        self.safety = Safety(source, connection, clock)

    def take_many(self, run: RowRun) -> None:
        """A run of rows of one table; the usual way of a large transaction."""
        transaction, stream = self.transaction, self.stream
        assert transaction is not None
        assert stream is not None
        stream.patient = True
        table = self.tables.get(run.relation) or self._gone_table(run.relation)
        if table is None:
            transaction.messages += len(run)
            return
        if (
            table.is_outbox
            or transaction.messages < transaction.skip
            or transaction.commit_lsn < table.copied_until
        ):
            self._take_singly(run)
            return
        while len(run):
            # No log transaction holds more than its share.
            room = max(self.settings.spill_rows - transaction.rows, 1)
            piece, run = run[:room], run[room:]
            if table.events is None:
                table.enter(transaction, self.journal.epoch)
            try:
                whole = self.rows.many(table, transaction, piece)
            except StaleType:
                whole = False
            if not whole:
                self._take_singly(piece)
                table = self.tables[run.relation]
                assert table is not None
                continue
            transaction.messages += len(piece)
            if transaction.rows >= self.settings.spill_rows:
                self._spill(transaction)

    def _take_singly(self, run: RowRun) -> None:
        for lsn, data in run.messages():
            self.take(lsn, data)

    def take(self, lsn: int, data: bytes) -> None:
        kind = data[0]
        if kind == 0x49 or kind == 0x55 or kind == 0x44:  # I, U, D
            transaction = self.transaction
            assert transaction is not None
            transaction.messages += 1
            identifier = int.from_bytes(data[1:5], "big")
            table = self.tables.get(identifier) or self._gone_table(identifier)
            if table is None:
                return
            if table.events is None:
                if transaction.commit_lsn < table.copied_until:
                    return
                if table.is_outbox:
                    if kind == 0x49 and transaction.messages > transaction.skip:
                        self._outbox_row(table, transaction, data)
                    return
                table.enter(transaction, self.journal.epoch)
            self.rows.replaying = transaction.messages <= transaction.skip
            try:
                if kind == 0x49:
                    self.rows.insert(table, transaction, lsn, data)
                elif kind == 0x55:
                    self.rows.update(table, transaction, lsn, data)
                else:
                    self.rows.delete(table, transaction, lsn, data)
            except StaleType as stale:
                self._renew_types(table, stale.oid)
                transaction.messages -= 1
                self.take(lsn, data)
                return
            if transaction.messages == transaction.skip:
                self._skipped(transaction)
            elif transaction.rows >= self.settings.spill_rows:
                self._spill(transaction)
        elif kind == 0x42:  # B
            begin = read_begin(data)
            transaction = self.transaction = Transaction(
                begin.commit_lsn,
                begin.xid,
                (begin.committed_at + EPOCH_MICROSECONDS) // 1000,
                self.clock.wall_ms(),
            )
            part = self.resume.part
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

    def _renew_types(self, table: CapturedTable, oid: int) -> None:
        """A row type got another field, which no message tells: the next rows are of another
        version of the table."""
        self.types = self.types.renewed(catalog.read_types(self.connection), oid)
        self._relation(table.relation)

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
        if table.name in self.journal.copies:  # else found with the other new tables
            self.catalog[table.relation.id] = table
            self._relation(table.relation)

    def _gone_table(self, identifier: int) -> CapturedTable | None:
        """The table of a row that has come although the table is there no longer."""
        relation = self._gone.pop(identifier, None)
        if relation is None:
            return None
        self.catalog[identifier] = catalog.CatalogTable(relation, (), frozenset())
        self._relation(relation)
        return self.tables[identifier]

    def _relation(self, relation: Relation) -> None:
        """A table as its next rows have it: a known version, or a new one."""
        if not catalog.matches(
            self.source, relation.schema, relation.table
        ) or catalog.published_by_root(self.connection, self.source, relation.id):
            self.tables[relation.id] = None
            return
        found = self.catalog.get(relation.id)
        # Under FULL the message does not tell the primary key.
        if found is None or found.relation.columns != relation.columns or relation.identity == "f":
            fresh = catalog.read_tables(self.connection, relation.id)
            name = f"{relation.schema}.{relation.table}"
            if not fresh and found is None and name not in self.journal.copies:
                self._gone[relation.id] = relation
                self.tables[relation.id] = None
                return
            found = self.catalog[relation.id] = (
                fresh[0] if fresh else catalog.CatalogTable(relation, (), frozenset())
            )
        if any(not self.types.knows(c.type) for c in relation.columns):
            self.types = catalog.read_types(self.connection)
        shape = shape_of(self.source, relation, found, self.types)
        previous = self.tables.get(relation.id)
        if previous is not None and previous.waiting and self.transaction is not None:
            self._spill(self.transaction)  # rows in the old form go first
        name = shape.name
        known = self.journal.schemas.get(name)
        if name not in self.journal.copies:
            self.adopt(found, self.position)
        schema = self.journal.register(shape, self.position)
        table = captured_table(
            self.source, relation, schema, self.types, self.connection.info.dbname
        )
        table.is_outbox = outbox.is_outbox(self.source.outbox, name)
        if known is not None and not known.same_shape(shape):
            self.copies.reject(name)  # its waiting chunks were read in another shape
            if keyless.reshaped(self.journal, known, shape):
                self.incomplete.forget(name)
                self.copies.begin(name)
            else:
                self._changed_shape(known, shape, relation.id)
        table.touched = self.copies.touched(name)
        table.inserted = self.copies.inserted(name)
        table.copied_until = keyless.copied_until(schema, self.journal.copies[name])
        self.tables[relation.id] = table

    def _changed_shape(self, known: TableSchema, shape: TableSchema, oid: int) -> None:
        """Have rows read again of which the log does not know what they look like now."""
        name = shape.name
        if known.key != shape.key or not shape.key:
            self.incomplete.forget(name)
            return
        columns = new_columns(known, shape)
        if columns and {c.name for c in known.columns} <= {c.name for c in shape.columns}:
            # Only added, or of another type: which of them have values in earlier rows?
            typed = {c.name for c in known.columns}
            valued = catalog.valued_columns(self.connection, oid, columns)
            columns = [column for column in columns if column in typed or column in valued]
        if columns:
            self.copies.fill_columns(name, columns)

    def refresh_touched(self) -> None:
        """Let changed keys be noted, or no longer, as copies begin and end."""
        for captured in self.tables.values():
            if captured is not None:
                captured.touched = self.copies.touched(captured.name)
                captured.inserted = self.copies.inserted(captured.name)

    def _leave(self, table: CapturedTable) -> None:
        """Hand a table's rows of the open transaction to the journal."""
        for keys, values in table.take():
            self.journal.add(table.schema.topic, keys, values)

    def _commit(self, data: bytes) -> None:
        commit = read_commit(data)
        transaction = self.transaction
        assert transaction is not None
        self.transaction = None
        if self.stream is not None:
            self.stream.patient = False
        part = self.resume.part
        if part is not None and part.commit == transaction.commit_lsn:
            self.resume = replace(self.resume, part=None)
        if (
            transaction.tables
            or transaction.notes
            or transaction.messages_out
            or transaction.spilled
        ):
            self._end(transaction)
        for table in transaction.tables:
            table.events = None
        self.position = commit.end_lsn
        self.last_commit_ms = transaction.committed_ms
        for mark in transaction.marks:
            self.group_rows += self.copies.arrived(mark, transaction, self.position)
            self.refresh_touched()
        for request in transaction.requests:
            self._copy_again(request)
        if self.incomplete:
            self.copies.fill(self.catalog)  # views wait for these rows
            self.refresh_touched()
        if transaction.spilled:
            self.cut(commit.end_lsn)
        elif self.journal.dirty and self.group_since is None:
            self.group_since = self.clock.monotonic()

    def _end(self, transaction: Transaction) -> None:
        """The events of a transaction, between its BEGIN and END."""
        if not transaction.spilled:
            self.journal.note(self._begin_note(transaction))
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
        self.journal.note(end)
        self.group_rows += transaction.rows

    def _begin_note(self, transaction: Transaction) -> dict[str, object]:
        return {"status": "BEGIN", "id": transaction.id, "ts_ms": transaction.committed_ms}

    def _flush_rows(self, transaction: Transaction) -> None:
        self.incomplete.flush()
        for table in transaction.tables:
            if table.waiting:
                self._leave(table)
        for note in transaction.notes:
            self.journal.note(note)
        for message in transaction.messages_out:
            self.journal.send_message(message)
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
        assert self.resume.part is not None
        transaction.order = self.resume.part.events

    def _forget(self, transaction: Transaction) -> None:
        """Rows that an earlier run wrote already, as the log's last PART says."""
        for table in transaction.tables:
            table.take()
        transaction.notes = []
        transaction.rows = 0

    def _spill(self, transaction: Transaction) -> None:
        """A large transaction goes to the log while it arrives."""
        if transaction.messages <= transaction.skip:
            self._forget(transaction)
            return
        if self.group_since is not None:
            self.cut(self.position)
        if not transaction.spilled:
            self.journal.note(self._begin_note(transaction))
            transaction.spilled = True
        self._flush_rows(transaction)
        self.part_rows += transaction.rows
        transaction.rows = 0
        if self.part_rows >= self.settings.part_rows:
            self.journal.cut_part(
                TransactionPart(transaction.commit_lsn, transaction.messages, transaction.order)
            )
            self.part_rows = 0
            self.store.commit(self.journal.single_ends())
        else:
            self.journal.spill()
        if self.stream is not None:
            self.stream.patient = True
            self.between()  # or the server takes us for dead

    def _message(self, message: Message) -> None:
        transaction = self.transaction
        if message.prefix == MARK_PREFIX:
            if transaction is not None:
                transaction.marks.append(message.content.decode())
        elif message.prefix == "tailrace.sync":
            self.cut_now = True
            if transaction is None:
                self.position = max(self.position, message.lsn + 1)
        elif message.prefix == HEARTBEAT_PREFIX:
            self.safety.beat(message.content)
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
            self.rows.message(transaction, message, self.source, self.clock.wall_ms())
            if transaction is None and self.group_since is None:
                self.position = max(self.position, message.lsn + 1)
                self.group_since = self.clock.monotonic()

    def _truncate(self, relations: tuple[int, ...], lsn: int) -> None:
        """One delete and tombstone per live key: the topic itself says which live."""
        transaction = self.transaction
        assert transaction is not None
        transaction.messages += 1
        if transaction.messages <= transaction.skip:
            return
        self.rows.replaying = False
        for relation in relations:
            table = self.tables.get(relation)
            if table is None or transaction.commit_lsn < table.copied_until:
                continue
            if self.group_since is not None:
                self.cut(self.position)
            # The live keys are read from the log, so everything before must be there.
            if not transaction.spilled:
                self.journal.note(self._begin_note(transaction))
                transaction.spilled = True
            self._flush_rows(transaction)
            self.journal.cut_part(
                TransactionPart(transaction.commit_lsn, transaction.messages - 1, transaction.order)
            )
            self.part_rows = 0
            if table.events is None:
                table.enter(transaction, self.journal.epoch)
            for key in self.journal.live_keys(table.schema.topic):
                self.rows.deleted(table, transaction, lsn, key)
                if len(table.values) >= self.settings.spill_rows:
                    self._leave(table)
                    self.journal.spill()
            if not table.schema.key:
                self.rows.emptied(table, transaction, lsn)
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
            self.incomplete.forget(table.name)
            self.copies.reject(table.name)

    def _copy_again(self, request: dict[str, object]) -> None:
        wanted = str(request.get("table", "*"))
        whole = wanted if "." in wanted or wanted == "*" else f"public.{wanted}"
        where, keys = request.get("where"), request.get("keys")
        for table in self.catalog.values():
            if whole not in ("*", table.name):
                continue
            if not table.key:
                if not outbox.is_outbox(self.source.outbox, table.name):
                    keyless.asked(self.journal, table.name)
            else:
                self.copies.again(
                    table,
                    None if where is None else str(where),
                    keys if isinstance(keys, list) else None,
                )
        self.refresh_touched()

    @property
    def keyless_waits(self) -> bool:
        """Whether the copy of a table without a key waits for the next start."""
        return any(keyless.waits(self.journal, table) for table in self.catalog.values())

    def cut(self, position: int) -> None:
        if self.resume.part is not None:
            return  # the log ends inside a transaction: nothing may come before its rest
        self.position = max(self.position, position)
        self.journal.cut(self.position)
        if self.store.dirty:
            self.store.commit(self.journal.single_ends())
        self.group_since = None
        self.group_rows = 0
        self.part_rows = 0
        self.cut_now = False
        self.last_cut_at = self.clock.monotonic()

    def catch_up(self) -> None:
        """Bring what is kept of the tables' rows to where the log ends."""
        tables = {table.name: table for table in self.catalog.values()}
        for name in self.journal.incomplete.keys() - tables.keys():
            for key in list(self.journal.incomplete[name]):
                self.journal.record_incomplete(name, key, None)  # not captured any more
        self.incomplete.restore()
        for schema in self.journal.schemas.values():
            # A table may have been dropped since; its last rows may still be on their way.
            self.journal.ensure_table(schema)
            if not schema.key or all(c.spark in FIXED for c in schema.columns):
                continue
            smallest = smallest_row(self.source, schema.schema, schema.table)
            partial_keys: set[bytes] = set()
            for records, end in self.journal.records_since(schema.topic, self.store.next_offset):
                partial_keys |= self.store.apply(schema.name, schema.topic, records, end, smallest)
            if partial_keys and schema.name in tables:
                self._complete_earlier(tables[schema.name], sorted(partial_keys))

    def _complete_earlier(self, table: catalog.CatalogTable, keys: list[bytes]) -> None:
        """Read rows again that an earlier version wrote without a value."""
        log.warning("rows lack values", extra={"table": table.name, "rows": len(keys)})
        schema = self.journal.schemas[table.name]
        types = [c.type for c in schema.columns if c.name in schema.key]
        masked = bool(self.source.mask)
        if schema.key != table.key or masked or not plain_keys(types):
            self.copies.compare(table.name, "rows lack values")
            return
        documents = [orjson.loads(key) for key in keys]
        now = self.clock.wall_ms()
        for key, row in zip(
            keys, incomplete_keys(self.connection, table, documents, now), strict=True
        ):
            self.incomplete.hold_unread(table.name, key, row)
        self.incomplete.flush()

    def adopt(self, table: catalog.CatalogTable, position: int) -> None:
        """Take a table in: its first schema version and, if asked, its first copy."""
        for earlier in [t for t in self.catalog.values() if t.name == table.name]:
            del self.catalog[earlier.relation.id]
        self.catalog[table.relation.id] = table
        shape = shape_of(self.source, table.relation, table, self.types)
        # A shape that differs from the last version is not news yet: rows written before the
        # change may still be on their way, and the stream says where it happened.
        self.journal.register(self.journal.schemas.get(table.name, shape), position)
        declared = declared_for(self.source, table.relation.schema, table.relation.table)
        held = self.journal.copies.get(table.name, {})
        if self.source.create and changed_declaration(held, declared) is not None:
            catalog.publish_again(self.connection, self.source, table)
        self.copies.adopt(
            table.name,
            table.relation.id,
            copy=self.source.snapshot and not outbox.is_outbox(self.source.outbox, table.name),
            declared=declared,
        )

    def incomplete_summary(self) -> dict[str, object]:
        """The rows that are held back because a value is not known, as the log has them; {}
        without any."""
        if not self.journal.dirty:  # else some were held or completed since its last commit
            self._incomplete_summary = self._summarise_incomplete()
        return self._incomplete_summary

    def _summarise_incomplete(self) -> dict[str, object]:
        found = self.journal.incomplete
        counts = {name: len(rows) for name, rows in sorted(found.items())}
        metrics.gauge(
            "tailrace_source_incomplete_rows", "Rows held back until all values are known",
            ["source"],
        ).labels(source=self.source.name).set(sum(counts.values()))  # fmt: skip
        if not counts:
            return {}
        oldest = min(row.since_ms for rows in found.values() for row in rows.values())
        moment = datetime.fromtimestamp(oldest / 1000, UTC).isoformat(timespec="seconds")
        return {"rows": sum(counts.values()), "oldest": moment, "tables": counts}

    def _keep_alive(self) -> None:
        if self.stream is not None and self.stream.silent_for >= 1.0:
            self.stream.confirm(0)

    def close(self) -> None:
        self.copies.close()
        self.store.close()
        self.journal.close()
