"""Calls that Spark itself analyses and computes (see `spark.catalyst`).

Whatever function is not one of Arrow's is Spark's: its types, its errors and its values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.compiler.expressions.spark_text import (
    ARGUMENT,
    NoText,
    Rendering,
    type_text,
)
from tailrace.pipelines.engine.expression import PARAMETER, SPARK, Call, Column, Expression, Literal
from tailrace.pipelines.errors import SqlTypeError
from tailrace.pipelines.spark.catalyst import client, functions
from tailrace.pipelines.values import types
from tailrace.pipelines.values.function_references import JavaFunction

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder

_SHOWN = re.compile(r"`?\ba([0-9]+)\b`?")
_PLACED = re.compile(r"#[0-9]+`")  # which of the tables a column is of, for the compiler


def by_spark(
    binder: ExpressionBinder, form: str, given: Sequence[Expression], node: exp.Expr
) -> Call:
    """An expression that is Spark's: `{0}`, `{1}`, … in `form` are what is given."""
    rendering = Rendering()
    try:
        texts = [rendering.text(value) for value in given]
    except NoText as part:
        raise binder.context.not_incremental(
            f"{part} in an expression that Spark computes", node, "cast it to STRING"
        ) from part
    text = re.sub(r"\{([0-9]+)\}", lambda found: texts[int(found[1])], form)
    kind = type_of(binder, text, rendering.columns, node)
    return Call(SPARK, (Literal(text, types.STRING), *rendering.columns), kind)


def call_by_spark(
    binder: ExpressionBinder, name: str, given: Sequence[Expression], node: exp.Expr
) -> Call:
    """A call of a function of Spark's."""
    shown = name if name.isidentifier() else f"`{name}`"
    places = ", ".join(f"{{{place}}}" for place in range(len(given)))
    return by_spark(binder, f"{shown}({places})", given, node)


def raw_type(binder: ExpressionBinder, bound: Expression, node: exp.Expr) -> object:
    """Spark's own word for the type of an expression."""
    rendering = Rendering()
    text = rendering.text(bound)
    asked = ARGUMENT.sub(lambda found: _asked(rendering.columns, int(found[1])), text)
    kinds = [value.type for value in rendering.columns]
    return client.told_type(asked, kinds, _functions(rendering.columns))


def type_of(
    binder: ExpressionBinder, text: str, columns: Sequence[Expression], node: exp.Expr
) -> pa.DataType:
    """What Spark says an expression gives; its own error at the place in the view's SQL."""
    try:
        used = _functions(columns)
        asked = ARGUMENT.sub(lambda found: _asked(columns, int(found[1])), text)
        return client.type_of(asked, [value.type for value in columns], used)
    except SqlTypeError as problem:
        if "loadFunction" in problem.message:  # it looks for a function that is not built in
            from tailrace.pipelines.compiler.expressions.calls import (
                name_and_arguments,
                unknown_function,
            )

            name, _ = name_and_arguments(node)
            raise unknown_function(binder.context, name, node) from problem
        raise binder.context.type_error(
            _SHOWN.sub(lambda found: _named(columns, found), problem.message), node, problem.hint
        ) from problem


def _functions(arguments: Sequence[Expression]) -> list[JavaFunction]:
    """The arguments of a text that are functions and no columns."""
    return [
        one.value
        for one in arguments
        if isinstance(one, Literal) and isinstance(one.value, JavaFunction)
    ]


def _asked(columns: Sequence[Expression], number: int) -> str:
    """An argument in a text as Spark is asked: a function by its name."""
    (used,) = _functions(columns[number : number + 1]) or (None,)
    return client.column(number) if used is None else functions.name_of(used)


def _named(columns: Sequence[Expression], found: re.Match[str]) -> str:
    """An argument in one of Spark's messages as the column that it is."""
    number = int(found[1])
    if number >= len(columns):
        return found[0]
    shown = _PLACED.sub("`", columns[number].sql)
    return shown if found[0].startswith("`") else shown.replace("`", "")


# Lambdas ------------------------------------------------------------------------------------------


