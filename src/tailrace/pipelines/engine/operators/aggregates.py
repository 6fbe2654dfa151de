"""Aggregate functions over weighted values.

Three families, by what must be remembered:

- *linear*: a few integers per group; a change adds to them (count, sum, avg, variance …).
  Floats are summed exactly, as integers of 2^-1074, so that what was added can be taken
  away again: there is no drift, and the result is rounded once.
- *distinct*: linear, fed by values whose count in the group comes from or goes to zero.
- *ordered*: the group's values in order; the function reads them from the front (min, max,
  first, percentile, collect_list …).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import pyarrow as pa

from tailrace.pipelines.engine.functions.one_row import one_row
from tailrace.pipelines.engine.operators.sketches.bitmaps import bitmap_joined, bitmap_of
from tailrace.pipelines.engine.operators.sketches.histograms import shown
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.keys import holds_float, one_zero, zero_signs
from tailrace.pipelines.values.types import is_decimal, is_float

Slots = list[int]
_UNIT = 1074  # the smallest double is 2^-1074
_LIMITS = {pa.int64(): 1 << 63}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a `group`: output `name`; `arguments` and `condition` are columns of
    the input; `order` is (column, descending, nulls first) for functions that need one."""

    name: str
    function: str
    arguments: tuple[str, ...]
    argument_types: tuple[pa.DataType, ...]
    type: pa.DataType
    distinct: bool = False
    condition: str | None = None
    order: tuple[tuple[str, bool, bool], ...] = ()
    parameters: tuple[object, ...] = ()
    grows: bool = False  # its input's rows never leave: it keeps a sketch, or what is first

    def describe(self) -> str:
        inner = ", ".join((*self.arguments, *map(str, self.parameters))) or "*"
        order = "".join(
            f" {name}{' desc' if desc else ''}{' nulls first' if nulls else ''}"
            for name, desc, nulls in self.order
        )
        return (
            f"{self.function}({'distinct ' if self.distinct else ''}{inner}"
            f"{' order by' + order if order else ''})"
            f"{' filter ' + self.condition if self.condition else ''}: {self.type}"
            f"{self.kept}"
        )

    @property
    def kept(self) -> str:
        """What is kept of its input, where that is not the rows."""
        if not self.grows:
            return ""
        return " of rows that only come" if self.function in ORDERED else " as a sketch"


def fixed(value: float) -> int:
    """A finite double as an integer of 2^-1074, exactly."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_UNIT - denominator.bit_length() + 1)


def units_of(kind: pa.DataType) -> int:
    """How many of the units make one, of which a type's numbers are whole multiples as doubles."""
    if is_float(kind):
        return 1 << _UNIT
    if is_decimal(kind) and kind.scale:
        # The smallest is 10^-scale, and a double has 53 bits.
        return 1 << (53 + int(10**kind.scale).bit_length())
    return 1


