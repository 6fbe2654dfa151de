"""Checksums of a table by groups of rows, the same in SQL and from the log.

After lost changes a table is compared with the log without reading it: both sides add up
digests of the rows of each group, and only groups that differ are read. A row belongs to
the group that the digest of its key names, because nobody but the server knows how it
sorts texts.

The text that is digested is Postgres's own of a row, `(1,"some text",2026-11-15)`, which
the server makes itself and which is made from the log's JSON here. Types whose text cannot
be made again from their JSON (arrays, composites, money) and masked columns have no such
checksum; their tables are read as a whole.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Any

import orjson
from psycopg import sql

from tailrace.sources.declare import Postgres, for_table
from tailrace.sources.postgres.catalog import CatalogTable, Connection
from tailrace.sources.postgres.types import TypeTable

Text = Callable[[Any], str]
# Rows in a group, on average: what is read for each row that differs.
GROUP_ROWS = 32
_SPECIAL = re.compile(r'["\\(),\s]')
_DOUBLED = re.compile(r'(["\\])')
_RAW = (114, 3802, 700, 701)  # their text is not kept by reading JSON
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class RowSum:
    """What one row adds: the digest that names its group, and two numbers."""

    group: str
    first: int
    second: int


class TableSums:
    """How the rows of one table are summed up."""

    def __init__(self, table: CatalogTable, names: Sequence[str], texts: Sequence[Text],
                 raw: bool) -> None:  # fmt: skip
        self._table = table
        self._texts = dict(zip(names, texts, strict=True))
        self._names = tuple(names)
        self._raw = raw

    @classmethod
    def of(
        cls, source: Postgres, table: CatalogTable, types: TypeTable, connection: Connection
    ) -> TableSums | None:
        """None for a table that must be read as a whole."""
        relation = table.relation
        if for_table(source.mask, relation.schema, relation.table):
            return None
        if connection.info.parameter_status("server_encoding") != "UTF8":
            return None  # the server digests what it stores
        chosen = for_table(source.columns, relation.schema, relation.table)
        columns = [
            c
            for c in relation.columns
            if not isinstance(chosen, (list, tuple)) or c.name in chosen or c.name in table.key
        ]
        texts: list[Text] = []
        for column in columns:
            base = types.base_of(column.type)
            found = types.types.get(base)
            if base == 790 or (found is not None and found.kind in ("array", "composite")):
                return None
            texts.append(_TEXTS.get(base, str))
        raw = any(types.base_of(c.type) in _RAW for c in columns)
        if raw and any(types.base_of(c.type) in _RAW for c in columns if c.name in table.key):
            return None
        return cls(table, [c.name for c in columns], texts, raw)

    # --- from the log ------------------------------------------------------------------------

    def sum_of(self, key: bytes, value: bytes) -> RowSum:
        """Of a record with a row. One of another shape adds nothing: its group differs."""
        names = orjson.loads(key)
        if not names.keys() >= set(self._table.key):
            return RowSum("", 0, 0)  # of the time when the table had another key
        short = record_text([self._text(name, names) for name in self._table.key])
        group = md5(short.encode(), usedforsecurity=False).hexdigest()[:8]
        row = _raw_row(value) if self._raw else orjson.loads(value)["after"]
        try:
            whole = record_text([self._text(name, row or {}) for name in self._names])
        except (KeyError, ValueError):
            return RowSum(group, 0, 0)
        digest = md5(whole.encode(), usedforsecurity=False).hexdigest()
        return RowSum(group, int(digest[:8], 16), int(digest[8:16], 16))

    def _text(self, name: str, row: Mapping[str, Any]) -> str | None:
        value = row[name]
        return None if value is None else self._texts[name](value)

    # --- from the server ---------------------------------------------------------------------

    def group_of(self, digits: int) -> sql.Composed:
        """The SQL expression of a row's group."""
        return sql.SQL("substr(md5(ROW({})::text), 1, {})").format(
            _identifiers(self._table.key), sql.Literal(digits)
        )

    def read(self, connection: Connection, where: str | None, digits: int) -> dict[str, RowSums]:
        """The sums of every group of the table as it is now."""
        query = sql.SQL(
            "SELECT {group}, count(*), sum(('x' || substr(d, 1, 8))::bit(32)::int8), "
            "sum(('x' || substr(d, 9, 8))::bit(32)::int8) FROM (SELECT {key}, "
            "md5(ROW({columns})::text) AS d FROM {table} WHERE {where}) AS rows GROUP BY 1"
        ).format(
            group=self.group_of(digits),
            key=_identifiers(self._table.key),
            columns=_identifiers(self._names),
            table=sql.Identifier(self._table.relation.schema, self._table.relation.table),
            where=sql.SQL(where or "true"),
        )
        return {
            str(row[0]): (int(str(row[1])), int(str(row[2])), int(str(row[3])))
            for row in connection.execute(query)
        }


