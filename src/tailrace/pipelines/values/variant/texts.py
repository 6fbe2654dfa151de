"""Variants from and to JSON, as strictly as Spark reads it and just as it writes it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from tailrace.pipelines.values.casts import (
    format_decimal,
    format_float,
    format_single,
    format_timestamp,
)
from tailrace.pipelines.values.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_decimal,
)
from tailrace.pipelines.values.variant.encoding import (
    Node,
    decimal_of,
    decode,
    deep,
    encode,
    of_double,
    of_integer,
    scalar,
)

_SPACE = " \t\n\r"
_LONGEST_NUMBER, _LONGEST_KEY = 1000, 50_000
_ESCAPES = {number: f"\\u{number:04X}" for number in range(32)} | {
    8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\",
}  # fmt: skip


def _integer(text: str) -> bytes:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number is too long")
    number = int(text)
    return of_integer(number) if -(1 << 63) <= number < 1 << 63 else _number(text)


def _number(text: str) -> bytes:
    """A decimal if it can be one, else a double."""
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number is too long")
    exact = decimal_of(text) if "e" not in text.lower() else None
    return of_double(float(text)) if exact is None else exact


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in an object")
    if any(len(key) > _LONGEST_KEY for key in found):
        raise ValueError("a key is too long")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_refuse
)


@deep
def parse_node(text: str) -> Node:
    """The node of the document with which a text begins; ValueError when there is none."""
    start = len(text) - len(text.lstrip(_SPACE))
    node: Node
    node, end = _DECODER.raw_decode(text, start)
    follows = text[end : end + 1]
    if isinstance(node, bytes) and follows and follows not in _SPACE:
        raise ValueError("something follows a number")
    if (node is None or isinstance(node, bool)) and (follows.isalnum() or follows == "_"):
        raise ValueError("something follows a word")
    return node


def parse(text: str) -> bytes:
    """The variant of a JSON text; ValueError when it is none."""
    return encode(parse_node(text))


def of_document(value: Any) -> Node:
    """The node of a document that `json` has read; ValueError if a name is there twice."""
    if hasattr(value, "pairs"):  # a `json_reader.Object`, whose room imports this one
        raise ValueError("a name is there twice")
    if isinstance(value, dict):
        return {name: of_document(part) for name, part in value.items()}
    if isinstance(value, list):
        return [of_document(part) for part in value]
    if value is None or isinstance(value, bool | str):
        return value
    return _integer(str(value)) if isinstance(value, int) else _number(value.text)


def quoted(text: str) -> str:
    """A text as JSON, escaped as Spark does."""
    return f'"{text.translate(_ESCAPES)}"'


def to_json(data: bytes) -> str:
    """The JSON text of a variant."""
    return node_json(decode(data))


@deep
def node_json(node: Node) -> str:
    if isinstance(node, dict):
        inner = (f"{quoted(key)}:{node_json(part)}" for key, part in node.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(node_json, node)) + "]"
    return _scalar_json(*scalar(node))


def _scalar_json(kind: pa.DataType, value: Any) -> str:
    if kind == NULL:
        return "null"
    if kind == BOOLEAN:
        return "true" if value else "false"
    if kind == STRING:
        return quoted(value)
    if kind in (FLOAT, DOUBLE):
        text = format_single(value) if kind == FLOAT else format_float(value)
        return text if value - value == 0 else f'"{text}"'
    if is_decimal(kind):
        return format_decimal(value, kind.scale)
    if kind == TIMESTAMP:
        return f'"{format_timestamp(value)}+00:00"'
    if kind == TIMESTAMP_NTZ:
        return f'"{format_timestamp(value)}"'
    if kind == DATE:
        return f'"{pa.scalar(value, pa.int32()).cast(DATE).as_py().isoformat()}"'
    if kind == BINARY:
        return f'"{base64.b64encode(value).decode()}"'
    return str(value)
