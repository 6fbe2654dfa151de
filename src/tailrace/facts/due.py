"""Streams that something is due for, found in time among the partitions this process owns.

`due_of(state)` says when, in milliseconds, or None. A thread looks at every stream that gets an
event and calls `act` when its time has come. What it knows is a cache, `due.json` beside the
index of each partition: without it the partition is read once. So nothing due is lost by a
restart, and a new owner finds it after a kill. `act` may be called again for the same stream as
long as its state says that something is due; what it does must be a decision on that state.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import msgspec

from tailrace.clock import Clock
from tailrace.errors import TailraceError
from tailrace.facts.opened import OpenedEvents
from tailrace.facts.partition import Partition
from tailrace.files import FILES

log = logging.getLogger(__name__)

AGAIN_MS = 1_000
"""How long `act` has to change the state before it is called again."""
MOST_SECONDS = 0.2
SAVE_SECONDS = 60.0
MOST_SAVED = 200_000

DueOf = Callable[[Any], int | None]
Act = Callable[[Partition[Any], str], int]
"""Does what is due for a stream; when to call again, in milliseconds from now (0: the usual)."""


class _Kept(msgspec.Struct):
    """What `due.json` holds."""

    topic_id: str
    fingerprint: str
    next: int
    streams: dict[str, int]


class _Watched:
    """One partition: the streams with something due, and up to where it was read."""

    def __init__(self, partition: Partition[Any], wake: Callable[[], None]) -> None:
        self.partition = partition
        self._wake = wake
        self.next = 0
        self.due: dict[str, int] = {}
        self.heap: list[tuple[int, str]] = []
        self._changed = False
        partition.watchers.append(wake)
        self._load()

    @property
    def _file(self) -> Path:
        return self.partition.index.directory / "due.json"

    def _load(self) -> None:
        try:
            found = msgspec.json.decode(FILES.read_whole(self._file) or b"", type=_Kept)
        except (OSError, msgspec.MsgspecError):
            return
        stamp = self.partition.index.stamp
        if found.next > self.partition.visible:
            return  # the log has lost what it was made of
        if (found.topic_id, found.fingerprint) == (stamp.topic_id, stamp.fingerprint):
            self.next = found.next
            for stream, due in found.streams.items():
                self.put(stream, due)

    def save(self) -> None:
        """Leave what is known for the next one who owns the partition on this host."""
        if not self._changed or len(self.due) > MOST_SAVED:
            return
        self._changed = False
        stamp = self.partition.index.stamp
        kept = _Kept(stamp.topic_id, stamp.fingerprint, self.next, self.due)
        with contextlib.suppress(OSError):
            FILES.write_whole(self._file, msgspec.json.encode(kept))

    def put(self, stream: str, due: int) -> None:
        self.due[stream] = due
        heapq.heappush(self.heap, (due, stream))

    def read(self, due_of: DueOf) -> None:
        """Look at every stream that has got an event since."""
        partition = self.partition
        end = partition.visible
        if end <= self.next:
            return
        for stream in partition.streams_since(self.next, end):
            try:
                due = due_of(partition.lookup(stream.encode()).state)
            except TailraceError as error:
                log.warning("a stream has no state", extra={"stream": stream, "error": str(error)})
                due = None
            if due is None:
                self.due.pop(stream, None)
            elif self.due.get(stream) != due:
                self.put(stream, due)
        self.next = end
        self._changed = True

    def take_due(self, now: int) -> list[str]:
        """The streams whose time has come."""
        found: list[str] = []
        while self.heap and self.heap[0][0] <= now:
            due, stream = heapq.heappop(self.heap)
            if self.due.get(stream) == due:
                found.append(stream)
        return found

    def first(self) -> int | None:
        return self.heap[0][0] if self.heap else None

    def end(self) -> None:
        with contextlib.suppress(ValueError):
            self.partition.watchers.remove(self._wake)


class DueStreams:
    """See the module. Close it before what it watches."""

    def __init__(self, opened: OpenedEvents[Any], due_of: DueOf, act: Act) -> None:
        self._opened = opened
        self._due_of = due_of
        self._act = act
        self._clock: Clock = opened.log.clock
        self._watched: dict[int, _Watched] = {}
        self._woken = threading.Event()
        self._stopping = False
        self._saved_at = self._clock.monotonic()
        name = f"events due {opened.declared.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look again now."""
        self._woken.set()

    def close(self) -> None:
        self._stopping = True
        self._woken.set()
        self._thread.join()
        for each in self._watched.values():
            with contextlib.suppress(Exception):  # the partition may have been lost
                each.save()
            each.end()

    def _run(self) -> None:
        while not self._stopping:
            self._woken.clear()
            self._follow_ownership()
            wait = MOST_SECONDS
            for number, each in list(self._watched.items()):
                try:
                    wait = min(wait, self._look(each))
                except (TailraceError, lmdb.Error, OSError) as error:
                    # Lost, or read again from its beginning: what was known of it is not kept.
                    self._watched.pop(number).end()
                    log.info("due streams are looked for again", extra={"error": str(error)})
            self._save()
            self._woken.wait(wait)

    def _follow_ownership(self) -> None:
        owned = {each.number: each for each in self._opened.owned()}
        for number, each in list(self._watched.items()):
            if owned.get(number) is not each.partition:
                self._watched.pop(number).end()
        for number, partition in owned.items():
            if number not in self._watched:
                self._watched[number] = _Watched(partition, self._woken.set)

    def _look(self, each: _Watched) -> float:
        """Act on what is due; seconds until there is more."""
        each.read(self._due_of)
        now = self._clock.wall_ms()
        for stream in each.take_due(now):
            if self._stopping:
                return 0.0
            each.put(stream, now + (self._act(each.partition, stream) or AGAIN_MS))
        first = each.first()
        return MOST_SECONDS if first is None else max(0.001, (first - now) / 1000)

    def _save(self) -> None:
        now = self._clock.monotonic()
        if now - self._saved_at > SAVE_SECONDS:
            self._saved_at = now
            for each in self._watched.values():
                each.save()
