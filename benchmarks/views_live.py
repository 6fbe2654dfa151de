"""Views as a project runs them: ticks on Spark through a log, and from a commit in Postgres.

    make bench-views        or: python -m benchmarks.views_live [--only ticks,large,fill,changes,latency]

`ticks`: changes come from a log, a tick reads, decodes, computes, writes state and commits.
Time is that of a tick from plan to commit; CPU is of this process, Spark's Java process and
its Python workers. `large`: the same tick on a small and on a large table. `latency`: `tailrace up` over a real Postgres; one row is committed every
so often, and a Kafka client waits for it in the view's changelog. Then nothing happens for a
while, and the processor time of the whole project is counted (the source's heartbeats move the
positions of the views, without a job). Results are compared with a
recompute before they count.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import psutil
import psycopg
from benchmarks.measure import cpu_seconds
from benchmarks.views import MANY, ONE_JOIN, TWO_JOINS

import tailrace as tr
from tailrace.broker.embedded import BrokerProcess
from tailrace.client.ranges import KafkaRanges
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.reading.catalog import read_catalog
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.spark import session
from tailrace.pipelines.ticks.cache_warming import catch_up
from tailrace.pipelines.ticks.driver import Runner, TickSettings
from tailrace.pipelines.ticks.levels import run_levels, run_tick_on_spark
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.pipelines.ticks.small_ticks import catch_up_on_spark, run_on_spark
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views
from tailrace.testing.feed import ChangeFeed, FeedTable
from tailrace.testing.postgres import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = [
    FeedTable(
        "orders",
        (("id", "BIGINT"), ("customer_id", "BIGINT"), ("product_id", "BIGINT"),
         ("amount", "DECIMAL(10,2)")),
        ("id",),
    ),
    FeedTable("customers", (("id", "BIGINT"), ("country", "STRING")), ("id",)),
    FeedTable("products", (("id", "BIGINT"), ("category", "STRING")), ("id",)),
]  # fmt: skip
PRODUCTS = 1000
_NONE = np.empty(0, "i8")
PIPELINE = """
import tailrace as tr
from tailrace import sources

