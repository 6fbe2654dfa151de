"""First copy and re-snapshot of tables while their changes stream.

A table is read in chunks by key, each in its own REPEATABLE READ transaction that also
asks which transactions it can see; then a mark goes into the WAL. When the stream reaches
the mark, every transaction visible to the chunk has been streamed, so the chunk's rows
may be written, except rows whose key was touched by a streamed transaction that the chunk
could *not* see: a commit is decoded before it becomes visible, and such a row is stale.
(The published watermark algorithm writes it, and last.)

A chunk's snapshot counts only when all transactions older than the gate have ended: they
may have written before the publication had the table, and are then not in the stream.

A large table is cut into ranges of keys, read by several connections at once. Ranges
cover every key there can be and do not overlap, so it does not matter when their borders
were found. Chunks of one range put their marks in order; those of different ranges do
not, and neither do their snapshots.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from psycopg import sql

from tailrace.clock import SYSTEM, Clock
from tailrace.sources.postgres.catalog import (
    CatalogTable,
    Connection,
    connect,
    key_as_text,
    one,
    read_tables,
)
from tailrace.sources.postgres.copy_socket import CopySocket
from tailrace.sources.postgres.pgoutput import Relation

PIECE_BYTES = 1 << 19
# A chunk of wide rows has fewer of them; one that grows past the second is cut off.
CHUNK_BYTES = 4 << 20
MOST_CHUNK_BYTES = 16 << 20
MARK_PREFIX = "tailrace.chunk"
# Ranges for each connection, so that none of them ends long before the others.
RANGES_EACH = 4
SAMPLE_ROWS = 20_000

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys behind `after` and not behind `until`, as Postgres's own texts; None where
    there is no bound."""

    after: Key | None = None
    until: Key | None = None

    @classmethod
    def read(cls, pair: Sequence[Sequence[str] | None]) -> KeyRange:
        """From the form in which a copy's progress is recorded."""
        after, until = (None if key is None else tuple(key) for key in pair)
        return cls(after, until)

    @property
    def record(self) -> list[list[str] | None]:
        return [None if key is None else list(key) for key in (self.after, self.until)]


WHOLE = KeyRange()


