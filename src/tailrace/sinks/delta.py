"""A Delta table: the current rows, or every version of them (SCD2).

A batch is one Delta commit that carries an application transaction (`tailrace.<sink>`,
a number that grows) and the position in its metadata; both or neither become visible.
`open` makes an empty commit under the next epoch, so that a writer that was replaced
finds another number than the one it wrote last, and Delta itself refuses two writers of
one application transaction at once.

In "history" mode a row is valid from `valid_from` until before `valid_to` (NULL: still),
`current` marks the newest; times are those of the log's records.

On a local path a second copy of current rows is a second directory, and a switch
exchanges the two (`directories`); an object store has no such thing, and is filled again
in place. A history is gone on with, never built anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    SchemaMismatchError,
    TableNotFoundError,
)

from tailrace.config import resolve
from tailrace.records.rows import python_rows
from tailrace.sinks import directories
from tailrace.sinks.base import AT, DELETED, Batch, Shape, Sink, SinkPosition, decode_position
from tailrace.sinks.declare import Delta
from tailrace.sinks.errors import (
    RowsRefusedError,
    ShapeError,
    SinkError,
    SinkFencedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import quoted

EPOCH_BITS = 32
POSITION = "tailrace.position"
OWNER = "tailrace.sink"
VALIDITY = pa.schema(
    [
        ("valid_from", pa.timestamp("us", "UTC")),
        ("valid_to", pa.timestamp("us", "UTC")),
        ("current", pa.bool_()),
    ]
)


class DeltaSink:
    """A table anywhere: one copy of it."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Delta)
        self._copy = copy
        self._declaration = copy.declaration
        self._history = copy.declaration.mode == "history"
        if self._history:
            self.wants = "every"  # type: ignore[misc]
        declared = copy.declaration.path
        text = str(declared) if isinstance(declared, Path) else resolve(declared)
        self._uri = text if "://" in text else str(surroundings.path(text))
        self._application = f"tailrace.{copy.name}"
        self._table: DeltaTable | None = None
        self._number = 0
        self._wider: dict[str, pa.DataType] = {}

    @property
    def remote(self) -> bool:
        return "://" in self._uri

    @property
    def keeps_history(self) -> bool:
        return self._history

    def open(self, shape: Shape) -> None:
        with self._errors():
            self._prepare()
            table = self._load()
            schema = self._schema(shape)
            held = None if table is None else self._found(table)
            number = 0 if table is None else table.transaction_version(self._application) or 0
            self._number = ((number >> EPOCH_BITS) + 1) << EPOCH_BITS
            if table is not None:
                self._check_shape(table, schema)
            self._wider = {} if table is None else _wider(table, schema)
            write_deltalake(
                self._uri if table is None else table,
                self._as_held(schema.empty_table()),
                mode="append",
                schema_mode="merge",
                partition_by=list(self._declaration.partition_by) or None,
                storage_options=self._options(),
                commit_properties=self._commit(held),
            )
            self._table = self._load()

    def _prepare(self) -> None:
        """What must be in order before the table is looked at."""

    def _check_place(self) -> None:
        """Raise `SinkFencedError` if another table has taken the place of ours."""

    def position(self) -> SinkPosition | None:
        with self._errors():
            table = self._load()
            return None if table is None else decode_position(self._found(table))

    def apply(self, batch: Batch) -> None:
        with self._errors():
            table = self._table
            assert table is not None
            self._check_place()
            table.update_incremental()
            self._check_owner(table)
            fresh = self._found(table) is None
            self._number += 1
            batch = replace(batch, changes=self._as_held(batch.changes))
            properties = self._commit(batch.position.encode())
            if self._history:
                self._merge_history(table, batch, properties)
            elif batch.changes.num_rows == 0 or not batch.shape.keyed or fresh:
                # The first rows of a table have nothing to be merged with.
                write_deltalake(table, batch.upserts, mode="append", commit_properties=properties)
            elif batch.shape.one_row:
                write_deltalake(
                    table, batch.upserts, mode="overwrite", commit_properties=properties
                )
            else:
                self._merge(table, batch, properties)
            if table.transaction_version(self._application) != self._number:
                # A merge that changes nothing makes no commit; the position must move.
                empty = self._as_held(self._schema(batch.shape).empty_table())
                write_deltalake(table, empty, mode="append", commit_properties=properties)

    def close(self) -> None:
        self._table = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        with self._errors():
            table = self._load()
            if table is None:
                return
            names = list(shape.names)
            columns = [*names, *(["current"] if self._history else [])]
            for batch in table.to_pyarrow_dataset().to_batches(columns=columns):
                rows = pa.Table.from_batches([batch])
                if self._history:
                    rows = rows.filter(rows["current"])
                yield rows.select(names).cast(shape.schema)

    # ------------------------------------------------------------------ commits

    def _merge(self, table: DeltaTable, batch: Batch, properties: CommitProperties) -> None:
        names = list(batch.shape.names)
        source = batch.changes.select([*names, DELETED])
        columns = {quoted(name): f"s.{quoted(name)}" for name in names}
        (
            table.merge(
                source,
                _same_key(batch),
                source_alias="s",
                target_alias="t",
                commit_properties=properties,
            )
            .when_matched_delete(f"s.{DELETED}")
            .when_matched_update(columns)
            .when_not_matched_insert(columns, predicate=f"NOT s.{DELETED}")
            .execute()
        )

    def _merge_history(self, table: DeltaTable, batch: Batch, properties: CommitProperties) -> None:
        source = _versions(batch)
        names = [*batch.shape.names, *VALIDITY.names]
        (
            table.merge(
                source,
                f"s.__close AND t.current AND {_same_key(batch)}",
                source_alias="s",
                target_alias="t",
                commit_properties=properties,
            )
            .when_matched_update({"valid_to": "s.valid_to", "current": "false"})
            .when_not_matched_insert(
                {quoted(name): f"s.{quoted(name)}" for name in names}, predicate="NOT s.__close"
            )
            .execute()
        )

    def _commit(self, position: str | None) -> CommitProperties:
        metadata = {OWNER: self._copy.name}
        if position is not None:
            metadata[POSITION] = position
        return CommitProperties(
            custom_metadata=metadata,
            app_transactions=[Transaction(self._application, self._number)],
        )

    def _found(self, table: DeltaTable) -> str | None:
        """The position in the newest commit of ours."""
        if table.transaction_version(self._application) is None:
            return None
        for limit in (20, None):
            for entry in table.history(limit):
                if entry.get(OWNER) == self._copy.name:
                    found: str | None = entry.get(POSITION)
                    return found
        raise SinkError(
            f"delta table {self._uri} has lost its position",
            detail="Our commits are no longer in its log (cleaned up).",
            hint=f"`tailrace sink replay {self._copy.name}` fills it again",
        )

    def _check_owner(self, table: DeltaTable) -> None:
        held = table.transaction_version(self._application)
        if held != self._number:
            raise self._fenced(f"Our last transaction is {self._number}, the table has {held}.")

    def _fenced(self, detail: str) -> SinkFencedError:
        return SinkFencedError(
            f"another writer took sink {self._copy.name!r} over",
            detail=detail,
            hint="run a project only once",
        )

    # ------------------------------------------------------------------ the table

    def _options(self) -> dict[str, str] | None:
        return {k: resolve(v) for k, v in self._declaration.options.items()} or None

    def _load(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._uri, storage_options=self._options())
        except TableNotFoundError:
            return None

    def _schema(self, shape: Shape) -> pa.Schema:
        fields = [pa.field(f.name, f.type) for f in shape.schema]
        return pa.schema([*fields, *VALIDITY]) if self._history else pa.schema(fields)

    def _check_shape(self, table: DeltaTable, wanted: pa.Schema) -> None:
        held = table.to_pyarrow_dataset().schema
        for field in wanted:
            index = held.get_field_index(field.name)
            kind = held.field(index).type if index >= 0 else field.type
            if not _fits(kind, field.type) and not _takes(kind, field.type):
                raise ShapeError(
                    f"column {field.name!r} of delta table {self._uri} has another type",
                    detail=f"It is {kind}, the values are {field.type}. Nothing is lost: the copy "
                    "waits and goes on from here.",
                    hint="change the column's type there, or remove the table and "
                    f"`tailrace sink replay {self._copy.name}`; or cast the value in the query",
                )

    def _as_held(self, rows: pa.Table) -> pa.Table:
        """Rows with the table's own types where those are wider."""
        for name, kind in self._wider.items():
            index = rows.schema.get_field_index(name)
            rows = rows.set_column(index, pa.field(name, kind), rows[name].cast(kind))
        return rows

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"delta table {self._uri}"
        try:
            yield
        except CommitFailedError as reason:
            raise SinkFencedError(
                f"another writer committed to {where} at the same time",
                detail=str(reason),
                hint="the sink starts again from the table's position",
            ) from reason
        except SchemaMismatchError as reason:
            raise ShapeError(f"{where} has another shape", detail=str(reason)) from reason
        except pa.ArrowInvalid as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=str(reason)) from reason
        except (DeltaError, OSError) as reason:
            raise TargetUnavailableError(
                f"{where} cannot be written",
                detail=str(reason),
                hint="check the storage and its credentials; the sink tries again",
            ) from reason


