"""Aggregates over the rows of a match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tailrace.pipelines.engine.operators.aggregates import finisher, linear, signed_values
from tailrace.pipelines.engine.patterns.conditions import Readers, compile_expression
from tailrace.pipelines.engine.patterns.slots import CLASSIFIER, Aggregated
from tailrace.pipelines.values.keys import encode_column, encode_order
from tailrace.pipelines.values.rows import Row

Place: TypeAlias = tuple[Row, str | None]  # a row and the variable that took it
_FIRST_ONLY = ("min", "max", "first", "any_value", "min_by", "max_by")
_KEEP_NULLS = ("first", "any_value", "min_by", "max_by")


def row_readers(columns: Sequence[str]) -> Readers:
    """What an argument of an aggregate reads at a `Place`."""

    def reader(at: int) -> Callable[[Any], object]:
        return lambda place: place[0][at]

    readers: dict[str, Callable[[Any], object]] = {
        name: reader(at) for at, name in enumerate(columns)
    }
    readers[CLASSIFIER] = lambda place: place[1]
    return readers


class Totals:
    """Computes one aggregate of any rows."""

    def __init__(self, asked: Aggregated, columns: Sequence[str]) -> None:
        readers = row_readers(columns)
        aggregate = asked.aggregate
        self._aggregate, self._directions = aggregate, asked.directions
        self._arguments = [compile_expression(one, readers) for one in asked.arguments]
        self._kinds = [one.type for one in asked.arguments]
        self._condition = (
            compile_expression(asked.condition, readers) if asked.condition is not None else None
        )
        self._own = len(aggregate.argument_types)
        self.rule = linear(aggregate)
        self._finish = (
            None
            if self.rule is not None or aggregate.function in _FIRST_ONLY
            else finisher(aggregate)
        )

    @property
    def steps(self) -> bool:
        """Whether `add` can count one row more: the aggregate is a sum of integers."""
        return self.rule is not None and not self._aggregate.distinct

    @property
    def nothing(self) -> tuple[int, ...]:
        assert self.rule is not None
        return (0,) * self.rule.width

    def add(self, sums: tuple[int, ...], place: Place) -> tuple[int, ...]:
        assert self.rule is not None
        if self._condition is not None and self._condition(place) is not True:
            return sums
        parts = self.rule.parts([argument(place) for argument in self._arguments[: self._own]])
        if parts is None:
            return sums
        return tuple([a + b for a, b in zip(sums, parts, strict=True)])

    def finish(self, sums: tuple[int, ...]) -> object:
        assert self.rule is not None
        return self.rule.finish(list(sums))

    def of(self, places: Sequence[Place]) -> object:
        """The aggregate of these rows, in their order."""
        if self.steps:
            sums = self.nothing
            for place in places:
                sums = self.add(sums, place)
            return self.finish(sums)
        if self._condition is not None:
            places = [place for place in places if self._condition(place) is True]
        rows = [[argument(place) for argument in self._arguments] for place in places]
        if self._aggregate.distinct:
            rows = self._distinct(rows)
        if self.rule is not None:
            sums = self.nothing
            for row in rows:
                parts = self.rule.parts(row[: self._own])
                if parts is not None:
                    sums = tuple([a + b for a, b in zip(sums, parts, strict=True)])
            return self.finish(sums)
        return self._ordered(rows)

    def _distinct(self, rows: list[list[object]]) -> list[list[object]]:
        if not rows or not self._own:
            return rows[:1]
        own = list(zip(*rows, strict=True))[: self._own]
        encoded = [
            encode_column(values, kind) for values, kind in zip(own, self._kinds, strict=False)
        ]
        seen: dict[tuple[bytes, ...], list[object]] = {}
        for key, row in zip(zip(*encoded, strict=True), rows, strict=True):
            seen.setdefault(key, row)
        return list(seen.values())

    def _ordered(self, rows: list[list[object]]) -> object:
        aggregate = self._aggregate
        if aggregate.function not in _KEEP_NULLS:
            rows = [row for row in rows if row[0] is not None]
        values = [row[0] for row in rows]
        orders: list[bytes] = []
        if self._directions and rows:
            columns = list(zip(*rows, strict=True))[self._own :]
            orders = encode_order(columns, self._kinds[self._own :], self._directions)
        if not orders:  # as they come
            orders = [at.to_bytes(8, "big") for at in range(len(rows))]
        if rows:
            values, orders = signed_values(aggregate, values, orders)
        value_of = dict(zip(orders, values, strict=True))
        if self._finish is None:
            return value_of[min(value_of)] if value_of else None
        counts = Counter(orders)
        return self._finish([(value_of[order], counts[order]) for order in sorted(counts)])
