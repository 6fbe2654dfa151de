"""Expressions and projections computed here, with Spark's meaning (ANSI).

NULL in, NULL out, unless a function says otherwise; AND and OR are three-valued; NaN equals
itself and is above all numbers; numbers that leave their type are errors, never wrapped;
decimals are exact and rounded half up to Spark's result type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.expression import (
    PYTHON,
    SPARK,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    rewrite,
    walk,
)
from tailrace.pipelines.engine.functions.scalar import FUNCTIONS, PLAIN
from tailrace.pipelines.engine.functions.variants import normal
from tailrace.pipelines.engine.graph import Projection
from tailrace.pipelines.engine.repeated import computed, window_start, window_starts
from tailrace.pipelines.errors import EvaluationError, NoAnswerError
from tailrace.pipelines.spark.catalyst.schema import micros_of
from tailrace.pipelines.values.casts import cast_array
from tailrace.pipelines.values.columns import WEIGHT
from tailrace.pipelines.values.function_references import JavaFunction, PythonFunction
from tailrace.pipelines.values.keys import encode_column
from tailrace.pipelines.values.rows import consolidate, physical, to_array
from tailrace.pipelines.values.types import is_float, is_integer

Array: TypeAlias = pa.Array
Native: TypeAlias = Callable[[list[pa.Array], pa.DataType], pa.Array]


def in_arrow(expression: Expression, *, clock: bool = False) -> bool:
    """Whether `evaluate` knows every function in it. `clock`: `now` will be a constant."""
    return all(
        node.function in NATIVE
        or node.function in FUNCTIONS
        or node.function in PLAIN
        or node.function in (SPARK, PYTHON)
        or (clock and node.function == "now")
        for node in walk(expression)
        if isinstance(node, Call)
    )


def project(table: pa.Table, projection: Projection) -> pa.Table:
    """The rows of a weighted table behind a projection, equal ones added up."""
    table = table.combine_chunks()
    try:
        return _projected(table, projection)
    except EvaluationError as problem:
        # A join whose both sides changed shows pairs that never were and takes them back: the
        # new row of one side with the old row of the other. What fails for those is no error.
        left = consolidate(table)
        if left.num_rows == table.num_rows:
            raise _of_its_row(problem, table, projection) from problem
    left = left.combine_chunks()
    try:
        return _projected(left, projection)
    except EvaluationError as problem:
        raise _of_its_row(problem, left, projection) from problem


def _of_its_row(
    problem: EvaluationError, table: pa.Table, projection: Projection
) -> EvaluationError:
    """The error of the first row that an expression fails for, saying which row it is."""
    if isinstance(problem, NoAnswerError):
        return problem  # to look for the row would wait as long again
    while table.num_rows > 1:
        half = table.slice(0, table.num_rows // 2).combine_chunks()
        found = _failure(half, projection)
        if found is None:
            half = table.slice(table.num_rows // 2).combine_chunks()
            found = _failure(half, projection)
        if found is None or isinstance(found, NoAnswerError):
            return problem  # it does not fail a second time
        problem, table = found, half
    told = copy(problem)
    told.detail = "\n".join(filter(None, [problem.detail, f"row: {_row(table, projection)}"]))
    return told


def _failure(table: pa.Table, projection: Projection) -> EvaluationError | None:
    try:
        _projected(table, projection)
    except EvaluationError as problem:
        return problem
    return None


def _row(table: pa.Table, projection: Projection) -> str:
    """A row's columns, those that the projection reads in front."""
    bounds = [bound for _, bound in projection.columns]
    if projection.where is not None:
        bounds.append(projection.where)
    read = [name for bound in bounds for name in sorted(columns_of(bound))]
    others = [name for name in table.column_names if not name.startswith("__")]
    shown = []
    for name in list(dict.fromkeys([*read, *others]))[:_SHOWN_COLUMNS]:
        text = repr(table.column(name)[0].as_py())
        text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        shown.append(f"{name.partition('#')[0]} = {text}")
    return ", ".join(shown)


def _projected(table: pa.Table, projection: Projection) -> pa.Table:
    if projection.where is not None:
        mask = evaluate(projection.where, table)
        table = table.filter(mask)
    columns = _evaluated(projection, table)
    schema = pa.schema(
        [(name, expression.type) for name, expression in projection.columns]
        + [pa.field(WEIGHT, pa.int64(), nullable=False)]
    )
    arrays = [*columns.values(), table.column(WEIGHT)]
    return consolidate(pa.Table.from_arrays(arrays, schema=schema))


