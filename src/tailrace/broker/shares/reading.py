"""A stretch of a partition as share groups see it: batches, and which of them are data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tailrace.log.reading import read_checked
from tailrace.records.header import iterate_batches
from tailrace.records.markers import decode_marker

if TYPE_CHECKING:
    from tailrace.log.partition import Partition

WINDOW_BYTES = 1 << 20


class Window(NamedTuple):
    """`ranges` are (first offset, last offset, is data) of the whole batches in `data`."""

    data: bytes
    positions: list[int]
    ranges: list[tuple[int, int, bool]]


def read_window(
    partition: Partition, offset: int, limit: int, most_bytes: int, *, committed: bool
) -> Window:
    """The batches from the one that holds `offset` on, up to `limit`.

    Markers are no data, and with `committed` neither are aborted records.
    """
    data = read_checked(partition, offset, min(most_bytes, WINDOW_BYTES), limit)
    waiting = []
    if committed:
        waiting = sorted(
            ((each.first_offset, each.producer_id)
             for each in partition.aborted_transactions(offset, limit)),
            reverse=True,
        )  # fmt: skip
    hidden: set[int] = set()
    positions: list[int] = []
    ranges: list[tuple[int, int, bool]] = []
    for position, header in iterate_batches(data):
        while waiting and waiting[-1][0] <= header.last_offset:
            hidden.add(waiting.pop()[1])
        is_data = not header.control
        if header.control:
            marker = decode_marker(data, position)
            if marker is not None and not marker.commit:
                hidden.discard(header.producer_id)
        elif header.transactional and header.producer_id in hidden:
            is_data = False
        positions.append(position)
        ranges.append((header.base_offset, header.last_offset, is_data))
    return Window(data, positions, ranges)
