"""The thread that decides for one partition.

    drain the queue → decide → encode → send; decide the next batch meanwhile
    acknowledged → index, in one transaction → callers

Whatever is lost on the way, a connection, the partition, the index, ends in the same place: the
commands without an answer are asked again, under the same ids, of whoever owns the partition
then. A command that was carried out after all is found by its id.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import lmdb

from tailrace.client.errors import ClientError, RecordTooLargeError
from tailrace.clock import Clock
from tailrace.errors import TailraceError
from tailrace.facts.asking import Answer, Ask, deliver
from tailrace.facts.deciding import MOST_ASKS, Decided, DecidedBatch, Decider
from tailrace.facts.errors import (
    EventsError,
    EventsKeyError,
    EventUnknownError,
    EventUnreadableError,
    PartitionLostError,
)
from tailrace.facts.failpoints import reached
from tailrace.facts.partition import Partition
from tailrace.facts.writing import MOST_ON_THEIR_WAY, PartitionWriter

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
SLOW_SECONDS = 1.0
LONGEST_PAUSE = 2.0
OnLost = Callable[["PartitionOwner", list[Ask]], None]


class PartitionOwner:
    """See the module. `on_lost` gets what waits when another owner has taken over."""

    def __init__(
        self,
        partition: Partition[Any],
        writer: PartitionWriter,
        clock: Clock,
        on_lost: OnLost,
        may_answer: Callable[[], bool] = lambda: True,
    ) -> None:
        self.partition = partition
        self.number = partition.number
        self._writer = writer
        self._clock = clock
        self._on_lost = on_lost
        self._may_answer = may_answer
        self._queue: SimpleQueue[Ask | None] = SimpleQueue()
        self._waiting: deque[Ask] = deque()
        self._sent: deque[DecidedBatch] = deque()
        self._decider = Decider(partition, writer.most_bytes)
        self._timestamp = 0
        self._stopping = threading.Event()
        self._again = threading.Event()
        self._forgotten_up_to = b""
        self.ready = threading.Event()
        """Set once the first take-over has ended, well or not: `trouble` says which."""
        self.trouble: TailraceError | None = None
        self.serving = False
        self.lost = False
        self.commands = self.rejected = self.batches = self.written = 0
        self.longest_ms = 0
        """Of the decisions of one batch: the others of the partition wait as long."""
        name = f"events {partition.declared.name}/{partition.number}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, ask: Ask) -> None:
        """Queue a decision; its channel gets the answer."""
        self._queue.put(ask)

    @property
    def waiting(self) -> int:
        """Commands that are not decided yet."""
        return self._queue.qsize() + len(self._waiting)

    def begin_again(self) -> None:
        """Finish what is on its way, forget every state and take the partition over again, from
        ourselves: what states were made of reads differently now."""
        self._again.set()
        self._queue.put(None)

    def stop(self) -> list[Ask]:
        """Finish the batches on their way and end; what was not decided is given back."""
        self._stopping.set()
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        return self._left()

    # The life of an owner ------------------------------------------------------

    def _run(self) -> None:
        pause = 0.05
        try:
            while not self._stopping.is_set():
                try:
                    self._take_over()
                    pause = 0.05
                    self._serve()
                except PartitionLostError as error:
                    self.trouble, self.lost = error, True
                    return
                except (EventUnknownError, EventUnreadableError, EventsKeyError) as error:
                    self._refuse_all(error)
                    self._stopping.wait(LONGEST_PAUSE)
                except (EventsError, ClientError, lmdb.Error, OSError) as error:
                    self._note(error)
                    self._stopping.wait(pause)
                    pause = min(LONGEST_PAUSE, pause * 2)
                except Exception as error:
                    log.exception("an owner of events stumbled")
                    self._note(error)
                    self._stopping.wait(pause)
                    pause = min(LONGEST_PAUSE, pause * 2)
        finally:
            self.serving = False
            self._put_back()
            self.ready.set()
            self._writer.close()
            self.partition.close()
            if self.lost:
                self._on_lost(self, self._left())

    def _note(self, error: Exception) -> None:
        """Take over again: what is on its way is in the log or not, and reading tells."""
        self._put_back()
        self.serving = False
        self.trouble = error if isinstance(error, TailraceError) else self._trouble_of(error)
        place = {"topic": self.partition.declared.name, "partition": self.number}
        log.warning("owner begins again", extra={**place, "error": str(error)})

    def _trouble_of(self, error: Exception) -> EventsError:
        return EventsError(
            f"the owner of {self.partition.declared.name}/{self.number} begins again",
            detail=f"{type(error).__name__}: {error}",
            hint=f"is the disk of {self.partition.index.directory} full? it is tried again",
        )

    def _refuse_all(self, error: TailraceError) -> None:
        self.trouble, self.serving = error, False
        self._put_back()
        self.ready.set()
        deliver([(ask, error) for ask in self._left()])

    def _take_over(self) -> None:
        try:
            end = self._writer.fence()
            try:
                self.partition.catch_up(end)
            except lmdb.Error:
                self.partition.start_afresh()
                self.partition.catch_up(end)
            self._writer.publish_missing(self.partition)
        finally:
            self._sent.clear()
        self._timestamp = self.partition.index.stamp.timestamp
        self._decider = Decider(self.partition, self._writer.most_bytes)
        self.trouble, self.serving = None, True
        self.ready.set()

    def _put_back(self) -> None:
        """What has no answer waits again, in its order, and is looked for by its id."""
        for batch in reversed(self._sent):
            for ask in reversed(batch.asks):
                ask.tried = True
                self._waiting.appendleft(ask)
        self._sent.clear()

    def _left(self) -> list[Ask]:
        left = list(self._waiting)
        self._waiting.clear()
        while True:
            try:
                ask = self._queue.get_nowait()
            except Empty:
                return left
            if ask is not None:
                left.append(ask)

    # Serving -------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            again = self._again.is_set()
            if again and not self._sent:
                self._again.clear()
                self.partition.states.clear()
                return
            self._drain(wait=not self._sent and not self._waiting)
            if self._waiting and not self._stopping.is_set() and not again:
                if not self._may_answer():
                    raise PartitionLostError(
                        f"the group does not answer, so {self.partition.declared.name}/"
                        f"{self.number} may have another owner"
                    )
                self._decide()
            if self._sent and (
                len(self._sent) >= MOST_ON_THEIR_WAY
                or again
                or self._stopping.is_set()  # what waits is given back, so nothing more is sent
                or (not self._waiting and self._queue.empty())
            ):
                self._acknowledge()
            elif not self._sent and not self._waiting:
                if self._stopping.is_set():
                    return
                if self._writer.renewal_due:
                    return  # taken over again, from ourselves
                self._rest()
            elif not self._sent and self._stopping.is_set():
                return

    def _drain(self, *, wait: bool) -> None:
        waiting, queue = self._waiting, self._queue
        if wait:
            try:
                ask = queue.get(timeout=IDLE_SECONDS)
            except Empty:
                return
            if ask is not None:
                waiting.append(ask)
        while len(waiting) < MOST_ASKS:
            try:
                ask = queue.get_nowait()
            except Empty:
                return
            if ask is not None:
                waiting.append(ask)

    def _rest(self) -> None:
        """Nothing to do for a second: drop a few command ids that need not be known."""
        remembered = self.partition.declared.remember.total_seconds() * 1000
        before = self._clock.wall_ms() - int(remembered)
        if self._queue.empty():
            self._forgotten_up_to = self.partition.index.forget_commands(
                before, self._forgotten_up_to
            )

    def _decide(self) -> None:
        began = self._clock.monotonic()
        # Times of a partition never go back, whatever the clock does.
        self._timestamp = max(self._timestamp, self._clock.wall_ms())
        decider, waiting = self._decider, self._waiting
        decider.on_their_way = list(self._sent)
        batch = decider.begin(self._timestamp)
        while waiting:
            ask = waiting.popleft()
            if not decider.take(ask):
                waiting.appendleft(ask)
                break
        took = self._clock.monotonic() - began
        self.longest_ms = max(self.longest_ms, round(took * 1000))
        if took > SLOW_SECONDS:
            log.warning(
                "deciding takes long, and all commands of the partition wait",
                extra={
                    "topic": self.partition.declared.name,
                    "partition": self.number,
                    "seconds": round(took, 3),
                    "commands": len(batch.results),
                },
            )
        reached("events.decided")
        if batch.records.count:
            self._sent.append(batch)
            self._writer.put(batch)
            reached("events.sent")
        elif self._sent:
            # They were decided on events that are not durable yet: told once those are.
            self._sent[-1].results += batch.results
        else:
            self._answer(batch)

    def _acknowledge(self) -> None:
        batch = self._sent[0]
        try:
            base = self._writer.receive()
        except RecordTooLargeError as error:
            # The limit of the topic has become smaller: read it again, and decide again.
            raise EventsError("the topic takes smaller batches now") from error
        reached("events.acknowledged")
        changes, known = batch.committed(base)
        self._sent.popleft()
        first = self.partition.index.stamp.next
        if base > first + self._writer.marker_records:
            changes.foreign = self._count_foreign(first, base)
        trouble: Exception | None = None
        try:
            note = self.partition.note
            for key, stored in batch.stored:
                note(changes, stored, key, base + stored.offset)
            self.partition.apply(changes, known, base + batch.records.count, batch.timestamp)
        except (lmdb.Error, OSError) as error:
            trouble = error  # the events are durable all the same
        reached("events.indexed")
        self.batches += 1
        self.written += batch.records.count
        self._answer(batch)
        reached("events.answered")
        if trouble is not None:
            self.partition.start_afresh()
            raise trouble

    def _count_foreign(self, first: int, end: int) -> int:
        """What others have written between two batches of ours."""
        try:
            return self.partition.count_records(first, end)
        except ClientError:
            return 0  # a figure only: nothing may keep the answers

    def _answer(self, batch: DecidedBatch) -> None:
        answers: list[tuple[Ask, Answer]] = []
        for each in batch.results:
            if not isinstance(each, Decided):
                self.rejected += 1
                answers.append((each[0], each[1]))
            else:
                answers.append((each.ask, self._decider.answer(batch, each)))
        self.commands += len(answers)
        deliver(answers)
