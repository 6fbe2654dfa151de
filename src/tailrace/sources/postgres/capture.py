"""One Postgres source: from its slot into the log.

One thread reads the replication stream, decodes rows and writes log transactions; a
thread per table being copied reads chunks. Source transactions are grouped: a group is
written when the stream has nothing more at the moment, or when its first transaction has
waited for `group_seconds`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import psycopg

from tailrace.config import resolve
from tailrace.errors import TailraceError
from tailrace.sources.base import Resume, SourceLog
from tailrace.sources.control import paused
from tailrace.sources.declare import Postgres
from tailrace.sources.errors import ServerUnreachableError
from tailrace.sources.journal import Journal
from tailrace.sources.postgres import catalog, ddl, keyless
from tailrace.sources.postgres.ownership import (
    check_ownership,
    claim_publication,
    resolve_names,
)
from tailrace.sources.postgres.reception import Reception
from tailrace.sources.postgres.replication import ReplicationStream
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.sources.postgres.slot import open_slot
from tailrace.telemetry import metrics
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

DEFAULTS = CaptureSettings()
ROUND_SECONDS = 0.25


@contextmanager
def lost_connections() -> Iterator[None]:
    """Whatever breaks a connection passes: the source connects again."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise ServerUnreachableError(
            "the connection to the database was lost",
            detail=str(error).strip(),
            hint="capture connects again and goes on where the log ends",
        ) from error


class StartAgain(Exception):
    """This attempt ends without an error: the source pauses, or a table without a key is to
    be copied, which happens at the next start."""


