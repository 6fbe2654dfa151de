"""What a client's batch must be before a partition takes it.

Header and checksum first, then every record: their lengths, numbers, keys and times. What is
compressed is decompressed for that, up to a multiple of the largest batch the topic takes, so
that some kilobytes cannot become hours of work. A topic with `tailrace.validate=compacted`
looks into compressed batches only where it must. Touches nothing but the batch: safe on any
thread.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tailrace.log.errors import InvalidTimestampError
from tailrace.log.settings import LONG_MAX, TopicConfig
from tailrace.records.compression import CODECS, DECOMPRESSED_LIMIT_BYTES, NONE, compress
from tailrace.records.decode import decode_raw, records_block
from tailrace.records.encode import assemble, set_max_timestamp
from tailrace.records.errors import InvalidRecordError
from tailrace.records.header import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    check_batch,
    iterate_batches,
)
from tailrace.records.validation import FARTHEST, Inspection, inspect_records

WritableBatch = bytearray | memoryview

# Producers fill batches of at most max.message.bytes before they compress them, as a rule.
DECOMPRESSED_FACTOR = 16
LEAST_DECOMPRESSED_BYTES = 16 * 1024 * 1024
MOST_REFUSED = 1000
"""Records named in one refusal."""

# What the loop does itself; more goes to a helper thread.
INLINE_BYTES = 64 * 1024
INLINE_DECOMPRESSED_BYTES = 1024 * 1024
INLINE_COMPRESSED_RECORDS = 2_000
INLINE_RECORDS = 50_000
# The same for all batches of one request together: many small ones are as much work as a large.
REQUEST_RECORDS = 100_000
REQUEST_COMPRESSED_BATCHES = 32
REQUEST_COMPRESSED_RECORDS = 16_000

_PEEK = struct.Struct(">21xh34xi")
_MAGIC_AT = 16


class Admitted(NamedTuple):
    """A batch that a partition may append as it is."""

    batch: WritableBatch
    header: BatchHeader


class InlineWork:
    """How much of one request's batches the loop may still look into by itself."""

    __slots__ = ("_compressed", "_compressed_records", "_records")

    def __init__(self) -> None:
        self._records = REQUEST_RECORDS
        self._compressed = REQUEST_COMPRESSED_BATCHES
        self._compressed_records = REQUEST_COMPRESSED_RECORDS

    def take(self, batch: memoryview) -> tuple[bool, bool]:
        """Whether a batch says that it is compressed, and whether it is too much.

        Goes by what the header claims: a walk of the records ends where a claim is wrong.
        """
        if len(batch) < HEADER_BYTES or batch[_MAGIC_AT] != MAGIC:
            return False, False
        attributes, count = _PEEK.unpack_from(batch)
        if attributes & CODEC_MASK:
            self._compressed -= 1
            self._compressed_records -= max(count, 0)
            return True, self._compressed < 0 or self._compressed_records < 0
        self._records -= max(count, 0)
        return False, self._records < 0


def is_large(batch: memoryview, config: TopicConfig) -> bool:
    """Whether to look at a batch takes so long that the loop should not."""
    if len(batch) < HEADER_BYTES or batch[_MAGIC_AT] != MAGIC:
        return False
    attributes, count = _PEEK.unpack_from(batch)
    codec = attributes & CODEC_MASK
    if codec == NONE:
        other = config.compression not in ("producer", "uncompressed")
        return count > INLINE_RECORDS or (other and len(batch) > INLINE_BYTES)
    if not _looks_inside(codec, config):
        return False
    return count > INLINE_COMPRESSED_RECORDS or len(batch) > INLINE_BYTES


