"""Conditions on the clock whose rows know beforehand when they come and leave.

`timed` turns a bound condition into the tree of `operators.spans`: comparisons of times with the
clock, which may be moved by intervals, months and units, put together by AND, OR and NOT with
whatever does not look at the clock. What is not of this form (`hour(at) = hour(now())`) is None:
the part of the view that depends on it is computed again.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.engine.evaluate import folded
from tailrace.pipelines.engine.expression import (
    Call,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    walk,
)
from tailrace.pipelines.engine.functions.times import DAY, UNITS
from tailrace.pipelines.engine.operators.spans import (
    TRUNCATIONS,
    Condition,
    Every,
    Moment,
    Months,
    Shift,
    Some,
    Step,
    Truncation,
    Truth,
    ends,
)
from tailrace.pipelines.values import types

WATERMARK = "watermark"
_CLOCKS = ("now", WATERMARK)
_NEGATED: dict[str, str] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_ZERO = Literal(0, types.INT)
_NONE = Literal(0, types.BIGINT)


@dataclass(frozen=True, slots=True)
class Timed:
    """A condition over `values`; `streams` are those whose watermark is the clock (topic and
    column of its event time)."""

    condition: Condition
    values: tuple[Expression, ...]
    streams: tuple[tuple[str, str], ...]


def reads_clock(bound: Expression) -> bool:
    """Whether the present time, or a watermark, is in it."""
    return any(isinstance(part, Call) and part.function in _CLOCKS for part in walk(bound))


def timed(bound: Expression) -> Timed | None:
    """A condition that reads the clock as one whose rows can be told their time; else None."""
    clocks = {p for p in walk(bound) if isinstance(p, Call) and p.function in _CLOCKS}
    if len(clocks) != 1:
        return None
    [clock] = clocks
    reader = _Reader([])
    condition = reader.read(bound, False, None)
    if condition is None:
        return None
    named = [str(a.value) for a in clock.arguments if isinstance(a, Literal)]
    streams = tuple(zip(named[::2], named[1::2], strict=True))
    return Timed(condition, tuple(reader.values), streams)


def bind_watermark(context: Context, node: exp.Anonymous) -> Expression:
    """`watermark('clicks', …)`: the event time up to which these streams are complete."""
    parts: list[Expression] = []
    for given in node.expressions:
        name = str(given.this) if isinstance(given, exp.Literal) and given.is_string else ""
        found = context.times.get(name.lower())
        if found is None:
            known = ", ".join(f"'{topic}'" for topic in sorted(context.times))
            raise context.name_error(
                f"watermark() of {given.sql('spark')}, which is no stream with an event time",
                given,
                f"streams with time= are: {known or 'none'}",
            )
        parts += [Literal(part, types.STRING) for part in found]
    if not parts:
        raise context.name_error(
            "watermark() of which streams?", node, "name them: watermark('searches', 'clicks')"
        )
    return Call(WATERMARK, tuple(parts), types.TIMESTAMP)


def split(bound: Expression | None) -> tuple[list[Expression], list[Timed], list[Expression]]:
    """The parts of an AND: those without the clock, those that are timed, and the others."""
    plain: list[Expression] = []
    found: list[Timed] = []
    others: list[Expression] = []
    for part in conjuncts(bound):
        if not reads_clock(part):
            plain.append(part)
        elif (one := timed(part)) is not None:
            found.append(one)
        else:
            others.append(part)
    return plain, found, others


def stays_above(bound: Expression) -> bool:
    """Whether a condition lets rows come by the clock and never leave. It is better tested
    behind a join than before it: the join can then forget rows by their own time."""
    if not reads_clock(bound):
        return False
    known = timed(bound)
    return known is not None and not ends(known.condition)


@dataclass(slots=True)
class _Reader:
    values: list[Expression]

    def read(self, bound: Expression, negated: bool, guard: Expression | None) -> Condition | None:
        """The condition, or its negation, as true or not true: NULL is not true in both.
        Values are computed only where `guard` is true: what stands before has not decided."""
        if not reads_clock(bound):
            plain = Call("not", (bound,), types.BOOLEAN) if negated else bound
            return Truth(self._number(plain, guard))
        match bound:
            case Call("not", (inner,)):
                return self.read(inner, not negated, guard)
            case Call("and" | "or" as word, (one, other)):
                before = _undecided(word, one, guard)
                parts = [self.read(one, negated, guard), self.read(other, negated, before)]
                known = tuple(part for part in parts if part is not None)
                if len(known) < 2:
                    return None
                return Every(known) if (word == "and") != negated else Some(known)
            case Call("<" | "<=" | ">" | ">=" | "=" | "<>" as sign, (left, right)):
                wanted = _NEGATED[sign] if negated else sign
                if reads_clock(left):
                    left, right, wanted = right, left, _FLIPPED[wanted]
                if reads_clock(left):
                    return None
                return self._compared(left, wanted, right, guard)
        return None

    def _compared(
        self, value: Expression, word: str, clock: Expression, guard: Expression | None
    ) -> Condition | None:
        if isinstance(clock, Call) and clock.function == "datediff":
            # clock - d < n  ⇔  clock < d + n, in days
            end, start = clock.arguments
            if reads_clock(start) or not isinstance(value, Literal):
                return None
            days = Literal(value.value, types.INT)
            value = Call("add_interval", (start, _ZERO, days, _NONE), types.DATE)
            clock = end
        moved = _moved(value, clock)
        if moved is None:
            return None
        value, steps = moved
        number = self._number(_moment(value), guard)
        if word == "<>":
            return Some((Moment(number, "<", steps), Moment(number, ">", steps)))
        return Moment(number, word, steps)

    def _number(self, value: Expression, guard: Expression | None) -> int:
        if guard is not None:
            value = Call("case", (guard, value, Literal(None, value.type)), value.type)
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)


def _undecided(word: str, one: Expression, guard: Expression | None) -> Expression | None:
    """Where the left side of an AND or OR leaves the answer to the right one."""
    if reads_clock(one):
        return guard
    plain = one if word == "and" else Call("not", (one,), types.BOOLEAN)
    whether = Call("coalesce", (plain, Literal(True, types.BOOLEAN)), types.BOOLEAN)
    return whether if guard is None else Call("and", (guard, whether), types.BOOLEAN)


def _moment(value: Expression) -> Expression:
    return value if value.type == types.TIMESTAMP else Call("cast", (value,), types.TIMESTAMP)


def _moved(value: Expression, clock: Expression) -> tuple[Expression, tuple[Step, ...]] | None:
    """The steps that make the clock's side, from the inside out. What only moves it by a
    duration moves the value instead, the other way, as long as nothing else is outside of it."""
    if not types.is_temporal(value.type):
        return None
    steps: list[Step] = []
    while not (isinstance(clock, Call) and clock.function in _CLOCKS):
        match clock:
            case Call("add_interval", (inner, none, days, micros)) if not steps and _is_zero(none):
                back = (_ZERO, _negative(days), _negative(micros))
                value = Call("add_interval", (_moment(value), *back), types.TIMESTAMP)
                clock = inner
            case _:
                found = _step(clock)
                if found is None:
                    return None
                clock, more = found
                steps += more
    return value, tuple(reversed(steps))


def _step(clock: Expression) -> tuple[Expression, list[Step]] | None:
    """What is moved, and how: the last step first."""
    match clock:
        case Call("cast", (inner,)) if inner.type != types.DATE and clock.type == types.DATE:
            return inner, [Truncation("DAY")]
        case Call("cast", (inner,)) if types.is_temporal(clock.type):
            return inner, []
        case Call("add_interval", (inner, Literal(int(m)), Literal(int(d)), Literal(int(micros)))):
            return inner, [Shift(d * DAY + micros), *([Months(m)] if m else [])]
        case Call("date_add" | "date_sub" as word, (inner, count)):
            days = _constant(count)
            return None if days is None else (inner, [_days(days if word == "date_add" else -days)])
        case Call("add_months", (inner, count)):
            months = _constant(count)
            return None if months is None else (inner, [Months(months)])
        case Call("timestampadd", (Literal(str(unit)), count, inner)):
            step = _added(unit.upper(), _constant(count))
            return None if step is None else (inner, [step])
        case Call("date_trunc", (Literal(str(unit)), inner)) if unit in TRUNCATIONS:
            return inner, [Truncation(unit)]
        case Call("trunc", (inner, Literal(str(unit)))) if unit in TRUNCATIONS:
            return inner, [Truncation(unit)]
    return None


def _days(count: int) -> Step:
    return Shift(count * DAY)


def _constant(value: Expression) -> int | None:
    """The whole number that an expression over no columns is."""
    if columns_of(value):
        return None
    found = folded(value)
    return found.value if isinstance(found, Literal) and isinstance(found.value, int) else None


def _added(unit: str, count: int | None) -> Step | None:
    sizes = {**UNITS, "WEEK": 7 * DAY}
    months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
    if count is None or unit not in {*sizes, *months}:
        return None
    return Shift(count * sizes[unit]) if unit in sizes else Months(count * months[unit])


def _is_zero(months: Expression) -> bool:
    """Whether there are none; of an interval times n that is 0 · n."""
    match months:
        case Literal(0):
            return True
        case Call("cast" | "negative", (inner,)):
            return _is_zero(inner)
        case Call("*", (one, other)):
            return _is_zero(one) or _is_zero(other)
    return False


def _negative(value: Expression) -> Expression:
    if isinstance(value, Literal) and isinstance(value.value, int):
        return Literal(-value.value, value.type)
    return Call("negative", (value,), value.type)
