"""Errors of the log. Each class carries the number Kafka's protocol gives it.

LogError                          log                      −1
├── OffsetOutOfRangeError         offset-out-of-range       1
├── UnknownTopicError             topic-unknown             3
├── MessageTooLargeError          message-too-large        10
├── InvalidTopicNameError         topic-name               17
├── InvalidTimestampError         timestamp-invalid        32
├── TopicExistsError              topic-exists             36
├── InvalidPartitionsError        partitions-invalid       37
├── InvalidConfigError            setting-invalid          40
├── PolicyViolationError          policy-violation         44
├── OutOfOrderSequenceError       sequence-out-of-order    45
├── InvalidProducerEpochError     producer-epoch           47
├── InvalidTransactionStateError  transaction-state        48
├── CoordinatorFencedError        coordinator-fenced       52
├── StorageError                  storage                  56
│   ├── DiskFullError             disk-full                56
│   ├── SyncFailedError           sync-failed              56
│   ├── CorruptSegmentError       segment-corrupt          56
│   └── MetadataDamagedError      metadata-damaged         56
├── DirectoryLockedError          data-locked              −1
├── ForeignDirectoryError         data-foreign             −1
└── UnknownFormatError            format-unknown           −1
"""

from __future__ import annotations

from typing import ClassVar

from tailrace.errors import TailraceError


class LogError(TailraceError):
    """The log could not do what was asked."""

    code = "log"
    kafka_code: ClassVar[int] = -1


class OffsetOutOfRangeError(LogError):
    """A reader asked for an offset before the log's start (retention or DeleteRecords took
    it) or past its end. The consumer's `auto.offset.reset` decides where it goes on."""

    code = "offset-out-of-range"
    kafka_code = 1


class UnknownTopicError(LogError):
    """No such topic or partition on this broker."""

    code = "topic-unknown"
    kafka_code = 3


class MessageTooLargeError(LogError):
    """A batch is larger than the topic's `max.message.bytes`. Raise that setting, or the
    producer's compression, or make its batches smaller."""

    code = "message-too-large"
    kafka_code = 10


class InvalidTopicNameError(LogError):
    """Topic names are 1 to 249 letters, digits, dots, underscores and dashes, and neither
    "." nor ".."."""

    code = "topic-name"
    kafka_code = 17


class InvalidTimestampError(LogError):
    """A record's timestamp is further from the broker's clock than the topic's
    `message.timestamp.before.max.ms` or `message.timestamp.after.max.ms` allow."""

    code = "timestamp-invalid"
    kafka_code = 32

    refused: tuple[int, ...] = ()
    """Which records of the batch are meant, counted from 0."""


class TopicExistsError(LogError):
    """A topic of this name is already there, or one whose name differs only in "." and
    "_" (their metrics would collide)."""

    code = "topic-exists"
    kafka_code = 36


class InvalidPartitionsError(LogError):
    """A topic needs at least one partition, and the number can only grow."""

    code = "partitions-invalid"
    kafka_code = 37


class InvalidConfigError(LogError):
    """A topic or broker setting that does not exist here, or a value outside its range.
    Settings carry Kafka's names and meanings; none is ignored silently."""

    code = "setting-invalid"
    kafka_code = 40


class PolicyViolationError(LogError):
    """What was asked goes against the topic's policy: records of a topic that is only
    compacted cannot be deleted by offset."""

    code = "policy-violation"
    kafka_code = 44


class OutOfOrderSequenceError(LogError):
    """An idempotent producer's batch does not follow the one before it: something between
    them was lost, or it repeats a batch too old to be remembered."""

    code = "sequence-out-of-order"
    kafka_code = 45


class InvalidProducerEpochError(LogError):
    """A producer with a newer epoch exists; this one has been fenced and must stop."""

    code = "producer-epoch"
    kafka_code = 47


class InvalidTransactionStateError(LogError):
    """A producer wrote outside its transaction while one was open."""

    code = "transaction-state"
    kafka_code = 48


class CoordinatorFencedError(LogError):
    """A transaction marker came from a coordinator that has been replaced."""

    code = "coordinator-fenced"
    kafka_code = 52


class StorageError(LogError):
    """The disk refused. Partitions of other data directories go on."""

    code = "storage"
    kafka_code = 56


class DiskFullError(StorageError):
    """No space is left on the data directory. Reading goes on, producing answers Kafka's
    storage error and works again by itself once there is space; nothing that was
    acknowledged is lost."""

    code = "disk-full"


class SyncFailedError(StorageError):
    """The disk refused to keep what was written. Partitions that were hit answer with a storage
    error until the broker is started again; that start empties the page cache and reads what
    the disk really holds, as after a power cut. Nothing that was acknowledged under
    `flush.messages=1` is lost by it."""

    code = "sync-failed"


class CorruptSegmentError(StorageError):
    """Bytes in the middle of a segment do not match their checksum. The broken batch is
    never served; everything before and behind it is. Restore the file from a copy and
    start the broker again, let consumers seek past the range, or give up what lies before
    its end with Kafka's DeleteRecords."""

    code = "segment-corrupt"


class NotFetchedError(StorageError):
    """The records asked for lie in the archive and are being fetched. Clients ask again by
    themselves."""

    code = "segment-archived"


class MetadataDamagedError(StorageError):
    """The journal of topics is damaged before its end, so the list of topics cannot be
    trusted. The segments themselves are untouched."""

    code = "metadata-damaged"


class DirectoryLockedError(LogError):
    """Another process has this data directory open. One process at a time may use it; the
    detail says which one."""

    code = "data-locked"


class ForeignDirectoryError(LogError):
    """A data directory belongs to another log, or is a copy of another directory of this one.
    Opening both together would mix up their partitions."""

    code = "data-foreign"


class UnknownFormatError(LogError):
    """The data directory was written by a version of Tailrace whose format this one does
    not know."""

    code = "format-unknown"
