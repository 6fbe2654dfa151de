"""Change events as rows, and what cannot be read."""

from __future__ import annotations

import orjson
import pyarrow as pa

from tailrace.pipelines.decode import decode
from tailrace.pipelines.incremental.execute import input_schema
from tailrace.pipelines.incremental.graph import TableInput
from tailrace.pipelines.reader import Records

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
    given = records((b"1", event("c", ROW)), (b"1", event("d", None)), (b"1", None), (b"2", event("r", ROW)))  # fmt: skip
    decoded = decode(table, given, 3)
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


def test_a_bag_counts_rows_and_a_truncate_empties_it() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, kind="bag")
    other = {**ROW, "id": 2}
    decoded = decode(table, records((None, event("c", ROW)), (None, event("u", other, ROW)), (None, event("t", None)), (None, event("d", None, other))), 3)  # fmt: skip
    assert decoded.rows.column("__weight").to_pylist() == [1, -1, 1, 0, -1]
    assert decoded.rows.column("id").to_pylist() == [1, 1, 2, None, 2]
    assert decoded.rows.column("__deleted").to_pylist() == [False, False, False, True, False]


def test_history_keeps_every_version_with_its_time() -> None:
    table = TableInput("t", "shop.public.orders", SCHEMA, ("id",), "history")
    decoded = decode(table, records((b"1", event("r", ROW)), (b"1", event("u", ROW, ts_ms=7)), (b"1", event("d", None, ts_ms=9)), (b"1", None)), 3)  # fmt: skip
    assert decoded.rows.column("__versioned_at").cast(pa.int64()).to_pylist() == [-62_135_596_800_000_000, 7000, 9000]  # fmt: skip
    assert decoded.rows.column("__deleted").to_pylist() == [False, False, True]
    assert decoded.rows.drop_columns(["__shard"]).schema == input_schema(table)


def test_a_plain_topic_with_a_key_is_a_table() -> None:
    table = TableInput("t", "prices", SCHEMA, ("id",))
    given = records((b"1", orjson.dumps(ROW)), (b"1", orjson.dumps({**ROW, "id": 7})), (b"2", None), (None, orjson.dumps(ROW)), (b"3", b"{"))  # fmt: skip
    decoded = decode(table, given, 3, envelope=False)
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
