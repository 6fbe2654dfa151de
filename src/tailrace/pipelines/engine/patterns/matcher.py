"""One attempt: the preferred match that begins at a row, and how far it had to look.

Where every condition is a column of its row, the ordered list of instructions that live is a
state of an automaton, made when it is met; the names of the rows are found afterwards, for
matched rows alone. Otherwise *threads* run, breadth first, in order of preference: an
instruction, the names given so far, and what conditions can see of them. Two
threads at one instruction that see the same are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NoReturn, Protocol, TypeAlias

from tailrace.pipelines.engine.expression import Expression, columns_of
from tailrace.pipelines.engine.patterns.aggregation import Totals
from tailrace.pipelines.engine.patterns.conditions import Reader, compile_expression
from tailrace.pipelines.engine.patterns.program import Program
from tailrace.pipelines.engine.patterns.slots import (
    Aggregated,
    Constant,
    Matched,
    MatchNumber,
    Navigation,
    Slot,
)
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.rows import Row

END = -1  # of `reach`: the attempt lives beyond the last row
MOST_STEPS = 1_000_000
STEPS_PER_ROW = 10_000  # and so many more for each row of a partition, over all attempts of a tick
_MOST_STATES = 10_000
_MATCH = -1
_FAILED = "failed"  # of a condition: it is an error

Seen: TypeAlias = tuple[Any, ...]  # what the trackers of a thread hold
Labels: TypeAlias = Any  # (labels before, instruction), or None; or what a `Holder` holds
# How far threads have come: the row they wait for, steps so far, each with its instruction, and
# the end of the match so far with its labels. Where a `Holder` holds these, it can be kept.
Walk: TypeAlias = "tuple[int, int, list[tuple[int, Labels, Seen]], tuple[int, Labels] | None]"


class Rows(Protocol):
    """The rows of a partition in their order."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> Row: ...


@dataclass(frozen=True, slots=True)
class Within:
    """A row belongs to the match if its time is less than `micros` behind the first one's."""

    column: int
    micros: int


@dataclass(frozen=True, slots=True)
class Definition:
    """When a row may be the variable's, in three parts: `column` of the row is true (None:
    always), `near` is, over slots that are rows of the partition at a distance from it, and
    `before`, over slots of what was matched. It may not be a row of the variables `unlike`."""

    column: int | None = None
    near: Expression | None = None
    before: Expression | None = None
    unlike: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """`reach`: rows from the first that were looked at, or END. `taken`: the instructions that
    took the rows of the match; None: there is none. `over`: its time ended while it lived; how
    far it came then is `came`, as `taken`."""

    reach: int
    taken: tuple[int, ...] | None = None
    over: bool = False
    came: tuple[int, ...] = ()


class Trail:
    """What attempts over the same rows have found: `ends`, of a state before a row where the
    match ends behind it, if it does, and the last row looked at; `tests`, what is near rows.
    `left`: the steps of threads that they may still take, of `rows` rows."""

    __slots__ = ("ends", "left", "tests")

    def __init__(self, rows: int = 0) -> None:
        self.ends: dict[tuple[int, int], tuple[int | None, int]] = {}
        self.tests: dict[int, Row] = {}
        self.left = MOST_STEPS + STEPS_PER_ROW * rows


