"""The coordinators of a running broker: wires the state machines to log, clock and loop."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tailrace.broker.groups.consumer_membership import ConsumerSettings
from tailrace.broker.groups.coordinator import GroupCoordinator, GroupSettings
from tailrace.broker.groups.membership import MembershipSettings
from tailrace.broker.groups.offsets import OffsetSettings
from tailrace.broker.handlers.consumer_groups import ConsumerGroupRequests
from tailrace.broker.handlers.group_offsets import OffsetRequests
from tailrace.broker.handlers.groups import GROUP, GroupRequests
from tailrace.broker.handlers.transactions import TransactionRequests
from tailrace.broker.internal_topic import InternalTopic
from tailrace.broker.transactions.coordinator import TransactionCoordinator, TransactionSettings
from tailrace.broker.transactions.recovery import load
from tailrace.broker.transactions.state import TopicPartition
from tailrace.errors import TailraceError
from tailrace.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection
    from tailrace.broker.loop import Loop
    from tailrace.broker.router import Route, Timer
    from tailrace.broker.server import Broker
    from tailrace.broker.settings import BrokerSettings
    from tailrace.log.partition import Partition
    from tailrace.log.store import Store

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
TICK_SECONDS = 0.1
COORDINATOR_EPOCH = 0


class Topics:
    """Which topics and partitions there are, by name and by id."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def has(self, name: str, index: int) -> bool:
        topic = self._store.topics.get(name)
        return topic is not None and 0 <= index < len(topic.partitions)

    def partition(self, name: str, index: int) -> Partition | None:
        return self._store.topics[name].partitions[index] if self.has(name, index) else None

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self._store.topics_by_id.get(uuid.UUID(bytes=topic_id))
        return None if topic is None else topic.name

    def id_of(self, name: str) -> bytes | None:
        topic = self._store.topics.get(name)
        return None if topic is None else topic.id.bytes

    def names(self) -> Iterable[str]:
        """All topics but internal ones."""
        return [name for name, topic in self._store.topics.items() if not topic.internal]

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        """Id and number of partitions."""
        topic = self._store.topics.get(name)
        return None if topic is None else (topic.id.bytes, len(topic.partitions))

    def all_partitions(self) -> Iterable[Partition]:
        for topic in list(self._store.topics.values()):
            yield from topic.partitions


class Coordination:
    """Groups and transactions of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = broker.settings
        self.topics = Topics(broker.store)
        self.rebalance_seconds: dict[str, float] = {}
        """Time the members of each group have stood still in rebalances."""
        self.offsets_topic = InternalTopic(
            broker,
            OFFSETS_TOPIC,
            settings.integer("offsets.topic.num.partitions"),
            {
                "cleanup.policy": "compact",
                "segment.bytes": settings.text("offsets.topic.segment.bytes"),
            },
        )
        self.transactions_topic = InternalTopic(
            broker,
            TRANSACTIONS_TOPIC,
            settings.integer("transaction.state.log.num.partitions"),
            {
                "cleanup.policy": "compact",
                "segment.bytes": settings.text("transaction.state.log.segment.bytes"),
            },
        )
        self.groups = GroupCoordinator(
            group_settings(settings),
            broker.clock,
            self.offsets_topic,
            catalog=self.topics,
            stood_still=self._note_rebalance,
            may_expire=self._clock_is_trusted,
        )
        self.groups.consumers.guarded = broker.authorizer is not None
        self._world = LogPartitions(broker, self.topics, self.groups)
        self.transactions = TransactionCoordinator(
            transaction_settings(settings),
            broker.clock,
            self.transactions_topic,
            self._world,
            broker.next_producer_id,
            may_expire=self._clock_is_trusted,
        )
        self._timer: Timer | None = None
        load(
            self.transactions,
            self.transactions_topic,
            self._world,
            power_was_cut=any(
                directory.clean is None and not directory.same_boot
                for directory in broker.store.directories
            ),
        )
        broker.produce.gate = Gate(self)
        broker.features.update({"transaction.version": 2, "group.version": 1})
        self.poke()

    def routes(self) -> Iterable[Route]:
        """Every request the coordinators serve."""
        yield from GroupRequests(self).routes()
        yield from OffsetRequests(self).routes()
        yield from ConsumerGroupRequests(self).routes()
        yield from TransactionRequests(self).routes()

    def change_settings(self) -> None:
        """The broker's settings were changed while it runs."""
        self.groups.change_settings(group_settings(self._broker.settings))
        self.transactions.change_settings(transaction_settings(self._broker.settings))

    def _clock_is_trusted(self) -> bool:
        return not self._broker.store.clock_doubtful

    def _note_rebalance(self, group_id: str, seconds: float) -> None:
        self.rebalance_seconds[group_id] = self.rebalance_seconds.get(group_id, 0.0) + seconds

    def share_groups(self) -> dict[str, str]:
        """State by name of the share groups; they are loaded only if there are any."""
        return self._broker.shares.shares.groups() if self._broker.has_shares else {}

    def delete_share_group(self, name: str) -> ErrorCode:
        return self._broker.shares.shares.delete(name)

    def sight_of(self, connection: Connection) -> Callable[[str], bool] | None:
        """Which topics a client may know of, for as long as its group remembers it; None
        without an authorizer."""
        authorizer = self._broker.authorizer
        return None if authorizer is None else authorizer.sight_of(connection)

    @property
    def loop(self) -> Loop:
        """The loop that serves requests."""
        return self._broker.loop

    @property
    def node_id(self) -> int:
        return self._broker.node_id

    def told(self, connection: Connection) -> tuple[str, int]:
        """Where the client finds us."""
        return self._broker.told(connection)

    @staticmethod
    def new_id() -> str:
        """A name for a member that has none."""
        return str(uuid.uuid4())

    def wall_ms(self) -> int:
        """The broker's time."""
        return self._broker.clock.wall_ms()

    @property
    def transactional(self) -> bool:
        """Whether transactions are coordinated here."""
        return True

    def write_marker(
        self,
        place: TopicPartition,
        producer_id: int,
        epoch: int,
        commit: bool,
        coordinator_epoch: int,
    ) -> ErrorCode:
        """End a transaction in one partition on behalf of an administrator."""
        partition = self.topics.partition(*place)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            partition.append_marker(producer_id, epoch, commit, coordinator_epoch)
        except TailraceError as error:
            return ErrorCode(getattr(error, "kafka_code", ErrorCode.UNKNOWN_SERVER_ERROR))
        self._broker.appended(partition)
        if place[0] == OFFSETS_TOPIC:
            self.groups.end_transaction(place[1], producer_id, commit)
        return ErrorCode.NONE

    def prepare(self, key_type: int) -> None:
        """Have the internal topic of a kind of coordinator; raises if it cannot be made."""
        (self.offsets_topic if key_type == GROUP else self.transactions_topic).create()

    def poke(self) -> None:
        """See to it that the coordinators are called when something is due."""
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        due = self.groups.next_due()
        transactions_due = self.transactions.next_due()
        if transactions_due is not None:
            due = min(due, transactions_due)
        wait = max(due - self._broker.clock.monotonic(), 0.0)
        # Requests move deadlines forward without telling: look at least this often.
        self._timer = self._broker.call_later(min(wait, TICK_SECONDS), self._tick)

    def _tick(self) -> None:
        self._timer = None
        try:
            self.groups.tick()
            self.transactions.tick()
        finally:
            self._arm()


