"""SQL over the views: DuckDB in memory over Arrow scans of one read transaction.

Nothing but the views can be reached: no files, no extensions, no settings, and only
statements that read, in a read-only transaction. A question has its own connection, so
that a long one holds up nobody, and bounds on time and memory. A view's Arrow table is
kept until the view changes.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from tailrace.clock import SYSTEM
from tailrace.records.rows import python_rows, read_rows
from tailrace.records.tick import ViewInfo
from tailrace.serving.errors import (
    QueryError,
    QueryTimeoutError,
    QueryTooLargeError,
    ViewsError,
)

if TYPE_CHECKING:
    from tailrace.serving.reader import Page, Snapshot

FILTER_ROWS = 10_000
READ_ROWS = 10_000
KEPT_BYTES = 512 << 20
ANSWER_SECONDS = 30.0
MEMORY = "1GB"
DEEPEST = 200


class Engine:
    """One DuckDB. Safe to use from several threads."""

    def __init__(self, *, seconds: float = ANSWER_SECONDS) -> None:
        self._guard = threading.Lock()
        self._tables: dict[str, tuple[tuple[str, int], pa.Table]] = {}
        self._connection = _connect()
        self._seconds = seconds

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
        most_bytes: int | None = None,
    ) -> Page:
        """A page of the answer: of a longer one `limit` rows, or those that fit `most_bytes`."""
        from tailrace.serving.reader import Page

        wanted = None if limit is None else limit + 1
        table, cut = self._table(snapshot, query, parameters, wanted, most_bytes)
        more = cut or (limit is not None and table.num_rows > limit)
        return Page(python_rows(table.slice(0, limit)), "more" if more else None, snapshot.position)

    def table(
        self,
        snapshot: Snapshot,
        query: str,
        parameters: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """The answer to one SELECT as Arrow; of a longer one the first `limit` rows."""
        return self._table(snapshot, query, parameters, limit, None)[0]

    def _table(
        self,
        snapshot: Snapshot,
        query: str,
        parameters: Sequence[object] | None,
        limit: int | None,
        most_bytes: int | None,
    ) -> tuple[pa.Table, bool]:
        _check_depth(query)
        with self._question(SYSTEM.monotonic() + self._seconds) as connection:
            for name in self._check(connection, query, snapshot.state.views):
                connection.register(name, self._scan(snapshot, name))
            try:
                connection.execute("BEGIN TRANSACTION READ ONLY")
                return _answer(connection, query, parameters, limit, most_bytes)
            except (duckdb.Error, OSError) as reason:  # the latter while an answer is read
                if "INTERRUPT" in str(reason):
                    raise duckdb.InterruptException(str(reason)) from reason
                raise _query_error(reason, snapshot) from reason

    def filter(
        self, info: ViewInfo, rows: Iterator[tuple[bytes, bytes]], where: str
    ) -> Iterator[tuple[bytes, bytes]]:
        """Those of `rows` for which the condition holds, read as far as they are asked for."""
        _check_depth(where)
        until = SYSTEM.monotonic() + self._seconds
        while batch := list(islice(rows, FILTER_ROWS)):
            table, refused = read_rows([value for _, value in batch], info.columns)
            if refused:
                out = {item.index for item in refused}
                batch = [item for index, item in enumerate(batch) if index not in out]
            numbered = table.append_column("__row", pa.array(range(table.num_rows), pa.int64()))
            with self._question(until) as connection:
                try:
                    # As an expression, not as part of a statement: there is no way out of it.
                    kept = connection.from_arrow(numbered).filter(where)
                    found = sorted(kept.project("__row").fetchall())
                except duckdb.InterruptException:
                    raise
                except duckdb.Error as reason:
                    raise QueryError(
                        f"condition {where!r} cannot be answered",
                        detail=str(reason),
                        hint=f"columns: {', '.join(name for name, _ in info.columns)}",
                    ) from reason
            for (index,) in found:
                yield batch[index]

    @contextlib.contextmanager
    def _question(self, until: float) -> Iterator[Any]:
        """A connection of its own, interrupted when its time is over."""
        with self._guard:
            connection = self._connection.cursor()
        timer = threading.Timer(max(0.0, until - SYSTEM.monotonic()), connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield connection
        except duckdb.InterruptException as reason:
            raise QueryTimeoutError(
                f"the question was not answered in {self._seconds:g} s",
                hint="ask for less, or put the answer into a view of its own",
            ) from reason
        finally:
            timer.cancel()
            timer.join()
            connection.close()

    def _check(self, connection: Any, query: str, views: Iterable[str]) -> list[str]:
        """Refuse what is not one reading statement; those of `views` that it reads."""
        try:
            statements = connection.extract_statements(query)
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
            named = {name.casefold() for name in connection.get_table_names(query)}
        except duckdb.BinderException:
            # It binds the query to tables without columns, in which USING and NATURAL find
            # none; whatever the text mentions is then made known.
            text = query.casefold()
            return [name for name in views if name.casefold() in text]
        except duckdb.Error as reason:
            raise QueryError("the SQL cannot be read", detail=str(reason)) from reason
        return [name for name in views if name.casefold() in named]

    def _scan(self, snapshot: Snapshot, name: str) -> pa.Table:
        held = snapshot.asked(name)
        stamp = (f"{held.store} {held.info.columns}", held.changed)
        kept = self._tables.get(name)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        table = snapshot.table(name)
        with self._guard:
            self._tables[name] = (stamp, table)
            while (
                len(self._tables) > 1
                and sum(t.nbytes for _, t in self._tables.values()) > KEPT_BYTES
            ):
                self._tables.pop(next(other for other in self._tables if other != name))
        return table


def _answer(
    connection: Any,
    query: str,
    parameters: Sequence[object] | None,
    limit: int | None,
    most_bytes: int | None,
) -> tuple[pa.Table, bool]:
    """The rows, and whether there are more than fit `most_bytes`."""
    relation = connection.sql(query, params=list(parameters) if parameters else None)
    reader = relation.to_arrow_reader(READ_ROWS)
    batches: list[pa.RecordBatch] = []
    rows, left, cut = 0, most_bytes, False
    while not cut and (limit is None or rows < limit):
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        if left is not None:
            fitting = _fitting(batch, left)
            cut = fitting < batch.num_rows
            batch = batch.slice(0, fitting)
            left -= batch.nbytes
        batches.append(batch)
        rows += batch.num_rows
    if cut and not rows:
        raise QueryTooLargeError(
            f"one row of the answer is larger than {most_bytes:,} bytes",
            hint="ask for fewer or shorter columns",
        )
    table = pa.Table.from_batches(batches, reader.schema).slice(0, limit)
    for index, column in enumerate(table.schema):
        # sum() of integers is a HUGEINT, which Arrow only knows as a decimal.
        if column.type == pa.decimal128(38, 0):
            with contextlib.suppress(pa.ArrowInvalid):
                table = table.set_column(index, column.name, table.column(index).cast(pa.int64()))
    return table, cut


def _fitting(batch: pa.RecordBatch, most_bytes: int) -> int:
    """How many of the first rows take at most so many bytes."""
    if batch.nbytes <= most_bytes:
        return int(batch.num_rows)
    low, high = 0, int(batch.num_rows)  # `low` rows fit, `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        if batch.slice(0, middle).nbytes <= most_bytes:
            low = middle
        else:
            high = middle
    return low


def _connect() -> Any:
    connection = duckdb.connect(":memory:")
    for setting in (
        "SET threads = 2",
        f"SET memory_limit = '{MEMORY}'",
        "SET temp_directory = ''",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET enable_external_access = false",
        "SET python_enable_replacements = false",
        "SET GLOBAL TimeZone = 'UTC'",  # a cursor has its own session, with the global settings
        "SET lock_configuration = true",
    ):
        connection.execute(setting)
    return connection


def _check_depth(text: str) -> None:
    """The parser takes seconds for brackets in thousands, and nothing interrupts it."""
    depth = 0
    for letter in text:
        if letter in "([{":
            depth += 1
            if depth > DEEPEST:
                raise QueryError(f"the SQL is nested more than {DEEPEST} deep")
        elif letter in ")]}":
            depth -= 1


def _query_error(reason: Exception, snapshot: Snapshot) -> ViewsError:
    absent = re.search(r"Table with name (.+?) does not exist", str(reason))
    if absent is not None:  # what DuckDB would suggest are tables of its own
        name, names = absent[1], snapshot.names
        if (waits := snapshot.why_absent(name)) is not None:
            return waits
        near = difflib.get_close_matches(name, names, 1)
        return QueryError(
            f"there is no view {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"views: {', '.join(names) or 'none'}",
        )
    return QueryError(
        "the SQL cannot be answered",
        detail=str(reason).strip(),
        hint=f"views: {', '.join(snapshot.names) or 'none'}",
    )