RowSums = tuple[int, int, int]


def _identifiers(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join([sql.Identifier(name) for name in names])


def record_text(values: Sequence[str | None]) -> str:
    """What Postgres prints for a row of these texts; None for NULL."""
    parts: list[str] = []
    for value in values:
        if value is None:
            parts.append("")
        elif not value or _SPECIAL.search(value):
            parts.append('"' + _DOUBLED.sub(r"\1\1", value) + '"')
        else:
            parts.append(value)
    return "(" + ",".join(parts) + ")"


def _raw_row(value: bytes) -> dict[str, Any] | None:
    """The row after a change, numbers and nested JSON as the text they were written as."""
    text = value.decode()
    position = text.index(":") + 1
    _, position = _DECODER.raw_decode(text, position)  # before
    position = text.index(":", position) + 1
    if text.startswith("null", position):
        return None
    row: dict[str, Any] = {}
    position += 1
    while text[position] != "}":
        if text[position] == ",":
            position += 1
        name, position = _DECODER.raw_decode(text, position)
        found, end = _DECODER.raw_decode(text, position + 1)
        keep = isinstance(found, (float, dict, list)) or (
            isinstance(found, int) and not isinstance(found, bool)
        )
        row[name] = text[position + 1 : end] if keep else found
        if isinstance(found, str):
            row[name] = _Quoted(found, text[position + 1 : end])
        position = end
    return row


class _Quoted(str):
    """A JSON string, with the text it had."""

    __slots__ = ("json",)

    def __new__(cls, value: str, text: str) -> _Quoted:
        made = super().__new__(cls, value)
        made.json = text
        return made

    json: str


def _boolean(value: Any) -> str:
    return "t" if value else "f"


def _moment(value: str) -> str:
    return value.replace("T", " ", 1)


def _timestamp(value: str) -> str:
    if value[:1] == "-" and value[1:2].isdigit():
        return _moment(value[1:]) + " BC"
    return _moment(value)


def _timestamptz(value: str) -> str:
    if value[-1:] != "Z":
        return value  # infinity
    if value[:1] == "-":
        return _moment(value[1:-1]) + "+00 BC"
    return _moment(value[:-1]) + "+00"


def _date(value: str) -> str:
    return value[1:] + " BC" if value[:1] == "-" and value[1:2].isdigit() else value


def _bytea(value: str) -> str:
    return "\\x" + base64.b64decode(value).hex()


def _json(value: Any) -> str:
    return value.json if isinstance(value, _Quoted) else _word(value)


def _word(value: Any) -> str:
    return {True: "true", False: "false", None: "null"}[value] if not isinstance(value, str) else value  # fmt: skip


_TEXTS: Mapping[int, Text] = {
    16: _boolean, 17: _bytea, 114: _json, 3802: _json, 1082: _date, 1114: _timestamp,
    1184: _timestamptz,
}  # fmt: skip
