"""A captured SQLite table in one version: from values to keys, rows and events."""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import orjson

import tailrace
from tailrace.records.envelope import TableFrame
from tailrace.sources.declare import SQLite, for_table, mask_secret, patterns
from tailrace.sources.errors import TableMissingError
from tailrace.sources.schema import Column, TableSchema
from tailrace.sources.sqlite.change_table import Shape, Value
from tailrace.sources.sqlite.values import row_json, spark_type


@dataclass(frozen=True, slots=True)
class Tracked:
    """`picked` are the captured columns, `key` the key's, as numbers in the shape; `version`
    is that of the triggers."""

    version: int
    shape: Shape
    schema: TableSchema
    frame: TableFrame
    picked: tuple[int, ...]
    names: tuple[bytes, ...]
    key: tuple[int, ...]
    key_names: tuple[bytes, ...]
    masks: Mapping[int, str]
    secret: bytes

    def row(self, values: Sequence[Value]) -> bytes:
        """The captured columns as JSON."""
        return row_json(self.names, [self._shown(i, values[i]) for i in self.picked])

    def row_key(self, values: Sequence[Value]) -> bytes | None:
        """The record key; None for a table without one."""
        if not self.key:
            return None
        return row_json(self.key_names, [self._shown(i, values[i]) for i in self.key])

    def key_values(self, values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(values[i] for i in self.key)

    def _shown(self, column: int, value: Value) -> Value:
        mask = self.masks.get(column)
        if mask is None or value is None:
            return value
        if mask == "null":
            return None
        if mask == "redact":
            return "***"
        text = value if isinstance(value, bytes) else str(value).encode()
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()


def covers(source: SQLite, table: str) -> bool:
    """Whether the declaration names a table."""

    def among(wanted: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(table, p.removeprefix("main.")) for p in wanted)

    return among(patterns(source)) and not among(tuple(source.exclude))


def schema_of(source: SQLite, shape: Shape) -> TableSchema:
    """A shape as a schema without a version."""
    masks = _masks(source, shape)
    chosen = _chosen(source, shape)
    columns = tuple(
        Column(
            shape.columns[i],
            shape.types[i].lower() or "any",
            "STRING" if i in masks else spark_type(shape.types[i]),
            not shape.not_null[i] or masks.get(i) == "null",
        )
        for i in chosen
    )
    return TableSchema(source.name, "main", shape.table, columns, shape.key)


def track(source: SQLite, version: int, shape: Shape, schema: TableSchema, db: str) -> Tracked:
    """What turns rows of this shape into events of this schema version."""
    chosen = _chosen(source, shape)
    return Tracked(
        version,
        shape,
        schema,
        TableFrame.of(
            version=tailrace.__version__, connector="sqlite", source=source.name, db=db,
            schema="main", table=shape.table, schema_version=schema.version,
        ),
        chosen,
        tuple(orjson.dumps(shape.columns[i]) for i in chosen),
        tuple(shape.columns.index(name) for name in shape.key),
        tuple(orjson.dumps(name) for name in shape.key),
        _masks(source, shape),
        mask_secret(source),
    )  # fmt: skip


def _chosen(source: SQLite, shape: Shape) -> tuple[int, ...]:
    wanted = for_table(source.columns, "main", shape.table)
    if wanted is None:
        return tuple(range(len(shape.columns)))
    assert isinstance(wanted, Sequence)
    return tuple(i for i, name in enumerate(shape.columns) if name in wanted or name in shape.key)


def _masks(source: SQLite, shape: Shape) -> dict[int, str]:
    found = for_table(source.mask, "main", shape.table)
    if not isinstance(found, Mapping):
        return {}
    return {i: found[name] for i, name in enumerate(shape.columns) if name in found}


def missing_table(
    source: SQLite, wanted: Sequence[Shape], there: Sequence[Shape], known: Container[str]
) -> TableMissingError | None:
    """The error for a declared table that is not there any more, the others go on; raises it
    for one that never was (`known` are those the log has, as `main.<table>`)."""
    names = {shape.table for shape in wanted}
    for pattern in patterns(source):
        bare = pattern.removeprefix("main.")
        if "*" in bare or bare in names:
            continue
        listed = ", ".join(shape.table for shape in there) or "none"
        error = TableMissingError(
            f'table "{bare}" does not exist',
            detail=f"Tables there: {listed}.",
            hint="create it, or correct tables= of the source",
        )
        if f"main.{bare}" not in known:
            raise error
        return error
    return None
