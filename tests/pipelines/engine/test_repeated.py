"""Functions computed once for every value that differs give what they give row by row."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.engine import repeated
from tailrace.pipelines.engine.evaluate import evaluate
from tailrace.pipelines.engine.expression import Call, Column, Literal
from tailrace.pipelines.engine.functions.scalar import map_values
from tailrace.pipelines.values.types import BIGINT, INT, STRING, TIMESTAMP

moments = st.datetimes(
    datetime.datetime(1900, 1, 1),
    datetime.datetime(2100, 1, 1),
    timezones=st.just(datetime.UTC),
)


@given(
    st.lists(st.none() | moments, min_size=1, max_size=8),
    st.sampled_from(list(repeated._PARTS)),
)
def test_parts_of_times(values: list[datetime.datetime | None], what: str) -> None:
    near = [v and v + datetime.timedelta(microseconds=number) for v in values for number in (0, 7)]
    column = pa.array(near * 9, TIMESTAMP)
    table = pa.table({"at": column})
    arguments: tuple[Column | Literal, ...] = (Column("at", TIMESTAMP),)
    name, kind = what, INT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated, "_FEW_ROWS", 1)
        got = evaluate(Call(name, arguments, kind), table)
    assert got.to_pylist() == map_values(name, [column], kind).to_pylist()


@given(st.lists(st.none() | st.sampled_from(["", "a/b/c", "ü/x", "//"]), min_size=64, max_size=90))
def test_parts_of_texts(values: list[str | None]) -> None:
    table = pa.table({"t": pa.array(values, pa.string())})
    call = Call("split_part", (Column("t", STRING), Literal("/", STRING), Literal(2, INT)), STRING)
    want = [None if v is None else [*v.split("/"), "", ""][1] for v in values]
    assert evaluate(call, table).to_pylist() == want


@given(
    st.lists(st.none() | moments, min_size=0, max_size=20),
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(-30, 30),
)
def test_windows_of_a_time(
    values: list[datetime.datetime | None], size: int, slide: int, offset: int
) -> None:
    second = 1_000_000
    slide = min(slide, size)
    table = pa.table({"at": pa.array(values, TIMESTAMP)})
    numbers = [Literal(n * second, BIGINT) for n in (size, slide, offset)]
    call = Call("window_starts", (Column("at", TIMESTAMP), *numbers), pa.list_(TIMESTAMP))
    got = evaluate(call, table)
    assert got.type == pa.list_(TIMESTAMP)
    for value, starts in zip(values, got.to_pylist(), strict=True):
        if value is None:
            assert starts is None
            continue
        begins = [round(s.timestamp()) for s in starts]
        assert begins == sorted(begins, reverse=True)
        assert all((begin - offset) % slide == 0 for begin in begins)
        inside = [s <= value < s + datetime.timedelta(seconds=size) for s in starts]
        assert all(inside)
        before, after = starts[-1], starts[0]
        step = datetime.timedelta(seconds=slide)
        assert after + step > value
        assert before - step + datetime.timedelta(seconds=size) <= value
    one = Call("window_start", (Column("at", TIMESTAMP), numbers[0]), TIMESTAMP)
    for value, start in zip(values, evaluate(one, table).to_pylist(), strict=True):
        if value is None:
            assert start is None
        else:
            assert start <= value < start + datetime.timedelta(seconds=size)
            assert round(start.timestamp()) % size == 0
