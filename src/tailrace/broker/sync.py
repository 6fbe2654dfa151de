"""Group commit: `fdatasync` beside the loop, acknowledgements after it.

Whoever wants a partition's bytes on the disk says how far; while one sync of that
partition is under way, further wishes gather and share the next. The loop thread
never waits: a helper thread runs the system call, which releases the GIL.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tailrace.broker.loop import Loop

if TYPE_CHECKING:
    from tailrace.log.partition import Partition
    from tailrace.log.sync import Ticket

log = logging.getLogger(__name__)

THREADS = 4

Done = Callable[[Exception | None], None]


class Syncer:
    """Syncs partitions in helper threads; callbacks come on the loop thread."""

    def __init__(self, loop: Loop, moved: Callable[[Partition], None]) -> None:
        self._loop = loop
        self._moved = moved
        self._waiting: dict[Partition, list[Done]] = {}
        self._running: dict[Partition, list[Done]] = {}
        self._work: SimpleQueue[tuple[Partition | None, Ticket] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.syncs_total = 0

    def want(self, partition: Partition, done: Done) -> None:
        """Call `done` once everything that is in `partition` now is on the disk."""
        if partition in self._running:
            self._waiting.setdefault(partition, []).append(done)
        else:
            self._start(partition, [done])

    def submit(self, ticket: Ticket) -> None:
        """Run a sync nobody waits for (flush by interval, checkpoints)."""
        self._ensure_thread(1)
        self._work.put((None, ticket))

    def close(self) -> None:
        """End the threads; what was asked for is synced first, its callbacks are not made."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self, partition: Partition, wishes: list[Done]) -> None:
        try:
            ticket = partition.begin_sync()
        except Exception as error:
            _tell(wishes, error)
            return
        if ticket is None:
            _tell(wishes, None)
            return
        self._running[partition] = wishes
        self._ensure_thread(len(self._running))
        self._work.put((partition, ticket))

    def _ensure_thread(self, wanted: int) -> None:
        if len(self._threads) < min(THREADS, wanted):
            thread = threading.Thread(target=self._sync, name="sync", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _sync(self) -> None:
        while (item := self._work.get()) is not None:
            partition, ticket = item
            error: Exception | None = None
            try:
                ticket.run()
            except Exception as problem:
                error = problem
            self._loop.call_from_thread(_Finish(self, partition, ticket, error))

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
            self._start(partition, waiting)


class _Finish:
    """A finished sync on its way to the loop thread."""

    __slots__ = ("_arguments", "_syncer")

    def __init__(
        self,
        syncer: Syncer,
        partition: Partition | None,
        ticket: Ticket,
        error: Exception | None,
    ) -> None:
        self._syncer = syncer
        self._arguments = (partition, ticket, error)

    def __call__(self) -> None:
        self._syncer._finished(*self._arguments)


def _tell(wishes: list[Done], error: Exception | None) -> None:
    for done in wishes:
        done(error)
