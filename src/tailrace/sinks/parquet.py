"""Parquet files in a directory.

"history": every batch of changes is one file, `changes-<number>.parquet`, with
`_deleted`, `_version` and `_at` beside the columns. "current": `current.parquet` holds
the rows as they are now and is written anew with every batch; meant for tables that fit
in memory. The position stands in the metadata of the newest file, which appears whole
(by rename), so rows and position cannot part.

A second copy of current rows is a second directory; a switch exchanges the two
(`directories`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from tailrace.records.json_bytes import json_bytes
from tailrace.records.rows import python_rows
from tailrace.sinks import directories
from tailrace.sinks.base import (
    AT,
    DELETED,
    VERSION,
    Batch,
    Shape,
    Sink,
    SinkPosition,
    decode_position,
)
from tailrace.sinks.declare import Parquet
from tailrace.sinks.errors import RowsRefusedError, TargetUnavailableError
from tailrace.sinks.local import LocalPosition
from tailrace.sinks.registry import Copy, Surroundings

POSITION = b"tailrace.position"
CURRENT = "current.parquet"


class ParquetSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "every"

    def __init__(self, copy: Copy, surroundings: Surroundings, *, path: Path | None = None) -> None:
        assert isinstance(copy.declaration, Parquet)
        self._copy = copy
        self._surroundings = surroundings
        self._path = path or surroundings.path(copy.declaration.path)
        self._current = copy.declaration.mode == "current"
        if self._current:
            self.wants = "latest"  # type: ignore[misc]
        # Only the epoch of the writer is used; the position is in the files.
        self._epoch = LocalPosition(self._path / "_tailrace", copy.name)

    def open(self, shape: Shape) -> None:
        with self._errors():
            directories.finish_switch(self._path)
            self._path.mkdir(parents=True, exist_ok=True)
            self._epoch.claim()
            for draft in self._path.glob("*.draft"):
                draft.unlink()

    def position(self) -> SinkPosition | None:
        with self._errors():
            newest = self._newest()
            if newest is None:
                return None
            metadata = pyarrow.parquet.read_schema(newest).metadata or {}
            return decode_position(metadata.get(POSITION))

    def apply(self, batch: Batch) -> None:
        with self._errors():
            self._epoch.check()
            if self._current:
                self._write(self._path / CURRENT, self._merged(batch), batch.position)
                return
            names = [*batch.shape.names, DELETED, VERSION, AT]
            rows = batch.changes.select(names).rename_columns(
                [*batch.shape.names, "_deleted", "_version", "_at"]
            )
            newest = self._newest()
            number = 0 if newest is None else int(newest.stem.partition("-")[2]) + 1
            self._write(self._path / f"changes-{number:012d}.parquet", rows, batch.position)

    def close(self) -> None:
        """Nothing is held between batches."""

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        with self._errors():
            if self._current:
                path = self._path / CURRENT
                if path.exists():
                    yield _shaped(pyarrow.parquet.read_table(path), shape)
                return
            files = sorted(self._path.glob("changes-*.parquet"))
            if not files:
                return
            tables = [pyarrow.parquet.read_table(path) for path in files]
        changes = pa.concat_tables(tables, promote_options="default")
        keys = [
            json_bytes(list(key.values())) for key in python_rows(changes.select(list(shape.key)))
        ]
        newest = sorted(dict(zip(keys, range(len(keys)), strict=True)).values())
        last = changes.take(newest)
        yield _shaped(last.filter(pc.invert(last["_deleted"])), shape)

    def _merged(self, batch: Batch) -> pa.Table:
        shape = batch.shape
        path = self._path / CURRENT
        if not path.exists():
            return batch.upserts
        held = _shaped(pyarrow.parquet.read_table(path), shape)
        if not shape.keyed:
            return pa.concat_tables([held, batch.upserts])
        touched = {
            json_bytes(list(key.values()))
            for key in python_rows(batch.changes.select(list(shape.key)))
        }
        kept = [
            json_bytes(list(key.values())) not in touched
            for key in python_rows(held.select(list(shape.key)))
        ]
        return pa.concat_tables([held.filter(pa.array(kept, pa.bool_())), batch.upserts])

    def _write(self, path: Path, rows: pa.Table, position: SinkPosition) -> None:
        metadata = {**(rows.schema.metadata or {}), POSITION: position.encode().encode()}
        draft = path.with_suffix(".draft")
        with draft.open("wb") as file:
            pyarrow.parquet.write_table(
                rows.replace_schema_metadata(metadata), file, compression="zstd"
            )
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def _newest(self) -> Path | None:
        if self._current:
            path = self._path / CURRENT
            return path if path.exists() else None
        return max(self._path.glob("changes-*.parquet"), default=None)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"parquet directory {self._path}"
        try:
            yield
        except OSError as reason:
            raise TargetUnavailableError(
                f"{where} cannot be written",
                detail=str(reason),
                hint="check the directory and free space; the sink tries again",
            ) from reason
        except pa.ArrowException as reason:
            raise RowsRefusedError(f"{where} refuses rows", detail=str(reason)) from reason


class CurrentRows(ParquetSink):
    """A directory with the rows as they are now, which can have others beside it."""

    def beside(self) -> Sink:
        return self._at(directories.beside(self._path))

    def discard(self) -> None:
        with self._errors():
            shutil.rmtree(directories.beside(self._path), ignore_errors=True)

    def switch(self) -> None:
        with self._errors():
            self._at(directories.beside(self._path))._epoch.outdo(self._epoch)
            directories.switch(self._path)

    def previous(self) -> SinkPosition | None:
        return self._at(directories.before(self._path)).position()

    def rollback(self) -> None:
        with self._errors():
            self._at(directories.before(self._path))._epoch.outdo(self._epoch)
            directories.rollback(self._path)

    def _at(self, path: Path) -> CurrentRows:
        return CurrentRows(self._copy, self._surroundings, path=path)


def parquet_sink(copy: Copy, surroundings: Surroundings) -> Sink:
    """The sink for a declaration: a history is gone on with, never built anew."""
    assert isinstance(copy.declaration, Parquet)
    kind = CurrentRows if copy.declaration.mode == "current" else ParquetSink
    return kind(copy, surroundings)


def _shaped(table: pa.Table, shape: Shape) -> pa.Table:
    """The shape's columns; those the file does not have are NULL."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in shape.schema
    ]
    return pa.Table.from_arrays(columns, schema=shape.schema)
