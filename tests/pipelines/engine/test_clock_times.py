"""Times of day: read, written, as keys, in the changelog and against the clock."""

from __future__ import annotations

import datetime

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.errors import NotIncrementalError, SqlTypeError
from tailrace.pipelines.streams.inputs import stream_type
from tailrace.pipelines.values.clock_times import format_time, parse_time, short_time, time_of
from tailrace.pipelines.values.columns import DELETED
from tailrace.pipelines.values.keys import decode_key, encode_keys
from tailrace.pipelines.values.rows import physical, to_array
from tailrace.pipelines.values.shards import shards_of
from tailrace.pipelines.values.types import TIME, TIMES, ddl, parse_type
from tailrace.records.rows import read_objects
from tailrace.sinks.sql import DUCKDB_TYPES, MYSQL_TYPES, POSTGRES_TYPES, SQLITE_TYPES, sql_type
from tailrace.testing.ticks import MemoryTables, table

KNOWN = table("t", "id BIGINT, at TIMESTAMP_NTZ, s STRING", ["id"])
KINDS = list(TIMES.values())


def memory(sql: str, **settings: str) -> MemoryTables:
    return MemoryTables(compile_views([ViewDefinition("v", sql, **settings)], [KNOWN]))  # type: ignore[arg-type]


@given(st.times())
def test_what_is_written_is_read_again(value: datetime.time) -> None:
    text = short_time(value)
    micros = parse_time(text)
    assert format_time(micros) == text
    assert time_of(micros, TIME) == value
    assert datetime.time.fromisoformat(text) == value


@given(st.lists(st.none() | st.times(), max_size=30), st.sampled_from(KINDS))
def test_a_column_survives_state_keys_and_json(
    values: list[datetime.time | None], kind: pa.DataType
) -> None:
    cut = [None if v is None else time_of(parse_time(short_time(v)), kind) for v in values]
    column = pa.array(cut, kind)
    assert to_array(physical(column), kind).equals(column)
    rows = pa.table({"a": column})
    keys = encode_keys(rows, ["a"])
    assert [decode_key(key, [kind]) for key in keys] == [(value,) for value in physical(column)]
    known = sorted((key, value) for key, value in zip(keys, cut, strict=True) if value is not None)
    assert [value for _, value in known] == sorted(value for value in cut if value is not None)
    texts = [None if value is None else short_time(value) for value in cut]
    lines = [orjson.dumps({"a": text}) for text in texts]
    read, refused = read_objects(lines, pa.schema([("a", kind)]))
    assert not refused
    assert read.column("a").to_pylist() == cut


def test_a_row_that_is_no_time_is_refused_by_itself() -> None:
    lines = [b'{"a":"12:00:00.5"}', b'{"a":"noon"}', b'{"a":null}']
    read, refused = read_objects(lines, pa.schema([("a", TIME)]))
    assert read.column("a").to_pylist() == [datetime.time(12, 0, 0, 500000), None]
    assert [row.index for row in refused] == [1]


def test_the_shard_of_a_time_is_that_of_its_nanoseconds() -> None:
    seconds = list(range(0, 86_400, 617))
    nanos = pa.table({"a": pa.array([second * 10**9 for second in seconds], pa.int64())})
    expected = shards_of(nanos, ["a"], 97).tolist()
    for kind in KINDS:
        unit = {"s": 1, "ms": 1_000, "us": 1_000_000}[kind.unit]
        column = to_array([second * unit for second in seconds], kind)
        assert shards_of(pa.table({"a": column}), ["a"], 97).tolist() == expected


def test_the_changelog_shows_times_as_spark_does() -> None:
    tables = memory("SELECT id, CAST(at AS TIME) AS a, array(CAST(at AS TIME(3))) AS b FROM t")
    plan = tables.graph.views["v"]
    moment = datetime.time(1, 2, 3, 500000)
    upserts = pa.table(
        {
            "id": pa.array([1, 2]),
            "a": pa.array([moment, None], TIME),
            "b": pa.array([[moment, None], None], pa.list_(TIMES[3])),
            DELETED: pa.array([False, False]),
        }
    )
    values = [orjson.loads(value or b"null")["row"] for _, value in record_pairs(plan, upserts)]
    assert values[0] == {"id": 1, "a": "01:02:03.5", "b": ["01:02:03.5", None]}
    assert values[1] == {"id": 2, "a": None, "b": None}
    assert dict(plan.columns) == {"id": "BIGINT", "a": "TIME(6)", "b": "ARRAY<TIME(3)>"}


