"""Event classes to bytes and back.

An event is written in today's version of its type: `Opened` is version 1, and each
`@events.upcast("Opened", n)` makes version n + 1 of it, written as `Opened.2`, `Opened.3` …
What was written in an older one is brought up on reading, step by step, as a dict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect as shapes

from tailrace.facts.errors import (
    EventsDeclarationError,
    EventUnknownError,
    EventUnreadableError,
    UpcastMissingError,
)
from tailrace.facts.personal import personal_fields
from tailrace.records.event_headers import ERASED_TYPE, split_name

Upcast = Callable[[dict[str, Any]], dict[str, Any]]
encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.decode


@dataclasses.dataclass(frozen=True, slots=True)
class Erased:
    """Stands in histories and answers where an event was erased; `evolve` never gets one."""


class EventType:
    """One event class, and the ways up to it from its older versions."""

    __slots__ = ("_decoder", "cls", "header", "name", "personal", "upcasts", "version", "written")

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.upcasts: dict[int, Upcast] = {}
        self._know_version()
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(cls)
        self.personal = personal_fields(cls)
        """Fields that are sealed, and the field that names the subject of each."""

    def add(self, version: int, upcast: Upcast) -> None:
        """The way from a version to the next."""
        self.upcasts[version] = upcast
        self._know_version()

    def _know_version(self) -> None:
        self.version = max(self.upcasts, default=0) + 1
        # What the header `tailrace.event` says of events written today.
        self.written = self.name if self.version == 1 else f"{self.name}.{self.version}"
        self.header = self.written.encode()

    def decode(self, version: int, value: bytes) -> object:
        """The event that was written as `value` in this version.

        Raises EventUnknownError for one that is newer than this code, UpcastMissingError,
        EventUnreadableError.
        """
        try:
            if version == self.version:
                return self._decoder.decode(value)
            return msgspec.convert(self.lifted(version, value), self.cls)
        except msgspec.MsgspecError as error:
            raise EventUnreadableError(
                f"an event {self.name} of version {version} does not fit its class",
                detail=str(error),
                hint=f'add @upcast("{self.name}", {self.version}) for the fields that changed',
            ) from error

    def decoder(self, version: int) -> Callable[[bytes], object]:
        """`decode` of one version, for many events."""
        if version == self.version:
            return self._decoder.decode
        return lambda value: self.decode(version, value)

    def lifted(self, version: int, value: bytes) -> dict[str, Any]:
        """The fields of an event of this version as today's version has them."""
        if version > self.version:
            raise EventUnknownError(
                f"the log holds {self.name}.{version}, this code knows it up to {self.version}",
                hint="deploy the program that wrote it, or a newer one",
            )
        fields: dict[str, Any] = decode_json(value)
        for step in range(version, self.version):
            upcast = self.upcasts.get(step)
            if upcast is None:
                raise UpcastMissingError(
                    f"there is no way from {self.name} version {step} to {step + 1}",
                    hint=f'declare @upcast("{self.name}", {step})',
                )
            fields = upcast(fields)
        return fields


