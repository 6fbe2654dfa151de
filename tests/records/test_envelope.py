"""The change envelope: what is written is read back, and Debezium's is understood."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.records.envelope import (
    TableFrame,
    TransactionFrame,
    read_change,
)
from tailrace.records.errors import EnvelopeError

TABLE = TableFrame.of(
    version="1", connector="postgresql", source="shop", db="shop", schema="public",
    table='or"ders', schema_version=3,
)  # fmt: skip
ROWS = st.none() | st.dictionaries(
    st.text(max_size=5), st.none() | st.integers(-(2**53), 2**53) | st.text()
)


@given(
    st.sampled_from("cudr"), ROWS, ROWS, st.integers(0, 2**63 - 1), st.integers(1, 10**9),
    st.lists(st.text(min_size=1), max_size=2),
)  # fmt: skip
def test_a_spliced_event_is_read_back(
    op: str,
    before: dict[str, object],
    after: dict[str, object],
    lsn: int,
    order: int,
    missing: list[str],
) -> None:
    frame = TransactionFrame.of(
        TABLE, epoch=2, commit=77, xid=5, committed_ms=1_700_000_000_000, now_ms=1_700_000_000_001
    )
    value = frame.event(op, orjson.dumps(before), orjson.dumps(after), lsn, order, 9, missing)
    document = orjson.loads(value)
    assert document["source"]["lsn"] == lsn
    assert document["source"]["sequence"] == f'["77","{lsn}"]'
    assert document["transaction"] == {
        "id": "5:77",
        "total_order": order,
        "data_collection_order": 9,
    }
    change = read_change(b'{"id":1}', value)
    assert change is not None
    assert (change.before, change.after, change.key) == (before, after, {"id": 1})
    assert (change.commit, change.ordinal, change.table) == (77, order, 'or"ders')
    assert change.idempotency_key == f"2-77-{order}"
    assert change.missing == tuple(missing)
    assert change.schema_version == 3


def test_a_tombstone_is_no_change() -> None:
    assert read_change(b'{"id":1}', None) is None


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"op":"x"}', b"not json"])
def test_anything_else_is_refused(value: bytes) -> None:
    with pytest.raises(EnvelopeError):
        read_change(None, value)


def test_debezium_with_its_schema_is_read_by_it() -> None:
    fields = [
        {"field": "id", "type": "int32"},
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "doc", "type": "string", "name": "io.debezium.data.Json"},
        {"field": "any", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []},
    ]  # fmt: skip
    row = {
        "id": 1, "price": "MDk=", "day": 19311, "at": 1_668_500_000_123_456,
        "doc": '{"a": 1}', "any": {"scale": 3, "value": "AeJA"},
    }  # fmt: skip
    value = {
        "schema": {"fields": [{"field": "before", "fields": fields}, {"field": "after", "fields": fields}]},
        "payload": {
            "before": None, "after": row, "op": "c", "ts_ms": 5,
            "source": {"name": "shop", "schema": "public", "table": "orders", "lsn": 9, "ts_ms": 4},
            "transaction": {"id": "1:9", "total_order": 1, "data_collection_order": 1},
        },
    }  # fmt: skip
    key = {"schema": {}, "payload": {"id": 1}}
    change = read_change(orjson.dumps(key), orjson.dumps(value))
    assert change is not None
    assert change.op == "insert"
    assert change.key == {"id": 1}
    assert change.after == {
        "id": 1, "price": "123.45", "day": "2022-11-15", "at": "2022-11-15T08:13:20.123456",
        "doc": {"a": 1}, "any": "123.456",
    }  # fmt: skip
    assert (change.commit, change.ordinal, change.transaction) == (9, 1, "1:9")


def test_debezium_without_its_schema_is_read_as_it_stands() -> None:
    value = {
        "before": {"id": 1},
        "after": None,
        "op": "d",
        "source": {"name": "s", "db": "d", "table": "t"},
    }
    change = read_change(b'{"id":1}', orjson.dumps(value))
    assert change is not None
    assert (change.op, change.before, change.schema) == ("delete", {"id": 1}, "d")
