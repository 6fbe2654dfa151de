"""Many records of an event topic as columns, their headers too.

The bytes of all records are looked at at once; where one record is no event the answer is None,
and the caller looks at each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from tailrace.records.decode_columns import Numbers, Octets, decode_raw, read_strings
from tailrace.records.encode import varint
from tailrace.records.event_headers import EVENT, META, VERSION
from tailrace.records.header import BatchHeader, Buffer

NAMES = tuple(varint(len(name)) + name.encode() for name in (EVENT, VERSION, META))


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Events in order, column by column."""

    offsets: Numbers
    timestamps: Numbers
    streams: pa.BinaryArray
    kinds: pa.BinaryArray
    versions: pa.BinaryArray
    metas: pa.BinaryArray
    values: pa.BinaryArray


def event_columns(
    buffer: Buffer, batches: Iterable[tuple[int, BatchHeader]]
) -> EventColumns | None:
    """The events of these batches of `buffer`; None if one of the records is no event."""
    raw = decode_raw(buffer, batches)
    if raw is None or raw.keys.null_count or raw.values.null_count:
        return None
    columns: list[pa.BinaryArray] = []
    at = raw.headers_at
    # More headers than three may follow: whoever wrote the record may add some.
    counts = raw.octets[at]
    if bool(((counts < 6) | (counts >= 128)).any()):
        return None
    at = at + 1
    for name in NAMES:
        if not _all_at(raw.octets, at, raw.ends, name):
            return None
        column, at = read_strings(raw.data, raw.octets, at + len(name), raw.ends)
        if column.null_count:
            return None
        columns.append(column)
    kinds, versions, metas = columns
    return EventColumns(raw.offsets, raw.timestamps, raw.keys, kinds, versions, metas, raw.values)


def _all_at(octets: Octets, at: Numbers, ends: Numbers, wanted: bytes) -> bool:
    """Whether these bytes stand at each of the places."""
    if bool((at + len(wanted) >= ends).any()):
        return False
    return all(bool((octets[at + n] == byte).all()) for n, byte in enumerate(wanted))
