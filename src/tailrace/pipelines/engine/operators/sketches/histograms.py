"""`histogram_numeric`: about how many values lie around each of a few points.

Every value is a bin of its own until there are too many; then the two nearest become one, at
their common mean. What comes of it depends on the order of the values, in Spark on that of the
rows. Here they come in ascending order, so the answer is one that Spark may give, and Spark's own
where they are sorted in one partition; with no more different values than bins each is there
with its count, whatever the order.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable

import pyarrow as pa

from tailrace.pipelines.engine.operators.sketches.count_min import java_random
from tailrace.pipelines.values.rows import physical
from tailrace.pipelines.values.types import is_decimal, is_float

_SEED = 31183  # of the choice between pairs that are equally near


def histogram(values: Iterable[tuple[float, int]], bins: int) -> list[tuple[float, float]]:
    """(point, how many) of values given with their counts, in ascending order; NaN last."""
    points: list[float] = []
    counts: list[float] = []
    states = java_random(_SEED)

    def chance() -> float:
        high, low = next(states) >> 22, next(states) >> 21
        return float((high << 27) + low) * 2.0**-53

    for value, count in values:
        for left in range(count, 0, -1):
            place = _place(points, value)
            if place < len(points) and points[place] == value:
                counts[place] += left  # nothing moves: all of the others go the same way
                break
            points.insert(place, value)
            counts.insert(place, 1.0)
            if len(points) > bins:
                _join(points, counts, chance)
    return list(zip(points, counts, strict=True))


def _place(points: list[float], value: float) -> int:
    """Where a value is or belongs. NaN, which is nowhere, comes into the middle."""
    low, high, middle = 0, len(points), 0
    while low < high:
        middle = (low + high) // 2
        if points[middle] > value:
            high = middle
        elif points[middle] < value:
            middle += 1
            low = middle
        else:
            break
    return middle


def _join(points: list[float], counts: list[float], chance: Callable[[], float]) -> None:
    """Make the two nearest bins one."""
    least, at, equal = points[1] - points[0], 0, 1
    for place in range(1, len(points) - 1):
        gap = points[place + 1] - points[place]
        if gap < least:
            least, at, equal = gap, place, 1
        elif gap == least:
            equal += 1
            if chance() <= 1.0 / equal:
                at = place
    both = counts[at] + counts[at + 1]
    points[at] = points[at] * (counts[at] / both) + points[at + 1] / both * counts[at + 1]
    counts[at] = both
    del points[at + 1], counts[at + 1]


def shown(values: list[tuple[object, int]], bins: int, kind: pa.DataType) -> object:
    """The histogram of physical values of a type, as a physical value; NULL of none."""
    if not values:
        return None
    unit = 10**kind.scale if is_decimal(kind) else 1
    numbers = [(float(value) / unit, count) for value, count in values]  # type: ignore[arg-type]
    found = histogram(numbers, bins)
    points = pa.array([_typed(point, kind) for point, _ in found], _plain_of(kind)).cast(kind)
    rows = [{"x": x, "y": y} for x, (_, y) in zip(points.to_pylist(), found, strict=True)]
    return physical(pa.array([rows], histogram_type(kind)))[0]


def histogram_type(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("x", kind), ("y", pa.float64())]))


def _typed(point: float, kind: pa.DataType) -> object:
    """A point in the type of the values: cut to a whole one, decimals rounded half up."""
    if is_float(kind):
        return point
    if is_decimal(kind):
        step = decimal.Decimal(1).scaleb(-kind.scale)
        exact = decimal.Context(prec=76)
        return decimal.Decimal(repr(point)).quantize(step, decimal.ROUND_HALF_UP, exact)
    most = (1 << (kind.bit_width - 1)) - 1
    return max(-most - 1, min(int(point), most))  # 2^63 - 1 is no double


def _plain_of(kind: pa.DataType) -> pa.DataType:
    """The type of numbers that a type's values are kept as."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) else kind