class Matcher:
    """Runs a program. `columns` are the names of the values of a row."""

    def __init__(
        self,
        program: Program,
        definitions: Sequence[Definition],
        slots: dict[str, Slot],
        columns: Sequence[str],
        within: Within | None = None,
    ) -> None:
        self.program, self.within = program, within
        self._code = program.instructions
        self._definitions = list(definitions)
        self._asks_last = program.anchored[1]
        self._closures: dict[tuple[int, bool, bool], tuple[tuple[int, ...], bool]] = {}
        self._every: dict[int, tuple[tuple[int, ...], bool]] = {}
        self._trackers: list[Any] = []
        self._conditions: list[Reader | None] = []
        readers = _Readers(self._trackers, program.names, slots, columns)
        for definition in self._definitions:
            asked = definition.before
            self._conditions.append(
                compile_expression(asked, readers.of(columns_of(asked)))
                if asked is not None
                else None
            )
        self._plain = all(condition is None for condition in self._conditions)
        self._columns = [one.column for one in self._definitions]
        self._unlike = [one.unlike for one in self._definitions]
        self._ends_absent = program.absent
        self._near = [
            compile_expression(one.near, readers.near(columns_of(one.near)))
            if one.near is not None
            else None
            for one in self._definitions
        ]
        self._nears = [at for at, near in enumerate(self._near) if near is not None]
        self._near_places = {variable: at for at, variable in enumerate(self._nears)}
        known = sorted({column for column in self._columns if column is not None})
        self._width = len(known)
        self._places_of: dict[int | None, int] = {column: at for at, column in enumerate(known)}
        self._values = _picker(known)
        self._forget()

    @property
    def small(self) -> bool:
        """Whether what conditions see of a match does not grow with it."""
        return not any(isinstance(tracker, _All) for tracker in self._trackers)

    @property
    def automaton(self) -> bool:
        """Whether no condition looks at the rows taken before."""
        return self._plain

    def _forget(self) -> None:
        self._states: dict[tuple[int, ...], int] = {}
        self._lists: list[tuple[int, ...]] = []
        self._steps: dict[tuple[int, bool, Row], tuple[int, bool, bool]] = {}

    # Closures -----------------------------------------------------------------------------

    def _closure(self, begin: int, first: bool, last: bool) -> tuple[tuple[int, ...], bool]:
        """The instructions that may take the next row, in order of preference, _MATCH among
        them as the last, and whether `$` was asked."""
        known = self._closures.get((begin, first, last))
        if known is not None:
            return known
        found: dict[int, None] = {}
        asked = False
        visited: set[tuple[int, frozenset[int]]] = set()
        waiting: list[tuple[int, frozenset[int]]] = [(begin, frozenset())]
        while waiting:
            at, begun = waiting.pop()
            if (at, begun) in visited:
                continue
            visited.add((at, begun))
            if len(visited) > MOST_STEPS:
                raise EvaluationError("a pattern needs more than 1,000,000 steps")
            one = self._code[at]
            match one.code:
                case "row" | "absent":
                    found[at] = None
                case "match":
                    found[_MATCH] = None
                    break
                case "split":
                    waiting += [(one.b, begun), (one.a, begun)]
                case "jump":
                    waiting.append((one.a, begun))
                case "enter":
                    waiting.append((at + 1, begun | {one.a}))
                case "leave":
                    # The turn took no row if it began since the last one was taken.
                    empty = one.a in begun
                    waiting.append((one.b if empty else at + 1, begun - {one.a}))
                case "first":
                    if first:
                        waiting.append((at + 1, begun))
                case "last":
                    asked = True
                    if last:
                        waiting.append((at + 1, begun))
        made = (tuple(found), asked)
        self._closures[begin, first, last] = made
        return made

    # Tests --------------------------------------------------------------------------------

    def _tests(self, rows: Rows, at: int, trail: Trail) -> Row:
        """What the conditions near a row say, for each variable that has one."""
        known = trail.tests.get(at)
        if known is None:
            row, place = rows[at], _Place(rows, 0, at)
            known = trail.tests[at] = tuple(
                [self._test(row, place, variable) for variable in self._nears]
            )
        return known

    def _test(self, row: Row, place: _Place, variable: int) -> object:
        column, near = self._columns[variable], self._near[variable]
        if column is not None and row[column] is not True:
            return False
        assert near is not None
        try:
            return near(place)
        except EvaluationError:
            return _FAILED  # an error only if an attempt asks

    def _fail(self, rows: Rows, at: int, variable: int) -> NoReturn:
        near = self._near[variable]
        assert near is not None
        near(_Place(rows, 0, at))
        raise EvaluationError("a condition failed, and then did not", hint="this is a defect")

    # Attempts -----------------------------------------------------------------------------

    def attempt(
        self, rows: Rows, start: int, number: int, trail: Trail, now: int | None = None
    ) -> Attempt:
        """The match from `start`, the `number`th of its partition. `trail`: what attempts over
        the same rows have found before. `now`: no row to come is older."""
        if self.program.before and self._preceded(rows, start, trail):
            return Attempt(1)
        if not self._plain or self._ends_absent or now is not None:
            return self._threads(rows, start, number, trail, now=now)
        end, reach = self._run(rows, start, trail)
        if end is None:
            return Attempt(reach)
        taken = self._threads(rows, start, number, trail, end).taken
        return Attempt(reach, taken)

    def _preceded(self, rows: Rows, start: int, trail: Trail) -> bool:
        """Whether a row before, within the time of a match, fits what may not come first."""
        assert self.within is not None
        column, length = self.within.column, self.within.micros
        begun: Any = rows[start][column]
        for at in range(start - 1, -1, -1):
            row = rows[at]
            if begun - row[column] >= length:
                return False
            if any(self._fits_alone(rows, at, one, trail) for one in self.program.before):
                return True
        return False

    def _fits_alone(self, rows: Rows, at: int, variable: int, trail: Trail) -> bool:
        """Whether the parts of a condition that look at no match hold of a row."""
        column = self._columns[variable]
        if column is not None and rows[at][column] is not True:
            return False
        if variable in self._near_places:
            test = self._tests(rows, at, trail)[self._near_places[variable]]
            if test is _FAILED:
                self._fail(rows, at, variable)
            if test is not True:
                return False
        return True

    def _too_long(self, rows: Rows, start: int, at: int) -> bool:
        within = self.within
        if within is None:
            return False
        begun, now = rows[start][within.column], rows[at][within.column]
        return begun is None or now is None or now - begun >= within.micros  # type: ignore[operator]

    def _state(self, living: tuple[int, ...]) -> int:
        number = self._states.get(living)
        if number is None:
            number = self._states[living] = len(self._lists)
            self._lists.append(living)
        return number

    def _run(self, rows: Rows, start: int, trail: Trail) -> tuple[int | None, int]:
        """The end of the preferred match by the automaton, and the reach."""
        count, within = len(rows), self.within
        if len(self._lists) > _MOST_STATES:
            self._forget()
            trail.ends.clear()
        last = self._asks_last
        living, asked = self._closure(0, start == 0, last and start == count)
        end = None
        if living and living[-1] == _MATCH:
            end, living = start, living[:-1]
        state, at, reach = self._state(living), start, 0
        met: list[tuple[int, int]] = []
        steps, lists, values_of = self._steps, self._lists, self._values
        ends, nears = trail.ends, bool(self._nears)
        if asked:
            reach = 1
        while lists[state]:
            if at >= count:
                reach = END
                break
            known = ends.get((state, at)) if within is None else None
            if known is not None:
                later, far = known
                end = later if later is not None else end
                reach = END if far == END else max(reach, far - start)
                break
            reach = at + 1 - start
            if within is not None and self._too_long(rows, start, at):
                break
            met.append((state, at))
            values = values_of(rows[at])
            if nears:
                values += self._tests(rows, at, trail)
            at += 1
            key = (state, last and at == count, values)
            step = steps.get(key)
            if step is None:
                try:
                    step = steps[key] = self._step(*key)
                except _Failed as failed:
                    self._fail(rows, at - 1, failed.variable)
            state, matched, asked = step
            if matched:
                end = at
            if asked:
                reach = at + 1 - start
        if asked and at >= count:
            reach = END
        if within is None:
            far = END if reach == END else start + reach
            for place in met:
                ends[place] = (end if end is not None and end > place[1] else None, far)
        return end, reach

    def _step(self, state: int, last: bool, values: Row) -> tuple[int, bool, bool]:
        """The state behind a row, whether a match ends there, and whether `$` was asked."""
        living: list[int] = []
        asked = False
        for at in self._lists[state]:
            variable = self._code[at].a
            if not self._holds(variable, values):
                continue
            if any(self._holds(one, values) for one in self._unlike[variable]):
                continue
            found, asks = self._closure(at + 1, False, last)
            asked |= asks
            for one in found:
                if one == _MATCH:
                    return self._state(tuple(living)), True, asked
                if one not in living:
                    living.append(one)
        return self._state(tuple(living)), False, asked

    def _holds(self, variable: int, values: Row) -> bool:
        """Whether the condition of a variable, which looks at no match, holds of a row."""
        column = self._columns[variable]
        if column is not None and values[self._places_of[column]] is not True:
            return False
        near = self._near_places.get(variable)
        if near is not None and values[self._width + near] is not True:
            if values[self._width + near] is _FAILED:
                raise _Failed(variable)
            return False
        return True

    def _is(self, rows: Rows, variable: int, seen: Seen, place: _Place, trail: Trail) -> bool:
        """Whether a thread could take the row at `place` as that variable."""
        if not self._fits_alone(rows, place.at, variable, trail):
            return False
        condition = self._conditions[variable]
        if condition is None:
            return True
        place.seen = tuple(
            [t.add(s, variable, place) for t, s in zip(self._trackers, seen, strict=True)]
        )
        return condition(place) is True

    def _threads(
        self, rows: Rows, start: int, number: int, trail: Trail, until: int | None = None,
        now: int | None = None,
        stop: bool = False,
    ) -> Attempt:  # fmt: skip
        """The match by threads. `until`: where it is known to end. `stop`: behind the last row
        its time is taken to be over."""
        walk, reach, over = self._walk(rows, start, number, trail, None, None, until, now, stop)
        at, _, threads, best = walk
        came: tuple[int, ...] = ()
        if over and threads:
            waited = [one[1] for one in threads if self._code[one[0]].code == "absent"]
            if waited:
                best = (at, waited[0])
            came = self._trimmed(threads[0][1])
        matched = None if best is None else self._trimmed(best[1])
        return Attempt(reach, matched, over, came)

    def grow(
        self, rows: Rows, start: int, number: int, trail: Trail, holder: Holder, begun: Walk | None
    ) -> tuple[Walk, int]:
        """Threads that hold what `holder` needs of a match instead of its rows: how far they
        have come, and the reach. `begun`: where they were before the last rows came."""
        walk, reach, _ = self._walk(rows, start, number, trail, holder, begun)
        return walk, reach

    def _walk(
        self, rows: Rows, start: int, number: int, trail: Trail, holder: Holder | None,
        begun: Walk | None, until: int | None = None, now: int | None = None, stop: bool = False,
    ) -> tuple[Walk, int, bool]:  # fmt: skip
        """Run threads from row to row: how far, the reach, and whether the time is over."""
        count, code, last = len(rows), self._code, self._asks_last
        conditions, columns, trackers = self._conditions, self._columns, self._trackers
        nears, unlike, over = self._near_places, self._unlike, False
        asked = False
        if begun is None:
            nothing: Seen = tuple([tracker.nothing for tracker in trackers])
            none: Labels = None if holder is None else holder.nothing
            living, asked = self._closure(0, start == 0, last and start == count)
            best: tuple[int, Labels] | None = None
            if living and living[-1] == _MATCH:
                best, living = (start, none), living[:-1]
            threads: list[tuple[int, Labels, Seen]] = [(one, none, nothing) for one in living]
            at, steps = start, 0
        else:
            at, steps, threads, best = begun
        reach = 1 if asked else at - start
        place = _Place(rows, number)
        allowed, all_allowed = MOST_STEPS, steps + trail.left
        while threads:
            if at >= count:
                over = stop or (now is not None and self._is_over(rows, start, now))
                reach = at + 1 - start if over else END
                break
            if at == until:
                break
            reach = at + 1 - start
            if self._too_long(rows, start, at):
                over = True
                break
            row = rows[at]
            place.at = at
            behind: list[tuple[int, Labels, Seen]] = []
            met: set[tuple[int, Seen]] = set()
            asked = done = False
            for one, labels, seen in threads:
                steps += 1
                if steps > allowed or steps > all_allowed:
                    raise _too_many_steps(one=steps > allowed)
                variable = code[one].a
                if variable < 0:
                    continue  # its time is not over
                column = columns[variable]
                if column is not None and row[column] is not True:
                    continue
                if variable in nears:
                    test = self._tests(rows, at, trail)[nears[variable]]
                    if test is _FAILED:
                        self._fail(rows, at, variable)
                    if test is not True:
                        continue
                if unlike[variable] and any(
                    self._is(rows, other, seen, place, trail) for other in unlike[variable]
                ):
                    continue
                if trackers:
                    seen = tuple(
                        [t.add(s, variable, place) for t, s in zip(trackers, seen, strict=True)]
                    )
                condition = conditions[variable]
                if condition is not None:
                    place.seen = seen
                    if condition(place) is not True:
                        continue
                found, asks = self._closure(one + 1, False, last and at + 1 == count)
                asked |= asks
                taken = (labels, one) if holder is None else holder.add(labels, variable, place)
                for after in found:
                    if after == _MATCH:
                        best, done = (at + 1, taken), True
                        break
                    if (after, seen) not in met:
                        met.add((after, seen))
                        behind.append((after, taken, seen))
                if done:
                    break
            threads = behind
            at += 1
            if asked:
                reach = at + 1 - start
        if asked and at >= count:
            reach = END
        trail.left = all_allowed - steps
        return (at, steps, threads, best), reach, over

    def every(
        self, rows: Rows, start: int, number: int, trail: Trail, now: int | None, most: int
    ) -> tuple[Attempt, list[tuple[int, ...]]]:
        """All matches from `start`, in the order in which they end, and how the attempt went."""
        if self.program.before and self._preceded(rows, start, trail):
            return Attempt(1), []
        count, code = len(rows), self._code
        living, matched = self._reachable(0)
        found: dict[tuple[int, ...], None] = {(): None} if matched else {}
        threads: list[tuple[int, tuple[int, ...], Seen]] = [
            (one, (), tuple([tracker.nothing for tracker in self._trackers])) for one in living
        ]
        at, reach, over = start, 0, False
        place = _Place(rows, number)
        while threads:
            if at >= count:
                over = now is not None and self._is_over(rows, start, now)
                reach = at + 1 - start if over else END
                break
            reach = at + 1 - start
            if self._too_long(rows, start, at):
                over = True
                break
            place.at = at
            behind: dict[tuple[int, tuple[int, ...]], Seen] = {}
            for one, taken, seen in threads:
                variable = code[one].a
                if variable < 0 or not self._is(rows, variable, seen, place, trail):
                    continue
                if any(
                    self._is(rows, other, seen, place, trail) for other in self._unlike[variable]
                ):
                    continue
                after = tuple(
                    [t.add(s, variable, place) for t, s in zip(self._trackers, seen, strict=True)]
                )
                labels = (*taken, one)
                following, matched = self._reachable(one + 1)
                if matched:
                    found[self._cut(labels)] = None
                for instruction in following:
                    behind.setdefault((instruction, labels), after)
            if len(behind) + len(found) > most:
                raise EvaluationError(
                    f"more than {most:,} matches and partial matches from one row",
                    hint="make within= shorter, or conditions tighter; or leave matches= out",
                )
            threads = [(one, labels, seen) for (one, labels), seen in behind.items()]
            at += 1
        came: tuple[int, ...] = ()
        if over:
            for one, labels, _ in threads:
                if code[one].code == "absent":
                    found[self._cut(labels)] = None
            came = max((self._cut(labels) for _, labels, _ in threads), key=len, default=())
        return Attempt(reach, None, over, came), list(found)

    def _reachable(self, begin: int) -> tuple[tuple[int, ...], bool]:
        """All instructions that may take the next row, and whether a match may end."""
        known = self._every.get(begin)
        if known is not None:
            return known
        found: dict[int, None] = {}
        visited: set[tuple[int, frozenset[int]]] = set()
        waiting: list[tuple[int, frozenset[int]]] = [(begin, frozenset())]
        matched = False
        while waiting:
            at, begun = waiting.pop()
            if (at, begun) in visited:
                continue
            visited.add((at, begun))
            one = self._code[at]
            match one.code:
                case "row" | "absent":
                    found[at] = None
                case "match":
                    matched = True
                case "split":
                    waiting += [(one.b, begun), (one.a, begun)]
                case "jump":
                    waiting.append((one.a, begun))
                case "enter":
                    waiting.append((at + 1, begun | {one.a}))
                case "leave":
                    empty = one.a in begun
                    waiting.append((one.b if empty else at + 1, begun - {one.a}))
        made = self._every[begin] = (tuple(found), matched)
        return made

    def _cut(self, taken: tuple[int, ...]) -> tuple[int, ...]:
        """Without the rows behind the last one that belongs to the match."""
        hidden = self.program.hidden or len(self.program.variables)
        end = len(taken)
        while end and self._code[taken[end - 1]].a >= hidden:
            end -= 1
        return taken[:end]

    def _trimmed(self, labels: Labels) -> tuple[int, ...]:
        """The instructions that took rows, up to the last one that belongs to the match."""
        taken: list[int] = []
        hidden = self.program.hidden or len(self.program.variables)
        while labels is not None:
            labels, one = labels
            if taken or self._code[one].a < hidden:
                taken.append(one)
        return tuple(reversed(taken))

    def came(self, rows: Rows, start: int) -> tuple[int, ...]:
        """The instructions that have taken the rows of a partial match so far."""
        return self._threads(rows, start, 1, Trail(), stop=True).came

    def _is_over(self, rows: Rows, start: int, now: int) -> bool:
        """Whether no row to come can belong to a match that begins there."""
        if self.within is None:
            return False
        begun: Any = rows[start][self.within.column]
        return bool(now - begun >= self.within.micros)


