"""Spark's types as Arrow types, and the rules by which they combine.

Inside the compiler a type is an Arrow `DataType`; `ddl` and `parse_type` translate to and
from Spark's words. `TIMESTAMP` is UTC microseconds, `TIMESTAMP_NTZ` microseconds without
a zone, `TIME(0)`, `TIME(3)` and `TIME(6)` are the times of day that Arrow has units for,
integers keep their width. The combination rules are those of Spark 4 (ANSI).
"""

from __future__ import annotations

import re

import pyarrow as pa

NULL = pa.null()
BOOLEAN = pa.bool_()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
STRING, BINARY = pa.string(), pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
INTERVAL = pa.month_day_nano_interval()
# Only inside an expression: the SRID and the WKB, as bytes and in hexadecimal.
GEOMETRY, GEOGRAPHY = pa.large_binary(), pa.large_string()
TIME = pa.time64("us")
TIMES = {0: pa.time32("s"), 3: pa.time32("ms"), 6: TIME}
VARIANT = pa.large_binary()  # metadata, then value: see `variant.encoding`

_NAMES = {
    "VOID": NULL, "NULL": NULL, "BOOLEAN": BOOLEAN, "TINYINT": TINYINT, "BYTE": TINYINT,
    "SMALLINT": SMALLINT, "SHORT": SMALLINT, "INT": INT, "INTEGER": INT, "BIGINT": BIGINT,
    "LONG": BIGINT, "FLOAT": FLOAT, "REAL": FLOAT, "DOUBLE": DOUBLE, "STRING": STRING,
    "BINARY": BINARY, "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ, "INTERVAL": INTERVAL, "DECIMAL": pa.decimal128(10, 0),
    "TIME": TIME, "VARIANT": VARIANT,
}  # fmt: skip
_DDL = {
    NULL: "VOID", BOOLEAN: "BOOLEAN", TINYINT: "TINYINT", SMALLINT: "SMALLINT", INT: "INT",
    BIGINT: "BIGINT", FLOAT: "FLOAT", DOUBLE: "DOUBLE", STRING: "STRING", BINARY: "BINARY",
    DATE: "DATE", TIMESTAMP: "TIMESTAMP", TIMESTAMP_NTZ: "TIMESTAMP_NTZ", INTERVAL: "INTERVAL",
    GEOMETRY: "GEOMETRY", GEOGRAPHY: "GEOGRAPHY",
    **{kind: f"TIME({digits})" for digits, kind in TIMES.items()},
    VARIANT: "VARIANT",
}  # fmt: skip
_DECIMAL = re.compile(r"(?:DECIMAL|DEC|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.I)
_FIELD = re.compile(r"(?:`((?:[^`]|``)+)`|([^:\s]+))\s*[:\s]\s*(.+)", re.DOTALL)
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_WIDTH = {TINYINT: 1, SMALLINT: 2, INT: 3, BIGINT: 4}


def parse_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark DDL type; ValueError when it is none."""
    text = text.strip()
    upper = text.upper()
    if upper in _NAMES:
        return _NAMES[upper]
    if matched := _DECIMAL.fullmatch(text):
        if int(matched[2] or 0) > int(matched[1]):
            raise ValueError(f"{text} has more digits behind the point than in all")
        return pa.decimal128(int(matched[1]), int(matched[2] or 0))
    if matched := re.fullmatch(r"TIME\s*\(\s*(\d+)\s*\)", upper):
        if int(matched[1]) not in TIMES:
            raise ValueError(f"{text} is not known; TIME(0), TIME(3) and TIME(6) are")
        return TIMES[int(matched[1])]
    if re.fullmatch(r"(VAR)?CHAR\s*\(\s*0*[1-9]\d*\s*\)", upper):
        return STRING
    if upper.startswith("ARRAY<") and upper.endswith(">"):
        return pa.list_(parse_type(text[6:-1]))
    if upper.startswith("MAP<") and upper.endswith(">"):
        key, value = _split(text[4:-1])
        return pa.map_(parse_type(key), parse_type(value))
    if upper.startswith("STRUCT<") and upper.endswith(">"):
        fields = [_FIELD.fullmatch(part.strip()) for part in _split(text[7:-1])]
        if None in fields:
            raise ValueError(f"unknown type {text!r}")
        pairs = [(found[1] or found[2], found[3]) for found in fields if found is not None]
        return pa.struct([(name.replace("``", "`"), parse_type(kind)) for name, kind in pairs])
    raise ValueError(f"unknown type {text!r}")


def _split(text: str) -> list[str]:
    parts, depth, start, quoted = [], 0, 0, False
    for position, letter in enumerate(text):
        quoted ^= letter == "`"
        if quoted:
            continue
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def ddl(kind: pa.DataType) -> str:
    """Spark's words for a type."""
    if kind in _DDL:
        return _DDL[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP<{ddl(kind.key_type)}, {ddl(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{ddl(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "STRUCT<" + ", ".join(f"{f.name}: {ddl(f.type)}" for f in kind) + ">"
    raise ValueError(f"no Spark type for {kind}")


def is_integer(kind: pa.DataType) -> bool:
    return kind in _WIDTH


def is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind))


def is_float(kind: pa.DataType) -> bool:
    return kind in (FLOAT, DOUBLE)


def is_numeric(kind: pa.DataType) -> bool:
    return is_integer(kind) or is_decimal(kind) or is_float(kind)


def is_temporal(kind: pa.DataType) -> bool:
    return kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_time(kind: pa.DataType) -> bool:
    """Whether it is a time of day."""
    return bool(pa.types.is_time(kind))


def nanos(kind: pa.DataType) -> int:
    """The nanoseconds in a unit of a time of day."""
    return {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000}[kind.unit]


def digits_of(kind: pa.DataType) -> int:
    """How many digits of a second a time of day has."""
    return {"s": 0, "ms": 3, "us": 6}[kind.unit]


def has_variant(kind: pa.DataType) -> bool:
    """Whether values of a type are variants or hold some: they have no order and no equality."""
    if pa.types.is_map(kind):
        return has_variant(kind.key_type) or has_variant(kind.item_type)
    if pa.types.is_list(kind):
        return has_variant(kind.value_type)
    if pa.types.is_struct(kind):
        return any(has_variant(field.type) for field in kind)
    return bool(kind == VARIANT)


def has_map(kind: pa.DataType) -> bool:
    """Whether values of a type are maps or hold some: they have no order."""
    if pa.types.is_list(kind) and not pa.types.is_map(kind):
        return has_map(kind.value_type)
    if pa.types.is_struct(kind):
        return any(has_map(field.type) for field in kind)
    return bool(pa.types.is_map(kind))


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer or decimal type."""
    return kind if is_decimal(kind) else pa.decimal128(_DIGITS[kind], 0)


def common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type to which Spark brings both sides of a comparison, CASE or UNION."""
    if left == right:
        return left
    if left == NULL or right == NULL:
        return right if left == NULL else left
    if is_integer(left) and is_integer(right):
        return left if _WIDTH[left] >= _WIDTH[right] else right
    if is_numeric(left) and is_numeric(right):
        if is_float(left) or is_float(right):
            return FLOAT if {left, right} == {FLOAT} else DOUBLE
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        return pa.decimal128(min(whole + scale, 38), min(scale, 38 - whole))  # whole digits first
    if is_temporal(left) and is_temporal(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    if is_time(left) and is_time(right):
        return TIMES[max(digits_of(left), digits_of(right))]
    if STRING in (left, right):  # ANSI: a string is brought to the other side's type
        other = right if left == STRING else left
        if is_integer(other):
            return BIGINT
        if is_decimal(other) or is_float(other):
            return DOUBLE
        if is_temporal(other) or is_time(other) or other in (BOOLEAN, BINARY, VARIANT):
            return other
    if pa.types.is_map(left) and pa.types.is_map(right):
        key, item = common(left.key_type, right.key_type), common(left.item_type, right.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_map(left) or pa.types.is_map(right):
        return None
    if pa.types.is_list(left) and pa.types.is_list(right):
        inner = common(left.value_type, right.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(left) and pa.types.is_struct(right) and _named_alike(left, right):
        kinds = [common(a.type, b.type) for a, b in zip(left, right, strict=True)]
        if None not in kinds:
            return pa.struct([(f.name, kind) for f, kind in zip(left, kinds, strict=True)])
    if pa.types.is_struct(left) and pa.types.is_struct(right):  # other names, the same types
        return left if [f.type for f in left] == [f.type for f in right] else None
    return None


def _named_alike(left: pa.DataType, right: pa.DataType) -> bool:
    names = [[field.name.lower() for field in kind] for kind in (left, right)]
    return names[0] == names[1]


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """Spark's `DecimalType.bounded`."""
    return pa.decimal128(min(precision, 38), min(scale, 38))


def adjusted_decimal(precision: int, scale: int) -> pa.DataType:
    """Spark's `adjustPrecisionScale`: keep whole digits, give up scale down to 6."""
    if precision <= 38:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(38, max(38 - whole, min(scale, 6)))


def arithmetic(operation: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The result type of `left operation right` for numbers; None when there is none."""
    if left == right == STRING:
        return None
    if STRING in (left, right):
        # ANSI: beside a whole number a text is one too.
        whole = is_integer(left) or is_integer(right)
        text = BIGINT if whole and operation != "/" else DOUBLE
        left, right = (text if kind == STRING else kind for kind in (left, right))
    if not (is_numeric(left) and is_numeric(right)):
        return None
    if is_float(left) or is_float(right):
        return DOUBLE if operation == "/" or left != right else left
    if is_integer(left) and is_integer(right):
        if operation == "/":
            return DOUBLE
        return BIGINT if operation == "div" else common(left, right)
    if operation == "div":
        return BIGINT
    a, b = as_decimal(left), as_decimal(right)
    p1, s1, p2, s2 = a.precision, a.scale, b.precision, b.scale
    match operation:
        case "+" | "-":
            scale = max(s1, s2)
            return adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return adjusted_decimal(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return adjusted_decimal(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale)
    return None
