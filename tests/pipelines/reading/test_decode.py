"""Change events as rows, and what cannot be read."""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.engine.execute import input_schema
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.reading.decode import decode, decode_whole
from tailrace.pipelines.reading.reader import Records
from tailrace.records.decode_columns import RecordColumns

SCHEMA = pa.schema(
    [("id", pa.int64()), ("amount", pa.decimal128(10, 2)), ("at", pa.timestamp("us", tz="UTC"))]
)


def event(op: str, after: object, before: object = None, ts_ms: int = 5) -> bytes:
    return orjson.dumps({"op": op, "before": before, "after": after, "source": {"ts_ms": ts_ms}})


def records(*pairs: tuple[bytes | None, bytes | None]) -> Records:
    count = len(pairs)
    return Records(
        "shop.public.orders", 5, list(range(10, 10 + count)), [k for k, _ in pairs],
        [v for _, v in pairs], [1_700_000_000_000] * count, [None] * count,
    )  # fmt: skip


ROW = {"id": 1, "amount": "12.50", "at": "2026-01-02T03:04:05.5Z"}


def test_a_table_takes_after_and_tombstones_in_order() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, ("id",))
    events = records((b"1", event("c", ROW)), (b"1", event("d", None)), (b"1", None), (b"2", event("r", ROW)))  # fmt: skip
    decoded = decode(table, events, 3)
    assert not decoded.dead
    assert decoded.rows.column("__deleted").to_pylist() == [False, True, True, False]
    assert decoded.rows.column("__shard").to_pylist() == [2] * 4
    assert str(decoded.rows.column("amount").to_pylist()[0]) == "12.50"
    assert decoded.rows.drop_columns(["__shard"]).schema == input_schema(table)


def test_what_does_not_fit_is_given_back_with_its_reason() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, ("id",))
    bad = event("c", {**ROW, "amount": "a lot"})
    decoded = decode(table, records((b"1", event("c", ROW)), (b"2", bad), (b"3", b"{"), (None, event("c", ROW)), (b"5", event("u", ROW))), 3)  # fmt: skip
    assert decoded.rows.column("__key").to_pylist() == [b"1", b"5"]
    assert [d.offset for d in decoded.dead] == [11, 12, 13]
    assert "a lot" in decoded.dead[0].reason
    assert "no key" in decoded.dead[2].reason


def test_what_is_nested_too_deeply_is_given_back_and_no_defect() -> None:
    """Deeper than the parsers go: nothing but this record fails."""
    table = TableInput("t", "clicks", pa.schema([("id", pa.int64()), ("x", pa.string())]), ("id",))
    deep = b'{"id":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    unclosed = b'{"id":1,"x":' + b'{"a":' * 100_000
    good = b'{"id":2,"x":"y"}'
    plain = Records(
        "clicks", 0, [0, 1, 2], [b"1", b"3", b"2"], [deep, unclosed, good], [5] * 3, [None] * 3
    )
    decoded = decode(table, plain, 3, envelope=False)
    assert [d.offset for d in decoded.dead] == [0, 1]
    assert "nested too deeply" in decoded.dead[0].reason
    assert decoded.rows.column("id").to_pylist() == [2]
    shop = TableInput("t", "shop.public.orders", SCHEMA, ("id",))
    change = b'{"op":"c","before":null,"after":{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    decoded = decode(shop, records((b"1", change), (b"1", event("c", ROW))), 3)
    assert [d.offset for d in decoded.dead] == [10]
    assert decoded.rows.num_rows == 1


def test_a_reason_has_a_length_that_can_be_read() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, ("id",))
    bad = event("c", {**ROW, "amount": "7" * 5000})
    (dead,) = decode(table, records((b"1", bad)), 3).dead
    assert len(dead.reason) <= 400
    assert "amount" in dead.reason
    assert "DECIMAL" in dead.reason.upper()
    assert dead.value == bad


def test_a_bag_counts_rows_and_a_truncate_empties_it() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, kind="bag")
    other = {**ROW, "id": 2}
    decoded = decode(table, records((None, event("c", ROW)), (None, event("u", other, ROW)), (None, event("t", None)), (None, event("d", None, other))), 3)  # fmt: skip
    assert decoded.rows.column("__weight").to_pylist() == [1, -1, 1, 0, -1]
    assert decoded.rows.column("id").to_pylist() == [1, 1, 2, None, 2]
    assert decoded.rows.column("__deleted").to_pylist() == [False, False, False, True, False]