class LocalDeltaSink(DeltaSink):
    """A table in a directory, which can have others beside it."""

    def __init__(self, copy: Copy, surroundings: Surroundings, *, path: Path | None = None) -> None:
        super().__init__(copy, surroundings)
        self._surroundings = surroundings
        self._path = path or Path(self._uri)
        self._uri = str(self._path)
        self._inode = 0

    def open(self, shape: Shape) -> None:
        super().open(shape)
        self._inode = self._path.stat().st_ino

    def _prepare(self) -> None:
        directories.finish_switch(self._path)

    def _check_place(self) -> None:
        if not self._path.exists() or self._path.stat().st_ino != self._inode:
            raise self._fenced(f"{self._path} is another directory by now.")

    def beside(self) -> Sink:
        return self._at(directories.beside(self._path))

    def discard(self) -> None:
        with self._errors():
            shutil.rmtree(directories.beside(self._path), ignore_errors=True)

    def switch(self) -> None:
        with self._errors():
            self._at(directories.beside(self._path))._outdo(self)
            directories.switch(self._path)

    def previous(self) -> SinkPosition | None:
        return self._at(directories.before(self._path)).position()

    def rollback(self) -> None:
        with self._errors():
            self._at(directories.before(self._path))._outdo(self)
            directories.rollback(self._path)

    def _at(self, path: Path) -> LocalDeltaSink:
        return LocalDeltaSink(self._copy, self._surroundings, path=path)

    def _outdo(self, other: LocalDeltaSink) -> None:
        """Raise our epoch above that of the table whose place ours is to take."""
        table, theirs = self._load(), other._load()
        assert table is not None
        numbers = [
            found.transaction_version(self._application) or 0
            for found in (table, theirs)
            if found is not None
        ]
        self._number = ((max(numbers) >> EPOCH_BITS) + 1) << EPOCH_BITS
        empty = pa.schema(table.schema().to_arrow()).empty_table()
        properties = self._commit(self._found(table))
        write_deltalake(table, empty, mode="append", commit_properties=properties)


