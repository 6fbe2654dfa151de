"""Stored queries on a log: every pair once, whatever is killed; queries of a captured table."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from pipelines.ticks.killed_patterns import STEPS, in_process
from pipelines.ticks.killed_percolations import declared, ticks_of
from tailrace import config
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Percolation
from tailrace.pipelines.process.running_patterns import RunningPatterns
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.patterns import PatternTicks
from tailrace.sources.declare import TableRef
from tailrace.telemetry.part import Part
from tailrace.testing.feed import ChangeFeed, FeedTable

SCRIPT = Path(__file__).parent / "killed_percolations.py"
OFTEN = ("row sent",)  # the narrowest place; the others by `make test-crash`


class Market:
    """Topics of listings and of searches, and a percolation over them."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap, self.directory = bootstrap, directory
        self.name = f"m{uuid.uuid4().hex[:6]}"
        with Admin(bootstrap) as admin:
            admin.ensure_topic(f"{self.name}_listings", 2, {})
            admin.ensure_topic(f"{self.name}_searches", 2, {"cleanup.policy": "compact"})

    def offer(self, *rows: tuple[int, str, int] | bytes) -> None:
        self._write(
            "listings",
            [
                (
                    row[0] % 2,
                    None,
                    orjson.dumps(dict(zip(("id", "title", "price"), row, strict=True))),
                )
                if isinstance(row, tuple)
                else (0, None, row)
                for row in rows
            ],
        )

    def search(self, identity: int, query: str | None, **more: Any) -> None:
        """Store a query; None removes it."""
        row = {"id": identity, "query": query, "owner": f"o{identity}", **more}
        value = None if query is None else orjson.dumps(row)
        self._write("searches", [(identity % 2, orjson.dumps({"id": identity}), value)])

    def _write(self, topic: str, records: list[tuple[int, bytes | None, bytes | None]]) -> None:
        with TransactionalWriter(self.bootstrap, f"w{self.name}") as writer:
            writer.init()
            for partition, key, value in records:
                writer.send(f"{self.name}_{topic}", partition, key, value)
            writer.commit()

    @contextlib.contextmanager
    def ticking(
        self, percolation: Percolation | None = None, **more: Any
    ) -> Iterator[PatternTicks]:
        ticks = ticks_of(
            self.bootstrap, percolation or declared(self.name), str(self.directory), **more
        )
        with contextlib.closing(ticks):
            ticks.begin()
            yield ticks

    def finish(self, percolation: Percolation | None = None, **more: Any) -> None:
        """Tick until nothing is due any more."""
        with self.ticking(percolation, **more) as ticks:
            while ticks.step(0.0) is not None:
                pass

    def told(self, end: str = "") -> list[dict[str, Any]]:
        return _told(self.bootstrap, f"{self.name}_alerts{end}")

    def pairs(self) -> Counter[tuple[int, int]]:
        return Counter((one["query_id"], one["event"]["id"]) for one in self.told())


def _told(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    with LogReader(bootstrap) as reader:
        return [
            orjson.loads(value)
            for records in read_all(reader, topic)
            for value in records.values
            if value is not None
        ]


@pytest.mark.parametrize(
    "step",
    [step if step in OFTEN else pytest.param(step, marks=pytest.mark.crash) for step in STEPS],
)
def test_every_pair_is_told_once_when_ticks_are_killed(
    log_address: str, tmp_path: Path, step: str
) -> None:
    market = Market(log_address, tmp_path)
    colours = ("red", "blue", "green")
    for number in range(9):
        market.search(number, f"{colours[number % 3]} AND price:<{10 * number}")
    market.finish()  # the queries are in force
    rows = [(n, f"a {colours[n % 3]} boat", n % 90) for n in range(120)]
    market.offer(*rows)
    for number in (1, 3):
        run = subprocess.run(
            [sys.executable, str(SCRIPT), log_address, market.name, str(tmp_path), step, str(number)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert run.returncode == -signal.SIGKILL, run.stderr
    market.finish()
    assert market.pairs() == Counter(
        (q, n) for n, _, price in rows for q in range(9) if q % 3 == n % 3 and price < 10 * q
    )


def test_a_query_counts_from_the_tick_that_reads_it_with_the_events_of_that_tick(
    log_address: str, tmp_path: Path
) -> None:
    market = Market(log_address, tmp_path)
    market.offer((1, "red", 1))
    market.finish()
    market.search(1, "red")
    market.offer((2, "red", 1))
    market.finish()
    market.search(1, "blue")
    market.search(2, "red OR")
    market.offer((3, "red", 1), (4, "blue", 1), b"nothing")
    market.finish(run=run_levels_here)  # the other executor
    market.search(1, None)
    market.offer((5, "blue", 1))
    market.finish()
    told = [(one["event"]["id"], one["query_version"], one["owner"]) for one in market.told()]
    assert told == [(2, 2, "o1"), (4, 3, "o1")]
    reasons = sorted(one["reason"] for one in market.told(".dead"))
    assert len(reasons) == 2
    assert reasons[1].startswith("stored query 2 cannot be read: something to look for is missing")
    place = next(one["position"] for one in market.told(".dead") if "stored" in one["reason"])
    assert place == f"log:{market.name}_searches/0:0"


def test_once_holds_over_restarts(log_address: str, tmp_path: Path) -> None:
    market = Market(log_address, tmp_path)
    percolation = declared(market.name, once="once")
    market.search(1, "red", once=True)
    market.search(2, "red", once=False)
    for number in range(3):
        market.offer((number, "red", 1))
        market.finish(percolation)
    assert market.pairs() == Counter({(1, 0): 1, (2, 0): 1, (2, 1): 1, (2, 2): 1})


def test_events_wait_for_the_first_copy_of_a_captured_table_of_queries(
    log_address: str, tmp_path: Path
) -> None:
    market = Market(log_address, tmp_path)
    source = f"shop{market.name}"
    columns = (("id", "INT"), ("query", "STRING"))
    percolation = tr.percolate(
        f"{market.name}_alerts",
        tr.topic(f"{market.name}_listings", schema="id INT, title STRING, price INT"),
        queries=TableRef(source, "public", "searches"), id="id", query="query", text="title",
    )  # fmt: skip
    part = Part("shop", "pipelines", "shop", log_address, tmp_path / "t")
    settings = config.load(tmp_path)
    running = RunningPatterns([percolation], part, settings, in_process)
    market.offer((1, "red", 1))
    reader = LogReader(log_address)

    def go() -> list[tuple[int, int]]:
        for _ in range(8):
            running.step(reader)
            threading.Event().wait(0.02)
        if percolation.name not in reader.topics():
            return []
        told = _told(log_address, percolation.name)
        return [(one["query_id"], one["event"]["id"]) for one in told]

    try:
        with ChangeFeed(log_address, source, [FeedTable("searches", columns, ("id",))]) as feed:
            feed.transaction(("searches", {"id": 7}, {"query": "red"}), copying=["searches"])
            assert go() == []
            assert running.progress()[percolation.name]["error"] is None
            feed.transaction(("searches", {"id": 8}, {"query": "red price"}))
            assert go() == [(7, 1), (8, 1)], running.errors()
            feed.transaction(("searches", {"id": 7}, None))
            feed.transaction(("searches", {"id": 8}, {"query": "blue"}))
            assert len(go()) == 2
            market.offer((2, "red blue", 1))
            assert go()[2:] == [(8, 2)]
    finally:
        for life in running._lives.values():
            running._stop(life)
        reader.close()