def _too_many_steps(*, one: bool) -> EvaluationError:
    hint = "bound the turns of the pattern, or add WITHIN"
    if one:
        return EvaluationError(
            f"an attempt to match takes more than {MOST_STEPS:,} steps", hint=hint
        )
    return EvaluationError(
        f"the attempts to match of one partition take more than {STEPS_PER_ROW:,} steps per row",
        detail="many of them look at many rows, each by itself",
        hint=hint,
    )


class _Failed(Exception):
    """A state asks for a condition that fails."""

    def __init__(self, variable: int) -> None:
        super().__init__(variable)
        self.variable = variable


@dataclass(slots=True)
class _Place:
    """What a condition is asked about: the row `at`, which its variable has taken for now."""

    rows: Rows
    number: int
    at: int = 0
    seen: Seen = ()


# Trackers: what threads hold of the rows taken. `nothing` and what `add` gives are immutable, and
# equal where conditions see the same.


@dataclass(frozen=True)
class _First:
    """The first rows of some variables, with their variables."""

    variables: tuple[int, ...] | None
    count: int
    nothing = ()

    def add(self, seen: Any, variable: int, place: _Place) -> Any:
        if len(seen) >= self.count or not (self.variables is None or variable in self.variables):
            return seen
        return (*seen, (place.at, variable))


