"""Offsets from one log to the other, exactly, by the runs of a mirror."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tailrace.mirroring.rows import Run


def translate(runs: Sequence[Run], offset: int, end: int) -> int:
    """The target's offset of a source's record; in a gap that of the next one; behind all runs
    `end`, the end of the target."""
    return _find(runs, offset, end, here=0, there=1)


def translate_back(runs: Sequence[Run], offset: int, end: int) -> int:
    """The same from the target to the source; `end` is where the mirror goes on."""
    return _find(runs, offset, end, here=1, there=0)


def _find(runs: Sequence[Run], offset: int, end: int, *, here: int, there: int) -> int:
    number = bisect_right(runs, offset, key=lambda run: run[here]) - 1
    if number >= 0:
        run = runs[number]
        if offset < run[here] + run[2]:
            return run[there] + offset - run[here]
    following = number + 1
    return runs[following][there] if following < len(runs) else end
