"""Messages of a registered Protobuf file, without generated classes.

Confluent's format puts a path in front of a message: the number of its index in the file, then one
for each message it is nested in, as zigzag varints with their count before them; the first message
of a file is a single zero.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tailrace.errors import ComponentMissingError
from tailrace.schemas import protobuf
from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.model import Schema, Texts
from tailrace.schemas.parsed import parse
from tailrace.schemas.protobuf_descriptors import to_base64

_OWN = "value.proto"
MOST_INDEXES = 100


class Messages:
    """The messages of a file. References come each after those it refers to itself. Raises
    InvalidSchemaError."""

    def __init__(self, text: str, references: Texts) -> None:
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool
        except ImportError as missing:
            raise ComponentMissingError(
                "formats of a schema registry need more packages",
                detail=str(missing),
                hint="pip install 'tailrace[registry]'",
            ) from missing
        self._pool = descriptor_pool.DescriptorPool()
        before: dict[str, str] = {}  # those that a file may refer to
        for name, one in {**references, _OWN: text}.items():
            types = parse(Schema(one, "PROTOBUF"), before).value
            before[name] = one
            assert isinstance(types, protobuf.Types)
            file = descriptor_pb2.FileDescriptorProto()
            file.ParseFromString(base64.b64decode(to_base64(types, name)))
            for needed in file.dependency:
                self._add_known(needed, references)
            self._pool.Add(file)
        self._file = self._pool.FindFileByName(_OWN)
        if not file.message_type:
            raise InvalidSchemaError("the file has no message")
        # In the order of the file, which its index is by.
        self._names = [one.name for one in file.message_type]

    def _add_known(self, name: str, references: Texts) -> None:
        """A file of Google's, which every schema may import."""
        if name in references or not name.startswith("google/protobuf/"):
            return
        from google.protobuf import descriptor_pb2

        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for needed in file.dependency:
            self._add_known(needed, references)
        self._pool.Add(file)

    def at(self, path: Sequence[int]) -> Any:
        """The class of the message at a path of indexes. Raises IndexError."""
        from google.protobuf import message_factory

        if not path or min(path) < 0:
            raise IndexError(path)
        found = self._file.message_types_by_name[self._names[path[0]]]
        for index in path[1:]:
            found = _inner(found)[index]
        return message_factory.GetMessageClass(found)

    def path_of(self, name: str) -> tuple[int, ...]:
        """The path of a message by its name, `Order` or `Order.Line`. Raises ValueError."""
        first, *inner = name.removeprefix(f"{self._file.package}.").split(".")
        if first not in self._names:
            raise ValueError(name)
        path = [self._names.index(first)]
        found = self._file.message_types_by_name[first]
        for one in inner:
            there = _inner(found)
            path.append([each.name for each in there].index(one))
            found = there[path[-1]]
        return tuple(path)


def _inner(kind: Any) -> list[Any]:
    """The messages in a message, as its file has them: without those made for its maps."""
    return [one for one in kind.nested_types if not one.GetOptions().map_entry]


def encode_path(path: Sequence[int]) -> bytes:
    if tuple(path) == (0,):
        return b"\0"
    return b"".join(_varint(2 * number) for number in (len(path), *path))


def decode_path(data: bytes) -> tuple[tuple[int, ...], int]:
    """A path at the start of bytes, and where the message begins. Raises ValueError."""
    count, at = _read_varint(data, 0)
    if not 0 <= count <= MOST_INDEXES:
        raise ValueError(f"a message is not nested {count} levels deep")
    path = []
    for _ in range(count):
        number, at = _read_varint(data, at)
        path.append(number)
    return tuple(path) or (0,), at


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise ValueError("the path of the message is cut off")
        found |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return (found >> 1) ^ -(found & 1), at


def plain(message: Any) -> dict[str, Any]:
    """A message as plain values by the names of its fields. Absent fields are None; enums are
    names, Google's own messages (times, wrappers) what JSON makes of them."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            found[field.name] = None
            continue
        value = getattr(message, field.name)
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            inner = kind.fields_by_name["value"]
            found[field.name] = {key: _plain(inner, value[key]) for key in value}
        elif field.is_repeated:
            found[field.name] = [_plain(field, one) for one in value]
        else:
            found[field.name] = _plain(field, value)
    return found


def _plain(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if field.message_type is None:
        return value
    if field.message_type.full_name.startswith("google.protobuf."):
        from google.protobuf import json_format

        return json_format.MessageToDict(value)
    return plain(value)
