"""A producer that knows exactly what became of each batch.

One batch to one partition is on its way at a time. With `retry_seconds` it is repeated, with the
same bytes, until there is a final answer; that is harmless with idempotence and can make
duplicates without. An answer counts as a refusal only if Kafka gives it before it appends;
whatever may have been appended, by this try or an earlier one, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tailrace.client.cluster import Cluster, TryAgain
from tailrace.client.errors import BrokerUnavailableError, ClientError, RequestError
from tailrace.clock import SYSTEM, Clock
from tailrace.records.encode import encode_columns
from tailrace.verify.history import Status
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.produce import ProduceResponse
from tailrace.wire.produce import encode_produce_request

PRODUCE = APIS[ApiKey.PRODUCE]
INIT_PRODUCER_ID = APIS[ApiKey.INIT_PRODUCER_ID]
PAUSE = 0.02
WRITTEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
# Given before anything is appended. NOT_LEADER is not among them: a leader that is deposed while
# it waits for its followers answers so, with the record in its log.
REFUSED_FOR_NOW = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS})
REFUSED = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_RECORD,
        ErrorCode.PRODUCER_FENCED,
    }
)


class Outcome(NamedTuple):
    """What became of a batch; `offset` of its first record, −1 if it was not told."""

    status: Status
    offset: int = -1
    error_code: int = ErrorCode.NONE


class PartitionSender:
    """See the module. `begin` a session before the first batch, and after every batch that was
    not acknowledged. Owns connections; one thread only."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partition: int,
        *,
        idempotent: bool,
        acks: int = -1,
        retry_seconds: float = 0.0,
        request_seconds: float = 30.0,
        stopping: Callable[[], bool] = lambda: False,
        clock: Clock = SYSTEM,
    ) -> None:
        self.cluster = Cluster(
            bootstrap, client_id="tailrace-verify", timeout=5.0, request_timeout=request_seconds,
            clock=clock,
        )  # fmt: skip
        self._place = (topic, partition)
        self._idempotent = idempotent
        self._acks = acks
        self._retry_seconds = retry_seconds
        self._timeout_ms = int(request_seconds * 1000)
        self._stopping = stopping
        self._clock = clock
        self._producer_id = self._epoch = -1
        self._sequence = 0

    def begin(self) -> None:
        """A new session. Raises ClientError."""
        self._sequence = 0
        if not self._idempotent:
            return

        def ask() -> InitProducerIdResponse:
            answer = self.cluster.any().request(
                INIT_PRODUCER_ID, InitProducerIdRequest(None, 60_000), 4
            )
            assert isinstance(answer, InitProducerIdResponse)
            if answer.error_code != ErrorCode.NONE:
                raise TryAgain(answer.error_code)
            return answer

        given = self.cluster.retry(ask, "asking for a producer id")
        self._producer_id, self._epoch = given.producer_id, given.producer_epoch

    def send(self, values: Sequence[bytes]) -> Outcome:
        """Write one batch and say what became of it."""
        batch = encode_columns(
            None,
            list(values),
            self._clock.wall_ms(),
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence if self._idempotent else -1,
        )
        until = self._clock.monotonic() + self._retry_seconds
        perhaps_there = False
        while True:
            code, offset, sent = self._try(batch)
            if code in WRITTEN:
                self._sequence += len(values)
                return Outcome(Status.ACKNOWLEDGED, offset)
            perhaps_there |= sent and code not in REFUSED and code not in REFUSED_FOR_NOW
            self.cluster.forget(self._place[0])
            over = self._clock.monotonic() >= until or self._stopping()
            if code in REFUSED or over:
                status = Status.UNKNOWN if perhaps_there else Status.FAILED
                return Outcome(status, error_code=code)
            self._clock.sleep(PAUSE)

    def close(self) -> None:
        self.cluster.close()

    def _try(self, batch: bytearray) -> tuple[int, int, bool]:
        """One request: error code, offset, and whether the broker may have received it."""
        try:
            connection = self.cluster.broker(self.cluster.leader(*self._place))
            version = connection.version(PRODUCE, 12)
            pieces = encode_produce_request(
                version,
                connection.next_correlation_id(),
                None,
                self._acks,
                self._timeout_ms,
                [(*self._place, batch)],
            )
        except TryAgain as again:
            return again.error_code, -1, False
        except RequestError as refused:
            return refused.error_code, -1, False
        except ClientError:
            return ErrorCode.NETWORK_EXCEPTION, -1, False
        try:
            connection.send_pieces(PRODUCE, version, pieces)
            response = connection.receive()
        except BrokerUnavailableError:
            return ErrorCode.NETWORK_EXCEPTION, -1, True
        assert isinstance(response, ProduceResponse)
        answer = response.responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset, True
