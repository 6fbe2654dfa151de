"""The naive twin of patterns of events: what a batch run over all rows of a key would tell.

It shares no code with the operator. Beside what `row_patterns` knows, a pattern has

    ("skip", names, greedy)   any number of rows that do not fit these variables
    ("absent", names)         none that fits, until no row can belong to the match any more
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailrace.testing.row_patterns import (
    Clause,
    Pattern,
    Row,
    Search,
    Taken,
    Then,
    View,
    behind,
)


@dataclass
class EventClause(Clause):
    """`now`: no row to come is older. `gap`: a column, and the most between neighbours in it.
    `before`: variables that no row within the time of a match before it may fit."""

    now: Any = None
    gap: tuple[str, Any] | None = None
    before: tuple[str, ...] = ()


class _EventSearch(Search):
    clause: EventClause

    def match(
        self, pattern: Pattern, at: int, taken: Taken, excluded: bool, then: Then
    ) -> Taken | None:
        kind, *parts = pattern
        if kind == "absent":
            while at < len(self.rows) and not self._too_long(at):
                if any(Search._fits(self, name, at, taken) for name in parts[0]):
                    return None
                at, taken = at + 1, (*taken, ("", True))
            return then(at, taken) if self._is_over(at) else None
        if kind != "skip":
            return Search.match(self, pattern, at, taken, excluded, then)
        self.count()
        names, greedy = parts

        def one_more() -> Taken | None:
            if at >= len(self.rows) or self._too_long(at) or not self._is_near(at, taken):
                return None
            if any(self._fits(name, at, taken) for name in names):
                return None
            return self.match(pattern, at + 1, (*taken, ("", True)), excluded, then)

        ways = [one_more, lambda: then(at, taken)]
        return self._first(ways if greedy else ways[::-1])

    def _is_over(self, at: int) -> bool:
        if at < len(self.rows):
            return self._too_long(at)
        within = self.clause.within
        if within is None or self.clause.now is None:
            return False
        column, length = within
        return bool(self.clause.now - self.rows[self.start][column] >= length)

    def _is_near(self, at: int, taken: Taken) -> bool:
        gap = self.clause.gap
        real = [self.start + place for place, (name, _) in enumerate(taken) if name]
        if gap is None or not real:
            return True
        column, most = gap
        return bool(self.rows[at][column] - self.rows[real[-1]][column] <= most)

    def _fits(self, name: str, at: int, taken: Taken) -> bool:
        return self._is_near(at, taken) and Search._fits(self, name, at, taken)

    def preceded(self) -> bool:
        within = self.clause.within
        assert within is not None
        column, length = within
        begun = self.rows[self.start][column]
        return any(
            begun - self.rows[at][column] < length
            and self.clause.define[name](View(self.rows, at, [name], 1, 0)) is True
            for at in range(self.start)
            for name in self.clause.before
        )


def _cut(taken: Taken) -> Taken:
    while taken and not taken[-1][0]:
        taken = taken[:-1]
    return taken


def matches_of(clause: EventClause, table: Sequence[Row], *, every: bool = False) -> list[Row]:
    """What is told of all rows of one key, in the order `clause.order`: one row for each match,
    its measures and, as `__start`, its first row's place."""
    rows = sorted(table, key=clause.order)
    result: list[Row] = []
    at, number = 0, 1
    while at < len(rows):
        search = _EventSearch(clause, rows, at, number)
        if clause.before and search.preceded():
            at += 1
            continue
        found: list[Taken] = []
        if every:

            def take(_: int, taken: Taken, found: list[Taken] = found) -> None:
                if _cut(taken) not in found:
                    found.append(_cut(taken))

            search.match(clause.pattern, at, (), False, take)
        else:
            one = search.run()
            found = [] if one is None else [_cut(one)]
        for taken in found:
            names = [name for name, _ in taken]
            view = View(rows, at, names, len(names), number)
            shown = {name: rows[at][name] for name in clause.partition}
            measured = {name: measure(view) for name, measure in clause.measures.items()}
            result.append({"__start": at, **shown, **measured})
        if every or not found or not found[0]:
            number += len(found)
            at += 1
            continue
        number += 1
        at = behind(clause.skip, at, [name for name, _ in found[0]])
    return result


def at_time(clause: EventClause, now: Any) -> EventClause:
    return replace(clause, now=now)
