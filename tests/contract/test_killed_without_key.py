"""Tables without a key through kill -9, with writers, copies, TRUNCATE and other shapes."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from servers.capture import Database, PostgresCase, SQLiteCase
from tailrace.client.errors import UnknownTopicError
from tailrace.client.fetcher import Fetcher
from tailrace.records.batch import Record
from tailrace.sources.base import COPIES_TOPIC, LogRecord
from tailrace.testing.bag_contract import LINES, BagCase, copies, states
from tailrace.testing.bags import BagViews, bag_of, rebuild_bag
from tailrace.testing.source_log import SharedLog

SCRIPT = Path(__file__).parent.parent / "sources" / "capture_process.py"
pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


@pytest.fixture(params=["postgres_server", "sqlite"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BagCase]:
    if request.param == "postgres_server":
        database: Database = request.getfixturevalue("database")
        yield PostgresCase(database, SharedLog(), tmp_path, "items", "lines")
        database.wait_for_slot()
        return
    made = SQLiteCase(tmp_path / "shop.db", SharedLog(), "items", "lines")
    yield made
    made.connection.close()


def written(address: str, case: BagCase) -> SharedLog:
    """What the broker holds, with a None at every offset that is no committed record."""
    found = SharedLog()
    wanted = ["shop.transactions", "shop.schemas", COPIES_TOPIC, f"shop.{case.schema}.lines"]
    with Fetcher(address) as fetcher:
        for topic in wanted:
            held: list[LogRecord | None] = []
            for record in _all(fetcher, topic):
                held += [None] * (record.offset - len(held))
                held.append(LogRecord(record.offset, record.key, record.value))
            found.topics[topic] = [[*held, None]]
    return found


def _all(fetcher: Fetcher, topic: str) -> Iterator[Record]:
    with suppress(UnknownTopicError):
        yield from fetcher.read_all(topic)


def cuts(address: str) -> int:
    """How much is in the transactions topic."""
    with Fetcher(address) as fetcher:
        try:
            last = fetcher.read_last("shop.transactions")
        except UnknownTopicError:
            return 0
        return 0 if last is None else last.offset


def write(case: BagCase, seed: int, stop: threading.Event, failed: list[BaseException]) -> None:
    choose = random.Random(seed)
    try:
        with case.beside() as mine:
            while not stop.wait(choose.random() * 0.02):
                number, other = choose.randrange(30), choose.randrange(30)
                statements = [
                    f"INSERT INTO lines (number, word) VALUES ({number}, 'new'), ({number}, 'new')",
                    f"UPDATE lines SET word = 'changed' WHERE number = {number}",
                    f"UPDATE lines SET number = {other} WHERE number = {number}",
                    f"DELETE FROM lines WHERE number = {other}",
                    f"INSERT INTO lines (number, word) SELECT {number}, 'old' FROM items WHERE id < 40",
                    f"BEGIN; DELETE FROM lines WHERE number = {number}; "
                    f"INSERT INTO lines (number, word) VALUES ({other}, 'moved'); COMMIT",
                ]
                mine.execute(choose.choice(statements))
    except BaseException as error:
        failed.append(error)


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_capture_gives_the_rows_of_a_table_without_key(
    case: BagCase, tailrace_broker: str, tmp_path: Path, seed: int
) -> None:
    choose = random.Random(seed)
    many = ", ".join(f"({i}, {i})" for i in range(2000))
    rows = ", ".join(f"({i % 30}, 'old')" for i in range(2000))
    case.execute(
        LINES,
        "CREATE TABLE items (id INTEGER PRIMARY KEY, amount INTEGER)",
        f"INSERT INTO items VALUES {many}",
        f"INSERT INTO lines VALUES {rows}",
    )
    case.keyless("lines")
    address = case.address
    kind = "postgres" if isinstance(case, PostgresCase) else "sqlite"

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, str(SCRIPT), kind, tailrace_broker, str(tmp_path), address]
        return subprocess.Popen([*command, "items", "lines"], stderr=subprocess.PIPE)

    stop = threading.Event()
    failed: list[BaseException] = []
    writer = threading.Thread(target=write, args=(case, seed, stop, failed), daemon=True)
    writer.start()
    altered = 0
    try:
        for _ in range(8):
            process = start()
            if choose.random() < 0.8:  # it gets as far as writing, however busy the machine is
                before = cuts(tailrace_broker)
                while process.poll() is None and cuts(tailrace_broker) == before:
                    time.sleep(0.02)
            time.sleep(choose.random())
            match choose.randrange(5):
                case 0:
                    case.snapshot("lines")
                case 1:
                    case.empty("lines")
                case 2:
                    altered += 1
                    case.alter(f"ALTER TABLE lines ADD COLUMN c{altered} INTEGER DEFAULT {altered}")
            time.sleep(0.7 * choose.random())
            process.kill()
            process.communicate()
    finally:
        stop.set()
        writer.join(60)
    assert not failed
    process = start()
    try:
        settle(process, tailrace_broker, case)
    finally:
        process.kill()
        process.communicate()
    log = written(tailrace_broker, case)
    topic = f"shop.{case.schema}.lines"
    names = case.columns("lines")
    there = case.rows("SELECT * FROM lines")
    expected = bag_of(dict(zip(names, row, strict=True)) for row in there)
    assert rebuild_bag(record for record in log.topics[topic][0] if record is not None) == expected
    views = BagViews(log, topic, tmp_path / "views")
    views.read()
    assert views.rows() == expected
    assert views.total() == len(there)
    assert views.dead == []


def settle(process: subprocess.Popen[bytes], address: str, case: BagCase) -> None:
    """Until everything is captured and every copy done, which is asked for twice: a request or
    another shape on its way may begin one more."""
    deadline = time.monotonic() + 120
    for _ in range(2):
        position = case.position()
        while True:
            log = written(address, case)
            last: dict[str, Any] = {}
            for value in log.values("shop.transactions"):
                document = orjson.loads(value or b"{}")
                last = document if document["status"] in ("CUT", "PART") else last
            reached = last.get("status") == "CUT" and last["position"] >= position
            if reached and copies(log) and states(log) == {"done"}:
                break
            if process.poll() is not None:
                raise AssertionError((process.communicate()[1] or b"").decode())
            assert time.monotonic() < deadline, (last, copies(log))
            time.sleep(0.2)
