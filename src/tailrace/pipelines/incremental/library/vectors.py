"""Vectors: arrays of FLOAT of one dimension. Sums are kept in double and rounded once, so the
last bit may differ from Spark's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.library.signatures import plain

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


@plain("vector_inner_product")
def vector_inner_product(left: Vector, right: Vector) -> float | None:
    both = _both(left, right)
    return None if both is None else _rounded(math.fsum(a * b for a, b in zip(*both, strict=True)))


@plain("vector_l2_distance")
def vector_l2_distance(left: Vector, right: Vector) -> float | None:
    both = _both(left, right)
    return None if both is None else _rounded(math.dist(*both))


@plain("vector_cosine_similarity")
def vector_cosine_similarity(left: Vector, right: Vector) -> float | None:
    both = _both(left, right)
    if both is None or not left:
        return None
    size = math.hypot(*both[0]) * math.hypot(*both[1])
    return _rounded(math.fsum(a * b for a, b in zip(*both, strict=True)) / size) if size else None


@plain("vector_norm")
def vector_norm(vector: Vector, degree: float = 2.0) -> float | None:
    if None in vector:
        return None
    return _rounded(_norm(cast("list[float]", vector), degree))


@plain("vector_normalize")
def vector_normalize(vector: Vector, degree: float = 2.0) -> list[float] | None:
    if None in vector:
        return None
    numbers = cast("list[float]", vector)
    size = _norm(numbers, degree)
    return [_rounded(number / size) for number in numbers] if size else None


def _norm(vector: list[float], degree: float) -> float:
    if degree == 2.0:
        return math.hypot(*vector)
    if degree == 1.0:
        return math.fsum(map(abs, vector))
    if degree == math.inf:
        return max(map(abs, vector), default=0.0)
    raise EvaluationError(f"no norm of degree {degree}", hint="1.0, 2.0 or float('inf')")
