"""The states of an event topic told from its records, one by one: the twin of `facts.folding`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.folding import Folded
from tailrace.facts.records import decode_meta, parse_record

if TYPE_CHECKING:
    from tailrace.client.log import Log


def naive_fold(log: Log, declared: Events[Any]) -> Folded:
    """Read the whole topic as any consumer would and fold every stream."""
    found = Folded()
    function = declared.function
    assert function is not None
    for record in log.read(declared.name):
        stored = parse_record(record.offset, record.timestamp, record.key, record.value, record.headers)  # fmt: skip
        try:
            if stored is not None:
                decode_meta(stored.meta)
        except msgspec.MsgspecError:
            stored = None
        if stored is None:
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