@dataclass(frozen=True)
class _Last:
    """The last rows of some variables, with their variables."""

    variables: tuple[int, ...] | None
    count: int
    nothing = ()

    def add(self, seen: Any, variable: int, place: _Place) -> Any:
        if not (self.variables is None or variable in self.variables):
            return seen
        return (
            (*seen[len(seen) + 1 - self.count :], (place.at, variable))
            if len(seen) >= self.count
            else (*seen, (place.at, variable))
        )


@dataclass(frozen=True)
class _All:
    """Every row of some variables."""

    variables: tuple[int, ...] | None
    nothing = ()

    def add(self, seen: Any, variable: int, place: _Place) -> Any:
        if not (self.variables is None or variable in self.variables):
            return seen
        return (*seen, (place.at, variable))


@dataclass(frozen=True)
class _Sums:
    """A sum over the rows of some variables."""

    asked: Aggregated
    totals: Totals
    names: tuple[str | None, ...]

    @property
    def nothing(self) -> Any:
        return self.totals.nothing

    def add(self, seen: Any, variable: int, place: _Place) -> Any:
        variables = self.asked.variables
        if not (variables is None or variable in variables):
            return seen
        return self.totals.add(seen, (place.rows[place.at], self.names[variable]))


class Holder:
    """What the measures of a match need of its rows while it grows."""

    def __init__(
        self, measures: Sequence[Slot], columns: Sequence[str], variables: tuple[str | None, ...]
    ) -> None:
        self._trackers: list[Any] = []
        slots = {str(at): slot for at, slot in enumerate(measures)}
        readers = _Readers(self._trackers, variables, slots, columns)
        by_name = readers.of(set(slots))
        self._readers = [by_name[name] for name in slots]
        self.nothing: Seen = tuple([tracker.nothing for tracker in self._trackers])

    @property
    def small(self) -> bool:
        """Whether it holds no more for a longer match."""
        return not any(isinstance(tracker, _All) for tracker in self._trackers)

    def add(self, held: Seen, variable: int, place: _Place) -> Seen:
        return tuple([t.add(h, variable, place) for t, h in zip(self._trackers, held, strict=True)])

    def values(self, rows: Rows, start: int, number: int, held: Seen) -> Row:
        """The measures of a match that began at `start`."""
        place = _Place(rows, number, start, held)
        return tuple([read(place) for read in self._readers])


