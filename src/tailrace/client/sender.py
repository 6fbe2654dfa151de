"""Batches to the leaders of their partitions, acknowledged, in order, once.

One batch of a partition is on its way at a time, all partitions of a broker in one
request, all brokers at once. Sequence numbers make repeating a batch harmless, so
whatever may be temporary is tried again with the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from tailrace.client.batches import Pending
from tailrace.client.cluster import Cluster, TryAgain
from tailrace.client.connection import Connection
from tailrace.client.errors import BrokerUnavailableError, RecordTooLargeError, RequestError
from tailrace.records.batch import advance_sequence
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.produce import ProduceResponse
from tailrace.wire.produce import encode_produce_request

Place = tuple[str, int]  # topic and partition
OnWritten = Callable[[Place, int, int], None]  # place, base offset, records
OnFailed = Callable[[Place, int, RequestError], None]  # place, records, why

PRODUCE = APIS[ApiKey.PRODUCE]
MOST_RECORDS_A_BATCH = 100_000
BUSY_PAUSE = 0.001
BUSY = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
WRITTEN = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


class BatchSender:
    """Writes what waits for partitions. `become` sets whose sequence numbers are used.

    Without `on_failed` the first final error is raised; with it, the batch concerned
    is dropped and told, and the others go on.
    """

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str | None,
        *,
        compression: str,
        batch_bytes: int,
        create_topics: bool,
        on_written: OnWritten,
        on_failed: OnFailed | None = None,
        fenced: Callable[[int], RequestError] | None = None,
    ) -> None:
        self._cluster = cluster
        self._transactional_id = transactional_id
        self._compression = compression
        self._batch_bytes = batch_bytes
        self._create_topics = create_topics
        self._on_written = on_written
        self._on_failed = on_failed
        self._fenced = fenced
        self.producer_id = -1
        self.producer_epoch = -1
        self._sequences: dict[Place, int] = {}

    def become(self, producer_id: int, producer_epoch: int) -> None:
        """Use this producer's numbers; sequences start at 0 again."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self._sequences.clear()

    def write(
        self, waiting: Mapping[Place, Pending], highest: int, timeout: float | None = None
    ) -> None:
        """Everything that waits, with Produce of at most version `highest`.

        Raises RequestTimeoutError when no final answer came in time; then it is not
        known which of the batches left are in the log.
        """
        left = {place: pending for place, pending in waiting.items() if len(pending)}
        while left:
            self._round(dict(left), highest, timeout)
            left = {place: pending for place, pending in left.items() if len(pending)}

    def _round(self, left: dict[Place, Pending], highest: int, timeout: float | None) -> None:
        """One batch of every partition."""
        records = dict.fromkeys(left, MOST_RECORDS_A_BATCH)
        for attempt in self._cluster.attempts("writing", timeout):
            batches: dict[int, list[tuple[str, int, bytearray]]] = {}
            again: TryAgain | BrokerUnavailableError | None = None
            for place, pending in sorted(left.items()):
                try:
                    leader = self._leader(place)
                except (TryAgain, BrokerUnavailableError) as error:
                    again = error
                    continue
                except RequestError as error:
                    pending.take(self._batch_bytes, records[place])
                    self._give_up(left, place, error)
                    continue
                pending.take(self._batch_bytes, records[place])
                batches.setdefault(leader, []).append((*place, self._encode(place, pending)))
            for place, error_code, base_offset in self._exchange(batches, highest):
                if error_code in WRITTEN:
                    count = left.pop(place).done()
                    sequence = self._sequences.get(place, 0)
                    self._sequences[place] = advance_sequence(sequence, count)
                    self._on_written(place, base_offset, count)
                elif error_code == ErrorCode.MESSAGE_TOO_LARGE and left[place].taken > 1:
                    records[place] = left[place].taken // 2
                    again = TryAgain(error_code, 0.0)
                else:
                    try:
                        again = self._judge(place, error_code)
                    except RequestError as error:
                        self._give_up(left, place, error)
            if not left:
                return
            if again is None:
                again = TryAgain(ErrorCode.NETWORK_EXCEPTION)
            attempt.failed(again, again.pause if isinstance(again, TryAgain) else 0.05)

    def _encode(self, place: Place, pending: Pending) -> bytearray:
        return pending.encode(
            compression=self._compression,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self._sequences.get(place, 0) if self.producer_id >= 0 else -1,
            transactional=self._transactional_id is not None,
        )

    def _give_up(self, left: dict[Place, Pending], place: Place, error: RequestError) -> None:
        if self._on_failed is None:
            raise error
        self._on_failed(place, left.pop(place).done(), error)

    def _leader(self, place: Place) -> int:
        topic, partition = place
        self._cluster.topic(topic, create=self._create_topics)
        return self._cluster.leader(topic, partition)

    def _exchange(
        self, batches: Mapping[int, list[tuple[str, int, bytearray]]], highest: int
    ) -> Iterable[tuple[Place, int, int]]:
        """Send to all leaders at once, then collect: place, error code, base offset."""
        answers: list[tuple[Place, int, int]] = []
        sent: list[tuple[Connection, list[tuple[str, int, bytearray]]]] = []
        for leader, group in batches.items():
            try:
                connection = self._cluster.broker(leader)
                version = connection.version(PRODUCE, highest)
                pieces = encode_produce_request(
                    version,
                    connection.next_correlation_id(),
                    self._transactional_id,
                    -1,
                    30_000,
                    group,
                )
                connection.send_pieces(PRODUCE, version, pieces)
                sent.append((connection, group))
            except BrokerUnavailableError:
                answers += _unanswered(group)
        for connection, group in sent:
            try:
                response = connection.receive()
            except BrokerUnavailableError:
                answers += _unanswered(group)
                continue
            assert isinstance(response, ProduceResponse)
            answers += [
                ((topic.name, each.index), each.error_code, each.base_offset)
                for topic in response.responses
                for each in topic.partition_responses
            ]
        return answers

    def _judge(self, place: Place, error_code: int) -> TryAgain:
        topic, partition = place
        if error_code in BUSY:
            return TryAgain(error_code, BUSY_PAUSE)
        if error_code in FENCED and self._fenced is not None:
            raise self._fenced(error_code)
        if error_code == ErrorCode.MESSAGE_TOO_LARGE:
            too_large = RecordTooLargeError(
                f'a record for "{topic}" is too large',
                detail=f"partition {partition} takes at most its max.message.bytes",
                hint=f"tailrace topic alter {topic} --config max.message.bytes=…",
            )
            too_large.place = place
            raise too_large
        if error_code != ErrorCode.CORRUPT_MESSAGE and is_retriable(error_code):
            self._cluster.forget(topic)
            return TryAgain(error_code)
        raise RequestError.of(
            error_code,
            f'writing to "{topic}" partition {partition}',
            hint="`tailrace errors client-topic-protected` says who may"
            if error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            else "",
        )


def _unanswered(group: list[tuple[str, int, bytearray]]) -> list[tuple[Place, int, int]]:
    return [((topic, index), ErrorCode.NETWORK_EXCEPTION, -1) for topic, index, _ in group]


@cache
def is_retriable(error_code: int) -> bool:
    """Whether an answer is worth asking again; False for codes of a later Kafka."""
    try:
        return ErrorCode(error_code).retriable
    except ValueError:
        return False
