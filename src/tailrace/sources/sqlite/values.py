"""SQLite's values as JSON, and its declared types as Spark's.

Integers and reals are numbers (a real in the shortest form that reads back equal), text
is a string, a blob base64. JSON has no infinities: they are strings.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

import orjson

from tailrace.sources.sqlite.change_table import Value


def to_json(value: Value) -> bytes:
    """One value; the same bytes for equal values."""
    if value is None:
        return b"null"
    if isinstance(value, float):
        if math.isinf(value):
            return b'"Infinity"' if value > 0 else b'"-Infinity"'
        return orjson.dumps(value)
    if isinstance(value, bytes):
        return b'"' + base64.b64encode(value) + b'"'
    if isinstance(value, int):
        return b"%d" % value
    return orjson.dumps(value)


def row_json(names: Sequence[bytes], values: Sequence[Value]) -> bytes:
    """A row as an object; `names` are JSON strings."""
    pairs = zip(names, values, strict=True)
    return b"{" + b",".join([name + b":" + to_json(value) for name, value in pairs]) + b"}"


def spark_type(declared: str) -> str:
    """By SQLite's rules of affinity."""
    word = declared.upper()
    if "INT" in word:
        return "BIGINT"
    if any(part in word for part in ("CHAR", "CLOB", "TEXT")):
        return "STRING"
    if "BLOB" in word or not word:
        return "STRING"
    if any(part in word for part in ("REAL", "FLOA", "DOUB")):
        return "DOUBLE"
    if any(part in word for part in ("DATE", "TIME", "JSON", "UUID")):
        return "STRING"
    if "BOOL" in word:
        return "BIGINT"
    return "DOUBLE"


def freeze(values: Sequence[Value]) -> list[object]:
    """Key values as JSON that `thaw` reads back with their types."""
    return [{"b": base64.b64encode(v).decode()} if isinstance(v, bytes) else v for v in values]


def thaw(values: Sequence[object]) -> list[Value]:
    return [base64.b64decode(v["b"]) if isinstance(v, dict) else v for v in values]  # type: ignore[misc]