def cast_to_double(kind: pa.DataType) -> Callable[[object], int]:
    """A finite number of a type as the double that Spark casts it to, in `units_of` the type."""
    units = units_of(kind)
    if is_float(kind):
        return lambda value: fixed(cast(float, value))
    if units > 1:
        scale = int(10**kind.scale)

        def counted(value: object) -> int:
            numerator, denominator = (cast(int, value) / scale).as_integer_ratio()
            return numerator * (units // denominator)

        return counted
    if is_decimal(kind) or kind == pa.int64():
        return lambda value: int(float(cast(int, value)))
    return lambda value: cast(int, value)


def ratio(numerator: int, denominator: int) -> float:
    """The double nearest to a quotient; infinite when it is too large."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def to_float(value: Fraction) -> float:
    """The nearest double; infinite when it is too large."""
    return ratio(value.numerator, value.denominator)


def rounded_once(stepwise: float, exact: Callable[[], float]) -> float:
    """The exact answer, but for where doubles leave their range on the way to it, as Spark's do:
    then theirs. `stepwise` is the answer in Spark's arithmetic."""
    return exact() if stepwise and math.isfinite(stepwise) else stepwise


class Linear:
    """`width` integers per group; `parts` is what one row adds to them. `form`: see `Operator`."""

    width: int
    form: int = 1

    def parts(self, values: Sequence[object]) -> Slots | None:
        raise NotImplementedError

    def finish(self, slots: Slots) -> object:
        raise NotImplementedError


class Count(Linear):
    width = 1

    def parts(self, values: Sequence[object]) -> Slots | None:
        return None if None in values else [1]

    def finish(self, slots: Slots) -> object:
        return slots[0]


class CountIf(Linear):
    width = 1

    def parts(self, values: Sequence[object]) -> Slots | None:
        return [1] if values[0] is True else None

    def finish(self, slots: Slots) -> object:
        return slots[0]


class ExactSum(Linear):
    """sum of integers or decimals: their count, their sum."""

    width = 2

    def __init__(self, kind: pa.DataType, forgiving: bool = False) -> None:
        self.most, self.least = (1 << 63) - 1, -(1 << 63)
        if is_decimal(kind):
            self.most = 10**kind.precision - 1
            self.least = -self.most
        self.kind, self.forgiving = kind, forgiving

    def parts(self, values: Sequence[object]) -> Slots | None:
        return None if values[0] is None else [1, values[0]]  # type: ignore[list-item]

    def finish(self, slots: Slots) -> object:
        if not slots[0]:
            return None
        if not self.least <= slots[1] <= self.most:
            if self.forgiving:
                return None
            raise EvaluationError(
                f"sum overflows {self.kind}", hint="cast the argument to a wider type"
            )
        return slots[1]


class ExactAverage(Linear):
    """avg of decimals: Spark's result scale, rounded half up. Its sum may overflow as well."""

    width = 2

    def __init__(self, argument: pa.DataType, result: pa.DataType, forgiving: bool) -> None:
        self.shift = result.scale - argument.scale
        self.limit, self.kind = 10**result.precision, result
        self.most = 10 ** min(argument.precision + 10, 38)
        self.forgiving = forgiving

    def parts(self, values: Sequence[object]) -> Slots | None:
        return None if values[0] is None else [1, values[0]]  # type: ignore[list-item]

    def finish(self, slots: Slots) -> object:
        count, total = slots
        if not count:
            return None
        scaled = abs(total) * 10**self.shift
        quotient = (2 * scaled + abs(count)) // (2 * abs(count))
        if quotient >= self.limit or abs(total) >= self.most:
            if self.forgiving:
                return None
            raise EvaluationError(
                f"avg overflows {self.kind}", hint="cast the argument to a narrower type"
            )
        return quotient if (total < 0) == (count < 0) else -quotient


class Moments(Linear):
    """Numbers of which sum, mean or variance is a double: count, Σx, Σx², and what is not finite.

    Each is the double that Spark casts it to: integers in ones, doubles in units of 2^-1074."""

    width = 6

    def __init__(self, function: str, argument: pa.DataType) -> None:
        self.function = function
        self.float = is_float(argument)
        self.units = units_of(argument)
        self.squares = function not in ("sum", "avg")
        self.sample = function in ("stddev", "stddev_samp", "variance", "var_samp", "std")
        self.cast = cast_to_double(argument)
        # Before, decimals and wide integers counted as they are.
        self.form = 2 if self.squares or argument == pa.int64() else 1

    def parts(self, values: Sequence[object]) -> Slots | None:
        value = values[0]
        if value is None:
            return None
        if self.float and not math.isfinite(value):  # type: ignore[arg-type]
            return [1, 0, 0, value != value, value == math.inf, value == -math.inf]
        number = self.cast(value)
        return [1, number, number * number if self.squares else 0, 0, 0, 0]

    def finish(self, slots: Slots) -> object:
        count, total, _, nans, above, below = slots
        if not count:
            return None
        if self.squares:
            return self._spread(slots)
        if nans or (above and below):
            return math.nan
        if above or below:
            return math.inf if above else -math.inf
        whole = ratio(total, self.units)
        if self.function == "sum" or math.isinf(whole):
            return whole
        return ratio(total, self.units * count)

    def _spread(self, slots: Slots) -> float | None:
        count, total, squares, *odd = slots
        if self.sample and count == 1:
            return None
        if any(odd):
            return math.nan
        deviations, units, places = squares * count - total**2, self.units**2, count - self.sample
        variance = rounded_once(
            ratio(deviations, count * units) / places,
            lambda: ratio(deviations, count * places * units),
        )
        return variance if self.function in VARIANCES else math.sqrt(variance)


def root(value: Fraction) -> float:
    """The square root of a non-negative rational, good to the last bit or so."""
    if value == 0:
        return 0.0
    shift = max(0, 128 - (value.numerator.bit_length() - value.denominator.bit_length()))
    shift += shift % 2
    scaled = (value.numerator << shift) // value.denominator
    return to_float(Fraction(math.isqrt(scaled), 1 << (shift // 2)))


class Every(Linear):
    """bool_and, bool_or: how many are true, how many are false."""

    width = 2

    def __init__(self, function: str) -> None:
        self.all = function in ("bool_and", "every")

    def parts(self, values: Sequence[object]) -> Slots | None:
        if values[0] is None:
            return None
        return [1, 0] if values[0] else [0, 1]

    def finish(self, slots: Slots) -> object:
        true, false = slots
        if not (true or false):
            return None
        return not false if self.all else bool(true)


VARIANCES = ("variance", "var_samp", "var_pop")
MOMENTS = ("stddev", "stddev_samp", "stddev_pop", "std", *VARIANCES)
ORDERED = (
    "min", "max", "first", "last", "any_value", "percentile", "median", "percentile_disc",
    "collect_list", "array_agg", "collect_set", "listagg", "string_agg", "min_by", "max_by",
    "mode", "single_value", "histogram_numeric", "bitmap_construct_agg", "bitmap_or_agg", "bitmap_and_agg",
)  # fmt: skip
ONE_ZERO = ("mode", "collect_set")  # they have 0.0 for -0.0, as keys have


def linear(aggregate: Aggregate) -> Linear | None:
    """How to keep a linear (or distinct) aggregate; None when it is an ordered one."""
    function = aggregate.function
    if function == "count":
        return Count()
    if function == "count_if":
        return CountIf()
    if function in ("bool_and", "bool_or", "every", "some", "any"):
        return Every(function)
    argument = aggregate.argument_types[0] if aggregate.argument_types else pa.int64()
    if function in ("sum", "try_sum"):
        if is_float(argument):
            return Moments("sum", argument)
        return ExactSum(aggregate.type, function == "try_sum")
    if function in ("avg", "try_avg"):
        if is_decimal(argument):
            return ExactAverage(argument, aggregate.type, function == "try_avg")
        return Moments("avg", argument)
    if function in MOMENTS:
        return Moments(function, argument)
    from tailrace.pipelines.engine.operators import statistics

    if function in statistics.BITS:
        return statistics.Bits(function)
    if function in statistics.SHAPES:
        return statistics.Shape(function, argument)
    if function in statistics.PAIRED:
        return statistics.Pairs(function, *aggregate.argument_types)
    return None


def form_of(aggregate: Aggregate) -> int:
    """The form (see `Operator`) of what an aggregate keeps and shows."""
    rule = linear(aggregate)
    if rule is not None:
        return rule.form
    if aggregate.function not in ORDERED:
        return 1
    signed = holds_float(aggregate.argument_types[0])
    return 2 if signed or aggregate.function in ("percentile", "median") else 1


Values = list[tuple[object, int]]


def signed_values(
    aggregate: Aggregate, values: list[object], orders: list[bytes]
) -> tuple[list[object], list[bytes]]:
    """The values of an ordered aggregate and their orders, as it keeps them: 0.0 and -0.0 are
    equal, and what shows values as they are holds both, the negative first."""
    if aggregate.function not in ORDERED or not holds_float(aggregate.argument_types[0]):
        return values, orders
    if aggregate.function in ONE_ZERO:
        return list(map(one_zero, values)), orders
    return values, [order + zero_signs(value) for value, order in zip(values, orders, strict=True)]


def finisher(aggregate: Aggregate) -> Callable[[Values], object]:
    """The function of the ordered values (with counts) of a group, for ordered aggregates.

    `min`, `max`, `first` … are not asked here: their answer is the first value."""
    kind = aggregate.argument_types[0]
    scale = Fraction(1, 10**kind.scale) if is_decimal(kind) else Fraction(1)

    def number(value: object) -> float:
        return value if isinstance(value, float) else to_float(cast(int, value) * scale)

    match aggregate.function:
        case "percentile" | "median":
            share = float(str(aggregate.parameters[0])) if aggregate.parameters else 0.5
            return lambda values: _percentile(values, share, number)
        case "percentile_disc":
            share = float(str(aggregate.parameters[0]))
            return lambda values: _percentile_disc(values, share)
        case "collect_list" | "array_agg":
            return lambda values: tuple(v for v, count in values for _ in range(count))
        case "collect_set":
            return lambda values: tuple(v for v, _ in values)
        case "listagg" | "string_agg":
            separator = str(aggregate.parameters[0]) if aggregate.parameters else ""
            once = aggregate.distinct
            return lambda values: (
                separator.join(str(v) for v, n in values for _ in range(1 if once else n))
                if values
                else None
            )
        case "mode":
            return _mode
        case "histogram_numeric":
            bins = cast(int, aggregate.parameters[0])
            if aggregate.distinct:
                return lambda values: shown([(value, 1) for value, _ in values], bins, kind)
            return lambda values: shown(values, bins, kind)
        case "bitmap_construct_agg":
            return lambda values: bitmap_of(cast("int", v) for v, _ in values)
        case "bitmap_or_agg":
            return lambda values: bitmap_joined([cast("bytes", v) for v, _ in values], False)
        case "bitmap_and_agg":
            return lambda values: bitmap_joined([cast("bytes", v) for v, _ in values], True)
        case "single_value":
            return _single
    from tailrace.pipelines.engine.operators.sketches.approximate import SKETCHED, rule_of

    if aggregate.function in SKETCHED:
        return rule_of(aggregate).exactly
    raise ValueError(f"no ordered aggregate {aggregate.function!r}")


def _percentile(values: Values, share: float, number: Callable[[object], float]) -> float | None:
    """Between the two values around the place, in Spark's own arithmetic of doubles."""
    total = sum(count for _, count in values)
    if not total:
        return None
    position = (total - 1) * share
    below, above = math.floor(position), math.ceil(position)
    low, high = _at(values, below), _at(values, above)
    if low == high:
        return number(low)
    first, last = number(low), number(high)
    return first + (last - first) * (position - below)


def _percentile_disc(values: Values, share: float) -> object:
    """The first value that so large a part of all does not lie behind; the place is found in
    doubles, as Spark does: 0.07 of 100 is the 8th."""
    total = sum(count for _, count in values)
    return _at(values, max(0, math.ceil(share * total) - 1)) if total else None


def _at(values: Values, position: int) -> object:
    for value, count in values:
        if position < count:
            return value
        position -= count
    raise IndexError(position)


def _mode(values: Values) -> object:
    best = max((count for _, count in values), default=0)
    return next((value for value, count in values if count == best), None)


def _single(values: Values) -> object:
    return one_row(sum(count for _, count in values), values[0][0] if values else None)
