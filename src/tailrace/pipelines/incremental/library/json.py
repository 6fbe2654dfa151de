"""JSON: paths, and values of Spark's types from and to text."""

from __future__ import annotations

import base64
import datetime
import math
import re
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.casts import (
    format_float,
    format_single,
    parse_date,
    parse_timestamp,
)
from tailrace.pipelines.incremental.clock_times import parse_time, short_time, time_of
from tailrace.pipelines.incremental.functions import Scalar
from tailrace.pipelines.incremental.library.json_reader import (
    Constant,
    Number,
    Object,
    read,
)
from tailrace.pipelines.incremental.library.signatures import declare, plain, plain_typed
from tailrace.pipelines.incremental.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    VARIANT,
    is_decimal,
    is_float,
    is_integer,
    is_time,
)
from tailrace.pipelines.incremental.variant.encoding import encode
from tailrace.pipelines.incremental.variant.texts import of_document, quoted, to_json

_EPOCH = datetime.datetime(1970, 1, 1)
_PATH = re.compile(r"\.([^.\[\]*]+)|\[(\d+)\]|\['([^']*)'\]|\[\*\]")
_WIDE = Context(prec=400, rounding="ROUND_HALF_UP")
EVERY = None  # the step [*]
Steps = list[str | int | None]


def parsed(text: str, *, strict: bool = False) -> Any:
    """A JSON document; ValueError when it is none. `strict`: as from_json reads it, with NaN and
    without line ends in texts."""
    return read(text, controls=not strict, constants=strict)


