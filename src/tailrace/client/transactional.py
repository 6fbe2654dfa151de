"""A transactional producer: `log.producer(transactional_id="…")`.

    with log.producer(transactional_id="billing") as producer:
        with producer.transaction():
            producer.send("invoices", key=b"1", value=b"…")
            producer.send_offsets(consumer)        # what was read counts with what was written

On our own synchronous writer, whatever the log. A future is done when its record is
written, which happens at `flush` and at the end; readers see it after the commit. An
exception inside `transaction()` aborts. A newer producer with the same id fences this
one: every later call raises ProducerFencedError.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any

from tailrace.client.consumer import Consumer
from tailrace.client.errors import ClientError, ProducerFencedError, TransactionStateError
from tailrace.client.producer import GivenHeaders, Partitioner, normal_headers
from tailrace.client.record import Delivery, Place
from tailrace.client.serializers import Serializer, encoder, plain
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock


class TransactionalProducer:
    """See the module. For one thread."""

    def __init__(
        self,
        writer: TransactionalWriter,
        *,
        key_serializer: Serializer = plain,
        value_serializer: Serializer = plain,
        partitioner: Partitioner | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._writer = writer
        self._encode_key = encoder(key_serializer, "key")
        self._encode_value = encoder(value_serializer, "value")
        self._partitioner = partitioner
        self._clock = clock
        self._futures: dict[Place, deque[tuple[Future[Delivery], int]]] = {}
        self._open = False
        writer.on_written = self._written
        try:
            writer.init()
        except BaseException:
            writer.close()
            raise

    @property
    def transactional_id(self) -> str:
        return self._writer.transactional_id

    @contextmanager
    def transaction(self) -> Iterator[TransactionalProducer]:
        """Commit at the end of the block, abort when it raises."""
        self.begin()
        try:
            yield self
        except BaseException:
            try:
                self.abort()
            except ProducerFencedError:
                pass  # nothing of it will be visible, and the first error tells more
            raise
        self.commit()

    def begin(self) -> None:
        if self._open:
            raise TransactionStateError("a transaction is open already")
        self._open = True

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: GivenHeaders = None,
        partition: int | None = None,
        timestamp: int | datetime | None = None,
        callback: Callable[[Delivery | None, ClientError | None], None] | None = None,
    ) -> Future[Delivery]:
        """As `Producer.send`, inside the open transaction."""
        self._must_be_open()
        key_bytes = self._encode_key(topic, key)
        value_bytes = self._encode_value(topic, value)
        if partition is None:
            partition = self._writer.partition_of(topic, key_bytes)
            if self._partitioner is not None:
                count = len(self._writer.cluster.topic(topic).leaders)
                chosen = self._partitioner(topic, key_bytes, value_bytes, count)
                partition = partition if chosen is None else chosen
        if isinstance(timestamp, datetime):
            timestamp = int(timestamp.timestamp() * 1000)
        elif timestamp is None:
            timestamp = self._clock.wall_ms()
        future: Future[Delivery] = Future()
        future.set_running_or_notify_cancel()
        if callback is not None:
            future.add_done_callback(lambda done: _call(callback, done))
        self._futures.setdefault((topic, partition), deque()).append((future, timestamp))
        self._guarded(
            lambda: self._writer.send(
                topic, partition, key_bytes, value_bytes, normal_headers(headers), timestamp
            )
        )
        return future

    def send_offsets(
        self, consumer: Consumer | str, offsets: Mapping[Place, int] | None = None
    ) -> None:
        """Store offsets of a consumer's group (or of a group by name) with the transaction.

        Of a consumer without given offsets: everything it has handed out.
        """
        self._must_be_open()
        if isinstance(consumer, str):
            self._guarded(lambda: self._writer.send_offsets(consumer, offsets or {}))
            return
        if consumer.group is None:
            raise TransactionStateError("the consumer has no group")
        group = consumer.group
        given = consumer.handed_out() if offsets is None else offsets
        generation, member_id, instance = consumer.group_member()
        self._guarded(
            lambda: self._writer.send_offsets(
                group,
                given,
                generation=generation,
                member_id=member_id,
                group_instance_id=instance,
            )
        )

    def flush(self) -> None:
        """Write everything sent; all futures are done then."""
        self._guarded(self._writer.flush)

    def commit(self) -> None:
        """Make the transaction visible as a whole."""
        self._must_be_open()
        self._guarded(self._writer.commit)
        self._open = False

    def abort(self) -> None:
        """Give the transaction up; futures not done yet fail."""
        self._must_be_open()
        self._open = False
        self._fail(TransactionStateError("the transaction was aborted"))
        self._writer.abort()

    def close(self) -> None:
        """Abort what is open, then let go."""
        self._fail(TransactionStateError("the producer was closed"))
        self._writer.close()

    def __enter__(self) -> TransactionalProducer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _must_be_open(self) -> None:
        if not self._open:
            raise TransactionStateError(
                "no transaction is open", hint="with producer.transaction(): …"
            )

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except ClientError as error:
            self._fail(error)
            raise

    def _written(self, place: Place, base_offset: int, count: int) -> None:
        waiting = self._futures.get(place, deque())
        for number in range(min(count, len(waiting))):
            future, timestamp = waiting.popleft()
            future.set_result(Delivery(*place, base_offset + number, timestamp))

    def _fail(self, error: ClientError) -> None:
        waiting = [future for each in self._futures.values() for future, _ in each]
        self._futures.clear()
        for future in waiting:
            future.set_exception(error)


def _call(
    callback: Callable[[Delivery | None, ClientError | None], None], done: Future[Delivery]
) -> None:
    error = done.exception()
    if isinstance(error, ClientError):
        callback(None, error)
    else:
        callback(done.result(), None)
