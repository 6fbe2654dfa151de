"""Pipelines beside Spark's own state and Flink: `make bench-pipelines`.

Both sides read the same topic through the same reader and count the same keys. The counts of
every row with a speed are summed and compared with what was written: ours from the view's
changelog, Spark's from its batches, Flink's from its files. The floors are times only.
Figures are from the machine it runs on: read the ratios, and rows per CPU-second where the
machine does other work too.

    --only reading,driver,count,join,floor,large,flink    a part of it
    --rows 500000 --keys 50000                      the keyed count; a tenth runs in a minute
    --large-keys 10000000 --bids 10000000           the large ones

`large` holds Spark's Python workers to 512 MB, page cache included, by a control group; where
none can be made it runs without and says so. Ticks have the usual limit of changes; Spark's own
count is not held and has batches of a tenth of the keys, which suit it better.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import psutil
import pyarrow as pa
from benchmarks import pipelines_flink
from benchmarks.measure import MemoryLimit, Table, Took, measured, memory_limit, written_by

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.config import KEYS
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.declare import Topic, View
from tailrace.pipelines.engine.changelog import Piece
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.spark import java, session
from tailrace.pipelines.streams.source import register_log
from tailrace.pipelines.ticks.changes import send_changes
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work
from tailrace.pipelines.ticks.levels import run_levels
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.pipelines.ticks.small_ticks import run_on_spark
from tailrace.records.columns import bytes_array

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4
PARTS = ("reading", "driver", "count", "join", "floor", "large", "flink")
WORKER_BYTES = 512 << 20
TICK_LIMIT = KEYS["tick.limit"].default  # changes in a tick, unless a project says otherwise


@dataclass(frozen=True, slots=True)
class Bench:
    """Where everything runs."""

    spark: SparkSession
    bootstrap: str
    directory: Path
    table: Table
    sizes: argparse.Namespace


def write(bootstrap: str, topic: str, rows: int, value: Callable[[int], bytes]) -> None:
    """`rows` records over all partitions, `value(number)` each."""
    with Admin(bootstrap) as admin:
        admin.ensure_topic(topic, PARTITIONS, {})
    with TransactionalWriter(bootstrap, f"bench.{topic}") as writer:
        writer.init()
        for partition in range(PARTITIONS):
            for first in range(partition, rows, PARTITIONS * 50_000):
                numbers = range(first, min(rows, first + PARTITIONS * 50_000), PARTITIONS)
                writer.send_columns(topic, partition, None, [value(number) for number in numbers])
                writer.commit()


def keyed(keys: int) -> Callable[[int], bytes]:
    """A value with one of `keys` keys, scattered."""
    return lambda number: b'{"k":%d}' % (number * 7919 % keys)


@dataclass(frozen=True, slots=True)
class Ticked:
    """A view kept by ticks over topics that were there from the start."""

    took: Took
    ticks: list[float]
    rows: dict[bytes, bytes]
    state_bytes: int

    def total(self, column: str) -> int:
        return sum(orjson.loads(value)["row"][column] for value in self.rows.values())


def tick(
    bench: Bench, name: str, views: list[View], topics: list[Topic],
    run: Callable[[Work], Outcome], limit: int,
) -> Ticked:  # fmt: skip
    """Run ticks until everything is read; the first view as it then is."""
    directory = bench.directory / name
    ticks = ProjectTicks(
        compile_views(views, [topic_table(topic) for topic in topics]),
        TickSettings(name, bench.bootstrap, str(directory / "state"), str(directory / "cache"), limit=limit),
        run,
        plain=frozenset(topic.name for topic in topics),
    )  # fmt: skip
    each: list[float] = []
    ticks.start()
    with measured() as took:
        while ticks.step(0.0) is not None:
            each.append(ticks.main.worked_seconds)
    size = ticks.main.state_bytes
    ticks.close()
    shown: dict[bytes, bytes] = {}
    with LogReader(bench.bootstrap) as reader:
        for records in read_all(reader, views[0].name):
            for key, value in zip(records.keys, records.values, strict=True):
                if key is not None and value is None:
                    del shown[key]
                elif key is not None and value is not None:
                    shown[key] = value
    return Ticked(took, each, shown, size)


def stream(bench: Bench, topic: str, columns: list[tuple[str, str]], limit: int) -> DataFrame:
    """A topic as a stream of Spark's own."""
    return (
        bench.spark.readStream.format("tailrace")
        .option("bootstrap", bench.bootstrap)
        .option("topics", topic)
        .option("form", "json")
        .option("columns", json.dumps(columns))
        .option("start", "earliest")
        .option("limit", str(limit))
        .load()
    )


