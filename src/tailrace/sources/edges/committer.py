"""Records of many requests, each request's in one transaction with those of others that wait.

A request is answered when its records are committed. One thread writes; while it commits, the next
requests gather. After an error nothing of the transaction is visible, or it is not known: the
requests in it fail, and nothing is taken until the transactional id has been taken over again and
`recovered` has been called. Whoever sends the same again after that knows whether it was written.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from tailrace.client.errors import ClientError, RecordTooLargeError
from tailrace.client.log import Log
from tailrace.client.record import Delivery
from tailrace.client.transactional import TransactionalProducer
from tailrace.errors import TailraceError

GATHERED = 500
WAITING_LIMIT = 5_000
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to be written."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


@dataclass(slots=True)
class _Request:
    records: Sequence[Outgoing]
    done: Future[list[Delivery]] = field(default_factory=Future)


class Full(Exception):
    """Too many requests wait, or the transactional id must be taken over first: try again."""


class Committer:
    """See the module. `submit` may be called from any thread."""

    def __init__(
        self, log: Log, transactional_id: str, recovered: Callable[[], None] = lambda: None
    ) -> None:
        self._log = log
        self._id = transactional_id
        self._recovered = recovered
        self._waiting: list[_Request] = []
        self._wake = threading.Condition()
        self._closing = False
        self._producer: TransactionalProducer | None = None
        self._lost = False  # whether the transactional id must be taken over again
        self._thread = threading.Thread(target=self._work, name="edge writer", daemon=True)

    def start(self) -> None:
        """Take the transactional id over; raises where the log does not answer."""
        self._open()
        self._thread.start()

    def submit(self, records: Sequence[Outgoing]) -> Future[list[Delivery]]:
        request = _Request(records)
        with self._wake:
            if self._closing or self._lost or len(self._waiting) >= WAITING_LIMIT:
                raise Full
            self._waiting.append(request)
            self._wake.notify()
        return request.done

    def close(self) -> None:
        """Write what waits, then stop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()
        _close(self._producer)
        self._producer = None
        for request in self._waiting:
            request.done.set_exception(ClientError("the edge was stopped"))

    def _open(self) -> None:
        producer = self._log.producer(transactional_id=self._id)
        try:
            self._recovered()
        except BaseException:
            _close(producer)
            raise
        with self._wake:
            self._producer, self._lost = producer, False

    def _work(self) -> None:
        while True:
            with self._wake:
                while not (self._waiting or self._closing or self._lost):
                    self._wake.wait()
                if self._closing and not self._waiting:
                    return
                taken: list[_Request] = []
                if not self._lost:
                    taken, self._waiting = self._waiting[:GATHERED], self._waiting[GATHERED:]
            if taken:
                self._settle(taken)
            else:
                self._take_over()

    def _take_over(self) -> None:
        """What waits was sent before the error and is no repeat of it; it fails if this does."""
        try:
            self._open()
        except (TailraceError, OSError) as error:
            with self._wake:
                taken, self._waiting = self._waiting, []
            self._fail(taken, error)

    def _fail(self, taken: Sequence[_Request], error: Exception) -> None:
        with self._wake:  # no repeat may be taken from here on
            producer, self._producer, self._lost = self._producer, None, True
        _close(producer)
        for request in taken:
            request.done.set_exception(error)
        with self._wake:
            if not self._closing:
                self._wake.wait(_PAUSE_SECONDS)

    def _settle(self, taken: Sequence[_Request]) -> None:
        """Write some requests and answer them; one that cannot be written fails alone."""
        try:
            answers = self._write(taken)
        except RecordTooLargeError as error:
            if len(taken) == 1:
                taken[0].done.set_exception(error)
                return
            for request in taken:
                if self._lost:
                    request.done.set_exception(error)
                else:
                    self._settle([request])
        except (TailraceError, OSError) as error:
            self._fail(taken, error)
        else:
            for request, answer in zip(taken, answers, strict=True):
                request.done.set_result(answer)

    def _write(self, taken: Sequence[_Request]) -> list[list[Delivery]]:
        producer = self._producer
        assert producer is not None
        sent: list[list[Future[Delivery]]] = []
        with producer.transaction():
            sent.extend([_send(producer, one) for one in request.records] for request in taken)
            producer.flush()
        return [[one.result() for one in futures] for futures in sent]


def _close(producer: TransactionalProducer | None) -> None:
    if producer is not None:
        with contextlib.suppress(TailraceError):
            producer.close()


def _send(producer: TransactionalProducer, one: Outgoing) -> Future[Delivery]:
    return producer.send(
        one.topic, one.value, one.key, list(one.headers), one.partition, one.timestamp
    )
