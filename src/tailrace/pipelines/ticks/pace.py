"""How long to pause between ticks.

Ticking should take at most half a core while a view's answer stays younger than its goal.
After a tick of t seconds the pause is therefore t, cut short where a change that arrives
at once would otherwise become visible later than the goal allows: it waits for the pause
and then for a tick.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """Pauses for one project. `goal` is how old an answer may become, in seconds."""

    goal: float
    usual: float = 0.0  # how long a tick takes, smoothed

    def pause(self, took: float, more: bool) -> float:
        """Seconds to wait after a tick that took `took`; none while there is a backlog."""
        self.usual = took if not self.usual else 0.7 * self.usual + 0.3 * took
        if more:
            return 0.0
        return max(0.0, min(took, self.goal - self.usual))
