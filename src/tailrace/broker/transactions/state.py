"""What is known about one transactional id.

Empty ─► Ongoing ─► PrepareCommit ─► CompleteCommit ─┐
  ▲         │  ▲                                     │
  │         │  └─────────────────────────────────────┤
  │         └─────► PrepareAbort ──► CompleteAbort ──┘
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
MAX_EPOCH = 32767


class State(IntEnum):
    """The states of a transactional id, by the numbers they have in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def prepared(self) -> bool:
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def complete(self) -> bool:
        return self in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """One record of `__transaction_state`. `version` is the protocol the client spoke:
    2 since KIP-890, where every transaction has an epoch of its own."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    updated_at: int = -1
    started_at: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    version: int = 0
    last_epoch: int = NO_EPOCH
    """The epoch before the last bump; not in the log, so a start forgets it."""

    @property
    def exhausted(self) -> bool:
        """Whether this producer id has no epoch left to give."""
        return self.epoch >= MAX_EPOCH - 1


@dataclass(slots=True)
class Transaction:
    """A transactional id at work. While `busy`, a change of its state is under way and
    whoever comes waits in line."""

    record: TransactionRecord
    busy: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)
    unmarked: set[TopicPartition] = field(default_factory=set)
    """Partitions of a prepared transaction that have not got their marker yet."""
    due: float = 0.0
    """When an open transaction has taken too long, in monotonic seconds: a wall clock that
    jumps must neither end it nor keep it."""
