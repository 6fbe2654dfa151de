"""From what a caller gives to the key bytes of a view's record.

A record key is the compact JSON object of the view's key columns in key order, `{}` for a
view of at most one row. Callers give parts (`"NL"`, `5`, `("NL", 5)`), a mapping, or text from a command line or an
address, which is read by the column's type; there `\\N` is NULL, and text that begins
with a backslash is written with two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

import orjson

from tailrace.records.rows import json_value
from tailrace.records.tick import ViewInfo
from tailrace.serving.errors import ViewKeyError

INTEGERS = ("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG")
DECIMALS = ("DECIMAL", "NUMERIC", "DEC")


def read_part(text: str) -> str | None:
    """A key part as it stands in an address or on a command line."""
    if text[:1] != "\\":
        return text
    return None if text == "\\N" else text[1:] if text[:2] == "\\\\" else text


def write_part(value: object) -> str:
    """A key part as an address takes it; `read_part` and the column's type undo it."""
    if value is None:
        return "\\N"
    plain = json_value(value)
    text = plain if isinstance(plain, str) else orjson.dumps(plain).decode()
    return "\\" + text if text[:1] == "\\" else text


def encode_key(info: ViewInfo, key: object) -> bytes:
    """Record key for `key`: a part, a sequence of parts, or a mapping by column."""
    columns = info.key
    if isinstance(key, Mapping):
        parts: Sequence[object] = [key.get(column) for column in columns]
        unknown = [name for name in key if name not in columns]
        if unknown:
            raise _wrong(info, f"{unknown[0]!r} is not one of its key columns")
    elif isinstance(key, tuple | list):
        parts = key
    else:
        parts = (key,)
    if len(parts) != len(columns):
        raise _wrong(info, f"{len(parts)} given")
    types = dict(info.columns)
    return orjson.dumps(
        {
            column: _part(info, column, types.get(column, "STRING"), part)
            for column, part in zip(columns, parts, strict=True)
        }
    )


def key_encoder(info: ViewInfo) -> Callable[[object], bytes]:
    """`encode_key` for one view, with a short way for the commonest keys: one column of
    integers or of text."""
    columns = info.key
    if len(columns) != 1:
        return lambda key: encode_key(info, key)
    kind = dict(info.columns).get(columns[0], "STRING").split("(")[0].strip().upper()
    head = b"{" + orjson.dumps(columns[0]) + b":"
    if kind in INTEGERS:

        def whole_number(key: object) -> bytes:
            if type(key) is int:
                return b"%b%d}" % (head, key)
            # As text it comes from an address: digits as a number is written are the number.
            if type(key) is str and key.isascii() and key.isdigit() and key[0] != "0":
                return b"%b%b}" % (head, key.encode())
            return encode_key(info, key)

        return whole_number
    if kind in ("STRING", "VARCHAR", "CHAR"):

        def text(key: object) -> bytes:
            return head + orjson.dumps(key) + b"}" if type(key) is str else encode_key(info, key)

        return text
    return lambda key: encode_key(info, key)


def _part(info: ViewInfo, column: str, kind: str, value: object) -> object:
    word = kind.split("(")[0].split("<")[0].strip().upper()
    try:
        if value is None:
            return None
        if word in INTEGERS:
            return value if type(value) is int else int(str(value))
        if word in DECIMALS:
            _, _, arguments = kind.partition("(")
            scale = int(arguments.rstrip(") ").partition(",")[2] or 0)
            return format(Decimal(str(value)).quantize(Decimal(1).scaleb(-scale)), "f")
        if word in ("DOUBLE", "FLOAT", "REAL"):
            return float(str(value))
        if word == "BOOLEAN":
            if str(value).lower() not in ("true", "false"):
                raise ValueError
            return str(value).lower() == "true"
    except (ValueError, InvalidOperation):
        raise _wrong(info, f"{value!r} is not {kind} (column {column!r})") from None
    return json_value(value)


def _wrong(info: ViewInfo, detail: str) -> ViewKeyError:
    columns = ", ".join(info.key)
    return ViewKeyError(
        f"key does not fit view {info.name!r}",
        detail=f"Its key is ({columns}); {detail}.",
        hint="give one value per key column, in that order"
        if columns
        else "the view has at most one row: give no value",
    )
