"""Which records of a fetched stretch a reader may see.

A fetch brings whole batches: some start before the offset asked for, some are
transaction markers, some belong to aborted transactions. The log names the aborted
ones as (producer id, first offset); such a producer's batches are hidden from there up
to its abort marker.

A batch that cannot be read, whatever the reason, is an error of its own, with its place; what
lies before it is given out first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.client.errors import DamagedBatchError, UnreadableBatchError
from tailrace.records.batch import (
    BatchHeader,
    Buffer,
    Record,
    decode_marker,
    decode_records,
    iterate_batches,
)
from tailrace.records.errors import RecordsError
from tailrace.records.header import is_intact

Aborted = Iterable[tuple[int, int]]


def visible_batches(
    buffer: Buffer,
    start: int,
    end: int | None = None,
    aborted: Aborted | None = None,
    *,
    place: tuple[str, int] = ("", -1),
) -> tuple[list[tuple[int, BatchHeader]], int]:
    """The batches with records from start to before `end`, as position and header, and the
    offset to go on from. Their records may begin before `start` and end behind `end`.

    `aborted` None shows everything but markers. Raises DamagedBatchError, naming `place`, if
    the first batch does not match its checksum; what is before one is given out first.
    """
    waiting: Sequence[tuple[int, int]] = sorted(aborted or (), key=lambda pair: pair[1])
    reached = 0
    hidden: set[int] = set()
    found: list[tuple[int, BatchHeader]] = []
    following = start
    for position, header in iterate_batches(buffer):
        last_offset = header.last_offset
        if not is_intact(buffer, position, header):
            if following > start:
                break
            raise _damaged(place, header)
        while reached < len(waiting) and waiting[reached][1] <= last_offset:
            hidden.add(waiting[reached][0])
            reached += 1
        if end is not None and header.base_offset >= end:
            following = max(following, end)  # whatever was between is compacted away
            break
        if header.control:
            marker = decode_marker(buffer, position)
            if marker is not None and not marker.commit:
                hidden.discard(header.producer_id)
        elif last_offset >= start and not (header.transactional and header.producer_id in hidden):
            found.append((position, header))
        following = max(following, last_offset + 1)
    return found, following


def visible_records(
    buffer: Buffer,
    start: int,
    end: int | None = None,
    aborted: Aborted | None = None,
    *,
    place: tuple[str, int] = ("", -1),
) -> tuple[list[Record], int]:
    """The records with start ≤ offset < end, and the offset to go on from.

    Raises UnreadableBatchError, naming `place`, if the first batch cannot be read.
    """
    batches, following = visible_batches(buffer, start, end, aborted, place=place)
    found: list[Record] = []
    for position, header in batches:
        try:
            records = list(decode_records(buffer, position))
        except RecordsError as error:
            if found:
                return found, max(start, header.base_offset)
            raise unreadable(place, header, error) from error
        found += [
            record
            for record in records
            if record.offset >= start and (end is None or record.offset < end)
        ]
    return found, following


def _damaged(place: tuple[str, int], header: BatchHeader) -> DamagedBatchError:
    error = DamagedBatchError(
        f"records {header.base_offset} to {header.last_offset} of {place[0]}/{place[1]} are damaged",
        detail=f"a batch of {header.length + 12} bytes does not match its checksum",
        hint="check the broker's disk and memory; `tailrace errors client-damaged-batch`",
    )
    error.first_offset, error.last_offset = header.base_offset, header.last_offset
    return error


def unreadable(
    place: tuple[str, int], header: BatchHeader, error: RecordsError
) -> UnreadableBatchError:
    """What to say of a batch that cannot be read."""
    return UnreadableBatchError.at(
        *place, header.base_offset, header.last_offset, " ".join((error.message, error.detail))
    )
