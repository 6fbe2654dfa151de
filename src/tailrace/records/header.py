"""The 61 bytes before the records of a batch (Kafka's record batch format, version 2).

    offset  size  field
         0     8  base offset                 not covered by the checksum
         8     4  length of what follows      "
        12     4  partition leader epoch      "
        16     1  magic, always 2             "
        17     4  CRC-32C of bytes 21 to the end
        21     2  attributes: codec (bits 0-2), log-append time (3), transactional (4),
                  control (5), base timestamp is the delete horizon (6)
        23     4  last offset delta
        27     8  base timestamp
        35     8  max timestamp
        43     8  producer id
        51     2  producer epoch
        53     4  base sequence
        57     4  count of records
        61        the records, compressed as one block

The base offset and leader epoch are patched in place when a batch is appended, which
is why they stand outside the checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tailrace.records.checksum import crc32c
from tailrace.records.errors import CorruptBatchError, InvalidRecordError, UnsupportedCodecError

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_OVERHEAD = 12
"""Bytes before those that the length field counts: size = length + 12."""
MAGIC = 2
CRC_POSITION = 17
CRC_START = 21

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1

_LENGTH_AT_8 = struct.Struct(">8xi")
_SMALLEST_LENGTH = 14  # a version 0 message; below it the length itself is damaged

Buffer = bytes | bytearray | memoryview


class BatchHeader(NamedTuple):
    """One batch's header as it stands in the bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap from 2³¹−1 to 0."""
        return advance_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def delete_horizon(self) -> int | None:
        """When this batch's tombstones or marker may go, set by the cleaner."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def advance_sequence(sequence: int, steps: int) -> int:
    """`sequence + steps`, wrapping from 2³¹−1 to 0 as Kafka's sequences do."""
    following = sequence + steps
    return following if following <= 0x7FFFFFFF else following - 0x80000000


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; raises `InvalidRecordError` if fewer than 61 bytes are left."""
    if len(buffer) - position < HEADER_BYTES:
        raise InvalidRecordError("a record batch is cut inside its header")
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def check_batch(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch at `position`, all of it verified but the records' insides.

    Raises what Kafka 4.3 answers to a producer: `CorruptBatchError` (2) for an impossible
    length, an unknown magic or a wrong checksum; `InvalidRecordError` (87) for nothing at
    all, an old magic, a cut batch, or counts and offsets that disagree.
    """
    available = len(buffer) - position
    if available < HEADER_BYTES:
        raise _short(buffer, position, available)
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    length = header[1]
    if header[3] != 2 or length < 49 or length + 12 > available:
        raise _misfit(header, available)
    end = position + length + 12
    if crc32c(memoryview(buffer)[position + CRC_START : end]) != header[4]:
        raise CorruptBatchError(
            "a record batch does not match its checksum",
            detail=f"{length + 12} bytes, base offset {header[0]}",
        )
    count = header[12]
    if count <= 0 or header[6] != count - 1:
        raise InvalidRecordError(
            f"a record batch counts {count} records but its offsets span {header[6] + 1}"
        )
    if header[5] & CODEC_MASK > 4:
        raise UnsupportedCodecError(f"compression codec {header[5] & CODEC_MASK} does not exist")
    return header


def _short(buffer: Buffer, position: int, available: int) -> CorruptBatchError | InvalidRecordError:
    """Why fewer bytes than a header are no batch, in the order Kafka looks."""
    if available >= LENGTH_OVERHEAD:
        (length,) = _LENGTH_AT_8.unpack_from(buffer, position)
        if length < _SMALLEST_LENGTH:
            return CorruptBatchError(f"a record batch claims {length} bytes")
        if available > 16 and not 0 <= buffer[position + 16] <= 2:
            return CorruptBatchError(f"batch format {buffer[position + 16]} does not exist")
        if available >= length + LENGTH_OVERHEAD and buffer[position + 16] == MAGIC:
            return CorruptBatchError(f"a record batch claims only {length} bytes")
    return InvalidRecordError("no whole record batch")


def _misfit(header: BatchHeader, available: int) -> CorruptBatchError | InvalidRecordError:
    if header.length < _SMALLEST_LENGTH:
        return CorruptBatchError(f"a record batch claims {header.length} bytes")
    if not 0 <= header.magic <= 2:
        return CorruptBatchError(
            f"batch format {header.magic} does not exist", hint="the newest is 2"
        )
    if header.size > available:
        return InvalidRecordError(
            f"a record batch claims {header.size} bytes but {available} are there"
        )
    if header.magic != MAGIC:
        return InvalidRecordError(
            f"batch format {header.magic} is too old",
            hint="clients of Kafka 0.11 and newer write format 2",
        )
    return CorruptBatchError(f"a record batch claims only {header.length} bytes")


def is_intact(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the batch at `position`, which is there whole, matches its checksum."""
    end = position + header.length + LENGTH_OVERHEAD
    return bool(crc32c(memoryview(buffer)[position + CRC_START : end]) == header.crc)


def iterate_batches(
    buffer: Buffer, position: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every whole batch; stops silently at a cut one.

    Only the framing is looked at: use `check_batch` for bytes from elsewhere. A length
    that cannot be raises `CorruptBatchError`.
    """
    limit = len(buffer) if end is None else end
    unpack = HEADER.unpack_from
    while limit - position >= HEADER_BYTES:
        header = BatchHeader._make(unpack(buffer, position))
        if header.magic != MAGIC or header.length < HEADER_BYTES - LENGTH_OVERHEAD:
            raise CorruptBatchError(
                f"no record batch at byte {position}",
                detail=f"magic {header.magic}, length {header.length}",
            )
        following = position + header.length + LENGTH_OVERHEAD
        if following > limit:
            return
        yield position, header
        position = following