def without(ranges: Sequence[KeyRange], chunk: Chunk) -> list[KeyRange]:
    """What is left to read of `ranges` when `chunk` has been written."""
    left: list[KeyRange] = []
    for each in ranges:
        if each != chunk.range:
            left.append(each)
        elif chunk.rest is not None:
            left.append(chunk.rest)
    return left


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`pg_current_snapshot()`: which transactions a reader sees."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Snapshot:
        low, high, running = text.split(":")
        return cls(int(low), int(high), frozenset(int(x) for x in running.split(",") if x))

    def sees(self, xid: int) -> bool:
        """Whether the transaction with this 32-bit id had ended for the reader."""
        full = self.widen(xid)
        return full < self.xmax and full not in self.running

    def widen(self, xid: int) -> int:
        """The 64-bit id nearest to this snapshot that ends in these 32 bits."""
        full = (self.xmax & ~0xFFFFFFFF) | xid
        if full > self.xmax + 0x80000000:
            return full - 0x100000000
        if full < self.xmax - 0x80000000:
            return full + 0x100000000
        return full


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one table in key order, as whole lines of COPY's text form.

    `range` is where it was read from, `rest` what is left of that.
    """

    table: str
    mark: str
    catalog: CatalogTable
    snapshot: Snapshot
    block: bytes
    rows: int
    range: KeyRange
    rest: KeyRange | None

    def pieces(self, size: int = PIECE_BYTES) -> Iterator[bytes]:
        """The rows in pieces of whole lines of about `size` bytes."""
        start = 0
        while start < len(self.block):
            end = self.block.find(b"\n", min(start + size, len(self.block) - 1)) + 1
            yield self.block[start:end]
            start = end

    @property
    def lines(self) -> list[bytes]:
        """The rows singly, without their ends."""
        return self.block.split(b"\n")[:-1]


@dataclass(frozen=True, slots=True)
class _Task:
    """A range that a connection reads now, and the generation it belongs to."""

    generation: int
    range: KeyRange


class ChunkReader:
    """Reads one table chunk by chunk, with `connections` threads that have one each.

    At most `ahead` chunks are being read or wait for the stream to reach their marks.
    `reject` makes it read again what was not written.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        oid: int,
        *,
        gate: int,
        ranges: Sequence[KeyRange] = (WHOLE,),
        where: str | None = None,
        hidden: frozenset[str] = frozenset(),
        rows: int = 20_000,
        row_bytes: int = 0,
        ahead: int = 3,
        connections: int = 1,
        narrow: Callable[[Connection], str | None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.table = table
        self.error: BaseException | None = None
        self.gone = False
        # Whether transactions older than the gate are still open.
        self.too_early = False
        self.connections = connections
        # What there is to read; final before the first chunk is there.
        self.ranges = tuple(ranges)
        self._dsn = dsn
        self._oid = oid
        self._gate = gate
        self._where = where
        self._hidden = hidden
        self._most_rows = rows
        self._rows = self._fitting(row_bytes)
        self._ahead = max(ahead, connections)
        # Finds out, before anything is read, which rows are worth it.
        self._narrow = narrow
        self._clock = clock
        self._run = uuid.uuid4().hex[:12]
        self._changed = threading.Condition()
        self._generation = 0
        self._number = 0
        self._waiting: deque[KeyRange] = deque()
        self._reading: dict[_Task, Snapshot | None] = {}
        self._ready: dict[str, Chunk] = {}
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._start_thread(self._lead)

    def _start_thread(self, work: Callable[[Connection], None]) -> None:
        thread = threading.Thread(
            target=self._connected, args=(work,), name=f"copy {self.table}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _fitting(self, row_bytes: int) -> int:
        """How many rows of this size make a chunk."""
        return max(1, min(self._most_rows, CHUNK_BYTES // max(row_bytes, 1)))

    # --- for the capture loop ----------------------------------------------------------------

    def take(self, mark: str) -> Chunk | None:
        """The chunk with this mark; None if it belongs to an earlier run or was rejected."""
        with self._changed:
            chunk = self._ready.pop(mark, None)
            self._changed.notify_all()
        return chunk

    def snapshots(self) -> list[Snapshot] | None:
        """Those of all chunks on their way; None while one is not known yet."""
        with self._changed:
            found = [*self._reading.values(), *(c.snapshot for c in self._ready.values())]
        known = [snapshot for snapshot in found if snapshot is not None]
        return known if len(known) == len(found) else None

    def reject(self, left: Sequence[KeyRange] | None) -> None:
        """Forget every chunk on its way and read again what is left; None: everything."""
        with self._changed:
            self._generation += 1
            self._ready.clear()
            self._waiting = deque(self.ranges if left is None else left)
            self._changed.notify_all()

    def stop(self) -> None:
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(30)

    # --- in the threads ------------------------------------------------------------------------

    def _connected(self, work: Callable[[Connection], None]) -> None:
        try:
            connection = connect(self._dsn)
            try:
                work(connection)
            finally:
                connection.close()
        except BaseException as error:  # handed to the capture loop, which raises it
            if not self._stopped.is_set():
                self.error = error

    def _lead(self, connection: Connection) -> None:
        """Find out what to read, call the others, read."""
        if self._narrow is not None:
            more = self._narrowed(connection, self._narrow)
            if more is not None:
                self._where = more if self._where is None else f"({self._where}) AND {more}"
        if self.ranges == (WHOLE,) and self.connections > 1:
            self.ranges = self._split(connection)
        with self._changed:
            self._waiting = deque(self.ranges)
        for _ in range(min(self.connections, len(self.ranges)) - 1):
            self._start_thread(self._read_all)
        self._read_all(connection)

    def _split(self, connection: Connection) -> tuple[KeyRange, ...]:
        """Ranges of about as many rows each, by the keys of some blocks of the table."""
        found = read_tables(connection, self._oid)
        if not found:
            return self.ranges
        keys = sample_keys(connection, found[0])
        pieces = self.connections * RANGES_EACH
        borders = sorted({number * len(keys) // pieces for number in range(1, pieces)} - {0})
        points = list(dict.fromkeys(keys[number] for number in borders))
        return tuple(
            KeyRange(after, until)
            for after, until in zip([None, *points], [*points, None], strict=True)
        )

    def _next(self) -> _Task | None:
        """A range to read a chunk from; None when the reader stops."""
        with self._changed:
            while not self._stopped.is_set():
                if self._waiting and len(self._reading) + len(self._ready) < self._ahead:
                    task = _Task(self._generation, self._waiting.popleft())
                    self._reading[task] = None
                    return task
                # A rejected chunk may yet bring more.
                self._changed.wait(0.5)
        return None

    def _read_all(self, connection: Connection) -> None:
        copy = CopySocket(connection.pgconn)
        try:
            while (task := self._next()) is not None:
                chunk, whole = self._read(connection, copy, task)
                if chunk is None:
                    self.gone = True  # the table was dropped meanwhile
                    return
                too_early = self.too_early = chunk.snapshot.xmin < self._gate
                with self._changed:
                    self._reading.pop(task, None)
                    current = task.generation == self._generation
                    if current and too_early:
                        self._waiting.appendleft(task.range)
                    elif current:
                        self._ready[chunk.mark] = chunk
                if not whole:
                    # The rest of that COPY is nothing to wait for.
                    copy.close()
                    connection.close()
                    connection = connect(self._dsn)
                    copy = CopySocket(connection.pgconn)
                if current and too_early:
                    self._clock.sleep(0.02)
                elif current:
                    self._rows = self._fitting(len(chunk.block) // max(chunk.rows, 1))
                    self._put_mark(connection, task, chunk)
        finally:
            copy.close()
            connection.close()

    def _put_mark(self, connection: Connection, task: _Task, chunk: Chunk) -> None:
        connection.execute(
            "SELECT pg_logical_emit_message(true, %s, %s)",
            [MARK_PREFIX, f"{self.table}:{chunk.mark}"],
        )
        with self._changed:
            # Only now: chunks of one range put their marks in order.
            if chunk.rest is not None and task.generation == self._generation:
                self._waiting.appendleft(chunk.rest)
                self._changed.notify()

    def _narrowed(
        self, connection: Connection, narrow: Callable[[Connection], str | None]
    ) -> str | None:
        """Ask in a snapshot that counts."""
        while not self._stopped.is_set():
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                seen = Snapshot.parse(str(one(connection, "SELECT pg_current_snapshot()::text")))
                if seen.xmin >= self._gate:
                    return narrow(connection)
            finally:
                connection.execute("ROLLBACK")
            self._clock.sleep(0.02)
        return None

    def _read(
        self, connection: Connection, copy: CopySocket, task: _Task
    ) -> tuple[Chunk | None, bool]:
        """The next chunk of a range, and whether the connection has told everything; no chunk
        where there is no table any more."""
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        whole = False
        try:
            snapshot = Snapshot.parse(str(one(connection, "SELECT pg_current_snapshot()::text")))
            with self._changed:
                self._number += 1
                mark = f"{self._run}.{self._number}"
                if task in self._reading:
                    self._reading[task] = snapshot
            found = read_tables(connection, self._oid)
            if not found:
                return None, True
            catalog = found[0]
            wanted = self._rows
            query = chunk_query(catalog, task.range, self._where, wanted, self._hidden)
            copy.start(query.as_bytes(connection))
            pieces: list[bytes] = []
            size = 0
            whole = True
            for piece in copy.contents():
                pieces.append(piece)
                size += len(piece)
                if size > MOST_CHUNK_BYTES:
                    whole = False
                    break
            block = b"".join(pieces)
        finally:
            if whole:
                connection.execute("ROLLBACK")
        rows = block.count(b"\n")
        rest = None
        if rows == wanted or not whole:
            last = block[block.rfind(b"\n", 0, -1) + 1 : -1]
            rest = KeyRange(key_text(catalog, last), task.range.until)
            if rest.after == rest.until:
                rest = None
        return Chunk(self.table, mark, catalog, snapshot, block, rows, task.range, rest), whole


def sample_keys(connection: Connection, table: CatalogTable) -> list[Key]:
    """Keys from random blocks of a table, in order; none of an empty one."""
    relation = table.relation
    size = row_estimate(connection, relation.id)[0]
    share = min(100.0, 100.0 * SAMPLE_ROWS / max(size, 1))
    key = sql.SQL(", ").join([sql.Identifier(name) for name in table.key])
    query = sql.SQL("SELECT {} FROM {} TABLESAMPLE SYSTEM ({}) ORDER BY {}").format(
        key_as_text(table.key), from_clause(table), sql.Literal(share), key
    )
    return [tuple(str(part) for part in row) for row in connection.execute(query)]


_ESTIMATE = """
WITH RECURSIVE parts (oid) AS (
  SELECT %s::oid UNION ALL
  SELECT i.inhrelid FROM parts p JOIN pg_inherits i ON i.inhparent = p.oid
  JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition)
SELECT coalesce(sum(CASE WHEN c.reltuples < 0 THEN pg_stat_get_live_tuples(c.oid)
                         ELSE c.reltuples END), 0)::int8,
       coalesce(sum(c.relpages + coalesce(t.relpages, 0)), 0)::int8 * 8192
FROM parts p JOIN pg_class c ON c.oid = p.oid LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
WHERE c.relkind = 'r'
"""


def row_estimate(connection: Connection, oid: int) -> tuple[int, int]:
    """(rows, bytes of a row) as the server guesses them for a table and its partitions, 0
    if it cannot. Asks the catalog alone, which nobody's lock on the table keeps waiting."""
    row = connection.execute(_ESTIMATE.encode(), [oid]).fetchone()
    rows, size = (0, 0) if row is None else (int(str(row[0])), int(str(row[1])))
    return rows, size // rows if rows else 0


def from_clause(table: CatalogTable) -> sql.Composed:
    """A table without those that inherit from it, which are captured by themselves;
    partitions are parts of it."""
    relation = table.relation
    name = sql.Identifier(relation.schema, relation.table)
    return sql.SQL("{}").format(name) if table.partitioned else sql.SQL("ONLY {}").format(name)


def chunk_query(
    catalog: CatalogTable,
    within: KeyRange,
    where: str | None,
    rows: int,
    hidden: frozenset[str] = frozenset(),
) -> sql.Composed:
    """COPY of the first `rows` rows of a range; hidden columns are left empty."""
    relation = catalog.relation
    key = sql.SQL(", ").join([sql.Identifier(name) for name in catalog.key])
    conditions: list[sql.Composable] = []
    for sign, bound in (">", within.after), ("<=", within.until):
        if bound is not None:
            values = sql.SQL(", ").join([sql.Literal(text) for text in bound])
            # An untyped literal takes the type of the column it is compared with.
            conditions.append(sql.SQL("ROW({}) {} ROW({})").format(key, sql.SQL(sign), values))
    if where is not None:
        conditions.append(sql.SQL("({})").format(sql.SQL(where)))
    query = sql.SQL("COPY (SELECT {} FROM {}").format(
        select_list(relation, hidden), from_clause(catalog)
    )
    if conditions:
        query += sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions)
    return query + sql.SQL(" ORDER BY {} LIMIT {}) TO STDOUT").format(key, sql.Literal(rows))


def select_list(relation: Relation, hidden: frozenset[str]) -> sql.Composed:
    return sql.SQL(", ").join(
        [sql.SQL("''") if c.name in hidden else sql.Identifier(c.name) for c in relation.columns]
    )


def key_text(catalog: CatalogTable, line: bytes) -> Key:
    """The key of a COPY line as Postgres's own text, to be quoted into the next query."""
    from tailrace.sources.postgres.decoder import unescape

    fields = line.split(b"\t")
    names = [c.name for c in catalog.relation.columns]
    return tuple(unescape(fields[names.index(name)]).decode() for name in catalog.key)
