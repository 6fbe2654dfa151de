"""A clock that stands still until a test moves it."""

from __future__ import annotations


class FakeClock:
    """Wall and monotonic time that move together, by hand."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = float(wall_ms)
        self._monotonic = 0.0

    def wall_ms(self) -> int:
        return int(self._wall_ms)

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._monotonic += seconds
        self._wall_ms += seconds * 1000

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as an administrator or NTP does."""
        self._wall_ms += seconds * 1000
