"""How fast something went lately, and how long to pause until it is slow enough.

Kafka's own arithmetic: a rate is the sum over the last `samples` windows divided by the
time they cover, and a client that never did anything is treated as if it had been quiet
for all of them. A burst of one window's worth of every window is therefore free.
"""

from __future__ import annotations

from collections import deque


class Rate:
    """A sum over a sliding time; every method takes the present monotonic time."""

    __slots__ = ("_samples", "_total", "count", "window_seconds", "windows")

    def __init__(self, samples: int = 11, window_seconds: float = 1.0) -> None:
        self.count = samples
        self.window_seconds = window_seconds
        self.windows: deque[list[float]] = deque()  # [start, sum], oldest first
        self._total = 0.0

    def add(self, amount: float, now: float) -> None:
        """Count `amount`; negative takes back what was counted just before."""
        windows = self.windows
        if not windows or now - windows[-1][0] >= self.window_seconds:
            windows.append([now, 0.0])
        windows[-1][1] += amount
        self._total += amount
        self._forget(now)

    def total(self, now: float) -> float:
        """The sum over the windows that still count."""
        self._forget(now)
        return self._total if self.windows else 0.0

    def seconds(self, now: float) -> float:
        """The time the sum covers; never less than all full windows but the present one."""
        self._forget(now)
        elapsed = now - self.windows[0][0] if self.windows else 0.0
        missing = self.count - 1 - int(elapsed / self.window_seconds)
        return elapsed + missing * self.window_seconds if missing > 0 else elapsed

    def per_second(self, now: float) -> float:
        """The rate."""
        return self.total(now) / self.seconds(now)

    def pause(self, limit: float, now: float) -> float:
        """Seconds after which the rate will be back at `limit` if nothing more comes."""
        return max(0.0, self.total(now) / limit - self.seconds(now))

    def _forget(self, now: float) -> None:
        windows = self.windows
        horizon = now - self.count * self.window_seconds
        while windows and windows[0][0] <= horizon:
            self._total -= windows.popleft()[1]
        if not windows:
            self._total = 0.0


class Bucket:
    """Tokens that come at `rate` a second up to a burst; may be overdrawn once."""

    __slots__ = ("_at", "_tokens")

    def __init__(self, rate: float, burst_seconds: float, now: float) -> None:
        self._at = now
        self._tokens = rate * burst_seconds

    def pause(self, rate: float, burst_seconds: float, now: float) -> float:
        """Seconds until the debt is paid; 0 if there is none."""
        self._tokens = min(rate * burst_seconds, self._tokens + (now - self._at) * rate)
        self._at = now
        return max(0.0, -self._tokens / rate)

    def take(self, amount: float) -> None:
        self._tokens -= amount
