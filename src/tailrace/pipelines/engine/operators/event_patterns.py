"""Patterns of events: a match is given once, when no later row can change it.

    "e" + time + place        -> marshal (key, row)     rows ahead of the watermark, one queue
    "h" + key, "b" + key …    -> the rows fed, and attempts: see `patterns.partition`
    "k" + key                 -> marshal (told, matches that left, when it is due, fixed)
    "t" + time + key          -> nothing                when time alone changes something
    "n"                       -> marshal (matches, time-outs, rows taken back) so far

Rows are fed in the order of their event time, once the watermark has passed it; of equal times
in the order of the log. Attempts to match follow each other as in `operators.match_recognize`. The
attempts before place `told` are *final*: nobody looks at rows to come, or their time is over.
What they give is told. The rows of final attempts leave, as soon as no row can come before them;
some stay because conditions look back at them: no attempt before place `fixed` is run again.

Rows that come behind what was fed (they are not too late, the stream says) change what was told:
a match that falls is taken back (weight -1), and told again if it is another one now.

`early`: rows are fed as they come, and what attempts give so far is told at once.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias, cast

import pyarrow as pa

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators.match_recognize import Machine, Pattern
from tailrace.pipelines.engine.patterns.matcher import Attempt, Trail
from tailrace.pipelines.engine.patterns.partition import FOREVER, Change, Partition, Record
from tailrace.pipelines.engine.patterns.shown import Match
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import encode_keys
from tailrace.pipelines.values.rows import Row, changes, decode_row, dumps, encode_row, to_rows

MATCH, TIMEOUT, UNMATCHED = 0, 1, 2  # what a row of the output is
MATCH_ID, KIND, REACHED, ROWS, FIRST, LAST = (
    "__match_id", "__kind", "__reached", "__rows", "__first", "__last"
)  # fmt: skip
ABOUT = pa.schema(
    [
        (MATCH_ID, pa.string()), (KIND, pa.int64()), (REACHED, pa.string()), (ROWS, pa.int64()),
        (FIRST, pa.timestamp("us", tz="UTC")), (LAST, pa.timestamp("us", tz="UTC")),
    ]
)  # fmt: skip
TOTALS = b"n"
_HALF = 1 << 63
_Known: TypeAlias = "tuple[int, int, int | None, int]"
_ID_BYTES = 12


@dataclass(frozen=True, slots=True)
class EventPattern:
    """The output: `ABOUT` of a match (or of a partial one whose time is over), then what
    `pattern` gives.

    `places`: where a row carries its time (microseconds), partition and offset. `lateness_ms`:
    so far behind the watermark rows may come; None: however far (`keep_ms`: until then).
    `gap`: the longest time between neighbours, microseconds.
    """

    name: str
    topic: str
    pattern: Pattern
    places: tuple[int, int, int]
    schema: pa.Schema
    lateness_ms: int | None = None
    keep_ms: int | None = None
    gap: int | None = None
    early: bool = False
    timeouts: bool = False
    every: int = 0  # most matches and partial matches of a row; 0: the preferred one alone
    kind: ClassVar[str] = "events"
    wakes: ClassVar[bool] = True

    def describe(self) -> str:
        told = "at once, and taken back" if self.early else "when final"
        which = "every match" if self.every else "matches"
        return f"{which} of {self.name}, told {told}, of {self.pattern.describe()}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        mark = tick.watermarks.get(self.topic)
        run = _Run(self, state, tick.number, None if mark is None else mark * 1000)
        table = inputs[0]
        if table.num_rows:
            run.take(
                encode_keys(table, self.pattern.partition), to_rows(table, self.pattern.carried)
            )
        run.wait_is_over()
        out, counts = run.finish()
        return changes(out, counts, self.schema)


@lru_cache(maxsize=64)
def machine(operator: EventPattern) -> EventMachine:
    """What an operator needs to run; made once in a process."""
    return EventMachine(operator)


class _Run:
    """One tick of one shard. `mark`: the watermark."""

    def __init__(
        self, operator: EventPattern, state: OperatorState, number: int, mark: int | None
    ) -> None:
        self.operator, self.state, self.number = operator, state, number
        self.machine = machine(operator)
        self.now = self.floor = mark  # no row to come is older than `floor`
        if mark is not None:
            if operator.lateness_ms is not None:
                self.now = self.floor = mark - operator.lateness_ms * 1000
            else:
                kept = operator.keep_ms
                self.floor = None if kept is None else mark - kept * 1000
        self.fed: dict[bytes, list[tuple[bytes, bytes, int]]] = {}
        self.puts: list[tuple[bytes, bytes | None]] = []

    def take(self, keys: Sequence[bytes], rows: Sequence[Row]) -> None:
        """Rows that have come: fed, or put into the queue."""
        operator, now = self.operator, self.now
        time, partition, offset = operator.places
        for key, row in zip(keys, rows, strict=True):
            at = cast(int, row[time])
            place = cast(int, row[partition]).to_bytes(4, "big") + cast(int, row[offset]).to_bytes(8, "big")  # fmt: skip
            if operator.early or (now is not None and at <= now):
                self._feed(key, at, place, encode_row(row))
            else:
                self.puts.append((b"e" + _time(at) + place, dumps((key, encode_row(row)))))

    def _feed(self, key: bytes, at: int, place: bytes, row: bytes) -> None:
        # Where nothing is taken back, a row never stands before one that was fed before.
        fixed = self.operator.lateness_ms is not None and not self.operator.early
        tick = self.number if fixed else 0
        order = _time(at) + tick.to_bytes(8, "big") + place
        self.fed.setdefault(key, []).append((order, row, 1))

    def wait_is_over(self) -> None:
        """Feed what the watermark has passed; look at keys whose time has come."""
        if self.now is None:
            return
        end = b"e" + _time(self.now)
        for name, value in self.state.scan(b"e"):
            if name[:9] > end:
                break
            key, row = marshal.loads(value)
            self._feed(key, _moment(name[1:9]), name[9:], row)
            self.puts.append((name, None))
        end = b"t" + _time(self.now)
        for name, _ in self.state.scan(b"t"):
            if name[:9] > end:
                break
            self.fed.setdefault(name[9:], [])
            self.puts.append((name, None))

    def finish(self) -> tuple[list[Row], list[int]]:
        """Match what was fed; what is told, first what is taken back."""
        state, keys = self.state, sorted(self.fed)
        found_keys = zip(
            keys,
            state.get_many([b"h" + key for key in keys]),
            state.get_many([b"k" + key for key in keys]),
            strict=True,
        )
        back: list[Row] = []
        told: list[Row] = []
        for key, header, about in found_keys:
            partition = Partition(state, key, header)
            before = (0, 0, None, 0) if about is None else marshal.loads(about)
            total: dict[bytes, int] = {}
            after = self.machine.run(
                partition, self.fed[key], total, before, self.now, self.floor, key
            )
            partition.write(self.puts)
            self._note(key, before, after, empty=not len(partition))
            for row, count in total.items():
                (back if count < 0 else told).extend([decode_row(row)] * abs(count))
        if back or told:
            known = self.state.get(TOTALS)
            counts = (0, 0, 0) if known is None else marshal.loads(known)
            late = sum(row[1] == TIMEOUT for row in told)
            found = (len(told) - late, late, len(back))
            added = tuple(a + b for a, b in zip(counts, found, strict=True))
            self.puts.append((TOTALS, dumps(added)))
        self.state.put_many(sorted(self.puts, key=lambda put: put[0]))
        # In the order in which they happened; rows of one match stay in theirs.
        rows = [*sorted(back, key=_happened), *sorted(told, key=_happened)]
        return rows, [-1] * len(back) + [1] * len(told)

    def _note(self, key: bytes, before: _Known, after: _Known, *, empty: bool) -> None:
        was, due = before[2], after[2]
        kept = was is not None and (self.now is None or was > self.now)  # else it is gone already
        if was is not None and kept and was != due:
            self.puts.append((b"t" + _time(was) + key, None))
        if due is not None and was != due:
            self.puts.append((b"t" + _time(due) + key, b"\x01"))
        gone = empty and after[2] is None and not (after[1] and self.machine.numbered)
        self.puts.append((b"k" + key, None if gone else dumps(after)))


class EventMachine(Machine):
    """Matches one key after the other. `told`: places before it are final."""

    def __init__(self, operator: EventPattern) -> None:
        Machine.__init__(self, operator.pattern)
        self._holder = None  # what a match of events gives is more than its measures
        self.events = operator
        program = operator.pattern.program
        self._hidden = program.hidden or len(program.variables)
        self._by_time = program.absent or operator.timeouts
        self._time = operator.places[0]
        self.told = 0
        self._alive: int | None = None  # the first attempt whose time is not over
        self.base = 0
        self.now: int | None = None
        self.key = b""
        self._touched: list[int] = []

    @property
    def numbered(self) -> bool:
        return self._numbered

    def run(
        self,
        partition: Partition,
        fed: list[tuple[bytes, bytes, int]],
        total: dict[bytes, int],
        before: _Known,
        now: int | None,
        floor: int | None,
        key: bytes,
    ) -> _Known:
        """Match again what the rows fed and the time change; what is known of the key then."""
        self.told, self.base, _, fixed = before
        self.now, self.key, self._touched = now, key, []
        moved: list[Change] = []
        if fed:
            moved, _ = partition.change(fed)
            for change in moved:
                if change.at < self.told:
                    self.told += 1
            self.refresh(partition, moved, total, fixed)
        self._check(partition, total)
        self._advance(partition, total, floor)
        count = len(partition)
        fixed = self._prune(partition, floor)
        return self.told, self.base, self._due(partition, count - len(partition)), fixed

    # What is told -------------------------------------------------------------------------

    def _replace(
        self, partition: Partition, at: int, record: Record | None, total: dict[bytes, int]
    ) -> int:
        old = partition.record(at)
        if self.events.early or at < self.told:
            _add(total, old, -1)
            _add(total, record, 1)
            self._touched.append(at)
        if old is not None or record is not None:
            partition.set_record(at, record, plain=not self._covers)
        return int(old is not None and old.kind > 0)

    def _check(self, partition: Partition, total: dict[bytes, int]) -> None:
        """Take back what is told behind an attempt that is not final any more."""
        for at in sorted(self._touched):
            if at >= self.told:
                break
            record = partition.record(at)
            if record is None or self._is_final(partition, at, record):
                continue
            if not self.events.early:
                for place in range(at, self.told):
                    _add(total, partition.record(place), -1)
            self.told = at
            break

    def _advance(self, partition: Partition, total: dict[bytes, int], floor: int | None) -> None:
        """Tell what has become final."""
        early = self.events.early
        if early:
            self._pass_time(partition, total)
        at = self.told
        while at < len(partition):
            record = partition.record(at)
            if record is not None:
                if not early and self._ends_now(partition, at, record):
                    self.told = at
                    self.refresh(partition, [Change(at, at, 0)], total, at)
                    record = cast(Record, partition.record(at))
                if not self._is_final(partition, at, record):
                    break
                if early and not self._is_settled(partition, at, record, floor):
                    break
                if not early:
                    _add(total, record, 1)
            at += 1
        self.told = at
        if not early:
            self._alive = at if at < len(partition) else None

    def _pass_time(self, partition: Partition, total: dict[bytes, int]) -> None:
        """What time alone ends, where everything is told at once."""
        count, at = len(partition), self.told
        self._alive = None
        while (found := partition.first_beyond(at, count, count)) is not None:
            record = cast(Record, partition.record(found))
            if record.reach == FOREVER and not self._is_over(partition, found):
                self._alive = found  # those behind it began later
                return
            if self._ends_now(partition, found, record):
                self.refresh(partition, [Change(found, found, 0)], total, found)
            at = found + 1

    def _ends_now(self, partition: Partition, at: int, record: Record) -> bool:
        """Whether an attempt must be run again because its time is over."""
        return self._by_time and record.reach == FOREVER and self._is_over(partition, at)

    def _is_final(self, partition: Partition, at: int, record: Record) -> bool:
        ahead = self.operator.sides[1]
        if record.reach != FOREVER:
            over = at + record.reach > len(partition)  # it looked at the end of its time
            seen = record.length if over else record.reach
            return not ahead or at + seen + ahead <= len(partition)
        if ahead and at + record.length + ahead > len(partition):
            return False
        return self._is_over(partition, at)

    def _is_over(self, partition: Partition, at: int) -> bool:
        """Whether no row to come can belong to a match that begins there."""
        now, within, gap = self.now, self.operator.within, self.events.gap
        if now is None:
            return False
        if within is not None and now - self._at(partition, at) >= within.micros:
            return True
        if gap is None or self.operator.program.absent:
            return False
        return now - self._at(partition, len(partition) - 1) > gap

    def _is_settled(self, partition: Partition, at: int, record: Record, floor: int | None) -> bool:
        """Whether no row can come between those that an attempt looked at."""
        reach = len(partition) - at if record.reach == FOREVER else record.reach
        last = min(at + max(reach, 1), len(partition)) - 1
        return floor is not None and self._at(partition, last) < floor

    def _at(self, partition: Partition, at: int) -> int:
        return cast(int, partition[at][self._time])

    # What leaves --------------------------------------------------------------------------

    def _prune(self, partition: Partition, floor: int | None) -> int:
        """Let rows go that no attempt and no row to come needs; the new `fixed`."""
        end = self.told
        if self.events.early or self.events.lateness_ms is None:
            end = self._settled(partition, floor)
        fixed = end
        if self._covers and end:
            found = partition.last_record(end)
            end = 0 if found is None else found[0]
        end -= self.operator.sides[0]
        if self.operator.program.before and self.operator.within is not None and end > 0:
            assert floor is not None  # else nothing is settled
            first = self._at(partition, self.told) if self.told < len(partition) else floor
            oldest = min(first, floor) - self.operator.within.micros
            while end > 0 and self._at(partition, end - 1) > oldest:
                end -= 1
        if end > 0:
            self.base += partition.cut(end)
            self.told -= end
            fixed -= end
        return fixed

    def _settled(self, partition: Partition, floor: int | None) -> int:
        """The first place whose attempt may be touched by a row to come."""
        at = 0
        if floor is None:
            return 0
        while at < self.told:
            record = partition.record(at)
            if record is not None and not self._is_settled(partition, at, record, floor):
                break
            at += 1
        return at

    def _due(self, partition: Partition, cut: int) -> int | None:
        """When time alone will tell something, or let rows go. `cut`: rows that went since."""
        count, due = len(partition), list[int]()
        if not count:
            return None
        last = self._at(partition, count - 1)
        within, gap, kept = self.operator.within, self.events.gap, self.events.keep_ms
        if self._alive is not None:
            if within is not None:
                due.append(self._at(partition, self._alive - cut) + within.micros)
            if gap is not None:
                due.append(last + gap + 1)
        if self.operator.program.before and within is not None:
            due.append(last + within.micros)
        if self.events.early and self.events.lateness_ms is not None:
            due.append(last + 1)
        if self.events.lateness_ms is None and kept is not None:
            due.append(last + kept * 1000 + 1)
        later = [one for one in due if self.now is None or one > self.now]
        return min(later, default=None)

    # Attempts -----------------------------------------------------------------------------

    def _passed(self, partition: Partition, change: Change, at: int) -> bool:
        if not Machine._passed(self, partition, change, at):
            return False
        within = self.operator.within
        if not self.operator.program.before or within is None or at >= len(partition):
            return True
        until = min(change.until, len(partition) - 1)
        return self._at(partition, at) - self._at(partition, until) >= within.micros

    def _attempt(
        self, partition: Partition, at: int, number: int, covered: int, trail: Trail
    ) -> tuple[Record, int]:
        number += self.base
        if not self.events.every:
            return Machine._attempt(self, partition, at, number, covered, trail)
        try:
            now = self.now if self._by_time else None
            found, matches = self.matcher.every(
                partition, at, number, trail, now, self.events.every
            )
            shown = [
                encode_row(row)
                for taken in matches
                for row in self._rows(partition, at, Attempt(0, taken), number, covered)
            ]
            if self.events.timeouts and found.over and found.came and not matches:
                shown.append(encode_row(self._timed_out(partition, at, found.came, number)))
        except EvaluationError as error:
            raise self._located(error, partition[at]) from error
        length = max(map(len, matches), default=0)
        kind = (2 if length else 1) if matches else 0
        return Record(found.reach, kind, length, 0, tuple(shown)), at + 1

    def _find(self, partition: Partition, at: int, number: int, trail: Trail) -> Attempt:
        now = self.now if self._by_time else None
        return self.matcher.attempt(partition, at, number, trail, now)

    def _rows(
        self, partition: Partition, at: int, found: Attempt, number: int, covered: int
    ) -> Iterator[Row]:
        taken = found.taken
        if taken is None:
            for row in Machine._rows(self, partition, at, found, number, covered):
                yield (*self._about(partition, at, (), UNMATCHED), *row)
            if self.events.timeouts and found.over and found.came:
                yield self._timed_out(partition, at, found.came, number)
            return
        about = self._about(partition, at, taken, MATCH)
        for row in Machine._rows(self, partition, at, found, number, covered):
            yield (*about, *row)

    def _timed_out(self, partition: Partition, at: int, came: tuple[int, ...], number: int) -> Row:
        """How far an attempt came whose time is over."""
        match = Match(partition, at, [self._variables[one] for one in came], number)
        about = self._about(partition, at, came, TIMEOUT)
        return (*about, *self._columns(partition[at]), *self._values(match, len(came)))

    def _about(
        self, partition: Partition, at: int, taken: tuple[int, ...], kind: int
    ) -> tuple[Any, ...]:
        first = partition[at]
        last = partition[at + len(taken) - 1] if taken else first
        variable = self.operator.program.names[self._variables[taken[-1]]] if taken else None
        count = sum(self._variables[one] < self._hidden for one in taken)
        return (
            self._match_id(partition, at, taken), kind, variable, count,
            first[self._time], last[self._time],
        )  # fmt: skip

    def _match_id(self, partition: Partition, at: int, taken: tuple[int, ...]) -> str:
        """The same for the same match whenever it is found: from the place of its first row in
        the log; of every match, of all its rows."""
        digest = hashlib.blake2b(self.events.name.encode(), digest_size=_ID_BYTES)
        digest.update(len(self.key).to_bytes(4, "big") + self.key)
        _, partitions, offsets = self.events.places
        places = [at]
        if self.events.every:
            places += [at + i for i, one in enumerate(taken) if self._variables[one] < self._hidden]
        for place in places:
            row = partition[place]
            digest.update(f"{row[partitions]}/{row[offsets]} ".encode())
        return digest.hexdigest()


def _happened(row: Row) -> tuple[int, int, str]:
    last, first, match_id = row[5], row[4], row[0]
    return cast(int, last), cast(int, first), cast(str, match_id)


def _add(total: dict[bytes, int], record: Record | None, weight: int) -> None:
    for row in record.shown if record is not None else ():
        total[row] = total.get(row, 0) + weight


def _time(at: int) -> bytes:
    return min(max(at + _HALF, 0), 2 * _HALF - 1).to_bytes(8, "big")


def _moment(data: bytes) -> int:
    return int.from_bytes(data, "big") - _HALF


@dataclass(frozen=True, slots=True)
class Told:
    """What a pattern tells, as records: the rows of its input, `op` from their weight."""

    name: str
    schema: pa.Schema
    kind: ClassVar[str] = "told"
    wakes: ClassVar[bool] = False
    stateless: ClassVar[bool] = True

    def describe(self) -> str:
        return f"records of {self.name}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        import pyarrow.compute as pc

        from tailrace.pipelines.values.columns import WEIGHT

        table = inputs[0]
        counts = table.column(WEIGHT)
        back = pc.less(counts, 0)
        op = pc.if_else(back, "retract", table.column("op"))
        place = self.schema.names.index("op")
        table = table.select(self.schema.names).set_column(place, "op", op)
        rows = pa.concat_tables([table.filter(back), table.filter(pc.invert(back))])
        return rows.cast(self.schema)
