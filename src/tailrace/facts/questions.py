"""What may be asked of a partition without deciding: states, histories, matching events.

Answered by the owner, in the caller's thread, from what is committed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from tailrace.clock import to_datetime
from tailrace.errors import UsageError
from tailrace.facts.asking import Fact, Read, StateAt
from tailrace.facts.declare import Events
from tailrace.facts.errors import EventUnreadableError
from tailrace.facts.partition import Partition
from tailrace.facts.query import Query
from tailrace.facts.records import Stored, decode_meta
from tailrace.records.position import parse_position

Moment = datetime | str
OffsetForTime = Callable[[int, int], int]
"""(partition, milliseconds) → the first offset at or after that time."""


class When(msgspec.Struct, frozen=True):
    """Which state of a stream is meant: a version, or everything before an offset."""

    version: int | None = None
    before: int | None = None


NOW = When()


def when(
    declared: Events[Any],
    partition: int,
    version: int | None,
    at: Moment | None,
    offset_for_time: OffsetForTime,
) -> When:
    """What `version=` and `at=` of a question mean in a partition. Raises UsageError."""
    if version is not None and at is not None:
        raise UsageError("a state is asked for by version and by time", hint="one of the two")
    if version is not None:
        if version < 0:
            raise UsageError(f"there is no version {version}")
        return When(version=version)
    if at is None:
        return NOW
    if isinstance(at, str) and at.startswith("log:"):
        position = parse_position(at)
        if position.name != f"{declared.name}/{partition}":
            raise UsageError(
                f"{at} is a position in {position.name}",
                detail=f"the stream's events stand in {declared.name}/{partition}",
                hint="positions of different partitions cannot be compared; give a time",
            )
        return When(before=position.number + 1)
    return When(before=offset_for_time(partition, milliseconds(at) + 1))


def milliseconds(at: Moment) -> int:
    """A time as the log counts it; one without a zone is UTC."""
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            raise UsageError(
                f"{at!r} is no time and no position",
                hint="2026-11-15T10:20:30Z, or log:accounts/3:991",
            ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    # Whole milliseconds: a time between two of them is the earlier one.
    return int((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def state(partition: Partition[Any], stream: str, wanted: When) -> StateAt[Any]:
    """The state of a stream then. Raises EventsError where it cannot be told."""
    key = stream.encode()
    if wanted.before is not None:
        known = partition.at_version(key, partition.version_before(key, wanted.before))
    elif wanted.version is not None:
        known = partition.at_version(key, wanted.version)
    else:
        known = partition.lookup(key)
    position = None if known.offset < 0 else position_of(partition, known.offset)
    return StateAt(partition.copy(known.state), known.version, position)


def events(partition: Partition[Any], stream: str, first: int, last: int | None) -> list[Stored]:
    """The events of a stream as they stand in the log."""
    key = stream.encode()
    entry = partition.index.stream(key)
    newest = 0 if entry is None else entry.version
    return partition.events(key, max(1, first), newest if last is None else min(last, newest))


def read(partition: Partition[Any], query: Query) -> tuple[list[Stored], int]:
    """The events that match, and the offset of the last record looked at."""
    unknown = {name for item in query.items for name, _ in item.tags} - {*partition.declared.tags}
    if unknown or not partition.declared.tags:
        raise UsageError(
            f"{partition.declared.name!r} has no tag {', '.join(sorted(unknown))}"
            if unknown
            else f"{partition.declared.name!r} has no tags",
            detail=f"its tags are {', '.join(partition.declared.tags) or 'none'}",
            hint='tr.events(…, tags=("course", "student"), partitions=1)',
        )
    return partition.read(query)


def fact(declared: Events[Any], partition: int, stored: Stored) -> Fact:
    """One event with everything known of it. Raises EventsError where it cannot be read."""
    try:
        meta = decode_meta(stored.meta)
    except msgspec.MsgspecError as error:
        raise EventUnreadableError(
            f"the meta data of an event of stream {stored.stream!r} cannot be read",
            detail=f"version {stored.version}: {error}",
            hint="another program wrote it",
        ) from error
    return Fact(
        declared.types.decode(stored.kind, stored.value),
        stored.kind,
        stored.version,
        to_datetime(stored.timestamp),
        f"log:{declared.name}/{partition}:{stored.offset}",
        stored.stream,
        meta.id,
        meta.command,
        meta.name,
        meta.cause,
        meta.correlation,
        meta.actor,
    )


def matched(declared: Events[Any], partition: int, stored: list[Stored], last: int) -> Read:
    """What a query found."""
    facts = tuple(fact(declared, partition, each) for each in stored)
    position = f"log:{declared.name}/{partition}:{last}"
    return Read(tuple(each.event for each in facts), facts, position)


def position_of(partition: Partition[Any], offset: int) -> str:
    return f"log:{partition.declared.name}/{partition.number}:{offset}"


def difference(before: Any, after: Any) -> dict[str, tuple[Any, Any]]:
    """The fields in which two states differ: (then, now)."""
    then, now = _fields(before), _fields(after)
    names = [*then, *(name for name in now if name not in then)]
    return {
        name: (then.get(name), now.get(name)) for name in names if then.get(name) != now.get(name)
    }


def _fields(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return value
    return {"value": value}
