"""Reads held rows again by key, one table at a time, on a connection of its own.

A round reads the oldest keys of a table in one snapshot, as a copy reads a chunk; its rows
count when the stream has reached the round's mark. Rows that the snapshot could not show
yet are left for a later round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tailrace.clock import Clock
from tailrace.sources.journal import IncompleteRow
from tailrace.sources.postgres import catalog
from tailrace.sources.postgres.copy import Chunk, ChunkReader
from tailrace.sources.postgres.incomplete_rows import HeldRow, IncompleteRows

# Keys read in one round: they become one SQL condition.
ROUND_KEYS = 500
SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
# Key types whose JSON is read back as the same value.
_PLAIN_KEYS = (
    "smallint", "integer", "bigint", "text", "uuid", "boolean", "character", "numeric",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Round:
    table: str
    reader: ChunkReader
    asked: Collection[bytes]
    rows_before: int


class Refill:
    """At most one round is on its way. A round that completes nothing makes the next wait."""

    def __init__(
        self,
        dsn: str,
        incomplete: IncompleteRows,
        clock: Clock,
        hidden: Callable[[catalog.CatalogTable], frozenset[str]],
        condition: Callable[[catalog.CatalogTable], str | None],
        key: Callable[[str], Sequence[str]],
    ) -> None:
        self._dsn = dsn
        self._incomplete = incomplete
        self._clock = clock
        self._hidden = hidden
        self._condition = condition
        self._key = key
        self._round: _Round | None = None
        self._pause = SHORTEST_PAUSE
        self._next_at = 0.0

    def begin(self, tables: Iterable[catalog.CatalogTable]) -> None:
        """Start a round for the first of these tables that holds rows with a known key."""
        if self._round is not None or self._clock.monotonic() < self._next_at:
            return
        for table in tables:
            held = self._incomplete.keys(table.name)
            asked = dict(_readable(held)) if held and table.key else {}
            if asked:
                self._read(table, asked, len(held))
                return

    def _read(
        self, table: catalog.CatalogTable, asked: Mapping[bytes, Sequence[str]], held: int
    ) -> None:
        columns = self._key(table.name)
        conditions = [keys_condition(columns, list(asked.values())), self._condition(table)]
        reader = ChunkReader(
            self._dsn,
            table.name,
            table.relation.id,
            gate=0,
            where=" AND ".join(f"({each})" for each in conditions if each),
            hidden=self._hidden(table),
            rows=len(asked) + 1,
            ahead=1,
            clock=self._clock,
        )
        self._round = _Round(table.name, reader, asked.keys(), held)

    @property
    def ended(self) -> tuple[str, BaseException | None] | None:
        """The table whose round ended without a row: an error, or None when it is gone."""
        if self._round is None:
            return None
        reader = self._round.reader
        if reader.error is not None or reader.gone:
            return self._round.table, reader.error
        return None

    def take(self, table: str, mark: str) -> tuple[Chunk, Collection[bytes]] | None:
        """The chunk of the running round with this mark, and the keys that were asked for."""
        if self._round is None or self._round.table != table:
            return None
        chunk = self._round.reader.take(mark)
        return None if chunk is None else (chunk, self._round.asked)

    def written(self, chunk: Chunk) -> None:
        """What a chunk completes has been written: end the round if it was its last."""
        assert self._round is not None
        if chunk.rest is not None:
            return
        idle = len(self._incomplete.keys(self._round.table)) >= self._round.rows_before
        self._pause = min(self._pause * 2, LONGEST_PAUSE) if idle else SHORTEST_PAUSE
        self._next_at = self._clock.monotonic() + self._pause
        self.stop()

    def stop(self, table: str | None = None) -> None:
        """End the round, or only one of this table."""
        if self._round is not None and table in (None, self._round.table):
            self._round.reader.stop()
            self._round = None


def _readable(held: Mapping[bytes, HeldRow]) -> list[tuple[bytes, tuple[str, ...]]]:
    found: list[tuple[bytes, tuple[str, ...]]] = []
    for key, row in held.items():
        if row.record.key is not None:
            found.append((key, row.record.key))
            if len(found) == ROUND_KEYS:
                break
    return found


def keys_condition(columns: Sequence[str], keys: Sequence[Sequence[str]]) -> str:
    """The SQL condition that a row has one of these keys."""

    def row(parts: Sequence[str]) -> str:
        return f"({', '.join(parts)})"

    names = row(['"' + name.replace('"', '""') + '"' for name in columns])
    # Literals without a type take that of the column.
    listed = [row(["'" + text.replace("'", "''") + "'" for text in key]) for key in keys]
    return f"{names} IN ({', '.join(listed)})"


def plain_keys(types: Iterable[str]) -> bool:
    """Whether keys of these types can be had from their JSON."""
    return all(kind.startswith(_PLAIN_KEYS) and not kind.endswith("]") for kind in types)


def incomplete_keys(
    connection: catalog.Connection, table: catalog.CatalogTable,
    keys: Sequence[Mapping[str, object]], now_ms: int,
) -> list[IncompleteRow]:  # fmt: skip
    """Rows to hold, by their record keys alone."""
    texts = catalog.key_texts(connection, table, keys)
    return [IncompleteRow("u", tuple(text), now_ms) for text in texts]