def _evaluated(projection: Projection, table: pa.Table) -> dict[str, pa.Array]:
    """The columns of a projection; what is Spark's in them is asked for together."""
    asked: dict[Expression, None] = {}
    for _, expression in projection.columns:
        _collect(expression, asked)
    if not asked:
        return {name: evaluate(expression, table) for name, expression in projection.columns}
    calls = [call for call in asked if isinstance(call, Call)]
    found = _by_spark([call.arguments for call in calls], [call.type for call in calls], table)
    places: dict[Expression, Expression] = {}
    for number, (call, array) in enumerate(zip(calls, found, strict=True)):
        name = f"{_ANSWER}{number}"
        table = table.append_column(pa.field(name, call.type), array)
        places[call] = Column(name, call.type)
    return {
        name: evaluate(rewrite(expression, places.get), table)
        for name, expression in projection.columns
    }


_ANSWER = "spark\0"  # and a number: a column that Spark has computed
_CHOOSE = ("case", "and", "or", "coalesce", "in")  # all but the first are for some rows


def _collect(expression: Expression, found: dict[Expression, None]) -> None:
    """The calls in an expression that Spark computes for every row."""
    if not isinstance(expression, Call):
        return
    if expression.function == SPARK:
        found[expression] = None
        return
    always = expression.arguments[:1] if expression.function in _CHOOSE else expression.arguments
    for argument in always:
        _collect(argument, found)


def _by_spark(
    calls: Sequence[tuple[Expression, ...]], kinds: Sequence[pa.DataType], table: pa.Table
) -> list[pa.Array]:
    """The values of calls that Spark computes."""
    if not calls or not table.num_rows:
        return [pa.array([], kind) for kind in kinds]
    from tailrace.pipelines.spark.catalyst.client import column, values_of
    from tailrace.pipelines.spark.catalyst.functions import name_of
    from tailrace.pipelines.spark.catalyst.schema import received
    from tailrace.pipelines.spark.catalyst.times import to_micros

    places: dict[Expression, int] = {}
    functions: list[JavaFunction] = []
    texts = []
    for (text, *arguments), kind in zip(calls, kinds, strict=True):
        assert isinstance(text, Literal)
        names = []
        for argument in arguments:
            if isinstance(argument, Literal) and isinstance(argument.value, JavaFunction):
                functions.append(argument.value)
                names.append(name_of(argument.value))
            else:
                names.append(column(places.setdefault(argument, len(places))))
        asked = _ARGUMENT.sub(lambda found: names[int(found[1])], str(text.value))  # noqa: B023
        texts.append(to_micros(asked, kind))
    arrays = [evaluate(argument, table) for argument in places]
    found = values_of(texts, arrays, table.num_rows, functions)
    return [received(array, kind) for array, kind in zip(found, kinds, strict=True)]


_ARGUMENT = re.compile("`a([0-9]+)`")
_SHOWN, _SHOWN_COLUMNS = 120, 12  # characters of a value in an error; columns of a row

# Not made by `pyarrow.array`, which imports pandas where that is installed: most of the time that
# `tailrace check` or a reader of the log takes to start.
ONE_ROW = pa.table({"_": pa.nulls(1, pa.int8())})
"""What expressions of constants are evaluated over."""


def evaluate(expression: Expression, table: pa.Table) -> pa.Array:
    """The value of `expression` for every row of a table of one chunk."""
    match expression:
        case Column(name, _):
            column = table.column(name)
            return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        case Literal(value, kind):
            return pa.repeat(pa.scalar(value, kind), table.num_rows)
        case Call(function, arguments, kind):
            if function == "cast":
                return cast_array(evaluate(arguments[0], table), kind)
            if function == "case":
                return _case(arguments, table, kind)
            if function in ("and", "or"):
                return _short_circuit(function, arguments, table)
            if function == "coalesce":
                return _coalesce(arguments, table, kind)
            if function == "in":
                return _in(arguments, table)
            if function == SPARK:
                return _by_spark([arguments], [kind], table)[0]
            if function == PYTHON:
                return _by_python(arguments, kind, table)
            values = [evaluate(argument, table) for argument in arguments]
            native = NATIVE.get(function)
            if native is not None:
                return native(values, kind)
            if function in FUNCTIONS or function in PLAIN:
                return computed(function, arguments, values, kind)
    raise EvaluationError(f"{expression.sql} cannot be evaluated here", hint="this is a defect")


