"""The values of ordered aggregates: min, max, first, percentile, collect_list and their kin.

A small group holds them in its own entry (see `group`), read and written with it:

    {order: (value, count)}     or {value: count}, see `Extreme`

A group with more than SPILL_VALUES of them, or with long ones, has an entry for each, so that
a change reads and writes what it touches; so have groups that earlier versions wrote:

    "v" + number + key + order -> marshal (value, count, order)

The order is the bytes of what the aggregate is ordered by, the value last, and the signs of the
zeros in it (see `signed_values`), so that equal orders mean equal values.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import pyarrow as pa

from tailrace.pipelines.engine.operators.aggregates import (
    Aggregate,
    Values,
    finisher,
    signed_values,
)
from tailrace.pipelines.engine.operators.append_only_extremes import (
    FIRST_ONLY,
    KEEPS_NULL,
    KEY_LIMIT,
)
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import bounded, encode_order
from tailrace.pipelines.values.rows import dumps, physical
from tailrace.pipelines.values.types import is_decimal

SPILL_VALUES = 32
_LONG = 64  # bytes of an order: longer ones have entries of their own

Held: TypeAlias = "dict[Any, Any]"
# What a group's entry says: rows, integers, shown values; and what is held of each aggregate
# that is ordered, None where it has entries of its own.
Known: TypeAlias = (
    "tuple[int, list[int], list[object]] | tuple[int, list[int], list[object], list[Held | None]]"
)


class Ordered:
    """The changes to one ordered aggregate in this tick."""

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
        self._state = state
        self._prefix = b"v%c" % number
        self._first = aggregate.function in FIRST_ONLY
        self._finish = None if self._first else finisher(aggregate)
        self._aggregate = aggregate
        self._kinds = [table.schema.field(name).type for name, _, _ in aggregate.order]
        self._by = [(descending, nulls) for _, descending, nulls in aggregate.order]
        # The value itself is the order: what is shown tells what is first without a look.
        self._extreme = aggregate.function in ("min", "max")
        self._held: dict[bytes, Held | None] = {}  # by group; None: it has entries
        self._there: dict[bytes, tuple[bytes, object]] = {}  # by group: the first that changed
        self._gone: dict[bytes, tuple[bytes, object]] = {}  # and the first that left
        self._unclear: set[bytes] = set()  # groups with orders that were cut
        self._known: dict[bytes, bytes] = {}  # by group: the order of what is shown
        self._delta: dict[bytes, dict[bytes, list[Any]]] = {}  # by group and order
        self._add(aggregate, table, keys, counts, used)

    def _add(
        self,
        aggregate: Aggregate,
        table: pa.Table,
        keys: list[bytes],
        counts: list[int],
        used: list[object] | None,
    ) -> None:
        """Take in the rows of this tick."""
        columns = [physical(table.column(name)) for name, _, _ in aggregate.order]
        orders = encode_order(columns, self._kinds, self._by)
        values, orders = signed_values(
            aggregate, physical(table.column(aggregate.arguments[0])), orders
        )
        keeps_null = aggregate.function in KEEPS_NULL
        by_other = aggregate.function in ("min_by", "max_by")
        delta = self._delta
        for position, (value, key, order) in enumerate(zip(values, keys, orders, strict=True)):
            if used is not None and used[position] is not True:
                continue
            if value is None and not keeps_null:
                continue
            if by_other and columns[0][position] is None:
                continue
            group = delta.setdefault(key, {})
            found = group.get(order)
            if found is None:
                group[order] = [value, counts[position]]
            else:
                found[1] += counts[position]

    def begin(self, place: int, number: int, loaded: Mapping[bytes, Known | None]) -> None:
        """Take note of what there was of all groups. This aggregate is the `place`-th that
        is not linear, and the `number`-th that is ordered."""
        shown: dict[bytes, object] = {}
        for key, before in loaded.items():
            if before is None:
                self._held[key] = {}
            elif len(before) > 3 and before[3][number] is not None:
                self._held[key] = before[3][number]
            else:
                self._held[key] = None
                shown[key] = before[2][place]
        if self._extreme and shown:
            firsts = list(shown.values())
            orders = encode_order([firsts], self._kinds, self._by)
            _, orders = signed_values(self._aggregate, firsts, orders)
            self._known = dict(zip(shown, orders, strict=True))

    def write(self, puts: list[tuple[bytes, bytes | None]]) -> None:
        touched: dict[bytes, tuple[bytes, bytes, list[Any]]] = {}
        for key, changed in self._delta.items():
            held = self._held[key]
            if held is None:
                for order, change in changed.items():
                    touched[self._entry(key, order)] = (key, order, change)
                continue
            for order, (value, weight) in sorted(changed.items()):
                known = held.get(order)
                count = weight if known is None else known[1] + weight
                if count:
                    held[order] = (value, count)
                elif known is not None:
                    del held[order]
            if len(held) > SPILL_VALUES or len(max(held, key=len, default=b"")) > _LONG:
                self._spill(key, held, puts)
        entries = sorted(touched)
        for entry, data in zip(entries, self._state.get_many(entries), strict=True):
            key, order, (item, weight) = touched[entry]
            count = (marshal.loads(data)[1] if data is not None else 0) + weight
            puts.append((entry, dumps((item, count, order)) if count else None))
            if self._extreme:  # entries come in order: the first of a key counts
                if len(order) > KEY_LIMIT:
                    self._unclear.add(key)
                (self._there if count else self._gone).setdefault(key, (order, item))

    def _spill(
        self, key: bytes, held: Mapping[bytes, Any], puts: list[tuple[bytes, bytes | None]]
    ) -> None:
        """Give the values of a group that was small entries of their own."""
        for order, (item, count) in held.items():
            puts.append((self._entry(key, order), dumps((item, count, order))))
        self._held[key] = None
        self._unclear.add(key)  # what is shown is looked up once

    def _entry(self, key: bytes, order: bytes) -> bytes:
        return (
            self._prefix
            + (key if 0 < len(key) <= KEY_LIMIT else bounded(key, KEY_LIMIT))
            + (order if 0 < len(order) <= KEY_LIMIT else bounded(order, KEY_LIMIT))
        )

    def held_of(self, keys: Sequence[bytes]) -> list[Held | None]:
        """What the groups' own entries are to hold."""
        return list(map(self._held.__getitem__, keys))

    def finish_all(self, keys: Sequence[bytes], before: Sequence[object]) -> list[object]:
        """What each group shows now; `before`: what it showed."""
        return list(map(self.finish, keys, before))

    def finish(self, key: bytes, before: object) -> object:
        held = self._held[key]
        if held is not None:
            if self._first:
                return held[min(held)][0] if held else None
            return self._finished([held[order] for order in sorted(held)])
        if self._extreme and key not in self._unclear:
            there = self._there.get(key)
            if before is None:
                return there[1] if there is not None else None
            known = self._known[key]
            if there is not None and there[0] <= known:
                return there[1]
            gone = self._gone.get(key)
            if len(known) <= KEY_LIMIT and (gone is None or gone[0] > known):
                return before  # it is still there, and nothing came before it
        values = self._scanned(key)
        if self._first:
            return values[0][0] if values else None
        return self._finished(values)

    def _finished(self, values: Values) -> object:
        assert self._finish is not None
        return self._finish(values)

    def _scanned(self, key: bytes) -> Values:
        """The values of a large group, in order; enough to know the first one if that is
        all the aggregate asks for."""
        prefix = self._prefix + bounded(key, KEY_LIMIT)
        cut: bytes | None = None
        ranked: list[tuple[bytes, object, int]] = []
        for entry, data in self._state.scan(prefix):
            item, count, order = cast("tuple[object, int, bytes]", marshal.loads(data))
            if self._first and ranked and entry[: len(prefix) + KEY_LIMIT - 16] != cut:
                break
            cut = entry[: len(prefix) + KEY_LIMIT - 16]
            ranked.append((order, item, count))
            if self._first and len(order) <= KEY_LIMIT:
                break
        if any(len(order) > KEY_LIMIT for order, _, _ in ranked):
            ranked.sort(key=lambda entry: entry[0])
        return [(item, count) for _, item, count in ranked]


