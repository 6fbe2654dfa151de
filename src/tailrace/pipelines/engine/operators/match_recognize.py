"""MATCH_RECOGNIZE: after every tick the matches of the rows that are there now.

For the state see `patterns.partition`. Of each attempt is kept how far it looked. A row that
comes, goes or moves touches the attempts that looked at its place; from the first of them on
rows are matched again, until an attempt begins where one began before, behind the change. So
the cost follows the change and the length of matches, not the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import pyarrow as pa

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.patterns.matcher import (
    END,
    Attempt,
    Definition,
    Holder,
    Matcher,
    Rows,
    Trail,
    Walk,
    Within,
)
from tailrace.pipelines.engine.patterns.partition import Change, Partition, Record
from tailrace.pipelines.engine.patterns.program import Program
from tailrace.pipelines.engine.patterns.shown import Match, shower
from tailrace.pipelines.engine.patterns.slots import Matched, MatchNumber, Navigation, Slot
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import encode_keys, encode_order
from tailrace.pipelines.values.rows import (
    Row,
    changes,
    decode_row,
    encode_row,
    encode_rows,
    to_rows,
    weights,
)


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the next match may begin: behind the `last row`, at the `next row`, or at the
    `first` or `last` row of some variables; `name` is what the query calls these."""

    to: str
    variables: tuple[int, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a row of a window sees: itself and `end` rows behind it (None: all). `seek`: its match
    is the first that begins there, else the one that begins at the row."""

    end: int | None = None
    seek: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """The output is `shown` columns of the input, then the slots `measures` names.

    `rows`: one, all (with empty matches), omit empty, unmatched, each (of a window: every row
    with its own match in its `frame`). `sides`: how many rows before and behind an attempt its
    conditions and measures may look.
    """

    partition: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...]
    program: Program
    definitions: tuple[Definition, ...]
    slots: tuple[tuple[str, Slot], ...]
    measures: tuple[str, ...]
    rows: str
    skip: Skip
    within: Within | None
    sides: tuple[int, int]
    carried: tuple[str, ...]
    carried_types: tuple[pa.DataType, ...]
    shown: tuple[str, ...]
    schema: pa.Schema
    frame: Frame | None = None
    kind: ClassVar[str] = "pattern"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        order = ", ".join(
            f"{n}{' desc' if d else ''}{' nf' if f else ''}" for n, d, f in self.order
        )
        names = self.program.variables
        named = list(zip(names, self.definitions, strict=True))
        columns = [name for name, one in named if one.column is not None]
        near = [name for name, one in named if one.near is not None]
        threads = [name for name, one in named if one.before is not None]
        how = f"threads for {', '.join(threads)}" if threads else "an automaton"
        by_column = f", conditions by column: {', '.join(columns)}" if columns else ""
        by_column += f", once for each row: {', '.join(near)}" if near else ""
        if self.frame is not None:
            rows = "all rows" if self.frame.end is None else f"{self.frame.end} rows"
            seek = ", the first one there" if self.frame.seek else ""
            by_column += f"; a match per row, in it and {rows} behind it{seek}"
        return (
            f"pattern by ({', '.join(self.partition)}) order ({order}) of "
            f"{', '.join(names)} → {', '.join(self.schema.names)} by {how}{by_column}; "
            f"keeps every row, and how far each attempt looked"
        )

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0]
        rows = to_rows(table, self.carried)
        place = {name: i for i, name in enumerate(self.carried)}
        orders = encode_order(
            [[row[place[name]] for row in rows] for name, _, _ in self.order],
            [self.carried_types[place[name]] for name, _, _ in self.order],
            [(descending, nulls) for _, descending, nulls in self.order],
        ) or [b""] * len(rows)
        deltas: dict[bytes, dict[tuple[bytes, bytes], int]] = {}
        for key, order, row, weight in zip(
            encode_keys(table, self.partition),
            orders,
            encode_rows(rows),
            weights(table),
            strict=True,
        ):
            of = deltas.setdefault(key, {})
            of[order, row] = of.get((order, row), 0) + weight
        keys = sorted(deltas)
        machine = _machine(self)
        puts: list[tuple[bytes, bytes | None]] = []
        out: list[Row] = []
        counts: list[int] = []
        for key, header in zip(keys, state.get_many([b"h" + key for key in keys]), strict=True):
            moved = [(*at, weight) for at, weight in deltas[key].items() if weight]
            if not moved:
                continue
            partition = Partition(state, key, header)
            changed, lost = partition.change(moved)
            total: dict[bytes, int] = {}
            for shown in lost:
                total[shown] = total.get(shown, 0) - 1
            machine.refresh(partition, changed, total)
            partition.write(puts)
            for shown in sorted(total):
                if total[shown]:
                    out.append(decode_row(shown))
                    counts.append(total[shown])
        state.put_many(sorted(puts, key=lambda put: put[0]))
        return changes(out, counts, self.schema)


@lru_cache(maxsize=64)
def _machine(operator: Pattern) -> Machine:
    """What an operator needs to run; made once in a process."""
    return Machine(operator) if operator.frame is None else FramedMachine(operator, operator.frame)


class Machine:
    def __init__(self, operator: Pattern) -> None:
        self.operator = operator
        slots = dict(operator.slots)
        names = operator.program.names
        self.matcher = Matcher(
            operator.program, operator.definitions, slots, operator.carried, operator.within
        )
        self._variables = [one.a for one in operator.program.instructions]
        self._excluded = [one.excluded for one in operator.program.instructions]
        self._shown = [operator.carried.index(name) for name in operator.shown]
        self._measures = [
            shower(slots[name], operator.carried, names) for name in operator.measures
        ]
        self._nothing = tuple(
            False if isinstance(slots[name], Matched) else None for name in operator.measures
        )
        self._numbered = any(isinstance(slot, MatchNumber) for _, slot in operator.slots)
        self._covers = operator.rows == "unmatched"
        self._holder = self._held()

    def _held(self) -> Holder | None:
        """What makes a match that grows go on from where it was; None: it begins again."""
        operator, program = self.operator, self.operator.program
        asks_last = program.anchored[1] or program.before or program.absent
        if operator.rows != "one" or operator.skip.to != "last row":
            return None
        if asks_last or operator.sides[1] or not self.matcher.small:
            return None
        slots = dict(operator.slots)
        measures = [slots[name] for name in operator.measures]
        holder = Holder(measures, operator.carried, program.names)
        return holder if holder.small else None

    def refresh(
        self, partition: Partition, moved: list[Change], total: dict[bytes, int], low: int = 0
    ) -> None:
        """Match again what the changes touch; differences of the result go to `total`. Attempts
        that began before `low` stay as they are."""
        ahead = self.operator.sides[1]
        count = len(partition)
        trail = Trail(count)
        at_change = 0
        while at_change < len(moved):
            change = moved[at_change]
            begin = partition.first_beyond(low, change.at, change.at - ahead)
            at = change.at if begin is None else begin
            number = partition.matches_before(at) if self._numbered else 0
            covered = self._covered_before(partition, at) if self._covers else 0
            drift, first = 0, True
            while True:
                while at_change < len(moved) and self._passed(partition, moved[at_change], at):
                    drift -= moved[at_change].matches
                    at_change += 1
                if at >= count:
                    return
                old = partition.record(at)
                if old is not None and not first:
                    beyond = at_change == len(moved) or moved[at_change].at > at
                    same = not self._numbered or drift == 0
                    if (
                        beyond
                        and same
                        and (not self._covers or old.covered == max(0, covered - at))
                    ):
                        low = at
                        break
                first = False
                record, following = self._attempt(partition, at, number + 1, covered, trail)
                drift += (record.kind > 0) - self._replace(partition, at, record, total)
                skipped = at + 1
                if old is not None and partition.appended and self.operator.skip.to == "last row":
                    skipped = max(skipped, at + old.length)  # no attempt began there
                for other in range(skipped, min(following, count)):
                    drift -= self._replace(partition, other, None, total)
                number += record.kind > 0
                covered = max(covered, at + record.length)
                at = following

    def _passed(self, partition: Partition, change: Change, at: int) -> bool:
        """Whether an attempt that begins at a place does not look back to a change."""
        return change.until + self.operator.sides[0] < at

    def _replace(
        self, partition: Partition, at: int, record: Record | None, total: dict[bytes, int]
    ) -> int:
        """Put an attempt in the place of another; how many matches the old one was."""
        old = partition.record(at)
        for row in old.shown if old is not None else ():
            total[row] = total.get(row, 0) - 1
        for row in record.shown if record is not None else ():
            total[row] = total.get(row, 0) + 1
        if old is not None or record is not None:
            partition.set_record(at, record, plain=not self._covers)
        return int(old is not None and old.kind > 0)

    def _covered_before(self, partition: Partition, at: int) -> int:
        """Up to which row the matches cover that began before a place."""
        found = partition.last_record(at)
        if found is None:
            return 0
        place, record = found
        return max(place + record.covered, place + record.length)

    def _attempt(
        self, partition: Partition, at: int, number: int, covered: int, trail: Trail
    ) -> tuple[Record, int]:
        """The attempt at a place, and the place of the next one."""
        grown = self._grown(partition, at, number, trail)
        if grown is not None:
            return grown
        try:
            found = self._find(partition, at, number, trail)
            shown = tuple(
                encode_row(row) for row in self._rows(partition, at, found, number, covered)
            )
            following = self._next(at, found)
        except EvaluationError as error:
            raise self._located(error, partition[at]) from error
        taken = found.taken
        kind = 0 if taken is None else 2 if taken else 1
        if found.reach == END and taken and partition.appended and partition.large:
            self._grow(partition, at, number, trail, None)
        ahead = max(0, covered - at) if self._covers else 0
        return Record(found.reach, kind, len(taken or ()), ahead, shown), following

    def _grown(
        self, partition: Partition, at: int, number: int, trail: Trail
    ) -> tuple[Record, int] | None:
        """The attempt at a place, if it goes on from where it was before rows came behind the
        last one."""
        if partition.growing is None or self._holder is None:
            return None
        start, which, begun = partition.growing
        if start != at or (self._numbered and which != number):
            return None
        found = self._grow(partition, at, number, trail, begun)
        if found is None:
            return None
        (_, _, _, best), reach = found
        assert best is not None  # it was a match before
        end, held = best
        try:
            values = self._holder.values(partition, at, number, held)
        except EvaluationError:
            return None
        row = encode_row((*self._columns(partition[at]), *values))
        return Record(reach, 2, end - at, 0, (row,)), end

    def _grow(
        self, partition: Partition, at: int, number: int, trail: Trail, begun: Walk | None
    ) -> tuple[Walk, int] | None:
        """Let a match grow, and note how far it came. An error is left to the whole attempt."""
        partition.growing = None
        if self._holder is None:
            return None
        try:
            found = self.matcher.grow(partition, at, number, trail, self._holder, begun)
        except EvaluationError:
            return None
        walk, reach = found
        if reach == END:
            partition.growing = (at, number, walk)
        return found

    def _find(self, partition: Partition, at: int, number: int, trail: Trail) -> Attempt:
        return self.matcher.attempt(partition, at, number, trail)

    def _located(self, error: EvaluationError, row: Row) -> EvaluationError:
        """The error with the key and the row at which the attempt began."""
        operator = self.operator
        values = dict(zip(operator.carried, row, strict=True))
        order = [name for name, _, _ in operator.order]
        told = ", ".join(f"{name} = {values[name]!r}" for name in (*operator.partition, *order))
        where = f"the attempt that begins at {told or 'the first row'}"
        return EvaluationError(
            error.message,
            detail="\n".join(filter(None, (error.detail, where))),
            hint=error.hint,
        )

    def _next(self, at: int, found: Attempt) -> int:
        """Where the next attempt begins."""
        skip, taken = self.operator.skip, found.taken
        if not taken or skip.to == "next row":
            return at + 1
        if skip.to == "last row":
            return at + len(taken)
        places = [i for i, one in enumerate(taken) if self._variables[one] in skip.variables]
        if not places:
            raise EvaluationError(
                f"AFTER MATCH SKIP TO {skip.name}: no row of the match is {skip.name}",
                hint="skip to a variable that every match has, or PAST LAST ROW",
            )
        place = places[0] if skip.to == "first" else places[-1]
        if not place:
            raise EvaluationError(
                f"AFTER MATCH SKIP TO {skip.name}: it is the first row of the match, which would "
                "be found again for ever",
                hint="AFTER MATCH SKIP TO NEXT ROW",
            )
        return at + place

    def _rows(
        self, partition: Partition, at: int, found: Attempt, number: int, covered: int
    ) -> Iterator[Row]:
        """The rows of the result that an attempt gives."""
        how, taken = self.operator.rows, found.taken
        if taken is None:
            if how == "unmatched" and at >= covered:
                yield (*self._columns(partition[at]), *self._nothing)
            return
        match = Match(partition, at, [self._variables[one] for one in taken], number)
        if how == "one" or not taken:
            if taken or how != "omit empty":
                yield (*self._columns(partition[at]), *self._values(match, len(taken)))
            return
        for place, one in enumerate(taken):
            if not self._excluded[one]:
                row = partition[at + place]
                yield (*self._columns(row), *self._values(match, place + 1))

    def _columns(self, row: Row) -> Row:
        return tuple([row[at] for at in self._shown])

    def _values(self, match: Match, limit: int) -> Row:
        return tuple([measure(match, limit) for measure in self._measures])


class _Behind:
    """The rows of a partition from a place on, at most so many."""

    __slots__ = ("_count", "_rows", "_start")

    def __init__(self, rows: Partition, start: int, most: int | None) -> None:
        self._rows, self._start = rows, start
        self._count = len(rows) - start if most is None else min(most, len(rows) - start)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> Row:
        return self._rows[self._start + at]


class FramedMachine(Machine):
    """Row patterns in windows: every row is shown once, with the match that is found for it in
    its frame, whose rows are all that conditions and measures see. A row that a match before it
    skips, or that has none, is shown without one; the first kind by the attempt that skips it."""

    def __init__(self, operator: Pattern, frame: Frame) -> None:
        Machine.__init__(self, operator)
        self._most = None if frame.end is None else frame.end + 1
        self._seek = frame.seek
        # Where a row means the same in every frame that has it, attempts know of each other.
        shifts = any(isinstance(slot, Navigation) and slot.shift for _, slot in operator.slots)
        self._alike = frame.end is None and not shifts
        empty = self._values(Match((), 0, [], 1), 0)
        self._unmatched = tuple(
            False if nothing is False else value
            for nothing, value in zip(self._nothing, empty, strict=True)
        )

    def _held(self) -> Holder | None:
        return None

    def _attempt(
        self, partition: Partition, at: int, number: int, covered: int, trail: Trail
    ) -> tuple[Record, int]:
        rows: Rows = partition if self._alike else _Behind(partition, at, self._most)
        begin = at if self._alike else 0
        shared, trail = trail, trail if self._alike else Trail()
        trail.left = shared.left
        reach, place = 0, begin
        try:
            while True:
                found = self.matcher.attempt(rows, place, 1, trail)
                far = len(rows) - begin if found.reach == END else place - begin + found.reach
                ends = reach == END or (found.reach == END and not self._full(rows))
                reach = END if ends else max(reach, far)
                if found.taken is not None or not self._seek or place + 1 >= len(rows):
                    break
                place += 1
            if self._seek and found.taken is None and not self._full(rows):
                reach = END  # a match may begin at a row to come
            following = at + 1
            if found.taken:
                following = max(following, self._next(at + place - begin, found))
                if self.operator.skip.to == "next row":
                    following = at + 1
        except EvaluationError as error:
            raise self._located(error, partition[at]) from error
        shared.left = trail.left
        values = self._unmatched
        if found.taken is not None:
            match = Match(rows, place, [self._variables[one] for one in found.taken], 1)
            values = self._values(match, len(found.taken))
        skipped = range(at + 1, min(following, len(partition)))
        shown = [encode_row((*self._columns(partition[at]), *values))]
        shown += [encode_row((*self._columns(partition[one]), *self._unmatched)) for one in skipped]
        kind = 0 if found.taken is None else 2 if found.taken else 1
        length = following - at if kind == 2 else 0
        return Record(reach, kind, length, 0, tuple(shown)), following

    def _full(self, rows: Rows) -> bool:
        """Whether a frame ends before the partition may go on."""
        return self._most is not None and len(rows) == self._most


def sides_of(slots: tuple[Slot, ...], program: Program) -> tuple[int, int]:
    """How many rows before and behind an attempt slots may look."""
    shifts = [slot.shift for slot in slots if isinstance(slot, Navigation)]
    back = max((-shift for shift in shifts), default=0)
    ahead = max(shifts, default=0)
    return max(0, back, int(program.anchored[0])), max(0, ahead)
