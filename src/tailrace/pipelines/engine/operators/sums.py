"""Counts and sums of a whole tick at once, in Arrow.

The short way for large inputs: where every aggregate of a GROUP BY is a count, sum or mean
of integers or decimals and no product can leave 64 bits, the tick is added up per group
before Python sees it. `group` does the same row by row; both give equal integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.operators.aggregates import (
    Aggregate,
    Count,
    ExactAverage,
    ExactSum,
    Linear,
    Moments,
)
from tailrace.pipelines.engine.operators.append_only_extremes import is_extreme
from tailrace.pipelines.values.columns import WEIGHT
from tailrace.pipelines.values.keys import encode_keys
from tailrace.pipelines.values.rows import Row, physical, whole_numbers
from tailrace.records.columns import decimal_words

SUM_ROWS = 200
_ROOM = 1 << 62
_WHOLE = 1 << 53  # up to here integers are doubles


@dataclass(frozen=True, slots=True)
class Summed:
    """One row per group with its keys and `__weight`; the integers each aggregate adds; and
    the min or max of each aggregate whose rows only come."""

    table: pa.Table
    sums: list[list[int]]
    firsts: list[Row]


def sum_columns(
    table: pa.Table, keys: Sequence[str], kept: Sequence[tuple[Aggregate, Linear | None]]
) -> Summed | None:
    """The input added up; None when an aggregate must see its rows one by one."""
    if any(pa.types.is_nested(table.schema.field(name).type) for name in keys):
        return None
    weights = table.column(WEIGHT).to_numpy()
    heaviest = int(np.abs(weights).max()) * table.num_rows
    columns: list[np.ndarray] = []
    extremes: list[tuple[str, pa.ChunkedArray]] = []
    for aggregate, rule in kept:
        if rule is None and keys and is_extreme(aggregate):
            column = table.column(aggregate.arguments[0])
            if not _is_plain(column.type):
                return None
            if aggregate.condition is not None:
                used = table.column(aggregate.condition).fill_null(False)
                column = pc.if_else(used, column, pa.scalar(None, column.type))
            extremes.append((aggregate.function, column))
            continue
        made = _columns(table, weights, heaviest, aggregate, rule)
        if made is None:
            return None
        columns.extend(made)
    if not keys:
        total = pa.table({WEIGHT: pa.array([int(weights.sum())], pa.int64())})
        return Summed(total, [[int(column.sum()) for column in columns]], [])
    names = [f"__{number}" for number in range(len(columns))]
    firsts = [f"__first_{number}" for number in range(len(extremes))]
    wide = pa.Table.from_arrays(
        [
            *(table.column(name) for name in keys), table.column(WEIGHT),
            *map(pa.array, columns), *(column for _, column in extremes),
        ],
        names=[*keys, WEIGHT, *names, *firsts],
    )  # fmt: skip
    grouped = wide.group_by(list(keys), use_threads=False).aggregate(
        [
            *((name, "sum") for name in (WEIGHT, *names)),
            *((name, function) for name, (function, _) in zip(firsts, extremes, strict=True)),
        ]
    )
    grouped = grouped.rename_columns(wide.column_names)
    parts = [grouped.column(name).to_numpy().tolist() for name in names]
    sums = [list(row) for row in zip(*parts, strict=True)]
    found = list(zip(*(physical(grouped.column(name)) for name in firsts), strict=True))
    return Summed(
        grouped.select([*keys, WEIGHT]), sums or [[] for _ in range(grouped.num_rows)], found
    )


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Arrow and Python order values of a type as Spark does."""
    tests = (pa.types.is_integer, pa.types.is_timestamp, pa.types.is_date, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _columns(
    table: pa.Table,
    weights: np.ndarray,
    heaviest: int,
    aggregate: Aggregate,
    rule: Linear | None,
) -> list[np.ndarray] | None:
    """What each row adds to the aggregate's integers."""
    if aggregate.distinct or rule is None:
        return None
    used = weights
    for name in (*aggregate.arguments, *filter(None, [aggregate.condition])):
        column = table.column(name)
        if name == aggregate.condition:
            used = used * column.fill_null(False).to_numpy()
        elif column.null_count:
            used = used * column.is_valid().to_numpy()
    if isinstance(rule, Count):
        return [used]
    summed = isinstance(rule, ExactSum | ExactAverage)
    mean = isinstance(rule, Moments) and rule.function == "avg" and not rule.float
    if not (summed or mean):
        return None
    values = whole_numbers(table.column(aggregate.arguments[0]))
    if values is None:
        return None
    largest = max(abs(int(values.max())), abs(int(values.min())), 1)
    if largest * heaviest >= _ROOM or (mean and largest > _WHOLE):
        return None
    zero = np.zeros(len(used), "i8")
    return [used, used * values] if summed else [used, used * values, zero, zero, zero, zero]


def given_sums(
    table: pa.Table, keys: Sequence[str], rows: str, kept: Sequence[tuple[Aggregate, Linear | None]]
) -> Summed:
    """The input added up, where joins have counted and added already (see `sumjoin`)."""
    often = table.column(WEIGHT).to_numpy()
    columns = [times(numbers(table.column(rows)), often)]
    for aggregate, rule in kept:
        amounts = [times(numbers(table.column(name)), often) for name in aggregate.arguments]
        unused = 0 if rule is None else rule.width - len(amounts)
        columns += [*amounts, *[np.zeros(len(often), "i8")] * unused]
    firsts, totals = added_up(encode_keys(table, keys), columns)
    arrays = [table.column(name).take(pa.array(firsts, pa.int64())) for name in keys]
    found = pa.Table.from_arrays([*arrays, pa.array(totals[0], pa.int64())], [*keys, WEIGHT])
    sums = [list(row) for row in zip(*(one.tolist() for one in totals[1:]), strict=True)]
    return Summed(found, sums or [[] for _ in firsts], [])


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Whole numbers, 0 for NULL: of 64 bits, or Python's where one is larger."""
    found = whole_numbers(column)
    if found is not None:
        return found
    words, fit = decimal_words(column.combine_chunks())
    if fit:
        return words
    return np.array([value or 0 for value in physical(column)], object)


def times(amounts: np.ndarray, often: np.ndarray) -> np.ndarray:
    """The products; Python's numbers where 64 bits might not hold what is added up of them."""
    if len(amounts) and amounts.dtype != object:
        largest = max(abs(int(amounts.max())), abs(int(amounts.min())))
        most = max(abs(int(often.max())), abs(int(often.min())))
        if largest * most * len(amounts) >= _ROOM:
            amounts = amounts.astype(object)
    products: np.ndarray = amounts * often
    return products


def plus(amounts: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The sums; Python's numbers where 64 bits might not hold one."""
    if len(amounts) and amounts.dtype != object and more.dtype != object:
        for one in (amounts, more):
            if max(abs(int(one.max())), abs(int(one.min()))) >= _ROOM:
                amounts = amounts.astype(object)
    sums: np.ndarray = amounts + more
    return sums


def added_up(
    entries: Sequence[bytes], amounts: list[np.ndarray]
) -> tuple[list[int], list[np.ndarray]]:
    """The amounts of equal entries added up, in the order of the entries, and where the first
    of each stands."""
    firsts: dict[bytes, int] = {}
    for place, entry in enumerate(entries):
        firsts.setdefault(entry, place)
    order = sorted(firsts)
    chosen = list(map(firsts.__getitem__, order))
    if len(order) == len(entries):
        return chosen, [one[chosen] for one in amounts]
    numbered = dict(zip(order, range(len(order)), strict=True))
    places = np.fromiter(map(numbered.__getitem__, entries), "i8", len(entries))
    totals = []
    for one in amounts:
        total = np.zeros(len(order), one.dtype)
        np.add.at(total, places, one)
        totals.append(total)
    return chosen, totals