class EventTypes:
    """All types of one topic, by class and by name."""

    __slots__ = ("by_class", "by_name", "topic")

    def __init__(self, topic: str, classes: tuple[type, ...]) -> None:
        self.topic = topic
        self.by_class: dict[type, EventType] = {}
        self.by_name: dict[str, EventType] = {}
        for cls in classes:
            if not _holds_fields(cls):
                raise EventsDeclarationError(
                    f"{getattr(cls, '__name__', cls)!r} cannot be an event of {topic!r}",
                    hint="events are dataclasses: @dataclass(frozen=True, slots=True)",
                )
            try:
                made = EventType(cls)
            except (TypeError, NameError) as error:
                raise EventsDeclarationError(
                    f"event {cls.__name__} of {topic!r} has a field that cannot be written",
                    detail=str(error),
                    hint="use numbers, text, times, decimals, lists, dicts, dataclasses",
                ) from error
            if made.name in self.by_name:
                raise EventsDeclarationError(
                    f"two event types of {topic!r} are called {made.name}",
                    detail=f"{self.by_name[made.name].cls.__module__} and {cls.__module__}",
                    hint="the name stands in the log: rename one of them",
                )
            if made.name == ERASED_TYPE:
                raise EventsDeclarationError(
                    f"an event of {topic!r} cannot be called {ERASED_TYPE}",
                    hint="the log calls events so that were erased: rename the class",
                )
            if "." in made.name:
                raise EventsDeclarationError(f"{made.name!r} cannot be the name of an event")
            self.by_class[cls] = self.by_name[made.name] = made

    @property
    def has_personal(self) -> bool:
        """Whether any event holds what is sealed."""
        return any(each.personal for each in self.by_name.values())

    def __iter__(self) -> Iterator[EventType]:
        return iter(self.by_name.values())

    def find(self, written: str) -> tuple[EventType, int]:
        """Type and version of what a header says. Raises EventUnknownError."""
        name, version = split_name(written)
        known = self.by_name.get(name)
        if known is None:
            raise EventUnknownError(
                f"the log holds the event {written}, which {self.topic!r} does not declare",
                detail=f"it declares {', '.join(self.by_name)}",
                hint=f"add the class {name} to tr.events({self.topic!r}, …)",
            )
        return known, version

    def decode(self, written: str, value: bytes) -> object:
        """The event of one record; `Erased` where it was erased."""
        if written == ERASED_TYPE:
            return Erased()
        known, version = self.find(written)
        return known.decode(version, value)

    def decoder(self, written: str) -> Callable[[bytes], object]:
        """What decodes records of one type and version. Raises EventUnknownError."""
        known, version = self.find(written)
        return known.decoder(version)


def _holds_fields(cls: object) -> bool:
    return isinstance(cls, type) and (
        dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct)
    )


def fields_that_do_not_travel(cls: type) -> Iterator[tuple[str, str]]:
    """Fields, as name and type, that JSON would not bring back as they were."""
    found = shapes.type_info(cls)
    if isinstance(found, shapes.DataclassType | shapes.StructType):
        for field in found.fields:
            if (strange := _strange(field.type, frozenset({cls}))) is not None:
                yield field.name, strange


def _strange(kind: object, above: frozenset[type]) -> str | None:
    """The first type inside that msgspec knows nothing of."""
    if isinstance(kind, shapes.CustomType):
        return str(getattr(kind.cls, "__name__", kind.cls))
    parts: list[object] = []
    if isinstance(kind, shapes.DataclassType | shapes.StructType | shapes.NamedTupleType):
        if kind.cls in above:
            return None
        above = above | {kind.cls}
        parts += [each.type for each in kind.fields]
    elif isinstance(kind, shapes.TypedDictType):
        parts += [each.type for each in kind.fields]
    elif isinstance(kind, shapes.UnionType):
        parts += kind.types
    elif isinstance(kind, shapes.TupleType):
        parts += kind.item_types
    elif isinstance(kind, shapes.DictType):
        parts += [kind.key_type, kind.value_type]
    elif isinstance(kind, shapes.CollectionType):
        parts.append(kind.item_type)
    return next((found for part in parts if (found := _strange(part, above))), None)


def shape_of(cls: type) -> dict[str, str]:
    """The fields of a class and their types as text, to compare two deployments by."""
    return {field.name: _named(field.type) for field in msgspec_fields(cls)}


def msgspec_fields(cls: type) -> tuple[shapes.Field, ...]:
    """The fields of an event class as msgspec sees them."""
    found = shapes.type_info(cls)
    assert isinstance(found, shapes.DataclassType | shapes.StructType)
    return tuple(found.fields)


def _named(kind: object) -> str:
    if isinstance(kind, shapes.UnionType):
        return " | ".join(sorted(_named(each) for each in kind.types))
    if isinstance(kind, shapes.CollectionType):
        return f"list[{_named(kind.item_type)}]"
    if isinstance(kind, shapes.DictType):
        return f"dict[{_named(kind.key_type)}, {_named(kind.value_type)}]"
    cls = getattr(kind, "cls", None)
    if cls is not None:
        return str(cls.__name__)
    return type(kind).__name__.removesuffix("Type").lower()
