"""Changes appended to an Iceberg table, the position in the snapshot's summary.

Every change is a row with `_deleted` and `_version` beside the columns; readers take the
newest version of a key. Merging into current rows is not done here: pyiceberg's upsert
costs 137 µs a row. A commit names the snapshot it follows, so of two writers one fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
)

from tailrace.records.rows import python_rows
from tailrace.sinks.base import DELETED, VERSION, Batch, Shape, SinkPosition, decode_position
from tailrace.sinks.declare import Iceberg
from tailrace.sinks.errors import RowsRefusedError, SinkFencedError, TargetUnavailableError
from tailrace.sinks.registry import Copy, Surroundings

POSITION = "tailrace.position"
EPOCH = "tailrace.epoch"


class IcebergSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "every"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Iceberg)
        self._copy = copy
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
                with table.update_schema() as update:
                    update.union_by_name(schema)
            summary = _summary(table)
            self._epoch = int(summary.get(EPOCH, 0)) + 1
            table.append(schema.empty_table(), self._properties(summary.get(POSITION)))
            self._table = table

    def position(self) -> SinkPosition | None:
        with self._errors():
            table = self._load()
            return None if table is None else decode_position(_summary(table).get(POSITION))

    def apply(self, batch: Batch) -> None:
        with self._errors():
            table = self._table
            table.refresh()
            held = int(_summary(table).get(EPOCH, 0))
            if held != self._epoch:
                raise self._fenced(f"Ours is epoch {self._epoch}, the table has {held}.")
            rows = batch.changes.select([*batch.shape.names, DELETED, VERSION])
            rows = rows.rename_columns([*batch.shape.names, "_deleted", "_version"])
            table.append(rows, self._properties(batch.position.encode()))

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
            if table is None:
                return
            changes = table.scan().to_arrow()
        changes = changes.take(pc.sort_indices(changes["_version"]))
        keys = [
            orjson.dumps(list(key.values())) for key in python_rows(changes.select(list(shape.key)))
        ]
        newest = sorted(dict(zip(keys, range(len(keys)), strict=True)).values())
        last = changes.take(pa.array(newest, pa.int64()))
        rows = last.filter(pc.invert(last["_deleted"]))
        yield rows.select(list(shape.names)).cast(shape.schema)

    def _load(self) -> Any:
        if self._catalog is None:
            self._catalog = load_catalog(self._copy.name, **dict(self._declaration.catalog))
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
        except OSError as reason:
            raise TargetUnavailableError(
                f"{where} cannot be written", detail=str(reason), hint="the sink tries again"
            ) from reason


def _schema(shape: Shape) -> pa.Schema:
    extra = [pa.field("_deleted", pa.bool_()), pa.field("_version", pa.int64())]
    return pa.schema([*shape.schema, *extra])


def _summary(table: Any) -> dict[str, str]:
    """Our properties in the newest snapshot that has them."""
    for snapshot in sorted(table.snapshots(), key=lambda s: -(s.sequence_number or 0)):
        summary = snapshot.summary
        if summary is not None and EPOCH in summary.additional_properties:
            found: dict[str, str] = dict(summary.additional_properties)
            return found
    return {}
