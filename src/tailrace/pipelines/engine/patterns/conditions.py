"""Expressions → Python closures over physical values, for what is asked row by row.

A closure takes a *place* and reads its columns through `readers`. What has no closure of its
own is computed by `evaluate` over a table of one row, so the meaning is the same everywhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from tailrace.pipelines.engine.evaluate import evaluate
from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal, columns_of
from tailrace.pipelines.values.rows import physical, to_array
from tailrace.pipelines.values.types import is_decimal, is_float, is_integer

Reader: TypeAlias = Callable[[Any], object]
Readers: TypeAlias = Mapping[str, Reader]

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_COUNTED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul
}  # fmt: skip


def compile_expression(expression: Expression, readers: Readers) -> Reader:
    """The closure that computes an expression at a place."""
    match expression:
        case Column(name, _):
            return readers[name]
        case Literal(value, kind):
            known = physical(pa.array([value], kind))[0]
            return lambda place: known
        case Call():
            return _own(expression, readers) or _by_table(expression, readers)


def _own(call: Call, readers: Readers) -> Reader | None:
    function, kind = call.function, call.type
    types = [argument.type for argument in call.arguments]

    def parts() -> list[Reader]:
        return [compile_expression(argument, readers) for argument in call.arguments]

    if function in ("and", "or"):
        return _connected(function == "and", *parts())
    if function == "not":
        (inner,) = parts()
        return lambda place: None if (value := inner(place)) is None else not value
    if function in ("is null", "is not null"):
        (inner,) = parts()
        wanted = function == "is null"
        return lambda place: (inner(place) is None) is wanted
    if function == "coalesce" and all(one == kind for one in types):
        values = parts()

        def first(place: Any) -> object:
            for value in values:
                found = value(place)
                if found is not None:
                    return found
            return None

        return first
    if function == "case" and all(one == kind for one in (*types[1:-1:2], types[-1])):
        return _case(parts())
    if function in _COMPARED and types[0] == types[1] and _plain(types[0]):
        return _comparison(call, readers)
    if function in _COUNTED and _exact(function, types, kind):
        return _arithmetic(call, readers)
    if function == "cast" and len(types) == 1:
        return _widened(call, readers)
    return None


def _plain(kind: pa.DataType) -> bool:
    return bool(
        is_integer(kind) or is_float(kind) or is_decimal(kind) or kind in (pa.string(), pa.binary(), pa.bool_())
        or pa.types.is_timestamp(kind) or pa.types.is_date32(kind)
    )  # fmt: skip


def _connected(is_and: bool, left: Reader, right: Reader) -> Reader:
    decides = not is_and

    def connected(place: Any) -> object:
        first = left(place)
        if first is decides:
            return decides
        second = right(place)
        if second is decides:
            return decides
        return None if first is None or second is None else is_and

    return connected


def _case(parts: list[Reader]) -> Reader:
    branches = list(zip(parts[0:-1:2], parts[1:-1:2], strict=True))
    otherwise = parts[-1]

    def case(place: Any) -> object:
        for when, then in branches:
            if when(place) is True:
                return then(place)
        return otherwise(place)

    return case


def _comparison(call: Call, readers: Readers) -> Reader:
    left, right = (compile_expression(argument, readers) for argument in call.arguments)
    compare = _COMPARED[call.function]
    if not is_float(call.arguments[0].type):

        def compared(place: Any) -> object:
            a = left(place)
            if a is None:
                return None
            b = right(place)
            return None if b is None else compare(a, b)

        return compared
    nan = float("inf")  # a NaN is above all numbers and equals itself

    def compared_floats(place: Any) -> object:
        a: Any = left(place)
        b: Any = right(place)
        if a is None or b is None:
            return None
        if a != a or b != b:
            return compare((nan, 1) if a != a else (a, 0), (nan, 1) if b != b else (b, 0))
        return compare(a, b)

    return compared_floats


def _exact(function: str, types: list[pa.DataType], kind: pa.DataType) -> bool:
    """Whether +, − or × of these is that of Python's numbers."""
    if len(types) != 2:
        return False
    if all(is_integer(one) for one in (*types, kind)):
        return bool(types[0] == types[1] == kind)
    if all(one == pa.float64() for one in (*types, kind)):
        return True
    if all(is_decimal(one) for one in (*types, kind)):
        if function == "*":
            return bool(kind.scale == types[0].scale + types[1].scale)
        return bool(kind.scale >= types[0].scale and kind.scale >= types[1].scale)
    return False


def _arithmetic(call: Call, readers: Readers) -> Reader:
    left, right = (compile_expression(argument, readers) for argument in call.arguments)
    count, kind = _COUNTED[call.function], call.type
    if kind == pa.float64():

        def floats(place: Any) -> object:
            a, b = left(place), right(place)
            return None if a is None or b is None else count(a, b)

        return floats
    if is_decimal(kind):
        most = 10**kind.precision - 1
        ups = [1, 1]
        if call.function != "*":
            ups = [10 ** (kind.scale - argument.type.scale) for argument in call.arguments]
    else:
        most, ups = (1 << (kind.bit_width - 1)) - 1, [1, 1]
    fail = _by_table(call, readers)  # says what is wrong as it is said everywhere
    a_up, b_up = ups

    def numbers(place: Any) -> object:
        a: Any = left(place)
        b: Any = right(place)
        if a is None or b is None:
            return None
        result = count(a * a_up, b * b_up)
        return result if -most <= result <= most else fail(place)

    return numbers


def _widened(call: Call, readers: Readers) -> Reader | None:
    """Casts that change no value."""
    source, kind = call.arguments[0].type, call.type
    inner = compile_expression(call.arguments[0], readers)
    if source == kind:
        return inner
    if is_integer(source) and is_integer(kind) and source.bit_width <= kind.bit_width:
        return inner
    up = None
    if is_decimal(source) and is_decimal(kind) and kind.scale >= source.scale:
        if kind.precision - kind.scale >= source.precision - source.scale:
            up = 10 ** (kind.scale - source.scale)
    elif is_integer(source) and is_decimal(kind):
        if kind.precision - kind.scale >= len(str(1 << (source.bit_width - 1))):
            up = 10**kind.scale
    elif is_integer(source) and source.bit_width <= 32 and kind == pa.float64():
        return lambda place: None if (value := inner(place)) is None else float(value)  # type: ignore[arg-type]
    if up is None:
        return None
    return lambda place: None if (value := inner(place)) is None else value * up


def _by_table(call: Call, readers: Readers) -> Reader:
    kinds = {node.name: node.type for node in _columns(call) if node.name in columns_of(call)}
    names = sorted(kinds)

    def computed(place: Any) -> object:
        columns = [to_array([readers[name](place)], kinds[name]) for name in names]
        table = pa.table(columns, names=names) if names else pa.table({"": pa.array([0])})
        return physical(evaluate(call, table))[0]

    return computed


def _columns(expression: Expression) -> list[Column]:
    if isinstance(expression, Column):
        return [expression]
    if isinstance(expression, Call):
        return [column for argument in expression.arguments for column in _columns(argument)]
    return []
