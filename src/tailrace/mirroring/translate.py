"""Offsets from one log to the other, exactly, by the runs of a mirror."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from tailrace.mirroring.rows import Run


def translate(runs: Sequence[Run], offset: int, end: int) -> int:
    """The target's offset of a source's record; in a gap that of the next one; behind all runs
    `end`, the end of the target."""
    return _find(runs, offset, end, _source, _target)


def translate_back(runs: Sequence[Run], offset: int, end: int) -> int:
    """The same from the target to the source; `end` is where the mirror goes on."""
    return _find(runs, offset, end, _target, _source)


Side = Callable[[Run], int]


def _source(run: Run) -> int:
    return run.source


def _target(run: Run) -> int:
    return run.target


def _find(runs: Sequence[Run], offset: int, end: int, here: Side, there: Side) -> int:
    number = bisect_right(runs, offset, key=here) - 1
    if number >= 0:
        run = runs[number]
        if offset < here(run) + run.length:
            return there(run) + offset - here(run)
    following = number + 1
    return there(runs[following]) if following < len(runs) else end
