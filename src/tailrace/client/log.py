"""`tr.connect` and `tr.open`: a log somewhere else, or in this process, one interface.

log = tr.connect("localhost:9092")      # any broker that speaks Kafka's protocol
log = tr.open("data/")                  # in this process, no socket; one process at a time

log.create_topic("clicks", partitions=3, config={"cleanup.policy": "compact"})
with log.producer() as producer: …
for record in log.read("clicks"): …
with log.consumer(group="g", topics=["clicks"]) as consumer: …
"""

from __future__ import annotations

import difflib
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tailrace.client.admin import Admin
from tailrace.client.cluster import Cluster, TopicInformation, parse_addresses
from tailrace.client.connection import Opener, open_socket
from tailrace.client.consumer import Consumer, RebalanceListener
from tailrace.client.deserializers import Deserializer, record_decoder
from tailrace.client.errors import ClientClosedError
from tailrace.client.local_group import LocalGroups
from tailrace.client.producer import Outlet, Partitioner, Producer, ProducerSettings
from tailrace.client.reader import Start, read_records
from tailrace.client.record import LogRecord, Place
from tailrace.client.serializers import Serializer, plain
from tailrace.client.source import ConsumerSettings, Source
from tailrace.client.transactional import TransactionalProducer
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.security import LogAddress, Security, make_security

if TYPE_CHECKING:
    from tailrace.broker.embedded import BrokerThread
    from tailrace.client.fetcher import Fetcher
    from tailrace.client.queue import Queue

IN_PROCESS = "in-process:0"
T = TypeVar("T")


