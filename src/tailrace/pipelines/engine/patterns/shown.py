"""What a match shows: the values of its slots at a row of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tailrace.pipelines.engine.patterns.aggregation import Totals
from tailrace.pipelines.engine.patterns.matcher import Rows
from tailrace.pipelines.engine.patterns.slots import (
    Aggregated,
    Constant,
    Matched,
    MatchNumber,
    Navigation,
    Slot,
    Variables,
)


class Match:
    """A match: the variables of its rows, from `start`. `known` holds what was computed."""

    __slots__ = ("_positions", "known", "number", "rows", "start", "variables")

    def __init__(self, rows: Rows, start: int, variables: Sequence[int], number: int) -> None:
        self.rows, self.start, self.variables, self.number = rows, start, variables, number
        self._positions: dict[Variables, list[int]] = {}
        self.known: dict[int, list[tuple[int, ...]]] = {}

    def positions(self, variables: Variables) -> list[int]:
        """The rows, from 0, that these variables took."""
        found = self._positions.get(variables)
        if found is None:
            taken = self.variables
            found = self._positions[variables] = (
                list(range(len(taken)))
                if variables is None
                else [at for at, one in enumerate(taken) if one in variables]
            )
        return found


Shower: TypeAlias = Callable[[Match, int], object]  # the rows up to that one are running


def shower(slot: Slot, columns: Sequence[str], names: Sequence[str | None]) -> Shower:
    """Computes a slot of a match with so many rows so far."""
    match slot:
        case MatchNumber():
            return lambda match, limit: match.number
        case Matched():
            return lambda match, limit: True
        case Constant(column, _):
            at = columns.index(column)
            return lambda match, limit: match.rows[match.start][at]
        case Navigation():
            return _navigation(slot, columns, names)
        case Aggregated():
            return _aggregate(slot, columns, names)


def _navigation(slot: Navigation, columns: Sequence[str], names: Sequence[str | None]) -> Shower:
    column = columns.index(slot.column) if slot.column else -1
    variables, last, running, offset = slot.variables, slot.last, slot.running, slot.offset
    shift = slot.shift

    def value(match: Match, limit: int) -> object:
        positions = match.positions(variables)
        count = bisect_left(positions, limit) if running else len(positions)
        if offset >= count:
            return None
        at = positions[count - 1 - offset if last else offset] + shift
        if column < 0:
            return names[match.variables[at]] if 0 <= at < len(match.variables) else None
        at += match.start
        return match.rows[at][column] if 0 <= at < len(match.rows) else None

    return value


def _aggregate(slot: Aggregated, columns: Sequence[str], names: Sequence[str | None]) -> Shower:
    totals = Totals(slot, columns)
    identity = id(totals)

    def value(match: Match, limit: int) -> object:
        positions = match.positions(slot.variables)
        count = bisect_left(positions, limit) if slot.running else len(positions)

        def place(at: int) -> tuple[tuple[object, ...], str | None]:
            return match.rows[match.start + at], names[match.variables[at]]

        if not totals.steps:
            return totals.of([place(at) for at in positions[:count]])
        sums = match.known.setdefault(identity, [totals.nothing])
        while len(sums) <= count:
            sums.append(totals.add(sums[-1], place(positions[len(sums) - 1])))
        return totals.finish(sums[count])

    return value
