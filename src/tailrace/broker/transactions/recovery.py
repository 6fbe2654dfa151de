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
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from tailrace.broker.journal import Entry, Journal
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
    open_at: dict[int, dict[TopicPartition, int]] = {}
    for place, producer_id, epoch in partitions.open_transactions():
        open_at.setdefault(producer_id, {})[place] = epoch
    newest = partitions.newest_epochs()
    for record in found.values():
        places = open_at.get(record.producer_id, {})
        mine = {place for place, epoch in places.items() if _belongs(record, place, epoch)}
        seen = newest.get(record.producer_id, NO_EPOCH)
        if seen > record.epoch:
            record = replace(record, epoch=seen)
        coordinator.restore(Transaction(record), mine)
        for place in mine:
            del places[place]
    _end_strays(open_at, decisions, partitions)
    if power_was_cut:
        coordinator.abort_all()


def _read(journal: Journal) -> tuple[dict[str, TransactionRecord], Decisions]:
    found: dict[str, TransactionRecord] = {}
    decisions: Decisions = {}
    for partition in range(journal.partitions):
        for entry in journal.read(partition):
            if not isinstance(entry, Entry):
                continue
            transactional_id = records.decode_key(entry.key)
            if transactional_id is None:
                continue
            if entry.value is None:
                found.pop(transactional_id, None)
                continue
            record = records.decode_value(transactional_id, entry.value)
            found[transactional_id] = record
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


def _end_strays(
    open_at: Mapping[int, Mapping[TopicPartition, int]],
    decisions: Decisions,
    partitions: Partitions,
) -> None:
    ended: list[TopicPartition] = []
    for producer_id, places in open_at.items():
        for place, epoch in places.items():
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
