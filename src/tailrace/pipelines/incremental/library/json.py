"""JSON: paths, and values of Spark's types from and to text."""

from __future__ import annotations

import base64
import datetime
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.casts import format_float, parse_timestamp
from tailrace.pipelines.incremental.functions import Scalar
from tailrace.pipelines.incremental.library.signatures import declare, plain, plain_typed
from tailrace.pipelines.incremental.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    is_decimal,
    is_float,
    is_integer,
)

_EPOCH = datetime.datetime(1970, 1, 1)
_PATH = re.compile(r"\.([^.\[\]*]+)|\[(\d+)\]|\['([^']*)'\]")


class _Number(float):
    """A number of a JSON text that keeps its digits."""

    text: str

    def __new__(cls, text: str) -> _Number:
        made = super().__new__(cls, text)
        made.text = text
        return made


def _constant(text: str) -> float:
    raise ValueError(text)


def parsed(text: str) -> Any:
    """A JSON document; ValueError when it is none."""
    return json.loads(text, parse_float=_Number, parse_constant=_constant)


def written(value: Any) -> str:
    """A document as compact JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _Number():
            return format_float(float(value))
        case dict():
            inner = ",".join(f"{written(str(k))}:{written(v)}" for k, v in value.items())
            return f"{{{inner}}}"
        case list():
            return f"[{','.join(map(written, value))}]"
        case str():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def path_steps(path: str) -> list[str | int] | None:
    """The steps of `$.a['b'][0]`; None for a path of another form."""
    if not path.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _PATH.match(path, at)
        if found is None:
            return None
        steps.append(int(found[2]) if found[2] else found[1] or found[3])
        at = found.end()
    return steps


@declare("get_json_object", STRING, STRING, STRING)
def _get_json_object(text: str, path: str) -> str | None:
    steps = path_steps(path)
    if steps is None:
        if "*" in path:
            raise EvaluationError(f"the JSON path {path!r} has a *", hint="use from_json")
        return None
    try:
        value = parsed(text)
    except ValueError:
        return None
    for step in steps:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
        if value is None:
            return None
    return value if value is None or isinstance(value, str) else written(value)


@declare("json_array_length", INT, STRING)
def _json_array_length(text: str) -> int | None:
    try:
        value = parsed(text)
    except ValueError:
        return None
    return len(value) if isinstance(value, list) else None


@plain("json_object_keys")
def _json_object_keys(text: str) -> list[str] | None:
    try:
        value = parsed(text)
    except ValueError:
        return None
    return list(value) if isinstance(value, dict) else None


# from_json --------------------------------------------------------------------------------------


@plain_typed("from_json")
def _from_json(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    def compute(text: str) -> Any:
        if not text.strip():
            return None
        try:
            value = parsed(text)
        except ValueError:
            return _nothing(kind)
        if value is None:
            return None
        if pa.types.is_struct(kind):
            if isinstance(value, list):
                value = value[0] if len(value) == 1 else None
            return typed(value, kind) if isinstance(value, dict) else _nothing(kind)
        if (
            pa.types.is_list(kind)
            and isinstance(value, dict)
            and pa.types.is_struct(kind.value_type)
        ):
            value = [value]
        return typed(value, kind)

    return compute


def _nothing(kind: pa.DataType) -> Any:
    return {field.name: None for field in kind} if pa.types.is_struct(kind) else None


def typed(value: Any, kind: pa.DataType) -> Any:
    """A value of a document in a type; NULL where it does not fit."""
    try:
        return _typed(value, kind)
    except (ValueError, TypeError, OverflowError, InvalidOperation):
        return None


def _typed(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kind == STRING:
        return value if isinstance(value, str) else written(value)
    if kind == BOOLEAN:
        return value if isinstance(value, bool) else None
    if is_integer(kind):
        if (
            type(value) is not int
            or not -(1 << kind.bit_width - 1) <= value < 1 << kind.bit_width - 1
        ):
            return None
        return value
    if is_float(kind):
        if isinstance(value, str):
            special = {"NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "INF": "inf", "+INF": "inf",
                       "-Infinity": "-inf", "-INF": "-inf"}  # fmt: skip
            return float(special[value]) if value in special else None
        return float(value) if not isinstance(value, bool | dict | list) else None
    if is_decimal(kind):
        text = (
            value.text
            if isinstance(value, _Number)
            else value
            if isinstance(value, str)
            else str(value)
        )
        if isinstance(value, bool | dict | list):
            return None
        number = Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), "ROUND_HALF_UP")
        return number if abs(number) < 10 ** (kind.precision - kind.scale) else None
    if kind == DATE:
        return datetime.date.fromisoformat(value[:10]) if isinstance(value, str) else None
    if pa.types.is_timestamp(kind):
        if not isinstance(value, str):
            return None
        moment = _EPOCH + datetime.timedelta(microseconds=parse_timestamp(value))
        return moment.replace(tzinfo=datetime.UTC) if kind == TIMESTAMP else moment
    if kind == BINARY:
        return base64.b64decode(value) if isinstance(value, str) else None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {field.name: typed(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        if not isinstance(value, dict):
            return None
        return [(name, typed(part, kind.item_type)) for name, part in value.items()]
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            return None
        return [typed(part, kind.value_type) for part in value]
    return None


# to_json ----------------------------------------------------------------------------------------


@plain_typed("to_json")
def _to_json(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda value: shown(value, kinds[0])


def shown(value: Any, kind: pa.DataType) -> str:
    """A value of Spark as JSON; fields that are NULL are left out."""
    if value is None:
        return "null"
    if pa.types.is_struct(kind):
        inner = [
            f"{_text(field.name)}:{shown(value[field.name], field.type)}"
            for field in kind
            if value[field.name] is not None
        ]
        return "{" + ",".join(inner) + "}"
    if pa.types.is_map(kind):
        inner = [f"{_text(_name(key))}:{shown(part, kind.item_type)}" for key, part in value]
        return "{" + ",".join(inner) + "}"
    if pa.types.is_list(kind):
        return "[" + ",".join(shown(part, kind.value_type) for part in value) + "]"
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            text = format_float(value)
            return text if value == value and abs(value) != float("inf") else f'"{text}"'
        case Decimal():
            return f"{value:f}"
        case datetime.datetime():
            text = value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}"
            return f'"{text}Z"' if value.tzinfo is not None else f'"{text}"'
        case datetime.date():
            return f'"{value.isoformat()}"'
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case str():
            return _text(value)
    return str(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _name(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return format_float(key) if isinstance(key, float) else str(key)
