"""The types of functions of theta, tuple and KLL sketches, and of the aggregates that make
and merge them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.expressions.typed_calls import wants
from tailrace.pipelines.compiler.plans.plan import AggregateCall
from tailrace.pipelines.engine.evaluate import ONE_ROW, evaluate
from tailrace.pipelines.engine.expression import Call, Expression, Literal, columns_of, conjunction
from tailrace.pipelines.engine.operators.sketches.theta import LOG_SIZE
from tailrace.pipelines.engine.operators.sketches.tuples import MODES
from tailrace.pipelines.errors import PipelineError
from tailrace.pipelines.values import types

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

_HASHED = (types.INT, types.BIGINT, types.FLOAT, types.DOUBLE, types.STRING, types.BINARY,
           pa.list_(types.INT), pa.list_(types.BIGINT), types.NULL)  # fmt: skip
_ITEMS = {"bigint": types.BIGINT, "float": types.FLOAT, "double": types.DOUBLE}
_NUMPY = {"bigint": "<i8", "float": "<f4", "double": "<f8"}


def constant(
    binder: ExpressionBinder, bound: Expression, kind: pa.DataType, node: exp.Expr, what: str
) -> object:
    """The value of an argument that no column decides, as `kind`; None for NULL."""
    if columns_of(bound):
        raise binder.context.type_error(f"{what} must be a constant", node)
    try:
        return evaluate(binder.coerce(bound, kind, node), ONE_ROW)[0].as_py()
    except PipelineError as error:
        raise binder.context.type_error(error.message, node, error.hint) from error


def whole(
    binder: ExpressionBinder, bound: Expression, node: exp.Expr, what: str, low: int, high: int
) -> int:
    """A constant whole number within bounds."""
    value = constant(binder, bound, types.INT, node, what)
    if not isinstance(value, int) or not low <= value <= high:
        raise binder.context.type_error(f"{what} lies between {low} and {high}, not {value}", node)
    return value


def log_size(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> int:
    if bound.type not in (types.INT, types.NULL):
        raise binder.context.type_error(
            f"lgNomEntries is an INT, not {types.ddl(bound.type)}", node
        )
    return whole(binder, bound, node, "lgNomEntries", 4, 26)


def _mode(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> str:
    value = str(constant(binder, bound, types.STRING, node, "the mode")).lower()
    if value not in MODES:
        raise binder.context.type_error(
            f"no mode {value!r}", node, f"the modes are {', '.join(MODES)}"
        )
    return value


def _binary(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> Expression:
    """A sketch."""
    if bound.type not in (types.BINARY, types.NULL):
        raise binder.context.type_error(
            f"a sketch is BINARY, not {types.ddl(bound.type)}", node, "the *_agg functions make one"
        )
    return binder.coerce(bound, types.BINARY, node)


_SIZE_AND_MODE = (
    ("lgnomentries", exp.Literal.number(LOG_SIZE)),
    ("mode", exp.Literal.string("sum")),
)
_NAMED: dict[str, tuple[tuple[str, exp.Expr | None], ...]] = {
    "count_min_sketch": (("column", None), ("epsilon", None), ("confidence", None), ("seed", None))
}
for _of in ("double", "integer"):
    _NAMED |= {
        f"tuple_sketch_agg_{_of}": (("key", None), ("summary", None), *_SIZE_AND_MODE),
        f"tuple_union_agg_{_of}": (("child", None), *_SIZE_AND_MODE),
    }


def in_place(name: str, arguments: list[exp.Expr]) -> list[exp.Expr]:
    """Arguments by name (`mode => 'max'`) where they stand without one. What does not fit stays
    as it is, and is refused where it is bound."""
    parameters = _NAMED.get(name, ())
    given = {at: one for at, one in enumerate(arguments) if not isinstance(one, exp.Kwarg)}
    names = [parameter for parameter, _ in parameters]
    for one in arguments:
        if isinstance(one, exp.Kwarg):
            wanted = one.this.name.lower()
            if wanted not in names or names.index(wanted) in given:
                return arguments
            given[names.index(wanted)] = one.expression
    placed: list[exp.Expr] = []
    for at in range(max(given) + 1):
        value = given.get(at, parameters[at][1] if at < len(parameters) else None)
        if value is None:
            return arguments
        placed.append(value)
    return placed


# Aggregates ---------------------------------------------------------------------------------


def sketch_aggregate(
    binder: ExpressionBinder,
    name: str,
    bound: list[Expression],
    distinct: bool,
    condition: Expression | None,
    node: exp.Expr,
) -> AggregateCall:
    """One that makes or merges theta, tuple or KLL sketches."""
    value = bound[0]
    parameters: tuple[object, ...]
    if name.startswith("theta"):
        wants(binder, bound, node, 1, 1 if name == "theta_intersection_agg" else 2)
        value = _hashed(binder, value, node) if "_sketch_" in name else _binary(binder, value, node)
        parameters = (log_size(binder, bound[1], node) if len(bound) > 1 else LOG_SIZE,)
    elif name.startswith("tuple"):
        value, condition, parameters = _tuple_aggregate(binder, name, bound, condition, node)
    else:
        wants(binder, bound, node, 1, 2)
        of = name.rpartition("_")[2]
        value = _kll_value(binder, name, of, value, node)
        k = whole(binder, bound[1], node, "k", 8, 65_535) if len(bound) > 1 else None
        parameters = (_NUMPY[of], k)
    order = ((value, False, True),)
    return AggregateCall(name, (value,), types.BINARY, distinct, condition, order, parameters)


def _hashed(binder: ExpressionBinder, value: Expression, node: exp.Expr) -> Expression:
    """A value that theta and tuple sketches can count."""
    if value.type not in _HASHED:
        raise binder.context.type_error(
            f"a sketch counts INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY and arrays of INT or "
            f"BIGINT, not {types.ddl(value.type)}",
            node,
            "cast the value",
        )
    return binder.coerce(value, types.INT, node) if value.type == types.NULL else value


def _tuple_aggregate(
    binder: ExpressionBinder,
    name: str,
    bound: list[Expression],
    condition: Expression | None,
    node: exp.Expr,
) -> tuple[Expression, Expression | None, tuple[object, ...]]:
    integers = name.endswith("integer")
    makes = "_sketch_" in name
    sized = "_intersection_" not in name
    values = 2 if makes else 1
    wants(binder, bound, node, values, values + sized + 1)
    rest = list(bound[values:])
    size = LOG_SIZE
    if sized and rest:
        size = whole(binder, rest.pop(0), node, "lgNomEntries", 4, 26)
    mode = _mode(binder, rest[0], node) if rest else "sum"
    if not makes:
        return _binary(binder, bound[0], node), condition, (integers, mode, size)
    key = _hashed(binder, bound[0], node)
    number = binder.coerce(bound[1], types.INT if integers else types.DOUBLE, node)
    kind = pa.struct([("key", key.type), ("summary", number.type)])
    names = (Literal("key", types.STRING), Literal("summary", types.STRING))
    known = [Call("is not null", (one,), types.BOOLEAN) for one in (key, number)]
    both = conjunction([*([] if condition is None else [condition]), *known])
    value = Call("named_struct", (names[0], key, names[1], number), kind)
    return value, both, (integers, mode, size)


def _kll_value(
    binder: ExpressionBinder, name: str, of: str, value: Expression, node: exp.Expr
) -> Expression:
    if "_merge_" in name:
        return _binary(binder, value, node)
    fits = types.is_integer(value.type) if of == "bigint" else value.type == types.FLOAT
    if not (fits or of == "double" or value.type == types.NULL):
        raise binder.context.type_error(
            f"{name} takes {'whole numbers' if of == 'bigint' else 'FLOAT'}, "
            f"not {types.ddl(value.type)}",
            node,
            "cast the value",
        )
    return binder.coerce(value, _ITEMS[of], node)
