"""Pipelines beside Spark's own state, on one embedded broker: `make bench-pipelines`.

Both sides read the same topic through the same reader and count the same keys. The counts
of every row with a speed are summed and compared with what was written: ours from the view's
changelog, Spark's from its batches. The floors are times only. Figures are from the machine
it runs on: read the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import psutil
import pyarrow as pa

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines import session
from tailrace.pipelines.incremental.compile import compile_views
from tailrace.pipelines.reader import LogReader, read_all
from tailrace.pipelines.ticks.catalog import topic_table
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work, run_on_spark
from tailrace.pipelines.ticks.levels import run_levels
from tailrace.pipelines.ticks.project import ProjectTicks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Seconds and CPU seconds of this process and all below it, the broker left out."""
    found: dict[str, float] = {}
    process = psutil.Process()

    def cpu() -> float:
        total = 0.0
        for one in [process, *process.children(recursive=True)]:
            try:
                times = one.cpu_times()
                if "broker" not in " ".join(one.cmdline()):
                    total += times.user + times.system
            except psutil.Error:
                continue
        return total

    before, began = cpu(), time.perf_counter()
    yield found
    found["seconds"], found["cpu"] = time.perf_counter() - began, cpu() - before


def write(bootstrap: str, topic: str, rows: int, keys: int, *, padding: int = 0) -> None:
    with Admin(bootstrap) as admin:
        admin.ensure_topic(topic, PARTITIONS, {})
    with TransactionalWriter(bootstrap, f"bench.{topic}") as writer:
        writer.init()
        pad = "x" * padding
        for partition in range(PARTITIONS):
            values: list[bytes | None] = [
                orjson.dumps({"k": number * 7919 % keys, "pad": pad})
                for number in range(partition, rows, PARTITIONS)
            ]
            for first in range(0, len(values), 50_000):
                writer.send_columns(topic, partition, None, values[first : first + 50_000])
                writer.commit()


def bench_reading(bootstrap: str, rows: int) -> None:
    write(bootstrap, "read", rows, 1000, padding=180)
    with LogReader(bootstrap) as reader, measured() as took:
        count = sum(len(records.offsets) for records in read_all(reader, "read"))
    assert count == rows, (count, rows)
    tell("read the log, 200 B records", rows, took)


def bench_writing(bootstrap: str, rows: int) -> None:
    with Admin(bootstrap) as admin:
        admin.ensure_topic("written", PARTITIONS, {})
    keys = [b'{"k":%d}' % number for number in range(rows)]
    values: list[bytes | None] = [b'{"row":{"k":%d,"n":1}}' % number for number in range(rows)]
    headers = (("tailrace.tick", b"1"), ("tailrace.position", b"tick:p:1"))
    with TransactionalWriter(bootstrap, "bench.driver") as writer:
        writer.init()
        with measured() as took:
            for first in range(0, rows, 20_000):
                part = slice(first, first + 20_000)
                writer.send_columns("written", None, keys[part], values[part], headers=[headers] * len(keys[part]))  # fmt: skip
                writer.commit()
    with LogReader(bootstrap) as reader:
        count = sum(len(records.offsets) for records in read_all(reader, "written"))
    assert count == rows, (count, rows)
    tell("driver's transaction, 20,000 records each", rows, took)


def count_with_ticks(
    bootstrap: str, directory: Path, topic: str, sql: str, run: Callable[[Work], Outcome], limit: int
) -> tuple[dict[str, float], list[float], dict[bytes, bytes]]:  # fmt: skip
    declared = tr.topic(topic, schema="k BIGINT")
    view = tr.view(f"{topic}_{directory.name}", sql.format(t=topic))
    ticks = ProjectTicks(
        compile_views([view], [topic_table(declared)]),
        TickSettings(directory.name, bootstrap, str(directory / "state"), str(directory / "cache"), limit=limit),
        run,
        plain=frozenset([topic]),
    )  # fmt: skip
    each: list[float] = []
    ticks.start()
    with measured() as took:
        while ticks.step(0.0) is not None:
            each.append(ticks.main.worked_seconds)
    ticks.close()
    shown: dict[bytes, bytes] = {}
    with LogReader(bootstrap) as reader:
        for records in read_all(reader, view.name):
            pairs = zip(records.keys, records.values, strict=True)
            shown.update({key: value for key, value in pairs if key and value})
    return took, each, shown