def admit(
    batch: WritableBatch, config: TopicConfig, now_ms: int, limit: int | None = None
) -> Admitted:
    """The batch, ready to be appended; `limit` bounds the bytes it is decompressed to.

    Raises errors with a `kafka_code`: 2, 10, 32, 76, 87.
    """
    header = check_batch(batch)
    size = header[1] + 12
    if size != len(batch):
        for position, _ in iterate_batches(batch, size):
            raise InvalidRecordError(
                "a produce request holds one batch a partition",
                detail=f"a second at {position}",
            )
        batch = memoryview(batch)[:size]
    if header[5] & CONTROL or header[0] != 0:
        raise InvalidRecordError(
            "clients write no control batches"
            if header[5] & CONTROL
            else f"a batch's base offset must be 0, not {header[0]}"
        )
    if header[11] < 0 <= header[9]:
        raise InvalidRecordError(f"producer {header[9]} sent no sequence")
    codec = header[5] & CODEC_MASK
    if not _looks_inside(codec, config):
        newest = now_ms + config.timestamp_after_max_ms
        if config.log_append_time or header[8] <= newest:
            return Admitted(batch, header)
    if limit is None:
        limit = decompressed_limit(config)
    block: bytes | memoryview = memoryview(batch)[HEADER_BYTES:]
    if codec != NONE:
        block = records_block(batch, header, limit)
    found = inspect_records(block, header[12])
    if config.compact and found.keyless:
        error = InvalidRecordError("a compacted topic takes no record without a key")
        error.refused = tuple(found.keyless[:MOST_REFUSED])
        raise error
    if not config.log_append_time:
        header = _check_times(batch, header, found, config, now_ms)
    if config.compression != "producer":
        return _recompress(batch, header, config.compression, block)
    return Admitted(batch, header)


def decompressed_limit(config: TopicConfig) -> int:
    """Most bytes the records of one batch may have."""
    wanted = max(LEAST_DECOMPRESSED_BYTES, DECOMPRESSED_FACTOR * config.max_message_bytes)
    return min(wanted, DECOMPRESSED_LIMIT_BYTES)


def _looks_inside(codec: int, config: TopicConfig) -> bool:
    if codec == NONE or config.validate_compressed or config.compact:
        return True
    wanted = config.compression
    if wanted != "producer" and codec != CODECS["none" if wanted == "uncompressed" else wanted]:
        return True
    return not config.log_append_time and config.timestamp_before_max_ms != LONG_MAX


def _check_times(
    batch: WritableBatch, header: BatchHeader, found: Inspection, config: TopicConfig, now_ms: int
) -> BatchHeader:
    """Refuse records too old or too new (32); give the header the true largest time."""
    if not -FARTHEST < header.base_timestamp < FARTHEST:
        raise InvalidTimestampError(
            f"a batch's timestamp {header.base_timestamp} is no time",
        )
    largest = header.base_timestamp + found.newest
    if largest != header.max_timestamp:
        # Searches by time trust the header, so, as in Kafka, the broker's word counts.
        set_max_timestamp(batch, largest)
        header = check_batch(batch)
    newest = now_ms + config.timestamp_after_max_ms
    oldest = now_ms - config.timestamp_before_max_ms
    if largest <= newest and config.timestamp_before_max_ms == LONG_MAX:
        return header
    times = [record.timestamp for record in decode_raw(batch)]
    refused = [
        at for at, time in enumerate(times) if time != NO_TIMESTAMP and not oldest <= time <= newest
    ]
    if refused:
        error = InvalidTimestampError(
            f"a record's timestamp {times[refused[0]]} lies too far from the broker's time",
            detail=f"allowed is from {oldest} to {newest}",
        )
        error.refused = tuple(refused[:MOST_REFUSED])
        raise error
    return header


def _recompress(
    batch: WritableBatch, header: BatchHeader, compression: str, block: bytes | memoryview
) -> Admitted:
    """The batch in the topic's own codec."""
    codec = CODECS["none" if compression == "uncompressed" else compression]
    if codec == header.codec:
        return Admitted(batch, header)
    other = assemble(
        compress(codec, block),
        count=header.record_count,
        last_offset_delta=header.last_offset_delta,
        attributes=header.attributes & ~CODEC_MASK | codec,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    return Admitted(other, check_batch(other))