shop = sources.Postgres("shop", dsn=tr.env("SHOP_DSN"), tables=["orders", "customers", "products"])
latest = tr.view("latest", "SELECT id, amount FROM shop.orders WHERE amount > 1")
value = tr.view("value", '''{two_joins}''')
"""
TABLES_DDL = """
    CREATE TABLE customers (id bigint PRIMARY KEY, country text);
    CREATE TABLE products (id bigint PRIMARY KEY, category text);
    CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint, product_id bigint,
                         amount numeric(10,2));
    INSERT INTO customers SELECT n, 'C' || n % 50 FROM generate_series(0, {rows} / 10) n;
    INSERT INTO products SELECT n, 'K' || n % 20 FROM generate_series(0, 999) n;
    INSERT INTO orders SELECT n, n % ({rows} / 10), n % 1000, (n % 10000) / 100.0 + 2
        FROM generate_series(1, {rows}) n"""


@dataclass(slots=True)
class Lines:
    """One line for each figure, with its goal."""

    def figure(self, what: str, found: str, goal: str, good: bool) -> None:
        print(f"{'✓' if good else '✗'} {what:<58}{found:>28}   goal {goal}", flush=True)


class Shop:
    """The tables of one project in a log; what they hold is remembered in three columns."""

    def __init__(self, feed: ChangeFeed, rows: int) -> None:
        self.feed, self.rows, self.customers = feed, rows, max(rows // 10, 100)
        self.gone = 0  # orders that were deleted: the first ones
        self._random = np.random.default_rng(1)
        self._orders = [np.zeros(rows, "i4") for _ in range(3)]  # customer, product, cents

    def fill(self) -> None:
        """Write the base, in transactions of bounded size."""
        for first in range(0, self.customers, 50_000):
            numbers = range(first, min(first + 50_000, self.customers))
            self.feed.transaction(
                *(("customers", {"id": n}, {"country": _country(n)}) for n in numbers)
            )
        self.feed.transaction(
            *(("products", {"id": n}, {"category": _category(n)}) for n in range(PRODUCTS))
        )
        for first in range(0, self.rows, 50_000):
            self._write(np.arange(first, min(first + 50_000, self.rows)))

    def change(self, count: int) -> str:
        return self._write(self._random.choice(self.rows, count, replace=False))

    def _write(self, numbers: np.ndarray, gone: np.ndarray = _NONE) -> str:
        new = [
            self._random.integers(0, end, len(numbers))
            for end in (self.customers, PRODUCTS, 10_000)
        ]
        for column, values in zip(self._orders, new, strict=True):
            column[numbers] = values
        rows = zip(numbers.tolist(), *(values.tolist() for values in new), strict=True)
        return self.feed.transaction(
            *(
                ("orders", {"id": n}, {
                    "customer_id": customer, "product_id": product,
                    "amount": f"{cents // 100}.{cents % 100:02}",
                })
                for n, customer, product, cents in rows
            ),
            *(("orders", {"id": n}, None) for n in gone.tolist()),
        )  # fmt: skip

    def mixed(self, count: int) -> str:
        """Updates, inserts behind all others, and deletes of what stood in front."""
        new, gone = count // 5, count // 5
        chosen = self._random.choice(self.rows - self.gone, count - new - gone, replace=False)
        numbers = np.append(chosen + self.gone, np.arange(self.rows, self.rows + new))
        numbers = numbers[numbers >= self.gone + gone]
        ended = np.arange(self.gone, self.gone + gone)
        self.rows, self.gone = self.rows + new, self.gone + gone
        self._orders = [np.append(column, np.zeros(new, "i4")) for column in self._orders]
        return self._write(numbers, ended)

    def one_join(self) -> dict[str, list[int]]:
        """The view of one join, recomputed."""
        customer, _, cents = (column[self.gone :] for column in self._orders)
        groups = customer % 50
        counts, sums = np.bincount(groups, minlength=50), np.bincount(groups, cents, 50)
        pairs = enumerate(zip(counts.tolist(), sums.tolist(), strict=True))
        return {_country(group): [count, int(total)] for group, (count, total) in pairs}

    @property
    def read(self) -> int:
        """The rows that a view of all three tables reads."""
        return self.rows + self.customers + PRODUCTS

    def truth(self) -> dict[tuple[str, str], list[int]]:
        """The view of two joins, recomputed."""
        customer, product, cents = self._orders
        groups = customer % 50 * 20 + product % 20
        counts, sums = np.bincount(groups, minlength=1000), np.bincount(groups, cents, 1000)
        return {
            (_country(group // 20), _category(group % 20)): [count, int(total)]
            for group, (count, total) in enumerate(zip(counts.tolist(), sums.tolist(), strict=True))
            if count
        }


def _country(customer: int) -> str:
    return f"C{customer % 50}"


def _category(product: int) -> str:
    return f"K{product % 20}"


def ticks(lines: Lines, options: argparse.Namespace) -> None:
    """A tick of `--changes` on Spark: one task, over levels, ten views."""
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(Path(directory) / "log") as log:
        spark = session.start("bench", Path(directory) / "spark", master="local[2]", queries=False)
        try:
            _ticks(spark, log.address, Path(directory), lines, options)
        finally:
            spark.stop()


def _ticks(
    spark: SparkSession, bootstrap: str, directory: Path, lines: Lines, options: argparse.Namespace
) -> None:
    with ChangeFeed(bootstrap, "shop", TABLES, remember=False) as feed:
        shop = Shop(feed, options.rows)
        shop.fill()
        runs: list[tuple[str, list[str], Runner]] = [
            ("one", [TWO_JOINS], lambda work: run_on_spark(spark, work)),
            ("levels", [TWO_JOINS], lambda work: run_levels(spark, work)),
            ("ten", MANY, lambda work: run_on_spark(spark, work)),
        ]
        projects: dict[str, ProjectTicks] = {}
        declared: dict[str, list[Any]] = {}
        with contextlib.ExitStack() as opened:
            for name, sql, run in runs:
                declared[name] = [tr.view(f"{name}{n}", text) for n, text in enumerate(sql)]
                with LogReader(bootstrap) as reader:
                    tables = read_catalog(reader, ["shop"]).tables.values()
                settings = TickSettings(
                    f"bench{name}", bootstrap, str(directory / name / "state"),
                    str(directory / name / "cache"),
                )  # fmt: skip
                runner = _Switch(lambda work: run_tick_on_spark(spark, work))
                project = ProjectTicks(compile_views(declared[name], tables), settings, runner)
                opened.callback(project.close)
                project.start()
                _filled(project, shop)
                runner.run = run
                projects[name] = project
            measured: dict[str, Measured] = {}
            for names in (["levels"], ["one", "ten"]):  # what is compared takes turns
                chosen = {name: projects[name] for name in names}
                measured |= _measure(dict.fromkeys(names, shop), chosen, options)
            _caught_up(projects["levels"], shop)
            for name, views in declared.items():
                _compare(bootstrap, directory / name / "views", f"bench{name}", views, shop)
    _tell_ticks(measured, lines)


def large(lines: Lines, options: argparse.Namespace) -> None:
    """A tick of `--changes` on a table of `--rows` and on one of `--large`, in turns."""
    with tempfile.TemporaryDirectory() as name, BrokerProcess(Path(name) / "log") as log:
        directory = Path(name)
        spark = session.start("bench", directory / "spark", master="local[2]", queries=False)
        with contextlib.ExitStack() as opened:
            opened.callback(spark.stop)
            shops: dict[str, Shop] = {}
            projects: dict[str, ProjectTicks] = {}
            for source, rows in (("small", options.rows), ("large", options.large)):
                feed = opened.enter_context(ChangeFeed(log.address, source, TABLES, remember=False))
                shop = shops[source] = Shop(feed, rows)
                shop.fill()
                with LogReader(log.address) as reader:
                    tables = read_catalog(reader, [source]).tables.values()
                view = tr.view(source, TWO_JOINS.replace("shop.", f"{source}."))
                settings = TickSettings(
                    source, log.address, str(directory / source / "state"),
                    str(directory / source / "cache"),
                )  # fmt: skip
                runner = _Switch(lambda work: run_tick_on_spark(spark, work))
                project = ProjectTicks(compile_views([view], tables), settings, runner)
                opened.callback(project.close)
                project.start()
                _filled(project, shop)
                runner.run = lambda work: run_on_spark(spark, work)
                projects[source] = project
            measured = _measure(shops, projects, options)
            for source, shop in shops.items():
                _compare_rows(log.address, directory / source / "views", source, source, shop)
    little, much = measured["small"], measured["large"]
    slower, cpu = much.clock / little.clock, much.cpu / little.cpu
    lines.figure(f"a tick on {options.large:,} against {options.rows:,} orders",
                 f"{much.clock * 1000:.0f}/{little.clock * 1000:.0f} ms: {slower:.2f}x,"
                 f" CPU {much.cpu * 1000:.0f}/{little.cpu * 1000:.0f} ms: {cpu:.2f}x",
                 "≤ 1.2x", slower <= 1.2 and cpu <= 1.2)  # fmt: skip
    lines.figure("the same with what is done in the pause after it",
                 f"CPU {much.whole * 1000:.0f}/{little.whole * 1000:.0f} ms:"
                 f" {much.whole / little.whole:.2f}x", "≤ 1.2x",
                 much.whole / little.whole <= 1.2)  # fmt: skip


def fill(lines: Lines, options: argparse.Namespace) -> None:
    """First fill of a join with GROUP BY, from the log to the changelog."""
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(Path(directory) / "log") as log:
        spark = session.start("bench", Path(directory) / "spark", master="local[2]", queries=False)
        try:
            with ChangeFeed(log.address, "shop", TABLES, remember=False) as feed:
                shop = Shop(feed, options.fill)
                shop.fill()
                with LogReader(log.address) as reader:
                    tables = read_catalog(reader, ["shop"]).tables.values()
                graph = compile_views([tr.view("filled", ONE_JOIN)], tables)
                settings = TickSettings(
                    "fill", log.address, str(Path(directory) / "state"),
                    str(Path(directory) / "cache"),
                )  # fmt: skip
                project = ProjectTicks(graph, settings, lambda w: run_tick_on_spark(spark, w))
                project.start()
                before = cpu_seconds()
                rate = _filled(project, shop)
                spent = cpu_seconds() - before
                project.close()
        finally:
            spark.stop()
    lines.figure(f"first fill, {options.fill:,} x {shop.customers:,} join with GROUP BY",
                 f"{rate:,.0f} rows/s, {shop.read / spent:,.0f} a CPU-s", "≥ 100,000 rows/s",
                 rate >= 100_000)  # fmt: skip


def changes(lines: Lines, options: argparse.Namespace) -> None:
    """Small ticks on the filled view: 60 % updates, 20 % inserts and 20 % deletes of orders."""
    with tempfile.TemporaryDirectory() as name, BrokerProcess(Path(name) / "log") as log:
        directory = Path(name)
        conf = {session.RESIDENT_TASKS: "0"} if options.jobs else {}
        spark = session.start(
            "bench", directory / "spark", master="local[2]", conf=conf, queries=False
        )
        try:
            with ChangeFeed(log.address, "shop", TABLES, remember=False) as feed:
                shop = Shop(feed, options.fill)
                shop.fill()
                with LogReader(log.address) as reader:
                    tables = read_catalog(reader, ["shop"]).tables.values()
                graph = compile_views([tr.view("filled", ONE_JOIN)], tables)
                settings = TickSettings(
                    "fill", log.address, str(directory / "state"), str(directory / "cache"),
                    shards=options.shards,
                )  # fmt: skip
                project = ProjectTicks(graph, settings, lambda w: run_tick_on_spark(spark, w))
                project.start()
                before = cpu_seconds()
                _filled(project, shop)
                filled = (cpu_seconds() - before) / shop.read
                clocks: list[float] = []
                spent = 0.0
                for number in range(options.warm + options.ticks):
                    position = shop.mixed(options.changes)
                    before = cpu_seconds()
                    _caught_up_to(project, shop, position)
                    catch_up_on_spark(spark, project.main.settings, project.main.last)
                    time.sleep(0.05)  # the pause, in which caches catch up
                    if number >= options.warm:
                        spent += cpu_seconds() - before
                        clocks.append(project.main.worked_seconds)
                shown = _one_join(log.address, directory / "views", "fill", "filled")
                if shown != shop.one_join():
                    raise SystemExit("the view does not equal its recompute")
                project.close()
        finally:
            spark.stop()
    each = spent / options.ticks / options.changes
    p50 = statistics.median(clocks)
    lines.figure(f"first fill, {options.fill:,} x {shop.customers:,} join with GROUP BY",
                 f"{filled * 1e6:.1f} µs CPU a row", "≤ 5 µs", filled <= 5e-6)  # fmt: skip
    lines.figure(f"{options.changes:,} changes on that state, CPU of all but the broker",
                 f"{each * 1e6:.1f} µs a change, p50 {p50 * 1000:.0f} ms", "≤ 35 µs, ≤ 40 ms",
                 each <= 35e-6 and p50 <= 0.04)  # fmt: skip


def _one_join(bootstrap: str, directory: Path, project: str, name: str) -> dict[str, list[int]]:
    log = KafkaRanges(bootstrap)
    try:
        with Follower(directory, log, project) as follower, Views(directory) as served:
            follower.step(1.0)
            rows = served.rows(name, limit=100_000).rows
    finally:
        log.close()
    return {r["country"]: [r["orders"], int(str(r["value"]).replace(".", ""))] for r in rows}


def _tell_ticks(measured: dict[str, Measured], lines: Lines) -> None:
    one, levels, ten = measured["one"], measured["levels"], measured["ten"]
    lines.figure("two joins, GROUP BY: a tick in one task, p50",
                 f"{one.clock * 1000:.0f} ms, {one.whole * 1000:.0f} ms CPU",
                 "≤ 200 ms, ≤ 300 ms CPU", one.clock <= 0.2 and one.whole <= 0.3)  # fmt: skip
    lines.figure("the same over levels, p50",
                 f"{levels.clock * 1000:.0f} ms, {levels.whole * 1000:.0f} ms CPU",
                 "≤ 450 ms", levels.clock <= 0.45)  # fmt: skip
    more = ten.clock / one.clock
    lines.figure("ten views on the same tables, p50",
                 f"{ten.clock * 1000:.0f} ms: {more:.2f}x, CPU {ten.whole / one.whole:.2f}x",
                 "≤ 1.5x of one", more <= 1.5)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of a tick: on the clock (median), of CPU (mean), and of CPU with what is done in
    the pause after it, where caches are brought up to date."""

    clock: float
    cpu: float
    whole: float


