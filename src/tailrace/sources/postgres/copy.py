"""First copy and re-snapshot of tables while their changes stream.

A table is read in chunks by key, each in its own REPEATABLE READ transaction that also
asks which transactions it can see; then a mark goes into the WAL. When the stream reaches
the mark, every transaction visible to the chunk has been streamed, so the chunk's rows
may be written, except rows whose key was touched by a streamed transaction that the chunk
could *not* see: a commit is decoded before it becomes visible, and such a row is stale.
(The published watermark algorithm writes it, and last.)

A chunk's snapshot counts only when all transactions older than the gate have ended: they
may have written before the publication had the table, and are then not in the stream.
"""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from psycopg import sql

from tailrace.clock import SYSTEM, Clock
from tailrace.sources.postgres.catalog import CatalogTable, Connection, connect, one, read_tables
from tailrace.sources.postgres.copy_socket import CopySocket
from tailrace.sources.postgres.pgoutput import Relation

PIECE_BYTES = 1 << 19
MARK_PREFIX = "tailrace.chunk"


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

    `after` is the key to go on behind, as text values; `last` says that none follow.
    """

    table: str
    mark: str
    catalog: CatalogTable
    snapshot: Snapshot
    block: bytes
    rows: int
    after: tuple[str, ...] | None
    last: bool

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


class ChunkReader:
    """Reads one table chunk by chunk in a thread of its own.

    At most `ahead` chunks wait for the stream to reach their marks. `reject` makes it
    read again from an earlier key.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        oid: int,
        *,
        gate: int,
        after: Sequence[str] | None,
        where: str | None,
        hidden: frozenset[str] = frozenset(),
        rows: int = 20_000,
        ahead: int = 3,
        narrow: Callable[[Connection], str | None] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.table = table
        self.error: BaseException | None = None
        self.gone = False
        self._dsn = dsn
        self._oid = oid
        self._gate = gate
        self._after = None if after is None else tuple(after)
        self._where = where
        self._hidden = hidden
        self._rows = rows
        # Finds out, before anything is read, which rows are worth it.
        self._narrow = narrow
        self._clock = clock
        self._permits = threading.Semaphore(ahead)
        self._run = uuid.uuid4().hex[:12]
        self._guard = threading.Lock()
        self._ready: dict[str, Chunk] = {}
        self._restart: queue.SimpleQueue[tuple[str, ...] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"copy {table}", daemon=True)
        self._thread.start()

    def take(self, mark: str) -> Chunk | None:
        """The chunk with this mark; None if it belongs to an earlier run or was rejected."""
        with self._guard:
            chunk = self._ready.pop(mark, None)
        if chunk is not None:
            self._permits.release()
        return chunk

    def reject(self, after: tuple[str, ...] | None) -> None:
        """Forget every chunk that waits and read again behind `after`."""
        with self._guard:
            waiting = len(self._ready)
            self._ready.clear()
            self._restart.put(after)
        for _ in range(waiting):
            self._permits.release()

    def stop(self) -> None:
        self._stopped.set()
        self._permits.release()
        self._thread.join(30)

    def _work(self) -> None:
        try:
            connection = connect(self._dsn)
            copy = CopySocket(connection.pgconn)
            try:
                self._read_all(connection, copy)
            finally:
                copy.close()
                connection.close()
        except BaseException as error:  # handed to the capture loop, which raises it
            self.error = error

    def _read_all(self, connection: Connection, copy: CopySocket) -> None:
        after = self._after
        if self._narrow is not None:
            more = self._narrowed(connection, self._narrow)
            if more is not None:
                self._where = more if self._where is None else f"({self._where}) AND {more}"
        number = 0
        finished = False
        while not self._stopped.is_set():
            if finished:
                # Wait: a rejected chunk may yet send us back.
                try:
                    after = self._restart.get(timeout=0.2)
                except queue.Empty:
                    continue
                finished = False
            self._permits.acquire()
            while not self._restart.empty():
                after = self._restart.get()
            if self._stopped.is_set():
                return
            chunk = self._read(connection, copy, after, f"{self._run}:{number}")
            number += 1
            if chunk is None or chunk.snapshot.xmin < self._gate:
                self._permits.release()
                if chunk is None:
                    self.gone = True  # the table was dropped meanwhile
                    return
                self._clock.sleep(0.02)
                continue
            with self._guard:
                if not self._restart.empty():
                    self._permits.release()
                    continue
                self._ready[chunk.mark] = chunk
            connection.execute(
                "SELECT pg_logical_emit_message(true, %s, %s)",
                [MARK_PREFIX, f"{self.table}:{chunk.mark}"],
            )
            after = chunk.after
            finished = chunk.last

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
        self,
        connection: Connection,
        copy: CopySocket,
        after: tuple[str, ...] | None,
        mark: str,
    ) -> Chunk | None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            snapshot = Snapshot.parse(str(one(connection, "SELECT pg_current_snapshot()::text")))
            found = read_tables(connection, self._oid)
            if not found:
                return None
            catalog = found[0]
            query = chunk_query(catalog, after, self._where, self._rows, self._hidden)
            copy.start(query.as_bytes(connection))
            block = b"".join(copy.contents())
        finally:
            connection.execute("ROLLBACK")
        rows = block.count(b"\n")
        behind = after
        if rows:
            behind = key_text(catalog, block[block.rfind(b"\n", 0, -1) + 1 : -1])
        return Chunk(self.table, mark, catalog, snapshot, block, rows, behind, rows < self._rows)


def chunk_query(
    catalog: CatalogTable,
    after: tuple[str, ...] | None,
    where: str | None,
    rows: int,
    hidden: frozenset[str] = frozenset(),
) -> sql.Composed:
    """COPY of the next `rows` rows behind the key `after`; hidden columns are left empty."""
    relation = catalog.relation
    key = sql.SQL(", ").join([sql.Identifier(name) for name in catalog.key])
    conditions: list[sql.Composable] = []
    if after is not None:
        values = sql.SQL(", ").join([sql.Literal(text) for text in after])
        # An untyped literal takes the type of the column it is compared with.
        conditions.append(sql.SQL("ROW({}) > ROW({})").format(key, values))
    if where is not None:
        conditions.append(sql.SQL("({})").format(sql.SQL(where)))
    query = sql.SQL("COPY (SELECT {} FROM {}").format(
        select_list(relation, hidden), sql.Identifier(relation.schema, relation.table)
    )
    if conditions:
        query += sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions)
    return query + sql.SQL(" ORDER BY {} LIMIT {}) TO STDOUT").format(key, sql.Literal(rows))


def select_list(relation: Relation, hidden: frozenset[str]) -> sql.Composed:
    return sql.SQL(", ").join(
        [sql.SQL("''") if c.name in hidden else sql.Identifier(c.name) for c in relation.columns]
    )


def key_text(catalog: CatalogTable, line: bytes) -> tuple[str, ...]:
    """The key of a COPY line as Postgres's own text, to be quoted into the next query."""
    from tailrace.sources.postgres.decoder import unescape

    fields = line.split(b"\t")
    names = [c.name for c in catalog.relation.columns]
    return tuple(unescape(fields[names.index(name)]).decode() for name in catalog.key)
