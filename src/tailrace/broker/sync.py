"""Group commit: `fdatasync` beside the loop, acknowledgements after it.

Whoever wants a partition's bytes on the disk says how far; while one sync of that
partition is under way, further wishes gather and share the next. The loop thread
never waits: a helper thread runs the system call, which releases the GIL.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from tailrace.broker.loop import Loop

if TYPE_CHECKING:
    from tailrace.log.partition import Partition
    from tailrace.log.sync import Ticket

log = logging.getLogger(__name__)

THREADS = 4

Done = Callable[[Exception | None], None]
Job: TypeAlias = "tuple[Partition | None, Ticket]"  # None: nobody waits for it


class Syncer:
    """Syncs partitions in helper threads; callbacks come on the loop thread."""

    def __init__(self, loop: Loop, moved: Callable[[Partition], None]) -> None:
        self._loop = loop
        self._moved = moved
        self._waiting: dict[Partition, list[Done]] = {}
        self._running: dict[Partition, list[Done]] = {}
        self._work: SimpleQueue[Sequence[Job] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.syncs_total = 0

    def want(self, partition: Partition, done: Done) -> None:
        """Call `done` once everything that is in `partition` now is on the disk."""
        self._hand_over(self._wished(partition, done))

    def want_all(self, partitions: Sequence[Partition], done: Done) -> None:
        """Call `done` once everything that is in all of them now is on the disk.

        Whoever waits for all gains nothing from hearing of each: a thread takes its share of
        them at once and tells once.
        """
        together = _Together(len(partitions), done)
        jobs = [job for partition in partitions for job in self._wished(partition, together)]
        share = -(-len(jobs) // THREADS) or 1
        for first in range(0, len(jobs), share):
            self._hand_over(jobs[first : first + share])

    def submit(self, ticket: Ticket) -> None:
        """Run a sync nobody waits for (flush by interval, checkpoints)."""
        self._ensure_thread(1)
        self._work.put([(None, ticket)])

    def close(self) -> None:
        """End the threads; what was asked for is synced first, its callbacks are not made."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _wished(self, partition: Partition, done: Done) -> list[Job]:
        """What must be synced for it now: nothing if that is done already, or is under way and
        will be done once more."""
        if partition not in self._running:
            return self._begun(partition, [done])
        self._waiting.setdefault(partition, []).append(done)
        return []

    def _begun(self, partition: Partition, wishes: list[Done]) -> list[Job]:
        try:
            ticket = partition.begin_sync()
        except Exception as error:
            _tell(wishes, error)
            return []
        if ticket is None:
            _tell(wishes, None)
            return []
        self._running[partition] = wishes
        return [(partition, ticket)]

    def _hand_over(self, jobs: Sequence[Job]) -> None:
        if jobs:
            self._ensure_thread(len(self._running))
            self._work.put(jobs)

    def _ensure_thread(self, wanted: int) -> None:
        if len(self._threads) < min(THREADS, wanted):
            thread = threading.Thread(target=self._sync, name="sync", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _sync(self) -> None:
        while (jobs := self._work.get()) is not None:
            errors: list[Exception | None] = []
            for _, ticket in jobs:
                try:
                    ticket.run()
                    errors.append(None)
                except Exception as problem:
                    errors.append(problem)
            self._loop.call_from_thread(_Finish(self, jobs, errors))

    def _finished(
        self, partition: Partition | None, ticket: Ticket, error: Exception | None
    ) -> None:
        wishes = self._running.pop(partition) if partition is not None else []
        if error is None:
            try:
                ticket.finish()
                self.syncs_total += 1
            except Exception as problem:
                error = problem
        if error is not None:
            log.error(
                "sync failed", extra={"partition": str(ticket.partition), "error": str(error)}
            )
        _tell(wishes, error)
        if partition is None:
            return
        self._moved(partition)
        waiting = self._waiting.pop(partition, None)
        if waiting:
            self._hand_over(self._begun(partition, waiting))


class _Finish:
    """Finished syncs on their way to the loop thread."""

    __slots__ = ("_errors", "_jobs", "_syncer")

    def __init__(
        self, syncer: Syncer, jobs: Sequence[Job], errors: Sequence[Exception | None]
    ) -> None:
        self._syncer, self._jobs, self._errors = syncer, jobs, errors

    def __call__(self) -> None:
        for (partition, ticket), error in zip(self._jobs, self._errors, strict=True):
            self._syncer._finished(partition, ticket, error)


class _Together:
    """Told once for each of several; tells once, of the first error there was."""

    __slots__ = ("_done", "_error", "_left")

    def __init__(self, count: int, done: Done) -> None:
        self._left, self._done = count, done
        self._error: Exception | None = None
        if not count:
            done(None)

    def __call__(self, error: Exception | None) -> None:
        self._left -= 1
        self._error = self._error or error
        if self._left == 0:
            self._done(self._error)


def _tell(wishes: list[Done], error: Exception | None) -> None:
    for done in wishes:
        done(error)