def delta_sink(copy: Copy, surroundings: Surroundings) -> Sink:
    """The sink for a declaration, by where the table is and what it holds."""
    sink = DeltaSink(copy, surroundings)
    if sink.remote or sink.keeps_history:
        return sink
    return LocalDeltaSink(copy, surroundings)


def _fits(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Equal but for Arrow's ways of storing the same values."""
    if pa.types.is_nested(held) or pa.types.is_nested(wanted):
        return bool(pa.types.is_nested(held) and pa.types.is_nested(wanted))
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    view = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    held = view.get(held, plain.get(held, held))
    return bool(held == wanted)


def _takes(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column takes all values of a narrower type, as they are."""
    for family in (pa.types.is_signed_integer, pa.types.is_floating):
        if family(held) and family(wanted):
            return bool(held.bit_width >= wanted.bit_width)
    return False


def _wider(table: DeltaTable, wanted: pa.Schema) -> dict[str, pa.DataType]:
    """The types of columns that the table has wider than they come."""
    held = table.to_pyarrow_dataset().schema
    kinds = {field.name: field.type for field in held}
    return {
        field.name: kinds[field.name]
        for field in wanted
        if field.name in kinds
        and kinds[field.name] != field.type
        and _takes(kinds[field.name], field.type)
    }


def _same_key(batch: Batch) -> str:
    if batch.shape.one_row:
        return "true"
    return " AND ".join(
        f"(t.{quoted(name)} "
        f"{'IS NOT DISTINCT FROM' if batch.changes[name].null_count else '='} s.{quoted(name)})"
        for name in batch.shape.key
    )


def _versions(batch: Batch) -> pa.Table:
    """For every key of the batch: one row that closes what the table has, and one row per
    new version, each valid until the next."""
    shape = batch.shape
    columns = batch.changes.select(list(shape.names))
    # Order and identity are worked out on plain values, the rows stay in Arrow.
    own = python_rows(batch.changes.select([*shape.key, DELETED, AT]))
    last: dict[tuple[Any, ...], int] = {}
    closes: list[int] = []
    valid_to: list[int | None] = [None] * len(own)
    times = [row[AT] or batch.position.at_ms for row in own]
    for index, row in enumerate(own):
        key = tuple(row[name] for name in shape.key) if shape.keyed else (index,)
        before = last.get(key)
        if before is None:
            closes.append(index)
        else:
            valid_to[before] = times[index]
        last[key] = index
    inserts = [index for index, row in enumerate(own) if not row[DELETED]]
    return pa.concat_tables(
        [
            _with_validity(
                columns.take(pa.array(closes, pa.int64())),
                None,
                [times[i] for i in closes],
                close=True,
            ),
            _with_validity(
                columns.take(pa.array(inserts, pa.int64())),
                [times[i] for i in inserts],
                [valid_to[i] for i in inserts],
                close=False,
            ),
        ]
    )


def _with_validity(
    rows: pa.Table, start: list[int] | None, end: list[int | None], *, close: bool
) -> pa.Table:
    kind = pa.timestamp("us", "UTC")
    count = rows.num_rows

    def moments(values: list[int | None]) -> pa.Array:
        return pa.array([None if v is None else v * 1000 for v in values], kind)

    rows = rows.append_column(
        "valid_from", moments([None] * count if start is None else list(start))
    )
    rows = rows.append_column("valid_to", moments(end))
    rows = rows.append_column("current", pa.array([v is None for v in end], pa.bool_()))
    return rows.append_column("__close", pa.array([close] * count, pa.bool_()))
