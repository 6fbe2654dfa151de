"""Rows that the server changes by a foreign key, of which most binlogs say nothing.

When a row of a parent table goes or changes its key, the children of that key that the log
knows are read again, and their own children, by the rule of every copy. What is to be read
stands in the child's state (`cascades`) in the log transaction of the parent's change, so no
crash forgets it; more than a few thousand keys, or keys that the log hides, compare the table.
"""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Iterator
from typing import Any

import orjson

from tailrace.sources.journal import Journal
from tailrace.sources.mysql.chunks import literal, order_of
from tailrace.sources.mysql.copies import Copies
from tailrace.sources.mysql.decoder import Row
from tailrace.sources.mysql.fields import BINARIES, Field
from tailrace.sources.mysql.server import ForeignKey, Server, TableDefinition

EVERY_ROW = "all"


class Cascades:
    """The foreign keys between tables, and what became of their children."""

    def __init__(self, server: Server, journal: Journal, most: int) -> None:
        self._server = server
        self._journal = journal
        self._most = most
        self._keys: list[ForeignKey] | None = None

    def forget(self) -> None:
        """A statement may have changed foreign keys."""
        self._keys = None

    @property
    def keys(self) -> list[ForeignKey]:
        if self._keys is None:
            self._keys = [] if self._server.tells_cascades else self._server.foreign_keys()
        return self._keys

    def of(self, parent: str) -> list[ForeignKey]:
        return [key for key in self.keys if key.parent == parent]

    def is_parent(self, name: str) -> bool:
        """Whether rows of captured tables, or of theirs, may go with one of this table."""
        return any(
            key.child in self._journal.copies or self.is_parent(key.child)
            for key in self.of(name)
            if key.child != name
        ) or any(key.child == name and name in self._journal.copies for key in self.of(name))

    def note(self, parent: str, before: Row, after: Row | None) -> None:
        """A row of a parent table went, or has another key."""
        for key in self.of(parent):
            old = [before.get(name) for name in key.parent_columns]
            if after is not None and old == [after.get(name) for name in key.parent_columns]:
                continue
            if None in old and all(name in before for name in key.parent_columns):
                continue  # NULL has no children
            known = all(name in before for name in key.parent_columns)
            self._record(key, dict(zip(key.columns, old, strict=True)) if known else None, set())

    def _record(self, key: ForeignKey, values: Row | None, met: set[str]) -> None:
        name = key.child
        state = self._journal.copies.get(name)
        if state is None:
            # Not captured itself: its own children cannot be told, so they are compared.
            if name not in met:
                for further in self.of(name):
                    self._record(further, None, {*met, name})
            return
        if state.get("state") == "skipped" or state.get("cascades") == EVERY_ROW:
            return
        held = list(state.get("cascades", ()))
        if values in held:
            return
        masks_or_hidden = values is not None and not self._shows(name, values)
        pending: Any = EVERY_ROW
        if values is not None and not masks_or_hidden and len(held) < self._most:
            pending = [*held, values]
        self._journal.record_copy(name, {**state, "cascades": pending})

    def _shows(self, name: str, values: Row) -> bool:
        schema = self._journal.schemas.get(name)
        return schema is not None and values.keys() <= {c.name for c in schema.columns}

    # --- reading again -------------------------------------------------------------------------

    def work(self, copies: Copies, masked: frozenset[str]) -> Iterator[str]:
        """Begin to read what is noted, of tables that are not being read; names the tables.
        What was added to the journal must be committed. `masked`: tables with masks."""
        waiting = [
            name
            for name, state in self._journal.copies.items()
            if state.get("cascades") and state.get("state") == "done"
        ]
        for name in waiting:
            state = dict(self._journal.copies[name])
            pending = state.pop("cascades")
            schema = self._journal.schemas[name]
            definition = self._server.definition(schema.schema, schema.table)
            if pending == EVERY_ROW or name in masked or not schema.key or definition is None:
                self._journal.record_copy(name, state)
                yield name
                continue
            rows = self._children(schema.topic, pending)
            if len(rows) > self._most:
                self._journal.record_copy(name, state)
                yield name
                continue
            for row in rows.values():
                self.note(name, row, None)
            state = dict(self._journal.copies[name])
            # A table that refers to itself may have noted more; what was found is done.
            noted = state.pop("cascades", ())
            if noted == EVERY_ROW:
                self._journal.record_copy(name, state)
                yield name
                continue
            left = [values for values in noted if values not in pending]
            if left and not self._all_found(rows, left):
                state["cascades"] = left
            self._journal.record_copy(name, state)
            if rows:
                asked = [
                    {"key": key.decode(), "where": _condition(definition, row)}
                    for key, row in rows.items()
                ]
                copies.again(name, None, asked)

    def _all_found(self, rows: dict[bytes, Row], left: list[Row]) -> bool:
        return all(any(_same(row, values) for row in rows.values()) for values in left)

    def _children(self, topic: str, pending: list[Row]) -> dict[bytes, Row]:
        found: dict[bytes, Row] = {}
        for key, value in self._journal.live_rows(topic):
            after = None if value is None else orjson.loads(value).get("after")
            if after is not None and any(_same(after, values) for values in pending):
                found[key] = after
            else:
                found.pop(key, None)
        return found


def _same(row: Row, values: Row) -> bool:
    return all(_plain(row.get(name)) == _plain(value) for name, value in values.items())


def _plain(value: Any) -> Any:
    """Texts that a collation may call equal; too many do no harm."""
    if not isinstance(value, str):
        return value
    letters = unicodedata.normalize("NFKD", value).casefold()
    return "".join(one for one in letters if not unicodedata.combining(one)).strip()


def _condition(definition: TableDefinition, row: Row) -> str:
    """The condition for one row, by its values as the log has them."""
    parts = []
    for field in definition.fields:
        if field.name not in definition.key:
            continue
        text = _stored(field, row[field.name])
        parts.append(f"{order_of(field)} = {literal(field, text)}")
    return "(" + " AND ".join(parts) + ")"


def _stored(field: Field, value: Any) -> bytes:
    """A value of the log as its column's text, or as the number that it is compared by."""
    match field.kind:
        case "bit":
            return str(int(value, 2)).encode()
        case "enum":
            return str(field.values.index(value) + 1 if value else 0).encode()
        case "set":
            numbers = (1 << field.values.index(one) for one in value.split(",") if one)
            return str(sum(numbers)).encode()
        case "datetime" | "timestamp":
            return str(value).replace("T", " ").removesuffix("Z").encode()
        case kind if kind in BINARIES:
            return base64.b64decode(value)
    return str(value).encode()
