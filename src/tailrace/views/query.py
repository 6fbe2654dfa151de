"""SQL over the views: DuckDB in memory over Arrow scans of one read transaction.

Nothing but the views can be reached: no files, no extensions, no settings, and only
statements that read. A view's Arrow table is kept until the view changes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from tailrace.records.rows import python_rows, read_rows
from tailrace.records.tick import ViewInfo
from tailrace.views.errors import QueryError

if TYPE_CHECKING:
    from tailrace.views.reader import Page, Snapshot

FILTER_ROWS = 10_000
KEPT_BYTES = 512 << 20


class Engine:
    """One DuckDB; questions take turns."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._tables: dict[str, tuple[tuple[str, int], pa.Table]] = {}
        self._connection = _connect()

    def close(self) -> None:
        with self._guard:
            self._connection.close()
            self._tables.clear()

    def ask(
        self,
        snapshot: Snapshot,
        query: str,
        parameters: Sequence[object] | None,
        limit: int | None,
    ) -> Page:
        from tailrace.views.reader import Page

        table = self.table(snapshot, query, parameters)
        more = limit is not None and table.num_rows > limit
        return Page(python_rows(table.slice(0, limit)), "more" if more else None, snapshot.position)

    def table(
        self, snapshot: Snapshot, query: str, parameters: Sequence[object] | None = None
    ) -> pa.Table:
        """The answer to one SELECT as Arrow."""
        with self._guard:
            names = self._check(query)
            used = []
            try:
                for name in names:
                    if name in snapshot.state.views:
                        self._connection.register(name, self._scan(snapshot, name))
                        used.append(name)
                return self._answer(query, parameters)
            except duckdb.Error as reason:
                raise _query_error(reason, snapshot) from reason
            finally:
                for name in used:
                    self._connection.unregister(name)

    def filter(
        self, info: ViewInfo, rows: Iterator[tuple[bytes, bytes]], where: str
    ) -> Iterator[tuple[bytes, bytes]]:
        """Those of `rows` for which the condition holds, read as far as they are asked for."""
        try:
            statements = duckdb.extract_statements(f"SELECT 1 FROM batch WHERE ({where}\n)")
        except duckdb.Error as reason:
            raise QueryError(f"condition {where!r} cannot be read", detail=str(reason)) from reason
        if len(statements) != 1:
            raise QueryError(f"condition {where!r} is more than a condition")
        while batch := list(islice(rows, FILTER_ROWS)):
            table, refused = read_rows([value for _, value in batch], info.columns)
            if refused:
                out = {item.index for item in refused}
                batch = [item for index, item in enumerate(batch) if index not in out]
            numbered = table.append_column("__row", pa.array(range(table.num_rows), pa.int64()))
            with self._guard:
                try:
                    self._connection.register("batch", numbered)
                    found = self._connection.execute(
                        f"SELECT __row FROM batch WHERE ({where}\n) ORDER BY __row"
                    ).fetchall()
                except duckdb.Error as reason:
                    raise QueryError(
                        f"condition {where!r} cannot be answered",
                        detail=str(reason),
                        hint=f"columns: {', '.join(name for name, _ in info.columns)}",
                    ) from reason
                finally:
                    self._connection.unregister("batch")
            for (index,) in found:
                yield batch[index]

    def _check(self, query: str) -> set[str]:
        """Refuse what is not one reading statement; the tables it names."""
        try:
            statements = self._connection.extract_statements(query)
        except duckdb.Error as reason:
            raise QueryError("the SQL cannot be read", detail=str(reason)) from reason
        if len(statements) != 1:
            raise QueryError(f"{len(statements)} statements given", hint="ask one SELECT at a time")
        allowed = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
        if statements[0].type not in allowed:
            raise QueryError(
                f"{statements[0].type.name} is not a question",
                detail="Views are read-only; they follow their sources.",
                hint="change the source, or ask with SELECT",
            )
        try:
            return set(self._connection.get_table_names(query))
        except duckdb.Error as reason:
            raise QueryError("the SQL cannot be read", detail=str(reason)) from reason

    def _answer(self, query: str, parameters: Sequence[object] | None) -> pa.Table:
        relation = (
            self._connection.sql(query, params=list(parameters))
            if parameters
            else self._connection.sql(query)
        )
        table = relation.to_arrow_table()
        for index, column in enumerate(table.schema):
            # sum() of integers is a HUGEINT, which Arrow only knows as a decimal.
            if column.type == pa.decimal128(38, 0):
                with contextlib.suppress(pa.ArrowInvalid):
                    table = table.set_column(
                        index, column.name, table.column(index).cast(pa.int64())
                    )
        return table

    def _scan(self, snapshot: Snapshot, name: str) -> pa.Table:
        held = snapshot.view(name)
        stamp = (f"{held.store} {held.info.columns}", held.changed)
        kept = self._tables.get(name)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        table = snapshot.table(name)
        self._tables[name] = (stamp, table)
        while (
            len(self._tables) > 1 and sum(t.nbytes for _, t in self._tables.values()) > KEPT_BYTES
        ):
            self._tables.pop(next(other for other in self._tables if other != name))
        return table


def _connect() -> Any:
    connection = duckdb.connect(":memory:")
    for setting in (
        "SET threads = 2",
        "SET enable_external_access = false",
        "SET python_enable_replacements = false",
        "SET TimeZone = 'UTC'",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)
    return connection


def _query_error(reason: duckdb.Error, snapshot: Snapshot) -> QueryError:
    return QueryError(
        "the SQL cannot be answered",
        detail=str(reason).strip(),
        hint=f"views: {', '.join(snapshot.names) or 'none'}",
    )
