"""Window functions: a partition that changed is computed again, its difference emitted.

partition key -> bag               the rows of the partition (see `bags`)
"x" + time + partition key         when one of its sessions is over (see `expiry`)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add
from typing import ClassVar, cast

import pyarrow as pa

from tailrace.pipelines.engine.functions.times import DAY, add_months
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators.aggregates import (
    ONE_ZERO,
    Aggregate,
    finisher,
    form_of,
    linear,
    signed_values,
)
from tailrace.pipelines.engine.operators.bags import by_key, read_bags
from tailrace.pipelines.engine.operators.expiry import Expiry, coarse
from tailrace.pipelines.engine.operators.statistics import PAIRED
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import encode_keys, encode_order, encode_part
from tailrace.pipelines.values.rows import Row, changes, decode_row, encode_row, to_rows, weights

Frame = tuple[str, int | float | None, int | float | None]
Bounds = Callable[[int], tuple[int, int]]
Moved = Callable[[float, float], float]
Distances = tuple[list[float | None], bool, Moved]  # the order's values, whether descending


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """One function: its arguments are columns of the input."""

    function: str
    arguments: tuple[str, ...]
    argument_types: tuple[pa.DataType, ...]
    type: pa.DataType
    frame: Frame
    parameters: tuple[object, ...] = ()
    condition: str | None = None

    def describe(self) -> str:
        shown = ", ".join((*self.arguments, *map(str, self.parameters)))
        condition = f" filter {self.condition}" if self.condition else ""
        return f"{self.function}({shown}){condition} {self.frame}: {self.type}"

    def aggregate(self) -> Aggregate:
        """What it computes of the rows of a frame, if it does: ranks are no aggregates."""
        own = 2 if self.function in PAIRED else 1  # what follows is its order
        given = self.parameters[0] if self.parameters else ()
        return Aggregate(
            name="",
            function=self.function,
            arguments=self.arguments[:own],
            argument_types=self.argument_types[:own],
            type=self.type,
            parameters=given if isinstance(given, tuple) else (),
        )

    @property
    def form(self) -> int:
        """The form (see `Operator`) of what it shows."""
        # Of mode and collect_set: before, equal values were several.
        return 2 if self.function in ONE_ZERO else form_of(self.aggregate())


@dataclass(frozen=True, slots=True)
class Window:
    """The output is `columns` of the input, then one column per function."""

    partition: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...]
    functions: tuple[WindowFunction, ...]
    carried: tuple[str, ...]
    columns: tuple[str, ...]
    carried_types: tuple[pa.DataType, ...]
    schema: pa.Schema
    expiry: Expiry | None = None  # of sessions, if nothing else is computed
    kind: ClassVar[str] = "window"
    wakes: ClassVar[bool] = False

    @property
    def form(self) -> int:
        return max((function.form for function in self.functions), default=1)

    def describe(self) -> str:
        order = ", ".join(
            f"{n}{' desc' if d else ''}{' nf' if f else ''}" for n, d, f in self.order
        )
        listed = ", ".join(function.describe() for function in self.functions)
        return (
            f"window by ({', '.join(self.partition)}) order ({order}) {listed} → "
            f"{', '.join(self.columns)}"
        )

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0]
        rows = [encode_row(row) for row in to_rows(table, self.carried)]
        deltas = by_key(encode_keys(table, self.partition), rows, weights(table))
        keys = sorted(deltas)
        bags = read_bags(state, keys)
        puts: list[tuple[bytes, bytes | None]] = []
        out: list[Row] = []
        counts: list[int] = []
        came: list[tuple[Row, int, bytes]] = []
        for key in keys:
            old = dict(bags[key].rows())
            new = dict(old)
            for row, weight in deltas[key].items():
                new[row] = new.get(row, 0) + weight
            bags[key].change(deltas[key], puts)
            total: dict[bytes, int] = {}
            for bag, sign in ((new, 1), (old, -1)):
                for row_out in self._compute(bag):
                    data = encode_row(row_out)
                    total[data] = total.get(data, 0) + sign
            for data in sorted(total):
                if total[data]:
                    out.append(decode_row(data))
                    counts.append(total[data])
                    came.append((out[-1], counts[-1], key))
        state.put_many(sorted(puts))
        horizon = self.expiry.horizon(tick) if self.expiry else None
        if self.expiry is not None and horizon is not None:
            self._forget(state, came, self.expiry, horizon)
        return changes(out, counts, self.schema)

    def _forget(
        self,
        state: OperatorState,
        came: list[tuple[Row, int, bytes]],
        expiry: Expiry,
        horizon: int,
    ) -> None:
        """Note when the sessions that came are over, and remove the rows of those that are."""
        shown = self.schema.names.index(expiry.column)
        expiry.remember(state, ((coarse(row[shown]), key) for row, count, key in came if count > 0))
        function = self.functions[shown - len(self.columns)]
        place = self.carried.index(function.arguments[0])
        puts: list[tuple[bytes, bytes | None]] = []
        for bag in read_bags(state, expiry.over(state, horizon)).values():
            rows = sorted(((decode_row(row)[place], row, weight) for row, weight in bag.rows()))
            ends = _sessions(function, [moment for moment, _, _ in rows])
            past = {
                row: -weight
                for (_, row, weight), end in zip(rows, ends, strict=True)
                if expiry.is_over(end, horizon)
            }
            if past:
                bag.change(past, puts)
        state.put_many(sorted(puts))

    def _compute(self, bag: dict[bytes, int]) -> list[Row]:
        """The output rows of a partition."""
        data = [row for row, weight in sorted(bag.items()) for _ in range(weight)]
        if not data:
            return []
        rows = [decode_row(row) for row in data]
        place = {name: i for i, name in enumerate(self.carried)}
        kinds = dict(zip(self.carried, self.carried_types, strict=True))
        names = [name for name, _, _ in self.order]
        orders = encode_order(
            [[row[place[name]] for row in rows] for name in names],
            [kinds[name] for name in names],
            [(descending, nulls) for _, descending, nulls in self.order],
        ) or [b""] * len(rows)
        ranked = sorted(range(len(rows)), key=lambda i: (orders[i], data[i]))
        rows = [rows[i] for i in ranked]
        orders = [orders[i] for i in ranked]
        results = [
            _evaluate(
                function,
                [[row[place[a]] for row in rows] for a in function.arguments],
                [row[place[function.condition]] for row in rows] if function.condition else None,
                orders,
                (
                    cast("list[float | None]", [row[place[names[0]]] for row in rows]),
                    self.order[0][1],
                    _months_away(kinds[names[0]]) if function.frame[0] == "months" else add,
                )
                if function.frame[0] in ("distance", "months")
                else ([], False, add),
            )
            for function in self.functions
        ]
        shown = [place[name] for name in self.columns]
        return [
            (*(row[i] for i in shown), *(result[at] for result in results))
            for at, row in enumerate(rows)
        ]


def _evaluate(
    function: WindowFunction,
    arguments: list[list[object]],
    condition: list[object] | None,
    orders: list[bytes],
    distances: Distances,
) -> Sequence[object]:
    count = len(orders)
    starts, ends = _peers(orders)
    match function.function:
        case "row_number":
            return range(1, count + 1)
        case "rank":
            return [start + 1 for start in starts]
        case "dense_rank":
            number, ranks = 0, []
            for at, start in enumerate(starts):
                number += at == start
                ranks.append(number)
            return ranks
        case "percent_rank":
            return [start / (count - 1) if count > 1 else 0.0 for start in starts]
        case "cume_dist":
            return [end / count for end in ends]
        case "ntile":
            return _tiles(count, function.parameters[0])  # type: ignore[arg-type]
        case "lag" | "lead":
            return _shifted(function, arguments)
        case "session_start" | "session_end":
            return _sessions(function, arguments[0])
        case "counter_diff":
            return _counted(function, arguments)
    bounds = _bounds(function.frame, starts, ends, count, distances)
    if function.function in ("first_value", "last_value", "nth_value"):
        return _picked(function, arguments[0], bounds, count)
    return _aggregated(function, arguments, condition, bounds, count)


def _peers(orders: list[bytes]) -> tuple[list[int], list[int]]:
    """Where the group of rows equal in order begins and ends, for each row."""
    count = len(orders)
    starts, ends = [0] * count, [count] * count
    for at in range(1, count):
        starts[at] = starts[at - 1] if orders[at] == orders[at - 1] else at
    for at in range(count - 2, -1, -1):
        ends[at] = ends[at + 1] if orders[at] == orders[at + 1] else at + 1
    return starts, ends


def _bounds(
    frame: Frame, starts: list[int], ends: list[int], count: int, distances: Distances
) -> Bounds:
    kind, start, end = frame

    def rows(at: int) -> tuple[int, int]:
        first = 0 if start is None else min(count, max(0, at + int(start)))
        last = count if end is None else min(count, at + int(end) + 1)
        return first, max(first, last)

    def peers(at: int) -> tuple[int, int]:
        return (0 if start is None else starts[at]), (count if end is None else ends[at])

    if kind in ("distance", "months"):
        return _within(start, end, starts, ends, count, distances)
    return rows if kind == "rows" else peers


def _within(
    start: float | None,
    end: float | None,
    starts: list[int],
    ends: list[int],
    count: int,
    distances: Distances,
) -> Bounds:
    """Rows whose order is no further from the current one's than the offsets. A NULL is near
    NULLs alone, a NaN near NaNs."""
    values, descending, moved = distances
    known = [at for at, value in enumerate(values) if value is not None and value == value]
    shift = known[0] if known else 0
    sign = -1 if descending else 1
    ranked = [sign * values[at] for at in known]  # type: ignore[operator]

    def bounds(at: int) -> tuple[int, int]:
        value = values[at]
        if value is None or value != value:
            return (0 if start is None else starts[at]), (count if end is None else ends[at])

        def end_of(offset: float) -> float:
            return sign * moved(value, sign * offset)

        first = 0 if start is None else shift + bisect_left(ranked, end_of(start))
        last = count if end is None else shift + bisect_right(ranked, end_of(end))
        return first, max(first, last)

    return bounds


def _months_away(kind: pa.DataType) -> Moved:
    """A date or a moment and a number of months: that much later."""
    unit = 1 if pa.types.is_date32(kind) else DAY

    def moved(value: float, months: float) -> float:
        days, rest = divmod(int(value), unit)
        return add_months(days, int(months)) * unit + rest

    return moved


def _tiles(count: int, tiles: int) -> list[int]:
    size, larger = divmod(count, tiles)
    out: list[int] = []
    for tile in range(1, tiles + 1):
        out.extend([tile] * (size + (tile <= larger)))
    return out[:count]


def _shifted(function: WindowFunction, arguments: list[list[object]]) -> list[object]:
    offset, ignores = int(function.parameters[0]), bool(function.parameters[1])  # type: ignore[call-overload]
    values, defaults = arguments
    step = -1 if function.function == "lag" else 1
    if offset < 0:
        step, offset = -step, -offset
    out: list[object] = []
    for at in range(len(values)):
        position, left = at, offset
        while left and 0 <= position + step < len(values):
            position += step
            if not (ignores and values[position] is None):
                left -= 1
        out.append(values[position] if not left else defaults[at])
    return out


def _counted(function: WindowFunction, arguments: list[list[object]]) -> list[object]:
    """What a counter grew by since the last row that has a value; NULL where it was reset."""
    kind = function.argument_types[0]
    starts = arguments[1] if len(arguments) > 1 else [None] * len(arguments[0])
    out: list[object] = []
    last: float | None = None
    begun: int | None = None
    for value, start in zip(
        cast("list[float | None]", arguments[0]), cast("list[int | None]", starts), strict=True
    ):
        if value is None:
            out.append(None)
            continue
        if value < 0:
            raise EvaluationError("counter_diff: a counter is never negative")
        known = begun is not None and start is not None
        if known and cast(int, start) < cast(int, begun):
            raise EvaluationError("counter_diff: the start of a counter went back")
        reset = last is None or encode_part(value, kind) < encode_part(last, kind)
        if reset or (known and start != begun):
            out.append(None)
        else:
            out.append(value - last)  # type: ignore[operator]
        last, begun = value, start
    return out


def _sessions(function: WindowFunction, times: list[object]) -> list[object]:
    """Where the session of each row begins or ends; times are in order, none is NULL."""
    gap = int(function.parameters[0])  # type: ignore[call-overload]
    moments = cast("list[int]", times)
    starts: list[int] = []
    for at, moment in enumerate(moments):
        joined = at > 0 and moment <= moments[at - 1] + gap
        starts.append(starts[-1] if joined else moment)
    if function.function == "session_start":
        return list(starts)
    last = dict(zip(starts, moments, strict=True))  # the latest time of each session
    return [last[start] + gap for start in starts]


def _picked(
    function: WindowFunction, values: list[object], bounds: Bounds, count: int
) -> list[object]:
    number, ignores = int(function.parameters[0]), bool(function.parameters[1])  # type: ignore[call-overload]
    out: list[object] = []
    for at in range(count):
        start, end = bounds(at)
        inside = values[start:end]
        if ignores:
            inside = [value for value in inside if value is not None]
        if function.function == "last_value":
            out.append(inside[-1] if inside else None)
        else:
            out.append(inside[number - 1] if len(inside) >= number else None)
    return out


def _aggregated(
    function: WindowFunction,
    arguments: list[list[object]],
    condition: list[object] | None,
    bounds: Bounds,
    count: int,
) -> list[object]:
    _, directions = function.parameters
    aggregate = function.aggregate()
    rule = linear(aggregate)
    used = [condition is None or condition[at] is True for at in range(count)]
    if rule is not None:
        # Prefix sums: the frame's integers are a difference of two.
        sums = [[0] * rule.width]
        for at in range(count):
            parts = rule.parts([column[at] for column in arguments]) if used[at] else None
            last = sums[-1]
            sums.append([a + b for a, b in zip(last, parts, strict=True)] if parts else last)
        out: list[object] = []
        for at in range(count):
            start, end = bounds(at)
            out.append(rule.finish([b - a for a, b in zip(sums[start], sums[end], strict=True)]))
        return out
    orders = encode_order(arguments[1:], function.argument_types[1:], directions)  # type: ignore[arg-type]
    values, orders = signed_values(aggregate, arguments[0], orders)
    first_only = function.function in ("min", "max", "first", "any_value", "min_by", "max_by")
    finish = None if first_only else finisher(aggregate)
    skips_null = function.function not in ("first", "any_value", "min_by", "max_by")
    known: dict[tuple[int, int], object] = {}
    result: list[object] = []
    for at in range(count):
        frame = bounds(at)
        if frame not in known:
            inside = [
                i for i in range(*frame) if used[i] and not (skips_null and values[i] is None)
            ]
            value_of = {orders[i]: values[i] for i in inside}
            if finish is None:
                known[frame] = value_of[min(value_of)] if value_of else None
            else:
                counts = Counter(orders[i] for i in inside)
                known[frame] = finish(
                    [(value_of[order], counts[order]) for order in sorted(counts)]
                )
        result.append(known[frame])
    return result
