"""`__tailrace_columns`: the types of what streams write, beside their topics.

A stream's row travels as JSON, which does not tell an INT from a BIGINT or a DECIMAL from a
text. So a stream says here what its columns are before it writes the first row of that
kind. The topic has one partition and is compacted; the key is the name of the stream's
topic, the value every list of columns it ever had, the newest last:

    {"versions": [[["id", "INT"], ["price", "DECIMAL(10,2)"]], …]}

Rows of all versions are in the topic, so a reader takes for each column the type that
holds them all (`merged`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import orjson

COLUMNS_TOPIC = "__tailrace_columns"
COLUMNS_CONFIG = {"cleanup.policy": "compact"}
Columns = tuple[tuple[str, str], ...]

_INTEGERS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}  # bits without the sign
_FLOATS = ("FLOAT", "DOUBLE")
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(-?\d+)\)")
_MOST_DIGITS = 38


def encode_versions(versions: Sequence[Columns]) -> bytes:
    return orjson.dumps({"versions": versions})


def decode_versions(value: bytes | None) -> list[Columns]:
    """Read what `encode_versions` wrote; nothing for None."""
    if value is None:
        return []
    versions = orjson.loads(value)["versions"]
    return [tuple((str(name), str(kind)) for name, kind in columns) for columns in versions]


def with_version(versions: Sequence[Columns], columns: Columns) -> list[Columns]:
    """The versions with `columns` as the newest."""
    return [*(one for one in versions if one != columns), columns]


def merged(versions: Sequence[Columns]) -> dict[str, str]:
    """For each column of any version the type that holds its values in all of them; the
    columns of the newest version first, in its order."""
    found: dict[str, str] = {}
    for columns in reversed(versions):
        for name, kind in columns:
            found[name] = wider(found[name], kind) if name in found else kind
    return found


def wider(one: str, other: str) -> str:
    """The type, in Spark's words, that holds the values of both; STRING if no other does."""
    if one == other or other == "VOID":
        return one
    if one == "VOID":
        return other
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=_INTEGERS.__getitem__)
    if {one, other} <= {*_INTEGERS, *_FLOATS}:
        return "DOUBLE"
    left, right = _DECIMAL.fullmatch(one), _DECIMAL.fullmatch(other)
    if left and right:
        scale = max(int(left[2]), int(right[2]))
        whole = max(int(left[1]) - int(left[2]), int(right[1]) - int(right[2]))
        if whole + scale <= _MOST_DIGITS:
            return f"DECIMAL({whole + scale},{scale})"
    return "STRING"


def holds(kind: str, value: object) -> bool:
    """Whether a value of a row's JSON can be one of this type, by its form and, of integers,
    by its size."""
    if value is None or kind == "STRING":
        return True
    if kind in _INTEGERS:
        limit = 1 << _INTEGERS[kind]
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if kind in _FLOATS:
        return (isinstance(value, int | float) and not isinstance(value, bool)) or (
            value in _NO_NUMBERS
        )
    if kind == "BOOLEAN":
        return isinstance(value, bool)
    if kind.startswith("ARRAY"):
        return isinstance(value, list)
    if kind.startswith(("MAP", "STRUCT")):
        return isinstance(value, dict)
    return isinstance(value, str)


def kind_of(value: object) -> str:
    """The type of a value whose column nobody has described."""
    match value:
        case None:
            return "VOID"
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT"
        case float():
            return "DOUBLE"
        case _:
            return "STRING"


def kind_in(described: Mapping[str, str], name: str, value: object) -> str:
    """The type of a column after one more value: the described one if it holds the value."""
    kind = described.get(name)
    if kind is None:
        return kind_of(value)
    return kind if holds(kind, value) else wider(kind, kind_of(value))
