"""ORDER BY … LIMIT: the first rows, of everything or of each partition.

    partition + order + hash(row) -> marshal (row, weight, order)

The first rows are read before and after the change; what lies behind them is only written.
Rows that the order does not tell apart follow each other by their hash, so that the result
depends on the set of rows alone.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import bounded, encode_keys, encode_order
from tailrace.pipelines.values.rows import (
    Row,
    changes,
    decode_row,
    dumps,
    encode_rows,
    physical,
    to_rows,
    weights,
)

_PARTITION_LIMIT = 180
_ORDER_LIMIT = 200
Found: TypeAlias = "tuple[bytes, bytes, bytes, int]"  # order, entry, row, weight


@dataclass(frozen=True, slots=True)
class Top:
    """`order` is (column, descending, nulls first); `columns` are those it carries."""

    partition: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...]
    limit: int
    offset: int
    columns: tuple[str, ...]
    schema: pa.Schema
    kind: ClassVar[str] = "top"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        order = ", ".join(
            f"{name}{' desc' if desc else ''}{' nulls first' if nulls else ' nulls last'}"
            for name, desc, nulls in self.order
        )
        each = f" of each ({', '.join(self.partition)})" if self.partition else ""
        skip = f" after {self.offset}" if self.offset else ""
        return f"first {self.limit}{skip} by ({order}){each} → {', '.join(self.columns)}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0]
        names = [name for name, _, _ in self.order]
        orders = (
            encode_order(
                [physical(table.column(name)) for name in names],
                [table.schema.field(name).type for name in names],
                [(descending, nulls) for _, descending, nulls in self.order],
            )
            or [b""] * table.num_rows
        )
        keys = encode_keys(table, self.partition)
        if len(max(keys, key=len, default=b"")) > _PARTITION_LIMIT:
            keys = [bounded(key, _PARTITION_LIMIT) for key in keys]
        deltas: dict[bytes, dict[bytes, list[Any]]] = {key: {} for key in keys}
        rows = encode_rows(to_rows(table, self.columns))
        blake2b = hashlib.blake2b
        for key, order, data, weight in zip(keys, orders, rows, weights(table), strict=True):
            place = order if 0 < len(order) <= _ORDER_LIMIT else bounded(order, _ORDER_LIMIT)
            entry = key + place + blake2b(data, digest_size=16).digest()
            partition = deltas[key]
            found = partition.get(entry)
            if found is None:
                partition[entry] = [data, weight, order]
            else:
                found[1] += weight
        out: list[Row] = []
        counts: list[int] = []
        later: dict[bytes, list[Any]] = {}  # rows that came, to be written all at once
        for key in sorted(deltas):
            delta = deltas[key]
            found = self._found(state, key)
            if _only_came(delta) and not _long(found):
                later.update(delta)
                before, after = self._window(found), self._window(_merged(found, delta))
            else:
                before = self._window(found)
                _write(state, delta)
                after = self._window(self._found(state, key))
            if before == after:
                continue
            for data in sorted(before.keys() | after.keys()):
                change = after.get(data, 0) - before.get(data, 0)
                if change:
                    out.append(decode_row(data))
                    counts.append(change)
        _write(state, later)
        return changes(out, counts, self.schema)

    def _found(self, state: OperatorState, key: bytes) -> list[Found]:
        """The first rows of a partition, as many as it takes to know the wanted ones."""
        wanted = self.offset + self.limit
        found: list[Found] = []
        seen, cut = 0, len(key) + _ORDER_LIMIT - 16
        for entry, value in state.scan(key):
            if seen >= wanted and not (
                found and len(found[-1][0]) > _ORDER_LIMIT and entry[:cut] == found[-1][1][:cut]
            ):
                break
            data, weight, order = marshal.loads(value)
            found.append((order, entry, data, weight))
            seen += weight
        if _long(found):
            found.sort()
        return found

    def _window(self, found: Iterable[Found]) -> dict[bytes, int]:
        """The rows between offset and offset + limit, with how often each is there."""
        wanted = self.offset + self.limit
        rows: dict[bytes, int] = {}
        position = 0
        for _, _, data, weight in found:
            inside = min(position + weight, wanted) - max(position, self.offset)
            if inside > 0:
                rows[data] = rows.get(data, 0) + inside
            position += weight
            if position >= wanted:
                break
        return rows


def _only_came(delta: Mapping[bytes, list[Any]]) -> bool:
    """Whether rows only came, and the order of each is whole in its entry."""
    return all(weight > 0 and len(order) <= _ORDER_LIMIT for _, weight, order in delta.values())


def _long(found: Iterable[Found]) -> bool:
    """Whether any order is longer than what entries hold of it."""
    return any(len(order) > _ORDER_LIMIT for order, _, _, _ in found)


def _merged(found: Sequence[Found], delta: Mapping[bytes, list[Any]]) -> list[Found]:
    """The first rows of a partition after some came: no other can be among them."""
    rows = {entry: (order, entry, data, weight) for order, entry, data, weight in found}
    for entry, (data, weight, order) in delta.items():
        known = rows.get(entry)
        rows[entry] = (order, entry, data, weight + (known[3] if known else 0))
    return [rows[entry] for entry in sorted(rows)]


def _write(state: OperatorState, delta: Mapping[bytes, list[Any]]) -> None:
    """Add these changes to the state."""
    entries = sorted([entry for entry, change in delta.items() if change[1]])
    puts: list[tuple[bytes, bytes | None]] = []
    for entry, value in zip(entries, state.get_many(entries), strict=True):
        data, weight, order = delta[entry]
        total = (marshal.loads(value)[1] if value is not None else 0) + weight
        puts.append((entry, dumps((data, total, order)) if total else None))
    state.put_many(puts)