def written(value: Any) -> str:
    """A document as compact JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Constant():
            return f'"{value.text}"'
        case Number():
            text = format_float(float(value))
            return text if math.isfinite(value) else f'"{text}"'
        case dict():
            pairs = value.pairs if isinstance(value, Object) else value.items()
            inner = ",".join(f"{written(str(k))}:{written(v)}" for k, v in pairs)
            return f"{{{inner}}}"
        case list():
            return f"[{','.join(map(written, value))}]"
        case str():
            return quoted(value)
    return str(value)


def path_steps(path: str) -> Steps | None:
    """The steps of `$.a['b'][0][*]`; None for a path of another form."""
    if not path.startswith("$"):
        return None
    steps: Steps = []
    at = 1
    while at < len(path):
        found = _PATH.match(path, at)
        if found is None:
            return None
        if found[0] == "[*]":
            steps.append(EVERY)
        else:
            steps.append(int(found[2]) if found[2] else found[1] or found[3])
        at = found.end()
    return steps


@declare("get_json_object", STRING, STRING, STRING)
def _get_json_object(text: str, path: str) -> str | None:
    steps = path_steps(path)
    if steps is None:
        if "*" in path:
            raise EvaluationError(f"the JSON path {path!r} is not known", hint="use from_json")
        return None
    try:
        value = parsed(text)
    except ValueError:
        return None
    if not steps and value is None:
        return "null"
    if EVERY in steps:
        found = _found(value, steps, "raw")
        return found[0] if found else None
    for number, step in enumerate(steps, 1):
        if isinstance(step, str):
            value = _first(value, step)
        else:
            at = step or 0
            if isinstance(value, list) and at < len(value):
                value = value[at]
                if value is None and number == len(steps):
                    return "null"
            else:
                value = None
        if value is None:
            return None
    return value if value is None or isinstance(value, str) else written(value)


@plain("json_member")
def _json_member(text: str, name: str) -> str | None:
    """What json_tuple gives for a name: the last value under it that is not null."""
    try:
        value = parsed(text)
    except ValueError:
        return None
    found: Any = None
    if isinstance(value, Object):
        parts = [part for known, part in value.pairs if known == name and part is not None]
        found = parts[-1] if parts else None
    elif isinstance(value, dict):
        found = value.get(name)
    return found if found is None or isinstance(found, str) else written(found)


def _first(value: Any, name: str) -> Any:
    """The first value of that name in an object; None if it has none, or is none."""
    if isinstance(value, Object):
        return next((part for known, part in value.pairs if known == name), None)
    return value.get(name) if isinstance(value, dict) else None


def _found(value: Any, steps: Steps, style: str) -> list[str]:
    """What a path with [*] finds, written. One find stands for itself, several are an array;
    inside another array (`quoted`) they always are, and behind [*][*] (`flat`) arrays open up."""
    if not steps:
        if isinstance(value, str) and style == "raw":
            return [value]
        if isinstance(value, list) and style == "flat":
            return [text for part in value for text in _found(part, [], "flat")]
        return [written(value)]
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        inner = _first(value, step)
        return [] if inner is None else _found(inner, rest, style)
    if not isinstance(value, list):
        return []
    if step is not EVERY:
        assert isinstance(step, int)
        if step >= len(value):
            return []
        return _found(value[step], rest, "quoted" if rest[:1] == [EVERY] else style)
    if rest[:1] == [EVERY]:
        texts = [text for part in value for text in _found(part, rest[1:], "flat")]
        return [f"[{','.join(texts)}]"] if texts else []
    within = {"raw": "quoted"}.get(style, style)
    texts = [text for part in value for text in _found(part, rest, within)]
    if style != "quoted" and len(texts) == 1:
        return texts
    return [f"[{','.join(texts)}]"] if texts else []


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
    if isinstance(value, Object):
        return [name for name, _ in value.pairs]
    return list(value) if isinstance(value, dict) else None


# from_json --------------------------------------------------------------------------------------


@plain_typed("from_json")
def _from_json(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    def compute(text: str) -> Any:
        if not text.strip():
            return None
        try:
            value = parsed(text, strict=True)
        except ValueError:
            return _nothing(kind)
        if kind == VARIANT:
            return typed(value, VARIANT)
        if value is None:
            return _nothing(kind)
        if pa.types.is_struct(kind):
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
    if kind == VARIANT:
        return encode(of_document(value))
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
    if isinstance(value, Constant) and not is_float(kind):
        return None
    if is_float(kind):
        if isinstance(value, str):
            special = {"NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "INF": "inf", "+INF": "inf",
                       "-Infinity": "-inf", "-INF": "-inf"}  # fmt: skip
            return float(special[value]) if value in special else None
        return float(value) if not isinstance(value, bool | dict | list) else None
    if is_decimal(kind):
        text = (
            value.text
            if isinstance(value, Number)
            else value
            if isinstance(value, str)
            else str(value)
        )
        if isinstance(value, bool | dict | list):
            return None
        number = _WIDE.quantize(Decimal(text), Decimal(1).scaleb(-kind.scale))
        return number if abs(number) < 10 ** (kind.precision - kind.scale) else None
    if kind == DATE:
        return (
            _EPOCH.date() + datetime.timedelta(parse_date(value))
            if isinstance(value, str)
            else None
        )
    if is_time(kind):
        return time_of(parse_time(value), kind) if isinstance(value, str) else None
    if pa.types.is_timestamp(kind):
        if type(value) is int and kind == TIMESTAMP:  # seconds since 1970
            return (_EPOCH + datetime.timedelta(seconds=value)).replace(tzinfo=datetime.UTC)
        if not isinstance(value, str):
            return None
        moment = _EPOCH + datetime.timedelta(microseconds=parse_timestamp(value))
        return moment.replace(tzinfo=datetime.UTC) if kind == TIMESTAMP else moment
    if kind == BINARY:
        return base64.b64decode(value) if isinstance(value, str) else None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {
            field.name: typed(value[field.name], field.type) if field.name in value else None
            for field in kind
        }
    if pa.types.is_map(kind):
        if not isinstance(value, dict):
            return None
        return [(name, _whole(part, kind.item_type)) for name, part in value.items()]
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            return None
        return [_whole(part, kind.value_type) for part in value]
    return None


def _whole(value: Any, kind: pa.DataType) -> Any:
    """An element of an array or a map: one that does not fit spoils all of it."""
    made = _typed(value, kind)
    if made is None and value is not None:
        raise ValueError("an element of another type")
    return made


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
            f"{quoted(field.name)}:{shown(value[field.name], field.type)}"
            for field in kind
            if value[field.name] is not None
        ]
        return "{" + ",".join(inner) + "}"
    if pa.types.is_map(kind):
        inner = [f"{quoted(_name(key))}:{shown(part, kind.item_type)}" for key, part in value]
        return "{" + ",".join(inner) + "}"
    if pa.types.is_list(kind):
        return "[" + ",".join(shown(part, kind.value_type) for part in value) + "]"
    if kind == VARIANT:
        return to_json(value)
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            text = format_single(value) if kind == FLOAT else format_float(value)
            return text if value == value and abs(value) != float("inf") else f'"{text}"'
        case Decimal():
            return f"{value:f}"
        case datetime.datetime():
            text = value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}"
            return f'"{text}Z"' if value.tzinfo is not None else f'"{text}"'
        case datetime.date():
            return f'"{value.isoformat()}"'
        case datetime.time():
            return f'"{short_time(value)}"'
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case str():
            return quoted(value)
    return str(value)


def _name(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, datetime.time):  # Spark shows the nanoseconds there
        return str(parse_time(short_time(key)) * 1_000)
    return format_float(key) if isinstance(key, float) else str(key)


# schema_of_json -----------------------------------------------------------------------------------


def schema_of(document: Any) -> str:
    """The type that Spark infers for a document, in its words."""
    return _ddl(_inferred(document))


_Type = str | int | tuple[str, Any] | None  # a name, the digits of a decimal, nested, unknown


def _inferred(value: Any) -> _Type:
    match value:
        case None:
            return None
        case bool():
            return "BOOLEAN"
        case int():
            digits = len(str(abs(value)))
            if -(1 << 63) <= value < 1 << 63:
                return "BIGINT"
            return digits if digits <= 38 else "DOUBLE"
        case float():
            return "DOUBLE"
        case str():
            return "STRING"
        case list():
            whole: _Type = None
            for part in value:
                whole = _both(whole, _inferred(part))
            return ("array", whole)
    return ("struct", {name: _inferred(part) for name, part in value.items()})


def _both(one: _Type, other: _Type) -> _Type:
    """The type that holds values of both."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and one[0] == other[0]:
        if one[0] == "array":
            return ("array", _both(one[1], other[1]))
        names = {**one[1], **other[1]}
        return ("struct", {n: _both(one[1].get(n), other[1].get(n)) for n in names})
    numbers = {"BIGINT": 20, "DOUBLE": 99}
    sizes = [numbers.get(k, 0) if isinstance(k, str) else k for k in (one, other)]
    if all(isinstance(size, int) and size for size in sizes):
        most = max(sizes)
        return "DOUBLE" if most == 99 else most
    return "STRING"


def _ddl(kind: _Type) -> str:
    if isinstance(kind, int):
        return f"DECIMAL({kind},0)"
    if kind is None or isinstance(kind, str):
        return kind or "STRING"
    if kind[0] == "array":
        return f"ARRAY<{_ddl(kind[1])}>"
    parts = [f"{_quoted(name)}: {_ddl(part)}" for name, part in sorted(kind[1].items())]
    return f"STRUCT<{', '.join(parts)}>"


def _quoted(name: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_]+", name):
        return name
    return "`" + name.replace("`", "``") + "`"
