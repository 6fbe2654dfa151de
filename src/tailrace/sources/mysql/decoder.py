"""Rows of a binlog event as dicts, by code that is generated for each form of row.

A form is a table map, the columns that are there and those that are NULL: then nothing has
to be asked while a row is read, and a run of columns of fixed width is one `unpack_from`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from typing import Any

from tailrace.sources.errors import ReplicationProtocolError
from tailrace.sources.mysql import values
from tailrace.sources.mysql.fields import BINARIES, Field
from tailrace.sources.mysql.json_binary import read_json
from tailrace.sources.mysql.json_diffs import read_diffs
from tailrace.sources.mysql.table_map import TableMap, Wire

Row = dict[str, Any]
Decoder = Callable[[bytes, int], tuple[Row, int]]
MOST_FORMS = 4096
JSON = 245

_STRUCT = {1: "b", 2: "h", 3: "i", 8: "q"}
_SIZES = {"b": 1, "h": 2, "i": 4, "q": 8, "f": 4, "d": 8}


class RowDecoder:
    """The decoders of one table map. `wanted`: names of the columns to give."""

    def __init__(self, table: TableMap, wanted: Collection[str] | None = None) -> None:
        self.table = table
        self._wanted = wanted
        self._forms: dict[tuple[bytes, bytes, bytes], Decoder] = {}

    @property
    def json_columns(self) -> int:
        """How many columns may be told by their changes."""
        return sum(wire.type == JSON for wire in self.table.wires)

    def rows(
        self, data: bytes, at: int, present: bytes, count: int, partial: bytes = b""
    ) -> Decoder:
        """The decoder of the row at `at`, whose null bitmap stands there; `partial` is a bitmap
        of the JSON columns that are told by their changes."""
        size = (count + 7) >> 3
        key = present, data[at : at + size], partial
        found = self._forms.get(key)
        if found is None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            found = self._forms[key] = self._generate(present, key[1], partial)
        return found

    def _generate(self, present: bytes, nulls: bytes, partial: bytes) -> Decoder:
        """`nulls` may have bits set behind the last column: MariaDB sets them."""
        documents = [at for at, wire in enumerate(self.table.wires) if wire.type == JSON]
        told = {at for n, at in enumerate(documents) if partial and partial[n >> 3] >> (n & 7) & 1}
        there = [at for at in range(len(self.table.wires)) if present[at >> 3] >> (at & 7) & 1]
        size = (len(there) + 7) >> 3
        if len(nulls) < size:
            raise ReplicationProtocolError("a row ends in its list of NULLs")
        names: dict[str, Any] = {"E": ReplicationProtocolError}
        lines: list[str] = []
        items: list[str] = []
        run: list[tuple[str, str]] = []  # names and codes of fixed columns

        def leave() -> None:
            if run:
                code = "<" + "".join(one for _, one in run)
                name = f"s{len(names)}"
                names[name] = struct.Struct(code).unpack_from
                lines.append(f" {', '.join(one for one, _ in run)}, = {name}(b, p)")
                lines.append(f" p += {struct.calcsize(code)}")
                run.clear()

        for number, at in enumerate(there):
            field, wire = self.table.fields[at], self.table.wires[at]
            shown = self._wanted is None or field.name in self._wanted
            if nulls[number >> 3] >> (number & 7) & 1:
                if shown:
                    items.append(f"{field.name!r}: None")
                continue
            value = f"v{at}"
            code, expression = _fixed(field, wire, value, names)
            if code:
                run.append((value, code))
            else:
                leave()
                if at in told:
                    lines += [" n = int.from_bytes(b[p:p + 4], 'little'); p += 4", f" {value} = b[p:p + n]; p += n"]  # fmt: skip
                    names["f_diffs"], expression = read_diffs, f"f_diffs({value})"
                else:
                    expression = _varying(field, wire, value, names, lines)
            if shown:
                items.append(f"{field.name!r}: {expression}")
        leave()
        text = "\n".join(
            [f"def decode(b, p):\n p += {size}", *lines, f" return {{{', '.join(items)}}}, p"]
        )
        exec(compile(text, f"<{self.table.schema}.{self.table.table}>", "exec"), names)
        made: Decoder = names["decode"]
        return made


def _fixed(field: Field, wire: Wire, value: str, names: dict[str, Any]) -> tuple[str, str]:
    """The code of a column of fixed width and what to make of its value; no code for others."""
    kind = wire.type

    def call(function: Callable[..., Any], *rest: object) -> str:
        name = f"f_{function.__name__}"
        names[name] = function
        return f"{name}({', '.join([value, *(repr(one) for one in rest)])})"

    if kind in _STRUCT:
        code = _STRUCT[kind]
        return (code.upper() if field.unsigned else code), value
    if kind == 9:
        return "3s", f"int.from_bytes({value}, 'little', signed={not field.unsigned})"
    match kind:
        case 4:
            return "f", call(values.single)
        case 5:
            return "d", value
        case 13:
            return "B", f"{value} and {value} + 1900"
        case 10 | 14:
            return "3s", call(values.date)
        case 18:
            size = 5 + (wire.first + 1) // 2
            names["f_head"], names["f_part"] = values.datetime_head, values.fraction
            rest = f" + f_part({value}[5:], {wire.first})" if wire.first else ""
            return f"{size}s", f"f_head({value}[:5]){rest}"
        case 17:
            size = 4 + (wire.first + 1) // 2
            names["f_stamp"], names["f_part"] = values.timestamp_head, values.fraction
            rest = f" + f_part({value}[4:], {wire.first})" if wire.first else ""
            return f"{size}s", f"f_stamp({value}[:4]){rest} + 'Z'"
        case 19:
            return f"{3 + (wire.first + 1) // 2}s", call(values.time, wire.first)
        case 7:
            return "I", call(values.instant) + " + 'Z'"
        case 12:
            return "q", call(values.old_datetime)
        case 11:
            return "3s", call(values.old_time)
        case 246:
            size = values.decimal_bytes(wire.first, wire.second)
            return f"{size}s", call(values.decimal, wire.first, wire.second)
        case 16:
            return f"{(field.length + 7) // 8}s", call(values.bits, field.length)
        case 247 | 248:
            function = values.enum_text if kind == 247 else values.set_text
            number = f"int.from_bytes({value}, 'little')"
            names[f"f_{function.__name__}"] = function
            listed = f"l{len(names)}"
            names[listed] = field.values
            return f"{wire.first}s", f"f_{function.__name__}({number}, {listed})"
    return "", ""


def _varying(field: Field, wire: Wire, value: str, names: dict[str, Any], lines: list[str]) -> str:
    """Lines that read a column with its length before it; the expression of its value."""
    kind = wire.type
    if kind in (15, 141, 253, 254):
        width = 2 if wire.first > 255 else 1
    else:
        width = wire.first
    if width == 1:
        lines.append(" n = b[p]; p += 1")
    elif width == 2:
        lines.append(" n = b[p] | b[p + 1] << 8; p += 2")
    else:
        lines.append(f" n = int.from_bytes(b[p:p + {width}], 'little'); p += {width}")
    lines.append(f" {value} = b[p:p + n]; p += n")
    # A row that says it is longer than its event is found out by its end.
    if kind in (140, 141):
        names["f_uncompressed"] = values.uncompressed
        value = f"f_uncompressed({value})"
    function: Callable[..., Any] | None = None
    match field.kind:
        case "json" if kind == 245:
            function = read_json
        case "json":
            function = values.json_text
            value = f"{value}.decode()"
        case "geometry":
            function = values.geometry
        case "vector":
            function = values.vector
        case "uuid":
            function = values.uuid_text
        case "inet4":
            function = values.inet4
        case "inet6":
            function = values.inet6
        case "binary":
            function = values.base64_text
            value = f"{value}.ljust({field.length}, b'\\0')"
        case other if other in BINARIES:
            function = values.base64_text
    if function is None:
        assert field.charset is not None
        assert field.charset.decode is not None
        if field.charset.name in ("utf8mb4", "utf8mb3", "utf8", "ascii"):
            return f"{value}.decode()"
        name = f"c_{field.charset.name}"
        names[name] = field.charset.decode
        return f"{name}({value})"
    names[f"f_{function.__name__}"] = function
    return f"f_{function.__name__}({value})"