@dataclass(slots=True)
class _Switch:
    """Runs ticks one way, later another."""

    run: Runner

    def __call__(self, work: Any) -> Any:
        return self.run(work)


def _filled(project: ProjectTicks, shop: Shop) -> float:
    """Read the base; rows a second."""
    began = time.perf_counter()
    _caught_up(project, shop)
    return shop.read / (time.perf_counter() - began)


def _caught_up(project: ProjectTicks, shop: Shop) -> None:
    """Tick until everything is read."""
    _caught_up_to(project, shop, shop.feed.text_position)


def _caught_up_to(project: ProjectTicks, shop: Shop, position: str) -> None:
    source = shop.feed.source
    while project.waiting or project.main.last.positions.get(source) != position:
        project.step(0.5)


def _measure(
    shops: Mapping[str, Shop], projects: Mapping[str, ProjectTicks], options: argparse.Namespace
) -> dict[str, Measured]:
    """What ticks take, after some to warm up.

    The projects take turns with the same changes, each time the other way round, so that what
    else the machine does meets all of them alike.
    """
    clocks: dict[str, list[float]] = {name: [] for name in projects}
    cpu, pauses = dict.fromkeys(projects, 0.0), dict.fromkeys(projects, 0.0)
    for number in range(options.warm + options.ticks):
        positions = {shop.feed.source: shop.change(options.changes) for shop in _once(shops)}
        for name in sorted(projects, reverse=number % 2 == 1):
            project, source = projects[name], shops[name].feed.source
            before = cpu_seconds()
            while project.main.last.positions.get(source) != positions[source]:
                project.step(0.5)
            after, pause = cpu_seconds(), time.process_time()
            catch_up(project.main.settings, project.main.last)
            if number >= options.warm:
                cpu[name] += after - before
                pauses[name] += time.process_time() - pause
                clocks[name].append(project.main.worked_seconds)
    ticks = options.ticks
    return {
        name: Measured(
            statistics.median(times), cpu[name] / ticks, (cpu[name] + pauses[name]) / ticks
        )
        for name, times in clocks.items()
    }


