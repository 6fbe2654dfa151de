"""Calls whose result type stands in a text: CSV, and the types of JSON and CSV texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
from sqlglot import exp

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.library.csv import Form, read_form, reader, schema_of_csv
from tailrace.pipelines.incremental.library.json import parsed, schema_of
from tailrace.pipelines.incremental.sql.interval_calls import constant_parts
from tailrace.pipelines.incremental.sql.typed_calls import constant, wants, written_type

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder

Meant = TypeVar("Meant")
Rule: TypeAlias = "Callable[[ExpressionBinder, list[Expression], exp.Expr], Expression]"


def read_options(
    binder: ExpressionBinder,
    given: list[Expression],
    node: exp.Expr,
    read: Callable[[str], Meant],
) -> tuple[Literal, Meant]:
    """The options `map('sep', '|')` of a call, as a text and as they are meant."""
    options: dict[Any, Any] = {}
    for whole in given:
        if not isinstance(whole, Call) or whole.function != "map":
            raise binder.context.type_error("the options are a map of constants", node)
        values = [constant(binder, part, node, "an option") for part in whole.arguments]
        options = dict(zip(values[::2], values[1::2], strict=True))
    text = json.dumps(options, sort_keys=True)
    try:
        return Literal(text, types.STRING), read(text)
    except ValueError as error:
        raise binder.context.not_incremental(str(error), node) from error


def _options(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> tuple[Literal, Form]:
    return read_options(binder, given, node, read_form)


def _from_csv(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 2, 3)
    kind = written_type(binder, given[1], node)
    options, form = _options(binder, given[2:], node)
    if not pa.types.is_struct(kind):
        raise binder.context.type_error("from_csv gives a struct", node)
    try:
        for field in kind:
            reader(field.type, form)
    except EvaluationError as error:
        raise binder.context.type_error(error.message, node) from error
    return Call("from_csv", (binder.coerce(given[0], types.STRING, node), options), kind)


def _to_csv(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    options, _ = _options(binder, given[1:], node)
    kind = given[0].type
    if not pa.types.is_struct(kind) or any(
        pa.types.is_nested(field.type) or types.has_variant(field.type) for field in kind
    ):
        raise binder.context.type_error("to_csv takes a struct of plain values", node)
    return Call("to_csv", (given[0], options), types.STRING)


def _schema_of_csv(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 2)
    _, form = _options(binder, given[1:], node)
    text = str(constant(binder, given[0], node, "the line"))
    return Literal(schema_of_csv(text, form), types.STRING)


def _schema_of_json(
    binder: ExpressionBinder, given: list[Expression], node: exp.Expr
) -> Expression:
    if len(given) == 2:
        raise binder.context.not_incremental("schema_of_json with options", node)
    wants(binder, given, node, 1, 1)
    try:
        document = parsed(str(constant(binder, given[0], node, "the document")), strict=True)
    except ValueError as error:
        raise binder.context.type_error("this is no JSON", node) from error
    return Literal(schema_of(document), types.STRING)


def _time_bucket(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """time_bucket(size, moment[, origin]): the start of the bucket the moment is in."""
    wants(binder, given, node, 2, 3)
    size, moment = given[:2]
    kind = moment.type
    if size.type == types.NULL and kind in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        return Literal(None, kind)
    parts = constant_parts(size)
    if parts is None:
        raise binder.context.type_error("the size of a bucket is a constant interval", node)
    if kind not in (types.TIMESTAMP, types.TIMESTAMP_NTZ):
        raise binder.context.type_error(f"time_bucket takes no {types.ddl(kind)}", node)
    months, days, clock = parts
    micros = days * 86_400_000_000 + clock
    if (months > 0) == (micros > 0) or min(months, micros) < 0:
        raise binder.context.type_error("a bucket is of months or of time, and not empty", node)
    origin = given[2] if len(given) > 2 else Literal("1970-01-01", types.STRING)
    start = binder.coerce(origin, kind, node)
    if not isinstance(start, Literal):
        raise binder.context.type_error("the origin must be a constant", node)
    sizes = (Literal(months, types.INT), Literal(micros, types.BIGINT))
    return Call("time_bucket", (moment, start, *sizes), kind)


FORMATS: dict[str, Rule] = {
    "from_csv": _from_csv, "to_csv": _to_csv, "schema_of_csv": _schema_of_csv,
    "schema_of_json": _schema_of_json, "time_bucket": _time_bucket,
}  # fmt: skip
