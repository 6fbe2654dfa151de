"""Linear aggregates beyond sums: bits, higher moments, pairs of numbers.

All are kept as exact integers, so that what was added can be taken away again. A number counts
as the double that Spark casts it to. The answer is rounded once, but where Spark's doubles leave
their range on the way it is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import pyarrow as pa

from tailrace.pipelines.engine.operators.aggregates import (
    Linear,
    Slots,
    cast_to_double,
    ratio,
    root,
    rounded_once,
    units_of,
)
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.types import is_float

BITS = ("bit_and", "bit_or", "bit_xor")
SHAPES = ("skewness", "kurtosis")
PAIRED = (
    "corr", "covar_pop", "covar_samp", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
    "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip


class Bits(Linear):
    """bit_and, bit_or, bit_xor: how many values there are, and how many have each bit."""

    width = 65

    def __init__(self, function: str) -> None:
        self.function = function

    def parts(self, values: Sequence[object]) -> Slots | None:
        if values[0] is None:
            return None
        number = cast(int, values[0])
        return [1, *((number >> bit) & 1 for bit in range(64))]

    def finish(self, slots: Slots) -> object:
        count, *bits = slots
        if not count:
            return None
        match self.function:
            case "bit_and":
                chosen = [having == count for having in bits]
            case "bit_or":
                chosen = [having > 0 for having in bits]
            case _:
                chosen = [having % 2 == 1 for having in bits]
        number = sum(1 << bit for bit, there in enumerate(chosen) if there)
        return number - (1 << 64) if chosen[63] else number


class Shape(Linear):
    """skewness, kurtosis: count, Σx, Σx², Σx³, Σx⁴, and how many are not finite."""

    width = 6
    form = 2  # before, decimals counted as they are

    def __init__(self, function: str, argument: pa.DataType) -> None:
        self.function = function
        self.float = is_float(argument)
        self.units = units_of(argument)
        self.cast = cast_to_double(argument)

    def parts(self, values: Sequence[object]) -> Slots | None:
        if values[0] is None:
            return None
        if self.float and not math.isfinite(cast(float, values[0])):
            return [1, 0, 0, 0, 0, 1]
        number = self.cast(values[0])
        square = number * number
        fourth = square * square if self.function == "kurtosis" else 0
        return [1, number, square, square * number, fourth, 0]

    def finish(self, slots: Slots) -> object:
        count, total, squares, cubes, fourths, odd = slots
        if not count:
            return None
        if odd:
            return math.nan
        # The sums of powers of the deviations, times powers of the count.
        second = squares * count - total**2
        spread = ratio(second, count * self.units**2)
        if not spread:
            return None
        if self.function == "skewness":
            third = count * (cubes * count - 3 * total * squares) + 2 * total**3
            stepwise = math.sqrt(count) * ratio(third, count**2 * self.units**3)
            return rounded_once(
                _quotient(stepwise, math.sqrt(spread * spread * spread)),
                lambda: _signed_root(third, second**3),
            )
        fourth = count * (fourths * count - 4 * total * cubes) + 6 * total**2 * squares
        fourth = fourth * count - 3 * total**4
        stepwise = count * ratio(fourth, count**3 * self.units**4)
        return rounded_once(
            _quotient(stepwise, spread * spread) - 3.0,
            lambda: ratio(fourth - 3 * second**2, second**2),
        )


class Pairs(Linear):
    """Two numbers, both known: count, Σx, Σy, Σx², Σy², Σxy, and how many of x and of y are not
    finite; those count as 0 in the sums.

    The functions called regr_ take (y, x)."""

    width = 8
    form = 2  # before, decimals counted as they are

    def __init__(self, function: str, first: pa.DataType, second: pa.DataType) -> None:
        self.function = function
        self.kinds = tuple((is_float(kind), cast_to_double(kind)) for kind in (first, second))
        self.units = units_of(first), units_of(second)

    def parts(self, values: Sequence[object]) -> Slots | None:
        if None in values:
            return None
        numbers: list[int] = []
        odd: list[int] = []
        for value, (is_double, cast_one) in zip(values, self.kinds, strict=True):
            odd.append(is_double and not math.isfinite(cast(float, value)))
            numbers.append(0 if odd[-1] else cast_one(value))
        a, b = numbers
        return [1, a, b, a * a, b * b, a * b, *odd]

    def finish(self, slots: Slots) -> object:
        count, first, second, firsts, seconds, products, *odd = slots
        if self.function == "regr_count":
            return count
        if not count:
            return None
        sides = [
            Side(count, first, firsts, self.units[0], bool(odd[0])),
            Side(count, second, seconds, self.units[1], bool(odd[1])),
        ]
        both = count * products - first * second
        x, y = reversed(sides) if self.function.startswith("regr_") else sides
        return _of_pairs(self.function, count, x, y, both)


class Side:
    """One of two numbers: its sum, and its squared deviations, times the count."""

    def __init__(self, count: int, total: int, squares: int, units: int, odd: bool) -> None:
        self.total, self.units, self.odd = total, units, odd
        self.squares = squares * count - total * total
        self.mean = math.nan if odd else ratio(total, count * units)
        self.spread = math.nan if odd else ratio(self.squares, count * units * units)


def _of_pairs(function: str, count: int, x: Side, y: Side, both: int) -> float | None:
    """`both`: the sum of the products of the deviations, times the count."""
    units = count * x.units * y.units
    common = math.nan if x.odd or y.odd else ratio(both, units)
    match function:
        case "covar_pop":
            return rounded_once(common / count, lambda: ratio(both, units * count))
        case "covar_samp" if count > 1:
            return rounded_once(common / (count - 1), lambda: ratio(both, units * (count - 1)))
        case "corr" if count > 1 and x.spread and y.spread:
            return rounded_once(
                _quotient(common, math.sqrt(x.spread * y.spread)),
                lambda: _signed_root(both, x.squares * y.squares),
            )
        case "regr_sxx":
            return x.spread
        case "regr_syy":
            return y.spread
        case "regr_sxy":
            return common
        case "regr_slope" if x.spread:
            return rounded_once(
                common / x.spread, lambda: ratio(both * x.units, x.squares * y.units)
            )
        case "regr_intercept" if x.spread:
            return rounded_once(
                y.mean - common / x.spread * x.mean,
                lambda: ratio(y.total * x.squares - both * x.total, count * y.units * x.squares),
            )
        case "regr_r2" if x.spread and y.spread:
            return rounded_once(
                _quotient(common, math.sqrt(x.spread * y.spread)) ** 2,
                lambda: ratio(both * both, x.squares * y.squares),
            )
        case "regr_r2" if x.spread:
            return 1.0
    return None


def _signed_root(number: int, divisor: int) -> float:
    """number / √divisor, good to the last bit or so."""
    size = root(Fraction(number * number, divisor))
    return -size if number < 0 else size


def _quotient(dividend: float, divisor: float) -> float:
    """A quotient of doubles; as in Spark, a divisor too small for one is an error."""
    if not divisor:
        raise EvaluationError(
            "division by zero: the values are too near to each other for a DOUBLE",
            hint="multiply the values by a constant",
        )
    return dividend / divisor
