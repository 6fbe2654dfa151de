"""From Postgres's text form of a value to JSON bytes, one rule per type.

All connections of capture set `datestyle=ISO`, `intervalstyle=iso_8601`,
`timezone=UTC`, `bytea_output=hex`, `extra_float_digits=1`, `lc_monetary=C` and
`client_encoding=UTF8`, so that a text form depends on the value alone. The table of
forms is in the documentation of change events.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Literal

SESSION_OPTIONS = (
    "-c datestyle=ISO -c intervalstyle=iso_8601 -c timezone=UTC -c bytea_output=hex "
    "-c extra_float_digits=1 -c lc_monetary=C -c client_encoding=UTF8 "
    "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
)

Converter = Callable[[bytes], bytes]
Kind = Literal["base", "array", "composite", "domain", "enum", "range", "multirange"]

# How a generated decoder splices a value: `raw` as it stands, `quoted` between quotation
# marks without looking at it, `call` through its converter.
Splice = Literal["raw", "quoted", "call"]


@dataclass(frozen=True, slots=True)
class PostgresType:
    """One row of pg_type, as far as values need it."""

    oid: int
    name: str
    kind: Kind = "base"
    element: int = 0
    base: int = 0
    base_modifier: int = -1
    delimiter: str = ","
    fields: tuple[tuple[str, int, int], ...] = ()
    storage: str = "p"


BUILT_IN: Mapping[int, str] = {
    16: "boolean", 17: "bytea", 18: "char", 19: "name", 20: "bigint", 21: "smallint",
    23: "integer", 25: "text", 26: "oid", 114: "json", 142: "xml", 700: "real",
    701: "double precision", 790: "money", 1042: "character", 1043: "character varying",
    1082: "date", 1083: "time", 1114: "timestamp", 1184: "timestamptz", 1186: "interval",
    1266: "timetz", 1560: "bit", 1562: "bit varying", 1700: "numeric", 2950: "uuid",
    3802: "jsonb",
}  # fmt: skip

_RAW = {20, 21, 23, 26, 28, 5069, 114, 3802}
_QUOTED = {1083, 1186, 1266, 1560, 1562, 1700, 2950, 869, 650, 829, 774, 3220}


def text(value: bytes) -> bytes:
    """A JSON string; every character Postgres can hold is kept."""
    return encode_basestring(value.decode()).encode()


def boolean(value: bytes) -> bytes:
    return b"true" if value == b"t" else b"false"


def real(value: bytes) -> bytes:
    """A number; NaN and the infinities, which JSON lacks, as strings."""
    return value if value[-1] < 58 else b'"' + value + b'"'


def date(value: bytes) -> bytes:
    if value[-3:] == b" BC":
        return b'"-' + value[:-3] + b'"'
    return b'"' + value + b'"'


def timestamp(value: bytes) -> bytes:
    if value[-3:] == b" BC":
        return b'"-' + value[:-3].replace(b" ", b"T", 1) + b'"'
    return b'"' + value.replace(b" ", b"T", 1) + b'"'


def timestamptz(value: bytes) -> bytes:
    if value[-3:] == b"+00":
        return b'"' + value[:-3].replace(b" ", b"T", 1) + b'Z"'
    if value[-3:] == b" BC":
        return b'"-' + value[:-6].replace(b" ", b"T", 1) + b'Z"'
    return b'"' + value + b'"'  # infinity, -infinity


def bytea(value: bytes) -> bytes:
    return b'"' + binascii.b2a_base64(binascii.unhexlify(value[2:]), newline=False) + b'"'


def money(value: bytes) -> bytes:
    return b'"' + value.replace(b"$", b"").replace(b",", b"") + b'"'


_CALLS: Mapping[int, Converter] = {
    16: boolean, 17: bytea, 700: real, 701: real, 790: money, 1082: date,
    1114: timestamp, 1184: timestamptz,
}  # fmt: skip

_UNESCAPE = re.compile(rb"\\(.)", re.DOTALL)


def array(element: Converter, delimiter: bytes = b",") -> Converter:
    """Arrays nested by dimension; lower bounds other than 1 are not kept."""
    token = re.compile(
        rb'[{}]|"((?:[^"\\]|\\.)*)"|[^{}"' + re.escape(delimiter) + rb"]+|" + re.escape(delimiter),
        re.DOTALL,
    )

    def convert(value: bytes) -> bytes:
        start = value.index(b"{")  # behind "[0:1]=" if there is one
        out: list[bytes] = []
        for found in token.finditer(value, start):
            word = found.group()
            if word == b"{":
                out.append(b"[")
            elif word == b"}":
                out.append(b"]")
            elif word == delimiter:
                out.append(b",")
            elif word[:1] == b'"':
                out.append(element(_UNESCAPE.sub(rb"\1", found.group(1))))
            elif word == b"NULL":
                out.append(b"null")
            else:
                out.append(element(_UNESCAPE.sub(rb"\1", word)))
        return b"".join(out)

    return convert


class StaleType(Exception):
    """A value of a row type has more fields than the type had when it was read."""

    def __init__(self, oid: int) -> None:
        super().__init__(f"type {oid}")
        self.oid = oid


def composite(fields: tuple[tuple[bytes, Converter], ...], longer: Converter = text) -> Converter:
    """A row type as an object by field name; `longer` is for values with more fields."""
    token = re.compile(rb'((?:"(?:[^"\\]|""|\\.)*"|[^",()\\]|\\.)*)([,)])', re.DOTALL)
    doubled = re.compile(rb'""|\\(.)', re.DOTALL)

    def unquote(word: bytes) -> bytes:
        # A field is quoted as a whole or not at all.
        if word[:1] != b'"':
            return word
        return doubled.sub(lambda found: found[1] or b'"', word[1:-1])

    def convert(value: bytes) -> bytes:
        out: list[bytes] = []
        position = 1
        for name, field in fields:
            found = token.match(value, position)
            if found is None:
                break
            position = found.end()
            word = found.group(1)
            out.append(name + b":" + (field(unquote(word)) if word else b"null"))
        if position < len(value):
            return longer(value)
        return b"{" + b",".join(out) + b"}"

    return convert


class TypeTable:
    """The types of one database: what each column's text becomes."""

    def __init__(self, types: Mapping[int, PostgresType] = {}) -> None:
        self.types = dict(types)
        # Row types whose longer values are known to be from before a field was dropped.
        self.settled: frozenset[int] = frozenset()
        self._converters: dict[int, Converter] = {}

    def knows(self, oid: int) -> bool:
        return oid in self.types or oid in BUILT_IN

    def splice(self, oid: int) -> Splice:
        """How a decoder puts a value of this type into JSON."""
        oid = self.base_of(oid)
        if oid in _RAW:
            return "raw"
        return "quoted" if oid in _QUOTED else "call"

    def base_of(self, oid: int) -> int:
        """The type below any domains."""
        while (found := self.types.get(oid)) is not None and found.kind == "domain":
            oid = found.base
        return oid

    def converter(self, oid: int) -> Converter:
        """Text form → JSON bytes. A type never seen gives a string."""
        if oid not in self._converters:
            self._converters[oid] = text  # a type that contains itself ends here
            self._converters[oid] = self._make(self.base_of(oid))
        return self._converters[oid]

    def _make(self, oid: int) -> Converter:
        if oid in _RAW:
            return bytes
        if oid in _QUOTED:
            return _quoted
        if oid in _CALLS:
            return _CALLS[oid]
        found = self.types.get(oid)
        if found is None:
            return text
        if found.kind == "array":
            return array(self.converter(found.element), found.delimiter.encode())
        if found.kind == "composite":
            return composite(
                tuple((text(name.encode()), self.converter(of)) for name, of, _ in found.fields),
                lambda value: self._longer(oid, value),
            )
        return text

    def _longer(self, oid: int, value: bytes) -> bytes:
        """A field was added since (then the catalog has it now), or dropped: then nobody can
        tell any more what its name was, and the value stays Postgres's text."""
        if oid in self.settled:
            return text(value)
        raise StaleType(oid)

    def renewed(self, types: TypeTable, oid: int) -> TypeTable:
        """`types`, read again because of a longer value of `oid`."""
        before, after = self.types.get(oid), types.types.get(oid)
        settled = before is not None and after is not None and before.fields == after.fields
        types.settled = self.settled | {oid} if settled else self.settled - {oid}
        return types

    def name(self, oid: int, modifier: int = -1) -> str:
        """The database's own words for a type, e.g. `numeric(10,2)`."""
        found = self.types.get(oid)
        if found is not None and found.kind == "array":
            return self.name(found.element, modifier) + "[]"
        word = BUILT_IN.get(oid) or (found.name if found else f"type {oid}")
        if modifier < 0:
            return word
        if oid == 1700:
            precision, scale = numeric_modifier(modifier)
            return f"numeric({precision},{scale})"
        if oid in (1042, 1043):
            return f"{word}({modifier - 4})"
        if oid in (1560, 1562):
            return f"{word}({modifier})"
        return word

    def spark(self, oid: int, modifier: int = -1) -> str:
        """The Spark type of the JSON form."""
        found = self.types.get(oid)
        if found is not None and found.kind == "domain":
            return self.spark(found.base, found.base_modifier if modifier < 0 else modifier)
        if oid == 1700:
            if modifier < 0:
                return "DECIMAL(38,18)"
            precision, scale = numeric_modifier(modifier)
            if scale < 0:
                precision, scale = precision - scale, 0
            precision = max(precision, scale)
            return f"DECIMAL({precision},{scale})" if precision <= 38 else "STRING"
        if oid in _SPARK:
            return _SPARK[oid]
        if found is not None and found.kind == "array":
            return f"ARRAY<{self.spark(found.element, modifier)}>"
        if found is not None and found.kind == "composite":
            inner = ", ".join(f"`{name}`: {self.spark(of, mod)}" for name, of, mod in found.fields)
            return f"STRUCT<{inner}>"
        return "STRING"

    def toastable(self, oid: int) -> bool:
        """Whether a value can be stored out of line, and so arrive as unchanged."""
        found = self.types.get(self.base_of(oid))
        if found is not None:
            return found.storage != "p"
        return oid not in _FIXED


_SPARK: Mapping[int, str] = {
    16: "BOOLEAN", 20: "BIGINT", 21: "SMALLINT", 23: "INT", 26: "BIGINT", 700: "FLOAT",
    701: "DOUBLE", 790: "DECIMAL(19,2)", 1082: "DATE", 1114: "TIMESTAMP_NTZ",
    1184: "TIMESTAMP",
}  # fmt: skip
_FIXED = {16, 18, 20, 21, 23, 26, 700, 701, 790, 1082, 1083, 1114, 1184, 1186, 1266, 2950}


def numeric_modifier(modifier: int) -> tuple[int, int]:
    """(precision, scale) of a numeric type modifier; scales below zero since 15."""
    packed = modifier - 4
    scale = packed & 0x7FF
    return packed >> 16 & 0xFFFF, scale - 2048 if scale > 1023 else scale


def _quoted(value: bytes) -> bytes:
    return b'"' + value + b'"'