def test_a_bag_takes_no_records_of_the_time_it_had_a_key() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, kind="bag")
    events = records((b"1", event("c", ROW)), (b"1", event("d", None)), (b"1", None), (None, event("t", None)), (None, event("r", ROW)))  # fmt: skip
    decoded = decode(table, events, 3)
    assert not decoded.dead
    assert decoded.rows.column("__weight").to_pylist() == [0, 1]


def test_a_change_that_does_not_say_which_row_is_no_change_of_a_bag() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, kind="bag")
    decoded = decode(table, records((None, event("u", ROW)), (None, event("d", None)), (None, event("c", ROW))), 3)  # fmt: skip
    assert decoded.rows.column("__weight").to_pylist() == [1]
    assert [dead.offset for dead in decoded.dead] == [10, 11]


def test_a_table_that_once_had_no_key_leaves_those_records_out() -> None:
    events = records((None, event("c", ROW)), (None, event("t", None)), (b"1", event("r", ROW)))
    for kind in ("table", "history"):
        table = TableInput("t", "shop.public.orders", SCHEMA, ("id",), kind, once_keyless=True)
        decoded = decode(table, events, 3)
        assert not decoded.dead
        assert decoded.rows.column("__key").to_pylist() == [b"1"]


def test_history_keeps_every_version_with_its_time() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, ("id",), "history")
    key = b'{"id":1}'
    decoded = decode(table, records((key, event("r", ROW, ts_ms=5)), (key, event("u", ROW, ts_ms=7)), (key, event("d", None, ts_ms=9)), (key, None), (b"1", event("d", None))), 3)  # fmt: skip
    assert [(dead.offset, dead.reason[:25]) for dead in decoded.dead] == [
        (14, "the key of a delete canno")
    ]
    assert decoded.rows.column("id").to_pylist() == [1, 1, 1]  # a delete says whose it is
    assert decoded.rows.column("amount").to_pylist()[2] is None
    assert decoded.rows.column("__versioned_at").cast(pa.int64()).to_pylist() == [5000, 7000, 9000]
    assert decoded.rows.column("__copied").to_pylist() == [True, False, False]
    assert decoded.rows.column("__deleted").to_pylist() == [False, False, True]
    assert decoded.rows.drop_columns(["__shard"]).schema == input_schema(table)


def test_a_plain_topic_with_a_key_is_a_table() -> None:
    table = TableInput("t", "prices", SCHEMA, ("id",))
    events = records((b"1", orjson.dumps(ROW)), (b"1", orjson.dumps({**ROW, "id": 7})), (b"2", None), (None, orjson.dumps(ROW)), (b"3", b"{"))  # fmt: skip
    decoded = decode(table, events, 3, envelope=False)
    assert decoded.rows.column("__key").to_pylist() == [b"1", b"1", b"2"]
    assert decoded.rows.column("id").to_pylist() == [1, 7, None]
    assert decoded.rows.column("__deleted").to_pylist() == [False, False, True]
    assert [d.offset for d in decoded.dead] == [14, 13]
    assert decoded.rows.drop_columns(["__shard"]).schema == input_schema(table)


def test_a_stream_takes_plain_rows_or_inserts() -> None:
    table = TableInput("t", "clicks", SCHEMA, kind="stream")
    plain = decode(table, records((None, orjson.dumps(ROW)), (None, None)), 2, envelope=False)
    assert plain.rows.column("id").to_pylist() == [1]
    inserts = decode(table, records((b"1", event("c", ROW)), (b"1", event("u", ROW))), 2)
    assert inserts.rows.column("id").to_pylist() == [1]


