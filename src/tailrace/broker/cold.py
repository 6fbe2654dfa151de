"""Reads of data that is not in memory or was never checked, kept off the loop.

`sendfile` of cold pages would stop every client for the time of a disk read. A range
is probed first with a read that refuses to wait; if it refuses, or if the range was not
read since the broker started, a helper thread reads it once. That brings it into the page
cache and checks every batch against its checksum, and the loop sends it then.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from tailrace.broker.connection import FileRange
from tailrace.broker.loop import Loop
from tailrace.log.slices import Slice
from tailrace.log.verification import Broken, find_damage

Done = Callable[[list[list[Broken]]], None]

THREADS = 2
PROBE_STRIDE_BYTES = 128 * 1024
_probe = bytearray(1)
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


def is_warm(source: FileRange) -> bool:
    """Whether the range can be sent without waiting for the disk, as far as samples tell."""
    if not _NOWAIT:
        return True
    position, end = source.position, source.position + source.length
    try:
        while position < end:
            os.preadv(source.descriptor, [_probe], position, _NOWAIT)
            position += PROBE_STRIDE_BYTES
        os.preadv(source.descriptor, [_probe], end - 1, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
    return True


class ColdReader:
    """Reads and checks ranges in helper threads; callbacks come on the loop thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._work: SimpleQueue[tuple[Sequence[Slice], Done] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._pending = 0
        self.reads_total = 0

    def warm(self, sources: Sequence[Slice], done: Done) -> None:
        """Call `done` with what is broken in each range, once all have been read; they must
        not be released before."""
        self.reads_total += 1
        self._pending += 1
        if len(self._threads) < min(THREADS, self._pending):
            thread = threading.Thread(target=self._read, name="cold-read", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put((sources, done))

    def close(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        while (item := self._work.get()) is not None:
            sources, done = item
            broken: list[list[Broken]] = []
            for source in sources:
                try:
                    broken.append(find_damage(source))
                except OSError:
                    broken.append([])  # sending it will fail on the loop, which closes
            self._loop.call_from_thread(self._finish(done, broken))

    def _finish(self, done: Done, broken: list[list[Broken]]) -> Callable[[], None]:
        def finished() -> None:
            self._pending -= 1
            done(broken)

        return finished