class _Readers:
    """What conditions read of a `_Place`; makes the trackers they need."""

    def __init__(
        self, trackers: list[Any], variables: tuple[str | None, ...], slots: dict[str, Slot],
        columns: Sequence[str],
    ) -> None:  # fmt: skip
        self._trackers, self._variables, self._slots = trackers, variables, slots
        self._columns = {name: at for at, name in enumerate(columns)}

    def of(self, names: set[str]) -> dict[str, Reader]:
        return {name: self._reader(self._slots[name]) for name in sorted(names)}

    def near(self, names: set[str]) -> dict[str, Reader]:
        """What a condition near a row reads: rows at a distance from it."""
        return {name: self._near(self._slots[name]) for name in sorted(names)}

    def _near(self, slot: Slot) -> Reader:
        shift = slot.shift if isinstance(slot, Navigation) else 0
        if not isinstance(slot, Navigation | Constant):
            raise TypeError(f"{slot} near a row")
        column = self._columns[slot.column]

        def value(place: Any) -> object:
            at = place.at + shift
            return place.rows[at][column] if 0 <= at < len(place.rows) else None

        return value

    def _track(self, tracker: Any) -> int:
        if tracker not in self._trackers:
            self._trackers.append(tracker)
        return self._trackers.index(tracker)

    def _reader(self, slot: Slot) -> Reader:
        match slot:
            case MatchNumber():
                return lambda place: place.number
            case Matched():
                return lambda place: True
            case Constant(column, _):
                at = self._columns[column]
                return lambda place: place.rows[place.at][at]
            case Navigation():
                return self._navigation(slot)
            case Aggregated():
                return self._aggregate(slot)
        raise TypeError(f"{slot} in a condition")

    def _navigation(self, slot: Navigation) -> Reader:
        places = self._track(
            _Last(slot.variables, slot.offset + 1)
            if slot.last
            else _First(slot.variables, slot.offset + 1)
        )
        back, shift, offset = slot.last, slot.shift, slot.offset

        def found(place: Any) -> tuple[int, int] | None:
            seen = place.seen[places]
            if len(seen) <= offset:
                return None
            named: tuple[int, int] = seen[-1 - offset] if back else seen[offset]
            return named

        if not slot.column:
            names = self._variables
            everything = self._track(_All(None)) if shift else -1

            def classifier(place: Any) -> object:
                named = found(place)
                if named is None:
                    return None
                if not shift:
                    return names[named[1]]
                taken = place.seen[everything]
                at = named[0] + shift - taken[0][0]
                return names[taken[at][1]] if 0 <= at < len(taken) else None

            return classifier
        column = self._columns[slot.column]

        def value(place: Any) -> object:
            named = found(place)
            if named is None:
                return None
            at = named[0] + shift
            return place.rows[at][column] if 0 <= at < len(place.rows) else None

        return value

    def _aggregate(self, slot: Aggregated) -> Reader:
        names = self._variables
        totals = Totals(slot, list(self._columns))
        if totals.steps:
            for at, known in enumerate(self._trackers):
                if isinstance(known, _Sums) and known.asked == slot:
                    return lambda place: totals.finish(place.seen[at])
            at = self._track(_Sums(slot, totals, names))
            return lambda place: totals.finish(place.seen[at])
        at = self._track(_All(slot.variables))
        return lambda place: totals.of(
            [(place.rows[row], names[variable]) for row, variable in place.seen[at]]
        )


def _picker(columns: Sequence[int]) -> Callable[[Row], Row]:
    """The values of some columns of a row."""
    if not columns:
        return lambda row: ()
    if columns[-1] - columns[0] + 1 == len(columns):
        part = slice(columns[0], columns[-1] + 1)
        return lambda row: row[part]
    return itemgetter(*columns)
