"""One MySQL or MariaDB source: from its binlog into the log.

One thread reads the stream, decodes rows and writes log transactions; readers of chunks have
threads of their own. Source transactions are grouped: a group is written when the stream has
nothing more at the moment, or when its first transaction has waited for `group_seconds`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from tailrace.config import resolve
from tailrace.errors import TailraceError
from tailrace.sources.base import Resume, SourceLog
from tailrace.sources.control import paused
from tailrace.sources.declare import MySQL, copied_again, declared_for
from tailrace.sources.errors import (
    BinlogLostError,
    GtidAheadError,
    ServerUnreachableError,
)
from tailrace.sources.journal import Journal
from tailrace.sources.mysql.address import parse_address
from tailrace.sources.mysql.chunks import place_number
from tailrace.sources.mysql.gtid import GtidSet, GtidState, Known
from tailrace.sources.mysql.keyless import KeylessCopies
from tailrace.sources.mysql.reception import Reception
from tailrace.sources.mysql.server import Server, connect, masks_of, missing_tables
from tailrace.sources.mysql.settings import MySQLSettings
from tailrace.sources.mysql.stream import BinlogStream, replica_number
from tailrace.sources.mysql.table import shape_of
from tailrace.telemetry import metrics
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

DEFAULTS = MySQLSettings()
ROUND_SECONDS = 0.1


class MySQLCapture:
    """One attempt at capturing a source: from connecting until something ends it."""

    def __init__(
        self, source: MySQL, source_log: SourceLog, part: Part,
        settings: MySQLSettings | None = None,
    ) -> None:  # fmt: skip
        self.source = source
        self.settings = settings or DEFAULTS
        self._part = part
        self._clock = part.clock
        self._address = parse_address(source.name, resolve(source.dsn))
        self._journal = Journal(source, source_log, clock=part.clock)
        self._resume = self._journal.open()
        self._host = 0
        self._servers: list[Server] = []
        self._stream: BinlogStream | None = None
        self._server = self._choose()
        self._reception = Reception(
            source, self._server, self._connect_reader, self._journal, self.settings,
            part.directory, part.clock, self._resume,
        )  # fmt: skip
        self._keyless = KeylessCopies(self._reception, self._connect_reader, part.stopping.is_set)
        self._missing: TailraceError | None = None
        self._last_round_at = 0.0
        self._looked_at = 0.0
        self._heard_at = 0.0
        self._seen_tables: list[tuple[str, str]] = []

    def work(self) -> None:
        """Capture until the part is told to stop; raises when it cannot go on."""
        try:
            self._start()
            self._loop()
        finally:
            self._close()

    # --- which server --------------------------------------------------------------------------

    def _choose(self) -> Server:
        """The first listed server that answers and has every transaction that the log has."""
        errors: list[TailraceError] = []
        for number in range(len(self._address.hosts)):
            try:
                server = Server.ask(connect(self._address, number))
            except ServerUnreachableError as error:
                errors.append(error)
                continue
            try:
                self._check_history(server, number)
                server.check()
            except GtidAheadError as error:
                server.connection.close()
                errors.append(error)
                continue
            except BaseException:
                server.connection.close()
                raise
            self._host = number
            return server
        ahead = next((e for e in errors if isinstance(e, GtidAheadError)), None)
        raise ahead or errors[0]

    def _check_history(self, server: Server, number: int) -> None:
        """Refuse another server that lacks transactions we have."""
        place = self._resume.place
        if not place or self._same_server(server):
            return
        host, port = self._address.hosts[number]
        if "gtid" not in place or not server.gtids:
            raise GtidAheadError(
                f"{host}:{port} is another server, and there are no GTIDs to go on with",
                detail=f"The log ends at {place.get('file')}:{place.get('pos')} of another server.",
                hint="turn GTIDs on, or name only the server that was captured",
            )
        ours = known_of(server, str(place["gtid"]))
        if lacking := server.lacks(ours):
            raise GtidAheadError(
                f"{host}:{port} lacks transactions that the log has",
                detail=f"It lacks {lacking}.",
                hint="wait until it has them, or take it out of the address",
            )

    def _same_server(self, server: Server) -> bool:
        place = self._resume.place
        if server.uuid or place.get("uuid"):
            return bool(place.get("uuid") == server.uuid)
        servers = place.get("servers") or [0]
        return bool(servers[-1] == server.id)

    def _connect_reader(self) -> Server:
        server = Server.ask(connect(self._address, self._host, timeout=600))
        server.rows("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return server

    # --- start ---------------------------------------------------------------------------------

    def _start(self) -> None:
        reception, server = self._reception, self._server
        tables = server.tables(self.source)
        missing = missing_tables(self.source, tables)
        if missing is not None:
            known = self._journal.copies
            names = {f"{s}.{t}" for s, t in tables}
            if not any(name not in names for name in known):
                raise missing
            self._missing = missing
        file, position = self._place()
        self._journal.origin = server.id
        self._journal.place = reception.place()
        for schema, table in tables:
            self._adopt(schema, table)
        self._seen_tables = tables
        if (self._journal.dirty or self._resume.position is None) and self._resume.part is None:
            reception.cut()
        reader = Server.ask(connect(self._address, self._host))
        number = self.source.server_id or replica_number(f"{self._part.project}/{self.source.name}")
        start = reception.known if self._from is None else self._from
        self._stream = BinlogStream(
            reader, number, f"{self._part.project}/{self.source.name}", file, position, start,
            self.settings.heartbeat_seconds,
        )  # fmt: skip
        self._heard_at = self._clock.monotonic()
        log.info("capture started", extra={"source": self.source.name, "file": file})

    _from: Known | None = None

    def _place(self) -> tuple[str, int]:
        """Where to read from; changes that are lost begin a new epoch with a comparison."""
        reception, server, resume = self._reception, self._server, self._resume
        place = resume.place
        reception.servers = [int(one) for one in place.get("servers", ())]
        if resume.position is None or not place:
            return self._begin_here(first=resume.position is None)
        same = self._same_server(server)
        lost = self._lost(server, place, same)
        if lost is not None:
            log.warning("binlog lost", extra={"source": self.source.name, "reason": lost})
            self._epoch()
            found = self._begin_here(first=False)
            reception._lost(lost, None)
            return found
        copied = place.get("copied", (0, 0))
        reception._copied = int(copied[0]), int(copied[1])
        if "gtid" in place:
            reception.known = known_of(server, str(place["gtid"]))
        file, position = str(place["file"]), int(place["pos"])
        prepared = place.get("prepared")
        if prepared:
            # Rows of transactions that were prepared and not committed are read again.
            reception._before = dict(prepared)
            reception.written_to = resume.position
            if reception.known is not None:
                reception.replayed = reception.known.copy()
                self._from = known_of(server, str(prepared["gtid"]))
        if resume.part is not None:
            reception.resume_inside(str(place.get("open", "")))
        if not same:
            self._epoch(keep_part=True)
            file, position = server.end()
            oldest = min(server.binlogs(), key=lambda name: place_number(name, 0))
            reception.file, reception.position = oldest, place_number(oldest, 4)
            return file, position
        reception.file, reception.position = file, resume.position
        if prepared:
            file, position = str(prepared["file"]), int(prepared["pos"])
        if reception.servers[-1:] != [server.id]:
            reception.servers.append(server.id)
        return file, position

    def _begin_here(self, *, first: bool) -> tuple[str, int]:
        """From where the binlog ends now."""
        reception, server = self._reception, self._server
        file, position = server.end()
        if first:
            self._journal.epoch = 1
        reception.file = file
        reception.position = place_number(file, position)
        if server.mariadb:
            reception.known = server.state_at(file, position)
        elif server.gtids:
            # What is in the binlog and not yet in this set is streamed, also from before.
            reception.position = place_number(file, 4)
            reception.known = server.executed()
        if reception.servers[-1:] != [server.id]:
            reception.servers.append(server.id)
        return file, position

    def _epoch(self, *, keep_part: bool = False) -> None:
        reception = self._reception
        self._journal.epoch = self._resume.epoch + 1
        part = self._resume.part if keep_part else None
        self._resume = reception.resume = replace(
            self._resume, epoch=self._journal.epoch, part=part
        )
        reception._copied = (0, 0)
        if reception.servers[-1:] != [self._server.id]:
            reception.servers.append(self._server.id)

    def _lost(self, server: Server, place: Any, same: bool) -> str | None:
        """Why the server cannot go on from where the log ends; None if it can."""
        if "gtid" in place and server.gtids:
            ours = known_of(server, str(place["gtid"]))
            if server.lacks(ours):
                return "the server was reset: it lacks transactions that the log has"
            if isinstance(ours, GtidSet):
                purged = GtidSet(str(server.value("SELECT @@global.gtid_purged")))
                if not ours.includes(purged):
                    return f"the server purged transactions: {purged.without(ours)}"
                return None
            oldest = min(server.binlogs(), key=lambda name: place_number(name, 0))
            first = server.state_at(oldest, 4)
            if not ours.includes(first):
                return f"the server purged transactions up to {first}"
            return None
        if not same:
            return "the server is another one"
        files = server.binlogs()
        if place["file"] not in files:
            return f"the server purged {place['file']}"
        if files[place["file"]] < int(place["pos"]):
            return f"the server was reset: {place['file']} is shorter than the log says"
        return None

    def _adopt(self, schema: str, table: str) -> None:
        """Take in a table that the log does not know; of others the stream tells."""
        reception = self._reception
        name = f"{schema}.{table}"
        known = self._journal.schemas.get(name)
        if known is None or name not in self._journal.copies:
            definition = self._server.definition(schema, table)
            if definition is not None:
                reception.filters.find(schema, table, definition.fields)  # refused at the start
                reception.registered(
                    shape_of(self.source, schema, table, definition.fields, definition.key)
                )
            return
        self._journal.ensure_table(known)
        held = self._journal.copies[name]
        reception.copies.adopt(name, declared_for(self.source, schema, table))
        if not known.key and held.get("state") == "done" and held.get("bag") != known.version:
            self._journal.record_copy(name, copied_again(held, "another form of its rows"))
        elif self._journal.copies[name] is not held:
            # Another choice of columns or masks: the shape is that of the declaration.
            reception.looks.add(name)

    # --- the loop ------------------------------------------------------------------------------

    def _loop(self) -> None:
        reception, stream = self._reception, self._stream
        assert stream is not None
        stopping = self._part.stopping
        while not stopping.is_set():
            if stream.wait(self._patience()):
                self._heard_at = self._clock.monotonic()
                for event in stream.receive():
                    reception.take(event)
                    if reception.transaction is None:
                        self._keyless.due()
                        if reception.requests:
                            self._answer()
                        if reception.group_since is not None and self._group_due():
                            reception.cut()
            if reception.transaction is None:
                reception.write_chunks()
                self._keyless.due()
                quiet = reception.group_since is not None and not stream.wait(0)
                if quiet and self._until_paced() <= 0:
                    reception.cut()
            if self._clock.monotonic() - self._heard_at > self.settings.silence_seconds:
                raise ServerUnreachableError(
                    "the server is silent",
                    detail=f"Not even a heartbeat for {self.settings.silence_seconds:.0f} s.",
                    hint="capture connects again and goes on where the log ends",
                )
            if not self._round():
                return

    def _patience(self) -> float:
        if self._reception.group_since is not None and self._reception.transaction is None:
            return max(min(self._until_paced(), 0.05), 0)
        return 0.02 if self._reception.copies.running else 0.05

    def _group_due(self) -> bool:
        reception = self._reception
        assert reception.group_since is not None
        if reception.group_rows >= self.settings.group_rows:
            return True
        waited = self._clock.monotonic() - reception.group_since
        return waited >= self.settings.group_seconds and self._until_paced() <= 0

    def _until_paced(self) -> float:
        passed = self._clock.monotonic() - self._reception.last_cut_at
        return self.settings.pace_seconds - passed

    def _round(self) -> bool:
        """What is done a few times a second; False to end this attempt."""
        reception = self._reception
        now = self._clock.monotonic()
        if now - self._last_round_at < ROUND_SECONDS:
            return True
        self._last_round_at = now
        if paused(self._part.directory, self.source.name):
            return False
        if reception.transaction is None and self._resume_done():
            self._follow_cascades()
            reception.copies.work(list(self._journal.copies))
            self._keyless.work()
            if now - self._looked_at >= self.settings.look_seconds or reception.looks:
                self._look_for_tables()
            idle = now - reception.last_cut_at >= self.settings.idle_cut_seconds
            moved = reception.position > reception.last_cut_position or self._journal.dirty
            if idle and moved:
                reception.cut()
        self._report()
        return True

    def _follow_cascades(self) -> None:
        """Have children of foreign keys read again, once the log has what told of them."""
        reception = self._reception
        if not any(state.get("cascades") for state in self._journal.copies.values()):
            return
        if reception.group_since is not None or self._journal.dirty:
            reception.cut()
        masked = frozenset(
            name for name in self._journal.copies if masks_of(self.source, *name.split(".", 1))
        )
        lost = list(reception.cascades.work(reception.copies, masked))
        if lost:
            reception._lost("a foreign key changed rows of it", lost)

    def _resume_done(self) -> bool:
        return self._reception.resume.part is None

    def _look_for_tables(self) -> None:
        """Take in tables that were created since, and forms that no row has told of yet."""
        reception = self._reception
        self._looked_at = self._clock.monotonic()
        tables = self._server.tables(self.source)
        self._missing = missing_tables(self.source, tables)
        looks, reception._looks = reception.looks, set()
        for schema, table in tables:
            name = f"{schema}.{table}"
            if name not in self._journal.copies:
                self._adopt(schema, table)
            elif name in looks:
                self._look_at(schema, table)
        self._seen_tables = tables

    def _look_at(self, schema: str, table: str) -> None:
        """A table was altered: if no row tells of its new form, the catalog does, once the
        stream has reached what the catalog knows."""
        reception = self._reception
        definition = self._server.definition(schema, table)
        end = place_number(*self._server.end())
        if definition is None:
            return
        if reception.position < end:
            reception.looks.add(f"{schema}.{table}")
            return
        shape = shape_of(self.source, schema, table, definition.fields, definition.key)
        known = self._journal.schemas.get(shape.name)
        if known is None or not known.same_shape(shape):
            reception.registered(shape)

    def _answer(self) -> None:
        """Requests for copies that came in the stream."""
        reception = self._reception
        requests, reception.requests = reception.requests, []
        for request in requests:
            if request.get("source") != self.source.name:
                continue
            for name, state in list(self._journal.copies.items()):
                if request["table"] not in ("*", name):
                    continue
                schema = self._journal.schemas.get(name)
                if schema is None or state.get("state") == "copying":
                    continue
                if schema.key:
                    reception.copies.again(name, request.get("where"), request.get("keys"))
                else:
                    again = copied_state(state)
                    self._journal.record_copy(name, again)
            if reception.group_since is None:
                reception.group_since = self._clock.monotonic()

    def _report(self) -> None:
        reception = self._reception
        now = self._clock.wall_ms()
        transaction = reception.transaction
        behind = transaction is not None
        waits = now - transaction.committed_ms if transaction is not None else 0
        freshness = max(waits, self._journal.latency_ms() or 0)
        metrics.gauge("tailrace_source_lag_bytes", "WAL not yet in the log", ["source"]).labels(
            source=self.source.name
        ).set(transaction.bytes if transaction is not None else 0)
        blocked = next(iter(reception.copies.blocked.values()), None) or self._missing
        error: Any = None if blocked is None else blocked.as_dict()
        if error is None and reception.alarms:
            error = next(iter(reception.alarms.values()))
        host, port = self._address.hosts[self._host]
        self._part.report(
            "running" if blocked is None else "lagging",
            freshness_ms=max(freshness, 0),
            lag=int(behind),
            position=self._journal.position_text(reception.position),
            server=f"{host}:{port}",
            file=f"{reception.file}:{reception.position & 0xFFFFFFFF}",
            gtid=None if reception.known is None else str(reception.known),
            copying=reception.copies.running,
            progress=reception.copies.progress,
            events=self._journal.events_written,
            alarms=sorted(reception.alarms),
            error=error,
        )

    def _close(self) -> None:
        self._keyless.close()
        self._reception.copies.close()
        self._reception.filters.close()
        if self._stream is not None:
            self._stream.close()
        self._server.connection.close()
        self._journal.close()


def known_of(server: Server, text: str) -> Known:
    return GtidState(text) if server.mariadb else GtidSet(text)


def copied_state(state: Any) -> dict[str, Any]:
    """How the copy of a table without a key begins when it is asked for: `bag` stays, so
    that its changes go on being told until it is written."""
    return {**copied_again(state, "asked for"), "state": "again"}


__all__ = ["BinlogLostError", "MySQLCapture", "Resume"]
