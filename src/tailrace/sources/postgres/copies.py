"""The copies of a source: which tables are being read, and what becomes of their chunks.

States of a table in `__tailrace_sources`: `copying` (first copy), `again` (asked for, or
comparing after a lost slot), `done`, `skipped`. `ranges` are the keys that are still to be
read, so a kill costs the chunks on their way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import psycopg

from tailrace.clock import Clock
from tailrace.records.envelope import TransactionFrame
from tailrace.sources.bags import ACTIVE
from tailrace.sources.compare import Comparison
from tailrace.sources.declare import Postgres, changed_declaration, for_table, made_anew
from tailrace.sources.errors import CopyBlockedError, ServerUnreachableError
from tailrace.sources.journal import Journal
from tailrace.sources.postgres import catalog
from tailrace.sources.postgres.checksum import GROUP_ROWS, TableSums
from tailrace.sources.postgres.copy import (
    WHOLE,
    Chunk,
    ChunkReader,
    KeyRange,
    key_text,
    row_estimate,
    without,
)
from tailrace.sources.postgres.copy_socket import CopyError
from tailrace.sources.postgres.pgoutput import Relation
from tailrace.sources.postgres.refill import Refill, keys_condition
from tailrace.sources.postgres.rows import RowWriter
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.postgres.table import (
    CapturedTable,
    Transaction,
    captured_table,
    shape_of,
)
from tailrace.sources.postgres.types import StaleType, TypeTable

log = logging.getLogger(__name__)

# SQLSTATE classes that speak of one table: data, syntax or access rule, limits.
TABLE_ERRORS = ("22", "42", "54")


class Copies:
    """Readers of chunks, and the memory of keys that changed meanwhile."""

    def __init__(
        self,
        source: Postgres,
        dsn: str,
        connection: catalog.Connection,
        journal: Journal,
        rows: RowWriter,
        settings: CaptureSettings,
        directory: Path,
        clock: Clock,
        types: Callable[[], TypeTable],
        keep_alive: Callable[[], None],
    ) -> None:
        self._source = source
        self._dsn = dsn
        self._connection = connection
        self._journal = journal
        self._rows = rows
        self._settings = settings
        self._directory = directory
        self._clock = clock
        self._types = types
        self._keep_alive = keep_alive
        self._readers: dict[str, ChunkReader] = {}
        # What its reader has still to read, by table; absent before its first chunk.
        self._left: dict[str, list[KeyRange]] = {}
        self._touched: dict[str, dict[bytes, int]] = {}
        self._inserted: dict[str, set[bytes]] = {}
        self._gates: dict[str, int] = {}
        self._comparisons: dict[str, Comparison] = {}
        self._estimates: dict[str, object] = {}
        # Tables whose copy waits until somebody repairs something, and why.
        self.blocked: dict[str, CopyBlockedError] = {}
        self._blocked_until: dict[str, float] = {}
        # Keys that were asked for and not met yet, as texts, by table.
        self._unmet: dict[str, set[tuple[str, ...]]] = {}
        self._refill = Refill(
            dsn, rows.incomplete, clock, partial(hidden_columns, source), self._chosen_rows,
            lambda name: journal.schemas[name].key,
        )  # fmt: skip

    def touched(self, name: str) -> dict[bytes, int] | None:
        """Where to note the changed keys of a table; None when it is not being copied."""
        return self._touched.get(name)

    def inserted(self, name: str) -> set[bytes] | None:
        """Where to note the keys told as inserted while the first copy of a table runs: they
        are not news in it. None where nobody can ask for all inserted rows."""
        return self._inserted.get(name)

    def adopt(self, name: str, oid: int, *, copy: bool, declared: dict[str, object]) -> None:
        """Begin the copy of a table that has none yet, or go on with one; read it again if
        another choice of columns, rows or masks is declared than it was copied with, or if
        it is another table of the same name."""
        held = self._journal.copies.get(name)
        if held is None:
            state = "copying" if copy else "skipped"
            self._journal.record_copy(
                name, {"state": state, "rows": 0, "declared": declared, "oid": oid}
            )
        elif held.get("oid", oid) != oid:
            log.warning("table made anew", extra={"table": name})
            self._stop_reader(name)
            self._forget_incomplete(name)
            self._touched.pop(name, None)
            self._journal.record_copy(name, {**made_anew(held), "oid": oid, "declared": declared})
        elif (changed := changed_declaration(held, declared)) is not None:
            log.warning("declaration changed", extra={"table": name, "copy": changed["state"]})
            self._journal.record_copy(name, {**changed, "oid": oid})
        elif "declared" not in held or "oid" not in held:
            self._journal.record_copy(name, {**held, "declared": declared, "oid": oid})
        if self._journal.copies[name]["state"] in ACTIVE:
            self._track(name)

    def _track(self, name: str) -> None:
        if name not in self._touched:
            self._touched[name] = {}
            # Whoever has a smaller id may have been streamed before we began to remember,
            # or have written before the publication had the table.
            self._gates[name] = catalog.newest_transaction(self._connection)
            schema = self._journal.schemas[name]
            if schema.history is not None and self._journal.copies[name]["state"] == "copying":
                self._inserted[name] = self._journal.inserted_keys(schema.topic)

    def compare_all(self, reason: str) -> None:
        """After lost changes: read every table and write what differs from the log."""
        for name, rows in list(self._journal.incomplete.items()):
            for key in [key for key, row in rows.items() if row.key is None]:
                self._journal.record_incomplete(name, key, None)  # the comparison finds it
        for name, state in list(self._journal.copies.items()):
            again = {**state, "rows": 0, "reason": reason}
            again.pop("keys", None)
            again.pop("ranges", None)
            if state["state"] != "skipped":
                # A first copy, too: what it or the stream has told may be gone since.
                first = state["state"] == "copying"
                again |= {"state": "copying" if first else "again", "compare": True}
                again.pop("where", None)
            self._journal.record_copy(name, again)

    def work(self, tables: dict[int, catalog.CatalogTable]) -> None:
        """Keep a few tables being read; raises what ended a reader."""
        for name, reader in list(self._readers.items()):
            if reader.error is not None:
                self._stopped(name, reader.error)
        for name, reader in list(self._readers.items()):
            if reader.gone:
                self._finish(name, {**self._journal.copies[name], "reason": "table dropped"})
        self.fill(tables)
        for table in tables.values():
            if self._free_connections <= 0:
                return
            state = self._journal.copies.get(table.name, {})
            if self._blocked_until.get(table.name, 0.0) > self._clock.monotonic():
                continue
            if state.get("state") in ACTIVE and table.key and table.name not in self._readers:
                self._read(table, state)

    def fill(self, tables: dict[int, catalog.CatalogTable]) -> None:
        """Have rows read again that are held back because a value is not known."""
        incomplete = self._rows.incomplete
        if not incomplete:
            return
        if (ended := self._refill.ended) is not None:
            name, error = ended
            self._refill.stop()
            if error is not None:
                self._stopped(name, error)
            else:
                self._forget_incomplete(name)  # the table was dropped
        now = self._clock.monotonic()
        waiting = [
            table
            for table in tables.values()
            if table.name in incomplete and self._blocked_until.get(table.name, 0.0) <= now
        ]
        for table in waiting:
            rows = incomplete.keys(table.name).values()
            if any(held.record.key is None for held in rows):
                self.compare(table.name, "the key of a row that lacks a value is masked")
        self._refill.begin(waiting)

    def _forget_incomplete(self, name: str) -> None:
        self._rows.incomplete.forget(name)
        self._rows.incomplete.flush()

    def _chosen_rows(self, table: catalog.CatalogTable) -> str | None:
        chosen = for_table(self._source.where, table.relation.schema, table.relation.table)
        return None if chosen is None else str(chosen)

    def compare(self, name: str, reason: str) -> None:
        """Have a table read and compared with the log, unless it is being compared anyway."""
        held = self._journal.copies.get(name, {})
        if held.get("compare") and held.get("state") in ACTIVE:
            return
        self.begin(name)
        self._journal.record_copy(name, {**compared(held), "reason": reason})

    @property
    def _free_connections(self) -> int:
        taken = sum(reader.connections for reader in self._readers.values())
        return self._source.copy_connections - taken

    def _stopped(self, name: str, error: BaseException) -> None:
        """What ended a reader: the connection, or something about this table alone."""
        if not isinstance(error, (CopyError, psycopg.Error)):
            raise error
        state = error.state if isinstance(error, CopyError) else error.sqlstate or ""
        if state[:2] not in TABLE_ERRORS:
            raise ServerUnreachableError(
                f'the copy of "{name}" stopped', detail=str(error)
            ) from error
        if name not in self.blocked:
            log.warning("copy blocked", extra={"table": name, "error": str(error)})
        hint = "correct `where=`, or the condition of the re-snapshot"
        if state == "42501":
            schema, _, table = name.partition(".")
            hint = f'GRANT SELECT ON "{schema}"."{table}" TO "{self._connection.info.user}";'
        self.blocked[name] = CopyBlockedError(
            f'table "{name}" cannot be read, so its copy waits', detail=str(error), hint=hint
        )
        self._blocked_until[name] = self._clock.monotonic() + self._settings.look_seconds
        self._stop_reader(name)
        comparison = self._comparisons.pop(name, None)
        if comparison is not None:
            comparison.close()

    def _read(self, table: catalog.CatalogTable, state: dict[str, Any]) -> None:
        relation = table.relation
        ranges = recorded_ranges(state)
        chosen = self._chosen_rows(table)
        narrow = None
        if state.get("keys") and table.name not in self._unmet:
            ranges = [WHOLE]
            self._unmet[table.name] = {tuple(key) for key in state["keys"]}
        if state.get("compare") and table.name not in self._comparisons:
            ranges = [WHOLE]  # what was seen before a restart is not known any more
            narrow = self._compare(table, chosen, whole=bool(state.get("whole")))
        rows, row_bytes = row_estimate(self._connection, relation.id)
        self._estimates[table.name] = rows
        connections = self._connections_for(rows, state)
        conditions = [f"({c})" for c in (chosen, state.get("where")) if c]
        self._readers[table.name] = ChunkReader(
            self._dsn,
            table.name,
            relation.id,
            gate=self._gates[table.name],
            ranges=ranges,
            where=" AND ".join(conditions) or None,
            hidden=hidden_columns(self._source, table),
            rows=self._settings.chunk_rows,
            row_bytes=row_bytes,
            ahead=self._settings.chunks_ahead,
            connections=connections,
            narrow=narrow,
            clock=self._clock,
        )

    def _connections_for(self, rows: int, state: dict[str, Any]) -> int:
        """One for a small table; a large one leaves one to the others, if it can."""
        if state.get("keys"):
            return 1
        most = min(self._free_connections, max(1, self._source.copy_connections - 1))
        return max(1, min(most, rows // self._settings.split_rows))

    def _stop_reader(self, name: str) -> None:
        self._left.pop(name, None)
        reader = self._readers.pop(name, None)
        if reader is not None:
            reader.stop()

    def _compare(
        self, table: catalog.CatalogTable, where: str | None, *, whole: bool
    ) -> Callable[[catalog.Connection], str | None] | None:
        """Take in what the log has; how to find out which rows must be read. `whole`: all of
        them, and what the log has may have other columns and another key."""
        sums = None if whole else TableSums.of(self._source, table, self._types(), self._connection)
        comparison = self._comparisons[table.name] = Comparison(
            self._directory / "sources" / f"{self._source.name}.{table.name}.compare",
            self._unhurried(self._journal.live_rows(self._journal.schemas[table.name].topic)),
            None if sums is None else sums.sum_of,
        )
        if sums is None:
            return None

        def narrow(connection: catalog.Connection) -> str | None:
            # One hexadecimal digit more makes sixteen times as many groups.
            digits = 1
            while 16**digits * GROUP_ROWS < len(comparison) and digits < 7:
                digits += 1
            there = sums.read(connection, where, digits)
            differing = comparison.keep_differing(there, digits)
            log.info(
                "groups compared",
                extra={"table": table.name, "groups": len(there), "differing": len(differing)},
            )
            group = sums.group_of(digits).as_string(connection)
            listed = ", ".join(f"'{name}'" for name in differing)
            return f"{group} IN ({listed})" if differing else "false"

        return narrow

    def _unhurried(
        self, rows: Iterator[tuple[bytes, bytes | None]]
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """Reading a large topic may take longer than the server waits for a word of ours."""
        for number, row in enumerate(rows):
            if number % 200 == 0:
                self._keep_alive()
            yield row

    def again(
        self,
        table: catalog.CatalogTable,
        where: str | None,
        keys: list[list[str]] | None = None,
    ) -> None:
        """A re-snapshot, asked for in the stream itself: `tailrace source snapshot`."""
        name = table.name
        held = self._journal.copies.get(name, {})
        if held.get("state") == "copying":
            return  # the first copy is still running and will have them all
        if keys is not None:
            where = keys_condition(table.key, keys)
        if held.get("state") == "again":
            # Another request is being worked on: what it asked for is read, too.
            if held.get("compare"):
                return
            where = f"({held['where']}) OR ({where})" if where and held.get("where") else None
            keys = [*held.get("keys", ()), *(keys or ())]
        self.begin(name)
        state: dict[str, Any] = {"state": "again", "rows": 0}
        state |= {word: held[word] for word in ("declared", "oid", "fills") if word in held}
        if where:
            state["where"] = where
        if keys:
            state["keys"] = keys
        self._journal.record_copy(name, state)
        log.info("copy asked for", extra={"table": name})

    def fill_columns(self, name: str, columns: Sequence[str]) -> None:
        """Read the rows that have a value in columns of which the log knows nothing yet."""
        held = self._journal.copies.get(name, {})
        if held.get("state") != "done" and not held.get("fills"):
            return  # they are being read, or only changes are wanted
        wanted = [*held.get("fills", ()), *(c for c in columns if c not in held.get("fills", ()))]
        self.begin(name)
        quoted = ['"' + column.replace('"', '""') + '"' for column in wanted]
        again: dict[str, Any] = {"state": "again", "rows": 0, "fills": wanted}
        again |= {word: held[word] for word in ("declared", "oid") if word in held}
        again["where"] = " OR ".join(f"{column} IS NOT NULL" for column in quoted)
        self._journal.record_copy(name, again)
        log.info("columns to be read", extra={"table": name, "columns": wanted})

    def begin(self, name: str) -> None:
        """Forget what a copy has read: it begins again, by the state recorded with it."""
        self._stop_reader(name)
        self._touched.pop(name, None)
        self._unmet.pop(name, None)
        self._track(name)

    def reject(self, name: str) -> None:
        """The table was emptied or changed its shape: chunks that wait are worth nothing."""
        if name in self._readers:
            self._readers[name].reject(self._left.get(name))

    def arrived(self, mark: str, transaction: Transaction, position: int) -> int:
        """The stream has reached a chunk's mark: write it. How many events that were."""
        name, _, identifier = mark.rpartition(":")
        reader = self._readers.get(name)
        chunk = None if reader is None else reader.take(identifier)
        refill = self._refill.take(name, identifier)
        if chunk is None and refill is None:
            return 0  # of an earlier run, or rejected
        self.blocked.pop(name, None)
        try:
            if refill is not None:
                return self._write_refill(*refill, transaction, position)
            assert chunk is not None
            return self._write(chunk, transaction, position)
        except StaleType as error:
            raise ServerUnreachableError(
                f'a type in "{name}" changed while it was copied',
                hint="capture reads the types again and goes on where the log ends",
            ) from error

    def _write(self, chunk: Chunk, transaction: Transaction, position: int) -> int:
        """The rows of a chunk that no unseen transaction has overtaken."""
        name = chunk.table
        table = self._table_of(chunk.catalog, position)
        reader = self._readers[name]
        left = self._left[name] = without(self._left.get(name, reader.ranges), chunk)
        first = self._journal.copies[name].get("state") == "copying"
        frame = copy_frame(table, self._journal.epoch, transaction, first=first, last=not left)
        touched = self._touched[name]
        topic, count = table.schema.topic, 0
        known = None
        if self._inserted.get(name):
            told = copy_frame(table, self._journal.epoch, transaction, first=False, last=not left)
            known = (self._inserted[name], told)
        for keys, values in self._rows.chunk(
            table, frame, chunk, touched, transaction.commit_lsn, self._comparisons.get(name), known
        ):
            self._journal.add(topic, keys, values)
            count += len(values)
            if count >= self._settings.spill_rows:
                # The broker writes a piece while the next one is decoded.
                self._journal.spill()
        self._rows.incomplete.flush()
        state: dict[str, Any] = dict(self._journal.copies[name])
        state.pop("after", None)
        state["ranges"] = [each.record for each in left]
        state["rows"] = state.get("rows", 0) + chunk.rows
        if not left and name in self._comparisons:
            comparison = self._comparisons.pop(name)
            gone = [key for key in comparison.unseen() if key not in touched]
            self._journal.add(
                topic, *self._rows.vanished(frame, gone, transaction.commit_lsn, count)
            )
            count += len(gone)
            comparison.close()
        if name in self._unmet:
            self._met(chunk, table, frame, transaction.commit_lsn, count, last=not left)
        elif name not in self._comparisons and len(touched) > self._settings.touched_keys:
            self._forget_seen(touched, chunk, reader)
        if not left:
            self._finish(name, state)
        else:
            self._journal.record_copy(name, state)
        return count

    def _write_refill(
        self, chunk: Chunk, asked: Collection[bytes], transaction: Transaction, position: int
    ) -> int:
        """The held rows that a round of the refill completes."""
        table = self._table_of(chunk.catalog, position)
        frame = copy_frame(table, self._journal.epoch, transaction, first=False, last=False)
        table.inserted = self._inserted.get(chunk.table)
        keys, values = self._rows.refilled(table, frame, chunk, asked, transaction.commit_lsn)
        if values:
            self._journal.add(table.schema.topic, keys, values)
        self._rows.incomplete.flush()
        self._refill.written(chunk)
        return len(values)

    def _forget_seen(self, touched: dict[bytes, int], chunk: Chunk, reader: ChunkReader) -> None:
        """Forget keys whose change every chunk to come can see. Snapshots on their way may be
        older than this chunk's, those not taken yet are newer."""
        others = reader.snapshots()
        if others is None:
            return
        snapshots = [chunk.snapshot, *others]
        seen = {xid: all(s.sees(xid) for s in snapshots) for xid in set(touched.values())}
        for key in [key for key, xid in touched.items() if seen[xid]]:
            del touched[key]

    def _met(
        self, chunk: Chunk, table: CapturedTable, frame: TransactionFrame, lsn: int, order: int,
        *, last: bool,
    ) -> None:  # fmt: skip
        """Cross off the keys of a chunk; what is left at the end is gone from the table."""
        unmet = self._unmet[chunk.table]
        unmet.difference_update(key_text(chunk.catalog, line) for line in chunk.lines)
        if not last:
            return
        columns = [table.decoder.columns[i] for i in table.decoder.key]
        gone = []
        for texts in sorted(unmet):
            parts = [
                orjson.dumps(plan.name) + b":" + plan.convert(text.encode())
                for plan, text in zip(columns, texts, strict=True)
            ]
            key = b"{" + b",".join(parts) + b"}"
            if key not in self._touched[chunk.table]:
                gone.append(key)
        keys, values = self._rows.vanished(frame, gone, lsn, order)
        self._journal.add(table.schema.topic, keys, values)

    def _finish(self, name: str, state: dict[str, Any]) -> None:
        state = {**state, "state": "done"}
        for word in ("compare", "whole", "where", "keys", "ranges", "after", "fills"):
            state.pop(word, None)
        self._unmet.pop(name, None)
        self._stop_reader(name)
        self._touched.pop(name, None)
        self._inserted.pop(name, None)
        self._journal.record_copy(name, state)
        log.info("copy finished", extra={"table": name, "rows": state.get("rows", 0)})

    def _table_of(self, found: catalog.CatalogTable, position: int) -> CapturedTable:
        shape = shape_of(self._source, found.relation, found, self._types())
        schema = self._journal.register(shape, position)
        return captured_table(
            self._source, found.relation, schema, self._types(), self._connection.info.dbname
        )

    @property
    def running(self) -> list[str]:
        """Tables whose rows are still being read."""
        return sorted(t for t, s in self._journal.copies.items() if s.get("state") in ACTIVE)

    @property
    def progress(self) -> dict[str, dict[str, object]]:
        """Rows read of every copy that is running, and how many the server guesses there are."""
        return {
            name: {
                "rows": self._journal.copies[name].get("rows", 0),
                "of": self._estimates.get(name),
            }
            for name in self.running
        }

    def waits_for(self) -> list[str]:
        """The open transactions that keep a copy waiting: they began before it, and what they
        wrote may be neither in the stream nor visible yet."""
        early = any(reader.too_early for reader in self._readers.values())
        if not early and not self._rows.incomplete.waits_for_older:
            return []
        return catalog.open_transactions(self._connection)

    def close(self) -> None:
        self._refill.stop()
        for reader in self._readers.values():
            reader.stop()
        for comparison in self._comparisons.values():
            comparison.close()


