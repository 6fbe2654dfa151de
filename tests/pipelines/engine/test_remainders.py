"""Remainders of whole numbers all at once, against one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.engine.functions.scalar import FUNCTIONS, map_values
from tailrace.pipelines.errors import EvaluationError

NUMBERS = st.none() | st.integers(-20, 20) | st.integers(-(1 << 63), (1 << 63) - 1)
DIVISORS = st.none() | st.integers(-(1 << 63), (1 << 63) - 1).filter(bool) | st.integers(1, 9)
BIGINT = pa.int64()


@given(pairs=st.lists(st.tuples(NUMBERS, DIVISORS), max_size=20))
def test_they_are_those_of_single_rows(pairs: list[tuple[int | None, int | None]]) -> None:
    one = FUNCTIONS["%"]([BIGINT, BIGINT], BIGINT)
    arrays = [pa.array([pair[at] for pair in pairs], BIGINT) for at in (0, 1)]
    expected = [None if None in pair else one(*pair) for pair in pairs]
    if all(value is None or -(1 << 63) <= value < 1 << 63 for value in expected):
        assert map_values("%", arrays, BIGINT).to_pylist() == expected


def test_a_zero_is_told() -> None:
    with pytest.raises(EvaluationError, match="zero"):
        map_values("%", [pa.array([1, 2], BIGINT), pa.array([3, 0], BIGINT)], BIGINT)
    found = map_values("%", [pa.array([1, None], BIGINT), pa.array([3, 0], BIGINT)], BIGINT)
    assert found.to_pylist() == [1, None]
