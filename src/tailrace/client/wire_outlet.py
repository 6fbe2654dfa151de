"""A producer's outlet on our own wire: used for the log in this process.

One thread gathers what is sent for `linger_ms`, writes a batch a partition and tells
each record's fate. Sequence numbers come from the log (an idempotent producer).
"""

from __future__ import annotations

import threading
from collections import deque

from tailrace.client.admin import Admin
from tailrace.client.batches import Pending, record_bytes
from tailrace.client.cluster import Cluster, TryAgain
from tailrace.client.errors import (
    BufferFullError,
    ClientError,
    RequestError,
    RequestTimeoutError,
)
from tailrace.client.producer import Done, ProducerSettings
from tailrace.client.record import Delivery, Place
from tailrace.client.sender import BatchSender, is_retriable
from tailrace.clock import SYSTEM, Clock
from tailrace.records.batch import Headers
from tailrace.records.partitioner import partition_for
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

INIT_PRODUCER_ID = APIS[ApiKey.INIT_PRODUCER_ID]

# place, key, value, timestamp, headers, whom to tell, size
Waiting = tuple[Place, bytes | None, bytes | None, int, Headers, Done, int]


class WireOutlet:
    """`Outlet` on a `Cluster`. `lookup` answers questions of the calling threads."""

    def __init__(
        self, cluster: Cluster, lookup: Cluster, settings: ProducerSettings, clock: Clock = SYSTEM
    ) -> None:
        self._cluster = cluster
        self._lookup = Admin.over(lookup)
        self._looking_up = threading.Lock()
        self._settings = settings
        self._memory = settings.buffer_memory
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._sticky: dict[str, int] = {}
        self._queue: deque[Waiting] = deque()
        self._queued_bytes = 0
        self._unfinished = 0
        self._flushing = 0
        self._stopping = False
        self._changed = threading.Condition()
        self._fates: dict[Place, deque[tuple[Done, int]]] = {}
        self._sender = BatchSender(
            cluster,
            None,
            compression=settings.compression_type,
            batch_bytes=settings.batch_size,
            create_topics=True,
            on_written=self._written,
            on_failed=self._failed,
        )
        self._thread = threading.Thread(target=self._serve, name="producer", daemon=True)
        self._thread.start()

    # For the callers' threads --------------------------------------------------

    def partitions(self, topic: str) -> int:
        known = self._counts.get(topic)
        if known is None:
            with self._looking_up:
                found = self._lookup.cluster.topic(topic, create=True)
            known = self._counts[topic] = len(found.leaders)
        return known

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
        if partition is None:
            count = self.partitions(topic)
            if key is not None:
                partition = partition_for(key, count)
            else:
                partition = self._sticky.setdefault(topic, self._clock.wall_ms() % count)
        size = record_bytes(key, value, headers)
        with self._changed:
            if not self._changed.wait_for(
                lambda: (
                    self._queued_bytes + size <= self._settings.buffer_memory
                    or self._queued_bytes == 0
                ),
                self._settings.max_block_ms / 1000,
            ):
                raise BufferFullError(
                    f"the buffer stayed full for {self._settings.max_block_ms / 1000:g} s",
                    hint="send more slowly, or raise buffer_memory",
                )
            self._queue.append(((topic, partition), key, value, timestamp, headers, done, size))
            self._queued_bytes += size
            self._unfinished += 1
            if len(self._queue) == 1:
                self._changed.notify_all()

    def flush(self, timeout: float | None) -> None:
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                if not self._changed.wait_for(lambda: self._unfinished == 0, timeout):
                    raise RequestTimeoutError(f"{self._unfinished} records are not written yet")
            finally:
                self._flushing -= 1

    def close(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        self._cluster.close()
        self._lookup.close()

    # The sending thread --------------------------------------------------------

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping)
                if not self._queue:
                    return
                if self._settings.linger_ms and not self._flushing:
                    self._changed.wait_for(
                        lambda: (
                            self._flushing
                            or self._stopping
                            or self._queued_bytes >= self._settings.batch_size
                        ),
                        self._settings.linger_ms / 1000,
                    )
                taken = list(self._queue)
                self._queue.clear()
                self._sticky.clear()
            self._write(taken)
            with self._changed:
                self._queued_bytes -= sum(each[-1] for each in taken)
                self._unfinished -= len(taken)
                self._changed.notify_all()

    def _write(self, taken: list[Waiting]) -> None:
        pending: dict[Place, Pending] = {}
        for place, key, value, timestamp, headers, done, _ in taken:
            pending.setdefault(place, Pending()).add(key, value, timestamp, headers)
            self._fates.setdefault(place, deque()).append((done, timestamp))
        timeout = self._settings.delivery_timeout_ms / 1000
        try:
            if self._settings.enable_idempotence and self._sender.producer_id < 0:
                self._cluster.retry(self._initialise, "starting a producer", timeout)
            self._sender.write(pending, 12, timeout)
        except ClientError as error:
            # Which of the batches left are in the log is not known: their sequence
            # numbers cannot be used again.
            self._sender.become(-1, -1)
            for fates in self._fates.values():
                for done, _ in fates:
                    done(None, error)
        self._fates.clear()

    def _initialise(self) -> None:
        response = self._cluster.any().request(INIT_PRODUCER_ID, InitProducerIdRequest(None), 5)
        assert isinstance(response, InitProducerIdResponse)
        if response.error_code != ErrorCode.NONE:
            if is_retriable(response.error_code):
                raise TryAgain(response.error_code)
            raise RequestError.of(response.error_code, "starting a producer")
        self._sender.become(response.producer_id, response.producer_epoch)

    def _written(self, place: Place, base_offset: int, count: int) -> None:
        fates = self._fates[place]
        for number in range(count):
            done, timestamp = fates.popleft()
            done(Delivery(*place, base_offset + number, timestamp), None)

    def _failed(self, place: Place, count: int, error: RequestError) -> None:
        fates = self._fates[place]
        for _ in range(count):
            done, _ = fates.popleft()
            done(None, error)
