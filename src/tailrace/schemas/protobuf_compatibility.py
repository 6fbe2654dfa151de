"""Whether a reader with one Protobuf schema can read what was written with another.

Fields are matched by number, so a name may change and a field may come or go; its type may not,
but within the groups that share an encoding. The rules and their names are those of Confluent's
registry.
"""

from __future__ import annotations

from tailrace.schemas.model import Difference
from tailrace.schemas.protobuf import SCALARS, Declared, Enum, Field, Message, Types
from tailrace.schemas.reading import Steps, too_deep

_COMPATIBLE = """
MESSAGE_ADDED MESSAGE_MOVED ENUM_ADDED ENUM_REMOVED ENUM_CONST_ADDED ENUM_CONST_CHANGED
ENUM_CONST_REMOVED FIELD_ADDED FIELD_REMOVED FIELD_NAME_CHANGED
FIELD_STRING_OR_BYTES_LABEL_CHANGED ONEOF_ADDED ONEOF_REMOVED ONEOF_FIELD_ADDED
ONEOF_FIELD_MOVED_TO_TOP_LEVEL
"""
COMPATIBLE = frozenset(_COMPATIBLE.split())
_GROUPS = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}

Change = tuple[str, str]


def changes(before: Types, after: Types) -> list[Change]:
    """Every change, with its path."""
    work = _Comparison(before, after)
    if before.file.package != after.file.package:
        work.found.append(("PACKAGE_CHANGED", "#/"))
    try:
        work.types(
            before.file.types, after.file.types, before.file.package, after.file.package, "#"
        )
    except RecursionError:
        raise too_deep("Protobuf") from None
    return list(dict.fromkeys(work.found))


def differences(reader: Types, writer: Types) -> list[Difference]:
    """What stops the reader, none twice; empty if it can read everything."""
    return [
        Difference(rule, path, _TOLD[rule].format(path=path).replace("[", "{").replace("]", "}"),
                   _HINTS.get(rule, ""))
        for rule, path in changes(writer, reader)
        if rule not in COMPATIBLE
    ]  # fmt: skip


