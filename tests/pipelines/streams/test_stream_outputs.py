"""What a declared stream can be made of: outputs, chains, keys, batches, tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    TimeType,
    VariantType,
)

import tailrace as tr
from pipelines.streams.stream_harness import Harness
from tailrace.pipelines.declare import Stream, Topic
from tailrace.pipelines.errors import (
    CheckpointError,
    DeclarationError,
    NotDeterministicError,
    UserFunctionError,
)
from tailrace.pipelines.reading.catalog import Catalog
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.streams.inputs import ViewColumns
from tailrace.pipelines.streams.queries import Streams, StreamSettings, columns_of
from tailrace.records.partitioner import partition_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
NOW = "available now"


@pytest.fixture
def harness(tailrace_broker: str, tmp_path: Path, spark: SparkSession) -> Harness:
    return Harness(tailrace_broker, tmp_path, spark)


def clicks_of(harness: Harness) -> Topic:
    return tr.topic(harness.name("clicks"), schema="user STRING, page STRING, n INT")


def test_several_outputs_a_chain_and_another_key(harness: Harness) -> None:
    clicks = clicks_of(harness)
    small = tr.topic(harness.name("small"))

    @tr.stream(
        clicks,
        name=harness.name("split"),
        key={harness.name("split"): "page", harness.name("small"): "user"},
        to=[small],
        trigger=NOW,
    )
    def split(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
        return frame.where("n >= 5"), frame.where("n < 5").select("user", "n")

    @tr.stream(split, clicks, name=harness.name("both"), key="page", output_mode="append", trigger=NOW)  # fmt: skip
    def both(large: DataFrame, every: DataFrame) -> DataFrame:
        return large.select("page", "n").union(every.select("page", "n"))

    rows = [{"user": f"u{n % 3}", "page": f"p{n % 4}", "n": n} for n in range(10)]
    harness.write(clicks.name, *rows, key="user")
    for _ in range(2):
        harness.run(split)
        harness.run(both)
    assert sorted(row["n"] for row in harness.read(split.name)) == [5, 6, 7, 8, 9]
    assert sorted(row["n"] for row in harness.read(small.name)) == [0, 1, 2, 3, 4]
    assert sorted(row["n"] for row in harness.read(both.name)) == sorted([*range(10), 5, 6, 7, 8, 9])  # fmt: skip
    with LogReader(harness.bootstrap) as reader:
        for records in read_all(reader, split.name):  # repartitioned: by page, not by user
            for key in records.keys:
                assert key is not None
                assert orjson.loads(key).keys() == {"page"}
                assert partition_for(key, 2) == records.partition
    # the same function in a plain test, and over a bounded range
    static = harness.spark.createDataFrame([("a", "p", 7), ("b", "p", 1)], "user STRING, page STRING, n INT")  # fmt: skip
    assert [frame.count() for frame in split(static)] == [1, 1]
    batch = harness.streams.batch(split, start="earliest", end="latest")
    assert {t: sorted(r["n"] for r in frame.collect()) for t, frame in batch.items()} == {
        split.name: [5, 6, 7, 8, 9],
        small.name: [0, 1, 2, 3, 4],
    }


@pytest.mark.thorough
def test_duplicates_are_dropped_and_a_stream_becomes_a_table(harness: Harness) -> None:
    pings = tr.topic(harness.name("pings"), schema="id STRING, at TIMESTAMP, n INT", metadata="record")  # fmt: skip

    @tr.stream(pings, name=harness.name("once"), trigger=NOW)
    def once(frame: DataFrame) -> DataFrame:
        unique = tr.frames.deduplicated(frame, "id", time="at", within="10 minutes")
        return unique.select("id", "at", "n", "record.offset")

    @tr.stream(pings, name=harness.name("last"), key="id", output_mode="update", trigger=NOW)
    def last(frame: DataFrame) -> DataFrame:
        return tr.frames.latest(frame, "id", order="record.offset").select("id", "n")

    at = "2026-01-02T03:04:{:02}Z"
    rows = [{"id": f"m{n % 4}", "at": at.format(n), "n": n} for n in range(12)]
    harness.write(pings.name, *rows[:6])
    harness.run(once)
    harness.write(pings.name, *rows[6:])
    harness.run(once)
    harness.run(last)
    expected = {f"m{n}": n for n in range(4)}
    assert {row["id"]: row["n"] for row in harness.read(once.name)} == expected
    assert len(harness.read(once.name)) == 4
    batch = harness.streams.batch(once)[once.name]
    assert {row["id"]: row["n"] for row in batch.collect()} == expected
    table = {row["id"]: row["n"] for row in harness.read(last.name)}
    assert table == {"m0": 8, "m1": 9, "m2": 10, "m3": 11}
    past = harness.streams.batch(last, end=orjson.dumps({pings.name: {"0": 6}}).decode())
    assert {r["id"]: r["n"] for r in past[last.name].collect()} == {"m0": 4, "m1": 5, "m2": 2, "m3": 3}  # fmt: skip


@pytest.mark.thorough
def test_a_view_is_a_stream_of_its_changes(harness: Harness) -> None:
    view = tr.view(harness.name("per_country"), "SELECT country, count(*) AS n FROM x GROUP BY country")  # fmt: skip

    @tr.stream(view, name=harness.name("gone"), trigger=NOW)
    def gone(frame: DataFrame) -> DataFrame:
        return frame.where("op = 'd'").select("key.country")

    harness.write(view.name, b'{"row":{"country":"NL","n":1}}')
    with pytest.raises(Exception, match="has not ticked yet"):
        harness.run(gone)
    known = {view.name: ViewColumns(view.name, ("country",), (("country", "STRING"), ("n", "BIGINT")))}  # fmt: skip
    settings = StreamSettings(harness.bootstrap, harness.directory, views=known)
    harness.streams = Streams(harness.spark, Catalog({}, {}), settings)
    from tailrace.client.writer import TransactionalWriter

    with TransactionalWriter(harness.bootstrap, "t") as writer:
        writer.init()
        writer.send(view.name, None, b'{"country":"FR"}', None)
        writer.commit()
    harness.run(gone)
    assert harness.read(gone.name) == [{"country": "FR"}]


def test_what_cannot_be_written_the_same_twice_is_refused(harness: Harness) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    clicks = clicks_of(harness)

    @tr.stream(clicks, name=harness.name("dice"), trigger=NOW)
    def dice(frame: DataFrame) -> DataFrame:
        return frame.withColumn("chance", F.rand())

    with pytest.raises(NotDeterministicError) as caught:
        harness.streams.start(dice)
    assert f"{__file__}:{dice.function.__code__.co_firstlineno}" in caught.value.detail

    @tr.stream(clicks, name=harness.name("keyless"), key="nothing", trigger=NOW)
    def keyless(frame: DataFrame) -> DataFrame:
        return frame

    with pytest.raises(DeclarationError, match="no column nothing"):
        harness.streams.start(keyless)

    @tr.stream(clicks, name=harness.name("three"), to=[tr.topic("a")], trigger=NOW)
    def three(frame: DataFrame) -> list[DataFrame]:
        return [frame, frame, frame]

    with pytest.raises(UserFunctionError, match="3 DataFrames for 1 topics"):
        harness.streams.start(three)

    @tr.stream(clicks, name=harness.name("number"), trigger=NOW)
    def number(frame: DataFrame) -> int:
        return 7

    with pytest.raises(UserFunctionError, match="gave int"):
        harness.streams.start(number)


@pytest.mark.thorough
def test_raw_records_are_copied_with_key_and_headers(harness: Harness) -> None:
    from tailrace.client.writer import TransactionalWriter

    raw = tr.topic(harness.name("raw"), format="raw")

    @tr.stream(raw, name=harness.name("copy"), format="raw", trigger=NOW)
    def copy(frame: DataFrame) -> DataFrame:
        return frame.select("key", "value", "headers")

    with TransactionalWriter(harness.bootstrap, "t") as writer:
        writer.init()
        writer.send(raw.name, 0, b"k", b"\x00\xff", (("trace", b"1"), ("none", None)))
        writer.send(raw.name, 0, None, None)
        writer.commit()
    harness.run(copy)
    with LogReader(harness.bootstrap) as reader:
        found = [
            (key, value, tuple(headers or ()))
            for records in read_all(reader, copy.name)
            for key, value, headers in zip(records.keys, records.values, records.headers, strict=True)
        ]  # fmt: skip
    assert sorted(found, key=str) == sorted(
        [(b"k", b"\x00\xff", (("trace", b"1"), ("none", None))), (None, None, ())], key=str
    )


@pytest.mark.thorough
def test_a_checkpoint_of_another_pipeline_is_refused(harness: Harness) -> None:
    clicks = clicks_of(harness)

    def declared(name: str, topic: Topic) -> Stream:
        @tr.stream(topic, name=harness.name(name), trigger=NOW)
        def plain(frame: DataFrame) -> DataFrame:
            return frame.select("n")

        return plain

    harness.write(clicks.name, {"user": "a", "page": "p", "n": 1})
    first, second = declared("first", clicks), declared("second", clicks)
    harness.run(first)
    harness.run(second)
    root = harness.directory
    (root / second.name).rename(root / "kept")
    (root / first.name).rename(root / second.name)
    with pytest.raises(CheckpointError, match="is that of"):
        harness.streams.start(second)
    (root / second.name / "stream.json").unlink()
    with pytest.raises(CheckpointError, match="nobody says"):
        harness.streams.start(second)
    (root / "kept" / "stream.json").rename(root / second.name / "stream.json")
    with pytest.raises(CheckpointError, match="not the one it wrote"):
        harness.streams.start(second)
    other = declared("second", tr.topic(harness.name("others"), schema="n INT"))
    with pytest.raises(CheckpointError, match="other topics"):
        harness.streams.start(other)
    # lost altogether: its output is there, so it must not begin anew unasked
    with pytest.raises(Exception, match="belongs to another checkpoint"):
        harness.run(first)
    harness.streams.reset(first)
    harness.run(first)
    assert harness.read(first.name) == [{"n": 1}, {"n": 1}]


def test_columns_are_described_in_words_that_readers_of_the_topic_know() -> None:
    schema = StructType(
        [
            StructField("id", IntegerType()),
            StructField("small", ShortType()),
            StructField("price", DecimalType(10, 2)),
            StructField("at", TimestampType()),
            StructField("day", DateType()),
            StructField("tags", ArrayType(StringType())),
            StructField("who", StructType([StructField("name", StringType())])),
            StructField("odd", StructType([StructField("a name", StringType())])),
            StructField("took", DayTimeIntervalType()),
            StructField("clock", TimeType(6)),
            StructField("any", VariantType()),
            StructField("nothing", NullType()),
        ]
    )
    assert columns_of(schema) == (
        ("id", "INT"), ("small", "SMALLINT"), ("price", "DECIMAL(10,2)"), ("at", "TIMESTAMP"),
        ("day", "DATE"), ("tags", "ARRAY<STRING>"), ("who", "STRUCT<name: STRING>"),
        ("clock", "TIME(6)"),
    )  # fmt: skip
