"""Event types in a schema registry: a subject per type and version, `accounts-Opened.2`.

A subject is named by what the header `tailrace.event` says: a type that gets an upcast is a new
version and a new subject, and its older versions are lifted by code. Within a version the class may
only change as the registry's level of compatibility allows. Looked at, and registered, when a
project's owner starts; nothing of it is in the records, whose values stay plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from tailrace.client.errors import RegistryError
from tailrace.client.schemas import Fit, Schemas
from tailrace.facts.errors import EventsIncompatibleError
from tailrace.facts.event_types import EventType, encode_json

if TYPE_CHECKING:
    from tailrace.facts.declare import Events

KIND = "JSON"
NOT_FOUND = 404


def subject_of(declared: Events[Any], kind: EventType) -> str:
    """The name of a type's subject."""
    return f"{declared.name}-{kind.written}"


def schema_of(kind: EventType) -> str:
    """The JSON Schema of a type's values as they stand in the log: sealed fields are texts."""
    told = msgspec.json.schema(kind.cls)
    parts: dict[str, Any] = told.get("$defs", {})
    root = parts.pop(told["$ref"].rpartition("/")[2]) if "$ref" in told else told
    for field in kind.personal:
        root["properties"][field] = {"type": ["string", "null"]}
    for part in (root, *parts.values()):
        if "properties" in part:
            # Closed: a new field with a default can then be told from one that was always there.
            part.setdefault("additionalProperties", False)
    return encode_json({**root, "$defs": parts} if parts else root).decode()


def verdicts(schemas: Schemas, declared: Events[Any]) -> Iterator[tuple[str, Fit]]:
    """What the registry says of every type, without registering. Raises RegistryError."""
    for kind in declared.types:
        subject = subject_of(declared, kind)
        try:
            yield subject, schemas.check(subject, schema_of(kind), KIND)
        except RegistryError as error:
            if error.status != NOT_FOUND:
                raise
            yield subject, Fit(True, (), "")  # the first of its subject


def register(schemas: Schemas, declared: Events[Any]) -> None:
    """Register every type. Raises EventsIncompatibleError before anything is registered that does
    not fit, RegistryError if the registry does not answer."""
    for subject, fit in verdicts(schemas, declared):
        if not fit.fits:
            raise incompatible(subject, fit)
    for kind in declared.types:
        schemas.register(subject_of(declared, kind), schema_of(kind), KIND)


def incompatible(subject: str, fit: Fit) -> EventsIncompatibleError:
    """The error for a type that has changed in a way its subject forbids."""
    topic, _, written = subject.rpartition("-")
    name = written.partition(".")[0]
    return EventsIncompatibleError(
        f"the event {written} of {topic!r} does not fit its subject {subject!r}",
        detail="\n".join(fit.messages),
        hint=f"take the change back, or make a new version of it: @{topic}.upcast({name!r}, …)",
    )