def _once(shops: Mapping[str, Shop]) -> list[Shop]:
    return list({shop.feed.source: shop for shop in shops.values()}.values())


def _compare(bootstrap: str, directory: Path, project: str, views: list[Any], shop: Shop) -> None:
    name = next(view.name for view in views if view.sql == TWO_JOINS)
    _compare_rows(bootstrap, directory, project, name, shop)


def _compare_rows(bootstrap: str, directory: Path, project: str, name: str, shop: Shop) -> None:
    """The view of two joins as a reader sees it equals its recompute."""
    log = KafkaRanges(bootstrap)
    try:
        with Follower(directory, log, project) as follower, Views(directory) as served:
            follower.step(1.0)
            rows = served.rows(name, limit=100_000).rows
    finally:
        log.close()
    shown = {
        (r["country"], r["category"]): [r["orders"], int(str(r["value"]).replace(".", ""))]
        for r in rows
    }
    if shown != shop.truth():
        raise SystemExit(f"{name} does not equal its recompute")


def latency(lines: Lines, options: argparse.Namespace) -> None:
    """From a commit in Postgres to the row in the changelog topic; then rest."""
    with tempfile.TemporaryDirectory() as name, PostgresServer() as server:
        directory = Path(name)
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(TABLES_DDL.format(rows=options.rows))
        process = _project(directory, server.dsn())
        try:
            _latency(directory, server.dsn(), process, lines, options)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _project(directory: Path, dsn: str) -> subprocess.Popen[bytes]:
    (directory / "tailrace.toml").write_text(
        '[project]\nname = "bench"\n[log]\nlisten = "127.0.0.1:0"\n'
        '[console]\nlisten = "127.0.0.1:0"\n[spark]\nmaster = "local[2]"\n'
    )
    (directory / "pipelines").mkdir()
    (directory / "pipelines" / "main.py").write_text(PIPELINE.format(two_joins=TWO_JOINS))
    with (directory / "up.txt").open("wb") as output:
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("tailrace")), "up", str(directory)],
            env=dict(os.environ, SHOP_DSN=dsn), stdout=output, stderr=output,
        )  # fmt: skip