class _Comparison:
    def __init__(self, before: Types, after: Types) -> None:
        self._before = before
        self._after = after
        self._steps = Steps()
        self._open: set[tuple[int, int]] = set()
        self._judged: dict[tuple[str, str], bool] = {}
        self.found: list[Change] = []

    def types(
        self,
        before: list[Message | Enum],
        after: list[Message | Enum],
        scope: str,
        new_scope: str,
        path: str,
    ) -> None:
        messages = _messages(before), _messages(after)
        for name in dict.fromkeys((*messages[0], *messages[1])):
            here = f"{path}/{name}"
            if name not in messages[1]:
                self.found.append(("MESSAGE_REMOVED", here))
            elif name not in messages[0]:
                self.found.append(("MESSAGE_ADDED", here))
            else:
                (place, one), (new_place, other) = messages[0][name], messages[1][name]
                self.message(one, other, _in(scope, name), _in(new_scope, name), here)
                if place != new_place:
                    self.found.append(("MESSAGE_MOVED", here))
        enums = _enums(before), _enums(after)
        for name in dict.fromkeys((*enums[0], *enums[1])):
            here = f"{path}/{name}"
            if name not in enums[1]:
                self.found.append(("ENUM_REMOVED", here))
            elif name not in enums[0]:
                self.found.append(("ENUM_ADDED", here))
            else:
                self.enum(enums[0][name], enums[1][name], here)

    def enum(self, before: Enum, after: Enum, path: str) -> None:
        ones = {each.tag: each.name for each in before.constants}
        others = {each.tag: each.name for each in after.constants}
        for tag in dict.fromkeys((*ones, *others)):
            self._steps.take()
            if tag not in others:
                self.found.append(("ENUM_CONST_REMOVED", f"{path}/{tag}"))
            elif tag not in ones:
                self.found.append(("ENUM_CONST_ADDED", f"{path}/{tag}"))
            elif ones[tag] != others[tag]:
                self.found.append(("ENUM_CONST_CHANGED", f"{path}/{tag}"))

    def message(
        self, before: Message, after: Message, scope: str, new_scope: str, path: str
    ) -> None:
        pair = (id(before), id(after))
        if pair in self._open:
            return
        self._open.add(pair)
        try:
            self._fields(before, after, scope, new_scope, path)
        finally:
            self._open.discard(pair)
        self.types(before.types, after.types, scope, new_scope, path)

    def _fields(
        self, before: Message, after: Message, scope: str, new_scope: str, path: str
    ) -> None:
        ones = {each.tag: each for each in before.every_field()}
        others = {each.tag: each for each in after.every_field()}
        home = {each.tag: one.name for one in before.oneofs for each in one.fields}
        new_home = {each.tag: one.name for one in after.oneofs for each in one.fields}
        kept = {one.name for one in after.oneofs}
        deleted = {
            one.name
            for one in before.oneofs
            if one.name not in kept and not any(each.tag in others for each in one.fields)
        }
        for one in after.oneofs:
            came = {
                f"oneof {home[each.tag]}" if each.tag in home else each.tag
                for each in one.fields
                if each.tag in ones
            }
            if len(came) > 1:
                several = sum(isinstance(each, int) for each in came) > 1
                rule = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if several else "FIELD_MOVED_TO_EXISTING_ONEOF"  # fmt: skip
                self.found.append((rule, f"{path}/{one.name}"))
        there = {one.name for one in before.oneofs}
        for name in sorted(there | kept):
            if name not in kept:
                self.found.append(("ONEOF_REMOVED", f"{path}/{name}"))
            elif name not in there:
                self.found.append(("ONEOF_ADDED", f"{path}/{name}"))
        for tag in sorted({*ones, *others}):
            self._steps.take()
            here = f"{path}/{tag}"
            if tag not in others:
                if tag not in home:
                    rule = "REQUIRED_FIELD" if ones[tag].label == "required" else "FIELD"
                    self.found.append((f"{rule}_REMOVED", here))
                elif home[tag] not in deleted:
                    self.found.append(("ONEOF_FIELD_REMOVED", f"{path}/{home[tag]}/{tag}"))
                continue
            if tag not in ones:
                if tag in new_home:
                    self.found.append(("ONEOF_FIELD_ADDED", f"{path}/{new_home[tag]}/{tag}"))
                else:
                    rule = "REQUIRED_FIELD" if others[tag].label == "required" else "FIELD"
                    self.found.append((f"{rule}_ADDED", here))
                continue
            if tag in home and tag not in new_home:
                self.found.append(("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", here))
            if tag in new_home:
                here = f"{path}/{new_home[tag]}/{tag}"
            self._field(ones[tag], others[tag], scope, new_scope, here)

    def _field(self, before: Field, after: Field, scope: str, new_scope: str, path: str) -> None:
        if before.name != after.name:
            self.found.append(("FIELD_NAME_CHANGED", path))
        if (before.key is None) != (after.key is None):
            self.found.append(("FIELD_KIND_CHANGED", path))
        elif before.key is not None and after.key is not None:
            self._scalars(before.key, after.key, "", "", path)
            self._kinds(before.type, after.type, None, None, scope, new_scope, path)
        else:
            self._kinds(before.type, after.type, before.label, after.label, scope, new_scope, path)

    def _kinds(
        self,
        before: str,
        after: str,
        label: str | None,
        new_label: str | None,
        scope: str,
        new_scope: str,
        path: str,
    ) -> None:
        one, other = self._named(before, scope, new=False), self._named(after, new_scope, new=True)
        plain = one is None or one[1].is_enum, other is None or other[1].is_enum
        if plain[0] != plain[1]:
            self.found.append(("FIELD_KIND_CHANGED", path))
        elif plain[0]:
            kinds = "int32" if one else before, "int32" if other else after
            self._scalars(*kinds, label, new_label, path)
        else:
            assert one is not None
            assert other is not None
            self._messages(one, other, path)

    def _scalars(
        self, before: str, after: str, label: str | None, new_label: str | None, path: str
    ) -> None:
        group = _GROUPS[before]
        if group != _GROUPS[after]:
            self.found.append(("FIELD_SCALAR_KIND_CHANGED", path))
        elif label and new_label and label != new_label:
            word = "STRING_OR_BYTES" if group == "text" else "NUMERIC"
            self.found.append((f"FIELD_{word}_LABEL_CHANGED", path))

    def _named(self, name: str, scope: str, *, new: bool) -> tuple[str, Declared] | None:
        if name in SCALARS:
            return None
        types = self._after if new else self._before
        full = types.resolve(name, scope)
        assert full is not None, "every type was resolved when the schema was read"
        return full, types.by_name[full]

    def _messages(
        self, before: tuple[str, Declared], after: tuple[str, Declared], path: str
    ) -> None:
        (full, one), (new_full, other) = before, after
        if _local(full, one.package) != _local(new_full, other.package):
            self.found.append(("FIELD_NAMED_TYPE_CHANGED", path))
            return
        if not isinstance(one.element, Message) or not isinstance(other.element, Message):
            return
        fits = self._judged.get((full, new_full))
        if fits is None:
            if (id(one.element), id(other.element)) in self._open:
                return
            start = len(self.found)
            self.message(
                one.element,
                other.element,
                full,
                new_full,
                "#/" + _local(full, one.package).replace(".", "/"),
            )
            fits = all(rule in COMPATIBLE for rule, _ in self.found[start:])
            self._judged[full, new_full] = fits
        if not fits:
            self.found.append(("FIELD_NAMED_TYPE_CHANGED", path))


