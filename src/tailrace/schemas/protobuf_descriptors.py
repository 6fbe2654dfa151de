"""Protobuf files as descriptors in base64, which Confluent's clients for Python and C send.

Needs the package `protobuf`; files as text do not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any

from tailrace.errors import ComponentMissingError
from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.protobuf import (
    MAX_TAG,
    Call,
    Constant,
    Enum,
    Extend,
    Field,
    File,
    Message,
    OneOf,
    Options,
    Service,
    Types,
)

_ENCODED = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_KINDS = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
    8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
    17: "sint32", 18: "sint64",
}  # fmt: skip
_NUMBERS = {name: number for number, name in _KINDS.items()}
_GROUP, _MESSAGE, _ENUM = 10, 11, 14
_OPTIONAL, _REQUIRED, _REPEATED = 1, 2, 3


def looks_encoded(text: str) -> bool:
    """Whether a text is base64 rather than a file: it has no sign that every file has."""
    return len(text) % 4 == 0 and bool(_ENCODED.fullmatch(text))


def _library() -> Any:
    try:
        from google.protobuf import descriptor_pb2
    except ImportError as missing:
        raise ComponentMissingError(
            "descriptors of Protobuf need more packages",
            detail=str(missing),
            hint="pip install 'tailrace[registry]'",
        ) from missing
    return descriptor_pb2


# A descriptor as a file ------------------------------------------------------------


def from_base64(text: str) -> File:
    """The elements of a file from its FileDescriptorProto."""
    library = _library()
    try:
        found = library.FileDescriptorProto.FromString(base64.b64decode(text, validate=False))
    except Exception as error:  # the library's own error has no name that all versions share
        raise _invalid(f"{type(error).__name__}: {error}") from error
    if found.syntax == "editions":
        raise _invalid("editions are not read; proto2 and proto3 are")
    made = File(syntax=found.syntax or "proto2", package=found.package)
    for number, path in enumerate(found.dependency):
        kind = "public" if number in found.public_dependency else ""
        made.imports.append(("weak" if number in found.weak_dependency else kind, path))
    made.options = _options(found.options)
    three = made.syntax == "proto3"
    made.types = [
        *(_message(one, three) for one in found.message_type),
        *(_enum(one) for one in found.enum_type),
    ]
    made.extends = _extends(found.extension, three)
    made.services = [_service(one) for one in found.service]
    return made


def _invalid(detail: str) -> InvalidSchemaError:
    return InvalidSchemaError(
        "the Protobuf schema is neither the text of a file nor a descriptor in base64",
        detail=detail,
    )


def _options(options: Any) -> Options:
    """Options by name. Extensions the library does not know cannot be told apart from damage, so
    they are refused."""
    found: Options = []
    for descriptor, value in options.ListFields():
        if descriptor.name == "uninterpreted_option":
            for one in value:
                name = ".".join(
                    f"({p.name_part})" if p.is_extension else p.name_part for p in one.name
                )
                found.append((name, _uninterpreted(one)))
        elif descriptor.enum_type is not None and not isinstance(value, str | bytes):
            values = value if hasattr(value, "__iter__") else [value]
            for each in values:
                found.append((descriptor.name, descriptor.enum_type.values_by_number[each].name))
        elif descriptor.message_type is not None:
            raise _invalid(f"the option {descriptor.name} is not read from a descriptor")
        else:
            found.append((descriptor.name, _literal(value)))
    return found


def _uninterpreted(one: Any) -> str:
    if one.HasField("identifier_value"):
        return str(one.identifier_value)
    if one.HasField("string_value"):
        return _quoted(one.string_value.decode("utf-8", "replace"))
    if one.HasField("aggregate_value"):
        return "{ " + str(one.aggregate_value) + " }"
    for name in ("positive_int_value", "negative_int_value", "double_value"):
        if one.HasField(name):
            return str(getattr(one, name))
    return '""'


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return _quoted(value.decode("utf-8", "replace"))
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _message(found: Any, three: bool) -> Message:
    made = Message(found.name)
    entries = {one.name: one for one in found.nested_type if one.options.map_entry}
    homes = [OneOf(one.name, [], _options(one.options)) for one in found.oneof_decl]
    groups: set[str] = set()
    for one in found.field:
        kind = one.type_name.rpartition(".")[2]
        entry = entries.get(kind) if one.type == _MESSAGE and one.label == _REPEATED else None
        if entry is not None and one.type_name.endswith(f".{found.name}.{kind}"):
            key, value = entry.field
            field = Field(one.name, one.number, _kind(value), "", _kind(key), _field_options(one))
        else:
            field = _field(one, three)
        if one.type == _GROUP:
            groups.add(kind)
        if one.HasField("oneof_index") and not one.proto3_optional:
            field.label = ""
            homes[one.oneof_index].fields.append(field)
        else:
            made.fields.append(field)
    made.oneofs = [one for one in homes if one.fields]
    made.types = [
        *(_message(one, three) for one in found.nested_type if one.name not in entries),
        *(_enum(one) for one in found.enum_type),
    ]
    made.options = _options(found.options)
    made.reserved = _reserved(
        [(one.start, one.end - 1) for one in found.reserved_range], found.reserved_name, MAX_TAG
    )
    made.extensions = _reserved(
        [(one.start, one.end - 1) for one in found.extension_range], [], MAX_TAG
    )
    made.extends = _extends(found.extension, three)
    return made


def _kind(one: Any) -> str:
    return _KINDS.get(one.type) or str(one.type_name)


def _field(one: Any, three: bool) -> Field:
    label = {_REQUIRED: "required", _REPEATED: "repeated"}.get(one.label, "")
    if not label and (one.proto3_optional or not three):
        label = "optional"
    options = _field_options(one)
    if one.type == _GROUP:
        options.append(("group", "true"))
        return Field(one.name, one.number, one.type_name.rpartition(".")[2], label, None, options)
    return Field(one.name, one.number, _kind(one), label, None, options)


def _field_options(one: Any) -> Options:
    options = _options(one.options)
    if one.HasField("default_value"):
        text = one.type in (_NUMBERS["string"], _NUMBERS["bytes"])
        options.insert(0, ("default", _quoted(one.default_value) if text else one.default_value))
    if one.HasField("json_name") and one.json_name != _json_name(one.name):
        options.append(("json_name", _quoted(one.json_name)))
    return options


def _json_name(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _enum(found: Any) -> Enum:
    return Enum(
        found.name,
        [Constant(one.name, one.number, _options(one.options)) for one in found.value],
        _options(found.options),
        _reserved(
            [(one.start, one.end) for one in found.reserved_range], found.reserved_name, 2**31 - 1
        ),
    )


def _reserved(ranges: list[tuple[int, int]], names: Iterable[str], most: int) -> list[str]:
    lines = []
    if ranges:
        lines.append(
            ", ".join(
                str(first) if first == last else f"{first} to {'max' if last >= most else last}"
                for first, last in ranges
            )
        )
    shown = [_quoted(name) for name in names]
    return [*lines, ", ".join(shown)] if shown else lines


def _extends(found: Iterable[Any], three: bool) -> list[Extend]:
    made: dict[str, Extend] = {}
    for one in found:
        made.setdefault(one.extendee, Extend(one.extendee, [])).fields.append(_field(one, three))
    return list(made.values())


def _service(found: Any) -> Service:
    return Service(
        found.name,
        [
            Call(one.name, one.input_type, one.output_type, one.client_streaming,
                 one.server_streaming, _options(one.options))
            for one in found.method
        ],
        _options(found.options),
    )  # fmt: skip


# A file as a descriptor --------------------------------------------------------------


def to_base64(types: Types, name: str = "default") -> str:
    """A file's FileDescriptorProto."""
    library = _library()
    file = types.file
    made = library.FileDescriptorProto(name=name, package=file.package)
    if file.syntax != "proto2":
        made.syntax = file.syntax
    for number, (kind, path) in enumerate(file.imports):
        made.dependency.append(path)
        if kind == "public":
            made.public_dependency.append(number)
        elif kind == "weak":
            made.weak_dependency.append(number)
    _set_options(made.options, file.options)
    work = _Writing(types, file.syntax == "proto3")
    for one in file.types:
        if isinstance(one, Message):
            work.message(made.message_type.add(), one, file.package)
        else:
            work.enum(made.enum_type.add(), one)
    for extend in file.extends:
        work.extend(made.extension, extend, file.package)
    for service in file.services:
        target = made.service.add(name=service.name)
        _set_options(target.options, service.options)
        for call in service.calls:
            method = target.method.add(
                name=call.name,
                input_type=work.full(call.asks, file.package),
                output_type=work.full(call.answers, file.package),
            )
            if call.asks_stream:
                method.client_streaming = True
            if call.answers_stream:
                method.server_streaming = True
            _set_options(method.options, call.options)
    return base64.b64encode(made.SerializeToString()).decode()


