"""Reading the log and copying topics, beside Spark's own Kafka connector.

    python -m benchmarks.pipelines_streams [--rows 2000000] [--rounds 3]

Both sides read the same topic of 200-byte records in one Spark session, and the bytes they
have seen are compared with what was written. Copies go from topic to topic: ours exactly once,
the connector's at least once, each with its own reader; the copies are counted. The first
round of each warms the JVM up and does not count; of the others the best does. The connector's
jar is fetched with Maven once; without it only our side is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Table, Took, measured
from pyspark.errors import StreamingQueryException

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.admin import Admin
from tailrace.client.columns import ColumnFetcher
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.errors import StreamInterruptedError
from tailrace.pipelines.reading.catalog import Catalog
from tailrace.pipelines.spark import session
from tailrace.pipelines.streams.queries import Streams, StreamSettings
from tailrace.pipelines.streams.source import register_log

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from servers.spark_kafka import ConnectorUnavailable, connector_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4
RECORD_BYTES = 200


def write(bootstrap: str, topic: str, rows: int) -> None:
    """Records of 200 random bytes under short keys, in batches as producers send them."""
    with Admin(bootstrap) as admin:
        admin.ensure_topic(topic, PARTITIONS, {})
    pool = [os.urandom(RECORD_BYTES) for _ in range(1000)]
    with TransactionalWriter(bootstrap, f"bench.{topic}", batch_bytes=100_000) as writer:
        writer.init()
        for partition in range(PARTITIONS):
            count = len(range(partition, rows, PARTITIONS))
            for first in range(0, count, 50_000):
                numbers = range(first, min(first + 50_000, count))
                keys: list[bytes | None] = [b"k%d" % number for number in numbers]
                values: list[bytes | None] = [pool[number % 1000] for number in numbers]
                writer.send_columns(topic, partition, keys, values)
                writer.commit()


def best(rounds: int, work: Callable[[], None]) -> Took:
    """The round with the fewest CPU seconds, the first left out."""
    found: list[Took] = []
    for _ in range(rounds + 1):
        with measured() as took:
            work()
        found.append(took)
    return min(found[1:], key=lambda one: one.cpu)


def bench_wire(bootstrap: str, topic: str, rows: int, rounds: int, table: Table) -> None:
    """The reader alone, without Spark."""
    with Admin(bootstrap) as admin:
        ends = admin.topic_end_offsets(topic)

    def work() -> None:
        fetcher = ColumnFetcher(bootstrap)
        count = sum(
            len(columns)
            for partition, end in ends.items()
            for columns in fetcher.read(topic, partition, 0, end)
        )
        fetcher.close()
        assert count == rows, (count, rows)

    table.speed("the log's reader alone, 200 B records", rows, best(rounds, work))


def bench_reading(
    spark: SparkSession, bootstrap: str, topic: str, rows: int, rounds: int, table: Table, rival: bool
) -> None:  # fmt: skip
    """A whole topic into Spark: every value is looked at."""

    def looked_at(frame: DataFrame) -> None:
        (found,) = frame.selectExpr("count(*)", "sum(length(value))").collect()
        assert tuple(found) == (rows, rows * RECORD_BYTES), found

    def ours() -> None:
        reader = spark.read.format("tailrace").option("bootstrap", bootstrap)
        looked_at(reader.option("topics", topic).load())

    def theirs() -> None:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        options = {"subscribe": topic, "kafka.isolation.level": "read_committed", "includeHeaders": "true"}  # fmt: skip
        looked_at(reader.options(**options).load())

    mine = best(rounds, ours)
    table.speed("reading the log into Spark", rows, mine)
    table.ratio("  records per CPU-second, in 300,000", rows / mine.cpu / 300_000, 1.0)
    if rival:
        other = best(rounds, theirs)
        table.speed("the same through Spark's Kafka connector", rows, other)
        table.ratio("  per CPU-second", other.cpu / mine.cpu, 1.0)


def bench_copy(
    spark: SparkSession, bootstrap: str, topic: str, rows: int, rounds: int, table: Table, rival: bool
) -> None:  # fmt: skip
    """Topic to topic."""
    numbers = iter(range(1000))

    def copied(name: str) -> None:
        with Admin(bootstrap) as admin:
            ends = admin.topic_end_offsets(name)
        fetcher = ColumnFetcher(bootstrap)
        count = sum(len(c) for p, end in ends.items() for c in fetcher.read(name, p, 0, end))
        fetcher.close()
        assert count == rows, (count, rows)

    def ours(directory: Path) -> str:
        name = f"ours{next(numbers)}"

        @tr.stream(tr.topic(topic, format="raw"), name=name, format="raw", trigger="available now")
        def copy(frame: DataFrame) -> DataFrame:
            return frame.select("key", "value")

        settings = StreamSettings(bootstrap, directory, output_partitions=PARTITIONS)
        running = Streams(spark, Catalog({}, {}), settings).start(copy)
        with contextlib.suppress(StreamingQueryException):
            running.query.awaitTermination()
        failure = running.failure()
        if failure is not None:
            raise failure
        return name

    def theirs(directory: Path) -> str:
        name = f"theirs{next(numbers)}"
        with Admin(bootstrap) as admin:
            admin.ensure_topic(name, PARTITIONS, {})
        frame = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("kafka.isolation.level", "read_committed")
            .option("startingOffsets", "earliest")
            .load()
        )
        query = (
            frame.select("key", "value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", name)
            .option("checkpointLocation", str(directory / name))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return name

    def measure(work: Callable[[Path], str]) -> Took:
        found: list[Took] = []
        while len(found) <= rounds:
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    with measured() as took:
                        name = work(Path(scratch))
                except StreamInterruptedError as reason:
                    print(f"  again, a worker was too slow to start: {reason}", flush=True)
                    continue
                copied(name)
                with Admin(bootstrap) as admin:
                    admin.delete_topic(name)
            found.append(took)
        return min(found[1:], key=lambda one: one.seconds)

    mine = measure(ours)
    table.speed("copy topic to topic, exactly once", rows, mine)
    if rival:
        other = measure(theirs)
        table.speed("Spark's Kafka sink, at least once", rows, other)
        table.ratio("  rate", other.seconds / mine.seconds, 0.8)
        table.ratio("  per CPU-second", other.cpu / mine.cpu, None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="wire,read,copy")
    given = parser.parse_args()
    try:
        jars = ",".join(str(path) for path in connector_jars())
    except ConnectorUnavailable as reason:
        print(f"  without Spark's Kafka connector: {reason}")
        jars = ""
    wanted = given.only.split(",")
    table = Table()
    with tempfile.TemporaryDirectory() as scratch, BrokerProcess(Path(scratch) / "log") as broker:
        write(broker.address, "records", given.rows)
        if "wire" in wanted:
            bench_wire(broker.address, "records", given.rows, given.rounds, table)
        if wanted == ["wire"]:
            return 0
        conf = {"spark.jars": jars} if jars else {}
        spark = session.start("bench", Path(scratch) / "spark", master="local[2]", conf=conf)
        register_log(spark)
        try:
            for name, bench in (("read", bench_reading), ("copy", bench_copy)):
                if name in wanted:
                    bench(spark, broker.address, "records", given.rows, given.rounds, table, bool(jars))  # fmt: skip
        finally:
            spark.stop()
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
