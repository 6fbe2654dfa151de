"""Fields that hold what is known of a person: `name: Annotated[str, tr.personal("customer")]`.

The argument is another field of the event; its value names the *subject*, `customer:17`. In the
log such a field is sealed under a key of its subject (see `sealing`); erasing the subject destroys
the key.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

ERASED = "[erased]"
"""What a field of an erased subject holds where it cannot be None."""


@dataclass(frozen=True, slots=True)
class Personal:
    """The mark of a field whose subject is named by the field `subject`."""

    subject: str


def personal(subject: str) -> Personal:
    """Mark a field of an event as personal: `Annotated[str, tr.personal("customer")]`. The field
    `customer` of the same event says whose it is."""
    return Personal(subject)


def personal_fields(cls: type) -> dict[str, str]:
    """The personal fields of an event class, and the field that names the subject of each."""
    return {
        name: mark.subject
        for name, kind in _hints(cls).items()
        if (mark := _mark(kind)) is not None
    }


def wrong_fields(cls: type, tags: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Personal fields that cannot be, and why."""
    hints = _hints(cls)
    found = personal_fields(cls)
    config = getattr(cls, "__struct_config__", None)
    written = dict(zip(hints, getattr(cls, "__struct_encode_fields__", hints), strict=True))
    for name, subject in found.items():
        if config is not None and config.array_like:
            yield name, f"{cls.__name__} is written as an array: leave array_like=True out"
        elif (
            other := next((n for n in (name, subject) if written.get(n, n) != n), None)
        ) is not None:
            yield name, f"{other!r} is written as {written[other]!r}: leave rename= out"
        elif subject not in hints:
            yield name, f"its subject is the field {subject!r}, which {cls.__name__} does not have"
        elif subject in found:
            yield name, f"its subject, the field {subject!r}, is itself personal"
        elif name in tags:
            yield name, "it is a tag, and tags are compared: they cannot be sealed"
        elif not _may_be_erased(hints[name]):
            yield name, "once erased it is None or text: declare it as str or as `… | None`"
    for name, kind in hints.items():
        if any(personal_fields(inner) for inner in _classes(kind, frozenset({cls}))):
            yield name, "it holds an object with personal fields: only fields of the event itself"


def erased_value(cls: type, name: str) -> str | None:
    """What a field of an erased subject reads as."""
    kind = _hints(cls).get(name)
    return None if kind is None or type(None) in typing.get_args(_bare(kind)) else ERASED


def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    if dataclasses.is_dataclass(cls):
        return {each.name: hints[each.name] for each in dataclasses.fields(cls)}
    if issubclass(cls, msgspec.Struct):
        return {name: hints[name] for name in cls.__struct_fields__}
    return hints


def _mark(kind: Any) -> Personal | None:
    return next((each for each in getattr(kind, "__metadata__", ()) if isinstance(each, Personal)), None)  # fmt: skip


def _bare(kind: Any) -> Any:
    return typing.get_args(kind)[0] if hasattr(kind, "__metadata__") else kind


def _may_be_erased(kind: Any) -> bool:
    bare = _bare(kind)
    return bare is str or type(None) in typing.get_args(bare)


def _classes(kind: Any, above: frozenset[type]) -> Iterator[type]:
    """The classes with fields inside a type, all the way down."""
    holds = isinstance(kind, type) and (
        dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)
    )
    if holds and kind not in above:
        yield kind
        for inner in _hints(kind).values():
            yield from _classes(inner, above | {kind})
    for inner in typing.get_args(kind):
        yield from _classes(inner, above)
