"""Whether a large tick runs in one task or over levels: whichever is sooner done here.

Over levels all cores work, and each row costs more: it is packed, exchanged, unpacked. What that
comes to depends on the views, on the machine and on what else this does. So it is measured: the
first large tick of some views runs in one task. Where the cores could make up for the price, the
next one runs over levels, and then the better way is kept until it is time to look again. Levels
take more processor time in any case: they must be clearly sooner done.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

PRICE = 1.6  # times the processor time of one task: what levels cost, before it is known better
WORTH = 0.7  # of the time one task takes: more than that is no gain
LOOK_AGAIN = 50  # large ticks after which a measure is too old
_NEWEST = 0.5  # what the last tick counts in a mean
_VIEWS = 64  # sets of views that are remembered

Views = frozenset[str]


@dataclass(slots=True)
class _Measured:
    """Seconds a record, and how many large ticks ago that was."""

    seconds: float
    age: int = 0


@dataclass(slots=True)
class Ways:
    """What large ticks took, one way and the other. Only speed depends on it."""

    cores: int
    _known: dict[tuple[Views, bool], _Measured] = field(default_factory=dict)

    def over_levels(self, views: Collection[str], shards: int) -> bool:
        """Whether the next large tick of these views runs over levels."""
        if min(self.cores, shards) < 2:
            return False
        one, levels = (self._known.get((frozenset(views), way)) for way in (False, True))
        if one is None or one.age > LOOK_AGAIN:
            return False
        if levels is None or levels.age > LOOK_AGAIN:
            return min(self.cores, shards) * WORTH > PRICE
        return levels.seconds < one.seconds * WORTH

    def learn(self, views: Collection[str], levels: bool, records: int, seconds: float) -> None:
        """A large tick of so many records took so long."""
        own, each = frozenset(views), seconds / max(records, 1)
        for (others, _), known in self._known.items():
            if others == own:
                known.age += 1
        before = self._known.pop((own, levels), None)
        fresh = before is None or before.age > LOOK_AGAIN
        mean = (
            each if fresh or before is None else before.seconds + _NEWEST * (each - before.seconds)
        )
        self._known[own, levels] = _Measured(mean)
        while len(self._known) > _VIEWS:
            del self._known[next(iter(self._known))]