def _latency(
    directory: Path,
    dsn: str,
    process: subprocess.Popen[bytes],
    lines: Lines,
    options: argparse.Namespace,
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    bootstrap = _ready(directory, process, options.rows)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_committed",
         "fetch.wait.max.ms": 50}
    )  # fmt: skip
    partitions = consumer.list_topics("latest").topics["latest"].partitions
    ends = {p: consumer.get_watermark_offsets(TopicPartition("latest", p))[1] for p in partitions}
    consumer.assign([TopicPartition("latest", p, end) for p, end in ends.items()])
    chosen = random.Random(2)
    took: list[float] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(options.commits + 20):
            time.sleep(chosen.uniform(0.05, 0.6))
            key = chosen.randrange(1, options.rows)
            amount = f"{number + 10}.{chosen.randrange(10, 99)}"
            connection.execute("UPDATE orders SET amount = %s WHERE id = %s", (amount, key))
            committed = time.perf_counter()
            for value in _values(consumer):
                row = orjson.loads(value)["row"]
                if row["id"] == key and row["amount"] == amount:
                    break
            if number >= 20:  # Spark is warm by then
                took.append(time.perf_counter() - committed)
                if took[-1] > 5:
                    words = (directory / "up.txt").read_text().splitlines()[-8:]
                    print(f"  commit {number} took {took[-1]:.1f} s:", *words, sep="\n    ")
    consumer.close()
    took.sort()
    p50, p99 = statistics.median(took), took[int(len(took) * 0.99)]
    lines.figure(f"commit in Postgres → changelog, {len(took)} commits",
                 f"p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms", "≤ 400 ms, ≤ 1,500 ms",
                 p50 <= 0.4 and p99 <= 1.5)  # fmt: skip
    time.sleep(10)
    root = psutil.Process(process.pid)
    before, ticked = _all_seconds(root), _tick(directory)
    time.sleep(options.idle)
    cores = (_all_seconds(root) - before) / options.idle
    lines.figure("an idle project, all processes with Spark's",
                 f"{cores * 100:.1f} % of a core, {_tick(directory) - ticked} heartbeats",
                 "≤ 5 %", cores <= 0.05)  # fmt: skip


