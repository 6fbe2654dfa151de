"""What a client knows of a cluster: brokers, leaders, coordinators, and how to try again.

Metadata is asked for when it is needed and forgotten when an answer shows it to be
wrong. Not safe for use from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tailrace.client.connection import Connection, Opener, open_socket, secured
from tailrace.client.errors import (
    BrokerUnavailableError,
    ClientClosedError,
    RequestError,
    RequestTimeoutError,
    UnknownTopicError,
)
from tailrace.client.identity import identify
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.security import security_of
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tailrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

METADATA = APIS[ApiKey.METADATA]
FIND_COORDINATOR = APIS[ApiKey.FIND_COORDINATOR]
GROUP, TRANSACTION = 0, 1

COORDINATOR_MOVED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicInformation:
    """A topic as the cluster describes it; `leaders[i]` is −1 while there is none."""

    name: str
    id: bytes
    leaders: tuple[int, ...]
    internal: bool = False


class TryAgain(Exception):
    """Raised inside `Cluster.retry`: the answer was not final."""

    def __init__(self, error_code: int, pause: float = 0.02) -> None:
        self.error_code = error_code
        self.pause = pause


def parse_addresses(bootstrap: str) -> list[tuple[str, int]]:
    """`host:port,host:port` as pairs. Raises UsageError."""
    found = []
    for address in bootstrap.split(","):
        host, colon, port = address.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isdigit():
            raise UsageError(f'"{address.strip()}" is not an address', hint="use HOST:PORT")
        found.append((host, int(port)))
    return found


class Cluster:
    """Connections to the brokers behind `bootstrap`, made when first needed."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "tailrace",
        timeout: float = 60.0,
        request_timeout: float = 30.0,
        opener: Opener = open_socket,
        clock: Clock = SYSTEM,
    ) -> None:
        self._security = security_of(bootstrap)
        tls = self._security is not None and self._security.tls
        self._opener = secured(opener, self._security) if self._security and tls else opener
        self.bootstrap = bootstrap
        self.timeout = timeout
        self.clock = clock
        self.closed = False
        self._addresses = parse_addresses(bootstrap)
        self._client_id = client_id.encode()
        self._request_timeout = request_timeout
        self._brokers: dict[int, tuple[str, int]] = {}
        self._topics: dict[str, TopicInformation] = {}
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}
        self._by_address: dict[tuple[str, int], Connection] = {}

    # Connections ---------------------------------------------------------------

    def any(self) -> Connection:
        """A connection to some broker."""
        for connection in self._by_address.values():
            if not connection.closed:
                return connection
        last: BrokerUnavailableError | None = None
        for address in [*self._addresses, *self._brokers.values()]:
            try:
                return self._connect(address)
            except BrokerUnavailableError as error:
                last = error
        assert last is not None
        raise BrokerUnavailableError(
            f"no broker answers at {self.bootstrap}",
            detail=last.detail,
            hint="start one with `tailrace broker start`, or correct the address",
        ) from last

    def broker(self, node_id: int) -> Connection:
        """A connection to the broker with this id."""
        return self._connect(self._address(node_id))

    def open(self, node_id: int) -> Connection:
        """A connection of the caller's own to the broker with this id: requests may be on their
        way over it while the cluster is asked for something else."""
        return self._open(self._address(node_id))

    def _address(self, node_id: int) -> tuple[str, int]:
        address = self._brokers.get(node_id)
        if address is None:
            self.refresh([])
            address = self._brokers.get(node_id)
            if address is None:
                raise BrokerUnavailableError(f"broker {node_id} is not in the cluster")
        return address

    def _connect(self, address: tuple[str, int]) -> Connection:
        if self.closed:
            raise ClientClosedError("the client is closed")
        connection = self._by_address.get(address)
        if connection is None or connection.closed:
            connection = self._by_address[address] = self._open(address)
        return connection

    def _open(self, address: tuple[str, int]) -> Connection:
        connection = Connection(
            *address,
            timeout=self._request_timeout,
            client_id=self._client_id,
            opener=self._opener,
            security=self._security,
        )
        try:
            identify(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        self.closed = True
        for connection in self._by_address.values():
            connection.close()
        self._by_address.clear()

    # Metadata ------------------------------------------------------------------

    def refresh(
        self, topics: Iterable[str] | None, *, create: bool = False
    ) -> list[MetadataResponseTopic]:
        """Ask for these topics (None: all); what was answered, errors and all."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        response = self.any().request(
            METADATA, MetadataRequest(topics=wanted, allow_auto_topic_creation=create), 12
        )
        assert isinstance(response, MetadataResponse)
        self._brokers = {each.node_id: (each.host, each.port) for each in response.brokers}
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code != ErrorCode.NONE:
                self._topics.pop(name, None)
                continue
            leaders = [-1] * len(topic.partitions)
            for partition in topic.partitions:
                if partition.partition_index < len(leaders):
                    leaders[partition.partition_index] = partition.leader_id
            self._topics[name] = TopicInformation(
                name, topic.topic_id, tuple(leaders), topic.is_internal
            )
        return response.topics

    def topic(self, name: str, *, create: bool = False) -> TopicInformation:
        """The topic, asked for once. Raises UnknownTopicError.

        With `create`, a topic that does not exist is made if the log makes topics by
        itself, and waited for.
        """
        known = self._topics.get(name)
        if known is not None:
            return known

        def ask() -> TopicInformation:
            (answer,) = self.refresh([name], create=create)
            if answer.error_code == ErrorCode.NONE:
                return self._topics[name]
            if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not create:
                raise UnknownTopicError(
                    f'topic "{name}" does not exist', hint="`tailrace topic list` shows what does"
                )
            if ErrorCode(answer.error_code).retriable:
                raise TryAgain(answer.error_code)
            raise RequestError.of(answer.error_code, f'topic "{name}"')

        return self.retry(ask, f'finding topic "{name}"', timeout=10.0 if create else None)

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition. Raises UnknownTopicError; TryAgain while none does."""
        leaders = self.topic(topic).leaders
        if not 0 <= partition < len(leaders):
            self.forget(topic)
            leaders = self.topic(topic).leaders
            if not 0 <= partition < len(leaders):
                raise UnknownTopicError(
                    f'topic "{topic}" has no partition {partition}',
                    detail=f"it has {len(leaders)}",
                )
        if leaders[partition] < 0:
            self.forget(topic)
            raise TryAgain(ErrorCode.LEADER_NOT_AVAILABLE)
        return leaders[partition]

    def forget(self, topic: str) -> None:
        """What is known of a topic was wrong."""
        self._topics.pop(topic, None)

    # Coordinators --------------------------------------------------------------

    def coordinator(self, key: str, kind: int) -> Connection:
        """A connection to the coordinator of a group or a transactional id.

        Raises TryAgain while there is none.
        """
        address = self._coordinators.get((kind, key))
        if address is None:
            connection = self.any()
            version = connection.version(FIND_COORDINATOR, 4)
            request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
            response = connection.request(FIND_COORDINATOR, request, version)
            assert isinstance(response, FindCoordinatorResponse)
            found = response.coordinators[0] if version >= 4 else response
            if found.error_code != ErrorCode.NONE:
                if ErrorCode(found.error_code).retriable:
                    raise TryAgain(found.error_code)
                raise RequestError.of(found.error_code, f'finding the coordinator of "{key}"')
            address = self._coordinators[(kind, key)] = (found.host, found.port)
        try:
            return self._connect(address)
        except BrokerUnavailableError:
            self.forget_coordinator(key, kind)
            raise

    def forget_coordinator(self, key: str, kind: int) -> None:
        self._coordinators.pop((kind, key), None)

    # Trying again --------------------------------------------------------------

    def attempts(self, action: str, timeout: float | None = None) -> Iterator[Attempt]:
        """Attempts until the time is up; then raises RequestTimeoutError."""
        until = self.clock.monotonic() + (self.timeout if timeout is None else timeout)
        attempt = Attempt()
        while True:
            yield attempt
            if self.clock.monotonic() + attempt.pause > until:
                raise RequestTimeoutError(
                    f"{action} did not succeed in time",
                    detail=attempt.reason,
                ) from attempt.error
            self.clock.sleep(attempt.pause)

    def retry(self, work: Callable[[], T], action: str, timeout: float | None = None) -> T:
        """`work()`, again and again while it raises TryAgain or loses its connection."""
        for attempt in self.attempts(action, timeout):
            try:
                return work()
            except TryAgain as again:
                attempt.failed(again, again.pause)
            except BrokerUnavailableError as lost:
                attempt.failed(lost, min(0.5, attempt.pause * 2 or 0.02))
        raise AssertionError("unreachable")


class Attempt:
    """One try of several, and why the last one failed."""

    __slots__ = ("error", "pause", "reason")

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.reason = ""
        self.pause = 0.0

    def failed(self, error: BaseException, pause: float) -> None:
        self.error = error
        self.pause = pause
        if isinstance(error, TryAgain):
            try:
                self.reason = ErrorCode(error.error_code).message
            except ValueError:
                self.reason = f"Kafka error {error.error_code}"
        else:
            self.reason = str(error)
