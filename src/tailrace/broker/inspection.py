"""Looks into batches that are too large for the loop to look into itself.

A request with such a batch is held where it is (`Hold`), the batches are copied and looked at
in a helper thread, and the request is dispatched again with what was found. Decompression lets
the loop run beside it, and a thread that walks records gives way every few milliseconds, so
others wait for milliseconds where they would wait for the whole batch. A request with very many
batches goes behind the others in the queue after every turn.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tailrace.broker.loop import Loop
from tailrace.errors import TailraceError
from tailrace.log.admission import Admitted
from tailrace.log.partition import Partition

if TYPE_CHECKING:
    from tailrace.broker.handlers.produce import Result

THREADS = 2
TURN_SECONDS = 0.05
"""How long one request keeps a thread before the next has its turn; a batch is never divided."""

Verdict = Admitted | TailraceError
Work = Sequence[tuple[int, Partition, bytearray]]
"""Where in its frame each batch begins, whose it is, and a copy of it."""
Done = Callable[[dict[int, Verdict]], None]


class Look:
    """A held request: what is found in its batches, None while they are looked at, and how far
    it has got if it is served in turns."""

    __slots__ = ("appended", "denied", "failed", "unsynced", "verdicts")

    def __init__(self, denied: Mapping[bytes, int]) -> None:
        self.denied = denied
        """Topics that may not be written, with their errors."""
        self.verdicts: dict[int, Verdict] | None = None
        self.appended: list[tuple[bytes, list[Result]]] = []
        self.unsynced: list[Partition] = []
        self.failed = False


class _Inquiry:
    """The batches of one request: those still to be looked at, and what was found in the others."""

    __slots__ = ("done", "found", "left")

    def __init__(self, work: Work, done: Done) -> None:
        self.left = deque(work)
        self.found: dict[int, Verdict] = {}
        self.done = done

    def work_on(self) -> bool:
        """Look at some; whether that were the last."""
        until = time.monotonic() + TURN_SECONDS
        while self.left:
            start, partition, batch = self.left.popleft()
            try:
                self.found[start] = partition.admit(batch)
            except TailraceError as error:
                self.found[start] = error
            except Exception as error:  # a producer must not be left waiting for ever
                self.found[start] = TailraceError(
                    "a batch could not be looked at", detail=str(error)
                )
            if time.monotonic() >= until:
                break
        return not self.left


class Inspector:
    """Helper threads, started when first needed; callbacks come on the loop thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._work: SimpleQueue[_Inquiry | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._pending = 0
        self.inspected_total = 0

    def inspect(self, work: Work, done: Done) -> None:
        """Call `done` with what became of each batch, by where it begins."""
        self.inspected_total += len(work)
        self._pending += 1
        if len(self._threads) < min(THREADS, self._pending):
            thread = threading.Thread(target=self._run, name="inspect", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put(_Inquiry(work, done))

    def close(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (inquiry := self._work.get()) is not None:
            if inquiry.work_on():
                self._loop.call_from_thread(self._finish(inquiry.done, inquiry.found))
            else:
                self._work.put(inquiry)

    def _finish(self, done: Done, found: dict[int, Verdict]) -> Callable[[], None]:
        def finished() -> None:
            self._pending -= 1
            done(found)

        return finished
