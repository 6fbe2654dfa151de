"""`tr.pattern` beside Flink SQL's MATCH_RECOGNIZE: rows per CPU-second, topic to topic.

    python -m benchmarks.patterns [--rows 500000] [--keys 32000]     (make bench-patterns)

Both read the same topic of JSON, a little out of order, to its end, keep their state durably and
write matches into a topic in transactions. CPU is that of all processes: this one with Spark's
Java and its workers, or Flink's Java process; the broker on both sides. Each side runs a pattern
over a few rows first: what starting costs is left out. The matches are compared one by one.
Flink's rows are left out, with the reason, where Flink or its connector cannot be had.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from benchmarks import pipelines_flink
from benchmarks.measure import Table, Took, measured
from benchmarks.patterns_flink import PATTERNS, process_cpu

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler.declared_patterns import compile_patterns
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.spark import java, session
from tailrace.pipelines.ticks.driver import Runner, TickSettings
from tailrace.pipelines.ticks.levels import run_tick_on_spark
from tailrace.pipelines.ticks.patterns import PatternTicks, key_of

START = datetime(2026, 1, 1, tzinfo=UTC)
PARTITIONS = 2
FEW = 2_000
GOALS = {"automaton": 3.0, "threads": 2.0}


def write(bootstrap: str, name: str, rows: int, keys: int) -> None:
    """Rows in an order that is wrong by up to 10 s, and one per partition that ends all time."""
    rng = random.Random(1)
    with Admin(bootstrap) as admin:
        admin.ensure_topic(name, PARTITIONS, {})
    with TransactionalWriter(bootstrap, f"bench.{name}") as writer:
        writer.init()
        parts: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        for number in range(rows):
            key = rng.randrange(keys)
            # Times of their own: two rows of one time have no order that both sides know.
            at = START + timedelta(
                milliseconds=10 * number + 10 * rng.randrange(-500, 500) + rng.randrange(10)
            )
            parts[key % PARTITIONS].append(
                _row(key, rng.choice((0, 1, 1, 1, 2, 3)), rng.randrange(100), at)
            )
        for partition, part in enumerate(parts):
            last = START + timedelta(days=1) + timedelta(milliseconds=10 * rows)
            part.append(_row(keys + partition, 9, 0, last))
            for first in range(0, len(part), 50_000):
                writer.send_columns(name, partition, None, part[first : first + 50_000])
                writer.commit()


def _row(key: int, kind: int, price: int, at: datetime) -> bytes:
    text = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return orjson.dumps({"k": key, "kind": kind, "price": price, "at": text})


def ours(run: Runner, log: BrokerProcess, directory: Path, pattern: str, source: str) -> Took:
    measures, steps, define = PATTERNS[pattern]
    rows = tr.topic(
        source, schema="k INT, kind INT, price DOUBLE, at TIMESTAMP", time="at",
        watermark="30 seconds", late="drop", ahead="3650 days",
    )  # fmt: skip
    select = dict(reversed(one.split(" AS ")) for one in measures.split(", "))
    conditions = dict(one.split(" AS ") for one in define.split(", "))
    declared = tr.pattern(
        f"ours_{pattern}_{source}", rows, key="k", order_by="at", match=steps,
        define=conditions, select=select,
    )  # fmt: skip
    compiled, wrong = compile_patterns([declared], {})
    if wrong:
        raise next(iter(wrong.values()))
    name = declared.name
    settings = TickSettings(
        key_of("bench", name), log.address, str(directory / name / "state"),
        str(directory / name / "cache"), shards=4, limit=100_000, declared=frozenset([name]),
        dead=f"{name}.dead",
    )  # fmt: skip
    served = process_cpu(log.process.pid)
    with measured() as took:
        ticks = PatternTicks(compiled[name], settings, run, beginning={})
        with contextlib.closing(ticks):
            ticks.begin()
            while ticks.step(0.0) is not None:
                pass
    took.cpu += process_cpu(log.process.pid) - served
    return took


def flink(log: BrokerProcess, directory: Path, wanted: list[str]) -> Iterator[dict[str, Any]]:
    """What Flink took, pattern by pattern; or raises with the reason why there is none."""
    python, jar = pipelines_flink.environment(), pipelines_flink.connector()
    if python is None or jar is None:
        raise FileNotFoundError("Flink or its connector cannot be had here")
    directory.mkdir()
    (directory / jar.name).symlink_to(jar)
    with Admin(log.address) as admin:
        for name in wanted:
            admin.ensure_topic(f"flink_{name.replace(':', '_')}", PARTITIONS, {})
    script = Path(__file__).with_name("patterns_flink.py")
    run = subprocess.Popen(
        [str(python), str(script), log.address, str(log.process.pid), str(directory), *wanted],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "JAVA_HOME": str(java.find().home)},
    )  # fmt: skip
    assert run.stdout is not None
    for line in run.stdout:
        if line.startswith("{"):
            yield json.loads(line)
    _, words = run.communicate()
    if run.returncode:
        raise RuntimeError(f"Flink failed: {words.strip()[-800:]}")


def matches(bootstrap: str, topic: str) -> Counter[tuple[int, int, float]]:
    found: Counter[tuple[int, int, float]] = Counter()
    with LogReader(bootstrap) as reader:
        for records in read_all(reader, topic):
            for value in records.values:
                one = orjson.loads(value or b"{}")
                found[one["k"], one["falls"], one["price"]] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--keys", type=int, default=32_000)
    parser.add_argument("--only", default=",".join(PATTERNS))
    options = parser.parse_args()
    names = options.only.split(",")
    with tempfile.TemporaryDirectory() as text, BrokerProcess(Path(text) / "log") as log:
        directory = Path(text)
        write(log.address, "few", FEW, 100)
        write(log.address, "many", options.rows, options.keys)
        print(
            f"patterns, {options.rows:,} rows of {options.keys:,} keys, load {os.getloadavg()[0]:.0f}"
        )
        table = Table()
        spark = session.start("bench", directory / "spark", master="local[*]", queries=False)
        mine: dict[str, Took] = {}
        try:
            for name in names:
                ours(lambda work: run_tick_on_spark(spark, work), log, directory, name, "few")
                mine[name] = ours(
                    lambda work: run_tick_on_spark(spark, work), log, directory, name, "many"
                )
                table.speed(f"{PATTERNS[name][1]}: tr.pattern", options.rows, mine[name])
        finally:
            spark.stop()
        wanted = [f"{name}:{source}" for name in names for source in ("few", "many")]
        try:
            for told in flink(log, directory / "flink", wanted):
                name = told["pattern"]
                if told["input"] == "few":
                    continue
                took = Took(told["seconds"], told["cpu"] + told["broker"])
                table.speed(
                    f"{PATTERNS[name][1]}: Flink SQL {pipelines_flink.VERSION}", options.rows, took
                )
                table.ratio("  rows a CPU-second", took.cpu / mine[name].cpu, GOALS[name])
                here, there = (
                    matches(log.address, f"ours_{name}_many"),
                    matches(log.address, told["topic"]),
                )
                only = sum((here - there).values()), sum((there - here).values())
                table.figure(
                    "  matches",
                    f"{here.total():,}; not Flink's {only[0]:,}, Flink's alone {only[1]:,}",
                )
        except (FileNotFoundError, RuntimeError) as problem:
            print(f"  beside Flink: skipped: {problem}")
    print(f"  goals missed: {', '.join(name.strip() for name in table.missed) or 'none'}")


if __name__ == "__main__":
    main()
