"""Events into the index and the states, many at a time: what an owner reads when it begins.

A piece of the log comes as columns. Its streams are folded in one loop; whatever is the same for
many events (types, numbers, sizes, ids of commands) is looked at once. `Partition.take_events`
is the naive twin, and is used for few records and where one is no event.

A version that its stream has already is not an event of ours, however it looks: whoever owned the
partition was fenced, so another program wrote it. It is foreign, and counts as nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.facts.errors import EventsError
from tailrace.facts.index import (
    CommandEntry,
    IndexBatch,
    StreamEntry,
)
from tailrace.facts.partition import Folding, Partition, begin
from tailrace.facts.records import LONGEST_COMMAND_ID, CommandOf, decode_commands, is_stream
from tailrace.records.event_columns import EventColumns
from tailrace.records.event_headers import ERASED_TYPE

Decode = Callable[[bytes], Any]


def take_columns(
    partition: Partition[Any], columns: EventColumns, following: int, since: int
) -> bool:
    """Take a piece in; False if it needs a look at each record."""
    try:
        versions: list[int] = columns.versions.cast(pa.string()).cast(pa.int64()).to_pylist()
        kinds = columns.kinds.cast(pa.string()).dictionary_encode()
        columns.streams.cast(pa.string())
        metas = columns.metas.to_pylist()
        commands = decode_commands(b"[" + b",".join(metas) + b"]")
    except (pa.ArrowInvalid, msgspec.MsgspecError):
        return False
    if len(commands) != len(metas):
        return False
    names: list[str] = kinds.dictionary.to_pylist()
    if ERASED_TYPE in names:
        return False
    decoders = [_decoder(partition, name) for name in names]
    numbers: list[int] = kinds.indices.to_pylist()
    offsets: list[int] = columns.offsets.tolist()
    sizes = [len(each.command) for each in commands]  # in letters: at most 4 bytes each
    if not min(sizes) or max(sizes) * 4 > LONGEST_COMMAND_ID:
        return False
    streams = _fold(partition, columns, versions, numbers, decoders, offsets)
    if streams is None:
        return False
    batch = IndexBatch()
    batch.events = len(offsets)
    counts = pc.value_counts(kinds.indices)
    for number, count in zip(
        counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True
    ):
        batch.kinds[names[number]] = count
    batch.bytes = sum(
        pc.sum(pc.binary_length(each)).as_py() or 0
        for each in (columns.streams, columns.values, columns.metas)
    )
    _note_commands(batch, commands, columns, since)
    _note_streams(partition, batch, streams)
    partition.index.apply(batch, following, int(columns.timestamps[-1]))
    partition.keep(
        {
            stream: partition.known(each.version, each.state, each.offsets[-1])
            if each.known
            else None
            for stream, each in streams.items()
        }
    )
    return True


def _fold(
    partition: Partition[Any],
    columns: EventColumns,
    versions: list[int],
    numbers: list[int],
    decoders: list[Decode],
    offsets: list[int],
) -> dict[bytes, Folding] | None:
    """Every stream of the piece after it; None where a version is not the next of its stream, or
    a key can be no stream."""
    evolve = partition.declared.function
    assert evolve is not None
    keys: list[bytes] = columns.streams.to_pylist()
    different = set(keys)
    if not all(map(is_stream, different)):
        return None
    entries = partition.index.entries(different) if partition.index.stamp.events else {}
    streams: dict[bytes, Folding] = {}
    find = streams.get
    for stream, version, number, value, offset in zip(
        keys,
        versions,
        numbers,
        columns.values.to_pylist(),
        offsets,
        strict=True,
    ):
        folding = find(stream)
        if folding is None:
            folding = streams[stream] = begin(partition, stream, entries.get(stream))
        if version != folding.version + 1:
            return None
        folding.version = version
        folding.offsets.append(offset)
        if folding.known:
            try:
                folding.state = evolve(folding.state, decoders[number](value))
            except Exception:  # told, with its place, when the stream is asked for
                folding.known, folding.state = False, None
    return streams


def _decoder(partition: Partition[Any], written: str) -> Decode:
    try:
        return partition.declared.types.decoder(written)
    except EventsError as error:
        return _raising(error)


def _raising(error: EventsError) -> Decode:
    def refuse(value: bytes) -> Any:
        raise error

    return refuse


def _note_commands(
    batch: IndexBatch, commands: list[CommandOf], columns: EventColumns, since: int
) -> None:
    recent = columns.timestamps >= since
    if not recent.all():
        commands = [each for each, wanted in zip(commands, recent.tolist(), strict=True) if wanted]
    names = [each.command.encode() for each in commands]
    offsets, times = columns.offsets[recent], columns.timestamps[recent]
    if len(set(names)) == len(names):
        batch.add_single_commands(names, offsets, times)
        return
    entries = batch.commands
    for name, offset, time in zip(names, offsets.tolist(), times.tolist(), strict=True):
        entry = entries.get(name)
        entries[name] = (
            CommandEntry(offset, 1, time)
            if entry is None
            else CommandEntry(entry.offset, entry.events + 1, entry.timestamp)
        )


def _note_streams(
    partition: Partition[Any], batch: IndexBatch, streams: dict[bytes, Folding]
) -> None:
    for stream, each in streams.items():
        batch.add_run(stream, each.version - len(each.offsets) + 1, each.offsets)
        old = 0 if each.before is None else each.before.snapshot_version
        into = batch.new_streams if each.before is None else batch.streams
        into[stream] = (
            partition.with_snapshot(each.version, each.state, each.offsets[-1])
            if each.known and partition.snapshot_due(old, each.version)
            else StreamEntry(each.version, each.offsets[-1])
        )