def run_stream(bench: Bench, name: str, frame: DataFrame, mode: str) -> tuple[Took, list[pa.Table], Any]:  # fmt: skip
    """Run a streaming query over all there is; what it took and its batches."""
    batches: list[pa.Table] = []
    query = (
        frame.writeStream.outputMode(mode)
        .option("checkpointLocation", str(bench.directory / f"checkpoint-{name}"))
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, _: batches.append(batch.toArrow()))
    )
    with measured() as took:
        running = query.start()
        running.awaitTermination()
    return took, batches, running


def last_counts(batches: list[pa.Table], key: str, count: str) -> int:
    """The sum of the last count of every key: in update mode a later batch replaces."""
    counts: dict[object, int] = {}
    for batch in batches:
        counts.update(zip(batch[key].to_pylist(), batch[count].to_pylist(), strict=True))
    return sum(counts.values())


def bench_reading(bench: Bench) -> None:
    """Reading records of 200 B."""
    rows, pad = bench.sizes.rows, b"x" * 180
    write(bench.bootstrap, "read", rows, lambda n: b'{"k":%d,"pad":"%s"}' % (n % 1000, pad))
    with LogReader(bench.bootstrap) as reader, measured() as took:
        count = sum(len(records.offsets) for records in read_all(reader, "read"))
    assert count == rows, (count, rows)
    bench.table.speed("read the log, 200 B records", rows, took)


def bench_driver(bench: Bench) -> None:
    """How many records the driver's transaction writes in a second."""
    rows = bench.sizes.rows // 5
    with Admin(bench.bootstrap) as admin:
        admin.ensure_topic("written", PARTITIONS, {})
    keys = bytes_array([b'{"k":%d}' % number for number in range(rows)])
    values = bytes_array([b'{"row":{"k":%d,"n":1}}' % number for number in range(rows)])
    headers = (("tailrace.tick", b"1"), ("tailrace.position", b"tick:p:1"))
    with TransactionalWriter(bench.bootstrap, "bench.driver") as writer:
        writer.init()
        with measured() as took:
            for first in range(0, rows, 20_000):
                piece = Piece(keys.slice(first, 20_000), values.slice(first, 20_000))
                send_changes(writer, "written", [piece], headers)
                writer.commit()
    with LogReader(bench.bootstrap) as reader:
        count = sum(len(records.offsets) for records in read_all(reader, "written"))
    assert count == rows, (count, rows)
    bench.table.speed("driver's transaction, 20,000 records each", rows, took)


