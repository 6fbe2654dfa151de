"""Nexmark's queries as views beside Flink SQL, in rows per CPU-second.

    make bench-views        or: python -m benchmarks.nexmark [--events 1000000] [--only q04,q05]

Both read the same topics of JSON on the same broker to their ends, keep their state durably
and write their results back into topics in transactions, exactly once. Views: ticks on Spark,
every tick a commit with its state flushed to disk, the changelog of the view. Flink: Nexmark's
own settings (RocksDB, incremental checkpoints, mini batches), a checkpoint every 10 s and at
the end, JSON by the `kafka` connector, or `upsert-kafka` where rows change. With `--blackhole`
Flink runs a second time and writes nothing, as Nexmark's published figures do; views always
write.

CPU is that of all processes: this one, Spark's Java and its Python workers; Flink's Java
process; on both sides the broker. Each side keeps one process for all queries and runs its
first one twice, so that neither is cold; planning and starting a query count. What a row costs
without them is told by a second run over few events (`--few`), subtracted. Rows of the results
are counted on both sides, and those of the views compared with DuckDB's where it knows the query.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import orjson
import sqlglot
from benchmarks import pipelines_flink
from benchmarks.measure import Took, measured
from benchmarks.nexmark_flink import process_cpu

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.compiler.syntax.parse import AnsiSpark
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.spark import java, session
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.levels import run_tick_on_spark
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.testing.nexmark import COLUMNS, events
from tailrace.testing.recompute import MACROS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORY = Path(__file__).parents[1] / "tests" / "views_sql" / "nexmark"
STREAMS = ("person", "auction", "bid")
PARTITIONS = 4
NOT_IN_DUCKDB = {"q05", "q07", "q08", "q11"}
QUERIES = {
    path.stem: path.read_text()
    for path in sorted(DIRECTORY.glob("q*.sql"))
    if path.stem not in ("q06", "q13")  # Flink refuses 6, and looks 13 up by processing time
}


def lines(count: int) -> dict[str, list[bytes]]:
    """The events of each stream as JSON, times without a zone."""
    found: dict[str, list[bytes]] = {name: [] for name in STREAMS}
    for name, row in events(count, late=0.0):
        plain = {k: v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for k, v in row.items()}
        found[name].append(orjson.dumps(plain))
    return found


def write(bootstrap: str, directory: Path, streams: dict[str, list[bytes]]) -> None:
    """The same lines as topics and as files."""
    for name, values in streams.items():
        with Admin(bootstrap) as admin:
            admin.ensure_topic(name, PARTITIONS, {})
        (directory / name).mkdir(parents=True)
        with TransactionalWriter(bootstrap, f"bench.{name}") as writer:
            writer.init()
            for partition in range(PARTITIONS):
                part = values[partition::PARTITIONS]
                (directory / name / f"{partition}.json").write_bytes(b"\n".join(part) + b"\n")
                for first in range(0, len(part), 50_000):
                    writer.send_columns(name, partition, None, part[first : first + 50_000])
                    writer.commit()


def streams_of(sql: str) -> list[str]:
    return [name for name in STREAMS if re.search(rf"\b(FROM|JOIN) {name}\b", sql)]


def ours(
    spark: SparkSession, log: BrokerProcess, directory: Path, name: str, limit: int
) -> tuple[Took, int]:
    """What a view takes from its SQL to the end of its topics, and how many rows it then has."""
    served, view = process_cpu(log.process.pid), f"v_{name}"
    with measured() as took:
        topics = [tr.topic(stream, schema=COLUMNS[stream]) for stream in streams_of(QUERIES[name])]
        graph = compile_views([tr.view(view, QUERIES[name])], [topic_table(t) for t in topics])
        settings = TickSettings(
            f"bench_{directory.name}", log.address, str(directory / "state"),
            str(directory / "cache"), limit=limit,
        )  # fmt: skip
        ticks = ProjectTicks(
            graph, settings, lambda work: run_tick_on_spark(spark, work),
            plain=frozenset(topic.name for topic in topics),
        )  # fmt: skip
        ticks.start()
        while ticks.step(0.0) is not None:
            pass
    took.cpu += process_cpu(log.process.pid) - served
    topic = ticks.main.last.views[view].topic
    ticks.close()
    rows = sum(shown(log.address, topic, bag=graph.views[view].bag).values())
    with Admin(log.address) as admin:
        admin.delete_topic(topic)
    return took, rows


def shown(bootstrap: str, topic: str, *, bag: bool = False) -> dict[bytes, int]:
    """How often each row of a changelog is there; a record without key is a row of its own."""
    found: dict[bytes, int] = {}
    with LogReader(bootstrap) as reader:
        for records in read_all(reader, topic):
            for key, value in zip(records.keys, records.values, strict=True):
                if key is None:
                    found[b""] = found.get(b"", 0) + 1
                    continue
                found.pop(key, None)
                if value is not None:
                    found[key] = orjson.loads(value)["row"]["count"] if bag else 1
    return found


def expected(directory: Path, name: str) -> int | None:
    """How many rows DuckDB gives; None where it does not know the query."""
    if name in NOT_IN_DUCKDB:
        return None
    with duckdb.connect() as database:
        database.execute(MACROS)
        for stream in streams_of(QUERIES[name]):
            kinds = ", ".join(
                f"'{column}': '{kind.replace('STRING', 'VARCHAR')}'"
                for column, kind in (c.strip().split(" ") for c in COLUMNS[stream].split(","))
            )
            files = f"{directory}/{stream}/*.json"
            database.execute(
                f"CREATE VIEW {stream} AS SELECT * FROM read_json('{files}', columns={{{kinds}}})"
            )
        sql = sqlglot.transpile(QUERIES[name], read=AnsiSpark, write="duckdb")[0]
        found = database.execute(f"SELECT count(*) FROM ({sql})").fetchone()
        assert found is not None
        return int(found[0])


@dataclass(frozen=True, slots=True)
class Theirs:
    """What Flink took for a query, how many rows it wrote; or why it did not run."""

    took: Took
    rows: int = 0
    error: str = ""


def flink(log: BrokerProcess, directory: Path, names: list[str]) -> Iterator[tuple[str, Theirs]]:
    """Flink's answers by query; `QUERY/blackhole` writes nothing."""
    python, jar = pipelines_flink.environment(), pipelines_flink.connector()
    if python is None or jar is None:
        return
    directory.mkdir()
    (directory / jar.name).symlink_to(jar)
    with Admin(log.address) as admin:
        for number, name in enumerate([names[0], *names]):
            if not name.endswith("/blackhole"):
                admin.ensure_topic(f"flink_{name}_{number}", PARTITIONS, {})
    run = subprocess.Popen(
        [str(python), str(Path(__file__).with_name("nexmark_flink.py")), log.address,
         str(log.process.pid), str(directory), names[0], *names],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "JAVA_HOME": str(java.find().home)},
    )  # fmt: skip
    assert run.stdout is not None
    first = True
    for line in run.stdout:
        if not line.startswith("{"):
            continue
        answer: dict[str, Any] = json.loads(line)
        name, topic = answer["query"], answer["topic"]
        written = not name.endswith("/blackhole")
        if not first:
            if "error" in answer:
                yield name, Theirs(Took(), error=answer["error"])
            else:
                rows = sum(shown(log.address, topic).values()) if written else 0
                took = Took(answer["seconds"], answer["cpu"] + answer["broker"])
                yield name, Theirs(took, rows)
        first = False
    _, words = run.communicate()
    if run.returncode:
        print(f"  Flink failed: {words.strip()[-500:]}")


