"""Linear aggregates beyond sums: bits, higher moments, pairs of numbers.

All are kept as exact integers, so that what was added can be taken away again, and rounded
once when they are shown. Doubles count in units of 2^-1074.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import pyarrow as pa

from tailrace.pipelines.incremental.operators.aggregates import (
    Linear,
    Slots,
    fixed,
    root,
    to_float,
    unit_of,
)
from tailrace.pipelines.incremental.types import is_float

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

    def __init__(self, function: str, argument: pa.DataType) -> None:
        self.function = function
        self.float = is_float(argument)
        # The unit falls out: both are ratios of moments.

    def parts(self, values: Sequence[object]) -> Slots | None:
        if values[0] is None:
            return None
        if self.float and not math.isfinite(cast(float, values[0])):
            return [1, 0, 0, 0, 0, 1]
        number = fixed(cast(float, values[0])) if self.float else cast(int, values[0])
        square = number * number
        fourth = square * square if self.function == "kurtosis" else 0
        return [1, number, square, square * number, fourth, 0]

    def finish(self, slots: Slots) -> object:
        count, total, squares, cubes, fourths, odd = slots
        if not count:
            return None
        if odd:
            return math.nan
        mean = Fraction(total, count)
        second = squares - count * mean**2
        if not second:
            return None
        if self.function == "skewness":
            third = cubes - 3 * mean * squares + 2 * count * mean**3
            size = root(count * third**2 / second**3)
            return -size if third < 0 else size
        fourth = fourths - 4 * mean * cubes + 6 * mean**2 * squares - 3 * count * mean**4
        return to_float(count * fourth / second**2 - 3)


class Pairs(Linear):
    """Two numbers, both known: count, Σx, Σy, Σx², Σy², Σxy, and how many are not finite.

    The functions called regr_ take (y, x)."""

    width = 7

    def __init__(self, function: str, first: pa.DataType, second: pa.DataType) -> None:
        self.function = function
        self.floats = is_float(first), is_float(second)
        self.units = unit_of(first), unit_of(second)

    def parts(self, values: Sequence[object]) -> Slots | None:
        if None in values:
            return None
        numbers: list[int] = []
        for value, is_double in zip(values, self.floats, strict=True):
            if is_double and not math.isfinite(cast(float, value)):
                return [1, 0, 0, 0, 0, 0, 1]
            numbers.append(fixed(cast(float, value)) if is_double else cast(int, value))
        a, b = numbers
        return [1, a, b, a * a, b * b, a * b, 0]

    def finish(self, slots: Slots) -> object:
        count, first, second, firsts, seconds, products, odd = slots
        function = self.function
        if function == "regr_count":
            return count
        if not count:
            return None
        if odd:
            return math.nan
        if function.startswith("regr_"):
            first, second, firsts, seconds = second, first, seconds, firsts
            x_unit, y_unit = self.units[1], self.units[0]
        else:
            x_unit, y_unit = self.units
        # Sums of squared deviations, times the count.
        xx = (count * firsts - first * first) * x_unit * x_unit
        yy = (count * seconds - second * second) * y_unit * y_unit
        xy = (count * products - first * second) * x_unit * y_unit
        x_mean, y_mean = first * x_unit / count, second * y_unit / count
        match function:
            case "covar_pop":
                return to_float(xy / count**2)
            case "covar_samp":
                return to_float(xy / (count * (count - 1))) if count > 1 else None
            case "corr":
                if not xx or not yy:
                    return None
                size = root(xy * xy / (xx * yy))
                return -size if xy < 0 else size
            case "regr_sxx":
                return to_float(xx / count)
            case "regr_syy":
                return to_float(yy / count)
            case "regr_sxy":
                return to_float(xy / count)
        if not xx:
            return None
        match function:
            case "regr_slope":
                return to_float(xy / xx)
            case "regr_intercept":
                return to_float(y_mean - xy / xx * x_mean)
        return to_float(xy * xy / (xx * yy)) if yy else 1.0
