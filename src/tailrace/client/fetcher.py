"""A light synchronous reader on our own wire, for small and exact reads.

No group, no background thread, nothing to warm up: the first record is there one
request after connecting. For long, fast reading use a consumer.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

from tailrace.client.admin import Admin
from tailrace.client.cluster import Cluster, TryAgain
from tailrace.client.committed import Aborted, visible_records
from tailrace.client.connection import Opener, open_socket
from tailrace.client.errors import BrokerUnavailableError, OffsetOutOfRangeError, RequestError
from tailrace.clock import SYSTEM, Clock
from tailrace.records.batch import Buffer, Record
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

FETCH = APIS[ApiKey.FETCH]
MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class Fetched(NamedTuple):
    """What one fetch brought: `following` is the offset to go on from, `end` the stable
    end (or the high watermark, for uncommitted reading) at that moment."""

    records: list[Record]
    following: int
    end: int


class Answer(NamedTuple):
    """One fetch as the log answered it: whole batches, and which of them are not to be
    seen (None: all are)."""

    buffer: Buffer
    aborted: Aborted | None
    end: int


class Fetcher:
    """Reads single partitions. Not for use from several threads.

    `isolation` is "read_committed" (the default) or "read_uncommitted" everywhere.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        fetch_bytes: int = 4 * 1024 * 1024,
        timeout: float = 60.0,
        opener: Opener = open_socket,
        clock: Clock = SYSTEM,
    ) -> None:
        self.cluster = Cluster(bootstrap, timeout=timeout, opener=opener, clock=clock)
        self._admin = Admin.over(self.cluster)
        self._fetch_bytes = fetch_bytes

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.cluster.close()

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        wait: float = 0.0,
        isolation: str = "read_committed",
        end: int | None = None,
    ) -> Fetched:
        """Records from `offset` on; waits up to `wait` seconds for the first.

        `records` can be empty though `following` moved: markers and aborted records are
        passed over. Raises OffsetOutOfRangeError, UnknownTopicError, UnreadableBatchError.
        """
        answer = self.ask(topic, partition, offset, wait=wait, isolation=isolation)
        records, following = visible_records(
            answer.buffer, offset, end, answer.aborted, place=(topic, partition)
        )
        return Fetched(records, following, answer.end)

    def ask(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        wait: float = 0.0,
        isolation: str = "read_committed",
    ) -> Answer:
        """`fetch` for whoever takes the batches apart themselves."""
        committed = isolation == "read_committed"
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=int(wait * 1000),
            min_bytes=1 if wait else 0,
            max_bytes=self._fetch_bytes,
            isolation_level=int(committed),
            session_id=0,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=partition,
                            fetch_offset=offset,
                            partition_max_bytes=self._fetch_bytes,
                        )
                    ],
                )
            ],
        )

        def ask() -> Answer:
            try:
                leader = self.cluster.leader(topic, partition)
                response = self.cluster.broker(leader).request(FETCH, request, 12)
            except BrokerUnavailableError:
                self.cluster.forget(topic)
                raise
            assert isinstance(response, FetchResponse)
            self._judge(response.error_code, topic, partition, offset)
            answer = response.responses[0].partitions[0]
            self._judge(answer.error_code, topic, partition, offset)
            if not committed:
                return Answer(answer.records or b"", None, answer.high_watermark)
            aborted = [
                (each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()
            ]
            return Answer(answer.records or b"", aborted, answer.last_stable_offset)

        return self.cluster.retry(ask, f'reading "{topic}" partition {partition}')

    def read_range(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        isolation: str = "read_committed",
    ) -> Iterator[Record]:
        """The records with start ≤ offset < end; ends when the position reaches `end`.

        Waits for a range that is not written, or not stable, yet.
        """
        position = start
        while position < end:
            records, following, _ = self.fetch(
                topic, partition, position, wait=0.5, isolation=isolation, end=end
            )
            yield from records
            position = following

    def read_all(self, topic: str, partition: int = 0, isolation: str = "read_committed") -> Iterator[Record]:  # fmt: skip
        """Everything that is in the partition now."""
        start = self._admin.start_offsets([(topic, partition)])[topic, partition]
        end = self._admin.end_offsets([(topic, partition)], isolation)[topic, partition]
        yield from self.read_range(topic, partition, start, end, isolation)

    def read_last(
        self, topic: str, partition: int = 0, isolation: str = "read_committed"
    ) -> Record | None:
        """The last record there is; None if there is none.

        Looks backwards in growing steps, since markers, aborted and compacted records
        may stand at the end.
        """
        place = (topic, partition)
        first = self._admin.start_offsets([place])[place]
        end = self._admin.end_offsets([place], isolation)[place]
        step = 2
        upper = end
        while upper > first:
            lower = max(first, upper - step)
            last: Record | None = None
            try:
                for record in self.read_range(topic, partition, lower, upper, isolation):
                    last = record
            except OffsetOutOfRangeError:
                # retention moved the start while we looked
                first = self._admin.start_offsets([place])[place]
                continue
            if last is not None:
                return last
            upper = lower
            step *= 8
        return None

    def _judge(self, error_code: int, topic: str, partition: int, offset: int) -> None:
        if error_code == ErrorCode.NONE:
            return
        if error_code in MOVED:
            self.cluster.forget(topic)
            raise TryAgain(error_code)
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRangeError(
                f'offset {offset} is not in "{topic}" partition {partition}',
                hint="retention may have removed it; read from the start offset",
            )
        raise RequestError.of(error_code, f'reading "{topic}" partition {partition}')
