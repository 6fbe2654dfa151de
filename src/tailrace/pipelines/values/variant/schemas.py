"""The types of variants in Spark's words, and the one that holds several."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tailrace.pipelines.values.types import ddl, is_decimal
from tailrace.pipelines.values.variant.encoding import Node, deep, scalar, utf16

# A name, [precision, scale] of a decimal, {"array": type} or {"object": {key: type}}.
_WORDS = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP")  # each holds those before it


@deep
def schema_of(node: Node) -> Any:
    """The type of a node."""
    if isinstance(node, dict):
        return {"object": {key: schema_of(part) for key, part in node.items()}}
    if isinstance(node, list):
        return {"array": merged(map(schema_of, node))}
    kind = scalar(node)[0]
    return [kind.precision, kind.scale] if is_decimal(kind) else ddl(kind)


def merged(kinds: Iterable[Any]) -> Any:
    """The type that holds values of all of them."""
    whole: Any = "VOID"
    for kind in kinds:
        whole = _both(whole, kind)
    return whole


def _both(one: Any, other: Any) -> Any:
    if one == other or other == "VOID":
        return one
    if one == "VOID":
        return other
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        if "array" in one:
            return {"array": _both(one["array"], other["array"])}
        left, right = one["object"], other["object"]
        names = sorted({*left, *right}, key=utf16)
        pairs = {name: (left.get(name, "VOID"), right.get(name, "VOID")) for name in names}
        return {"object": {name: _both(*pair) for name, pair in pairs.items()}}
    if one in _WORDS and other in _WORDS:
        return max(one, other, key=_WORDS.index)
    return _number(one, other)


def _number(one: Any, other: Any) -> Any:
    """The type of numbers of both types; VARIANT when they are not both numbers."""
    names = {kind if isinstance(kind, str) else "DECIMAL" for kind in (one, other) if kind}
    if isinstance(one, dict) or isinstance(other, dict):
        return "VARIANT"
    if not names <= {"BIGINT", "FLOAT", "DOUBLE", "DECIMAL"}:
        return "VARIANT"
    if "DOUBLE" in names or names == {"FLOAT", "DECIMAL"}:
        return "DOUBLE"
    if names == {"BIGINT", "FLOAT"}:
        return "FLOAT"
    (p1, s1), (p2, s2) = ([20, 0] if kind == "BIGINT" else kind for kind in (one, other))
    scale, whole = max(s1, s2), max(p1 - s1, p2 - s2)
    return "DOUBLE" if scale + whole > 38 else [scale + whole, scale]


def words(kind: Any) -> str:
    """A type as `schema_of_variant` shows it."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return ddl(pa.decimal128(*kind))
    if "array" in kind:
        return f"ARRAY<{words(kind['array'])}>"
    inner = (f"{_name(name)}: {words(part)}" for name, part in kind["object"].items())
    return f"OBJECT<{', '.join(inner)}>"


def _name(name: str) -> str:
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    return "`" + name.replace("`", "``") + "`"


def dumped(kind: Any) -> str:
    """A type as a text that `loaded` reads; equal types give equal texts."""
    return json.dumps(kind)


def loaded(text: str) -> Any:
    return json.loads(text)
