"""Records of a changelog, written for all rows at once, are those of each row by itself."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.engine import changelog
from tailrace.pipelines.engine.changelog import json_values, record_pairs
from tailrace.pipelines.engine.graph import ViewPlan
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.columns import DELETED

wholes = st.integers(-(2**63), 2**63 - 1)
near = st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2030, 1, 1))
seconds = near.map(lambda moment: moment.replace(microsecond=0))
halves = near.map(lambda moment: moment.replace(microsecond=500_000))
moments = near | seconds | halves | st.datetimes()


def decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    most = 10**precision - 1
    numbers = st.integers(-most, most) | st.integers(-min(most, 10**6), min(most, 10**6))
    context = decimal.Context(prec=76)
    return numbers.map(lambda number: decimal.Decimal(number).scaleb(-scale, context))


KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): wholes,
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=12) | st.sampled_from(['"', "\\", "a\nb", "\x00", "\x7f", "ü€"]),
    pa.binary(): st.binary(max_size=8),
    pa.float64(): st.floats() | st.sampled_from([0.1, 1e22, 5e-324, -0.0]),
    pa.float32(): st.floats(width=32),
    pa.date32(): st.dates(),
    pa.timestamp("us"): moments,
    pa.timestamp("us", tz="UTC"): moments.map(lambda moment: moment.replace(tzinfo=datetime.UTC)),
    pa.decimal128(10, 2): decimals(10, 2),
    pa.decimal128(18, 0): decimals(18, 0),
    pa.decimal128(24, 3): decimals(24, 3),
    pa.decimal128(38, 38): decimals(38, 38),
    pa.list_(pa.int64()): st.lists(wholes, max_size=3),
    pa.struct([("x", pa.date32())]): st.fixed_dictionaries({"x": st.none() | st.dates()}),
}


@st.composite
def upserts(draw: st.DrawFn) -> tuple[ViewPlan, pa.Table]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5))
    count = draw(st.integers(1, 12))
    columns = {
        f'c"{i}': pa.array(
            draw(st.lists(st.none() | KINDS[kind], min_size=count, max_size=count)), kind
        )
        for i, kind in enumerate(kinds)
    }
    names = tuple(columns)
    key = tuple(draw(st.permutations(names)))[: draw(st.integers(0, len(names)))]
    deleted = pa.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), pa.bool_())
    table = pa.table({**columns, DELETED: deleted})
    cut = draw(st.integers(0, count - 1))
    plan = ViewPlan("v", "n", key, tuple((name, "STRING") for name in names), "")
    return plan, pa.concat_tables([table.slice(cut), table.slice(0, cut)])


def one_by_one(plan: ViewPlan, table: pa.Table) -> list[tuple[bytes, bytes | None]]:
    names = [name for name, _ in plan.columns]
    found: list[tuple[bytes, bytes | None]] = []
    columns = [json_values(table.column(name)) for name in names]
    for row, gone in zip(zip(*columns, strict=True), table[DELETED].to_pylist(), strict=True):
        known = dict(zip(names, row, strict=True))
        key = orjson.dumps({name: known[name] for name in plan.key})
        found.append((key, None if gone else orjson.dumps({"row": known})))
    return found


@given(upserts(), st.integers(1, 5))
def test_all_rows_at_once_are_written_as_each_by_itself(
    given_: tuple[ViewPlan, pa.Table], most: int
) -> None:
    plan, table = given_
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changelog, "_PIECE_ROWS", most)
        got = record_pairs(plan, table)
    assert got == one_by_one(plan, table)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), 2_932_897),
        (pa.timestamp("us", tz="UTC"), 253_402_300_800_000_000),
        (pa.timestamp("us"), -62_135_596_800_000_001),
        (pa.list_(pa.date32()), [2_932_897]),
    ],
)
def test_a_date_that_no_reader_has_is_an_error_that_says_so(kind: pa.DataType, value: Any) -> None:
    plain = {pa.date32(): pa.int32(), pa.list_(pa.date32()): pa.list_(pa.int32())}
    column = pa.array([value], plain.get(kind, pa.int64())).cast(kind)
    with pytest.raises(EvaluationError, match="outside the years 1 to 9999"):
        json_values(pa.chunked_array([column]))
