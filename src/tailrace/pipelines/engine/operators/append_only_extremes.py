"""min, max and their kin of rows that only come: one value a group instead of all.

    "v" + number + key -> marshal (order, value)    first, last, any_value, min_by, max_by

Where rows can go again, the second smallest value is the smallest one later, so all are kept
(`group`). Where the compiler has proven that none ever goes, what is not first now will never
be. min and max keep nothing here at all: what the group shows is enough.
"""

from __future__ import annotations

import marshal
from typing import cast

import pyarrow as pa

from tailrace.pipelines.engine.operators.aggregates import Aggregate, signed_values
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import bounded, encode_order
from tailrace.pipelines.values.rows import dumps, physical

FIRST_ONLY = ("min", "max", "first", "last", "any_value", "min_by", "max_by")
KEEPS_NULL = ("first", "last", "any_value", "min_by", "max_by", "single_value")
KEY_LIMIT = 200


def is_extreme(aggregate: Aggregate) -> bool:
    """Whether it is a min or max of rows that only come."""
    return aggregate.grows and aggregate.function in ("min", "max")


def further(aggregate: Aggregate, known: object, came: object) -> object:
    """The min or max of two values whose order is Python's own; None is no value."""
    if known is None or came is None:
        return came if known is None else known
    pick = min if aggregate.function == "min" else max
    return pick(cast(int, known), cast(int, came))


class Growing:
    """The changes of this tick to the first value of each group."""

    def __init__(
        self,
        state: OperatorState,
        number: int,
        aggregate: Aggregate,
        table: pa.Table,
        keys: list[bytes],
        counts: list[int],
        used: list[object] | None,
    ) -> None:
        self._state, self._prefix = state, b"v%c" % number
        self._aggregate, self._extreme = aggregate, is_extreme(aggregate)
        columns = [physical(table.column(name)) for name, _, _ in aggregate.order]
        self._kinds = [table.schema.field(name).type for name, _, _ in aggregate.order]
        self._by = [(descending, nulls) for _, descending, nulls in aggregate.order]
        orders = encode_order(columns, self._kinds, self._by)
        values, orders = signed_values(
            aggregate, physical(table.column(aggregate.arguments[0])), orders
        )
        keeps_null = aggregate.function in KEEPS_NULL
        by_other = aggregate.function in ("min_by", "max_by")
        self._first: dict[bytes, tuple[bytes, object]] = {}
        for position, value in enumerate(values):
            if used is not None and used[position] is not True:
                continue
            if value is None and not keeps_null:
                continue
            if by_other and columns[0][position] is None:
                continue
            key, order = keys[position], orders[position]
            found = self._first.get(key)
            if found is None or order < found[0]:
                self._first[key] = (order, value)

    def write(self, puts: list[tuple[bytes, bytes | None]]) -> None:
        if self._extreme:
            return
        entries = {self._prefix + bounded(key, KEY_LIMIT): key for key in self._first}
        order = sorted(entries)
        for entry, value in zip(order, self._state.get_many(order), strict=True):
            came = self._first[entries[entry]]
            known = None if value is None else cast("tuple[bytes, object]", marshal.loads(value))
            if known is None or came[0] < known[0]:
                puts.append((entry, dumps(came)))
            else:
                self._first[entries[entry]] = known

    def finish(self, key: bytes, before: object) -> object:
        came = self._first.get(key)
        if came is None:
            return before
        if self._extreme and before is not None:
            known = encode_order([[before]], self._kinds, self._by)
            _, known = signed_values(self._aggregate, [before], known)
            return before if known[0] <= came[0] else came[1]
        return came[1]
