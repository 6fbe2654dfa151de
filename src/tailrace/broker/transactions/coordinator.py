"""The transaction coordinator: init, add partitions, end, time out.

Two flows are served. Before KIP-890 (`version` 0 and 1) a client announces partitions
with AddPartitionsToTxn and keeps its epoch over many transactions. Since KIP-890
(`version` 2) a transactional batch joins by itself and every end raises the epoch, so
that a late batch of an old transaction can never enter a new one.

A request that Kafka would answer with CONCURRENT_TRANSACTIONS, because an end is under
way, waits here until it is through and is then served: a client need not try again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from tailrace.broker.journal import Journal, partition_of
from tailrace.broker.transactions import records, transitions
from tailrace.broker.transactions.state import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    State,
    TopicPartition,
    Transaction,
    TransactionRecord,
)
from tailrace.broker.transactions.transitions import OWN_EPOCHS
from tailrace.clock import Clock
from tailrace.wire.errors import ErrorCode

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's `transaction.*` settings, and `transaction.flush`."""

    max_timeout_ms: int = 900_000
    flush: bool = True
    id_expiration_ms: int = 604_800_000
    check_interval_ms: int = 1_000
    expiry_interval_ms: int = 3_600_000


class Partitions(Protocol):
    """The log's partitions as transactions touch them."""

    def sync(
        self, wanted: Iterable[TopicPartition], done: Callable[[Exception | None], None]
    ) -> None:
        """Call `done` when everything now in these partitions is on the disk."""

    def sync_now(self, wanted: Iterable[TopicPartition]) -> None:
        """Return when everything now in these partitions is on the disk; at start only."""

    def write_marker(
        self, place: TopicPartition, producer_id: int, epoch: int, commit: bool
    ) -> None:
        """Append the end of a transaction; a partition that is gone needs none."""

    def open_transactions(self) -> Iterable[tuple[TopicPartition, int, int]]:
        """(partition, producer id, epoch) of every transaction open in the log."""

    def newest_epochs(self) -> dict[int, int]:
        """By producer id: the newest epoch that any partition has seen."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a request says it comes from, and the answer to InitProducerId and EndTxn."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH


IdentityReply = Callable[[Identity], None]
ErrorReply = Callable[[ErrorCode], None]


class TransactionCoordinator:
    """Every transactional id of this broker."""

    def __init__(
        self,
        settings: TransactionSettings,
        clock: Clock,
        journal: Journal,
        partitions: Partitions,
        new_producer_id: Callable[[], int],
        *,
        may_expire: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_expire` says whether the wall clock can be trusted to delete by."""
        self._may_expire = may_expire
        self._settings = settings
        self._clock = clock
        self._journal = journal
        self._partitions = partitions
        self._new_producer_id = new_producer_id
        self.transactions: dict[str, Transaction] = {}
        self._ongoing: dict[str, Transaction] = {}
        self._unmarked: dict[str, Transaction] = {}
        self._doubtful: dict[str, tuple[TransactionRecord, frozenset[TopicPartition]]] = {}
        now = clock.monotonic()
        self._check_due = now + settings.check_interval_ms / 1000
        self._expiry_due = now + settings.expiry_interval_ms / 1000

    def change_settings(self, settings: TransactionSettings) -> None:
        """Take other settings from now on."""
        self._settings = settings

    # requests

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout_ms: int,
        expected_id: int,
        expected_epoch: int,
        reply: IdentityReply,
    ) -> None:
        """Give a producer its id and a new epoch; ends what an earlier one left open."""
        if transactional_id is None:
            reply(self._plain_producer())
        elif transactional_id == "":
            reply(Identity(ErrorCode.INVALID_REQUEST))
        elif not 0 < timeout_ms <= self._settings.max_timeout_ms:
            reply(Identity(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
        elif self._in_doubt(transactional_id):
            reply(Identity(ErrorCode.KAFKA_STORAGE_ERROR))
        else:
            transaction = self.transactions.get(transactional_id)
            if transaction is None:
                try:
                    producer_id = self._new_producer_id()
                except OSError:
                    reply(Identity(ErrorCode.COORDINATOR_NOT_AVAILABLE))
                    return
                transaction = Transaction(
                    TransactionRecord(transactional_id, producer_id, NO_EPOCH, timeout_ms)
                )
                self.transactions[transactional_id] = transaction
            self._init(transaction, timeout_ms, expected_id, expected_epoch, reply)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        places: Iterable[TopicPartition],
        reply: ErrorReply,
        version: int = 0,
    ) -> None:
        """Let partitions take part in the open transaction, or begin one with them."""
        transaction = self.transactions.get(transactional_id)
        if transactional_id == "":
            reply(ErrorCode.INVALID_REQUEST)
        elif transaction is None:
            reply(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        else:
            self._add(transaction, producer_id, epoch, frozenset(places), reply, version)

    def check_produce(
        self,
        transactional_id: str | None,
        producer_id: int,
        epoch: int,
        place: TopicPartition,
        *,
        implicit: bool,
        abortable: bool = False,
    ) -> ErrorCode:
        """Whether a transactional batch may enter `place`; asked before every append.

        With `implicit` (Produce 12 and newer) it joins the transaction, or begins one.
        With `abortable` (Produce 11) the client knows the answer TRANSACTION_ABORTABLE.
        """
        if transactional_id is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.record.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        record = transaction.record
        if record.epoch != epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if transaction.busy or record.state.prepared:
            # Older clients do not expect this answer here; this one makes them try again.
            return ErrorCode.CONCURRENT_TRANSACTIONS if implicit else ErrorCode.NOT_ENOUGH_REPLICAS
        if record.state is State.ONGOING and place in record.partitions:
            return ErrorCode.NONE
        if not implicit:
            return ErrorCode.TRANSACTION_ABORTABLE if abortable else ErrorCode.INVALID_TXN_STATE
        failed: list[ErrorCode] = []
        self._add(transaction, producer_id, epoch, frozenset([place]), failed.append, OWN_EPOCHS)
        # No answer yet means that the record is in the log and waits for a flush only.
        return failed[0] if failed else ErrorCode.NONE

    def join(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        places: Iterable[TopicPartition],
    ) -> None:
        """Let all places of one Produce request join the transaction with one record of it;
        what speaks against it `check_produce` tells for each."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.busy or transaction.record.state.prepared:
            return
        self._add(
            transaction, producer_id, epoch, frozenset(places), lambda error: None, OWN_EPOCHS
        )

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        commit: bool,
        reply: IdentityReply,
        version: int = 0,
    ) -> None:
        """Commit or abort. A commit is answered once it is on the disk."""
        transaction = self.transactions.get(transactional_id)
        if transactional_id == "":
            reply(Identity(ErrorCode.INVALID_REQUEST))
        elif transaction is None:
            reply(Identity(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        else:
            self._end(transaction, producer_id, epoch, commit, reply, version)

    # time

    def next_due(self) -> float | None:
        """When `tick` has something to do next; None while nothing is open."""
        if self._ongoing or self._unmarked:
            return self._check_due
        return self._expiry_due if self.transactions else None

    def tick(self) -> None:
        """Abort what has been open too long, write markers that failed, forget old ids."""
        now = self._clock.monotonic()
        if now >= self._check_due:
            self._check_due = now + self._settings.check_interval_ms / 1000
            for transaction in list(self._unmarked.values()):
                self._write_markers(transaction)
            for transaction in list(self._ongoing.values()):
                record = transaction.record
                if not transaction.busy and now >= transaction.due:
                    log.info(
                        "transaction timed out",
                        extra={
                            "transactional_id": record.transactional_id,
                            "producer_id": record.producer_id,
                        },
                    )
                    self._abort_fenced(transaction, lambda identity: None)
        if now >= self._expiry_due:
            self._expiry_due = now + self._settings.expiry_interval_ms / 1000
            if self._may_expire():
                self._expire_ids()

    # start

    def restore(self, transaction: Transaction, open_at: Iterable[TopicPartition]) -> None:
        """Take over a transactional id read from the log, open in these partitions still;
        finishes a prepared one."""
        record = transaction.record
        self.transactions[record.transactional_id] = transaction
        if record.state is State.ONGOING:
            # How long it was open before the start only the wall clock tells; if that has
            # jumped, the transaction gets at most its whole time-out once more.
            open_ms = max(0, self._clock.wall_ms() - record.started_at)
            transaction.due = self._clock.monotonic() + (record.timeout_ms - open_ms) / 1000
            self._ongoing[record.transactional_id] = transaction
        elif record.state.prepared:
            transaction.busy = True
            transaction.unmarked = set(open_at)
            self._write_markers(transaction)

    def doubt(self, record: TransactionRecord, open_at: Iterable[TopicPartition]) -> None:
        """Leave a transaction alone whose end may have been decided by a record that is lost.

        It is neither committed nor aborted, and its id is refused, until somebody has ended
        it in all these partitions (WriteTxnMarkers).
        """
        self._doubtful[record.transactional_id] = (record, frozenset(open_at))

    def _in_doubt(self, transactional_id: str) -> bool:
        held = self._doubtful.get(transactional_id)
        if held is None:
            return False
        record, places = held
        for place, producer_id, _ in self._partitions.open_transactions():
            if producer_id == record.producer_id and place in places:
                return True
        del self._doubtful[transactional_id]
        self.restore(Transaction(record), ())
        return False

    def abort_all(self) -> None:
        """Abort every open transaction and fence its producer."""
        for transaction in list(self._ongoing.values()):
            self._abort_fenced(transaction, lambda identity: None)

    # init

    def _plain_producer(self) -> Identity:
        try:
            return Identity(ErrorCode.NONE, self._new_producer_id(), 0)
        except OSError:
            return Identity(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _init(
        self,
        transaction: Transaction,
        timeout_ms: int,
        expected_id: int,
        expected_epoch: int,
        reply: IdentityReply,
    ) -> None:
        def again() -> None:
            self._init(transaction, timeout_ms, expected_id, expected_epoch, reply)

        if transaction.busy:
            transaction.waiting.append(again)
            return
        record = transaction.record
        if not transitions.may_initialise(record, expected_id, expected_epoch):
            reply(Identity(ErrorCode.PRODUCER_FENCED))
            return
        if record.state is State.ONGOING:

            def aborted(identity: Identity) -> None:
                if identity.error is ErrorCode.NONE:
                    again()
                else:
                    reply(identity)

            self._abort_fenced(transaction, aborted)
            return
        try:
            rotate_to = self._new_producer_id() if record.exhausted else NO_PRODUCER_ID
        except OSError:
            reply(Identity(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        following = transitions.initialised(
            record, expected_id, expected_epoch, rotate_to, timeout_ms, self._clock.wall_ms()
        )

        def stored(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                reply(Identity(ErrorCode.NONE, following.producer_id, following.epoch))
            else:
                if record.epoch == NO_EPOCH and transaction.record is record:
                    self.transactions.pop(record.transactional_id, None)
                reply(Identity(error))

        self._store(transaction, following, stored)

    # add

    def _add(
        self,
        transaction: Transaction,
        producer_id: int,
        epoch: int,
        places: frozenset[TopicPartition],
        reply: ErrorReply,
        version: int,
    ) -> None:
        record = transaction.record
        if record.producer_id != producer_id:
            reply(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        elif record.epoch != epoch:
            reply(ErrorCode.PRODUCER_FENCED)
        elif transaction.busy:
            transaction.waiting.append(
                lambda: self._add(transaction, producer_id, epoch, places, reply, version)
            )
        elif record.state is State.ONGOING and places <= record.partitions:
            reply(ErrorCode.NONE)
        else:
            following = transitions.joined(record, places, version, self._clock.wall_ms())
            self._store(transaction, following, reply)

    # end

    def _end(
        self,
        transaction: Transaction,
        producer_id: int,
        epoch: int,
        commit: bool,
        reply: IdentityReply,
        version: int,
    ) -> None:
        record = transaction.record
        own_epochs = version >= OWN_EPOCHS
        repeat = own_epochs and transitions.repeats_an_end(record, producer_id, epoch)
        if transaction.busy:
            transaction.waiting.append(
                lambda: self._end(transaction, producer_id, epoch, commit, reply, version)
            )
            return
        if record.producer_id != producer_id and not repeat:
            reply(Identity(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            return
        if record.epoch != epoch and not repeat:
            reply(Identity(ErrorCode.PRODUCER_FENCED))
            return
        asked = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
        if record.state is State.ONGOING and not repeat:
            self._prepare(transaction, commit, version, reply)
        elif record.state is asked and (repeat or not own_epochs):
            reply(Identity(ErrorCode.NONE, record.producer_id, record.epoch))
        elif own_epochs and not commit and not repeat:
            # A transaction without a single record: only the epoch moves on.
            self._prepare(transaction, commit, version, reply)
        else:
            reply(Identity(ErrorCode.INVALID_TXN_STATE))

    def _abort_fenced(self, transaction: Transaction, reply: IdentityReply) -> None:
        """Abort in the name of nobody: the producer that began this is fenced."""
        prepared = transitions.aborted_by_nobody(transaction.record, self._clock.wall_ms())
        self._write_prepared(transaction, prepared, reply)

    def _prepare(
        self, transaction: Transaction, commit: bool, version: int, reply: IdentityReply
    ) -> None:
        record = transaction.record
        try:
            rotating = version >= OWN_EPOCHS and record.exhausted
            rotate_to = self._new_producer_id() if rotating else NO_PRODUCER_ID
        except OSError:
            reply(Identity(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        now = self._clock.wall_ms()
        prepared = transitions.prepared(record, commit, version, rotate_to, now)
        transaction.busy = True
        if commit and self._settings.flush:

            def synced(error: Exception | None) -> None:
                if error is None:
                    self._write_prepared(transaction, prepared, reply)
                else:
                    self._free(transaction)
                    reply(Identity(ErrorCode.COORDINATOR_NOT_AVAILABLE))

            self._partitions.sync(record.partitions, synced)
        else:
            self._write_prepared(transaction, prepared, reply)

    def _write_prepared(
        self, transaction: Transaction, prepared: TransactionRecord, reply: IdentityReply
    ) -> None:
        transaction.busy = True
        commit = prepared.state is State.PREPARE_COMMIT

        def stored(result: int | Exception) -> None:
            if isinstance(result, Exception):
                log.warning("transaction state not written", extra={"error": str(result)})
                self._free(transaction)
                reply(Identity(ErrorCode.COORDINATOR_NOT_AVAILABLE))
                return
            transaction.record = prepared
            transaction.unmarked = set(prepared.partitions)
            self._ongoing.pop(prepared.transactional_id, None)
            self._write_markers(transaction, reply)

        self._journal.append(
            self._home(prepared),
            [(records.encode_key(prepared.transactional_id), records.encode_value(prepared))],
            stored,
            durable=commit and self._settings.flush,
        )

    def _write_markers(
        self, transaction: Transaction, reply: IdentityReply = lambda identity: None
    ) -> None:
        """Tell every partition how it ended; what fails is tried again with the next tick."""
        prepared = transaction.record
        commit = prepared.state is State.PREPARE_COMMIT
        for place in sorted(transaction.unmarked):
            try:
                self._partitions.write_marker(place, prepared.producer_id, prepared.epoch, commit)
            except Exception as error:
                log.warning(
                    "marker not written",
                    extra={"topic": place[0], "partition": place[1], "error": str(error)},
                )
                if prepared.transactional_id not in self._unmarked:
                    transaction.waiting.insert(0, lambda: self._tell(transaction, reply))
                self._unmarked[prepared.transactional_id] = transaction
                return
            transaction.unmarked.discard(place)
        self._unmarked.pop(prepared.transactional_id, None)
        complete = transitions.completed(prepared, self._clock.wall_ms())
        if not (commit and self._settings.flush):
            self._complete(transaction, complete)
            reply(Identity(ErrorCode.NONE, complete.producer_id, complete.epoch))
            return
        # The decision is on the disk. Without epochs of their own, a start could take the
        # records of the next transaction for this one's: it must wait for all of this.
        own_epochs = prepared.version >= OWN_EPOCHS
        if own_epochs:
            transaction.record = complete
            self._free(transaction)

        def settled(error: Exception | None) -> None:
            if not own_epochs:
                self._complete(transaction, complete, durable=True)
            elif transaction.record is complete:
                self._complete(transaction, complete)

        reply(Identity(ErrorCode.NONE, complete.producer_id, complete.epoch))
        self._partitions.sync(prepared.partitions, settled)

    def _complete(
        self, transaction: Transaction, complete: TransactionRecord, *, durable: bool = False
    ) -> None:
        def stored(result: int | Exception) -> None:
            if isinstance(result, Exception):
                # The next start finds it prepared and completes it again: harmless.
                log.warning("transaction state not written", extra={"error": str(result)})
            transaction.record = complete
            if transaction.busy:
                self._free(transaction)

        self._journal.append(
            self._home(complete),
            [(records.encode_key(complete.transactional_id), records.encode_value(complete))],
            stored,
            durable=durable,
        )

    # pieces

    def _store(
        self, transaction: Transaction, following: TransactionRecord, done: ErrorReply
    ) -> None:
        """Write the next state, then let it count."""
        transaction.busy = True

        def stored(result: int | Exception) -> None:
            if isinstance(result, Exception):
                log.warning("transaction state not written", extra={"error": str(result)})
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            else:
                error = ErrorCode.NONE
                transaction.record = following
                if following.state is State.ONGOING:
                    if following.transactional_id not in self._ongoing:
                        transaction.due = self._clock.monotonic() + following.timeout_ms / 1000
                    self._ongoing[following.transactional_id] = transaction
                else:
                    self._ongoing.pop(following.transactional_id, None)
            done(error)
            self._free(transaction)

        self._journal.append(
            self._home(following),
            [(records.encode_key(following.transactional_id), records.encode_value(following))],
            stored,
        )

    @staticmethod
    def _tell(transaction: Transaction, reply: IdentityReply) -> None:
        record = transaction.record
        reply(Identity(ErrorCode.NONE, record.producer_id, record.epoch))

    @staticmethod
    def _free(transaction: Transaction) -> None:
        """Let those in line have their turn, in the order they came."""
        transaction.busy = False
        waiting, transaction.waiting = transaction.waiting, []
        for call in waiting:
            call()

    def _home(self, record: TransactionRecord) -> int:
        return partition_of(record.transactional_id, self._journal.partitions)

    def _expire_ids(self) -> None:
        before = self._clock.wall_ms() - self._settings.id_expiration_ms
        for transactional_id, transaction in list(self.transactions.items()):
            record = transaction.record
            idle = record.state is State.EMPTY or record.state.complete
            if idle and not transaction.busy and record.updated_at < before:
                del self.transactions[transactional_id]
                self._journal.append(
                    self._home(record),
                    [(records.encode_key(transactional_id), None)],
                    lambda result: None,
                )
