"""A consumer with many hands: records are worked on by threads, in order by key.

    WorkerPool(consumer, send_mail, workers=16).run(until=stopping.is_set)

Records of one key (without a key: of one partition) are worked on one after another, in
order; different keys at the same time. Only the offset below the lowest unfinished record
of a partition is ever committed, so a crash repeats work and loses none. Polling goes on
while workers are busy; a partition with too much waiting is paused.

A record whose work raises stops the pool: what was finished before it is committed, and
the error comes out of `run`. Give work that can fail its own way out, or a retry.
"""

from __future__ import annotations

import queue
import threading
import zlib
from collections.abc import Callable, Sequence

from tailrace.client.consumer import Consumer
from tailrace.client.errors import CommitFailedError
from tailrace.client.record import LogRecord, Place
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError


class Progress:
    """Which offsets of one partition are finished; gives the one to commit.

    The naive form is: one less than the smallest unfinished offset. Records are started
    in order, so a queue of started ones and a set of finished ones behind it are enough.
    """

    __slots__ = ("_done", "_started", "committable")

    def __init__(self) -> None:
        self._started: list[int] = []
        self._done: set[int] = set()
        self.committable: int | None = None

    def start(self, offset: int) -> None:
        self._started.append(offset)

    def finish(self, offset: int) -> None:
        self._done.add(offset)
        passed = 0
        for started in self._started:
            if started not in self._done:
                break
            self._done.remove(started)
            self.committable = started + 1
            passed += 1
        del self._started[:passed]

    @property
    def unfinished(self) -> int:
        return len(self._started)


class WorkerPool:
    """See the module. The consumer must have a group and auto-commit switched off."""

    def __init__(
        self,
        consumer: Consumer,
        work: Callable[[LogRecord], object],
        *,
        workers: int = 8,
        most_waiting: int = 1_000,
        commit_interval: float = 1.0,
        clock: Clock = SYSTEM,
    ) -> None:
        if consumer.group is None:
            raise UsageError("a worker pool needs a consumer with a group")
        if consumer.settings.enable_auto_commit:
            raise UsageError(
                "a worker pool commits by itself",
                hint="make its consumer with enable_auto_commit=False",
            )
        self._consumer = consumer
        self._work = work
        self._most_waiting = most_waiting
        self._commit_interval = commit_interval
        self._clock = clock
        self._queues: list[queue.SimpleQueue[LogRecord | None]] = [
            queue.SimpleQueue() for _ in range(workers)
        ]
        self._finished: queue.SimpleQueue[tuple[LogRecord, BaseException | None]] = (
            queue.SimpleQueue()
        )
        self._progress: dict[Place, Progress] = {}
        self._committed: dict[Place, int] = {}
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        consumer.add_listener(self)

    def run(self, until: Callable[[], bool]) -> None:
        """Work until `until()` is true; then finish what was begun and commit it."""
        threads = [
            threading.Thread(target=self._serve, args=(each,), name="worker", daemon=True)
            for each in self._queues
        ]
        for thread in threads:
            thread.start()
        try:
            due = self._clock.monotonic() + self._commit_interval
            while not until() and self._failure is None:
                for record in self._consumer.poll(0.05):
                    self._hand_out(record)
                self._collect()
                self._hold_back()
                if self._clock.monotonic() >= due:
                    self._commit()
                    due = self._clock.monotonic() + self._commit_interval
        finally:
            self._stopping.set()
            for each in self._queues:
                each.put(None)
            for thread in threads:
                thread.join()
            self._collect()
            self._commit()
        if self._failure is not None:
            raise self._failure

    # Rebalances ----------------------------------------------------------------

    def on_assigned(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self._forget(partitions)

    def on_revoked(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        """Finish what these partitions have begun, then commit, while they are ours."""
        until = self._clock.monotonic() + consumer.settings.max_poll_interval_ms / 2000
        while self._clock.monotonic() < until and self._failure is None:
            self._collect()
            if not any(self._progress[p].unfinished for p in partitions if p in self._progress):
                break
            self._clock.sleep(0.001)
        self._commit()
        self._forget(partitions)

    def on_lost(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self._forget(partitions)

    # Inside --------------------------------------------------------------------

    def _serve(self, records: queue.SimpleQueue[LogRecord | None]) -> None:
        while (record := records.get()) is not None:
            if self._failure is not None:
                continue  # not finished, so not committed
            try:
                self._work(record)
            except BaseException as error:
                self._failure = error
                self._finished.put((record, error))
            else:
                self._finished.put((record, None))

    def _hand_out(self, record: LogRecord) -> None:
        self._progress.setdefault(record.place, Progress()).start(record.offset)
        lane = record.key
        if not isinstance(lane, bytes):  # none, or what a deserializer made
            lane = repr(record.place if lane is None else lane).encode()
        self._queues[zlib.crc32(lane) % len(self._queues)].put(record)

    def _collect(self) -> None:
        while True:
            try:
                record, error = self._finished.get_nowait()
            except queue.Empty:
                return
            progress = self._progress.get(record.place)
            if error is None and progress is not None:
                progress.finish(record.offset)

    def _hold_back(self) -> None:
        paused = self._consumer.paused()
        for place, progress in self._progress.items():
            if progress.unfinished > self._most_waiting and place not in paused:
                self._consumer.pause(place)
            elif progress.unfinished <= self._most_waiting // 2 and place in paused:
                self._consumer.resume(place)

    def _commit(self) -> None:
        due = {
            place: progress.committable
            for place, progress in self._progress.items()
            if progress.committable is not None
            and progress.committable != self._committed.get(place)
        }
        if not due:
            return
        try:
            self._consumer.commit(due)
            self._committed.update(due)
        except CommitFailedError:
            pass  # the partitions have a new owner, who repeats the work

    def _forget(self, places: Sequence[Place]) -> None:
        for place in places:
            self._progress.pop(place, None)
            self._committed.pop(place, None)
