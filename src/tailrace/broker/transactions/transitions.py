"""How the record of a transactional id follows from the one before it.

Pure functions: the coordinator writes what they return to `__transaction_state` and lets
it count once it is there. `now` is wall time in milliseconds.
"""

from __future__ import annotations

from dataclasses import replace

from tailrace.broker.transactions.state import (
    MAX_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    State,
    TopicPartition,
    TransactionRecord,
)

OWN_EPOCHS = 2
"""The protocol version in which every transaction has an epoch of its own (KIP-890)."""


def may_initialise(record: TransactionRecord, producer_id: int, epoch: int) -> bool:
    """Whether a producer that says who it was is still the one this id belongs to."""
    if producer_id == NO_PRODUCER_ID or record.epoch == NO_EPOCH:
        return True
    rotated = producer_id == record.previous_producer_id and epoch >= MAX_EPOCH - 1
    current = producer_id == record.producer_id and epoch in (record.epoch, record.last_epoch)
    return rotated or current


def initialised(
    record: TransactionRecord,
    expected_id: int,
    expected_epoch: int,
    rotate_to: int,
    timeout_ms: int,
    now: int,
) -> TransactionRecord:
    """A producer begins: a new epoch, or `rotate_to` as its id if no epoch is left."""
    producer_id, epoch, previous = record.producer_id, record.epoch, record.previous_producer_id
    last_epoch = record.epoch
    if record.exhausted:
        producer_id, epoch, previous = rotate_to, 0, record.producer_id
        last_epoch = NO_EPOCH
    elif expected_id == producer_id and expected_epoch == record.last_epoch != record.epoch:
        last_epoch = record.last_epoch  # the answer to its first try was lost
    elif expected_id == record.previous_producer_id != NO_PRODUCER_ID:
        last_epoch = record.last_epoch
    else:
        epoch += 1
    return replace(
        record,
        producer_id=producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        previous_producer_id=previous,
        next_producer_id=NO_PRODUCER_ID,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        started_at=-1,
        updated_at=now,
    )


def joined(
    record: TransactionRecord, places: frozenset[TopicPartition], version: int, now: int
) -> TransactionRecord:
    """Partitions join the open transaction, or begin one."""
    ongoing = record.state is State.ONGOING
    return replace(
        record,
        state=State.ONGOING,
        partitions=record.partitions | places if ongoing else places,
        started_at=record.started_at if ongoing else now,
        updated_at=now,
        version=max(version, record.version) if ongoing else version,
    )


def prepared(
    record: TransactionRecord, commit: bool, version: int, rotate_to: int, now: int
) -> TransactionRecord:
    """The end is decided. With epochs of their own the next transaction has the next one,
    or `rotate_to` as its producer id if there is none."""
    ongoing = record.state is State.ONGOING
    following = replace(
        record,
        state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
        partitions=record.partitions if ongoing else frozenset(),
        started_at=record.started_at if ongoing else -1,
        version=version,
        updated_at=now,
    )
    if version < OWN_EPOCHS:
        return following
    return replace(
        following,
        epoch=record.epoch + 1,
        last_epoch=record.epoch,
        next_producer_id=rotate_to if record.exhausted else NO_PRODUCER_ID,
    )


def aborted_by_nobody(record: TransactionRecord, now: int) -> TransactionRecord:
    """The end of what took too long or was left open: its producer is fenced."""
    # Twice with epochs of their own: one step looks like the repeat of an end.
    steps = 2 if record.version >= OWN_EPOCHS else 1
    return replace(
        record,
        epoch=min(record.epoch + steps, MAX_EPOCH),
        last_epoch=NO_EPOCH,
        state=State.PREPARE_ABORT,
        updated_at=now,
    )


def completed(prepared: TransactionRecord, now: int) -> TransactionRecord:
    """Every partition knows how it ended."""
    commit = prepared.state is State.PREPARE_COMMIT
    complete = replace(
        prepared,
        state=State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_at=now,
    )
    if prepared.next_producer_id == NO_PRODUCER_ID:
        return complete
    return replace(
        complete,
        producer_id=prepared.next_producer_id,
        epoch=0,
        previous_producer_id=prepared.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def repeats_an_end(record: TransactionRecord, producer_id: int, epoch: int) -> bool:
    """Whether an end with this identity was served already and raised the epoch."""
    if record.version < OWN_EPOCHS:
        return False
    raised = record.producer_id == producer_id and record.epoch == epoch + 1
    rotated = (
        record.previous_producer_id == producer_id and epoch == MAX_EPOCH - 1 and record.epoch == 0
    )
    return raised or rotated
