"""What an edge has received, accepted, refused and lost since it started, and in the last minute."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

from tailrace.clock import SYSTEM, Clock

MINUTE_SECONDS = 60.0
_WATCHED = ("received", "refused", "lost")


class Figures:
    """Counts. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("received", "accepted", "refused", "repeated", "lost"), 0)

    def _add(self, name: str, count: int) -> None:
        with self._lock:
            self._counts[name] += count

    def received(self, count: int) -> None:
        self._add("received", count)

    def accepted(self, count: int) -> None:
        self._add("accepted", count)

    def refused(self, count: int) -> None:
        self._add("refused", count)

    def repeated(self, count: int) -> None:
        self._add("repeated", count)

    def now(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


class LastMinute:
    """How much figures grew within a minute, for alarms. Asked once a second or less often."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, dict[str, int]]] = deque()

    def look(self, figures: Mapping[str, int]) -> dict[str, int]:
        now = self._clock.monotonic()
        here = {name: figures[name] for name in _WATCHED}
        self._seen.append((now, here))
        while now - self._seen[0][0] > MINUTE_SECONDS:
            self._seen.popleft()
        before = self._seen[0][1]
        return {f"minute_{name}": here[name] - before[name] for name in _WATCHED}