def _values(consumer: Any) -> Iterator[bytes]:
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None and message.value() is not None:
            yield message.value()
    raise SystemExit("a committed row did not arrive within 30 s")


def _ready(directory: Path, process: subprocess.Popen[bytes], rows: int) -> str:
    """Wait until the views hold every row; the log's address."""
    limit = time.monotonic() + 240
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise SystemExit((directory / "up.txt").read_text())
        # Until the views are there, opening them is an error.
        with contextlib.suppress(TailraceError), Views(directory / ".tailrace" / "views") as views:
            if views.sql("SELECT count(*) AS n FROM latest").rows[0]["n"] == rows:
                report = (directory / ".tailrace" / "run" / "broker-log.json").read_text()
                return str(json.loads(report)["address"])
        time.sleep(0.5)
    raise SystemExit("the project was not filled within 240 s")


def _tick(directory: Path) -> int:
    report = directory / ".tailrace" / "run" / "pipelines-bench.json"
    return int(json.loads(report.read_text())["tick"])


def _all_seconds(root: psutil.Process) -> float:
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            spent = process.cpu_times()
        except psutil.Error:
            continue
        total += spent.user + spent.system
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="ticks,large,fill,changes,latency")
    parser.add_argument("--rows", type=int, default=100_000, help="orders there are")
    parser.add_argument("--large", type=int, default=5_000_000, help="orders of a large table")
    parser.add_argument("--fill", type=int, default=1_000_000, help="orders of the first fill")
    parser.add_argument("--changes", type=int, default=1000, help="changed orders a tick")
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--ticks", type=int, default=25)
    parser.add_argument("--shards", type=int, default=4, help="changes: of the state")
    parser.add_argument("--jobs", action="store_true", help="changes: no resident tasks")
    parser.add_argument("--commits", type=int, default=120)
    parser.add_argument("--idle", type=int, default=20, help="seconds of rest")
    options = parser.parse_args()
    lines = Lines()
    parts = options.only.split(",")
    if "ticks" in parts:
        print(f"{options.changes} changed of {options.rows:,} orders a tick, on Spark, from a log")
        ticks(lines, options)
    if "large" in parts:
        large(lines, options)
    if "fill" in parts:
        fill(lines, options)
    if "changes" in parts:
        changes(lines, options)
    if "latency" in parts:
        print("a project over Postgres, as `tailrace up` runs it")
        latency(lines, options)


if __name__ == "__main__":
    main()