class LogPartitions:
    """The broker's partitions as the transaction coordinator touches them."""

    def __init__(self, broker: Broker, topics: Topics, groups: GroupCoordinator) -> None:
        self._broker = broker
        self._topics = topics
        self._groups = groups

    def sync(
        self, wanted: Iterable[TopicPartition], done: Callable[[Exception | None], None]
    ) -> None:
        found = [
            partition
            for place in wanted
            if (partition := self._topics.partition(*place)) is not None
        ]
        self._broker.when_all_durable(found, done)

    def sync_now(self, wanted: Iterable[TopicPartition]) -> None:
        for place in set(wanted):
            partition = self._topics.partition(*place)
            if partition is not None:
                partition.sync()

    def write_marker(
        self, place: TopicPartition, producer_id: int, epoch: int, commit: bool
    ) -> None:
        partition = self._topics.partition(*place)
        if partition is not None:
            partition.append_marker(producer_id, epoch, commit, COORDINATOR_EPOCH)
            if partition.needs_sync:
                self._broker.when_durable(partition, lambda error: None)
            self._broker.appended(partition)
        if place[0] == OFFSETS_TOPIC:
            self._groups.end_transaction(place[1], producer_id, commit)

    def open_transactions(self) -> Iterable[tuple[TopicPartition, int, int]]:
        for partition in self._topics.all_partitions():
            producers = partition.producers
            for producer_id in producers.open:
                place = (partition.topic, partition.index)
                yield place, producer_id, producers.by_id[producer_id].epoch

    def newest_epochs(self) -> dict[int, int]:
        newest: dict[int, int] = {}
        for partition in self._topics.all_partitions():
            for producer_id, producer in partition.producers.by_id.items():
                newest[producer_id] = max(producer.epoch, newest.get(producer_id, producer.epoch))
        return newest


class Gate:
    """What Produce asks before it lets a transactional batch in."""

    def __init__(self, coordination: Coordination) -> None:
        self._transactions = coordination.transactions

    def check_produce(
        self,
        transactional_id: str | None,
        producer_id: int,
        producer_epoch: int,
        partition: Partition,
        *,
        implicit: bool,
        abortable: bool,
    ) -> int:
        return self._transactions.check_produce(
            transactional_id,
            producer_id,
            producer_epoch,
            (partition.topic, partition.index),
            implicit=implicit,
            abortable=abortable,
        )

    def join(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[Partition],
    ) -> None:
        places = [(partition.topic, partition.index) for partition in partitions]
        self._transactions.join(transactional_id, producer_id, producer_epoch, places)


def group_settings(settings: BrokerSettings) -> GroupSettings:
    """What the broker's settings say about groups."""
    return GroupSettings(
        MembershipSettings(
            min_session_timeout_ms=settings.integer("group.min.session.timeout.ms"),
            max_session_timeout_ms=settings.integer("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=settings.integer("group.initial.rebalance.delay.ms"),
            max_size=settings.integer("group.max.size"),
        ),
        OffsetSettings(
            retention_ms=settings.integer("offsets.retention.minutes") * 60_000,
            check_interval_ms=settings.integer("offsets.retention.check.interval.ms"),
            metadata_max_bytes=settings.integer("offset.metadata.max.bytes"),
        ),
        ConsumerSettings(
            session_timeout_ms=settings.integer("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms=settings.integer("group.consumer.heartbeat.interval.ms"),
            max_size=settings.integer("group.consumer.max.size"),
            migration=settings.text("group.consumer.migration.policy").lower(),
        ),
    )


def transaction_settings(settings: BrokerSettings) -> TransactionSettings:
    """What the broker's settings say about transactions."""
    return TransactionSettings(
        max_timeout_ms=settings.integer("transaction.max.timeout.ms"),
        flush=settings.boolean("transaction.flush"),
        id_expiration_ms=settings.integer("transactional.id.expiration.ms"),
        check_interval_ms=settings.integer(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
    )
