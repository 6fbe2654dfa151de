"""The naive twin of MATCH_RECOGNIZE: SQL:2016 read word by word, by backtracking.

It shares no code with the matcher. A pattern is nested tuples, a condition or a measure a
function of a `View` of the match so far. Its time is exponential: for small inputs.

    ("row", "A")  ("sequence", p, …)  ("either", p, …)  ("repeat", p, least, most, greedy)
    ("permute", p, …)  ("exclude", p)  ("first",)  ("last",)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Pattern: TypeAlias = tuple[Any, ...]
Taken: TypeAlias = tuple[tuple[str, bool], ...]  # the variable of each row, whether it is excluded
Then: TypeAlias = Callable[[int, Taken], "Taken | None"]
MOST_STEPS = 200_000


class TooLong(Exception):
    """More steps than a naive matcher should take."""


class SkipError(Exception):
    """A SKIP that cannot be done."""


@dataclass(frozen=True)
class View:
    """What an expression sees: rows from `start` that `names` took, of which the first `shown`
    are running. `number` is that of the match."""

    rows: Sequence[Row]
    start: int
    names: Sequence[str]
    shown: int
    number: int

    def final(self) -> View:
        return View(self.rows, self.start, self.names, len(self.names), self.number)

    def places(self, variables: str = "") -> list[int]:
        """Rows (of the partition) of some variables, of all without a name."""
        wanted = variables.split()
        return [
            self.start + at
            for at, name in enumerate(self.names[: self.shown])
            if (name in wanted if wanted else name)  # "" of a row that belongs to none
        ]

    def _at(self, place: int | None, column: str) -> Any:
        if place is None:
            return None
        if column:
            return self.rows[place][column] if 0 <= place < len(self.rows) else None
        within = place - self.start
        return self.names[within] if 0 <= within < len(self.names) else None

    def last(self, column: str, variables: str = "", offset: int = 0, shift: int = 0) -> Any:
        places = self.places(variables)
        if offset >= len(places):
            return None
        return self._at(places[-1 - offset] + shift, column)

    def first(self, column: str, variables: str = "", offset: int = 0, shift: int = 0) -> Any:
        places = self.places(variables)
        if offset >= len(places):
            return None
        return self._at(places[offset] + shift, column)

    def values(self, column: str, variables: str = "") -> list[Any]:
        """The values that are not NULL; without a column the rows' variables."""
        found = [self._at(place, column) for place in self.places(variables)]
        return [value for value in found if value is not None]


Expression: TypeAlias = Callable[[View], Any]


@dataclass
class Clause:
    """MATCH_RECOGNIZE. `skip`: "last row", "next row", or (first or last, variables).
    `rows`: one, all, omit empty, unmatched."""

    pattern: Pattern
    define: Mapping[str, Expression] = field(default_factory=dict)
    measures: Mapping[str, Expression] = field(default_factory=dict)
    partition: Sequence[str] = ()
    order: Callable[[Row], Any] = lambda row: 0
    rows: str = "one"
    skip: Any = "last row"
    within: tuple[str, Any] | None = None


