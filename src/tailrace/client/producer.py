"""A producer: records in, futures out.

    with log.producer() as producer:
        future = producer.send("clicks", key=b"u1", value=b"…")   # returns at once
        partition, offset = future.result()                       # written

Three ways to use it: ignore the future (fire and forget), wait for it, or give a
`callback(delivery, error)`, which runs on the producer's own thread. Errors come apart
by when they happen. *Before sending*, `send` itself raises: SerializationError,
RecordTooLargeError, BufferFullError, UsageError. *Retriable* ones are tried again until
`delivery_timeout_ms` and then end in RequestTimeoutError (exhausted: the record may or
may not be there). *Final* ones are RequestError and its kinds (the record is not there).
Records of one partition are written in the order they were sent, each once.

`send`, `flush` and `close` may be called from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol

from tailrace.client.batches import record_bytes
from tailrace.client.delivery import Callback, DeliveryFuture
from tailrace.client.errors import ClientClosedError, ClientError, RecordTooLargeError
from tailrace.client.record import Delivery
from tailrace.client.serializers import Serializer, encoder, plain
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.records.batch import Headers
from tailrace.telemetry import metrics

Partitioner = Callable[[str, bytes | None, bytes | None, int], int | None]
Done = Callable[[Delivery | None, ClientError | None], None]
GivenHeaders = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """Kafka's producer settings, under Kafka's names and with its meanings."""

    client_id: str = "tailrace"
    acks: str | int = "all"
    enable_idempotence: bool = True
    retries: int = 2_147_483_647
    delivery_timeout_ms: int = 120_000
    request_timeout_ms: int = 30_000
    batch_size: int = 1_000_000
    linger_ms: int = 5
    buffer_memory: int = 32 * 1024 * 1024
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    compression_type: str = "none"
    transaction_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        if self.acks not in ("all", -1, 0, 1, "0", "1", "-1"):
            raise UsageError(f'acks cannot be "{self.acks}"', hint='one of "all", 1, 0')
        if self.compression_type not in ("none", "gzip", "snappy", "lz4", "zstd"):
            raise UsageError(
                f'unknown compression "{self.compression_type}"',
                hint="one of none, gzip, snappy, lz4, zstd",
            )


class Outlet(Protocol):
    """Where a producer's records go: `kafka_outlet`, `local_outlet`."""

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has. Raises UnknownTopicError."""

    def deliver(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        done: Done,
    ) -> None:
        """Take a record; `done` is called once, from any thread. Raises BufferFullError."""

    def flush(self, timeout: float | None) -> None:
        """Wait until everything taken so far is done. Raises RequestTimeoutError."""

    def close(self) -> None: ...


class Producer:
    """See the module. Made by `log.producer()`."""

    def __init__(
        self,
        outlet: Outlet,
        settings: ProducerSettings,
        *,
        key_serializer: Serializer = plain,
        value_serializer: Serializer = plain,
        partitioner: Partitioner | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.settings = settings
        self._outlet = outlet
        self._encode_key = encoder(key_serializer, "key")
        self._encode_value = encoder(value_serializer, "value")
        self._partitioner = partitioner
        self._clock = clock
        self._closed = False
        self._count = 0
        self._written = 0
        name = settings.client_id
        self._sent = metrics.counter(
            "tailrace_producer_records_total", "Records written", ["client"]
        ).labels(name)
        self._failed = metrics.counter(
            "tailrace_producer_errors_total", "Records that could not be written", ["client"]
        ).labels(name)
        self._latency = metrics.histogram(
            "tailrace_producer_latency_seconds", "From send to acknowledgement", ["client"]
        ).labels(name)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: GivenHeaders = None,
        partition: int | None = None,
        timestamp: int | datetime | None = None,
        callback: Callback | None = None,
    ) -> Future[Delivery]:
        """Hand a record over. Without a partition the key decides (murmur2, as Java)."""
        if self._closed:
            raise ClientClosedError("the producer is closed")
        key_bytes = self._encode_key(topic, key)
        value_bytes = self._encode_value(topic, value)
        pairs = normal_headers(headers)
        size = record_bytes(key_bytes, value_bytes, pairs)
        if size > self.settings.max_request_size:
            raise RecordTooLargeError(
                f'a record for "{topic}" is too large',
                detail=f"{size} bytes; max_request_size is {self.settings.max_request_size}",
            )
        if partition is None and self._partitioner is not None:
            count = self._outlet.partitions(topic)
            partition = self._partitioner(topic, key_bytes, value_bytes, count)
        if isinstance(timestamp, datetime):
            timestamp = int(timestamp.timestamp() * 1000)
        elif timestamp is None:
            timestamp = self._clock.wall_ms()
        self._count += 1
        # a prometheus histogram costs as much as sending a record: one in 32 is timed
        started = self._clock.monotonic() if self._count % 32 == 1 else None
        future = DeliveryFuture(self, callback, started)
        self._outlet.deliver(
            topic, partition, key_bytes, value_bytes, pairs, timestamp, future.resolve
        )
        return future

    def written(self, started: float | None) -> None:
        """One record is in the log."""
        self._written += 1
        if started is not None:
            self._latency.observe(self._clock.monotonic() - started)
            self._count_up()

    def failed(self) -> None:
        """One record is not."""
        self._failed.inc()

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every record sent so far is written or has failed."""
        self._outlet.flush(timeout)
        self._count_up()

    def _count_up(self) -> None:
        written, self._written = self._written, 0
        self._sent.inc(written)

    def close(self) -> None:
        """Write what waits, then let go."""
        if not self._closed:
            self._closed = True
            try:
                self.flush()
            finally:
                self._outlet.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def normal_headers(headers: GivenHeaders) -> Headers:
    """Headers as pairs; text values as UTF-8."""
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in pairs
    )
