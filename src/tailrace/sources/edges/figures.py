"""What an edge has received, accepted and refused since it started."""

from __future__ import annotations

import threading


class Figures:
    """Counts. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("received", "accepted", "refused", "repeated"), 0)

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