def _element(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_list(kind) else types.NULL


def _entry(kind: pa.DataType) -> list[pa.DataType]:
    return [kind.key_type, kind.item_type] if pa.types.is_map(kind) else [types.NULL] * 2


def _parameters(name: str, place: int, given: Sequence[Expression]) -> list[pa.DataType] | None:
    """The types of the parameters of the function that stands in a place; None where Spark
    takes none."""
    kinds = [value.type for value in given]
    if not kinds:
        return None
    match name:
        case "transform" | "filter" | "exists" | "forall":
            return [_element(kinds[0]), types.INT]
        case "map_filter" | "transform_keys" | "transform_values":
            return _entry(kinds[0])
        case "array_sort":
            return [_element(kinds[0])] * 2
        case "aggregate" | "reduce" if place >= 2:
            return [kinds[1], _element(kinds[0])] if place == 2 else [kinds[1]]
        case "zip_with" if place == 2:
            return [_element(kinds[0]), _element(kinds[1])]
        case "map_zip_with" if place == 2:
            return [*_entry(kinds[0]), _entry(kinds[1])[1]]
    return None


def bind_arguments(
    binder: ExpressionBinder, name: str, raw: Sequence[exp.Expr], node: exp.Expr
) -> list[Expression]:
    """The arguments of a call, functions such as `x -> x + 1` among them."""
    given: list[Expression] = []
    for place, part in enumerate(raw):
        if not isinstance(part, exp.Lambda):
            given.append(binder.bind(part))
            continue
        kinds = _parameters(name, place, given)
        if kinds is None:
            raise binder.context.type_error(f"{name} takes no function here", part)
        given.append(_bind_lambda(binder, part, kinds))
    return given


def _bind_lambda(binder: ExpressionBinder, node: exp.Lambda, kinds: Sequence[pa.DataType]) -> Call:
    """The body over the columns and its own parameters."""
    names = [parameter.name for parameter in node.expressions]
    if len(names) > len(kinds):
        raise binder.context.type_error(f"a function of at most {len(kinds)} parameters", node)
    depth = binder.depth + 1
    made = [
        Column(f"{PARAMETER}{depth}{name}", kind) for name, kind in zip(names, kinds, strict=False)
    ]
    known = {name.lower(): column for name, column in zip(names, made, strict=True)}
    inner = replace(binder, collected=None, depth=depth, parameters={**binder.parameters, **known})
    body = inner.bind(node.this)
    return Call("lambda", (body, *made), body.type)


# Functions that look at more than their arguments -------------------------------------------------


def _arrays_zip(
    binder: ExpressionBinder, raw: Sequence[exp.Expr], given: list[Expression], node: exp.Expr
) -> Expression:
    """Its fields are named like the columns it is given."""
    made = call_by_spark(binder, "arrays_zip", given, node)
    names = [
        part.name if isinstance(part, exp.Column) else str(place) for place, part in enumerate(raw)
    ]
    fields = made.type.value_type
    kind = pa.list_(pa.struct(list(zip(names, [f.type for f in fields], strict=True))))
    if made.type == kind:
        return made
    return by_spark(binder, f"CAST({{0}} AS {type_text(kind)})", [made], node)


def _assert_true(
    binder: ExpressionBinder, raw: Sequence[exp.Expr], given: list[Expression], node: exp.Expr
) -> Expression:
    """Its message shows the condition as it is written."""
    if len(given) == 1:
        said = f"'{raw[0].sql('spark')}' is not true!"
        given = [*given, Literal(said, types.STRING)]
    return call_by_spark(binder, "assert_true", given, node)


def _aes_encrypt(
    binder: ExpressionBinder, raw: Sequence[exp.Expr], given: list[Expression], node: exp.Expr
) -> Expression:
    """It draws a vector where none is given and the mode needs one."""
    mode = given[2].value if len(given) > 2 and isinstance(given[2], Literal) else "GCM"
    vector = given[4] if len(given) > 4 else Literal("", types.STRING)
    plain = str(mode).upper() in ("ECB", "NONE")
    drawn = isinstance(vector, Literal) and vector.value in ("", b"")
    if not drawn and not isinstance(vector, Literal) and not plain:
        empty = "raise_error('an empty initialization vector: another would be drawn each time')"
        guarded = f"if(length({{0}}) = 0, CAST({empty} AS BINARY), CAST({{0}} AS BINARY))"
        given = [*given[:4], by_spark(binder, guarded, [vector], node), *given[5:]]
    if drawn and not plain:
        raise binder.context.not_incremental(
            "aes_encrypt draws another vector each time", node,
            "give it one as the fifth argument, or take the mode ECB",
        )  # fmt: skip
    return call_by_spark(binder, "aes_encrypt", given, node)


def _asked_of_kll(
    binder: ExpressionBinder, raw: Sequence[exp.Expr], given: list[Expression], node: exp.Expr
) -> Expression:
    """Of a sketch of nothing it is NULL: a table may be empty for a while."""
    name = node.name.lower()
    counted = f"kll_sketch_get_n_{name.rpartition('_')[2]}({{0}})"
    places = ", ".join(f"{{{place}}}" for place in range(len(given)))
    return by_spark(binder, f"if({counted} = 0, NULL, {name}({places}))", given, node)


_KLL = {
    f"kll_sketch_get_{what}_{of}": _asked_of_kll
    for what in ("quantile", "rank")
    for of in ("bigint", "float", "double")
}
_SPECIAL = {
    "arrays_zip": _arrays_zip,
    "assert_true": _assert_true,
    "aes_encrypt": _aes_encrypt,
    **_KLL,
}


def bind_spark_call(
    binder: ExpressionBinder, name: str, raw: Sequence[exp.Expr], node: exp.Expr
) -> Expression:
    """A function that Arrow does not compute."""
    names = [part.this.name if isinstance(part, exp.Kwarg) else "" for part in raw]
    plain = [part.expression if isinstance(part, exp.Kwarg) else part for part in raw]
    given = bind_arguments(binder, name, plain, node)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(binder, plain, given, node)
    if any(names):
        places = ", ".join(
            f"{named} => {{{place}}}" if named else f"{{{place}}}"
            for place, named in enumerate(names)
        )
        return by_spark(binder, f"{name}({places})", given, node)
    return call_by_spark(binder, name, given, node)
