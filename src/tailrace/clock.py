"""The only door to time.

Nothing else in Tailrace asks the operating system what time it is, so a test can
replace time as a whole. Two kinds of time are kept apart: *wall* time, in
milliseconds since 1970, is written into records and can jump; *monotonic* time, in
seconds, measures time-outs and never goes back.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where a component gets its time from."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may jump either way."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never decreases."""

    def sleep(self, seconds: float) -> None:
        """Let this much time pass."""


class SystemClock:
    """The machine's own clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


SYSTEM = SystemClock()


def to_datetime(wall_ms: int) -> datetime:
    """An aware UTC datetime for milliseconds since 1970."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC)
