"""What a condition says of the two sides of a join: whether it says anything, ties them, or
keeps out the rows that have no partner."""

from __future__ import annotations

from tailrace.pipelines.engine.evaluate import ONE_ROW, evaluate, in_arrow
from tailrace.pipelines.engine.expression import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
)
from tailrace.pipelines.errors import PipelineError

# NULL of a NULL, whatever the other arguments are.
_STRICT = frozenset(
    [
        *("cast", "try_cast", "negative", "+", "-", "*", "/", "%", "lower", "upper", "trim", "abs"),
        *("=", "<>", "<", "<=", ">", ">="),
    ]
)


def is_equality(part: Expression) -> bool:
    return isinstance(part, Call) and part.function in ("=", "<=>")


def is_true(part: Expression) -> bool:
    """Whether it holds for every row: TRUE, `1 = 1`."""
    return _constant(part) == (True,)


def is_never(part: Expression) -> bool:
    """Whether it holds for no row: FALSE, NULL, `1 = 0`."""
    return _constant(part) in ((False,), (None,))


def _constant(part: Expression) -> tuple[object] | None:
    if isinstance(part, Literal):
        return (part.value,)
    if columns_of(part) or not in_arrow(part):
        return None
    try:
        return (evaluate(part, ONE_ROW)[0].as_py(),)
    except PipelineError:  # as `1 / 0 = 1` is: told when there is a row
        return None


def says_something(condition: Expression | None) -> bool:
    return not all(map(is_true, conjuncts(condition)))


def ties(part: Expression, left: set[str], right: set[str]) -> bool:
    """Whether it is an equality of something of the one side with something of the other."""
    if not (isinstance(part, Call) and is_equality(part)):
        return False
    one, other = map(columns_of, part.arguments)
    if not (one and other):
        return False
    return (one <= left and other <= right) or (one <= right and other <= left)


def is_inner(
    mode: str,
    condition: Expression | None,
    parts: list[Expression],
    left: set[str],
    right: set[str],
) -> bool:
    """Whether an outer join that nothing ties is an inner one under the filter `parts`, which
    keeps out whatever has no partner."""
    if mode not in ("left", "right", "full"):
        return False
    if any(ties(part, left, right) for part in conjuncts(condition)):
        return False
    absent = {"left": [right], "right": [left], "full": [left, right]}[mode]
    return all(any(_rejects(part, side) for part in parts) for side in absent)


def _rejects(part: Expression, absent: set[str]) -> bool:
    """Whether it surely does not hold where these columns are NULL."""
    match part:
        case Call("or", sides, _):
            return all(_rejects(side, absent) for side in sides)
        case Call("is not null" | "is true" | "is false" | "in", (value, *_), _):
            return _is_null(value, absent)
    return _is_null(part, absent)


def _is_null(value: Expression, absent: set[str]) -> bool:
    """Whether it is surely NULL where these columns are."""
    match value:
        case Column(name, _):
            return name in absent
        case Call(function, arguments, _) if function in _STRICT:
            return any(_is_null(part, absent) for part in arguments)
    return False
