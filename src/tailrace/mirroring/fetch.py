"""One fetch for all partitions of a leader, on its way while what came before is written.

    fetches.begin({("orders", 0): 17, …})     # a request to every leader that owes no answer
    for place, answer in fetches.receive(0.5):  # of the leaders that have answered by then

A leader answers when there is something, or after `WAIT`: an idle mirror of a thousand partitions
costs two requests a second. What a leader answers with an error is asked again; an offset that it
does not hold is given out as the error.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, Mapping

from tailrace.client.admin import Place
from tailrace.client.cluster import Cluster, TryAgain
from tailrace.client.connection import Connection
from tailrace.client.errors import (
    BrokerUnavailableError,
    OffsetOutOfRangeError,
    RequestError,
    UnknownTopicError,
)
from tailrace.client.fetcher import FETCH, MOVED, Answer
from tailrace.clock import SYSTEM, Clock
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

WAIT = 0.5
PAUSE = 0.05
PARTITION_BYTES = 4 * 1024 * 1024
READ_COMMITTED = 1


class Fetches:
    """Owns its connections: nothing else may be asked over them. One thread only."""

    def __init__(
        self, bootstrap: str, *, most_bytes: int, timeout: float = 60.0, clock: Clock = SYSTEM
    ) -> None:
        self._cluster = Cluster(bootstrap, timeout=timeout, clock=clock)
        self._most_bytes = most_bytes
        self._clock = clock
        self._connections: dict[int, Connection] = {}
        self._asked: dict[int, tuple[Connection, dict[Place, int]]] = {}
        self._not_before: dict[int, float] = {}
        self._turn = 0
        self._lost_since: float | None = None
        self._timeout = timeout

    def close(self) -> None:
        self._asked.clear()
        for connection in self._connections.values():
            connection.close()
        self._cluster.close()

    def reset(self) -> None:
        """Forget what is on its way."""
        for connection, _ in self._asked.values():
            connection.close()
        self._asked.clear()

    def begin(self, wanted: Mapping[Place, int]) -> None:
        """Ask every leader that owes no answer for these partitions, from these offsets on.

        Raises BrokerUnavailableError when no broker has answered for long."""
        by_leader: dict[int, list[Place]] = {}
        asked = {place for _, places in self._asked.values() for place in places}
        now = self._clock.monotonic()
        for place in wanted:
            if place in asked:
                continue
            try:
                leader = self._cluster.leader(*place)
            except (TryAgain, UnknownTopicError):
                continue
            except BrokerUnavailableError as error:
                self._lost(error)
                return
            if leader not in self._asked and now >= self._not_before.get(leader, 0.0):
                by_leader.setdefault(leader, []).append(place)
        for leader, places in by_leader.items():
            self._turn += 1
            turn = self._turn % len(places)
            chosen = {place: wanted[place] for place in [*places[turn:], *places[:turn]]}
            try:
                connection = self._connection(leader)
                version = connection.version(FETCH, 12)
                connection.send(FETCH, self._request(chosen), version)
            except BrokerUnavailableError as error:
                self._failed(leader, chosen, error)
            else:
                self._asked[leader] = (connection, chosen)

    def _connection(self, leader: int) -> Connection:
        """Apart from the cluster's, which is asked for leaders while answers are on their way."""
        connection = self._connections.get(leader)
        if connection is None or connection.closed:
            connection = self._connections[leader] = self._cluster.open(leader)
        return connection

    def _request(self, wanted: Mapping[Place, int]) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        for (topic, partition), offset in wanted.items():
            topics.setdefault(topic, []).append(
                FetchPartition(
                    partition=partition, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES
                )
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=int(WAIT * 1000),
            min_bytes=1,
            max_bytes=self._most_bytes,
            isolation_level=READ_COMMITTED,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=name, partitions=each) for name, each in topics.items()],
        )

    def receive(self, wait: float) -> Iterator[tuple[Place, int, Answer | OffsetOutOfRangeError]]:
        """What has come, with the offset that was asked for; waits for the first. Raises
        RequestError for what trying again does not change."""
        if not self._asked:
            self._clock.sleep(min(wait, PAUSE))
            return
        for leader in self._ready(wait):
            connection, wanted = self._asked.pop(leader)
            try:
                response = connection.receive()
            except BrokerUnavailableError as error:
                self._failed(leader, wanted, error)
                continue
            assert isinstance(response, FetchResponse)
            self._lost_since = None
            if response.error_code != ErrorCode.NONE:
                raise RequestError.of(response.error_code, "reading the source")
            moved = False
            for topic in response.responses:
                for data in topic.partitions:
                    place = (topic.topic, data.partition_index)
                    if data.error_code in MOVED:
                        self._cluster.forget(place[0])
                        moved = True
                    elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        yield place, wanted[place], OffsetOutOfRangeError(f"offset {wanted[place]} is not in {place[0]}/{place[1]}")  # fmt: skip
                    elif data.error_code != ErrorCode.NONE:
                        raise RequestError.of(data.error_code, f'reading "{place[0]}"')
                    elif data.records:
                        yield place, wanted[place], _answer(data)
            if moved:
                self._not_before[leader] = self._clock.monotonic() + PAUSE

    def _ready(self, wait: float) -> list[int]:
        buffered = [leader for leader, (one, _) in self._asked.items() if one.buffered]
        if buffered:
            return buffered
        open_ones = {leader: one for leader, (one, _) in self._asked.items() if not one.closed}
        if len(open_ones) < len(self._asked):
            return [leader for leader in self._asked if leader not in open_ones]
        readable, _, _ = select.select(list(open_ones.values()), [], [], wait)
        return [leader for leader, one in open_ones.items() if one in readable]

    def _failed(self, leader: int, wanted: Mapping[Place, int], error: BrokerUnavailableError) -> None:  # fmt: skip
        for topic, _ in wanted:
            self._cluster.forget(topic)
        self._not_before[leader] = self._clock.monotonic() + PAUSE
        self._lost(error)

    def _lost(self, error: BrokerUnavailableError) -> None:
        """Nobody answers now; for long, it is an error."""
        now = self._clock.monotonic()
        if self._lost_since is None:
            self._lost_since = now
        if now - self._lost_since > self._timeout:
            self._lost_since = None
            raise error
        self._clock.sleep(PAUSE)


def _answer(data: PartitionData) -> Answer:
    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
    return Answer(data.records or b"", aborted, data.last_stable_offset)
