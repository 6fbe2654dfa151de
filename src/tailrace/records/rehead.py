"""Giving a batch another producer without opening it.

Records, codec and times stay. A batch whose times were set by its log says so by a bit that
another log does not take from a producer; such a batch has to be opened.
"""

from __future__ import annotations

import struct

from tailrace.records.checksum import crc32c
from tailrace.records.header import (
    CRC_POSITION,
    CRC_START,
    DELETE_HORIZON,
    TRANSACTIONAL,
    Buffer,
    read_header,
)

_FIRST = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_CRC = struct.Struct(">I")
ATTRIBUTES_POSITION, PRODUCER_POSITION, EPOCH_POSITION = 21, 43, 12


def with_head(
    batch: Buffer,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    transactional: bool,
) -> bytearray:
    """A copy of the batch as this producer would send it."""
    out = bytearray(batch)
    attributes = read_header(out).attributes & ~(TRANSACTIONAL | DELETE_HORIZON)
    _FIRST.pack_into(out, 0, 0)
    _EPOCH.pack_into(out, EPOCH_POSITION, -1)
    _ATTRIBUTES.pack_into(out, ATTRIBUTES_POSITION, attributes | (TRANSACTIONAL * transactional))
    _PRODUCER.pack_into(out, PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(out, CRC_POSITION, crc32c(memoryview(out)[CRC_START:]))
    return out
