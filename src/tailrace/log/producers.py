"""What a partition remembers of its producers: epochs, sequences, open transactions.

The last five batches of each idempotent producer are kept, so that a repeat is answered
with its first result. The state is rebuilt by replaying batch headers, and cut short by
snapshots (`<offset>.snapshot`, Kafka's format version 1: int16 version, CRC-32C of the
rest, int32 count, 46 bytes a producer). Kafka's format holds one batch a producer; ours
appends the other four in a trailing section that Kafka's reader does not look at.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tailrace.log.errors import (
    CoordinatorFencedError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
)
from tailrace.records.checksum import crc32c
from tailrace.records.header import TRANSACTIONAL, BatchHeader, advance_sequence

REMEMBERED_BATCHES = 5
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_EARLIER = struct.Struct(">qiiqq")
_EARLIER_MARK = b"tailrace-earlier-batches\x01"


class WrittenBatch(NamedTuple):
    """One batch of a producer as it was appended."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer id in one partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "transaction_start")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[WrittenBatch] = []
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_start = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1


class ProducerRow(NamedTuple):
    """One producer as DescribeProducers shows it."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start: int


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has just ended."""

    producer_id: int
    first_offset: int
    marker_offset: int
    aborted: bool


class Producers:
    """All producers of one partition.

    `check` decides about a batch without changing anything; `note` records it once it is
    written. Nothing changes in between, so a failed write leaves no trace.
    """

    __slots__ = ("by_id", "open")

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}
        self.open: dict[int, int] = {}
        """Producer id → first offset of its open transaction."""

    def check(self, header: BatchHeader) -> WrittenBatch | None:
        """None if the batch may be appended, or what it repeats.

        Raises `InvalidProducerEpochError` (47) for a fenced producer,
        `OutOfOrderSequenceError` (45) for a gap or a repeat too old to be known, and
        `InvalidTransactionStateError` (48) for a plain write inside a transaction.
        """
        producer = self.by_id.get(header[9])
        if producer is None:
            # As Kafka: a producer whose state expired may go on at any sequence.
            return None
        epoch, sequence = header[10], header[11]
        if epoch < producer.epoch:
            raise InvalidProducerEpochError(
                f"producer {header[9]} has been fenced",
                detail=f"it writes with epoch {epoch}, the newest is {producer.epoch}",
            )
        if sequence < 0:
            return None  # written by a coordinator on the producer's behalf
        if epoch > producer.epoch:
            if sequence != 0:
                raise OutOfOrderSequenceError(
                    f"producer {header[9]} begins epoch {epoch} at sequence {sequence}",
                    detail="a new epoch begins at 0",
                )
        elif producer.batches:
            last = producer.batches[-1].last_sequence
            if sequence != last + 1 and not (sequence == 0 and last == 0x7FFFFFFF):
                ending = header.last_sequence
                for batch in producer.batches:
                    if batch.base_sequence == sequence and batch.last_sequence == ending:
                        return batch
                raise OutOfOrderSequenceError(
                    f"producer {header[9]} sent sequence {sequence}",
                    detail=f"the last one here is {last}",
                )
        if producer.transaction_start >= 0 and not header[5] & TRANSACTIONAL:
            raise InvalidTransactionStateError(
                f"producer {header[9]} wrote outside its open transaction"
            )
        return None

    def note(self, header: BatchHeader, base_offset: int, timestamp: int, now_ms: int) -> None:
        """Record a batch of a producer that was appended at `base_offset`.

        Records may be as old as they like: it is the time of the append that keeps their
        producer from being forgotten.
        """
        producer_id, epoch, sequence = header[9], header[10], header[11]
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = Producer(epoch)
        elif epoch != producer.epoch:
            producer.epoch = epoch
            producer.batches = []
        if sequence >= 0:
            delta = header[6]
            last_sequence = advance_sequence(sequence, delta)
            batches = producer.batches
            batches.append(
                WrittenBatch(sequence, last_sequence, base_offset, base_offset + delta, timestamp)
            )
            if len(batches) > REMEMBERED_BATCHES:
                del batches[0]
        producer.last_timestamp = now_ms
        if header[5] & TRANSACTIONAL and producer.transaction_start < 0:
            producer.transaction_start = base_offset
            self.open[producer_id] = base_offset

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """Raises if a marker of this producer epoch or coordinator comes too late."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            return
        if epoch < producer.epoch:
            raise InvalidProducerEpochError(
                f"a marker for epoch {epoch} of producer {producer_id} comes too late",
                detail=f"the newest epoch is {producer.epoch}",
            )
        if coordinator_epoch < producer.coordinator_epoch:
            raise CoordinatorFencedError(
                f"coordinator epoch {coordinator_epoch} has been replaced",
                detail=f"the newest is {producer.coordinator_epoch}",
            )

    def note_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        commit: bool,
    ) -> CompletedTransaction | None:
        """Record a marker at `offset`; what it ended, or None if nothing was open."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = Producer(epoch)
        elif epoch > producer.epoch:
            producer.epoch = epoch
            producer.batches = []
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        start = producer.transaction_start
        if start < 0:
            return None
        producer.transaction_start = -1
        self.open.pop(producer_id, None)
        return CompletedTransaction(producer_id, start, offset, not commit)

    def expire(self, before_ms: int) -> int:
        """Forget producers idle since before `before_ms`, open transactions excepted."""
        idle = [
            producer_id
            for producer_id, producer in self.by_id.items()
            if producer.last_timestamp < before_ms and producer.transaction_start < 0
        ]
        for producer_id in idle:
            del self.by_id[producer_id]
        return len(idle)

    def rows(self) -> list[ProducerRow]:
        return [
            ProducerRow(
                producer_id,
                producer.epoch,
                producer.last_sequence,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_start,
            )
            for producer_id, producer in self.by_id.items()
        ]

    def encode(self) -> bytes:
        """The bytes of a snapshot file."""
        body = bytearray(_COUNT.pack(len(self.by_id)))
        earlier = bytearray()
        for producer_id, producer in self.by_id.items():
            last = producer.batches[-1] if producer.batches else None
            body += _ENTRY.pack(
                producer_id,
                producer.epoch,
                last.last_sequence if last else -1,
                last.last_offset if last else -1,
                last.last_offset - last.base_offset if last else 0,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_start,
            )
            for batch in producer.batches[:-1]:
                earlier += _EARLIER.pack(
                    producer_id,
                    batch.base_sequence,
                    batch.last_sequence,
                    batch.base_offset,
                    batch.timestamp,
                )
        if earlier:
            body += _EARLIER_MARK + earlier
        return _HEAD.pack(1, crc32c(body)) + bytes(body)

    @classmethod
    def decode(cls, data: bytes) -> Producers | None:
        """The state in a snapshot; None if it is damaged or of another format."""
        if len(data) < _HEAD.size + _COUNT.size:
            return None
        version, checksum = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        if version != 1 or crc32c(body) != checksum:
            return None
        (count,) = _COUNT.unpack_from(body)
        end = _COUNT.size + count * _ENTRY.size
        state = cls()
        if body[end : end + len(_EARLIER_MARK)] == _EARLIER_MARK:
            for entry in _EARLIER.iter_unpack(body[end + len(_EARLIER_MARK) :]):
                producer_id, base_sequence, last_sequence, base_offset, timestamp = entry
                span = (last_sequence - base_sequence) & 0x7FFFFFFF
                state.by_id.setdefault(producer_id, Producer(-1)).batches.append(
                    WrittenBatch(
                        base_sequence, last_sequence, base_offset, base_offset + span, timestamp
                    )
                )
        for entry in _ENTRY.iter_unpack(body[_COUNT.size : end]):
            producer_id, epoch, last_sequence, last_offset, delta, timestamp, *rest = entry
            producer = state.by_id.setdefault(producer_id, Producer(-1))
            producer.epoch = epoch
            producer.last_timestamp = timestamp
            producer.coordinator_epoch, producer.transaction_start = rest
            if last_sequence >= 0:
                base_sequence = (last_sequence - delta) & 0x7FFFFFFF
                producer.batches.append(
                    WrittenBatch(
                        base_sequence, last_sequence, last_offset - delta, last_offset, timestamp
                    )
                )
            if producer.transaction_start >= 0:
                state.open[producer_id] = producer.transaction_start
        return state
