"""Keys and rows as bytes: order, identity, no key a prefix of another."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.pipelines.values.keys import (
    KEY_LIMIT,
    bounded,
    decodable,
    decode_key,
    encode_keys,
    encode_order,
    encode_part,
)
from tailrace.pipelines.values.rows import (
    Row,
    changes,
    combined,
    consolidate,
    decode_row,
    encode_row,
    physical,
    to_rows,
    weighted,
    weights,
)

MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
VALUES = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=6) | st.sampled_from(["", "\x00", "a", "a\x00", "a\x00b"]),
    pa.binary(): st.binary(max_size=6),
    pa.bool_(): st.booleans(),
    pa.decimal128(10, 2): st.decimals(-(10**7), 10**7, places=2),
    pa.decimal128(38, 4): st.decimals(-(10**30), 10**30, places=4),
    pa.date32(): st.dates(),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", tz="UTC"): MOMENTS.map(lambda m: m.replace(tzinfo=datetime.UTC)),
}
COLUMNS = st.sampled_from(list(VALUES)).flatmap(
    lambda kind: st.tuples(
        st.just(kind), st.lists(VALUES[kind] | st.none(), min_size=1, max_size=20)
    )
)


def encoded(kind: pa.DataType, values: list[object]) -> list[bytes]:
    return encode_keys(pa.table({"x": pa.array(values, kind)}), ["x"])


def ordered(value: object) -> tuple[bool, object]:
    return (value is not None, value if value is not None else 0)


@given(COLUMNS, COLUMNS)
def test_keys_are_read_back_unless_they_were_cut(first, second) -> None:
    kinds = [first[0], second[0]]
    assert decodable(kinds)
    count = min(len(first[1]), len(second[1]))
    columns = {name: pa.array(values[:count], kind) for name, (kind, values) in zip("xy", (first, second), strict=True)}  # fmt: skip
    table = pa.table(columns)
    for key, row in zip(encode_keys(table, ["x", "y"]), to_rows(table, ["x", "y"]), strict=True):
        assert decode_key(key, kinds) == row
    long = encode_keys(pa.table({"x": ["a" * KEY_LIMIT]}), ["x"])[0]
    assert decode_key(long, [pa.string()]) is None


LISTS = st.sampled_from([kind for kind in VALUES if kind != pa.float64()]).flatmap(
    lambda kind: st.tuples(
        st.just(pa.list_(kind)),
        st.lists(st.lists(VALUES[kind] | st.none(), max_size=4) | st.none(), min_size=1, max_size=12),
    )
)  # fmt: skip


@given(LISTS, st.booleans())
def test_lists_are_ordered_element_by_element(column, descending) -> None:
    kind, values = column

    def by_value(value):
        return (value is not None, [ordered_in_list(element) for element in value or ()])

    keys = encoded(kind, values)
    if descending:
        keys = encode_order([physical(pa.array(values, kind))], [kind], [(True, False)])
    found = [values[index] for index in sorted(range(len(values)), key=keys.__getitem__)]
    assert found == sorted(values, key=by_value, reverse=descending)
    for key, value in zip(keys, values, strict=True):
        assert [other == value for other in values] == [other == key for other in keys]


def ordered_in_list(value: object) -> tuple[bool, object]:
    return (value is not None, *(() if value is None else (value,)))


@given(COLUMNS)
def test_keys_are_ordered_as_their_values_with_nulls_first(column) -> None:
    kind, values = column
    by_value = sorted(values, key=ordered)
    by_key = [
        value
        for _, value in sorted(zip(encoded(kind, values), values, strict=True), key=lambda p: p[0])
    ]
    assert [ordered(v) for v in by_key] == [ordered(v) for v in by_value]


@given(COLUMNS)
def test_no_key_is_a_prefix_of_another(column) -> None:
    kind, values = column
    keys = set(encoded(kind, values))
    assert not any(a != b and a.startswith(b) for a in keys for b in keys)


@given(COLUMNS)
def test_descending_keys_with_nulls_last_are_the_reverse(column) -> None:
    kind, values = column
    physical = [row[0] for row in to_rows(pa.table({"x": pa.array(values, kind)}))]
    up = encode_order([physical], [kind], [(False, True)])
    down = encode_order([physical], [kind], [(True, False)])
    ranked = sorted(range(len(values)), key=lambda i: up[i])
    assert [down[i] for i in ranked] == sorted(down, reverse=True)


@given(COLUMNS)
def test_rows_come_back_from_bytes_as_they_were(column) -> None:
    kind, values = column
    table = pa.table({"x": pa.array(values, kind)})
    rows = [decode_row(encode_row(row)) for row in to_rows(table)]
    back = changes(rows, [1] * len(rows), table.schema)
    assert back.column("x").to_pylist() == table.column("x").to_pylist()


def test_integers_of_every_width_have_one_key() -> None:
    assert encoded(pa.int8(), [7]) == encoded(pa.int32(), [7]) == encoded(pa.int64(), [7])


def test_both_zeros_and_all_nans_have_one_key() -> None:
    assert len(set(encoded(pa.float64(), [0.0, -0.0]))) == 1
    assert encode_part(math.nan, pa.float64()) > encode_part(math.inf, pa.float64())


def test_null_and_a_slice_of_decimals_survive() -> None:
    column = pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2))
    assert to_rows(pa.table({"x": column.slice(1)})) == [(None,), (-225,)]


def test_long_keys_are_cut_and_stay_different() -> None:
    one, other = bounded(b"x" * 1000 + b"1"), bounded(b"x" * 1000 + b"2")
    assert len(one) == len(other) == KEY_LIMIT
    assert one != other


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-2, 2)), max_size=20))
def test_consolidation_adds_up_equal_rows_and_drops_zeros(pairs) -> None:
    table = changes(
        [(value,) for value, _ in pairs], [w for _, w in pairs], pa.schema([("x", pa.string())])
    )
    totals: dict[object, int] = {}
    for value, weight in pairs:
        totals[value] = totals.get(value, 0) + weight
    after: dict[object, int] = {}
    small = consolidate(table)
    for (value,), weight in zip(to_rows(small), weights(small), strict=True):
        after[value] = after.get(value, 0) + weight
    assert after == {value: total for value, total in totals.items() if total}


MANY_KINDS = pa.schema(
    [("n", pa.int32()), ("d", pa.decimal128(10, 2)), ("s", pa.string()), ("b", pa.binary()),
     ("t", pa.timestamp("us", tz="UTC")), ("w", pa.decimal128(38, 2))]
)  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 1), st.none() | st.integers(0, 1),
            st.sampled_from(["", "a", None]), st.sampled_from([b"", b"a", None]),
            st.none() | st.integers(0, 1), st.none() | st.integers(10**30, 10**30 + 1),
            st.sampled_from([-1, 1, 2]),
        ),
        max_size=12,
    ),
    st.integers(1, 6),
)  # fmt: skip
def test_after_consolidation_every_row_stands_once(rows, width) -> None:
    schema = pa.schema(list(MANY_KINDS)[:width])
    table = changes([row[:width] for row in rows], [row[-1] for row in rows], schema)
    totals: dict[object, int] = {}
    for row in rows:
        totals[row[:width]] = totals.get(row[:width], 0) + row[-1]
    small = consolidate(table)
    found = list(zip(to_rows(small), weights(small), strict=True))
    if any(row[-1] < 0 for row in rows):
        assert len(dict(found)) == len(found)
        assert dict(found) == {row: total for row, total in totals.items() if total}
    else:
        assert small is table


@given(
    values=st.integers(1, 6000),
    count=st.sampled_from([9_999, 10_000, 25_000]),
    nulls=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=12, deadline=None)
def test_combining_loses_no_weight(values: int, count: int, nulls: bool, seed: int) -> None:
    chance = np.random.default_rng(seed)
    drawn = chance.integers(0, values, count)
    texts = pa.array([None if nulls and n % 7 == 0 else f"v{n}" for n in drawn], pa.string())
    table = pa.table(
        {"n": pa.array(drawn // 2), "t": texts, "__weight": pa.array(chance.integers(-1, 3, count))}
    )
    table = table.cast(weighted(pa.schema([("n", pa.int64()), ("t", pa.string())])))
    small = combined(table)
    assert small.schema == table.schema
    assert small.num_rows <= table.num_rows
    totals: list[dict[Row, int]] = [{}, {}]
    for found, rows in zip(totals, (table, small), strict=True):
        for row, weight in zip(to_rows(rows), weights(rows), strict=True):
            found[row] = found.get(row, 0) + weight
    assert {r: w for r, w in totals[0].items() if w} == {r: w for r, w in totals[1].items() if w}
    if values < 100 and count >= 10_000:
        assert small.num_rows <= 2 * values


def test_rows_that_differ_are_not_combined() -> None:
    schema = weighted(pa.schema([("n", pa.int64())]))
    table = pa.table([pa.array(range(20_000)), pa.array([1] * 20_000)], schema=schema)
    assert combined(table) is table