def bench_count(bench: Bench) -> None:
    """The keyed count beside Spark's JVM on RocksDB and beside transformWithState."""
    rows, keys, table = bench.sizes.rows, bench.sizes.keys, bench.table
    write(bench.bootstrap, "counted", rows, keyed(keys))
    topic, limit = tr.topic("counted", schema="k BIGINT"), rows // 5
    ours: dict[str, Took] = {}
    for name, run in (("one task", run_on_spark), ("levels", run_levels)):
        view = tr.view(f"count_{run.__name__}", "SELECT k, count(*) AS n FROM counted GROUP BY k")
        done = tick(bench, run.__name__, [view], [topic], lambda work, run=run: run(bench.spark, work), limit)  # type: ignore[misc]  # fmt: skip
        assert done.total("n") == rows, (done.total("n"), rows)
        table.speed(f"keyed count, {keys:,} keys: ticks, {name}", rows, done.took)
        ours[name] = done.took
    counted = stream(bench, "counted", [("k", "bigint")], limit).groupBy("k").count()
    jvm, batches, _ = run_stream(bench, "jvm", counted, "update")
    assert last_counts(batches, "k", "count") == rows
    table.speed(f"keyed count, {keys:,} keys: Spark's JVM on RocksDB", rows, jvm)
    few = max(rows // 10, min(rows, 2_000))
    slow = count_with_state(bench, few, min(keys, few))
    table.speed(f"keyed count, {min(keys, few):,} keys: transformWithState", few, slow)
    best = min(ours.values(), key=lambda took: took.seconds)
    thrifty = min(ours.values(), key=lambda took: took.cpu)
    table.ratio("  ticks against the JVM, rows a second", jvm.seconds / best.seconds, 1.0)
    table.ratio("  ticks against the JVM, rows a CPU-second", jvm.cpu / thrifty.cpu, None)
    table.ratio(
        "  ticks against transformWithState, rows a second",
        (rows / best.seconds) / (few / slow.seconds),
        25.0,
    )


def count_with_state(bench: Bench, rows: int, keys: int) -> Took:
    """The same count as a stateful processor in Python."""
    from benchmarks.pipelines_counter import Counter

    write(bench.bootstrap, "few", rows, keyed(keys))
    frame = stream(bench, "few", [("k", "bigint")], max(rows // 2, 1)).groupBy("k")
    counted = frame.transformWithState(Counter(), "k BIGINT, n BIGINT", "Update", "none")
    took, batches, _ = run_stream(bench, "state", counted, "update")
    assert last_counts(batches, "k", "n") == rows
    return took


def bench_join(bench: Bench) -> None:
    """A keyed join without aggregation before it, beside Spark's stream–stream join."""
    rows, table = bench.sizes.rows // 2, bench.table
    keys = max(rows // 2, 1)
    for side in ("left", "right"):
        write(bench.bootstrap, side, rows, lambda n: b'{"id":%d,"k":%d}' % (n, n * 7919 % keys))
    schema = [("id", "bigint"), ("k", "bigint")]
    topics = [tr.topic(side, schema="id BIGINT, k BIGINT") for side in ("left", "right")]
    view = tr.view(
        "joined",
        "SELECT l.id AS a, r.id AS b FROM left l JOIN right r ON l.k = r.k",
        key=["a", "b"],
    )
    limit = 2 * rows // 5
    done = tick(bench, "join", [view], topics, lambda work: run_levels(bench.spark, work), limit)
    counts = np.bincount(np.arange(rows) * 7919 % keys, minlength=keys)
    expected = int((counts * counts).sum())
    assert len(done.rows) == expected, (len(done.rows), expected)
    table.speed("keyed join, ticks", 2 * rows, done.took)
    sides = [
        stream(bench, side, schema, limit // 2).selectExpr("k", f"id AS {name}")
        for side, name in (("left", "a"), ("right", "b"))
    ]
    joined = sides[0].join(sides[1], "k").select("a", "b")
    theirs, batches, _ = run_stream(bench, "join", joined, "append")
    assert sum(batch.num_rows for batch in batches) == expected
    table.speed("keyed join, Spark's stream–stream join", 2 * rows, theirs)
    table.ratio("  ticks against Spark, rows a CPU-second", theirs.cpu / done.took.cpu, None)


def bench_floor(bench: Bench) -> None:
    """What a tick of ten rows takes, beside a micro-batch of Spark's own count."""
    one = "SELECT k, count(*) AS n FROM {t} GROUP BY k"
    two = "SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM {t} GROUP BY k) q GROUP BY n"
    found: dict[str, float] = {}
    for name, sql, run in (
        ("small tick in one task", one, run_on_spark),
        ("one stateful level", one, run_levels),
        ("two stateful levels", two, run_levels),
    ):
        topic = "floor_" + name.replace(" ", "_")
        write(bench.bootstrap, topic, 10 * bench.sizes.ticks, keyed(10))
        declared = tr.topic(topic, schema="k BIGINT")
        view = tr.view(f"{topic}_view", sql.format(t=topic))
        done = tick(bench, topic, [view], [declared], lambda work, run=run: run(bench.spark, work), 2)  # type: ignore[misc]  # fmt: skip
        found[name] = statistics.median(done.ticks[len(done.ticks) // 3 :]) * 1000
        bench.table.figure(f"floor of a tick: {name}", f"{found[name]:9.0f} ms")
    write(bench.bootstrap, "floor_jvm", 10 * bench.sizes.ticks, keyed(10))
    counted = stream(bench, "floor_jvm", [("k", "bigint")], 10).groupBy("k").count()
    _, _, query = run_stream(bench, "floor", counted, "update")
    times = [progress["durationMs"]["triggerExecution"] for progress in query.recentProgress]
    jvm = statistics.median(times[len(times) // 3 :])
    bench.table.figure("floor of a micro-batch: JVM count", f"{jvm:9.0f} ms")
    for name, goal in (("small tick in one task", 1.5), ("one stateful level", 1.5), ("two stateful levels", 2.2)):  # fmt: skip
        bench.table.ratio(f"  {name} against the JVM count", found[name] / jvm, goal, most=True)


def hold_workers(held: MemoryLimit) -> None:
    """Put Spark's Python workers, and the daemons that fork them, into the control group."""
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # some end while we look
            if "pyspark" in " ".join(one.cmdline()) and "python" in one.name():
                held.take(one.pid)


def bench_large(bench: Bench) -> None:
    """Many keys with little memory for the Python workers; Spark's side is not held."""
    keys, table = bench.sizes.large_keys, bench.table
    rows, batch = keys + keys // 2, max(keys // 10, 1)
    write(bench.bootstrap, "large", rows, keyed(keys))
    view = tr.view("large_count", "SELECT k, count(*) AS n FROM large GROUP BY k")
    topic = tr.topic("large", schema="k BIGINT")
    bench.spark.sparkContext.parallelize(range(4), 4).map(abs).count()  # ticks' workers are there
    put: dict[int, int] = {}  # bytes that each worker has written, cache included
    with memory_limit(WORKER_BYTES, "tailrace-bench") as held:
        if held is not None:
            hold_workers(held)

        def run(work: Work) -> Outcome:
            outcome = run_levels(bench.spark, work)
            put.update({pid: written_by(pid) for pid in (held.pids() if held else ())})
            return outcome

        done = tick(bench, "large", [view], [topic], run, min(batch, TICK_LIMIT))
        most = 0 if held is None else held.most_bytes
    assert done.total("n") == rows, (done.total("n"), rows)
    words = (
        f"at most {most / 1e6:.0f} MB" if most else "no control group can be made here: no limit"
    )
    table.speed(f"keyed count, {keys:,} keys: ticks, workers in 512 MB", rows, done.took)
    table.figure("  memory of the Python workers", words)
    written = sum(
        path.stat().st_size for path in (bench.directory / "large" / "state").rglob("*.*")
    )
    changed = sum(len(key) + 2 for key in done.rows) + 12 * rows
    table.figure(
        "  bytes written per changed byte",
        f"{written / changed:.2f} in files, {sum(put.values()) / changed:.1f} with the pages of "
        f"the cache, which holds {done.state_bytes / 1e6:,.0f} MB",
    )
    counted = stream(bench, "large", [("k", "bigint")], batch).groupBy("k").count()
    theirs, batches, _ = run_stream(bench, "large", counted, "update")
    assert last_counts(batches, "k", "count") == rows
    table.speed(f"keyed count, {keys:,} keys: Spark's JVM on RocksDB", rows, theirs)
    table.ratio("  ticks against the JVM, rows a second", theirs.seconds / done.took.seconds, 0.5)
    table.ratio("  ticks against the JVM, rows a CPU-second", theirs.cpu / done.took.cpu, None)


def bench_flink(bench: Bench) -> None:
    """Bids per auction and 10 s window beside Flink SQL, which reads them from files."""
    rows, table = bench.sizes.bids, bench.table
    chance = np.random.default_rng(7)
    auctions = chance.zipf(1.5, rows) % 1000
    at = 1_767_225_600_000 + np.arange(rows) // 10

    def bid(number: int) -> bytes:
        return b'{"auction":%d,"price":%d,"at":%d}' % (auctions[number], number % 997, at[number])

    write(bench.bootstrap, "bids", rows, bid)
    topic = tr.topic("bids", schema="auction BIGINT, price BIGINT, at BIGINT")
    view = tr.view(
        "bids_by_window",
        "SELECT auction, at - at % 10000 AS window_start, count(*) AS bids FROM bids "
        "GROUP BY auction, at - at % 10000",
    )
    done = tick(bench, "flink", [view], [topic], lambda work: run_levels(bench.spark, work), max(rows // 10, 50_000))  # fmt: skip
    assert done.total("bids") == rows, (done.total("bids"), rows)
    table.speed(f"{rows:,} bids, 10 s windows: ticks", rows, done.took)
    python = pipelines_flink.environment()
    if python is None:
        return
    source, target = bench.directory / "bids", bench.directory / "counts"
    source.mkdir()
    for part in range(PARTITIONS):
        with (source / f"{part}.json").open("wb") as file:
            file.writelines(bid(number) + b"\n" for number in range(part, rows, PARTITIONS))
    script = Path(pipelines_flink.__file__)
    run = subprocess.run(
        [str(python), str(script), str(source), str(target)],
        capture_output=True, text=True, env={**os.environ, "JAVA_HOME": str(java.find().home)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    figures = json.loads(run.stdout.strip().splitlines()[-1])
    theirs = Took(figures["seconds"], figures["cpu"])
    counted = pipelines_flink.total(target)
    assert counted == rows, (counted, rows)
    table.speed(f"{rows:,} bids, 10 s windows: Flink SQL, from files", rows, theirs)
    table.ratio("  ticks against Flink, rows a CPU-second", theirs.cpu / done.took.cpu, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by comma")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--ticks", type=int, default=12)
    parser.add_argument("--large-keys", type=int, default=10_000_000)
    parser.add_argument("--bids", type=int, default=10_000_000)
    sizes = parser.parse_args()
    works = {
        "reading": bench_reading, "driver": bench_driver, "count": bench_count, "join": bench_join, "floor": bench_floor,
        "large": bench_large, "flink": bench_flink,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        with BrokerProcess(directory / "log") as broker:
            print("pipelines: state")
            spark = session.start("bench", directory / "spark")
            register_log(spark)
            try:
                table = Table()
                bench = Bench(spark, broker.address, directory, table, sizes)
                for name in sizes.only.split(","):
                    works[name](bench)
            finally:
                spark.stop()
    print(f"  goals missed: {', '.join(name.strip() for name in table.missed) or 'none'}")


if __name__ == "__main__":
    main()
