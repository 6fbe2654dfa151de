"""What an update tells of a JSON value when the session has `binlog_row_value_options=PARTIAL_JSON`.

A list of changes, one after another: u8 what (0 replace, 1 insert, 2 remove), length and text of
the path, and unless it removes, length and binary JSON of the value. Objects keep MySQL's order of
members, by length and then by bytes, so that a patched value is written as a copied one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from tailrace.sources.errors import ReplicationProtocolError
from tailrace.sources.mysql.json_binary import read_json
from tailrace.sources.mysql.packets import length_of

REPLACE, INSERT, REMOVE = 0, 1, 2
_LEG = re.compile(r'\s*(?:\.\s*(?:("(?:[^"\\]|\\.)*")|([^.\[\s"]+))|\[\s*(\d+)\s*\])')

Leg = str | int


class DoesNotFit(Exception):
    """A change is of another value than the one before it."""


class Diffs:
    """The changes of one value."""

    __slots__ = ("changes",)

    def __init__(self, changes: Sequence[tuple[int, tuple[Leg, ...], Any]]) -> None:
        self.changes = changes

    def applied(self, document: Any) -> Any:
        """The value after them; `document` stays as it is. Raises DoesNotFit."""
        for what, path, value in self.changes:
            document = _changed(document, what, path, value)
        return document


def read_diffs(data: bytes) -> Diffs:
    changes: list[tuple[int, tuple[Leg, ...], Any]] = []
    at = 0
    while at < len(data):
        what = data[at]
        if what > REMOVE:
            raise ReplicationProtocolError(
                "a change of a JSON value has an unknown kind", detail=f"Kind {what}."
            )
        length, at = length_of(data, at + 1)
        path, at = _legs(data[at : at + length].decode()), at + length
        value = None
        if what != REMOVE:
            length, at = length_of(data, at)
            value, at = read_json(data[at : at + length]), at + length
        changes.append((what, path, value))
    if at != len(data):
        raise ReplicationProtocolError("a change of a JSON value is cut off")
    return Diffs(changes)


def _legs(path: str) -> tuple[Leg, ...]:
    found: list[Leg] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        leg = _LEG.match(path, at)
        if leg is None:
            raise ReplicationProtocolError("a path into a JSON value cannot be read", detail=path)
        quoted, plain, index = leg.groups()
        found.append(int(index) if index else plain if plain else str(orjson.loads(quoted)))
        at = leg.end()
    return tuple(found)


def _changed(document: Any, what: int, path: tuple[Leg, ...], value: Any) -> Any:
    if not path:
        if what != REPLACE:
            raise DoesNotFit
        return value
    leg, rest = path[0], path[1:]
    if isinstance(document, dict) and isinstance(leg, str):
        if (leg in document) == (what == INSERT and not rest):
            raise DoesNotFit
        if rest:
            return {**document, leg: _changed(document[leg], what, rest, value)}
        if what == REMOVE:
            return {name: one for name, one in document.items() if name != leg}
        made = {**document, leg: value}
        return made if what == REPLACE else dict(sorted(made.items(), key=_order))
    if isinstance(document, list) and isinstance(leg, int):
        if rest or what != INSERT:
            if leg >= len(document):
                raise DoesNotFit
            inner = [_changed(document[leg], what, rest, value)] if rest else [value]
            return [*document[:leg], *([] if what == REMOVE and not rest else inner), *document[leg + 1 :]]  # fmt: skip
        return [*document[:leg], value, *document[leg:]]
    raise DoesNotFit


def _order(member: tuple[str, Any]) -> tuple[int, bytes]:
    name = member[0].encode()
    return len(name), name
