"""XML texts: xpath and its kin, from_xml and to_xml."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import Scalar, simple
from tailrace.pipelines.incremental.library.signatures import plain_typed
from tailrace.pipelines.incremental.xml.rows import read_form, row_of, written
from tailrace.pipelines.incremental.xml.tree import read
from tailrace.pipelines.incremental.xml.xpath import (
    Value,
    evaluate,
    number_of,
    text_of,
    truth_of,
)


def _found(text: str, path: str) -> Value:
    try:
        return evaluate(path, read(text))
    except (ValueError, RecursionError) as error:
        raise EvaluationError(
            f"{text[:80]!r} is no XML document, or has no such path",
            detail=f"{error}; the path is {path}",
        ) from error


def _register(name: str, convert: Callable[[Value], Any]) -> None:
    """An empty text and an empty path give NULL."""
    simple(name, lambda text, path: convert(_found(text, path)) if text and path else None)


def _listed(value: Value) -> tuple[str | None, ...]:
    if not isinstance(value, list):
        raise EvaluationError("the path of xpath gives no nodes", hint="use xpath_string")
    return tuple(node.first for node in value)


def _whole(bits: int) -> Callable[[Value], int]:
    """A number cut to a whole one as Java does: NaN is 0, the range ends where it ends."""

    def convert(value: Value) -> int:
        number = number_of(value)
        if number != number:
            return 0
        limit = 1 << bits - 1
        return int(max(-limit, min(number, limit - 1))) if math.isfinite(number) else (
            limit - 1 if number > 0 else -limit
        )  # fmt: skip

    return convert


def _short(value: Value) -> int:
    return (_whole(32)(value) + (1 << 15)) % (1 << 16) - (1 << 15)


def _single(value: Value) -> float:
    number = number_of(value)
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


_register("xpath", _listed)
_register("xpath_string", text_of)
_register("xpath_boolean", truth_of)
_register("xpath_double", number_of)
_register("xpath_number", number_of)
_register("xpath_float", _single)
_register("xpath_int", _whole(32))
_register("xpath_long", _whole(64))
_register("xpath_short", _short)


@plain_typed("from_xml")
def _from_xml(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda text, options: row_of(text, kind, read_form(options))


@plain_typed("to_xml")
def _to_xml(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda row, options: written(row, kinds[0], read_form(options))
