"""One contract for both readers, ours and Spark's Kafka connector, on both logs."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from pyspark.errors import StreamingQueryException

import tailrace as tr
from pipelines.streams.stream_harness import Harness
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.streams import connector
from tailrace.pipelines.streams.dead_letters import letters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(600)]
KEEP = {"retention.ms": "-1"}  # the records say they are of 1970
COLUMNS = ["key", "value", "headers", "topic", "partition", "offset", "timestamp"]


@pytest.fixture(params=["tailrace", "kafka"])
def reader(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    if request.param == "kafka" and not connector.available(spark):
        pytest.skip("Spark's Kafka connector could not be fetched")
    spark.conf.set(connector.SETTING, request.param)
    yield request.param
    spark.conf.unset(connector.SETTING)


class Reading:
    """A topic with three partitions, and both ways to read it."""

    def __init__(self, spark: SparkSession, bootstrap: str, reader: str, directory: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.reader = reader
        self.directory = directory
        self.topic = f"clicks{uuid.uuid4().hex[:6]}"
        with Admin(bootstrap) as admin:
            admin.create_topic(self.topic, 3, KEEP)

    def write(
        self, *numbers: int, partition: int = 0, topic: str = "", commit: bool = True
    ) -> None:
        with TransactionalWriter(self.bootstrap, f"w{uuid.uuid4().hex[:6]}") as writer:
            writer.init()
            for number in numbers:
                value = orjson.dumps({"n": number})
                headers = (("trace", b"%d" % number),)
                writer.send(topic or self.topic, partition, b"k%d" % number, value, headers, 1000 + number)  # fmt: skip
            writer.flush()
            if commit:
                writer.commit()
            else:
                writer.abort()

    def options(self, **more: str) -> dict[str, str]:
        topics = {} if "pattern" in more else {"topics": self.topic}
        return {"bootstrap": self.bootstrap, **topics, **more}

    def frame(self, *, streaming: bool = False, **more: str) -> DataFrame:
        options = self.options(**more)
        if self.reader == "kafka":
            return connector.load(self.spark, options, streaming=streaming)
        source: Any = self.spark.readStream if streaming else self.spark.read
        frame: DataFrame = source.format("tailrace").options(**options).load()
        return frame

    def batch(self, **more: str) -> list[int]:
        rows = self.frame(**more).select("value").collect()
        return sorted(orjson.loads(bytes(row["value"]))["n"] for row in rows)

    def follow(self, name: str, **more: str) -> list[int]:
        """What a stream with this checkpoint finds new now; its largest batch in `largest`."""
        target = self.directory / f"{name}-out"
        for attempts_left in (3, 2, 1, 0):
            frame = self.frame(streaming=True, **{"start": "earliest", **more})
            query = (
                frame.select("value")
                .writeStream.format("parquet")
                .option("checkpointLocation", str(self.directory / name))
                .option("path", str(target))
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination(200)
                break
            except StreamingQueryException as problem:
                # a busy machine may be too slow for Spark's ten seconds to start Python in
                if not attempts_left or "connect back" not in str(problem):
                    raise
        self.largest = max((p["numInputRows"] for p in query.recentProgress), default=0)
        rows = self.spark.read.schema("value BINARY").parquet(str(target)).collect()
        return sorted(orjson.loads(bytes(row["value"]))["n"] for row in rows)


@pytest.fixture
def reading(spark: SparkSession, log_address: str, reader: str, tmp_path: Path) -> Reading:
    return Reading(spark, log_address, reader, tmp_path)


def test_batches_by_offsets_and_times_committed_only(reading: Reading) -> None:
    reading.write(0, 1, 2, 3)
    reading.write(-1, -2, commit=False)
    reading.write(10, 11, partition=1)
    rows = reading.frame().orderBy("partition", "offset").collect()
    assert list(rows[0].asDict()) == COLUMNS
    assert (bytes(rows[0]["key"]), rows[0]["topic"], rows[0]["partition"], rows[0]["offset"]) == (b"k0", reading.topic, 0, 0)  # fmt: skip
    assert [(h["key"], bytes(h["value"])) for h in rows[1]["headers"]] == [("trace", b"1")]
    assert rows[0]["timestamp"].timestamp() == 1.0
    assert reading.batch() == [0, 1, 2, 3, 10, 11]
    given = orjson.dumps({reading.topic: {"0": 2, "1": 2, "2": -2}}).decode()
    assert reading.batch(start=given) == [2, 3]
    ended = orjson.dumps({reading.topic: {"0": 2, "1": -1, "2": -1}}).decode()
    assert reading.batch(end=ended) == [0, 1, 10, 11]
    assert reading.batch(start="@1002", end="latest") == [2, 3, 10, 11]


def test_streams_keep_to_limits_and_take_in_what_is_new(reading: Reading) -> None:
    reading.write(*range(20))
    reading.write(-1, commit=False)
    pattern = f"{reading.topic}.*"
    assert reading.follow("all", pattern=pattern, limit="6") == list(range(20))
    assert reading.largest <= 8
    with Admin(reading.bootstrap) as admin:
        admin.add_partitions(reading.topic, 4)
        admin.create_topic(f"{reading.topic}more", 1, KEEP)
    reading.write(30, partition=3)
    reading.write(40, topic=f"{reading.topic}more")
    assert reading.follow("all", pattern=pattern) == [*range(20), 30, 40]


def test_lost_records_are_told_or_left_out(reading: Reading) -> None:
    reading.write(0, 1)
    assert reading.follow("strict") == [0, 1]
    assert reading.follow("going", on_loss="continue") == [0, 1]
    reading.write(2, 3, 4)
    with Admin(reading.bootstrap) as admin:
        admin.delete_records({(reading.topic, 0): 4})
    with pytest.raises(Exception, match=r"(?i)lost|gone|out of range|failOnDataLoss"):
        reading.follow("strict")
    assert reading.follow("going", on_loss="continue")[-2:] in ([3, 4], [1, 4])


def test_a_declared_stream_is_the_same_through_both(
    spark: SparkSession, log_address: str, reader: str, tmp_path: Path
) -> None:
    harness = Harness(log_address, tmp_path, spark)
    clicks = tr.topic(harness.name("clicks"), schema="user STRING, n INT", metadata="record")

    @tr.stream(clicks, name=harness.name("counts"), key="user", output_mode="update", trigger="available now")  # fmt: skip
    def counts(frame: DataFrame) -> DataFrame:
        return frame.where("record.offset >= 0").groupBy("user").sum("n").toDF("user", "n")

    harness.write(clicks.name, {"user": "a", "n": 1}, {"user": "b", "n": 2}, b"{")
    harness.run(counts)
    harness.write(clicks.name, {"user": "a", "n": 5})
    harness.run(counts)
    assert {row["user"]: row["n"] for row in harness.read(counts.name)} == {"a": 6, "b": 2}
    assert len(letters(log_address, f"{counts.name}.dead")) == 1