def test_a_time_may_be_the_key_of_a_view_and_of_a_view_on_it() -> None:
    first = "SELECT CAST(at AS TIME(0)) AS k, count(*) AS c FROM t GROUP BY CAST(at AS TIME(0))"
    views = [ViewDefinition("v", first), ViewDefinition("w", "SELECT k, c * 2 AS d FROM v")]
    tables = MemoryTables(compile_views(views, [KNOWN]))
    for id, second in ((1, 5), (2, 5), (3, 6)):
        at = datetime.datetime(2026, 1, id, 12, 0, second, id)
        tables.upsert("t", {"id": id, "at": at, "s": ""})
    tables.tick()
    tables.delete("t", {"id": 3})
    tables.tick()
    noon = datetime.time(12, 0, 5)
    assert [(row["k"], row["d"]) for row in tables.rows("w")] == [(noon, 4)]
    assert tables.graph.views["w"].key == ("k",)


def test_a_sink_takes_a_time_as_text() -> None:
    assert sql_type("TIME(6)", POSTGRES_TYPES) == "text"
    assert sql_type("TIME(3)", MYSQL_TYPES) == "LONGTEXT"
    assert sql_type("TIME(0)", SQLITE_TYPES) == "TEXT"
    assert sql_type("TIME(0)", DUCKDB_TYPES) == "VARCHAR"


def test_a_stream_over_a_view_gets_text() -> None:
    asked = "STRUCT<a: TIME(0), b: ARRAY<TIME(6)>, c: TIMESTAMP, TIME: INT>"
    assert stream_type(asked) == "STRUCT<a: STRING, b: ARRAY<STRING>, c: TIMESTAMP, TIME: INT>"
    line = b'{"a":"12:34:56.5","b":["01:00:00"]}'
    kinds = [("a", stream_type("TIME(6)")), ("b", stream_type("ARRAY<TIME(3)>"))]
    read, refused = read_objects([line], pa.schema([(n, parse_type(k)) for n, k in kinds]))
    assert not refused
    assert read.to_pylist() == [{"a": "12:34:56.5", "b": ["01:00:00"]}]


def test_words_of_the_type() -> None:
    assert [ddl(parse_type(f"time({digits})")) for digits in (0, 3, 6)] == [
        "TIME(0)", "TIME(3)", "TIME(6)",
    ]  # fmt: skip
    assert parse_type("TIME") == TIME


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("CAST(at AS TIME(2))", r"TIME\(0\), TIME\(3\) and TIME\(6\) are"),
        ("CAST(CAST(at AS TIME) AS TIMESTAMP)", "depends on the day"),
        ("date_trunc('HOUR', CAST(at AS TIME))", "depends on the day"),
        ("current_time(9)", "0, 3 or 6 digits"),
        ("time_diff('DAY', TIME'01:00', TIME'02:00')", "DAY"),
    ],
)
def test_what_a_time_is_not_is_said_at_its_place(expression: str, said: str) -> None:
    with pytest.raises(SqlTypeError, match=said) as caught:
        memory(f"SELECT id, {expression} AS x FROM t")
    assert "^" in caught.value.detail


def test_nanoseconds_are_refused() -> None:
    with pytest.raises(NotIncrementalError, match="nanoseconds"):
        memory("SELECT id, TIME'12:00:00.123456789' AS x FROM t")


@pytest.mark.parametrize("word", ["current_time", "current_time()", "localtime", "localtime(6)"])
def test_the_time_of_day_is_computed_again_in_every_tick(word: str) -> None:
    tables = memory(f"SELECT id, {word} AS x, hour({word}) AS h FROM t")
    tables.upsert("t", {"id": 1, "at": None, "s": ""})
    tables.now_ms = 3_661_500
    tables.tick()
    assert [(r["x"], r["h"]) for r in tables.rows("v")] == [(datetime.time(1, 1, 1, 500000), 1)]
    tables.now_ms += 3_600_000
    tables.tick()
    assert [r["h"] for r in tables.rows("v")] == [2]
    with pytest.raises(NotIncrementalError, match="the clock"):
        memory(f"SELECT id, {word} AS x FROM t", policy="strict")


def test_a_column_of_that_name_is_the_column() -> None:
    known = table("t", "id BIGINT, localtime STRING", ["id"])
    tables = MemoryTables(compile_views([ViewDefinition("v", "SELECT localtime FROM t")], [known]))
    tables.upsert("t", {"id": 1, "localtime": "x"})
    tables.tick()
    assert [row["localtime"] for row in tables.rows("v")] == ["x"]


def test_a_filter_by_the_time_of_day_is_no_filter_of_moments() -> None:
    with pytest.raises(NotIncrementalError):
        memory("SELECT id FROM t WHERE CAST(at AS TIME) < current_time()", policy="strict")
    tables = memory("SELECT id FROM t WHERE CAST(at AS TIME) < current_time()")
    tables.upsert("t", {"id": 1, "at": datetime.datetime(2026, 1, 1, 12), "s": ""})
    tables.now_ms = 11 * 3_600_000
    tables.tick()
    assert not list(tables.rows("v"))
    tables.now_ms = 13 * 3_600_000
    tables.tick()
    assert [row["id"] for row in tables.rows("v")] == [1]