class _Writing:
    def __init__(self, types: Types, three: bool) -> None:
        self._types = types
        self._three = three

    def full(self, name: str, scope: str) -> str:
        found = self._types.resolve(name, scope)
        return name if found is None else f".{found}"

    def message(self, made: Any, one: Message, scope: str) -> None:
        made.name = one.name
        scope = f"{scope}.{one.name}" if scope else one.name
        homes = [(field, place) for place, home in enumerate(one.oneofs) for field in home.fields]
        for home in one.oneofs:
            _set_options(made.oneof_decl.add(name=home.name).options, home.options)
        for field in one.fields:
            self.field(made.field.add(), field, scope, made)
        for field, place in homes:
            target = made.field.add()
            self.field(target, field, scope, made)
            target.oneof_index = place
        for target in made.field:
            if target.proto3_optional:
                target.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{target.name}")
        for nested in one.types:
            if isinstance(nested, Message):
                self.message(made.nested_type.add(), nested, scope)
            else:
                self.enum(made.enum_type.add(), nested)
        for extend in one.extends:
            self.extend(made.extension, extend, scope)
        _set_options(made.options, one.options)
        for line in one.extensions:
            for first, last in _ranges(line, MAX_TAG):
                made.extension_range.add(start=first, end=last + 1)
        for line in one.reserved:
            if line.startswith('"'):
                made.reserved_name.extend(name.strip('"') for name in line.split(", "))
            else:
                for first, last in _ranges(line, MAX_TAG):
                    made.reserved_range.add(start=first, end=last + 1)

    def field(self, made: Any, one: Field, scope: str, owner: Any) -> None:
        made.name, made.number = one.name, one.tag
        labels = {"required": _REQUIRED, "repeated": _REPEATED}
        made.label = _REPEATED if one.key else labels.get(one.label, _OPTIONAL)
        if one.key:
            entry = owner.nested_type.add(name=f"{_camel(one.name)}Entry")
            entry.options.map_entry = True
            self._type(entry.field.add(name="key", number=1, label=_OPTIONAL), one.key, scope)
            self._type(entry.field.add(name="value", number=2, label=_OPTIONAL), one.type, scope)
            made.type, made.type_name = _MESSAGE, f".{scope}.{entry.name}"
        elif ("group", "true") in one.options:
            made.type, made.type_name = _GROUP, self.full(one.type, scope)
        else:
            self._type(made, one.type, scope)
        if one.label == "optional" and self._three:
            made.proto3_optional = True
        rest: Options = []
        for name, value in one.options:
            if name == "default":
                made.default_value = _plain(value)
            elif name == "json_name":
                made.json_name = _plain(value)
            elif name != "group":
                rest.append((name, value))
        _set_options(made.options, rest)

    def _type(self, made: Any, name: str, scope: str) -> None:
        if name in _NUMBERS:
            made.type = _NUMBERS[name]
            return
        full = self.full(name, scope)
        declared = self._types.by_name.get(full.removeprefix("."))
        made.type = _ENUM if declared is not None and declared.is_enum else _MESSAGE
        made.type_name = full

    def enum(self, made: Any, one: Enum) -> None:
        made.name = one.name
        for constant in one.constants:
            value = made.value.add(name=constant.name, number=constant.tag)
            _set_options(value.options, constant.options)
        _set_options(made.options, one.options)
        for line in one.reserved:
            if line.startswith('"'):
                made.reserved_name.extend(name.strip('"') for name in line.split(", "))
            else:
                for first, last in _ranges(line, 2**31 - 1):
                    made.reserved_range.add(start=first, end=last)

    def extend(self, made: Any, one: Extend, scope: str) -> None:
        for field in one.fields:
            target = made.add(extendee=self.full(one.name, scope))
            self.field(target, field, scope, None)


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _plain(value: str) -> str:
    if not value.startswith('"'):
        return value
    return value[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def _ranges(line: str, most: int) -> list[tuple[int, int]]:
    found = []
    for part in line.split(", "):
        first, _, last = part.partition(" to ")
        found.append((int(first), most if last == "max" else int(last or first)))
    return found


def _set_options(target: Any, options: Options) -> None:
    """Options the library knows by name; others stay as they were written, for who knows them."""
    for name, value in options:
        descriptor = target.DESCRIPTOR.fields_by_name.get(name)
        if descriptor is None or descriptor.message_type is not None:
            _leave(target.uninterpreted_option.add(), name, value)
        elif descriptor.enum_type is not None:
            known = descriptor.enum_type.values_by_name.get(value)
            if known is None:
                raise InvalidSchemaError(
                    "the Protobuf schema is not valid",
                    detail=f"the option {name} has no value {value[:100]}",
                )
            held = getattr(target, name)
            if hasattr(held, "append"):
                held.append(known.number)
            else:
                setattr(target, name, known.number)
        elif value in ("true", "false"):
            setattr(target, name, value == "true")
        else:
            setattr(target, name, _plain(value))


def _leave(made: Any, name: str, value: str) -> None:
    for part in re.findall(r"\([^)]*\)|[^.()]+", name):
        made.name.add(name_part=part.strip("()"), is_extension=part.startswith("("))
    if value.startswith('"'):
        made.string_value = _plain(value).encode()
    elif value.startswith(("{", "[")):
        made.aggregate_value = value[1:-1].strip()
    elif value.lstrip("-").isdigit():
        if value.startswith("-"):
            made.negative_int_value = int(value)
        else:
            made.positive_int_value = int(value)
    else:
        made.identifier_value = value
