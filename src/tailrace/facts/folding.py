"""Every state of a topic told from its records alone: no index, no snapshot, no cache.

The naive twin of owners, for `tailrace events rebuild` and `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.records import parse_record
from tailrace.facts.sealing import Seals, seals_for

if TYPE_CHECKING:
    from tailrace.client.log import Log


@dataclass(slots=True)
class Folded:
    """What the records of a topic make: (version, state) of every stream."""

    streams: dict[str, tuple[int, Any]] = field(default_factory=dict)
    events: int = 0
    foreign: int = 0
    seconds: float = 0.0
    broken: dict[str, str] = field(default_factory=dict)
    """Streams that cannot be told, or whose versions have a gap, and why."""


def fold(log: Log, declared: Events[Any]) -> Folded:
    """Read the whole topic and fold every stream."""
    found = Folded()
    seals = seals_for(log, declared)
    try:
        _fold(log, declared, found, seals)
    finally:
        if seals is not None:
            seals.keys.close()
    return found


def _fold(log: Log, declared: Events[Any], found: Folded, seals: Seals | None) -> None:
    function = declared.function
    assert function is not None
    began = SYSTEM.monotonic()
    for record in log.read(declared.name):
        stored = parse_record(record.offset, record.timestamp, record.key, record.value, record.headers)  # fmt: skip
        if stored is None:
            found.foreign += 1
            continue
        found.events += 1
        stream = stored.stream
        if stream in found.broken:
            continue
        version, state = found.streams.get(stream, (0, None))
        if not version:
            state = declared.initial()
        if stored.version != version + 1:
            found.broken[stream] = f"version {stored.version} stands behind {version}"
            continue
        try:
            if seals is not None:
                stored = seals.open(stored)
            event = declared.types.decode(stored.kind, stored.value)
            found.streams[stream] = (stored.version, function(state, event))
        except TailraceError as error:
            found.broken[stream] = error.message
        except Exception as error:
            found.broken[stream] = f"evolve failed: {type(error).__name__}: {error}"
    found.seconds = SYSTEM.monotonic() - began


def differences(log: Log, declared: Events[Any], folded: Folded) -> Iterator[tuple[str, str]]:
    """Streams whose owner tells another state than the fold does, and how."""
    yield from folded.broken.items()
    with declared.open(log, owns=False) as opened:
        for stream, (version, state) in folded.streams.items():
            if stream in folded.broken:
                continue
            told = opened.state(stream, version=version)
            if (told.version, told.value) != (version, state):
                yield stream, f"its owner tells {told.value!r}, the log {state!r}"
