"""Vectors: arrays of FLOAT of one dimension. Sums are kept in double and rounded once, so the
last bit may differ from Spark's."""

from __future__ import annotations

import marshal
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import numpy as np

from tailrace.pipelines.errors import EvaluationError

Vector = Sequence[float | None]


def _both(left: Vector, right: Vector) -> tuple[list[float], list[float]] | None:
    if len(left) != len(right):
        raise EvaluationError(
            f"vectors of {len(left)} and of {len(right)} dimensions",
            hint="both must have the same dimension",
        )
    if None in left or None in right:
        return None
    return cast("list[float]", left), cast("list[float]", right)


def _rounded(value: float) -> float:
    return float(np.float32(value))


def _norm(vector: list[float], degree: float) -> float:
    if degree == 2.0:
        return math.hypot(*vector)
    if degree == 1.0:
        return math.fsum(map(abs, vector))
    if degree == math.inf:
        return max(map(abs, vector), default=0.0)
    raise EvaluationError(f"no norm of degree {degree}", hint="1.0, 2.0 or float('inf')")


class VectorSum:
    """The element-wise sum of vectors, exactly: in units of 2^-149, the smallest FLOAT, with
    what is not finite counted beside. So it is rounded once, whatever came in which order."""

    def __init__(self) -> None:
        self.count = 0
        self.sums: list[list[int]] = []  # of each element: sum, NaN, +inf, -inf

    def add(self, vector: Vector, times: int) -> None:
        """A vector with a NULL in it is passed over."""
        if None in vector:
            return
        if self.count and len(vector) != len(self.sums):
            raise EvaluationError(
                f"vectors of {len(self.sums)} and of {len(vector)} dimensions",
                hint="all of a group must have the same dimension",
            )
        self.sums = self.sums or [[0, 0, 0, 0] for _ in vector]
        self.count += times
        for slots, value in zip(self.sums, cast("list[float]", vector), strict=True):
            if math.isfinite(value):
                slots[0] += int(math.ldexp(value, 149)) * times
            else:
                slots[1 if value != value else 2 if value > 0 else 3] += times

    def shown(self, mean: bool) -> tuple[float, ...] | None:
        if not self.count:
            return None
        return tuple(self._element(slots, mean) for slots in self.sums)

    def _element(self, slots: list[int], mean: bool) -> float:
        total, nans, above, below = slots
        if nans or (above and below):
            return math.nan
        if above or below:
            return math.inf if above else -math.inf
        exact = Fraction(total, (1 << 149) * (self.count if mean else 1))
        with np.errstate(over="ignore"):
            return _rounded(exact.numerator / exact.denominator)

    def __bytes__(self) -> bytes:
        return marshal.dumps((self.count, self.sums), 2)

    @classmethod
    def from_bytes(cls, data: bytes) -> VectorSum:
        made = cls()
        made.count, made.sums = marshal.loads(data)
        return made
