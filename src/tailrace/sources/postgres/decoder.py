"""Row decoders, generated as Python source for one version of one table.

A row costs one tuple of slices and one join: the JSON names between the values are
constants of the generated code and integers are spliced without looking at them. A
general loop over columns with a dictionary and a JSON encoder costs four times as much.
`tailrace.sources.postgres.pgoutput.read_values` is the naive twin.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from tailrace.sources.postgres.types import Converter, Splice, text

# (key or None, row or None when a value was unchanged TOAST, position behind the tuple)
Decode = Callable[[bytes, int], tuple[bytes | None, bytes | None, int]]
DecodeLine = Callable[[bytes], tuple[bytes | None, bytes]]


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """What becomes of one column, in the table's order."""

    name: str
    splice: Splice
    convert: Converter
    toastable: bool = True
    captured: bool = True


@dataclass(frozen=True, slots=True)
class Decoder:
    """The functions for one version of a table.

    `row` reads a pgoutput tuple, `line` a line of COPY's text format without its end;
    `assemble` makes a row from single JSON values (None for a missing one, left out).
    """

    row: Decode
    line: DecodeLine
    columns: tuple[ColumnPlan, ...]
    key: tuple[int, ...]

    def json_values(self, values: Sequence[bytes | bool | None]) -> list[bytes | None]:
        """JSON of each value of `read_values`; None where it was unchanged TOAST."""
        out: list[bytes | None] = []
        for plan, value in zip(self.columns, values, strict=False):
            if isinstance(value, bool):
                out.append(None)
            else:
                out.append(b"null" if value is None else plan.convert(value))
        return out

    def assemble(self, values: Sequence[bytes | None]) -> bytes:
        """A JSON object of the captured columns that have a value."""
        parts = [
            orjson.dumps(plan.name) + b":" + value
            for plan, value in zip(self.columns, values, strict=True)
            if plan.captured and value is not None
        ]
        return b"{" + b",".join(parts) + b"}"

    def key_of(self, values: Sequence[bytes | None]) -> bytes | None:
        """The record key from JSON values; None for a table without a key."""
        if not self.key:
            return None
        parts = [
            orjson.dumps(self.columns[i].name) + b":" + (values[i] or b"null") for i in self.key
        ]
        return b"{" + b",".join(parts) + b"}"


def generate(columns: Sequence[ColumnPlan], key: Sequence[int]) -> Decoder:
    """Compile the decoder of one table version; `key` are column numbers in key order."""
    scope: dict[str, object] = {
        "head": struct.Struct(">BI").unpack_from,
        "dumps": orjson.dumps,
        "join": b"".join,
        "plain": text,
        "unescape": unescape,
    }
    for number, plan in enumerate(columns):
        scope[f"f{number}"] = plan.convert
    exec(_row_source(columns, key) + _line_source(columns, key), scope)
    return Decoder(scope["row"], scope["line"], tuple(columns), tuple(key))  # type: ignore[arg-type]


def _value(plan: ColumnPlan, number: int, raw: str) -> str:
    if plan.splice == "raw":
        return raw
    if plan.splice == "quoted":
        return f"""b'"' + {raw} + b'"'"""
    if plan.convert is text:
        return f"dumps(str({raw}, 'utf-8'))"
    return f"f{number}({raw})"


def _row_source(columns: Sequence[ColumnPlan], key: Sequence[int]) -> str:
    lines = ["def row(data, p):", " p += 2"]
    unchanged: list[str] = []
    for number, plan in enumerate(columns):
        used = plan.captured or number in key
        lines += [" k, n = head(data, p)", " if k == 116:", "  p += 5", "  n += p"]
        if used:
            lines.append(f"  c{number} = {_value(plan, number, 'data[p:n]')}")
        lines.append("  p = n")
        if used and plan.toastable:
            lines += [" else:", f"  c{number} = b'null' if k == 110 else None", "  p += 1"]
            unchanged.append(f"c{number} is None")
        elif used:
            lines += [" else:", f"  c{number} = b'null'", "  p += 1"]
        else:
            lines += [" else:", "  p += 1"]
    if unchanged:
        lines += [f" if {' or '.join(unchanged)}:", "  return None, None, p"]
    lines.append(f" return {_key(columns, key)}, {_object(columns)}, p")
    return "\n".join(lines) + "\n"


def _line_source(columns: Sequence[ColumnPlan], key: Sequence[int]) -> str:
    """COPY sends every column, an empty one in the place of a column nobody asked for."""
    used = [(n, plan) for n, plan in enumerate(columns) if plan.captured or n in key]
    names = ", ".join(f"t{i}" for i in range(len(columns)))
    lines = ["def line(data):", f" {names}{',' if len(columns) == 1 else ''} = data.split(b'\\t')"]
    if used:
        lines.append(" if b'\\\\' in data:")
    for number, plan in used:
        lines.append(f"  c{number} = b'null' if t{number} == b'\\\\N' else None")
        lines.append(f"  if c{number} is None:")
        lines.append(f"   t{number} = unescape(t{number})")
        lines.append(f"   c{number} = {_value(plan, number, f't{number}')}")
    if used:
        lines.append(" else:")
    for number, plan in used:
        lines.append(f"  c{number} = {_value(plan, number, f't{number}')}")
    lines.append(f" return {_key(columns, key)}, {_object(columns)}")
    return "\n".join(lines) + "\n"


def _object(columns: Sequence[ColumnPlan]) -> str:
    parts: list[str] = []
    glue = b"{"
    for number, plan in enumerate(columns):
        if plan.captured:
            parts += [repr(glue + orjson.dumps(plan.name) + b":"), f"c{number}"]
            glue = b","
    if not parts:
        return "b'{}'"
    return f"join(({', '.join(parts)}, b'}}'))"


def _key(columns: Sequence[ColumnPlan], key: Sequence[int]) -> str:
    if not key:
        return "None"
    parts: list[str] = []
    glue = b"{"
    for number in key:
        parts += [repr(glue + orjson.dumps(columns[number].name) + b":"), f"c{number}"]
        glue = b","
    if len(key) == 1:
        return f"{parts[0]} + {parts[1]} + b'}}'"
    return f"join(({', '.join(parts)}, b'}}'))"


_ESCAPES: Mapping[bytes, bytes] = {
    b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)


def unescape(value: bytes) -> bytes:
    """COPY's backslash sequences; it never sends octal or hexadecimal ones."""
    if b"\\" not in value:
        return value
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), value)


def masked(kind: str, secret: bytes) -> Converter:
    """A converter that hides a value: nothing, stars, or a keyed digest that still joins."""
    if kind == "null":
        return lambda value: b"null"
    if kind == "redact":
        return lambda value: b'"***"'

    def digest(value: bytes) -> bytes:
        return b'"' + hmac.new(secret, value, hashlib.sha256).hexdigest().encode() + b'"'

    return digest
