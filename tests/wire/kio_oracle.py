"""Random instances of kio's messages, and their values in our terms."""

from __future__ import annotations

import dataclasses
import datetime
import io
import random
import typing
import uuid
from types import UnionType
from typing import Any

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from tailrace.wire.message import ZERO_UUID, Message

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}


def make(kind: type[Any], chance: random.Random) -> Any:
    """A random instance of a kio entity; every field may hold anything it can."""
    hints = typing.get_type_hints(kind)
    values = {}
    for field in dataclasses.fields(kind):
        tagged = "tag" in field.metadata
        if tagged and chance.random() < 0.5 and field.default is not dataclasses.MISSING:
            continue
        values[field.name] = _value(hints[field.name], field.metadata.get("kafka_type"), chance)
    return kind(**values)


def _value(hint: Any, kafka_type: str | None, chance: random.Random) -> Any:
    origin = typing.get_origin(hint)
    if origin in (UnionType, typing.Union):
        choices = [each for each in typing.get_args(hint) if each is not type(None)]
        if chance.random() < 0.3:
            return None
        hint = choices[0]
        origin = typing.get_origin(hint)
    if origin is tuple:
        element = typing.get_args(hint)[0]
        sizes = (0, 1, 2, 3) if dataclasses.is_dataclass(element) else (0, 1, 2, 130)
        return tuple(_value(element, kafka_type, chance) for _ in range(chance.choice(sizes)))
    if dataclasses.is_dataclass(hint):
        return make(hint, chance)  # type: ignore[arg-type]
    match kafka_type:
        case "string":
            return chance.choice(
                ["", "orders", "zwölf Boxkämpfer", "x" * 126, "y" * 127, "z" * 300]
            )
        case "bytes" | "records":
            return chance.choice([b"", b"\x00\xff", chance.randbytes(200)])
        case "uuid":
            return uuid.UUID(bytes=chance.randbytes(16))
        case "bool":
            return chance.random() < 0.5
        case "float64":
            return chance.uniform(-1e9, 1e9)
        case "error_code":
            return chance.choice(list(KioErrorCode))
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=chance.randrange(2**31))
        case "datetime_i64":
            return datetime.datetime.fromtimestamp(chance.randrange(2**31), datetime.UTC)
        case name if name in RANGES:
            low, high = RANGES[name]
            return hint(
                chance.choice([low, high, 0, -1 if low else 1, chance.randrange(low, high)])
            )
    raise AssertionError(f"no values for {hint} ({kafka_type})")


def write(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def read(kind: type[Any], data: bytes) -> Any:
    entity, size = entity_reader(kind)(data, 0)
    assert size == len(data)
    return entity


def assert_same(theirs: Any, ours: object) -> None:
    """Every value of a kio entity stands under the same name in our message."""
    if dataclasses.is_dataclass(theirs):
        assert isinstance(ours, Message)
        for field in dataclasses.fields(theirs):
            names = [field.name, field.name + "_ms", field.name + "_", field.name.replace("_", "")]
            flat = {name.replace("_", ""): name for name in ours.__slots__}
            found = [flat[name.replace("_", "")] for name in names if name.replace("_", "") in flat]
            assert found, f"{field.name} is not among {ours.__slots__}"
            assert_same(getattr(theirs, field.name), getattr(ours, found[0]))
        return
    if isinstance(theirs, tuple):
        assert isinstance(ours, list)
        assert len(theirs) == len(ours)
        for left, right in zip(theirs, ours, strict=True):
            assert_same(left, right)
        return
    if isinstance(theirs, uuid.UUID):
        assert ours == theirs.bytes
    elif isinstance(theirs, datetime.timedelta):
        assert ours == theirs // datetime.timedelta(milliseconds=1)
    elif isinstance(theirs, datetime.datetime):
        assert ours == round(theirs.timestamp() * 1000)
    elif theirs is None:
        # kio reads the zero uuid and some −1 times as None
        assert ours in (None, ZERO_UUID, -1)
    else:
        assert ours == theirs
