"""The copy of tables without a key: one exported snapshot, from the beginning each time.

Without a key rows cannot be read in chunks, and a copied row cannot be told from a
streamed one. A temporary slot gives a snapshot and the position it belongs to: the copy
has everything committed before it, the stream is taken from there on. A copy that was
begun before is preceded by a `t` note, because rows cannot be taken back one by one.
"""

from __future__ import annotations

from psycopg import pq, sql

from tailrace.clock import Clock
from tailrace.sources.declare import Postgres, for_table
from tailrace.sources.errors import ServerUnreachableError
from tailrace.sources.journal import Journal
from tailrace.sources.postgres import catalog
from tailrace.sources.postgres.copies import ACTIVE, copy_frame, hidden_columns
from tailrace.sources.postgres.copy import from_clause, select_list
from tailrace.sources.postgres.copy_socket import CopySocket
from tailrace.sources.postgres.replication import connect_replication
from tailrace.sources.postgres.rows import copied_events
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.postgres.table import Transaction, captured_table, shape_of
from tailrace.sources.postgres.types import TypeTable


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
    """Copy every table without a key that is not copied yet; ends with a cut at `position`."""
    waiting = [t for t in tables if not t.key and journal.copies[t.name].get("state") in ACTIVE]
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
            _copy(source, dsn, table, snapshot, transaction, journal, types, settings, point)
        journal.cut(position)
    finally:
        replication.finish()


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
        frame = copy_frame(captured, journal.epoch, transaction, last=False)
        state = dict(journal.copies[table.name])
        for word in ("compare", "whole"):  # nothing to compare rows by
            state.pop(word, None)
        if state.get("begun"):
            journal.note(
                {
                    "status": "TRUNCATE",
                    "op": "t",
                    "id": f"copy:{transaction.commit_lsn}",
                    "table": table.name,
                    "topic": schema.topic,
                    "reason": "the copy of a table without a key starts again",
                    "ts_ms": transaction.committed_ms,
                }
            )
        journal.record_copy(table.name, {**state, "begun": True})
        journal.cut(journal.committed_position)
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
        journal.record_copy(
            table.name, {**state, "state": "done", "begun": True, "rows": count, "until": point}
        )
    finally:
        connection.close()