def recorded_ranges(state: dict[str, Any]) -> list[KeyRange]:
    """What a copy had still to read when it was recorded last."""
    if "ranges" in state:
        return [KeyRange.read(pair) for pair in state["ranges"]]
    # Progress from before tables were read in ranges.
    return [KeyRange.read([state.get("after"), None])]


def compared(state: dict[str, Any]) -> dict[str, Any]:
    """How a copy goes on as a comparison of every row."""
    gone = ("where", "keys", "ranges", "after")
    made = {word: value for word, value in state.items() if word not in gone}
    made["state"] = "copying" if state.get("state") == "copying" else "again"
    return made | {"rows": 0, "compare": True, "whole": True}


def copy_frame(
    table: CapturedTable, epoch: int, transaction: Transaction, *, first: bool, last: bool
) -> TransactionFrame:
    """The frame of copied rows: they carry the position of the mark they came with. `first`:
    rows of the first copy, none that were told before."""
    return TransactionFrame.of(
        table.frame,
        epoch=epoch,
        commit=transaction.commit_lsn,
        xid=transaction.xid,
        committed_ms=transaction.committed_ms,
        now_ms=transaction.now_ms,
        snapshot=("last" if last else "true") if first else "incremental",
        transaction=f"copy:{transaction.commit_lsn}",
    )


def hidden_columns(source: Postgres, table: catalog.CatalogTable) -> frozenset[str]:
    """Columns that `columns=` leaves out; they are not even read."""
    relation: Relation = table.relation
    wanted = for_table(source.columns, relation.schema, relation.table)
    if not isinstance(wanted, (list, tuple)):
        return frozenset()
    return frozenset(
        c.name for c in relation.columns if c.name not in wanted and c.name not in table.key
    )
