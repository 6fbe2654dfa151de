"""Changes appended to an Iceberg table, the position in the snapshot's summary.

Every change is a row with `_deleted` and `_version` beside the columns; readers take the
newest version of a key. Merging into current rows is not done here: pyiceberg's upsert
costs 137 µs a row. A commit names the snapshot it follows, so of two writers one fails.

A second copy is filled on the branch `tailrace_next` of the same table, which begins
empty; a switch is one commit that makes its head the table's current snapshot and keeps
the one before as `tailrace_previous`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    UnauthorizedError,
)

from tailrace.config import resolve
from tailrace.errors import TailraceError
from tailrace.records.rows import python_rows
from tailrace.sinks.base import DELETED, VERSION, Batch, Shape, Sink, SinkPosition, decode_position
from tailrace.sinks.declare import Iceberg
from tailrace.sinks.errors import (
    RowsRefusedError,
    SinkFencedError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import DUCKDB_TYPES, missing_columns, type_word
from tailrace.sinks.widen import columns_to_widen

POSITION = "tailrace.position"
EPOCH = "tailrace.epoch"
WHERE: Any = expressions  # its constructors are made at run time
MAIN = "main"
NEXT = "tailrace_next"
PREVIOUS = "tailrace_previous"
KEYS_AT_ONCE = 500


class IcebergSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "every"

    def __init__(self, copy: Copy, surroundings: Surroundings, *, branch: str = MAIN) -> None:
        assert isinstance(copy.declaration, Iceberg)
        self._copy = copy
        self._surroundings = surroundings
        self._branch = branch
        self._declaration = copy.declaration
        self._catalog: Any = None
        self._table: Any = None
        self._epoch = 0

    def open(self, shape: Shape) -> None:
        with self._errors():
            schema = _schema(shape)
            table = self._load()
            if table is None:
                namespace = self._declaration.table.rpartition(".")[0]
                try:
                    self._catalog.create_namespace(namespace)
                except NamespaceAlreadyExistsError:
                    pass
                table = self._catalog.create_table(self._declaration.table, schema=schema)
            else:
                self._grow(table, shape, schema)
            self._epoch = _newest_epoch(table) + 1
            self._append(
                table,
                self._branch,
                schema.empty_table(),
                _summary(table, self._branch).get(POSITION),
            )
            self._table = table

    def _grow(self, table: Any, shape: Shape, schema: pa.Schema) -> None:
        """Add what is missing and, if asked for, widen what is too narrow."""
        policy = self._declaration.schema_change
        held = {f.name: type_word(f.type, DUCKDB_TYPES) for f in table.schema().as_arrow()}
        missing_columns(shape, held, self._declaration.table, policy)
        columns_to_widen(shape, held, DUCKDB_TYPES, self._declaration.table, policy)
        with table.update_schema() as update:
            update.union_by_name(schema)

    def position(self) -> SinkPosition | None:
        with self._errors():
            table = self._load()
            if table is None:
                return None
            return decode_position(_summary(table, self._branch).get(POSITION))

    def apply(self, batch: Batch) -> None:
        with self._errors():
            table = self._table
            table.refresh()
            held = int(_summary(table, self._branch).get(EPOCH, 0))
            if held != self._epoch:
                raise self._fenced(f"Ours is epoch {self._epoch}, the table has {held}.")
            rows = batch.changes.select([*batch.shape.names, DELETED, VERSION])
            rows = rows.rename_columns([*batch.shape.names, "_deleted", "_version"])
            if batch.forced and batch.shape.keyed:
                self._replace(table, rows, batch)
            else:
                self._append(table, self._branch, rows, batch.position.encode())

    def close(self) -> None:
        self._table = None
        if self._catalog is not None:
            close = getattr(self._catalog, "close", None)
            if close is not None:
                close()
            self._catalog = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        with self._errors():
            table = self._load()
            if table is None or self._branch not in table.metadata.refs:
                return
            changes = table.scan().use_ref(self._branch).to_arrow()
        changes = changes.take(pc.sort_indices(changes["_version"]))
        keys = [
            orjson.dumps(list(key.values())) for key in python_rows(changes.select(list(shape.key)))
        ]
        newest = sorted(dict(zip(keys, range(len(keys)), strict=True)).values())
        last = changes.take(pa.array(newest, pa.int64()))
        rows = last.filter(pc.invert(last["_deleted"]))
        yield rows.select(list(shape.names)).cast(shape.schema)

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        return IcebergSink(self._copy, self._surroundings, branch=NEXT)

    def discard(self) -> None:
        with self._errors():
            table = self._load()
            if table is not None and NEXT in table.metadata.refs:
                with table.manage_snapshots() as change:
                    change.remove_branch(NEXT)

    def switch(self) -> None:
        self._exchange(PREVIOUS, NEXT)

    def rollback(self) -> None:
        self._exchange(NEXT, PREVIOUS)

    def previous(self) -> SinkPosition | None:
        with self._errors():
            table = self._load()
            if table is None or PREVIOUS not in table.metadata.refs:
                return None
            return decode_position(_summary(table, PREVIOUS).get(POSITION))

    def _exchange(self, away: str, back: str) -> None:
        with self._errors():
            table = self._load()
            # Under a new epoch, so that whoever still writes to the table finds another.
            self._epoch = _newest_epoch(table) + 1
            empty = table.schema().as_arrow().empty_table()
            self._append(table, back, empty, _summary(table, back).get(POSITION))
            refs = table.metadata.refs
            with table.manage_snapshots() as change:
                change.create_branch(refs[MAIN].snapshot_id, away)
                change.remove_branch(back)
                change.set_current_snapshot(refs[back].snapshot_id)
            self._table = None

    # ------------------------------------------------------------------ the table

    def _append(self, table: Any, branch: str, rows: pa.Table, position: str | None) -> None:
        # pyiceberg would try again on top of a commit that has fenced us off.
        table.metadata.properties["commit.retry.num-retries"] = "0"
        table.append(rows, self._properties(position), branch=branch)

    def _replace(self, table: Any, rows: pa.Table, batch: Batch) -> None:
        """Write rows in place of all that the table has under their keys, whatever their
        versions are."""
        for start in range(0, rows.num_rows, KEYS_AT_ONCE):
            part = rows.slice(start, KEYS_AT_ONCE)
            table.metadata.properties["commit.retry.num-retries"] = "0"
            table.overwrite(
                part,
                _under(part.select(list(batch.shape.key))),
                snapshot_properties=self._properties(batch.position.encode()),
                branch=self._branch,
            )

    def _load(self) -> Any:
        if self._catalog is None:
            declared = self._declaration.catalog
            catalog = {name: resolve(value) for name, value in declared.items()}
            self._catalog = load_catalog(self._copy.name, **catalog)
        try:
            return self._catalog.load_table(self._declaration.table)
        except NoSuchTableError:
            return None

    def _properties(self, position: str | None) -> dict[str, str]:
        properties = {EPOCH: str(self._epoch)}
        if position is not None:
            properties[POSITION] = position
        return properties

    def _fenced(self, detail: str) -> SinkFencedError:
        return SinkFencedError(
            f"another writer took sink {self._copy.name!r} over",
            detail=detail,
            hint="run a project only once",
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"iceberg table {self._declaration.table}"
        try:
            yield
        except CommitFailedException as reason:
            raise self._fenced(str(reason)) from reason
        except (pa.ArrowInvalid, ValueError) as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=str(reason)) from reason
        except (ForbiddenError, UnauthorizedError) as reason:
            raise TargetRefusedError(
                f"{where} may not be written", detail=str(reason), hint="check the credentials"
            ) from reason
        except TailraceError:
            raise
        except Exception as reason:  # catalogs raise what their own libraries do
            raise TargetUnavailableError(
                f"{where} cannot be written",
                detail=f"{type(reason).__name__}: {reason}",
                hint="check catalog and warehouse; the sink tries again",
            ) from reason


def _under(keys: pa.Table) -> Any:
    """A condition that holds for rows with one of these keys."""
    if not keys.num_columns:
        return WHERE.AlwaysTrue()
    if keys.num_columns == 1 and not keys.column(0).null_count:
        return WHERE.In(keys.column_names[0], keys.column(0).to_pylist())
    each = [
        _all(
            [
                WHERE.IsNull(name) if value is None else WHERE.EqualTo(name, value)
                for name, value in key.items()
            ]
        )
        for key in keys.to_pylist()
    ]
    return each[0] if len(each) == 1 else WHERE.Or(*each)


def _all(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else WHERE.And(*parts)


def _schema(shape: Shape) -> pa.Schema:
    extra = [pa.field("_deleted", pa.bool_()), pa.field("_version", pa.int64())]
    return pa.schema([*shape.schema, *extra])


def _summary(table: Any, branch: str) -> dict[str, str]:
    """Our properties in the newest snapshot of a branch that has them."""
    reference = table.metadata.refs.get(branch)
    number = None if reference is None else reference.snapshot_id
    while number is not None:
        snapshot = table.snapshot_by_id(number)
        if snapshot is None:  # expired by somebody else
            break
        if snapshot.summary is not None and EPOCH in snapshot.summary.additional_properties:
            found: dict[str, str] = dict(snapshot.summary.additional_properties)
            return found
        number = snapshot.parent_snapshot_id
    return {}


def _newest_epoch(table: Any) -> int:
    return max(
        (int(_summary(table, name).get(EPOCH, 0)) for name in table.metadata.refs), default=0
    )
