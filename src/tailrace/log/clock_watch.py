"""Notices a wall clock that has jumped forward, before anything is deleted for its sake.

Kafka's retention compares the times in records with the broker's clock, so a clock that
is set a month ahead by mistake deletes a month of records within minutes. Here time-based
deletion waits an hour after such a jump: who set the clock wrong can set it right, and a
machine that was only asleep loses nothing by waiting. A clock that is ahead of the time
noted before the last stop (a dead battery, a machine restored) counts as one that jumped:
nobody can tell it from a machine that was off, which loses nothing by waiting either.
"""

from __future__ import annotations

import logging

from tailrace.clock import Clock

log = logging.getLogger(__name__)

JUMP_MS = 10 * 60 * 1000
WAIT_SECONDS = 3600.0


class ClockWatch:
    """Compares the two clocks at every `look`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms = self._difference()
        self._believed_at = 0.0
        self._jumped_ms = 0

    def look(self) -> None:
        """Take note of how the wall clock moved against the monotonic one."""
        ahead = self._difference()
        moved, self._ahead_ms = ahead - self._ahead_ms, ahead
        if abs(moved) < JUMP_MS:
            return
        self._jumped_ms = max(0, self._jumped_ms + moved) if self.doubtful else max(0, moved)
        if self._jumped_ms >= JUMP_MS:
            self._believed_at = self._clock.monotonic() + WAIT_SECONDS
            log.warning(
                "the clock jumped forward: deletion by time waits",
                extra={"jump_ms": moved, "wait_seconds": WAIT_SECONDS},
            )
        elif moved < 0:
            self._believed_at = 0.0
            log.warning("the clock was set back", extra={"jump_ms": moved})

    @property
    def doubtful(self) -> bool:
        """Whether the wall clock jumped forward lately and was not set right since."""
        return self._clock.monotonic() < self._believed_at

    def compare(self, noted_ms: int, wait_seconds: float = WAIT_SECONDS) -> None:
        """Compare with the time noted before this start; wait that long if it is ahead."""
        jumped = self._clock.wall_ms() - noted_ms
        if jumped >= JUMP_MS:
            self._jumped_ms = jumped
            self._believed_at = self._clock.monotonic() + wait_seconds
            log.warning(
                "the clock is ahead of the last stop: deletion by time waits",
                extra={"jump_ms": jumped, "wait_seconds": wait_seconds},
            )

    @property
    def wait_seconds(self) -> float:
        """How long a jump is in doubt still."""
        return max(0.0, self._believed_at - self._clock.monotonic())

    @property
    def believed_ms(self) -> int:
        """The wall clock without a jump that is in doubt."""
        return self._clock.wall_ms() - (self._jumped_ms if self.doubtful else 0)

    def _difference(self) -> int:
        return self._clock.wall_ms() - round(self._clock.monotonic() * 1000)