@dataclass(frozen=True, slots=True)
class Line:
    """One query at one number of events: rows read, and CPU seconds of both sides."""

    rows: int
    ours: float
    theirs: float | None


def compare(events_: int, options: argparse.Namespace) -> dict[str, Line]:
    """Run every query on both sides, and print the table."""
    names = options.only.split(",")
    found: dict[str, Line] = {}
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(Path(directory) / "log") as log:
        root, streams = Path(directory), lines(events_)
        write(log.address, root / "files", streams)
        theirs: dict[str, Theirs] = {}
        if not options.alone:
            kinds = ("", "/blackhole") if options.blackhole else ("",)
            wanted = [f"{name}{kind}" for name in names for kind in kinds]
            for name, answer in flink(log, root / "flink", wanted):
                theirs[name] = answer
                text = answer.error or f"{answer.took.seconds:.1f} s, CPU {answer.took.cpu:.1f} s"
                print(f"  Flink {name}: {text}", file=sys.stderr, flush=True)
        spark = session.start("bench", root / "spark", master="local[*]", queries=False)
        try:
            print(f"Nexmark, {events_:,} events, load {os.getloadavg()[0]:.0f};", end=" ")
            print("rows read per CPU-second of everything, the broker included")
            print(
                f"  {'':<6}{'rows in':>10}{'rows out':>10}{'views':>10}{'Flink SQL':>11}"
                f"{'ratio':>8}  Flink's rows, and the ratio if it writes nothing",
                flush=True,
            )
            ours(spark, log, root / "warm", names[0], options.limit)
            for name in names:
                rows = sum(len(streams[stream]) for stream in streams_of(QUERIES[name]))
                took, count = ours(spark, log, root / name, name, options.limit)
                want = expected(root / "files", name)
                if want is not None and want != count:
                    raise SystemExit(f"{name} has {count} rows, DuckDB says {want}")
                text = f"  {name:<6}{rows:>10,}{count:>10,}{rows / took.cpu:>10,.0f}"
                other = theirs.get(name, Theirs(Took(), error="not run"))
                found[name] = Line(rows, took.cpu, None if other.error else other.took.cpu)
                if other.error:
                    text += f"  {other.error.strip().splitlines()[0][:100]}"
                else:
                    text += f"{rows / other.took.cpu:>11,.0f}{other.took.cpu / took.cpu:>7.2f}x"
                    text += "  " + ("as many" if other.rows == count else f"{other.rows:,}")
                nothing = theirs.get(f"{name}/blackhole")
                if nothing is not None and not nothing.error:
                    text += f", {nothing.took.cpu / took.cpu:.2f}x"
                print(text, flush=True)
        finally:
            spark.stop()
    return found


