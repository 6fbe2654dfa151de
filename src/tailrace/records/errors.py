"""Errors about record batches. Each carries the number Kafka's protocol gives it.

RecordsError                 records
├── CorruptBatchError        batch-corrupt           Kafka 2   CORRUPT_MESSAGE
├── InvalidRecordError       record-invalid          Kafka 87  INVALID_RECORD
│   └── OversizedBatchError  batch-oversized         Kafka 10  MESSAGE_TOO_LARGE
├── UnsupportedCodecError    compression-unsupported Kafka 76  UNSUPPORTED_COMPRESSION_TYPE
└── EnvelopeError            envelope                no change event
"""

from __future__ import annotations

from typing import ClassVar

from tailrace.errors import TailraceError


class RecordsError(TailraceError):
    """A batch of records cannot be used."""

    code = "records"
    kafka_code: ClassVar[int] = 87


class CorruptBatchError(RecordsError):
    """The bytes of a record batch were damaged: the checksum does not match, the format
    version does not exist, or the length is impossible. Kafka calls it CORRUPT_MESSAGE;
    a producer sends the batch again."""

    code = "batch-corrupt"
    kafka_code = 2


class InvalidRecordError(RecordsError):
    """A record batch arrived intact but says something that cannot be: a count that does
    not fit its offsets, a cut end, an old format, a record without key on a compacted
    topic. Kafka calls it INVALID_RECORD; sending it again does not help."""

    code = "record-invalid"
    kafka_code = 87

    refused: tuple[int, ...] = ()
    """Which records of the batch are meant, counted from 0; none: the batch itself."""


class OversizedBatchError(InvalidRecordError):
    """A compressed batch would take more memory than a batch may. Kafka calls it
    MESSAGE_TOO_LARGE: many producers send it again in smaller ones. A broker allows 16 times
    the topic's max.message.bytes, at least 16 MB."""

    code = "batch-oversized"
    kafka_code = 10


class UnsupportedCodecError(RecordsError):
    """A batch names a compression codec that does not exist. Known are none, gzip,
    snappy, lz4 and zstd."""

    code = "compression-unsupported"
    kafka_code = 76


class EnvelopeError(RecordsError):
    """A record of a change topic is no change envelope: no JSON object, or without `op`."""

    code = "envelope"
