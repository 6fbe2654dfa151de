"""The fenced idempotent batches of one partition.

A commit is one plain batch under a producer id that `init` of the transactional id
`tailrace.events.<topic>.<partition>` has given: the log refuses batches of any earlier owner.
A batch of an earlier owner that the log has already taken, but not told, must not come after
what the new owner has read. So a new owner first writes a record in a transaction, the *fence*,
and aborts it; the log then knows the new epoch in the partition itself. Behind the fence nothing
of an earlier owner can come.

At most two batches are on their way. A lost answer is asked for by sending the same bytes under
the same numbers, which the log takes once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from tailrace.client.admin import Admin
from tailrace.client.cluster import Cluster, TryAgain
from tailrace.client.connection import Connection
from tailrace.client.errors import (
    BrokerUnavailableError,
    ClientError,
    ProducerFencedError,
    RecordTooLargeError,
    RequestError,
)
from tailrace.client.event_topics import owner_id
from tailrace.client.sender import FENCED, PRODUCE, is_retriable
from tailrace.clock import Clock
from tailrace.facts.errors import OutcomeUnknownError, PartitionLostError
from tailrace.facts.failpoints import reached
from tailrace.facts.records import FENCE, BatchOfEvents
from tailrace.records.header import advance_sequence
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.produce import ProduceResponse
from tailrace.wire.produce import encode_produce_request

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.client.writer import TransactionalWriter
    from tailrace.facts.deciding import DecidedBatch
    from tailrace.facts.partition import Partition

MOST_ON_THEIR_WAY = 2
HIGHEST_PLAIN_VERSION = 11
ENVELOPE_BYTES = 256
RENEW_SECONDS = 12 * 3600.0
"""A plain batch does not count as a use of the transactional id, which the log forgets after
seven days; its successor would get another producer id, and this writer would not be fenced."""


class _Sent(NamedTuple):
    batch: bytearray
    records: int


class PartitionWriter:
    """See the module. For the owner's thread alone; close it."""

    marker_records = 0
    """Offsets that the log itself takes between two batches."""

    def __init__(self, log: Log, topic: str, partition: int, timeout: float) -> None:
        self.topic = topic
        self.partition = partition
        self._clock: Clock = log.clock
        self._timeout = timeout
        self._writer: TransactionalWriter = log.transactional_writer(
            owner_id(topic, partition), timeout=timeout
        )
        self._cluster: Cluster = self._writer.cluster
        self._sequence = 0
        self._sent: deque[_Sent] = deque()
        self._connection: Connection | None = None
        self.fenced_at = 0.0
        self.most_bytes = 900_000

    def close(self) -> None:
        self._sent.clear()
        self._cluster.close()

    @property
    def on_their_way(self) -> int:
        return len(self._sent)

    @property
    def renewal_due(self) -> bool:
        return self._clock.monotonic() - self.fenced_at > RENEW_SECONDS

    # Fencing -------------------------------------------------------------------

    def fence(self) -> int:
        """Shut every earlier owner out; the offset behind all that such could have written.

        Batches on their way are forgotten: what became of them is in the log.
        """
        self._sent.clear()
        self._connection = None
        writer = self._writer
        writer.init()
        reached("events.fence.init")
        epoch = writer.producer_epoch
        writer.send(self.topic, self.partition, None, None, ((FENCE, b""),))
        writer.flush()
        reached("events.fence.written")
        writer.abort()
        reached("events.fence.aborted")
        # Before transactions of version 2 the end of one keeps the epoch, and the fence was
        # number 0 of it.
        self._sequence = 1 if writer.producer_epoch == epoch else 0
        self.fenced_at = self._clock.monotonic()
        self.most_bytes = self._topic_limit()
        return self._stable_end()

    def _topic_limit(self) -> int:
        entry = Admin.over(self._cluster).topic_config(self.topic).get("max.message.bytes")
        return int(entry.value) if entry is not None and entry.value else 1_000_000

    def _stable_end(self) -> int:
        """Wait until everything that is in the partition now is decided; where it ends."""
        admin, place = Admin.over(self._cluster), (self.topic, self.partition)
        end = admin.end_offsets([place], "read_uncommitted")[place]

        def ask() -> int:
            stable = admin.end_offsets([place], "read_committed")[place]
            if stable < end:
                raise TryAgain(ErrorCode.CONCURRENT_TRANSACTIONS, 0.002)
            return stable

        return self._cluster.retry(ask, f"waiting for open transactions of {self.topic}")

    def publish_missing(self, partition: Partition[Any]) -> int:
        """Write what the table of states lacks, where there is one; how many states."""
        return 0

    # Batches -------------------------------------------------------------------

    def put(self, batch: DecidedBatch) -> None:
        """Put what was decided on its way; `receive` tells what became of it."""
        self.send(batch.records)

    def send(self, batch: BatchOfEvents) -> None:
        """`put` of records alone."""
        encoded = batch.encode(
            self._writer.producer_id, self._writer.producer_epoch, self._sequence
        )
        self._sequence = advance_sequence(self._sequence, batch.count)
        sent = _Sent(encoded, batch.count)
        self._sent.append(sent)
        if self._connection is not None or len(self._sent) == 1:
            try:
                self._put(sent)
            except (BrokerUnavailableError, TryAgain):
                self._forget_connection()  # `receive` sends it again

    def receive(self) -> int:
        """The offset of the first record of the oldest batch on its way, now durable.

        Raises PartitionLostError (fenced: another owner), OutcomeUnknownError (no answer in
        time), RecordTooLargeError, RequestError.
        """
        until = self._clock.monotonic() + self._timeout
        pause = 0.0
        while True:
            try:
                if self._connection is None:
                    self._send_all_again()
                assert self._connection is not None
                response = self._connection.receive()
            except (BrokerUnavailableError, TryAgain) as error:
                self._forget_connection()
                pause = self._wait(until, pause, error)
                continue
            except ClientError as error:
                raise OutcomeUnknownError(
                    f"what became of a batch for {self.topic}/{self.partition} is not known",
                    detail=str(error),
                ) from error
            assert isinstance(response, ProduceResponse)
            answer = response.responses[0].partition_responses[0]
            if answer.error_code == ErrorCode.NONE and answer.base_offset >= 0:
                self._sent.popleft()
                return answer.base_offset
            again = self._judge(answer.error_code)
            self._forget_connection()
            pause = self._wait(until, pause, again)

    def _put(self, sent: _Sent) -> None:
        if self._connection is None:
            leader = self._cluster.leader(self.topic, self.partition)
            self._connection = self._cluster.broker(leader)
        connection = self._connection
        version = connection.version(PRODUCE, HIGHEST_PLAIN_VERSION)
        pieces = encode_produce_request(
            version,
            connection.next_correlation_id(),
            None,
            -1,
            30_000,
            [(self.topic, self.partition, sent.batch)],
        )
        connection.send_pieces(PRODUCE, version, pieces)

    def _send_all_again(self) -> None:
        for sent in self._sent:
            self._put(sent)

    def _forget_connection(self) -> None:
        """Answers still to come on it belong to batches that are sent again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._cluster.forget(self.topic)

    def _wait(self, until: float, pause: float, error: BaseException) -> float:
        if self._clock.monotonic() + pause > until:
            raise OutcomeUnknownError(
                f"the log does not answer for {self.topic}/{self.partition}", detail=str(error)
            ) from error
        if pause:
            self._clock.sleep(pause)
        return min(0.25, pause * 2 or 0.002)

    def _judge(self, error_code: int) -> TryAgain:
        if error_code in FENCED or error_code == ErrorCode.UNKNOWN_PRODUCER_ID:
            raise PartitionLostError(
                f"another owner has taken over {self.topic}/{self.partition}"
            ) from ProducerFencedError.of(error_code, "writing")
        if error_code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS):
            return TryAgain(error_code)  # Kafka still writes the end of the fence
        if error_code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            raise RecordTooLargeError(f"a batch for {self.topic} is too large")
        if error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise OutcomeUnknownError(
                f"a batch for {self.topic}/{self.partition} was repeated too late"
            )
        if error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and len(self._sent) > 1:
            return TryAgain(error_code)  # the one before it is sent again
        if is_retriable(error_code):
            return TryAgain(error_code)
        raise RequestError.of(error_code, f'writing to "{self.topic}" partition {self.partition}')