class PostgresCapture:
    """One attempt at capturing a source: from connecting until something ends it."""

    def __init__(
        self,
        source: Postgres,
        source_log: SourceLog,
        part: Part,
        settings: CaptureSettings | None = None,
    ) -> None:
        self.settings = settings or DEFAULTS
        self._part = part
        self._clock = part.clock
        self._dsn = resolve(source.dsn)
        self._declared = source
        self._connection = catalog.connect(self._dsn)
        try:
            with lost_connections():
                source = catalog.as_published(self._connection, source)
                catalog.check_server(self._connection, source)
                journal = Journal(source, source_log, clock=part.clock)
                resume = journal.open()
                resumed = resume.position is not None
                self.source, self._owned = resolve_names(
                    source, part.project, part.directory, journal.owned, resumed=resumed
                )
                self._reception = Reception(
                    self.source, self._dsn, self._connection, journal, self.settings,
                    part.directory, part.clock, self._between, resume,
                )  # fmt: skip
        except BaseException:
            self._connection.close()
            raise
        self._stream: ReplicationStream | None = None
        self._last_round_at = 0.0
        self._looked_at = 0.0
        self._table_marks: object = None
        # The first declared table that is not there any more, if one is.
        self._missing: TailraceError | None = None

    def work(self) -> None:
        """Capture until the part is told to stop; raises when it cannot go on."""
        try:
            with lost_connections():
                self._start()
                self._loop()
        except StartAgain:
            return
        finally:
            self._close()

    def _start(self) -> None:
        reception = self._reception
        source, connection = self.source, self._connection
        tables = catalog.wanted_tables(connection, source, reception.journal.copies)
        if self._owned is not None:
            given = self._declared.slot is not None
            known = reception.journal.owned is not None or reception.resume.position is not None
            check_ownership(connection, self._owned, known=known or given)
        catalog.ensure_publication(connection, source, tables)
        if self._owned is not None:
            claim_publication(connection, self._owned)
            reception.journal.record_owned(asdict(self._owned))
        if source.ddl_trigger:
            ddl.install(connection)
        position = self._open_slot()
        reception.position = position
        keyless.review(source, tables, reception.journal, reception.types)
        for table in tables:
            reception.adopt(table, position)
        reception.catch_up()
        if reception.journal.dirty or reception.resume.position is None:
            reception.cut(position)
        if reception.resume.part is None:
            keyless.copy_keyless(
                source, self._dsn, tables, reception.journal, reception.types, self.settings,
                position, self._clock,
            )  # fmt: skip
        self._stream = reception.stream = ReplicationStream(
            self._dsn, source.slot_name, source.publication_name, position, clock=self._clock
        )
        reception.copies.work(reception.catalog)
        log.info("capture started", extra={"source": source.name, "position": position})

    def _open_slot(self) -> int:
        """Where to read from; a lost slot begins a new epoch, in which tables are compared."""
        reception = self._reception
        waits = catalog.open_transactions(self._connection)
        if waits and catalog.read_slot(self._connection, self.source.slot_name) is None:
            # Making a slot takes until they end, for as long as that is.
            self._part.report("starting", waits_for=waits)
        opened = open_slot(self.source, self._connection, reception.resume)
        if opened.lost is not None:
            log.warning("slot lost", extra={"source": self.source.name, "reason": opened.lost})
            reception.journal.epoch = reception.resume.epoch + 1
            reception.resume = Resume(
                reception.journal.epoch, opened.position, None, reception.resume.copies
            )
            reception.copies.compare_all(opened.lost)
        elif reception.resume.position is None:
            reception.journal.epoch = 1
        return opened.position

    def _loop(self) -> None:
        reception = self._reception
        stream = self._stream
        assert stream is not None
        stopping = self._part.stopping
        while not stopping.is_set():
            take = reception.take
            for arrived in stream.messages():
                if isinstance(arrived, tuple):
                    take(*arrived)
                else:
                    reception.take_many(arrived)
                if reception.group_since is not None and self._group_due():
                    reception.cut(reception.position)
                    # A stream that never pauses must not keep the rest of the work waiting.
                    self._round(stream)
            # Nothing more at the moment: whoever waits has waited long enough.
            rest = self._until_paced()
            if reception.cut_now or (reception.group_since is not None and rest <= 0):
                reception.cut(reception.position)
            self._round(stream)
            stream.wait(rest if reception.group_since is not None and rest > 0 else 0.1)

    def _group_due(self) -> bool:
        reception = self._reception
        assert reception.group_since is not None
        if reception.group_rows >= self.settings.group_rows:
            return True
        waited = self._clock.monotonic() - reception.group_since
        return waited >= self.settings.group_seconds and self._until_paced() <= 0

    def _until_paced(self) -> float:
        """Seconds until the next log transaction may follow the last one."""
        passed = self._clock.monotonic() - self._reception.last_cut_at
        return self.settings.pace_seconds - passed

    def _round(self, stream: ReplicationStream) -> None:
        """What is done a few times a second: confirm, idle cuts, copies, report."""
        reception = self._reception
        now = self._clock.monotonic()
        if now - self._last_round_at < ROUND_SECONDS:
            return
        self._last_round_at = now
        if paused(self._part.directory, self.source.name):
            raise StartAgain
        reception.copies.work(reception.catalog)
        reception.refresh_touched()
        if now - self._looked_at >= self.settings.look_seconds:
            self._look_for_tables()
        idle = reception.transaction is None and reception.group_since is None
        if (
            idle
            and stream.wal_end > reception.position
            and now - reception.last_cut_at >= self.settings.idle_cut_seconds
        ):
            reception.cut(stream.wal_end)
        if idle and reception.resume.part is None and reception.keyless_waits:
            # Their copy needs a snapshot from before the stream goes on.
            raise StartAgain
        durable = reception.journal.durable_position(delay=self.settings.confirm_delay)
        if durable is not None or stream.silent_for >= 1.0:
            stream.confirm(durable or 0, ask=True)
        self._report(stream)

    def _report(self, stream: ReplicationStream) -> None:
        reception = self._reception
        behind = max(stream.wal_end - reception.position, 0)
        now = self._clock.wall_ms()
        waits = now - reception.last_commit_ms if behind and reception.last_commit_ms else 0
        freshness = max(waits, reception.journal.latency_ms() or 0)
        labels = {"source": self.source.name}
        metrics.gauge("tailrace_source_lag_bytes", "WAL not yet in the log", ["source"]).labels(
            **labels
        ).set(behind)
        blocked = next(iter(reception.copies.blocked.values()), None) or self._missing
        self._part.report(
            "running" if blocked is None else "lagging",
            freshness_ms=max(freshness, 0),
            lag=behind,
            position=reception.journal.position_text(reception.position),
            copying=reception.copies.running,
            progress=reception.copies.progress,
            events=reception.journal.events_written,
            waits_for=reception.copies.waits_for(),
            incomplete=reception.incomplete_summary(),
            owns=None if self._owned is None else asdict(self._owned),
            refuses_updates=sorted(t.name for t in reception.catalog.values() if t.refuses_updates),
            error=None if blocked is None else blocked.as_dict(),
            **reception.safety.watch(),
        )

    def _look_for_tables(self) -> None:
        """Take in tables that were created since, also under the name of an earlier one."""
        reception = self._reception
        self._looked_at = self._clock.monotonic()
        marks = self._connection.execute(
            "SELECT count(*), sum(hashtextextended(relname, oid::int8 + relnamespace::int8)) "
            "FROM pg_class WHERE relkind IN ('r', 'p')"
        ).fetchone()
        if marks == self._table_marks:
            return
        self._table_marks = marks
        tables = catalog.read_tables(self._connection)
        wanted = [
            table
            for table in tables
            if catalog.matches(self.source, table.relation.schema, table.relation.table)
        ]
        self._miss(wanted, tables)
        found = [
            table
            for table in wanted
            if reception.journal.copies.get(table.name, {}).get("oid") != table.relation.id
        ]
        if found:
            catalog.ensure_publication(self._connection, self.source, found)
            reception.types = catalog.read_types(self._connection)
            for table in found:
                log.info("new table", extra={"table": table.name})
                reception.adopt(table, reception.position)
            if reception.transaction is None:
                reception.cut(reception.position)

    def _miss(self, wanted: list[catalog.CatalogTable], tables: list[catalog.CatalogTable]) -> None:
        """Tell of a declared table that was dropped or renamed; the others go on."""
        names = catalog.missing_tables(self.source, wanted)
        self._missing = catalog.missing_error(self.source, names[0], tables) if names else None

    def _between(self) -> None:
        """Called while a large transaction arrives, which may take minutes."""
        if self._stream is not None:
            self._round(self._stream)

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._reception.close()
        self._connection.close()
