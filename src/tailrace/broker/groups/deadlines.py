"""What is due when: many deadlines, most of which are moved before they come.

A heartbeat only moves its member's deadline. The heap therefore keeps one entry per
key and lets it be too early; when it surfaces, it is pushed again at the true time.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """A deadline per key, in monotonic seconds."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._queued: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._numbers = itertools.count()

    def __contains__(self, key: Key) -> bool:
        return key in self._due

    def set(self, key: Key, due: float) -> None:
        """Let `key` be due at `due`, whatever was said before."""
        self._due[key] = due
        queued = self._queued.get(key)
        if queued is None or due < queued:
            self._push(key, due)

    def clear(self, key: Key) -> None:
        """Forget `key`; its heap entry is dropped when it surfaces."""
        self._due.pop(key, None)

    def next_due(self) -> float | None:
        """No deadline comes before this; None when there is none."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def expired(self, now: float) -> Iterator[Key]:
        """Keys whose time has come, earliest first; each is forgotten as it is given."""
        while True:
            self._settle()
            if not self._heap or self._heap[0][0] > now:
                return
            _, _, key = heapq.heappop(self._heap)
            del self._queued[key], self._due[key]
            yield key

    def _settle(self) -> None:
        """Bring a true deadline to the top of the heap."""
        heap = self._heap
        while heap:
            queued_at, _, key = heap[0]
            due = self._due.get(key)
            if self._queued.get(key) != queued_at:
                heapq.heappop(heap)  # an earlier entry of the same key took its place
            elif due is None:
                heapq.heappop(heap)
                del self._queued[key]
            elif due > queued_at:
                heapq.heappop(heap)
                self._push(key, due)
            else:
                return

    def _push(self, key: Key, due: float) -> None:
        self._queued[key] = due
        heapq.heappush(self._heap, (due, next(self._numbers), key))
