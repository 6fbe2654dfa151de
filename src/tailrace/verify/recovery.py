"""How long producers and consumers stood still after each fault, from the history alone.

A partition stands still between two acknowledgements (or two records given to the group). After
a fault, what counts is the longest such gap of any partition that ends between this fault and the
next, or, where a partition did not move before the next, the one that spans both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailrace.verify.history import Column, FaultAbout, History, Status

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Recovery:
    """A fault and what it cost; None where nothing moved again before the end."""

    fault: FaultAbout
    producer_seconds: float | None
    consumer_seconds: float | None


def recoveries(history: History) -> list[Recovery]:
    """For every fault, in order."""
    about = history.about
    sends, polls = history["sends"], history["polls"]
    acknowledged = sends["status"] == Status.ACKNOWLEDGED
    in_groups = np.isin(
        polls["consumer"], [each.id for each in about.consumers if each.group in about.groups]
    )
    written = _lanes(sends["partition"], sends["answered_at"], acknowledged)
    read = _lanes(polls["partition"], polls["polled_at"], in_groups)
    faults = sorted(about.faults, key=lambda each: each.at)
    found = []
    for number, fault in enumerate(faults):
        until = faults[number + 1].at if number + 1 < len(faults) else about.ended_at
        found.append(
            Recovery(
                fault,
                _longest(written, fault.at, max(until, fault.until)),
                _longest(read, fault.at, max(until, fault.until)),
            )
        )
    return found


def _lanes(partition: Column, moments: Column, chosen: Column) -> list[Column]:
    """The moments of every partition, in order."""
    return [
        np.unique(moments[chosen & (partition == each)]) for each in np.unique(partition[chosen])
    ]


def _longest(lanes: list[Column], at: int, until: int) -> float | None:
    longest = -1
    for moments in lanes:
        ends = moments[1:]
        first = int(np.searchsorted(ends, at, side="right"))
        last = max(first + 1, int(np.searchsorted(ends, until, side="right")))
        gaps = (ends - moments[:-1])[first:last]
        if len(gaps):
            longest = max(longest, int(gaps.max()))
    return None if longest < 0 else round(longest / SECOND, 3)
