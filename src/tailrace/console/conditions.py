"""`?where=` on records: an SQL condition over a JSON object, evaluated at the server.

Columns are the object's fields (`status`, `address.city`), compared with literals and
each other; AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE and arithmetic, with SQL's
three-valued logic. A comparison of a number with text, or of what cannot be compared,
is unknown, never an error: records are other people's.

Both the text and the patterns come from whoever asks, so no step may take more than the
length of its input allows: LIKE is matched in linear time, never as a regular expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tailrace.clock import SYSTEM
from tailrace.console.errors import ConditionTimeoutError
from tailrace.errors import UsageError
from tailrace.records.like import compile_like

Value = Any
Condition = Callable[[Mapping[str, Value]], bool]
Evaluate = Callable[[Mapping[str, Value]], Value]

_COMPARE: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
}
_ARITHMETIC: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
}
DEEPEST = 100
SECONDS = 5.0


def within(condition: Condition, seconds: float = SECONDS) -> Condition:
    """The condition, for `seconds` from now; then it is a `ConditionTimeoutError`."""
    until = SYSTEM.monotonic() + seconds

    def limited(row: Mapping[str, Value]) -> bool:
        if SYSTEM.monotonic() > until:
            raise ConditionTimeoutError(
                f"the condition was not answered in {seconds:g} s",
                hint="compare fewer or shorter columns, or put the condition into a view",
            )
        return condition(row)

    return limited


@lru_cache(maxsize=100)
def compile_condition(text: str) -> Condition:
    """A predicate on a JSON object; `UsageError` for what is not such a condition."""
    try:
        tree = sqlglot.parse_one(text, dialect="postgres", into=exp.Condition)
    except (SqlglotError, RecursionError) as error:
        raise UsageError(
            "the condition cannot be read", detail=str(error), hint="for example status = 'open'"
        ) from error
    evaluate = _compile(tree, 0)
    return lambda row: evaluate(row) is True


def _compile(node: exp.Expr, depth: int) -> Evaluate:
    if depth > DEEPEST:
        raise UsageError("the condition is nested too deeply")

    if node.args.get("negate"):  # IS NOT, NOT LIKE
        plain = node.copy()
        plain.set("negate", None)
        positive = _compile(plain, depth + 1)
        return lambda row: _not(positive(row))

    def part(name: str) -> Evaluate:
        return _compile(node.args[name], depth + 1)

    match node:
        case exp.Paren():
            return part("this")
        case exp.Literal():
            literal: Value = node.this if node.is_string else _literal(node.this)
            return lambda row: literal
        case exp.Boolean():
            truth = bool(node.this)
            return lambda row: truth
        case exp.Null():
            return lambda row: None
        case exp.Column() | exp.Dot():
            return _column(node)
        case exp.Neg():
            inner = part("this")
            return lambda row: _number_or_none(inner(row), lambda value: -value)
        case exp.Not():
            inner = part("this")
            return lambda row: _not(inner(row))
        case exp.And() | exp.Or():
            return _connect(part("this"), part("expression"), isinstance(node, exp.And))
        case exp.Is():
            return _is(part("this"), node.expression)
        case exp.In() if node.expressions:
            return _in(part("this"), [_compile(one, depth + 1) for one in node.expressions])
        case exp.Between() if not node.args.get("symmetric"):
            low, high, value = part("low"), part("high"), part("this")
            return _connect(
                _comparison(value, low, _COMPARE[exp.GTE]),
                _comparison(value, high, _COMPARE[exp.LTE]),
                True,
            )
        case exp.Like() | exp.ILike():
            return _like(part("this"), part("expression"), isinstance(node, exp.ILike))
    if type(node) in _COMPARE:
        return _comparison(part("this"), part("expression"), _COMPARE[type(node)])
    if type(node) in _ARITHMETIC:
        return _arithmetic(part("this"), part("expression"), _ARITHMETIC[type(node)])
    raise UsageError(
        f"a condition on records cannot use {node.key.upper()}",
        detail=node.sql(),
        hint="columns, literals, comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, + - *",
    )


def _literal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError as error:  # an exponent beyond what decimals have
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise UsageError(f"the number {shown} is out of range") from error


def _column(node: exp.Expr) -> Evaluate:
    path = [part.name for part in node.parts]  # type: ignore[attr-defined]

    def read(row: Mapping[str, Value]) -> Value:
        found: Value = row
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    return read


def _numbers(a: Value, b: Value) -> tuple[Value, Value] | None:
    """Both sides in one type, or None if they cannot be compared."""
    if a is None or b is None:
        return None
    if isinstance(a, bool) or isinstance(b, bool):
        return (a, b) if isinstance(a, bool) and isinstance(b, bool) else None
    if isinstance(a, str) and isinstance(b, str):
        return a, b
    if isinstance(a, str | int | float | Decimal) and isinstance(b, str | int | float | Decimal):
        try:  # decimals travel as strings: compare them as numbers where the other side is one
            return Decimal(str(a)), Decimal(str(b))
        except ArithmeticError:
            return None
    return None


def _comparison(left: Evaluate, right: Evaluate, compare: Callable[[Any, Any], bool]) -> Evaluate:
    def evaluate(row: Mapping[str, Value]) -> Value:
        both = _numbers(left(row), right(row))
        if both is None:
            return None
        try:
            return compare(*both)
        except (TypeError, ArithmeticError):
            return None

    return evaluate


def _arithmetic(left: Evaluate, right: Evaluate, apply: Callable[[Any, Any], Any]) -> Evaluate:
    def evaluate(row: Mapping[str, Value]) -> Value:
        return _number_or_none(
            left(row), lambda a: _number_or_none(right(row), lambda b: apply(a, b))
        )

    return evaluate


def _number_or_none(value: Value, apply: Callable[[Decimal], Value]) -> Value:
    if value is None or isinstance(value, bool):
        return None
    try:
        return apply(Decimal(str(value)))
    except ArithmeticError:
        return None


def _not(value: Value) -> Value:
    return None if value is None else not value


def _connect(left: Evaluate, right: Evaluate, both: bool) -> Evaluate:
    def evaluate(row: Mapping[str, Value]) -> Value:
        a = left(row)
        if a is (not both):  # False AND …, True OR …
            return a
        b = right(row)
        if b is (not both):
            return b
        return None if a is None or b is None else both

    return evaluate


def _is(value: Evaluate, what: exp.Expr) -> Evaluate:
    if isinstance(what, exp.Null):
        return lambda row: value(row) is None
    if isinstance(what, exp.Boolean):
        wanted = bool(what.this)
        return lambda row: value(row) is wanted
    raise UsageError("IS takes NULL, TRUE or FALSE")


def _in(value: Evaluate, listed: list[Evaluate]) -> Evaluate:
    equal = _COMPARE[exp.EQ]

    def evaluate(row: Mapping[str, Value]) -> Value:
        found = [_comparison(value, one, equal)(row) for one in listed]
        return True if True in found else None if None in found else False

    return evaluate


def _like(value: Evaluate, pattern: Evaluate, fold: bool) -> Evaluate:
    def evaluate(row: Mapping[str, Value]) -> Value:
        text, wanted = value(row), pattern(row)
        if not isinstance(text, str) or not isinstance(wanted, str):
            return None
        if fold:
            text, wanted = _folded(text), _folded(wanted)
        return compile_like(wanted, None)(text)

    return evaluate


def _folded(text: str) -> str:
    """In lower case, letter by letter, so that `_` stands for as many as before."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
