"""Directories that earlier versions made start under today's code and go on.

Each archive in `kept` is a project that was killed in the middle of its work, with its sink behind:
log, state, and databases, without caches. Whoever changes a durable format adds one (`kept/README.md`).
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from pipelines.ticks.test_ticks import in_process
from servers.archives import unpack
from tailrace.broker.embedded import BrokerThread
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.reading.catalog import read_catalog
from tailrace.pipelines.reading.ranges import LogRanges
from tailrace.pipelines.reading.reader import LogReader, Range
from tailrace.pipelines.ticks.driver import TickSettings, last_row
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.pipelines.ticks.verification import contents
from tailrace.project.load import load

KEPT = Path(__file__).parent / "kept"
PROGRAM = str(Path(sys.executable).with_name("tailrace"))
VIEWS = {"orders_by_country", "names", "large"}


@pytest.fixture(params=sorted(path.name for path in KEPT.glob("*.tar.xz")))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A kept directory, somewhere else, with ports of its own."""
    with tarfile.open(KEPT / request.param) as archive:
        unpack(archive, tmp_path)
    settings = tmp_path / "tailrace.toml"
    settings.write_text(
        '[project]\nname = "kept"\n[log]\nlisten = "127.0.0.1:0"\n'
        '[console]\nlisten = "127.0.0.1:0"\n[spark]\nmaster = "local[1]"\n'
    )
    return tmp_path


def _shown(bootstrap: str, tick: Tick, view: str) -> list[dict[str, Any]]:
    """A view's rows as a reader of its topic finds them."""
    info = tick.views[view]
    ranges = [Range(info.topic, part, 0, end) for part, end in tick.ends[info.topic].items()]
    found: dict[bytes, dict[str, Any]] = {}
    with LogReader(bootstrap) as reader:
        for records in reader.read(ranges):
            for key, value in zip(records.keys, records.values, strict=True):
                assert key is not None
                found.pop(key, None)
                if value is not None:
                    found[key] = orjson.loads(value)["row"]
    return sorted(found.values(), key=orjson.dumps)


def _by_country(
    orders: list[dict[str, Any]], customers: list[dict[str, Any]]
) -> dict[str, tuple[int, int]]:
    countries = {one["id"]: one["country"] for one in customers}
    sums: dict[str, list[int]] = defaultdict(list)
    for order in orders:
        if order["customer_id"] in countries:
            sums[countries[order["customer_id"]]].append(order["amount"])
    return {country: (len(found), sum(found)) for country, found in sums.items()}


@pytest.mark.timeout(300)
def test_views_of_a_kept_directory_are_shown_as_they_were_and_go_on(home: Path) -> None:
    project = load(home)
    with BrokerThread(home / ".tailrace" / "log", durable=False) as broker:
        with LogReader(broker.address) as reader:
            before = last_row(reader, "kept")
            tables = read_catalog(reader).tables
        assert before is not None
        assert set(before.views) == VIEWS
        rows = {view: _shown(broker.address, before, view) for view in VIEWS}
        graph = compile_views(project.views.values(), tables.values())
        settings = TickSettings(
            "kept", broker.address, str(home / ".tailrace" / "state"), str(home / "cache"),
            shards=before.shards,
        )  # fmt: skip
        ticks = ProjectTicks(graph, settings, in_process)
        try:
            ticks.start()
            first = ticks.main.last
            assert set(first.views) == VIEWS  # filled or not, each is shown
            assert {view: _shown(broker.address, first, view) for view in VIEWS} == rows
            for _ in range(60):
                idle = ticks.step(0.2) is None
                if idle and not ticks.waiting:
                    break
            assert not ticks.waiting
            last = ticks.main.last
        finally:
            ticks.close()
        with closing(LogRanges(broker.address)) as log:
            held = {
                topic.rpartition(".")[2]: contents(log, table, last).to_pylist()
                for topic, table in tables.items()
            }
        found = {
            row["country"]: (row["orders"], int(row["amount"]))
            for row in _shown(broker.address, last, "orders_by_country")
        }
        assert found == _by_country(held["orders"], held["customers"])
        large = {row["id"]: row["amount"] for row in _shown(broker.address, last, "large")}
        assert large == {row["id"]: row["amount"] for row in held["orders"] if row["amount"] > 50}
        names = {row["id"]: row["shown"] for row in _shown(broker.address, last, "names")}
        assert names == {row["id"]: row["name"].title() for row in held["customers"]}


@pytest.fixture
def running(home: Path) -> Iterator[Path]:
    with (home / "up.txt").open("wb") as output:
        process = subprocess.Popen([PROGRAM, "up", str(home)], stdout=output, stderr=output)
    try:
        yield home
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_kept_directory_starts_and_its_sink_has_each_row_once(running: Path) -> None:
    database = sqlite3.connect(running / "shop.db", isolation_level=None)
    with closing(database):
        _until(running, lambda: _copy(running) == _truth(database))
        database.execute("UPDATE orders SET amount = amount + 3 WHERE id % 5 = 0")
        database.execute("DELETE FROM customers WHERE id = 4")
        _until(running, lambda: _copy(running) == _truth(database))


def _truth(database: sqlite3.Connection) -> list[tuple[object, ...]]:
    return database.execute(
        "SELECT country, count(*), sum(amount) FROM orders o"
        " JOIN customers c ON c.id = o.customer_id GROUP BY country ORDER BY country"
    ).fetchall()


def _copy(home: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(home / "copies.db")) as copies:
        return copies.execute(
            "SELECT country, orders, CAST(amount AS INTEGER) FROM orders_by_country ORDER BY country"
        ).fetchall()


def _until(home: Path, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not true():
        assert time.monotonic() < deadline, (home / "up.txt").read_text()[-4000:]
        time.sleep(0.2)
