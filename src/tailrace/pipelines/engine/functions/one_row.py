"""The one row of a scalar subquery."""

from __future__ import annotations

from tailrace.pipelines.engine.functions.scalar import KEEPS_NULL, simple
from tailrace.pipelines.errors import EvaluationError


def one_row(rows: int | None, value: object) -> object:
    """The value of a subquery that has `rows` rows (NULL: none)."""
    if rows is not None and rows > 1:
        raise EvaluationError(
            "scalar subquery has more than one row",
            hint="aggregate it, or add a condition that leaves one row",
        )
    return value


simple("one_row", one_row)
KEEPS_NULL.add("one_row")
