"""Looks into batches that are too large for the loop to look into itself.

A request with such a batch is held where it is (`Hold`), the batches are copied and looked at
in a helper thread, and the request is dispatched again with what was found. Decompression lets
the loop run beside it, and a thread that walks records gives way every few milliseconds, so
others wait for milliseconds where they would wait for the whole batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from tailrace.broker.loop import Loop
from tailrace.errors import TailraceError
from tailrace.log.admission import Admitted
from tailrace.log.partition import Partition

THREADS = 2

Verdict = Admitted | TailraceError
Work = Sequence[tuple[int, Partition, bytearray]]
"""Where in its frame each batch begins, whose it is, and a copy of it."""
Done = Callable[[dict[int, Verdict]], None]


class Look:
    """What is found in the batches of one held request; None while they are looked at."""

    __slots__ = ("verdicts",)

    def __init__(self) -> None:
        self.verdicts: dict[int, Verdict] | None = None


class Inspector:
    """Helper threads, started when first needed; callbacks come on the loop thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._work: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
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
        self._work.put((work, done))

    def close(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, done = item
            found: dict[int, Verdict] = {}
            for start, partition, batch in work:
                try:
                    found[start] = partition.admit(batch)
                except TailraceError as error:
                    found[start] = error
                except Exception as error:  # a producer must not be left waiting for ever
                    found[start] = TailraceError(
                        "a batch could not be looked at", detail=str(error)
                    )
            self._loop.call_from_thread(self._finish(done, found))

    def _finish(self, done: Done, found: dict[int, Verdict]) -> Callable[[], None]:
        def finished() -> None:
            self._pending -= 1
            done(found)

        return finished