def bench_count(spark: SparkSession, bootstrap: str, directory: Path, rows: int, keys: int) -> None:
    write(bootstrap, "counted", rows, keys)
    sql = "SELECT k, count(*) AS n FROM {t} GROUP BY k"
    limit = rows // 5
    results = {}
    for name, run in (
        ("one task", lambda work: run_on_spark(spark, work)),
        ("levels", lambda work: run_levels(spark, work)),
    ):
        took, _, shown = count_with_ticks(
            bootstrap, directory / f"count-{name.replace(' ', '-')}", "counted", sql, run, limit
        )
        assert sum(orjson.loads(v)["row"]["n"] for v in shown.values()) == rows
        tell(f"keyed count, {keys:,} keys, ticks, {name}", rows, took)
        results[name] = took
    batches: list[pa.Table] = []
    query = (
        spark.readStream.format("tailrace")
        .option("bootstrap", bootstrap)
        .option("topics", "counted")
        .option("form", "json")
        .option("columns", '[["k","bigint"]]')
        .option("start", "earliest")
        .option("limit", str(limit))
        .load()
        .groupBy("k")
        .count()
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(directory / "jvm"))
        .trigger(availableNow=True)
        .foreachBatch(lambda frame, _: batches.append(frame.toArrow()))
    )
    with measured() as took:
        query.start().awaitTermination()
    counts: dict[int, int] = {}  # update mode: the last batch that names a key has its count
    for batch in batches:
        counts.update(zip(batch["k"].to_pylist(), batch["count"].to_pylist(), strict=True))
    assert sum(counts.values()) == rows, (sum(counts.values()), rows)
    tell(f"keyed count, {keys:,} keys, Spark's JVM on RocksDB", rows, took)
    best = max(results.values(), key=lambda one: rows / one["seconds"])
    print(f"  ratio {took['seconds'] / best['seconds']:.2f}x of Spark's rows a second")


def bench_floor(spark: SparkSession, bootstrap: str, directory: Path, ticks: int) -> None:
    one = "SELECT k, count(*) AS n FROM {t} GROUP BY k"
    two = "SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM {t} GROUP BY k) q GROUP BY n"
    for name, sql, run in (
        ("one task, one operator", one, run_on_spark),
        ("one task, two operators", two, run_on_spark),
        ("levels, one exchange", one, run_levels),
        ("levels, two exchanges", two, run_levels),
    ):
        topic = "floor_" + name.replace(" ", "_").replace(",", "")
        write(bootstrap, topic, 10 * ticks, 10)
        _, each, _ = count_with_ticks(
            bootstrap, directory / topic, topic, sql, lambda work, run=run: run(spark, work), 2
        )
        settled = each[len(each) // 3 :]
        print(f"  {'floor of a tick: ' + name:<58}{statistics.median(settled) * 1000:9.0f} ms")
    write(bootstrap, "floor_jvm", 10 * ticks, 10)
    query = (
        spark.readStream.format("tailrace").option("bootstrap", bootstrap)
        .option("topics", "floor_jvm").option("form", "json").option("columns", '[["k","bigint"]]')
        .option("start", "earliest").option("limit", "10").load().groupBy("k").count()
        .writeStream.outputMode("update").option("checkpointLocation", str(directory / "jvm-floor"))
        .trigger(availableNow=True).foreachBatch(lambda frame, _: frame.toArrow()).start()
    )  # fmt: skip
    query.awaitTermination()
    took = [p["durationMs"]["triggerExecution"] for p in query.recentProgress]
    print(
        f"  {'floor of a micro-batch: JVM count':<58}{statistics.median(took[len(took) // 3 :]):9.0f} ms"
    )


def tell(what: str, rows: int, took: dict[str, float]) -> None:
    speed, per_cpu = rows / took["seconds"], rows / max(took["cpu"], 1e-9)
    print(f"  {what:<58}{speed:>12,.0f} rows/s{per_cpu:>12,.0f} rows/CPU-s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--ticks", type=int, default=12)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        with BrokerProcess(directory / "log") as broker:
            print("pipelines")
            bench_reading(broker.address, arguments.rows)
            bench_writing(broker.address, arguments.rows // 5)
            spark = session.start("bench", directory / "spark")
            try:
                bench_count(spark, broker.address, directory, arguments.rows, arguments.keys)
                bench_floor(spark, broker.address, directory, arguments.ticks)
            finally:
                spark.stop()


if __name__ == "__main__":
    main()
