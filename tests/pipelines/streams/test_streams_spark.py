"""Plain streams on Spark: the data source, the exactly-once writer, the user's errors."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import tailrace as tr
from pipelines.shop import CUSTOMERS, ORDERS, traffic
from pipelines.streams.stream_harness import run_to_end
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.errors import StreamChangedError, UserFunctionError
from tailrace.pipelines.reading.catalog import Catalog, read_catalog
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.streams.queries import Streams, StreamSettings
from tailrace.pipelines.streams.writer import Marker, Outgoing, write_slot
from tailrace.records.stream_columns import COLUMNS_TOPIC, decode_versions
from tailrace.testing.feed import ChangeFeed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def write(bootstrap: str, topic: str, rows: list[dict[str, Any]], *, commit: bool = True) -> None:
    with TransactionalWriter(bootstrap, f"test.{topic}") as writer:
        writer.init()
        for row in rows:
            writer.send(topic, None, orjson.dumps(row.get("user")), orjson.dumps(row))
        writer.flush()
        if commit:
            writer.commit()
        else:
            writer.abort()


def read(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    with LogReader(bootstrap) as reader:
        return [
            orjson.loads(value)
            for records in read_all(reader, topic)
            for value in records.values
            if value is not None
        ]


def test_the_data_source_reads_committed_records_of_a_range(
    log_address: str, spark: SparkSession
) -> None:
    topic = f"clicks{uuid.uuid4().hex[:6]}"
    write(log_address, topic, [{"user": f"u{i % 5}", "n": i} for i in range(100)])
    write(log_address, topic, [{"user": "x", "n": -1}] * 10, commit=False)
    write(log_address, topic, [{"user": f"u{i % 5}", "n": i} for i in range(100, 150)])
    reader = spark.read.format("tailrace").option("bootstrap", log_address)
    raw = reader.option("topics", topic).load().toArrow()
    assert raw.column_names == ["key", "value", "headers", "topic", "partition", "offset", "timestamp"]  # fmt: skip
    assert sorted(orjson.loads(v)["n"] for v in raw["value"].to_pylist()) == list(range(150))
    typed = (
        reader.option("pattern", f"{topic[:-1]}.*")
        .option("form", "json")
        .option("columns", '[["user","string"],["n","int"]]')
        .load()
    )
    assert {row["user"]: row["s"] for row in typed.groupBy("user").sum("n").toDF("user", "s").collect()} == {
        f"u{k}": sum(i for i in range(150) if i % 5 == k) for k in range(5)
    }  # fmt: skip


def test_a_stream_writes_exactly_once_and_goes_on(
    log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"counts{uuid.uuid4().hex[:6]}"
    clicks = tr.topic(f"{name}_in", schema="user STRING, n INT")

    @tr.stream(clicks, name=name, key="user", output_mode="update", trigger="available now")
    def counts(frame: DataFrame) -> DataFrame:
        return frame.groupBy("user").count()

    streams = Streams(spark, Catalog({}, {}), StreamSettings(log_address, tmp_path))
    for part in range(3):
        write(log_address, clicks.name, [{"user": f"u{i % 3}", "n": i} for i in range(30)])
        run_to_end(streams, counts)
        last = {row["user"]: row["count"] for row in read(log_address, name)}
        assert last == {f"u{k}": 10 * (part + 1) for k in range(3)}
    assert len(read(log_address, name)) == 9
    with LogReader(log_address) as reader:
        described = reader.last_value(COLUMNS_TOPIC, 0, name.encode())
    assert decode_versions(described) == [(("user", "STRING"), ("count", "BIGINT"))]
    batch = streams.batch(counts)[name]
    assert {row["user"]: row["count"] for row in batch.collect()} == last


def test_a_repeated_batch_is_written_once_and_a_changed_one_refused(log_address: str) -> None:
    options = {"bootstrap": log_address, "stream": f"s{uuid.uuid4().hex[:6]}"}
    options["topic"] = options["stream"]
    rows = [Outgoing.of([b"k", b"k2"], [b'{"n":1}', b'{"n":2}'])]
    assert write_slot(options, 0, Marker("q", 0, "a"), rows)
    assert not write_slot(options, 0, Marker("q", 0, "a"), rows)
    assert write_slot(options, 1, Marker("q", 0, "b"), rows)
    with pytest.raises(StreamChangedError, match="other rows"):
        write_slot(options, 0, Marker("q", 0, "z"), rows)
    with pytest.raises(StreamChangedError, match="another checkpoint"):
        write_slot(options, 0, Marker("lost and begun anew", 0, "a"), rows)
    assert write_slot(options, 0, Marker("q", 1, "a"), rows)
    assert len(read(log_address, options["topic"])) == 6


def test_inserts_of_a_table_are_typed_rows(
    log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    from tailrace.sources.declare import TableRef

    source = f"shop{uuid.uuid4().hex[:6]}"
    orders = TableRef(source, "public", "orders", "90 days")

    @tr.stream(orders.inserts(snapshot=True), name=f"{source}_big", trigger="available now")
    def big(frame: DataFrame) -> DataFrame:
        return frame.where("amount > 500.00").select("id", "amount", "status")

    with ChangeFeed(log_address, source, [ORDERS, CUSTOMERS]) as feed, LogReader(log_address) as reader:  # fmt: skip
        seen: dict[int, str] = {}
        created = []
        for changes in traffic(5, 30):
            for table, key, row in changes:
                if table == "orders":
                    if row is not None and key["id"] not in seen and float(row["amount"]) > 500:
                        created.append((key["id"], row["amount"]))
                    seen.update({key["id"]: ""} if row is not None else {})
                    if row is None:
                        seen.pop(key["id"], None)
            feed.transaction(*changes)
        streams = Streams(spark, read_catalog(reader, [source]), StreamSettings(log_address, tmp_path))  # fmt: skip
        run_to_end(streams, big)
    assert created
    found = [(row["id"], row["amount"]) for row in read(log_address, big.name)]
    assert sorted(found) == sorted(created)


def test_records_that_cannot_be_read_go_to_the_dead_letter_topic(
    log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"clean{uuid.uuid4().hex[:6]}"
    clicks = tr.topic(f"{name}_in", schema="user STRING, n INT")

    @tr.stream(clicks, name=name, trigger="available now")
    def clean(frame: DataFrame) -> DataFrame:
        return frame

    write(log_address, clicks.name, [{"user": "a", "n": 1}, {"user": "b", "n": "many"}, {"user": "c", "n": 3}])  # fmt: skip
    run_to_end(Streams(spark, Catalog({}, {}), StreamSettings(log_address, tmp_path)), clean)
    assert sorted(row["user"] for row in read(log_address, name)) == ["a", "c"]
    (letter,) = read(log_address, f"{name}.dead")
    assert "n" in letter["reason"]


def test_an_error_in_a_users_function_names_the_users_line(
    log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"bad{uuid.uuid4().hex[:6]}"
    clicks = tr.topic(f"{name}_in", schema="user STRING, n INT")
    write(log_address, clicks.name, [{"user": "a", "n": 0}])
    streams = Streams(spark, Catalog({}, {}), StreamSettings(log_address, tmp_path))

    @tr.stream(clicks, name=name, trigger="available now")
    def misspelt(frame: DataFrame) -> DataFrame:
        return frame.select("usr")

    with pytest.raises(UserFunctionError) as caught:
        run_to_end(streams, misspelt)
    line = misspelt.function.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}" in caught.value.detail

    from pyspark.sql.functions import udf

    @udf("int")
    def divide(n):  # type: ignore[no-untyped-def]
        return 1 // n

    @tr.stream(clicks, name=f"{name}2", trigger="available now")
    def divided(frame: DataFrame) -> DataFrame:
        return frame.select(divide("n"))

    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        run_to_end(streams, divided)
    assert f"{__file__}:" in caught.value.detail
