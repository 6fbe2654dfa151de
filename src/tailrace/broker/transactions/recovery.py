"""What a start does with the transactions it finds in the log.

*Ongoing* ones stay open until their time-out. *Prepared* ones get the markers that are
missing. A transaction open in a partition that no record of `__transaction_state` asks
for can only come from a power cut, which keeps the writes of different files up to
different moments: it is ended as the log says it was decided, else aborted, so that
none stays open for ever. It cannot have been promised to anybody: a commit is answered
only after its records and its decision are on the disk.

Aborted and unfinished transactions promise nothing, so the state may know less than the
partitions do: an epoch that was handed out is in their records and not in
`__transaction_state`. Handed out again, its first batch would be taken for the repeat of a lost
one, and an older one refused. So no producer goes on below the newest epoch that any
partition has seen of it.

Where a range of `__transaction_state` is damaged, a decision may be lost with it. What is
open in a partition and not decided by what is left is then neither committed nor aborted:
either could be the opposite of what was promised. It stays open, its transactional id is
refused, and an operator ends it (WriteTxnMarkers, `kafka-transactions.sh abort`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from tailrace.broker.journal import Entry, Journal, partition_of
from tailrace.broker.transactions import records
from tailrace.broker.transactions.coordinator import Partitions, TransactionCoordinator
from tailrace.broker.transactions.state import (
    NO_EPOCH,
    State,
    TopicPartition,
    Transaction,
    TransactionRecord,
)
from tailrace.broker.transactions.transitions import OWN_EPOCHS

log = logging.getLogger(__name__)

# (producer id, epoch) → (committed, in these partitions)
Decisions = dict[tuple[int, int], tuple[bool, frozenset[TopicPartition]]]


def load(
    coordinator: TransactionCoordinator,
    journal: Journal,
    partitions: Partitions,
    *,
    power_was_cut: bool = False,
) -> None:
    """Bring `coordinator` to the state in the log.

    After a power cut no transaction goes on: acknowledged records of it may be gone, and
    its producer, alive on another machine, would commit the rest.
    """
    found, decisions = _read(journal)
    damaged = any(journal.doubtful_before(index) for index in range(journal.partitions))
    open_at: dict[int, dict[TopicPartition, int]] = {}
    for place, producer_id, epoch in partitions.open_transactions():
        open_at.setdefault(producer_id, {})[place] = epoch
    newest = partitions.newest_epochs()
    for record, offset in found.values():
        places = open_at.get(record.producer_id, {})
        mine = {place for place, epoch in places.items() if _belongs(record, place, epoch)}
        seen = newest.get(record.producer_id, NO_EPOCH)
        if seen > record.epoch:
            record = replace(record, epoch=seen)
        home = partition_of(record.transactional_id, journal.partitions)
        if mine and record.state is State.ONGOING and offset < journal.doubtful_before(home):
            coordinator.doubt(record, mine)
            for place in mine:
                _leave_open(place, record.producer_id)
        else:
            coordinator.restore(Transaction(record), mine)
        for place in mine:
            del places[place]
    _end_strays(open_at, decisions, partitions, damaged=damaged)
    if power_was_cut:
        coordinator.abort_all()


def _read(journal: Journal) -> tuple[dict[str, tuple[TransactionRecord, int]], Decisions]:
    """The last record of each id with its offset, and what was ever decided."""
    found: dict[str, tuple[TransactionRecord, int]] = {}
    decisions: Decisions = {}
    for partition in range(journal.partitions):
        for entry in journal.read(partition):
            if not isinstance(entry, Entry):
                continue
            try:
                transactional_id = records.decode_key(entry.key)
                if transactional_id is None:
                    continue
                if entry.value is None:
                    found.pop(transactional_id, None)
                    continue
                record = records.decode_value(transactional_id, entry.value)
            except Exception as error:  # whatever the bytes say, the others are to be had
                journal.unreadable(partition, entry.offset, error)
                continue
            found[transactional_id] = (record, entry.offset)
            if record.state.prepared and record.version >= OWN_EPOCHS:
                # The decision raised the epoch of the transaction it ended by one.
                decided = record.state is State.PREPARE_COMMIT
                decisions[record.producer_id, record.epoch - 1] = (decided, record.partitions)
    return found, decisions


def _belongs(record: TransactionRecord, place: TopicPartition, epoch: int) -> bool:
    """Whether a transaction open at `place` is the one that `record` speaks of."""
    if place not in record.partitions:
        return False
    if record.state is State.ONGOING:
        return epoch == record.epoch
    # With epochs of their own, an open one of the raised epoch is already the next.
    return record.state.prepared and (epoch < record.epoch or record.version < OWN_EPOCHS)


def _leave_open(place: TopicPartition, producer_id: int) -> None:
    log.error(
        "transaction left open: its end may be lost in a damaged range",
        extra={
            "topic": place[0],
            "partition": place[1],
            "producer_id": producer_id,
            "hint": "restore __transaction_state from a copy, "
            "or end it with kafka-transactions.sh abort",
        },
    )


def _end_strays(
    open_at: Mapping[int, Mapping[TopicPartition, int]],
    decisions: Decisions,
    partitions: Partitions,
    *,
    damaged: bool,
) -> None:
    ended: list[TopicPartition] = []
    for producer_id, places in open_at.items():
        for place, epoch in places.items():
            if damaged and (producer_id, epoch) not in decisions:
                _leave_open(place, producer_id)
                continue
            decided, where = decisions.get((producer_id, epoch), (False, frozenset()))
            commit = decided and place in where
            log.warning(
                "transaction found open and ended",
                extra={
                    "topic": place[0],
                    "partition": place[1],
                    "producer_id": producer_id,
                    "committed": commit,
                },
            )
            partitions.write_marker(place, producer_id, epoch, commit)
            ended.append(place)
    # Before anybody is served: what was handed out and lost, epochs too, is handed out
    # again, and these must not be taken for its like.
    partitions.sync_now(ended)
