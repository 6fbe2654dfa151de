"""Functions of arrays and maps, and those that take a lambda."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import (
    PARAMETER,
    Call,
    Column,
    Expression,
    Literal,
    substitute,
)
from tailrace.pipelines.incremental.sql.interval_calls import constant_parts
from tailrace.pipelines.incremental.sql.typed_calls import wants

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.calls import Rule
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder


def element(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> pa.DataType:
    """The type of an array's elements."""
    if not pa.types.is_list(bound.type):
        raise binder.context.type_error(f"{types.ddl(bound.type)} is not an array", node)
    return bound.type.value_type


def _map_of(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> pa.DataType:
    if not pa.types.is_map(bound.type):
        raise binder.context.type_error(f"{types.ddl(bound.type)} is not a map", node)
    return bound.type


def map_form(value: Expression) -> Expression:
    """A value with the entries of its maps in the order of their keys, as Spark groups them:
    equal maps are then equal values."""
    if not types.has_map(value.type):
        return value
    return Call("map_form", (value,), value.type)


Result = Callable[[pa.DataType], pa.DataType]
_COMPARING = {
    "array_contains", "array_distinct", "array_except", "array_intersect", "array_union",
    "arrays_overlap", "array_max", "array_min", "array_position", "array_remove", "sort_array",
}  # fmt: skip


def _list(name: str, result: Result, *others: pa.DataType | str, optional: int = 0) -> Rule:
    """A function of an array. `others`: types of further arguments; "element" is the type of
    the array's elements, "array" the array's own."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1 + len(others) - optional, 1 + len(others))
        kind = given[0].type
        if name in _COMPARING:
            binder.context.comparable(element(binder, given[0], node), node)
        element(binder, given[0], node)
        values = list(given)
        for at, other in enumerate(others[: len(given) - 1], 1):
            if other == "array":
                element(binder, given[at], node)
                (values[0], values[at]), kind = binder.alike([values[0], given[at]], node)
            elif other == "element":
                inner = types.common(kind.value_type, given[at].type)
                if inner is None:
                    raise binder.context.type_error(
                        f"{types.ddl(given[at].type)} among {types.ddl(kind.value_type)}", node
                    )
                kind = pa.list_(inner)
                values[0] = binder.coerce(values[0], kind, node)
                values[at] = binder.coerce(given[at], inner, node)
            else:
                values[at] = binder.coerce(given[at], other, node)
        return Call(name, tuple(values), result(kind))

    return rule


def _same(kind: pa.DataType) -> pa.DataType:
    return kind


def _element(kind: pa.DataType) -> pa.DataType:
    return kind.value_type


def _always(kind: pa.DataType) -> Result:
    return lambda _: kind


def _array(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if not given:
        return Literal((), pa.list_(types.NULL))
    alike, kind = binder.alike(given, node)
    return Call("array", tuple(alike), pa.list_(kind))


def _map(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if len(given) % 2 or not given:
        raise binder.context.type_error("a map needs keys, each with a value", node)
    keys, key = binder.alike(given[::2], node)
    binder.context.comparable(key, node)
    if key == types.NULL:
        raise binder.context.type_error("a key of a map is never NULL", node)
    values, value = binder.alike(given[1::2], node)
    parts = [part for pair in zip(keys, values, strict=True) for part in pair]
    return Call("map", tuple(parts), pa.map_(key, value))


def _repeat(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 2)
    count = binder.coerce(given[1], types.INT, node)
    return Call("array_repeat", (given[0], count), pa.list_(given[0].type))


def _flatten(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    inner = element(binder, given[0], node)
    if not pa.types.is_list(inner):
        raise binder.context.type_error("flatten takes an array of arrays", node)
    return Call("flatten", (given[0],), inner)


def _size(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    if not (pa.types.is_list(given[0].type) or pa.types.is_map(given[0].type)):
        raise binder.context.type_error("size takes an array or a map", node)
    return Call("size", (given[0],), types.INT)


def _reverse(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    if pa.types.is_list(given[0].type):
        return Call("reverse_list", (given[0],), given[0].type)
    return Call("reverse", (binder.coerce(given[0], types.STRING, node),), types.STRING)


def _concat(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    if not given:
        return Literal("", types.STRING)
    if any(pa.types.is_list(value.type) for value in given):
        if any(value.type == types.NULL for value in given):  # to Spark that is a text
            raise binder.context.type_error("a bare NULL among arrays", node)
        alike, kind = binder.alike(given, node)
        return Call("concat_lists", tuple(alike), kind)
    if given and all(value.type == types.BINARY for value in given):
        return Call("concat_bytes", tuple(given), types.BINARY)
    texts = tuple(binder.coerce(value, types.STRING, node) for value in given)
    return Call("concat", texts, types.STRING)


def _array_join(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 3)
    element(binder, given[0], node)
    whole = binder.coerce(given[0], pa.list_(types.STRING), node)
    others = [binder.coerce(value, types.STRING, node) for value in given[1:]]
    return Call("array_join", (whole, *others), types.STRING)


def _concat_ws(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """Texts and arrays of texts, NULLs left out."""
    wants(binder, given, node, 1, None)
    separator = binder.coerce(given[0], types.STRING, node)
    texts: list[Expression] = []
    for value in given[1:]:
        if pa.types.is_list(value.type):
            whole = binder.coerce(value, pa.list_(types.STRING), node)
            joined: Expression = Call("array_join", (whole, separator), types.STRING)
            empty = Call("array_compact", (whole,), whole.type)
            some = Call(
                ">",
                (Call("size", (empty,), types.INT), Literal(0, types.INT)),
                types.BOOLEAN,
            )
            texts.append(Call("case", (some, joined, Literal(None, types.STRING)), types.STRING))
        else:
            texts.append(binder.coerce(value, types.STRING, node))
    return Call("concat_ws", (separator, *texts), types.STRING)


def _element_at(name: str) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 2)
        if pa.types.is_map(given[0].type):
            key = binder.coerce(given[1], given[0].type.key_type, node)
            return Call("map_at", (given[0], key), given[0].type.item_type)
        inner = element(binder, given[0], node)
        return Call(name, (given[0], binder.coerce(given[1], types.INT, node)), inner)

    return rule


def bind_bracket(binder: ExpressionBinder, node: exp.Bracket) -> Expression:
    """xs[0] and m['key']."""
    if len(node.expressions) != 1:
        raise binder.context.type_error("one index in [ ]", node)
    whole, index = binder.bind(node.this), binder.bind(node.expressions[0])
    if whole.type == types.NULL:
        return whole
    if pa.types.is_map(whole.type):
        key = binder.coerce(index, whole.type.key_type, node)
        return Call("map_at", (whole, key), whole.type.item_type)
    if pa.types.is_struct(whole.type) and isinstance(index, Literal):
        from tailrace.pipelines.incremental.sql.expressions import take_field

        return take_field(binder.context, whole, str(index.value), node)
    inner = element(binder, whole, node)
    return Call("array_at", (whole, binder.coerce(index, types.INT, node)), inner)


def _arrays_zip(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, None)
    from tailrace.pipelines.incremental.sql.calls import name_and_arguments

    _, raw = name_and_arguments(node)
    fields = []
    for at, (value, written) in enumerate(zip(given, raw, strict=True)):
        name = written.name if isinstance(written, exp.Column) else str(at)
        fields.append((name, element(binder, value, node)))
    return Call("arrays_zip", tuple(given), pa.list_(pa.struct(fields)))


def _sequence(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 3)
    if types.is_temporal(given[0].type):
        step = constant_parts(given[2]) if len(given) > 2 else (0, 1, 0)
        if step is None:
            raise binder.context.not_incremental("the step of a sequence of times", node)
        months, days, micros = step
        (start, stop), kind = binder.alike(given[:2], node)
        if kind == types.DATE and micros:
            raise binder.context.not_incremental("a sequence of dates by less than a day", node)
        parts = (Literal(months, types.INT), Literal(days, types.INT))
        rest = Literal(micros, types.BIGINT)
        return Call("sequence_times", (start, stop, *parts, rest), pa.list_(kind))
    alike, kind = binder.alike(given, node)
    if not types.is_integer(kind):
        raise binder.context.type_error("sequence takes whole numbers, dates or times", node)
    return Call("sequence", tuple(alike), pa.list_(kind))


def _map_part(name: str, result: Result) -> Rule:
    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 1, 1)
        return Call(name, (given[0],), result(_map_of(binder, given[0], node)))

    return rule


def _entries(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))


def _map_from_arrays(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    wants(binder, given, node, 2, 2)
    keys, values = (element(binder, side, node) for side in given)
    return Call("map_from_arrays", tuple(given), pa.map_(keys, values))


def _map_from_entries(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    wants(binder, given, node, 1, 1)
    inner = element(binder, given[0], node)
    if not pa.types.is_struct(inner) or len(inner) != 2:
        raise binder.context.type_error("map_from_entries takes an array of pairs", node)
    return Call("map_from_entries", (given[0],), pa.map_(inner[0].type, inner[1].type))


def _map_concat(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, None)
    for part in given:
        _map_of(binder, part, node)
    alike, kind = binder.alike(given, node)
    return Call("map_concat", tuple(alike), kind)


def _map_contains_key(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    wants(binder, given, node, 2, 2)
    kind = _map_of(binder, given[0], node)
    key = binder.coerce(given[1], kind.key_type, node)
    return Call("map_contains_key", (given[0], key), types.BOOLEAN)


def _texts(name: str, result: pa.DataType, low: int, high: int, *numbers: int) -> Rule:
    """Functions of texts with a nested result; `numbers`: which arguments are numbers."""

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, low, high)
        kinds = [types.INT if at in numbers else types.STRING for at in range(len(given))]
        values = [binder.coerce(v, k, node) for v, k in zip(given, kinds, strict=True)]
        return Call(name, tuple(values), result)

    return rule


# Lambdas ------------------------------------------------------------------------------------------


def bind_lambda(
    binder: ExpressionBinder, node: exp.Expr, kinds: list[pa.DataType], whole: exp.Expr
) -> Call:
    """x -> …: the body over the columns and its own parameters."""
    if not isinstance(node, exp.Lambda):
        raise binder.context.type_error("a function such as x -> x + 1 is needed here", whole)
    names = [parameter.name for parameter in node.expressions]
    if len(names) > len(kinds):
        raise binder.context.type_error(f"a function of at most {len(kinds)} parameters", whole)
    depth = binder.depth + 1
    made = [
        Column(f"{PARAMETER}{depth}{name}", kind) for name, kind in zip(names, kinds, strict=False)
    ]
    known = {name.lower(): column for name, column in zip(names, made, strict=True)}
    inner = replace(binder, collected=None, depth=depth, parameters={**binder.parameters, **known})
    body = inner.bind(node.this)
    if body.type == types.INTERVAL:
        raise binder.context.type_error("a function that gives an interval", whole)
    return Call("lambda", (body, *made), body.type)


def _condition(binder: ExpressionBinder, function: Call, node: exp.Expr) -> Call:
    """A lambda that always gives NULL, as a condition."""
    body, *names = function.arguments
    return Call("lambda", (binder.coerce(body, types.BOOLEAN, node), *names), types.BOOLEAN)


def _higher(name: str) -> Callable[[ExpressionBinder, list[exp.Expr], exp.Expr], Expression]:
    def rule(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
        if len(raw) != 2:
            raise binder.context.type_error("wrong number of arguments", node)
        whole = binder.bind(raw[0])
        if pa.types.is_map(whole.type):
            pair = [whole.type.key_type, whole.type.item_type]
            function = bind_lambda(binder, raw[1], pair, node)
            if name == "transform_keys" and function.type == types.NULL:
                raise binder.context.type_error("a key of a map is never NULL", node)
            if name == "map_filter" and function.type == types.NULL:
                function = _condition(binder, function, node)
            match name:
                case "transform_values":
                    kind = pa.map_(pair[0], function.type)
                case "transform_keys":
                    kind = pa.map_(function.type, pair[1])
                case "map_filter":
                    kind = whole.type
                case _:
                    raise binder.context.type_error(f"{name} takes an array", node)
            return Call(name, (whole, function), kind)
        inner = element(binder, whole, node)
        function = bind_lambda(binder, raw[1], [inner, types.INT], node)
        if name != "transform" and function.type == types.NULL:
            function = _condition(binder, function, node)
        kinds = {"transform": pa.list_(function.type), "filter": whole.type}
        if name != "transform" and function.type != types.BOOLEAN:
            raise binder.context.type_error(f"the function of {name} must give a condition", node)
        return Call(name, (whole, function), kinds.get(name, types.BOOLEAN))

    return rule


def _aggregate(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
    if len(raw) not in (3, 4):
        raise binder.context.type_error("wrong number of arguments", node)
    whole, start = binder.bind(raw[0]), binder.bind(raw[1])
    inner = element(binder, whole, node)
    merge = bind_lambda(binder, raw[2], [start.type, inner], node)
    if merge.type != start.type:
        wider = types.common(merge.type, start.type)
        if wider is None or wider != start.type:
            raise binder.context.type_error(
                f"the start is {types.ddl(start.type)}, the function gives {types.ddl(merge.type)}",
                node, f"cast the start to {types.ddl(merge.type)}",
            )  # fmt: skip
        body, *names = merge.arguments
        merge = Call("lambda", (binder.coerce(body, wider, node), *names), wider)
    if len(raw) == 4:
        finish = bind_lambda(binder, raw[3], [start.type], node)
    else:
        column = Column(f"{PARAMETER}{binder.depth + 1}acc", start.type)
        finish = Call("lambda", (column, column), start.type)
    return Call("aggregate", (whole, start, merge, finish), finish.type)


def _zip_with(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
    if len(raw) != 3:
        raise binder.context.type_error("wrong number of arguments", node)
    left, right = binder.bind(raw[0]), binder.bind(raw[1])
    kinds = [element(binder, side, node) for side in (left, right)]
    function = bind_lambda(binder, raw[2], kinds, node)
    return Call("zip_with", (left, right, function), pa.list_(function.type))


def _map_zip_with(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
    """The keys of both maps, each with what the function makes of its two values."""
    if len(raw) != 3:
        raise binder.context.type_error("wrong number of arguments", node)
    left, right = binder.bind(raw[0]), binder.bind(raw[1])
    kinds = [_map_of(binder, side, node) for side in (left, right)]
    if kinds[0].key_type != kinds[1].key_type:
        raise binder.context.type_error("maps with keys of different types", node)
    key = kinds[0].key_type
    function = bind_lambda(binder, raw[2], [key, *(kind.item_type for kind in kinds)], node)
    body, *names = function.arguments
    values: dict[str, Expression] = {
        cast(Column, name).name: Call("map_at", (side, names[0]), kind.item_type)
        for name, side, kind in zip(names[1:], (left, right), kinds, strict=False)
    }
    listed = pa.list_(key)
    both = tuple(Call("map_keys", (side,), listed) for side in (left, right))
    keys = Call("array_distinct", (Call("concat_lists", both, listed),), listed)
    made = Call("lambda", (substitute(body, values), names[0]), function.type)
    result = Call("transform", (keys, made), pa.list_(function.type))
    return Call("map_from_arrays", (keys, result), pa.map_(key, function.type))


def _array_sort(binder: ExpressionBinder, raw: list[exp.Expr], node: exp.Expr) -> Expression:
    whole = binder.bind(raw[0])
    inner = element(binder, whole, node)
    if len(raw) == 1:
        binder.context.comparable(inner, node)
        return Call("array_sort", (whole,), whole.type)
    function = bind_lambda(binder, raw[1], [inner, inner], node)
    return Call("array_sort_by", (whole, function), whole.type)


HIGHER = {
    **{name: _higher(name) for name in ("transform", "filter", "exists", "forall", "map_filter",
                                        "transform_keys", "transform_values")},
    "aggregate": _aggregate, "reduce": _aggregate, "zip_with": _zip_with,
    "array_sort": _array_sort, "map_zip_with": _map_zip_with,
}  # fmt: skip
_BOOLEAN, _INT, _BIGINT = (_always(kind) for kind in (types.BOOLEAN, types.INT, types.BIGINT))
NESTED: dict[str, Rule] = {
    "array": _array, "map": _map, "array_repeat": _repeat, "flatten": _flatten, "size": _size,
    "cardinality": _size, "reverse": _reverse, "concat": _concat, "concat_ws": _concat_ws,
    "array_size": _list("array_size", _INT),
    "array_append": _list("array_append", _same, "element"),
    "array_prepend": _list("array_prepend", _same, "element"),
    "array_compact": _list("array_compact", _same),
    "array_contains": _list("array_contains", _BOOLEAN, "element"),
    "array_distinct": _list("array_distinct", _same),
    "array_except": _list("array_except", _same, "array"),
    "array_intersect": _list("array_intersect", _same, "array"),
    "array_union": _list("array_union", _same, "array"),
    "arrays_overlap": _list("arrays_overlap", _BOOLEAN, "array"),
    "array_insert": _list("array_insert", _same, types.INT, "element"),
    "array_join": _array_join,
    "array_max": _list("array_max", _element), "array_min": _list("array_min", _element),
    "array_position": _list("array_position", _BIGINT, "element"),
    "array_remove": _list("array_remove", _same, "element"),
    "sort_array": _list("sort_array", _same, types.BOOLEAN, optional=1),
    "slice": _list("slice", _same, types.INT, types.INT),
    "get": _list("get", _element, types.INT),
    "arrays_zip": _arrays_zip, "sequence": _sequence,
    "element_at": _element_at("element_at"), "try_element_at": _element_at("try_element_at"),
    "map_keys": _map_part("map_keys", lambda kind: pa.list_(kind.key_type)),
    "map_values": _map_part("map_values", lambda kind: pa.list_(kind.item_type)),
    "map_entries": _map_part("map_entries", _entries),
    "map_from_arrays": _map_from_arrays, "map_from_entries": _map_from_entries,
    "map_concat": _map_concat, "map_contains_key": _map_contains_key,
    "str_to_map": _texts("str_to_map", pa.map_(types.STRING, types.STRING), 1, 3),
    "split": _texts("split", pa.list_(types.STRING), 2, 3, 2),
    "regexp_extract_all": _texts("regexp_extract_all", pa.list_(types.STRING), 2, 3, 2),
    "json_object_keys": _texts("json_object_keys", pa.list_(types.STRING), 1, 1),
}  # fmt: skip
