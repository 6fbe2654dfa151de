"""`log.read(…)`: a topic from somewhere to its end, or for ever, without a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from tailrace.client.deserializers import DecodeRecord
from tailrace.client.errors import UnknownTopicError
from tailrace.client.record import LogRecord, Place
from tailrace.client.source import Source
from tailrace.errors import UsageError

Start = str | int | datetime | Mapping[int, int]


def read_records(
    source: Source,
    topic: str,
    start: Start,
    follow: bool,
    partitions: Sequence[int] | None,
    decode: DecodeRecord | None = None,
) -> Iterator[LogRecord]:
    """See `Log.read`. Closes the source when it ends or is let go."""
    try:
        places = source.partitions(topic)
        if partitions is not None:
            unknown = set(partitions) - {partition for _, partition in places}
            if unknown:
                raise UnknownTopicError(
                    f'topic "{topic}" has no partition {min(unknown)}',
                    detail=f"it has {len(places)}",
                )
            places = [place for place in places if place[1] in partitions]
        bounds = {place: source.bounds(place) for place in places}
        positions = {place: _position(source, place, start, *bounds[place]) for place in places}
        if follow:
            source.assign(positions)
            records = _follow(source)
        else:
            ends = {place: bounds[place][1] for place in places}
            records = _read_to_the_end(source, positions, ends)
        yield from records if decode is None else map(decode, records)
    finally:
        source.close()


def _follow(source: Source) -> Iterator[LogRecord]:
    while True:
        yield from source.fetch(0.1)


def _read_to_the_end(
    source: Source, positions: Mapping[Place, int], ends: Mapping[Place, int]
) -> Iterator[LogRecord]:
    left = {place: end for place, end in ends.items() if positions[place] < end}
    if not left:
        return
    source.assign({place: positions[place] for place in left})
    while left:
        for record in source.fetch(0.1):
            end = left.get(record.place)
            if end is not None and record.offset < end:
                yield record
        for place in list(left):
            # Markers, aborted and compacted records leave gaps: only the position tells.
            if (source.position(place) or 0) >= left[place]:
                del left[place]


def _position(source: Source, place: Place, start: Start, first: int, end: int) -> int:
    if isinstance(start, Mapping):
        return start.get(place[1], first)
    if start == "earliest":
        return first
    if start == "latest":
        return end
    if isinstance(start, int):
        return max(start, first)
    if isinstance(start, str):
        try:
            start = datetime.fromisoformat(start)
        except ValueError:
            raise UsageError(
                f'cannot read from "{start}"',
                hint='"earliest", "latest", an offset or a time such as 2026-11-15T10:20:30Z',
            ) from None
    if start.tzinfo is None:
        start = start.replace(tzinfo=UTC)
    offset = source.offset_for_time(place, int(start.timestamp() * 1000))
    return end if offset is None else offset
