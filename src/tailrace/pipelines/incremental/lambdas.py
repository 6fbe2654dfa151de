"""Functions of functions: `transform(xs, x -> x + 1)`, `filter`, `exists`, `aggregate` …

The elements of all rows are laid out as one table, with the columns of the row each came
from; the lambda is then evaluated once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.incremental.expression import Call, Column, Expression

Evaluate = Callable[[Expression, pa.Table], pa.Array]


def parameters_of(function: Expression) -> tuple[Expression, tuple[Column, ...]]:
    """The body of a lambda and its parameters."""
    assert isinstance(function, Call)
    body, *names = function.arguments
    return body, tuple(name for name in names if isinstance(name, Column))


def apply(
    name: str,
    arguments: tuple[Expression, ...],
    table: pa.Table,
    kind: pa.DataType,
    evaluate: Evaluate,
) -> pa.Array:
    """The value of a function that takes a lambda."""
    values = evaluate(arguments[0], table)
    if name == "aggregate":
        return _aggregate(values, arguments, table, evaluate)
    if name == "zip_with":
        return _zip_with(values, evaluate(arguments[1], table), arguments[2], table, evaluate)
    if pa.types.is_map(values.type):
        return _over_map(name, values, arguments[1], table, kind, evaluate)
    if name == "array_sort_by":
        return _sort(values, arguments[1], table, evaluate)
    elements, inner = _elements(values, table)
    body, parameters = parameters_of(arguments[1])
    columns = [elements, _positions(values)]
    answers = evaluate(body, _with(inner, parameters, columns))
    match name:
        case "transform":
            return _rebuilt(values, answers)
        case "filter":
            kept = pc.fill_null(answers, False)
            return _kept(values, elements, kept)
    return _quantified(name, values, answers)


def _elements(values: pa.Array, table: pa.Table) -> tuple[pa.Array, pa.Table]:
    """All elements, and the row of the table that each came from."""
    parents = pc.list_parent_indices(values)
    return pc.list_flatten(values), table.take(parents)


def _lengths(values: pa.Array) -> np.ndarray:
    lengths: np.ndarray = pc.fill_null(pc.list_value_length(values), 0).to_numpy(
        zero_copy_only=False
    )
    return lengths.astype("i8")


def _positions(values: pa.Array) -> pa.Array:
    lengths = _lengths(values)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pa.array((np.arange(len(starts)) - starts).astype("i4"))


def _with(table: pa.Table, parameters: tuple[Column, ...], columns: list[pa.Array]) -> pa.Table:
    for parameter, column in zip(parameters, columns, strict=False):
        table = table.append_column(pa.field(parameter.name, parameter.type), column)
    return table.combine_chunks()


def _offsets(lengths: np.ndarray, values: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    if not values.null_count:
        return pa.array(offsets, pa.int32())
    missing = np.append(values.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(offsets, pa.int32(), mask=missing)


def _rebuilt(values: pa.Array, answers: pa.Array) -> pa.Array:
    """Lists of the same lengths with other elements."""
    return pa.ListArray.from_arrays(_offsets(_lengths(values), values), answers)


def _kept(values: pa.Array, elements: pa.Array, kept: pa.Array) -> pa.Array:
    counts = _sums(values, kept.to_numpy(zero_copy_only=False))
    return pa.ListArray.from_arrays(_offsets(counts, values), elements.filter(kept))


def _sums(values: pa.Array, flags: np.ndarray) -> np.ndarray:
    parents = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
    return np.bincount(parents[flags], minlength=len(values)).astype("i8")


def _quantified(name: str, values: pa.Array, answers: pa.Array) -> pa.Array:
    """exists and forall, with SQL's third truth value."""
    true = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
    null = answers.is_null().to_numpy(zero_copy_only=False)
    trues, nulls = _sums(values, true), _sums(values, null)
    if name == "exists":
        decided = pa.array(trues > 0, mask=(trues == 0) & (nulls > 0))
    else:
        falses = _lengths(values) - trues - nulls
        decided = pa.array(falses == 0, mask=(falses == 0) & (nulls > 0))
    if not values.null_count:
        return decided
    return pc.if_else(values.is_valid(), decided, pa.scalar(None, pa.bool_()))


