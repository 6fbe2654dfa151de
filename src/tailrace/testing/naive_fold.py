"""The states of an event topic told from its records, one by one: the twin of `facts.folding`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.folding import Folded, is_ours
from tailrace.facts.records import parse_record

if TYPE_CHECKING:
    from tailrace.client.log import Log


def naive_fold(log: Log, declared: Events[Any]) -> Folded:
    """Read the whole topic as any consumer would and fold every stream."""
    found = Folded()
    function = declared.function
    assert function is not None
    for record in log.read(declared.name):
        stored = parse_record(record.offset, record.timestamp, record.key, record.value, record.headers)  # fmt: skip
        if stored is None or not is_ours(stored):
            found.foreign += 1
            continue
        stream = stored.stream
        version, state = found.streams.get(stream, (0, declared.initial()))
        if stored.version <= version:
            found.foreign += 1
            continue
        found.events += 1
        if stored.version != version + 1:
            found.broken.setdefault(stream, f"version {stored.version} stands behind {version}")
        if stream not in found.broken:
            try:
                state = function(state, declared.types.decode(stored.kind, stored.value))
            except TailraceError as error:
                found.broken[stream] = error.message
            except Exception as error:
                found.broken[stream] = f"evolve failed: {type(error).__name__}: {error}"
        found.streams[stream] = (stored.version, state)
    return found
