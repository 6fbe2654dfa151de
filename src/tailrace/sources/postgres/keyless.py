"""The copy of tables without a key: one exported snapshot, one log transaction.

Without a key rows cannot be read in chunks, and a copied row cannot be told from a
streamed one. A temporary slot gives a snapshot and the position it belongs to: the copy
has everything committed before it, the stream is taken from there on. So a copy is made
before the stream is read; whoever needs one later ends the attempt. What takes the place of
rows that the topic has already stands behind a `t` (see `sources.bags`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import pq, sql

from tailrace.clock import Clock
from tailrace.records.envelope import TransactionFrame
from tailrace.sources.bags import (
    emptied,
    is_outdated,
    is_waiting,
    truncate_note,
)
from tailrace.sources.declare import Postgres, copied_again, for_table
from tailrace.sources.errors import ServerUnreachableError
from tailrace.sources.journal import Journal
from tailrace.sources.postgres import catalog
from tailrace.sources.postgres.copies import copy_frame, hidden_columns
from tailrace.sources.postgres.copy import from_clause, select_list
from tailrace.sources.postgres.copy_socket import CopySocket
from tailrace.sources.postgres.replication import connect_replication
from tailrace.sources.postgres.rows import copied_events
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.postgres.table import Transaction, captured_table, shape_of
from tailrace.sources.postgres.types import TypeTable
from tailrace.sources.schema import TableSchema

NEVER = 1 << 64  # behind every position


def copied_until(schema: TableSchema, state: Mapping[str, Any]) -> int:
    """The position before which changes of a table are not written: they are in its copy."""
    if not schema.key and state.get("state") == "copying":
        return NEVER
    return int(state.get("until", 0))


def waits(journal: Journal, table: catalog.CatalogTable) -> bool:
    """Whether a table must be copied, or emptied, before the stream is read."""
    return is_waiting(journal.copies.get(table.name, {}), keyed=bool(table.key))


def asked(journal: Journal, name: str) -> None:
    """A re-snapshot of a table without a key."""
    state = journal.copies.get(name, {})
    if state.get("state") in ("done", "skipped"):
        journal.record_copy(name, copied_again(state, "asked for"))


def review(
    source: Postgres, tables: list[catalog.CatalogTable], journal: Journal, types: TypeTable
) -> None:
    """Have tables copied again whose rows in the topic have no key and another form than now,
    or may be there twice (see `sources.bags`)."""
    for table in tables:
        state, known = journal.copies.get(table.name), journal.schemas.get(table.name)
        if state is None or known is None:
            continue
        shape = shape_of(source, table.relation, table, types)
        version = known.version if not table.key and known.same_shape(shape) else None
        if is_outdated(state, version):
            journal.record_copy(table.name, copied_again(state, "another form of its rows"))


def reshaped(journal: Journal, known: TableSchema, shape: TableSchema) -> bool:
    """A table has another form; whether it must be copied again. Rows without a key, or with
    another key, would stand beside those in the topic. Views wait for the copy."""
    state = journal.copies[shape.name]
    if state.get("state") == "skipped" or (shape.key and shape.key == known.key):
        return False
    again = {**copied_again(state, "another form or key"), "waits": True}
    if known.key and shape.key:
        again |= {"compare": True, "whole": True}  # what has the old keys is found and deleted
        again.pop("waits")
    journal.record_copy(shape.name, again)
    return True


def copy_keyless(
    source: Postgres,
    dsn: str,
    tables: list[catalog.CatalogTable],
    journal: Journal,
    types: TypeTable,
    settings: CaptureSettings,
    position: int,
    clock: Clock,
) -> None:
    """Copy every table without a key that is not copied yet; ends with a cut at `position`.
    Tables that have a key now begin their copy with an empty topic."""
    waiting = [t for t in tables if waits(journal, t)]
    if not waiting:
        return
    replication = connect_replication(dsn)
    try:
        name = f"tailrace_copy_{replication.backend_pid}"
        result = replication.exec_(
            f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT".encode()
        )
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise ServerUnreachableError(
                "no snapshot for tables without a key",
                detail=(result.error_message or b"").decode(errors="replace").strip(),
            )
        point = catalog.parse_lsn((result.get_value(0, 1) or b"0/0").decode())
        snapshot = (result.get_value(0, 2) or b"").decode()
        now = clock.wall_ms()
        # No commit record can stand one byte before the point: these keys are unique.
        transaction = Transaction(point - 1, 0, now, now)
        for table in waiting:
            if table.key:
                _begin(source, dsn, table, transaction, journal, types, point)
        for table in [table for table in waiting if not table.key]:
            _copy(source, dsn, table, snapshot, transaction, journal, types, settings, point)
        journal.cut(position)
    finally:
        replication.finish()


def _begin(
    source: Postgres, dsn: str, table: catalog.CatalogTable, transaction: Transaction,
    journal: Journal, types: TypeTable, point: int,
) -> None:  # fmt: skip
    """Empty the topic of a table that had no key and has one now; its chunks come later."""
    relation = table.relation
    schema = journal.register(shape_of(source, relation, table, types), point)
    with catalog.connect(dsn) as connection:
        captured = captured_table(source, relation, schema, types, connection.info.dbname)
    state = copied_again(journal.copies[table.name], "the table has a key now")
    frame = copy_frame(captured, journal.epoch, transaction, first=False, last=False)
    _empty(journal, schema, state, frame, transaction, point)
    for word in ("bag", "waits", "until"):
        state.pop(word, None)
    journal.record_copy(table.name, state)
    journal.cut(journal.committed_position)


def _empty(
    journal: Journal, schema: TableSchema, state: Mapping[str, Any], frame: TransactionFrame,
    transaction: Transaction, point: int,
) -> None:  # fmt: skip
    reached = emptied(journal, schema.topic, state, frame, point, transaction.order)
    if reached > transaction.order:
        now = transaction.committed_ms
        journal.note(
            truncate_note(f"copy:{transaction.commit_lsn}", schema.name, schema.topic, now)
        )
    transaction.order = reached


def _copy(
    source: Postgres, dsn: str, table: catalog.CatalogTable, snapshot: str,
    transaction: Transaction, journal: Journal, types: TypeTable, settings: CaptureSettings,
    point: int,
) -> None:  # fmt: skip
    relation = table.relation
    connection = catalog.connect(dsn)
    try:
        schema = journal.register(shape_of(source, relation, table, types), point)
        captured = captured_table(source, relation, schema, types, connection.info.dbname)
        held = journal.copies[table.name]
        state = copied_again(held, str(held.get("reason", "first copy")))
        frame = copy_frame(
            captured, journal.epoch, transaction, first=state["state"] == "copying", last=False
        )
        if journal.dirty:
            journal.cut(journal.committed_position)
        _empty(journal, schema, state, frame, transaction, point)
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        query = sql.SQL("COPY (SELECT {} FROM {}").format(
            select_list(relation, hidden_columns(source, table)),
            from_clause(table),
        )
        chosen = for_table(source.where, relation.schema, relation.table)
        if chosen is not None:
            query += sql.SQL(" WHERE ({})").format(sql.SQL(str(chosen)))
        count = 0
        copy = CopySocket(connection.pgconn)
        try:
            copy.start((query + sql.SQL(") TO STDOUT")).as_bytes(connection))
            for block in copy.contents():
                rows = captured.columns.from_lines(block)
                first = transaction.order + 1
                journal.add(
                    schema.topic, None, copied_events(frame, rows, rows.pieces, point, first)
                )
                transaction.order += rows.count
                count += rows.count
                if journal.waiting >= settings.spill_rows:
                    journal.spill()
        finally:
            copy.close()
        connection.execute("ROLLBACK")
        state |= {"state": "done", "rows": count, "until": point, "bag": schema.version}
        state.pop("waits", None)
        journal.record_copy(table.name, state)
    finally:
        connection.close()