_VALUES = st.one_of(
    st.none(),
    st.sampled_from(
        [b"", b"{", b"null", b"5", b"[]", b'{"after":{"id":1}}\n{"after":null}', b" {}"]
    ),
    st.builds(
        event,
        st.sampled_from("cudr"),
        st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "id": st.none() | st.integers(-(2**63), 2**63 - 1) | st.just("7"),
                "amount": st.none() | st.sampled_from(["1.50", "-0.01", "a lot", 3]),
                "at": st.none() | st.just(ROW["at"]),
                "more": st.just({"x": [1]}),
            },
        ),
    ),
)


@given(
    kind=st.sampled_from(["table", "stream", "bag", "history"]),
    envelope=st.booleans(),
    pairs=st.lists(st.tuples(st.none() | st.sampled_from([b"1", b"2"]), _VALUES), max_size=6),
    first=st.integers(0, 2),
)
def test_records_decoded_at_once_are_those_decoded_one_by_one(
    kind: str, envelope: bool, pairs: list[tuple[bytes | None, bytes | None]], first: int
) -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, ("id",), kind=kind)
    if not envelope:  # the value is the row itself
        pairs = [(k, orjson.dumps(orjson.loads(v)["after"]) if v and v[:2] == b'{"' and v[-1:] == b"}" and b"\n" not in v else v) for k, v in pairs]  # fmt: skip
    part = records(*pairs[first:])
    columns = RecordColumns(
        np.array(part.offsets, "i8"), np.array(part.timestamps, "i8"),
        pa.array([k for k, _ in pairs], pa.binary())[first:],
        pa.array([v for _, v in pairs], pa.binary())[first:],
    )  # fmt: skip
    whole = decode_whole(table, columns, 5 % 3, envelope=envelope)
    event_kinds = kind in ("bag", "history")
    expected = decode(table, part, 3, envelope=envelope or event_kinds)
    if whole is None:
        return
    assert whole.rows.equals(expected.rows)
    assert whole.rows.schema == expected.rows.schema
    assert whole.dead == expected.dead == []
    assert (whole.indices is None) == (expected.indices is None)
    assert list(whole.indices or ()) == list(expected.indices or ())


def test_plain_records_are_decoded_at_once() -> None:
    value = orjson.dumps(ROW)
    columns = RecordColumns(np.arange(3), np.arange(3), pa.array([b"k"] * 3), pa.array([value] * 3))
    for kind in ("stream", "table"):
        table = TableInput("t", "topic", SCHEMA, ("id",), kind=kind)
        whole = decode_whole(table, columns, 0, envelope=False)
        assert whole is not None
        assert whole.rows["id"].to_pylist() == [1, 1, 1]


def test_objects_across_records_are_nobodys_rows() -> None:
    schema = pa.schema([("id", pa.int64())])
    table = TableInput("t", "clicks", schema, (), kind="stream")
    pieces = [b'{"id":1}{"id":2}', b'{"x":', b'{"id":3}}', b'{"id":4}\n']
    decoded = decode(table, records(*((None, piece) for piece in pieces)), 1, envelope=False)
    assert decoded.rows["id"].to_pylist() == [4]
    assert len(decoded.dead) == 3


def columns_of(values: list[bytes]) -> RecordColumns:
    count = len(values)
    keys = pa.nulls(count, pa.binary())
    return RecordColumns(np.arange(count), np.arange(count), keys, pa.array(values, pa.binary()))


def test_times_without_a_zone_are_utc_and_read_all_at_once() -> None:
    table = TableInput("t", "orders", SCHEMA, kind="stream")
    times = ["2026-01-02T03:04:05.5", "2026-01-02T03:04:05", "2026-01-02"]
    plain = [orjson.dumps({**ROW, "at": time}) for time in times]
    whole = decode_whole(table, columns_of(plain), 2, envelope=False)
    singly = decode(table, records(*((None, value) for value in plain)), 3, envelope=False)
    assert whole is not None
    assert whole.rows == singly.rows
    assert whole.rows["at"].to_pylist()[0].isoformat() == "2026-01-02T03:04:05.500000+00:00"
    mixed = [*plain, orjson.dumps(ROW)]
    assert decode_whole(table, columns_of(mixed), 2, envelope=False) is None
    assert not decode(table, records(*((None, v) for v in mixed)), 3, envelope=False).dead