class Log(ABC):
    """A log. Safe from several threads; what it makes is not, unless it says so."""

    def __init__(self, timeout: float = 60.0, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._timeout = timeout
        self._admin_lock = threading.Lock()
        self._admin: Admin | None = None
        self._closed = False

    # Topics --------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = -1, config: Mapping[str, object] | None = None
    ) -> None:
        """Make a topic (−1: the log's default number of partitions) and wait for it.

        Raises TopicExistsError, RequestError.
        """
        with self._administering() as admin:
            admin.create_topic(name, partitions, _texts(config))

    def ensure_topic(
        self, name: str, partitions: int = -1, config: Mapping[str, object] | None = None
    ) -> bool:
        """Make a topic unless it exists; True if it was made now."""
        with self._administering() as admin:
            return admin.ensure_topic(name, partitions, _texts(config))

    def delete_topic(self, name: str) -> None:
        with self._administering() as admin:
            admin.delete_topic(name)

    def topics(self, *, internal: bool = False) -> list[str]:
        """Names of all topics; those the log keeps for itself only if asked for."""
        with self._administering() as admin:
            return [topic.name for topic in admin.list_topics(internal=internal)]

    def topic(self, name: str) -> TopicInformation | None:
        """What is known of a topic; None if it does not exist."""
        with self._administering() as admin:
            return admin.describe_topic(name)

    def topic_config(self, name: str) -> dict[str, str | None]:
        """Every setting of a topic, by Kafka's name."""
        with self._administering() as admin:
            return {key: entry.value for key, entry in admin.topic_config(name).items()}

    def alter_topic(self, name: str, config: Mapping[str, object | None]) -> None:
        """Change settings of a topic; None puts one back to its default."""
        with self._administering() as admin:
            admin.alter_topic_config(
                name, {key: None if value is None else str(value) for key, value in config.items()}
            )

    def end_offsets(self, topic: str, isolation: str = "read_committed") -> dict[int, int]:
        """The offset behind the last record of every partition."""
        with self._administering() as admin:
            return admin.topic_end_offsets(topic, isolation)

    # Reading and writing -------------------------------------------------------

    @overload
    def producer(
        self,
        transactional_id: None = None,
        *,
        key_serializer: Serializer = plain,
        value_serializer: Serializer = plain,
        partitioner: Partitioner | None = None,
        **settings: Any,
    ) -> Producer: ...

    @overload
    def producer(
        self,
        transactional_id: str,
        *,
        key_serializer: Serializer = plain,
        value_serializer: Serializer = plain,
        partitioner: Partitioner | None = None,
        **settings: Any,
    ) -> TransactionalProducer: ...

    def producer(
        self,
        transactional_id: str | None = None,
        *,
        key_serializer: Serializer = plain,
        value_serializer: Serializer = plain,
        partitioner: Partitioner | None = None,
        **settings: Any,
    ) -> Producer | TransactionalProducer:
        """A producer; with a transactional id, one whose records become visible together.
        `settings` are those of ProducerSettings."""
        self._check()
        chosen = _chosen(ProducerSettings, settings, "producer")
        if transactional_id is None:
            return Producer(
                self._outlet(chosen),
                chosen,
                key_serializer=key_serializer,
                value_serializer=value_serializer,
                partitioner=partitioner,
                clock=self._clock,
            )
        return TransactionalProducer(
            TransactionalWriter(
                self._bootstrap(),
                transactional_id,
                transaction_timeout=timedelta(milliseconds=chosen.transaction_timeout_ms),
                timeout=timedelta(milliseconds=chosen.delivery_timeout_ms),
                compression=chosen.compression_type,
                batch_bytes=min(chosen.batch_size, 900_000),
                buffer_bytes=chosen.buffer_memory,
                opener=self._opener(),
                clock=self._clock,
            ),
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partitioner=partitioner,
            clock=self._clock,
        )

    def consumer(
        self,
        group: str | None = None,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        partitions: Iterable[Place] | Mapping[Place, int | None] | None = None,
        listener: RebalanceListener | None = None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        **settings: Any,
    ) -> Consumer:
        """A group member on topics or a pattern, or a reader of given partitions
        (`{(topic, partition): offset}`; None: from the stored offset or the reset).
        Without deserializers records hold bytes. `settings` are those of
        ConsumerSettings."""
        self._check()
        chosen = _chosen(ConsumerSettings, settings, "consumer")
        source = self._source(group, chosen)
        try:
            return Consumer(
                source,
                chosen,
                group=group,
                topics=topics,
                pattern=pattern,
                partitions=partitions,
                listener=listener,
                decode=record_decoder(key_deserializer, value_deserializer),
                clock=self._clock,
            )
        except BaseException:
            source.close()
            raise

    def queue(
        self,
        topic: str | Sequence[str],
        group: str,
        *,
        max_records: int = 100,
        start: str = "earliest",
    ) -> Queue:
        """A topic as a work queue: members of the group share single records.

        `start` is where a new group begins. Needs a log with share groups.
        """
        self._check()
        from tailrace.client.queue import Queue

        topics = [topic] if isinstance(topic, str) else list(topic)
        cluster, heartbeats = self._wire(), self._wire()
        try:
            return Queue(
                cluster,
                heartbeats,
                topics,
                group,
                max_records=max_records,
                start=start,
                clock=self._clock,
            )
        except BaseException:
            cluster.close()
            heartbeats.close()
            raise

    def read(
        self,
        topic: str,
        start: Start = "earliest",
        follow: bool = False,
        *,
        partitions: Sequence[int] | None = None,
        isolation_level: str = "read_committed",
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> Iterator[LogRecord]:
        """The records of a topic, in order within each partition.

        `start` is "earliest", "latest", an offset, a time (aware datetime, ISO 8601 text),
        or a mapping from partition to offset. Without `follow` it ends at what is there
        when reading begins; with it, never.
        """
        self._check()
        settings = ConsumerSettings(isolation_level=isolation_level, enable_auto_commit=False)
        decode = record_decoder(key_deserializer, value_deserializer)
        return read_records(self._source(None, settings), topic, start, follow, partitions, decode)

    # Our own wire --------------------------------------------------------------

    def cluster(self, timeout: float | None = None) -> Cluster:
        """Connections of its own, for what this interface has no call for. Close them."""
        self._check()
        return Cluster(
            self._bootstrap(),
            timeout=self._timeout if timeout is None else timeout,
            opener=self._opener(),
            clock=self._clock,
        )

    def fetcher(self, *, fetch_bytes: int, timeout: float = 60.0) -> Fetcher:
        """A light reader of single partitions. Close it."""
        from tailrace.client.fetcher import Fetcher

        self._check()
        return Fetcher(
            self._bootstrap(),
            fetch_bytes=fetch_bytes,
            timeout=timeout,
            opener=self._opener(),
            clock=self._clock,
        )

    def transactional_writer(
        self, transactional_id: str, *, timeout: float = 60.0, batch_bytes: int = 900_000
    ) -> TransactionalWriter:
        """A writer that is not initialised yet. Close it."""
        self._check()
        return TransactionalWriter(
            self._bootstrap(),
            transactional_id,
            timeout=timedelta(seconds=timeout),
            batch_bytes=batch_bytes,
            opener=self._opener(),
            clock=self._clock,
        )

    @property
    def clock(self) -> Clock:
        return self._clock

    # The end -------------------------------------------------------------------

    def close(self) -> None:
        """Let go. What this log made must be closed before."""
        self._closed = True
        if self._admin is not None:
            self._admin.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What the two kinds differ in ----------------------------------------------

    @abstractmethod
    def _bootstrap(self) -> str: ...

    @abstractmethod
    def _opener(self) -> Opener: ...

    @abstractmethod
    def _source(self, group: str | None, settings: ConsumerSettings) -> Source: ...

    @abstractmethod
    def _outlet(self, settings: ProducerSettings) -> Outlet: ...

    def _wire(self) -> Cluster:
        """A client of its own on our wire."""
        return Cluster(
            self._bootstrap(), timeout=self._timeout, opener=self._opener(), clock=self._clock
        )

    def _check(self) -> None:
        if self._closed:
            raise ClientClosedError("the log is closed")

    def _administering(self) -> _Administering:
        self._check()
        return _Administering(self)


class _Administering:
    """One thread at a time on the log's own admin connection."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> Admin:
        log = self._log
        log._admin_lock.acquire()
        if log._admin is None:
            log._admin = Admin(
                log._bootstrap(), timeout=log._timeout, opener=log._opener(), clock=log._clock
            )
        return log._admin

    def __exit__(self, *_: object) -> None:
        self._log._admin_lock.release()


class RemoteLog(Log):
    """A log behind Kafka's protocol; consumers and plain producers are librdkafka's."""

    def __init__(
        self,
        address: str,
        settings: Mapping[str, object] | None = None,
        timeout: float = 60.0,
        clock: Clock = SYSTEM,
    ) -> None:
        super().__init__(timeout, clock)
        self.address = address
        self._settings = dict(settings or {})

    def __repr__(self) -> str:
        return f"tr.connect({self.address!r})"

    def _bootstrap(self) -> str:
        return self.address

    def _opener(self) -> Opener:
        return open_socket

    def _source(self, group: str | None, settings: ConsumerSettings) -> Source:
        from tailrace.client.kafka_source import KafkaSource

        return KafkaSource(self.address, group, settings, self._settings, self._clock)

    def _outlet(self, settings: ProducerSettings) -> Outlet:
        from tailrace.client.kafka_outlet import KafkaOutlet

        return KafkaOutlet(self.address, settings, self._settings, self._clock)


class LocalLog(Log):
    """A log in this process. Its housekeeping and coordinators are the broker's, on a
    thread, reached by socket pairs instead of a port."""

    def __init__(
        self,
        directory: str | Path,
        settings: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        from tailrace.broker.embedded import BrokerThread

        super().__init__(clock=clock)
        self.directory = Path(directory)
        self._broker: BrokerThread = BrokerThread(
            self.directory, host=None, settings=settings, clock=clock
        )
        self._groups = LocalGroups(clock)

    def __repr__(self) -> str:
        return f"tr.open({str(self.directory)!r})"

    def close(self) -> None:
        """Stop cleanly: everything written is on disk, and another process may open it."""
        if not self._closed:
            super().close()
            self._broker.stop()

    def _bootstrap(self) -> str:
        return IN_PROCESS

    def _opener(self) -> Opener:
        def connect(host: str, port: int, timeout: float) -> socket.socket:
            if self._closed:
                raise ConnectionRefusedError("the log is closed")
            ours, theirs = socket.socketpair()
            ours.settimeout(timeout)
            self._broker.broker.adopt(theirs)
            return ours

        return connect

    def _source(self, group: str | None, settings: ConsumerSettings) -> Source:
        from tailrace.client.wire_source import WireSource

        return WireSource(self._wire(), self._groups, group, settings, self._clock)

    def _outlet(self, settings: ProducerSettings) -> Outlet:
        from tailrace.client.wire_outlet import WireOutlet

        return WireOutlet(self._wire(), self._wire(), settings, self._clock)


def connect(
    address: str,
    *,
    security: Security | Mapping[str, str | bool | None] | None = None,
    timeout: float = 60.0,
    **settings: object,
) -> RemoteLog:
    """A log behind Kafka's protocol, at `HOST:PORT[,HOST:PORT…]`.

    Nothing is asked of it yet; `timeout` is how many seconds a call about topics keeps
    trying. `security` is what `[log.security]` says in a project: `{"mechanism":
    "SCRAM-SHA-512", "username": "shop", "password": …, "ca": "ca.pem"}`. Other `settings` go to
    librdkafka as they are, with underscores for dots: `socket_timeout_ms=5000`.
    """
    parse_addresses(address)
    if security is not None:
        made = security if isinstance(security, Security) else make_security(security)
        address = LogAddress(address, made)
    names = {name.replace("_", "."): value for name, value in settings.items()}
    return RemoteLog(address, names, timeout)


def open(directory: str | Path, **settings: object) -> LocalLog:
    """The log in a directory, made if it does not exist, in this process.

    Raises DirectoryLockedError, which says who, when another process has it open.
    `settings` are the broker's, with underscores for dots: `log_segment_bytes=…`.
    """
    return LocalLog(
        directory, {name.replace("_", "."): str(value) for name, value in settings.items()}
    )


def _chosen(kind: type[T], given: Mapping[str, Any], what: str) -> T:
    """The settings given over the defaults; a name that does not exist is told."""
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name.replace(".", "_"), known, 1)
            raise UsageError(
                f'a {what} has no setting "{name}"',
                hint=f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}",
            )
    return kind(**given)


def _texts(config: Mapping[str, object] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (config or {}).items()}
