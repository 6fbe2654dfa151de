"""The machine's clock with a wall time that a test moves forward."""

from __future__ import annotations

from datetime import timedelta

from tailrace.clock import SYSTEM


class MovedClock:
    """Time runs as it does; `advance` lets wall time jump ahead, for holds and timers."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def wall_ms(self) -> int:
        return SYSTEM.wall_ms() + self._ahead_ms

    def monotonic(self) -> float:
        return SYSTEM.monotonic()

    def sleep(self, seconds: float) -> None:
        SYSTEM.sleep(seconds)

    def advance(self, length: timedelta) -> None:
        self._ahead_ms += length // timedelta(milliseconds=1)