def _over_map(
    name: str,
    values: pa.Array,
    function: Expression,
    table: pa.Table,
    kind: pa.DataType,
    evaluate: Evaluate,
) -> pa.Array:
    """transform_keys, transform_values and map_filter."""
    pairs = values.to_pylist()
    rows = np.repeat(np.arange(len(pairs)), [len(p) if p is not None else 0 for p in pairs])
    flat = [pair for p in pairs if p is not None for pair in p]
    body, parameters = parameters_of(function)
    columns = [
        pa.array([key for key, _ in flat], values.type.key_type),
        pa.array([value for _, value in flat], values.type.item_type),
    ]
    answers = evaluate(body, _with(table.take(pa.array(rows)), parameters, columns)).to_pylist()
    out: list[list[tuple[object, object]] | None] = [None if p is None else [] for p in pairs]
    for row, (key, value), answer in zip(rows.tolist(), flat, answers, strict=True):
        chosen = out[row]
        assert chosen is not None
        match name:
            case "transform_values":
                chosen.append((key, answer))
            case "transform_keys":
                chosen.append((answer, value))
            case _ if answer:
                chosen.append((key, value))
    if name == "transform_keys":
        from tailrace.pipelines.incremental.library.lists import _checked

        for made in out:
            _checked(made or [])
    return pa.array(out, kind)


def _zip_with(
    left: pa.Array, right: pa.Array, function: Expression, table: pa.Table, evaluate: Evaluate
) -> pa.Array:
    pairs = list(zip(left.to_pylist(), right.to_pylist(), strict=True))
    lengths = [0 if a is None or b is None else max(len(a), len(b)) for a, b in pairs]
    body, parameters = parameters_of(function)
    sides: list[list[object]] = [[], []]
    for (a, b), length in zip(pairs, lengths, strict=True):
        if a is None or b is None:
            continue
        sides[0] += a + [None] * (length - len(a))
        sides[1] += b + [None] * (length - len(b))
    rows = np.repeat(np.arange(len(pairs)), lengths)
    columns = [
        pa.array(side, array.type.value_type)
        for side, array in zip(sides, (left, right), strict=True)
    ]
    answers = evaluate(body, _with(table.take(pa.array(rows)), parameters, columns))
    missing = pa.array([None if a is None or b is None else True for a, b in pairs], pa.bool_())
    return pa.ListArray.from_arrays(_offsets(np.array(lengths, "i8"), missing), answers)


def _aggregate(
    values: pa.Array, arguments: tuple[Expression, ...], table: pa.Table, evaluate: Evaluate
) -> pa.Array:
    """aggregate(xs, start, (acc, x) -> …, acc -> …): step by step, all rows at once."""
    merge, names = parameters_of(arguments[2])
    state = evaluate(arguments[1], table)
    lists = values.to_pylist()
    lengths = np.array([len(part) if part is not None else 0 for part in lists], "i8")
    for step in range(int(lengths.max(initial=0))):
        busy = np.flatnonzero(lengths > step)
        elements = pa.array([lists[row][step] for row in busy], values.type.value_type)
        rows = pa.array(busy)
        inner = _with(table.take(rows), names, [state.take(rows), elements])
        answers = evaluate(merge, inner)
        place = np.arange(len(lists))
        place[busy] = len(lists) + np.arange(len(busy))
        state = pa.concat_arrays([state, answers]).take(pa.array(place))
    if values.null_count:
        index = pa.array(np.arange(len(lists)), mask=values.is_null().to_numpy(False))
        state = state.take(index)
    finish, names = parameters_of(arguments[3])
    done = evaluate(finish, _with(table, names, [state]))
    if values.null_count:
        done = done.take(pa.array(np.arange(len(lists)), mask=values.is_null().to_numpy(False)))
    return done


def _sort(values: pa.Array, function: Expression, table: pa.Table, evaluate: Evaluate) -> pa.Array:
    """array_sort with a comparator: insertion by comparison, which calls it per pair."""
    from functools import cmp_to_key

    body, names = parameters_of(function)
    kind = values.type.value_type
    out: list[list[object] | None] = []
    for row, part in enumerate(values.to_pylist()):
        if part is None:
            out.append(None)
            continue
        one = table.slice(row, 1)

        def compare(a: object, b: object, one: pa.Table = one) -> int:
            sides = [pa.array([a], kind), pa.array([b], kind)]
            return int(evaluate(body, _with(one, names, sides))[0].as_py())

        out.append(sorted(part, key=cmp_to_key(compare)))
    return pa.array(out, values.type)


LAMBDAS = {
    "transform", "filter", "exists", "forall", "aggregate", "zip_with", "transform_keys",
    "transform_values", "map_filter", "array_sort_by",
}  # fmt: skip