def is_plain_extreme(aggregate: Aggregate) -> bool:
    """Whether it is a min or max of values that Python orders as Spark does."""
    if aggregate.function not in ("min", "max") or len(aggregate.order) != 1:
        return False
    kind = aggregate.argument_types[0]
    return aggregate.order[0][0] == aggregate.arguments[0] and (
        kind in (pa.string(), pa.binary(), pa.bool_())
        or pa.types.is_integer(kind) or is_decimal(kind) or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind) or pa.types.is_time(kind)
    )  # fmt: skip


class Extreme(Ordered):
    """min or max of values that Python orders as Spark does: a small group holds the values
    with their counts as they are, and what is first needs no order of bytes."""

    _changed: dict[bytes, dict[Any, int]]  # by group: weights of the values that came and went

    def _add(
        self,
        aggregate: Aggregate,
        table: pa.Table,
        keys: list[bytes],
        counts: list[int],
        used: list[object] | None,
    ) -> None:
        self._pick = min if aggregate.function == "min" else max
        self._texts = aggregate.argument_types[0] in (pa.string(), pa.binary())
        changed = self._changed = {}
        values = physical(table.column(aggregate.arguments[0]))
        if used is not None:
            values = [
                value if one is True else None for value, one in zip(values, used, strict=True)
            ]
        for key, value, weight in zip(keys, values, counts, strict=True):
            if value is None:
                continue
            group = changed.get(key)
            if group is None:
                changed[key] = {value: weight}
            else:
                group[value] = group.get(value, 0) + weight

    def write(self, puts: list[tuple[bytes, bytes | None]]) -> None:
        for key, changed in self._changed.items():
            held = self._held[key]
            if held is None:
                self._delta[key] = self._by_order(changed)
                continue
            # The bytes of the state depend on the set of rows alone, not on their order.
            for value, weight in sorted(changed.items()) if len(changed) > 1 else changed.items():
                count = held.get(value, 0) + weight
                if count:
                    held[value] = count
                else:
                    held.pop(value, None)
            if len(held) > SPILL_VALUES or (
                self._texts and len(max(held, key=len, default="")) > _LONG
            ):
                self._spill(key, self._by_order(held), puts)
        super().write(puts)

    def _by_order(self, counts: dict[Any, int]) -> dict[bytes, list[Any]]:
        orders = encode_order([list(counts)], self._kinds, self._by)
        return {
            order: [value, count]
            for order, (value, count) in zip(orders, counts.items(), strict=True)
        }

    def finish_all(self, keys: Sequence[bytes], before: Sequence[object]) -> list[object]:
        pick, finish = self._pick, super().finish
        return [
            pick(held) if held else None if held is not None else finish(key, known)
            for key, known, held in zip(keys, before, self.held_of(keys), strict=True)
        ]