def beyond_start(few: dict[str, Line], many: dict[str, Line]) -> None:
    """What a further row costs: what the many took more than the few."""
    print("Rows per CPU-second beyond what a query takes to start")
    better = compared = 0
    for name, line in many.items():
        rows, ours_ = line.rows - few[name].rows, line.ours - few[name].ours
        text = f"  {name:<6}{rows:>10,}{'':>10}{rows / max(ours_, 1e-3):>10,.0f}"
        first, last = few[name].theirs, line.theirs
        if first is not None and last is not None:
            more = max(last - first, 1e-3)
            compared += 1
            better += ours_ <= more
            text += f"{rows / more:>11,.0f}{more / max(ours_, 1e-3):>7.2f}x"
        print(text)
    print(f"  at least as fast on {better} of {compared}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=20_000, help="to tell starting apart; 0: not")
    parser.add_argument("--only", default=",".join(QUERIES))
    parser.add_argument("--limit", type=int, default=200_000, help="records a tick reads at most")
    parser.add_argument("--blackhole", action="store_true", help="also Flink that writes nothing")
    parser.add_argument("--alone", action="store_true", help="without Flink")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - QUERIES.keys():
        parser.error(f"no such query: {', '.join(sorted(unknown))}; there are {', '.join(QUERIES)}")
    few = compare(options.few, options) if options.few else {}
    many = compare(options.events, options)
    pairs = [(line.ours, line.theirs) for line in many.values() if line.theirs is not None]
    better = sum(own <= other for own, other in pairs)
    met = "met" if 2 * better > len(pairs) else "MISSED"
    print(f"  at least as fast on {better} of {len(pairs)}; goal the majority: {met}")
    if few:
        beyond_start(few, many)


if __name__ == "__main__":
    main()
