"""kill -9 of the driver, the JVM and the Python workers while views and streams run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from pipelines.shop import CUSTOMERS, ORDERS, recompute, shown, traffic
from servers.processes import bound_to_us
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks.driver import last_row
from tailrace.telemetry.part import read_reports
from tailrace.testing.feed import Change, ChangeFeed

pytestmark = [pytest.mark.crash, pytest.mark.spark]

SCRIPT = Path(__file__).parent / "running_pipelines.py"


class Running:
    def __init__(
        self, bootstrap: str, source: str, directory: Path, master: str = "local[2]", *more: str
    ) -> None:
        self.command = [
            sys.executable, str(SCRIPT), bootstrap, source, str(directory), master, *more,
        ]  # fmt: skip
        self.log = directory / "output"
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as output:
            command = [*bound_to_us(), *self.command]
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def kill(self, victim: str) -> None:
        """kill -9 one process; the driver is started again when it has ended."""
        driver = psutil.Process(self.process.pid)
        family = driver.children(recursive=True)
        java = [p for p in family if p.name() == "java"]
        workers = [p for p in family if "python" in p.name() and p.pid != driver.pid]
        chosen = {"driver": [driver], "jvm": java, "worker": workers}[victim]
        if chosen:
            random.choice(chosen).send_signal(signal.SIGKILL)
        if victim != "worker":
            self.process.wait(100)
            psutil.wait_procs(family, timeout=20)

    def report(self) -> dict[str, Any]:
        """What the pipelines last said of themselves."""
        reports = read_reports(self.log.parent / ".tailrace")
        return next((one for one in reports if one["kind"] == "pipelines"), {})

    def keep_running(self) -> None:
        if self.process.poll() is not None:
            self.start()

    def stop(self) -> None:
        if self.process.poll() is not None:
            return
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        psutil.wait_procs(family, timeout=10)


def inserted(feed: ChangeFeed, changes: list[Change]) -> list[tuple[int, str]]:
    """The inserts among changes, as capture would call them."""
    live = {row["id"] for row in feed.rows["orders"].values()}
    found = []
    for table, key, row in changes:
        if table == "orders":
            if row is not None and key["id"] not in live:
                found.append((key["id"], row["amount"]))
            live.discard(key["id"])
            if row is not None:
                live.add(key["id"])
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", ["driver", "jvm", "worker"])
def test_nothing_is_lost_or_doubled(log_address: str, tmp_path: Path, victim: str) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    placed: list[tuple[int, str]] = []
    with ChangeFeed(log_address, source, [ORDERS, CUSTOMERS]) as feed:
        running = Running(log_address, source, tmp_path)
        try:
            position = ""
            kills = 3
            began = time.monotonic()
            for number, changes in enumerate(traffic(41, 120)):
                placed += inserted(feed, changes)
                position = feed.transaction(*changes)
                time.sleep(0.05)
                if number % 40 == 30 and kills:
                    wait_for_progress(log_address, source, running)
                    time.sleep(random.random())
                    running.kill(victim)
                    kills -= 1
                running.keep_running()
            with LogReader(log_address) as reader:
                while time.monotonic() - began < 600:
                    running.keep_running()
                    row = last_row(reader, source)
                    written = [
                        orjson.loads(value or b"")
                        for records in read_all(reader, f"{source}_placed")
                        for value in records.values
                    ]
                    if row and row.positions.get(source) == position and len(written) >= len(placed):  # fmt: skip
                        break
                    time.sleep(0.3)
        finally:
            running.stop()
        assert row is not None, running.log.read_text()[-3000:]
        assert row.positions.get(source) == position, running.log.read_text()[-3000:]
        assert shown(log_address, f"{source}_open_orders") == recompute(feed)
    assert Counter((row["id"], row["amount"]) for row in written) == Counter(placed)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("more", [(), ("hangs",)], ids=["working", "deaf"])
def test_the_driver_ends_with_its_jvm_and_says_why(
    tailrace_broker: str, tmp_path: Path, more: tuple[str, ...]
) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    with ChangeFeed(tailrace_broker, source, [ORDERS, CUSTOMERS]) as feed:
        for changes in traffic(41, 10):
            feed.transaction(*changes)
        running = Running(tailrace_broker, source, tmp_path, "local[2]", *more)
        try:
            if more:
                wait_until(lambda: "hangs" in running.log.read_text())
            else:
                wait_for_progress(tailrace_broker, source, running)
            running.kill("jvm")
            assert running.process.returncode == 1, running.log.read_text()[-3000:]
        finally:
            running.stop()
    assert running.report()["state"] == "failed"
    assert running.report()["error"]["code"] == "spark-lost"
    assert "SIGKILL" in running.report()["error"]["error"]


@pytest.mark.timeout(600)
def test_a_stop_that_reaches_the_jvm_too_is_no_failure(
    tailrace_broker: str, tmp_path: Path
) -> None:
    """As a terminal or a service manager stops them: every process of the group at once."""
    source = f"shop{uuid.uuid4().hex[:6]}"
    with ChangeFeed(tailrace_broker, source, [ORDERS, CUSTOMERS]) as feed:
        for changes in traffic(41, 10):
            feed.transaction(*changes)
        running = Running(tailrace_broker, source, tmp_path)
        try:
            wait_for_progress(tailrace_broker, source, running)
            family = psutil.Process(running.process.pid).children(recursive=True)
            for one in [running.process, *(p for p in family if p.name() == "java")]:
                one.send_signal(signal.SIGTERM)
            assert running.process.wait(100) == 0, running.log.read_text()[-3000:]
        finally:
            running.stop()
    assert running.report()["state"] == "stopped"
    assert not running.report().get("error")


@pytest.mark.timeout(600)
def test_a_stop_while_spark_starts_is_no_failure(tailrace_broker: str, tmp_path: Path) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    running = Running(tailrace_broker, source, tmp_path)

    def jvm() -> list[psutil.Process]:
        family = psutil.Process(running.process.pid).children(recursive=True)
        return [one for one in family if one.name() == "java"]

    try:
        wait_until(lambda: bool(jvm()))
        for one in [running.process, *jvm()]:
            one.send_signal(signal.SIGTERM)
        assert running.process.wait(100) == 0, running.log.read_text()[-3000:]
    finally:
        running.stop()
    assert running.report()["state"] == "stopped"
    assert not running.report().get("error")


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 240
    while time.monotonic() < until:
        if done():
            return
        time.sleep(0.1)
    raise AssertionError("in vain")


def wait_for_progress(bootstrap: str, source: str, running: Running) -> None:
    """Wait until the process that runs now has ticked, so that a kill hits real work."""
    with LogReader(bootstrap) as reader:

        def works() -> bool:
            running.keep_running()
            row, report = last_row(reader, source), running.report()
            ours = report.get("pid") == running.process.pid and report["state"] == "running"
            return ours and row is not None and bool(row.inputs)

        wait_until(works)