class Search:
    def __init__(self, clause: Clause, rows: Sequence[Row], start: int, number: int) -> None:
        self.clause, self.rows, self.start, self.number = clause, rows, start, number
        self.steps = 0

    def run(self) -> Taken | None:
        return self.match(self.clause.pattern, self.start, (), False, lambda at, taken: taken)

    def match(
        self, pattern: Pattern, at: int, taken: Taken, excluded: bool, then: Then
    ) -> Taken | None:
        """The preferred way to match the pattern here and all that is behind it."""
        self.count()
        kind, *parts = pattern
        if kind == "row":
            if at >= len(self.rows) or not self._fits(parts[0], at, taken):
                return None
            return then(at + 1, (*taken, (parts[0], excluded)))
        if kind == "sequence":
            if not parts:
                return then(at, taken)
            rest = ("sequence", *parts[1:])
            return self.match(
                parts[0], at, taken, excluded,
                lambda on, more: self.match(rest, on, more, excluded, then),
            )  # fmt: skip
        if kind == "either":
            return self._first(
                lambda part=part: self.match(part, at, taken, excluded, then) for part in parts
            )
        if kind == "permute":
            orders = [("sequence", *order) for order in permutations(parts)]
            return self.match(("either", *orders), at, taken, excluded, then)
        if kind == "exclude":
            return self.match(parts[0], at, taken, True, then)
        if kind == "first":
            return then(at, taken) if at == 0 else None
        if kind == "last":
            return then(at, taken) if at == len(self.rows) else None
        return self._turns(parts, 0, at, taken, excluded, then)

    def count(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLong

    def _turns(
        self, loop: list[Any], done: int, at: int, taken: Taken, excluded: bool, then: Then
    ) -> Taken | None:
        part, least, most, greedy = loop

        def one_more() -> Taken | None:
            def behind(on: int, more: Taken) -> Taken | None:
                if on == at and done >= least:  # an empty turn is taken, and is the last
                    return then(on, more)
                return self._turns(loop, done + 1, on, more, excluded, then)

            return self.match(part, at, taken, excluded, behind)

        if done < least:
            return one_more()
        if most is not None and done >= most:
            return then(at, taken)
        ways = [one_more, lambda: then(at, taken)]
        return self._first(ways if greedy else ways[::-1])

    def _first(self, ways: Any) -> Taken | None:
        for way in ways:
            found: Taken | None = way()
            if found is not None:
                return found
        return None

    def _fits(self, name: str, at: int, taken: Taken) -> bool:
        if self._too_long(at):
            return False
        condition = self.clause.define.get(name)
        if condition is None:
            return True
        names = [*(one for one, _ in taken), name]
        return condition(View(self.rows, self.start, names, len(names), self.number)) is True

    def _too_long(self, at: int) -> bool:
        """Whether a row stands too far behind the first one."""
        within = self.clause.within
        if within is None:
            return False
        column, length = within
        begun, now = self.rows[self.start][column], self.rows[at][column]
        return bool(begun is None or now is None or now - begun >= length)


def recognize(clause: Clause, table: Sequence[Row]) -> list[Row]:
    """The rows of the result, in any order."""
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in table:
        parts.setdefault(tuple(row[name] for name in clause.partition), []).append(row)
    return [
        shown
        for rows in parts.values()
        for shown in _partition(clause, sorted(rows, key=clause.order))
    ]


def _partition(clause: Clause, rows: list[Row]) -> list[Row]:
    result: list[Row] = []
    at, number, covered = 0, 1, 0
    while at < len(rows):
        taken = Search(clause, rows, at, number).run()
        if taken is None:
            if clause.rows == "unmatched" and at >= covered:
                result.append({**rows[at], **dict.fromkeys(clause.measures)})
            at += 1
            continue
        names = [name for name, _ in taken]
        whole = View(rows, at, names, len(names), number)
        number += 1
        covered = max(covered, at + len(names))
        shown = {name: rows[at][name] for name in clause.partition}
        if not taken:
            if clause.rows != "omit empty":
                kept = shown if clause.rows == "one" else rows[at]
                result.append({**kept, **_measured(clause, whole)})
            at += 1
            continue
        if clause.rows == "one":
            result.append({**shown, **_measured(clause, whole)})
        else:
            for place, (_, excluded) in enumerate(taken):
                if not excluded:
                    running = View(rows, at, names, place + 1, whole.number)
                    result.append({**rows[at + place], **_measured(clause, running)})
        at = behind(clause.skip, at, names)
    return result


def recognize_in_windows(
    clause: Clause, table: Sequence[Row], end: int | None = None, *, seek: bool = False
) -> list[Row]:
    """Every row, with the measures of its match in the window of it and `end` rows behind it.
    A row without a match has None for each."""
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in table:
        parts.setdefault(tuple(row[name] for name in clause.partition), []).append(row)
    result: list[Row] = []
    for part in parts.values():
        rows = sorted(part, key=clause.order)
        following = 0
        for at, row in enumerate(rows):
            found = dict.fromkeys(clause.measures)
            if at >= following:
                frame = rows[at:] if end is None else rows[at : at + end + 1]
                for begin in range(len(frame)) if seek else [0]:
                    taken = Search(clause, frame, begin, 1).run()
                    if taken is None:
                        continue
                    names = [name for name, _ in taken]
                    found = _measured(clause, View(frame, begin, names, len(names), 1))
                    if names and clause.skip != "next row":
                        following = at + behind(clause.skip, begin, names)
                    break
            result.append({**row, **found})
    return result


def _measured(clause: Clause, view: View) -> Row:
    return {name: measure(view) for name, measure in clause.measures.items()}


def behind(skip: Any, at: int, names: list[str]) -> int:
    if skip == "last row":
        return at + len(names)
    if skip == "next row":
        return at + 1
    end, variables = skip
    places = [place for place, name in enumerate(names) if name in variables.split()]
    if not places:
        raise SkipError
    place = places[0] if end == "first" else places[-1]
    if not place:
        raise SkipError
    return at + place
