"""Notices a wall clock that jumps forward, before anything is deleted for its sake.

Kafka's retention compares the times in records with the broker's clock, so a clock that
is set a month ahead by mistake deletes a month of records within minutes. Here time-based
deletion waits an hour after such a jump: who set the clock wrong can set it right, and a
machine that was only asleep loses nothing by waiting.
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

    def _difference(self) -> int:
        return self._clock.wall_ms() - round(self._clock.monotonic() * 1000)