def _by_python(arguments: tuple[Expression, ...], kind: pa.DataType, table: pa.Table) -> pa.Array:
    from tailrace.pipelines.engine.user_calls import call

    which, *given = arguments
    assert isinstance(which, Literal)
    assert isinstance(which.value, PythonFunction)
    return call(which.value, [evaluate(one, table) for one in given], table.num_rows, kind)


def folded(expression: Expression) -> Expression:
    """The constant that an expression of constants is; any other as it was."""
    if isinstance(expression, Literal) or not in_arrow(expression) or columns_of(expression):
        return expression
    value = evaluate(expression, pa.table({"": pa.array([0])}))[0].as_py()
    return Literal(value, expression.type)


def _short_circuit(function: str, arguments: tuple[Expression, ...], table: pa.Table) -> pa.Array:
    """AND and OR; the right side is computed only where the left does not decide, so that
    `x <> 0 AND 1 / x > 2` never divides by zero."""
    left = evaluate(arguments[0], table)
    decided = pc.fill_null(left if function == "or" else pc.invert(left), False)
    if not pc.any(decided).as_py():
        combine = pc.or_kleene if function == "or" else pc.and_kleene
        return combine(left, evaluate(arguments[1], table))
    open_rows = pc.indices_nonzero(pc.invert(decided))
    right = _scatter(evaluate(arguments[1], table.take(open_rows)), open_rows, table.num_rows)
    combine = pc.or_kleene if function == "or" else pc.and_kleene
    return combine(left, right)


def _scatter(values: pa.Array, positions: pa.Array, count: int) -> pa.Array:
    """An array of `count` with `values` at `positions` and NULL elsewhere."""
    back = np.full(count, -1, dtype="i8")
    back[positions.to_numpy()] = np.arange(len(positions))
    index = pa.array(back, mask=back < 0)
    return values.take(index)


def _case(arguments: tuple[Expression, ...], table: pa.Table, kind: pa.DataType) -> pa.Array:
    """CASE: a branch is computed only for the rows that take it."""
    count = table.num_rows
    open_rows = np.arange(count)
    pieces: list[tuple[np.ndarray, pa.Array]] = []
    for when, then in zip(arguments[0:-1:2], arguments[1:-1:2], strict=True):
        if not len(open_rows):
            break
        rest = table.take(pa.array(open_rows)) if len(open_rows) != count else table
        taken = pc.fill_null(evaluate(when, rest), False).to_numpy(zero_copy_only=False)
        chosen = open_rows[taken]
        if len(chosen):
            pieces.append((chosen, evaluate(then, table.take(pa.array(chosen)))))
        open_rows = open_rows[~taken]
    if len(open_rows):
        rest = table.take(pa.array(open_rows)) if len(open_rows) != count else table
        pieces.append((open_rows, evaluate(arguments[-1], rest)))
    if not pieces:
        return pa.array([], kind)
    return _gather(pieces, count)


def _gather(pieces: list[tuple[np.ndarray, pa.Array]], count: int) -> pa.Array:
    index = np.empty(count, dtype="i8")
    start = 0
    for positions, values in pieces:
        index[positions] = np.arange(start, start + len(values))
        start += len(values)
    return pa.concat_arrays([values for _, values in pieces]).take(pa.array(index))


def _coalesce(arguments: tuple[Expression, ...], table: pa.Table, kind: pa.DataType) -> pa.Array:
    """The first value that is known; the next is computed only for the rows that have none yet."""
    result = evaluate(arguments[0], table)
    for argument in arguments[1:]:
        if not result.null_count:
            break
        if isinstance(argument, Literal | Column) and not pa.types.is_nested(kind):
            result = pc.coalesce(result, evaluate(argument, table))  # it cannot fail
            continue
        missing = np.flatnonzero(result.is_null().to_numpy(zero_copy_only=False))
        known = np.flatnonzero(result.is_valid().to_numpy(zero_copy_only=False))
        other = evaluate(argument, table.take(pa.array(missing)))
        result = _gather([(known, result.take(pa.array(known))), (missing, other)], len(result))
    return result


def _in(arguments: tuple[Expression, ...], table: pa.Table) -> pa.Array:
    """x IN (a, b, …), compared in turn: the next only for the rows that equal none before."""
    value = evaluate(arguments[0], table)
    equal = NATIVE["="]
    answer = equal([value, evaluate(arguments[1], table)], pa.bool_())
    for other in arguments[2:]:
        if isinstance(other, Literal):
            found = equal([value, evaluate(other, table)], pa.bool_())
        else:
            rest = pc.indices_nonzero(pc.invert(pc.fill_null(answer, False)))
            compared = equal([value.take(rest), evaluate(other, table.take(rest))], pa.bool_())
            found = _scatter(compared, rest, table.num_rows)
        answer = pc.or_kleene(answer, found)
    return answer


