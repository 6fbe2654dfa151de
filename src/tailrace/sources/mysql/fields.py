"""Columns in one form, whether the binlog's table map or the catalog tells of them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tailrace.sources.schema import Column

# Character sets whose bytes Python knows; those of one byte are asked of the server.
CODECS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8", "ascii": "ascii",
    "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be",
    "big5": "cp950", "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "sjis": "shift_jis",
    "cp932": "cp932", "ujis": "euc_jp", "eucjpms": "euc_jp", "euckr": "cp949",
}  # fmt: skip
INTEGERS = {
    "tinyint": "SMALLINT", "smallint": "SMALLINT", "mediumint": "INT", "int": "INT",
    "bigint": "BIGINT", "year": "INT",
}  # fmt: skip
UNSIGNED = {
    "tinyint": "SMALLINT", "smallint": "INT", "mediumint": "INT", "int": "BIGINT",
    "bigint": "DECIMAL(20,0)",
}  # fmt: skip
STRINGS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
BINARIES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
# What the table map does not tell from other types.
SAID_BY_CATALOG = ("uuid", "inet4", "inet6", "json", "vector")
GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
    "multipolygon", "geometrycollection", "geomcollection",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Charset:
    """A character set: `decode` gives text of bytes; None for `binary`."""

    name: str
    widest: int
    decode: Callable[[bytes], str] | None


@dataclass(frozen=True, slots=True)
class Field:
    """One column. `length` is in characters (bytes of binary), or the bits of BIT; `digits`
    are those after the second."""

    name: str
    kind: str
    unsigned: bool = False
    length: int = 0
    scale: int = 0
    digits: int = 0
    charset: Charset | None = None
    values: tuple[str, ...] = ()
    nullable: bool = True

    @property
    def type(self) -> str:
        """In the database's words."""
        kind = self.kind
        if kind in ("char", "varchar", "binary", "varbinary", "bit"):
            kind += f"({self.length})"
        elif kind == "decimal":
            kind += f"({self.length},{self.scale})"
        elif kind in ("time", "datetime", "timestamp") and self.digits:
            kind += f"({self.digits})"
        elif kind in ("enum", "set"):
            quoted = ("'" + value.replace("'", "''") + "'" for value in self.values)
            kind += f"({','.join(quoted)})"
        return kind + " unsigned" if self.unsigned else kind

    @property
    def spark(self) -> str:
        """The Spark type of its JSON form."""
        if self.kind in INTEGERS:
            return (UNSIGNED if self.unsigned else INTEGERS).get(self.kind, "INT")
        match self.kind:
            case "float":
                return "FLOAT"
            case "double":
                return "DOUBLE"
            case "decimal":
                fits = self.length <= 38
                return f"DECIMAL({self.length},{self.scale})" if fits else "STRING"
            case "geometry":
                return "STRUCT<srid: BIGINT, wkb: STRING>"
            case "vector":
                return "ARRAY<FLOAT>"
        return "STRING"

    def column(self, *, masked: bool, nullable: bool) -> Column:
        return Column(self.name, self.type, "STRING" if masked else self.spark, nullable)


def as_said(field: Field, kind: str | None) -> Field:
    """The field as the catalog calls it, where the table map could not tell."""
    if kind not in SAID_BY_CATALOG or field.kind == kind:
        return field
    likely = {
        "uuid": ("binary", 16), "inet4": ("binary", 4), "inet6": ("binary", 16),
        "vector": ("varbinary", 0), "json": ("longtext", 0),
    }[kind]  # fmt: skip
    if field.kind != likely[0] or (likely[1] and field.length != likely[1]):
        return field
    keeps = kind == "json"
    return replace(field, kind=kind, length=0, charset=field.charset if keeps else None)


def enum_values(column_type: str) -> tuple[str, ...]:
    """The values in `enum('a','b''c')`."""
    found = re.findall(r"'((?:[^']|'')*)'", column_type)
    return tuple(value.replace("''", "'") for value in found)


def table_decoder(table: Mapping[int, str]) -> Callable[[bytes], str]:
    """For a character set of one byte, by what the server makes of each."""

    def decode(raw: bytes) -> str:
        return codecs.charmap_decode(raw, "strict", table)[0]

    return decode


def codec_decoder(name: str) -> Callable[[bytes], str]:
    def decode(raw: bytes) -> str:
        return raw.decode(name)

    return decode