def _messages(types: list[Message | Enum]) -> dict[str, tuple[int, Message]]:
    only = [one for one in types if isinstance(one, Message)]
    return {one.name: (place, one) for place, one in enumerate(only)}


def _enums(types: list[Message | Enum]) -> dict[str, Enum]:
    return {one.name: one for one in types if isinstance(one, Enum)}


def _in(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _local(full: str, package: str) -> str:
    return full.removeprefix(f"{package}.") if package else full


_TOLD = {
    "PACKAGE_CHANGED": "The package of the [reader] schema is not that of the [writer] schema",
    "MESSAGE_REMOVED": "The message at path '{path}' of the [writer] schema is not in the [reader] "
    "schema",
    "FIELD_KIND_CHANGED": "The field at path '{path}' is a message, a map or a plain value in the "
    "[reader] schema and another of them in the [writer] schema",
    "FIELD_SCALAR_KIND_CHANGED": "The type of the field at path '{path}' in the [reader] schema is "
    "written otherwise than that of the [writer] schema",
    "FIELD_NAMED_TYPE_CHANGED": "The message type of the field at path '{path}' in the [reader] "
    "schema does not fit that of the [writer] schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label of the number at path '{path}' in the [reader] schema "
    "is not that of the [writer] schema",
    "REQUIRED_FIELD_ADDED": "The required field at path '{path}' of the [reader] schema is not in "
    "the [writer] schema",
    "REQUIRED_FIELD_REMOVED": "The required field at path '{path}' of the [writer] schema is not in "
    "the [reader] schema",
    "ONEOF_FIELD_REMOVED": "The field of a oneof at path '{path}' of the [writer] schema is not in "
    "the [reader] schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Several fields of the [writer] schema exclude each other in "
    "the oneof at path '{path}' of the [reader] schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field of the [writer] schema is in the oneof at path "
    "'{path}' of the [reader] schema, which had others",
}
_HINTS = {
    "PACKAGE_CHANGED": "keep the package, or register under another subject",
    "MESSAGE_REMOVED": "keep the message; nothing needs to use it",
    "FIELD_KIND_CHANGED": "add a field with a new number instead",
    "FIELD_SCALAR_KIND_CHANGED": "add a field with a new number instead",
    "FIELD_NAMED_TYPE_CHANGED": "add a field with a new number instead",
    "FIELD_NUMERIC_LABEL_CHANGED": "add a field with a new number instead",
    "REQUIRED_FIELD_ADDED": "make it optional",
    "REQUIRED_FIELD_REMOVED": "keep it; first make it optional where all readers are new",
    "ONEOF_FIELD_REMOVED": "keep it in the oneof",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "leave the fields outside, and add new ones to the oneof",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "leave the field outside, and add a new one to the oneof",
}