# Arithmetic ---------------------------------------------------------------------------------


def _arithmetic(name: str) -> Native:
    checked = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[name]
    plain = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[name]

    def compute(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
        left, right = values
        if is_integer(kind):
            try:
                return checked(left, right)
            except pa.ArrowInvalid as error:
                raise EvaluationError(f"{name} overflows {kind}", detail=str(error)) from error
        if is_float(kind):
            return plain(left, right)
        return _decimal_arithmetic(name, left, right, kind)

    return compute


def _decimal_arithmetic(name: str, left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    a, b = left.type, right.type
    natural = a.scale + b.scale if name == "*" else max(a.scale, b.scale)
    precision = (
        a.precision + b.precision + 1
        if name == "*"
        else max(a.precision - a.scale, b.precision - b.scale) + natural + 1
    )
    if precision <= 38 and natural == kind.scale:
        operation = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[name]
        return operation(left, right).cast(kind)
    up_left, up_right = (
        (1, 1) if name == "*" else (10 ** (natural - a.scale), 10 ** (natural - b.scale))
    )
    down = 10 ** (natural - kind.scale)
    limit = 10**kind.precision
    out: list[object] = []
    for x, y in zip(physical(left), physical(right), strict=True):
        if x is None or y is None:
            out.append(None)
            continue
        x, y = x * up_left, y * up_right  # type: ignore[operator]
        exact = x * y if name == "*" else x + y if name == "+" else x - y
        out.append(_fit(round_half_up(exact, down), limit, name, kind))
    return to_array(out, kind)


def round_half_up(value: int, divisor: int) -> int:
    """value / divisor, halves away from zero."""
    quotient = (2 * abs(value) + divisor) // (2 * divisor)
    return quotient if value >= 0 else -quotient


def _fit(value: int, limit: int, name: str, kind: pa.DataType) -> int:
    if not -limit < value < limit:
        raise EvaluationError(f"{name} overflows {kind}")
    return value


def _divide(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    left, right = values
    if is_float(kind):
        if pc.any(pc.and_(pc.equal(right, 0.0), pc.is_valid(left))).as_py():
            raise EvaluationError("division by zero", hint="use try_divide or nullif(divisor, 0)")
        return pc.divide(left, right)
    shift = kind.scale - left.type.scale + right.type.scale
    limit = 10**kind.precision
    out: list[object] = []
    for x, y in zip(physical(left), physical(right), strict=True):
        if x is None or y is None:
            out.append(None)
            continue
        if y == 0:
            raise EvaluationError("division by zero", hint="use try_divide or nullif(divisor, 0)")
        numerator = x * 10**shift if shift >= 0 else x
        denominator = y if shift >= 0 else y * 10**-shift
        sign = -1 if (numerator < 0) != (denominator < 0) else 1  # type: ignore[operator]
        quotient = sign * round_half_up(abs(numerator), abs(denominator))  # type: ignore[arg-type]
        out.append(_fit(quotient, limit, "/", kind))
    return to_array(out, kind)


def _negative(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if is_integer(kind):
        try:
            return pc.negate_checked(values[0])
        except pa.ArrowInvalid as error:
            raise EvaluationError(f"- overflows {kind}") from error
    return pc.negate(values[0])


# Comparison ---------------------------------------------------------------------------------


def _compare(name: str) -> Native:
    operation = {
        "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal,
        ">": pc.greater, ">=": pc.greater_equal,
    }[name]  # fmt: skip

    def compute(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
        left, right = values
        if pa.types.is_null(left.type) or pa.types.is_null(right.type):
            return pa.nulls(len(left), pa.bool_())
        if pa.types.is_nested(left.type):
            # Element by element and field by field: the bytes of keys are in that order.
            keys = [
                pa.array(encode_column(physical(side), side.type), pa.binary()) for side in values
            ]
            known = pc.and_(left.is_valid(), right.is_valid())
            return pc.if_else(known, operation(*keys), pa.scalar(None, pa.bool_()))
        if is_float(left.type):
            nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
            if pc.any(nan_left).as_py() or pc.any(nan_right).as_py():
                # NaN takes the place above all numbers: compare (is NaN, number).
                both = pc.and_(nan_left, nan_right)
                if name in ("=", "<=", ">="):
                    base = pc.or_(operation(left, right), both)
                elif name == "<>":
                    return pc.and_(operation(left, right), pc.invert(both))
                else:
                    base = operation(left, right)
                above = pc.and_(nan_left, pc.invert(nan_right))
                below = pc.and_(nan_right, pc.invert(nan_left))
                if name in (">", ">="):
                    return pc.or_(base, above)
                return base if name == "=" else pc.or_(base, below)
        return operation(left, right)

    return compute


def _null_safe_equal(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    equal = pc.fill_null(NATIVE["="](values, kind), False)
    both = pc.and_(pc.is_null(values[0]), pc.is_null(values[1]))
    return pc.or_(equal, both)


def _make_window(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """The struct of a window from its start and its size."""
    start, size = values
    end = pc.add(start.cast(pa.int64()), size).cast(start.type)
    made = pa.StructArray.from_arrays([start, end], fields=list(kind))
    return pc.if_else(start.is_valid(), made, pa.scalar(None, kind)) if start.null_count else made


def _window(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    start = window_start(values, values[0].type)
    return _make_window([start, values[1]], kind)


def _make_session(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.StructArray.from_arrays(values, fields=list(kind))


def _get_field(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    whole, names = values
    if not len(whole):
        return pa.array([], kind)
    return pc.struct_field(whole, names[0].as_py())


def _named_struct(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.StructArray.from_arrays(values[1::2], fields=list(kind))


def _since_1970(unit: int) -> Native:
    """Whole units since 1970, the earlier one."""

    def compute(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
        micros = values[0].cast(kind)
        if unit == 1:
            return micros
        whole = pc.divide(micros, unit)  # towards zero
        early = pc.less(pc.subtract(micros, pc.multiply(whole, unit)), 0)
        return pc.if_else(early, pc.subtract(whole, 1), whole)

    return compute


def _array(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """The values of each row as a list."""
    count, width = len(values[0]), len(values)
    order = np.arange(count * width).reshape(width, count).T.ravel()
    elements = pa.concat_arrays([one.cast(kind.value_type) for one in values]).take(pa.array(order))
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=kind)


def _sequence(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Whole numbers from the first to the last by a step, of constants."""
    rows = zip(*(value.to_pylist() for value in values), strict=True)
    return pa.array([np.arange(a, b + (1 if s > 0 else -1), s) for a, b, s in rows], kind)


def _map_entries(values: list[pa.Array], kind: pa.DataType) -> pa.Array:
    whole = pa.concat_arrays([values[0]])  # without an offset of its own
    pairs = pa.StructArray.from_arrays([whole.keys, whole.items], fields=list(kind.value_type))
    mask = whole.is_null() if whole.null_count else None
    return pa.ListArray.from_arrays(whole.offsets, pairs, type=kind, mask=mask)


NATIVE: dict[str, Native] = {
    "named_struct": _named_struct,
    "micros_of_day": lambda values, kind: micros_of(values[0]),
    "variant_normal": normal,
    "array": _array,
    "octet_length": lambda values, kind: pc.binary_length(values[0]).cast(kind),
    **{
        name: _since_1970(unit)
        for name, unit in (("unix_seconds", 1_000_000), ("unix_millis", 1_000), ("unix_micros", 1))
    },
    "sequence": _sequence,
    "map_entries": _map_entries,
    "window": _window,
    "window_start": window_start,
    "window_starts": window_starts,
    "make_window": _make_window,
    "make_session": _make_session,
    "get_field": _get_field,
    "+": _arithmetic("+"),
    "-": _arithmetic("-"),
    "*": _arithmetic("*"),
    "/": _divide,
    "negative": _negative,
    "=": _compare("="),
    "<>": _compare("<>"),
    "<": _compare("<"),
    "<=": _compare("<="),
    ">": _compare(">"),
    ">=": _compare(">="),
    "<=>": _null_safe_equal,
    "in": lambda values, kind: values[0],
    "and": lambda values, kind: pc.and_kleene(*values),
    "or": lambda values, kind: pc.or_kleene(*values),
    "not": lambda values, kind: pc.invert(values[0]),
    "is null": lambda values, kind: pc.is_null(values[0]),
    "is not null": lambda values, kind: pc.is_valid(values[0]),
    "is true": lambda values, kind: pc.fill_null(values[0], False),
    "is false": lambda values, kind: pc.invert(pc.fill_null(values[0], True)),
    "cast": lambda values, kind: cast_array(values[0], kind),
    "case": lambda values, kind: values[0],
    "coalesce": lambda values, kind: pc.coalesce(*values),
}
