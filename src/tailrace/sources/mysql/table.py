"""A captured table in one version: from rows to keys, JSON and events."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

import tailrace
from tailrace.records.envelope import TableFrame, TransactionFrame
from tailrace.records.json_bytes import json_bytes
from tailrace.sources.declare import MySQL, mask_secret
from tailrace.sources.mysql.decoder import Row, RowDecoder
from tailrace.sources.mysql.fields import Field
from tailrace.sources.mysql.filters import RowFilter
from tailrace.sources.mysql.server import hidden_columns, masks_of
from tailrace.sources.schema import TableSchema


@dataclass(slots=True)
class Captured:
    """`wanted` are the names that are captured; `decoder` is missing for a table that only
    the catalog has told of; with a `filter` it gives every column."""

    schema: TableSchema
    frame: TableFrame
    wanted: frozenset[str]
    masks: Mapping[str, str]
    secret: bytes
    is_outbox: bool = False
    is_parent_only: bool = False
    decoder: RowDecoder | None = None
    filter: RowFilter | None = None
    events: TransactionFrame | None = None
    entered: int = 0
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.schema.name

    def key_of(self, row: Row) -> bytes | None:
        """The record key; None for a table without one."""
        key = self.schema.key
        if not key:
            return None
        if self.masks:
            row = self._masked(row)
        return json_bytes({name: row[name] for name in key})

    def json_of(self, row: Row) -> bytes:
        return json_bytes(self._masked(row) if self.masks else row)

    def _masked(self, row: Row) -> Row:
        return {
            name: self._hidden(value, self.masks[name]) if name in self.masks else value
            for name, value in row.items()
        }

    def _hidden(self, value: Any, mask: str) -> Any:
        if value is None or mask == "null":
            return None
        if mask == "redact":
            return "***"
        text = value.encode() if isinstance(value, str) else orjson.dumps(value)
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()


def shape_of(
    source: MySQL, schema: str, table: str, fields: Sequence[Field], key: Sequence[str]
) -> TableSchema:
    """Columns as a schema without a version."""
    hidden = hidden_columns(source, schema, table, key)
    masks = masks_of(source, schema, table)
    columns = tuple(
        one.column(
            masked=one.name in masks,
            nullable=(one.nullable and one.name not in key) or masks.get(one.name) == "null",
        )
        for one in fields
        if not hidden(one.name)
    )
    return TableSchema(source.name, schema, table, columns, tuple(key))


def captured(source: MySQL, schema: TableSchema) -> Captured:
    """What turns rows of this version into events."""
    frame = TableFrame.of(
        version=tailrace.__version__, connector="mysql", source=source.name, db=schema.schema,
        schema=schema.schema, table=schema.table, schema_version=schema.version,
    )  # fmt: skip
    outbox = source.outbox
    is_outbox = outbox is not None and schema.name == (
        outbox.table if "." in outbox.table else f"{source.database}.{outbox.table}"
    )
    return Captured(
        schema, frame, frozenset(c.name for c in schema.columns),
        masks_of(source, schema.schema, schema.table), mask_secret(source), is_outbox,
    )  # fmt: skip
