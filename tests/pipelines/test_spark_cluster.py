"""The same pipelines on a standalone Spark cluster, with a worker lost on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pyspark
import pytest

from pipelines.shop import CUSTOMERS, ORDERS, recompute, shown, traffic
from pipelines.test_pipelines_crash import Running, inserted
from servers.processes import free_port
from tailrace.pipelines import java
from tailrace.pipelines.reader import LogReader, read_all
from tailrace.pipelines.ticks.driver import last_row
from tailrace.testing.feed import ChangeFeed

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


class SparkCluster:
    """A master and two workers from the pyspark package."""

    def __init__(self, directory: Path) -> None:
        self._program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self._directory = directory
        self._environment = {
            **os.environ,
            "JAVA_HOME": str(java.find().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_WORKER_DIR": str(directory / "work"),
            "SPARK_LOG_DIR": str(directory),
        }
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._processes = [
            self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        ]  # fmt: skip
        self.workers = [self._worker(), self._worker()]

    def _worker(self) -> subprocess.Popen[bytes]:
        return self._start(
            "worker.Worker", self.master, "--host", "127.0.0.1", "--cores", "2",
            "--memory", "800m", "--webui-port", "0",
        )  # fmt: skip

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._directory / f"{name}.log").open("ab") as output:
            return subprocess.Popen(
                [str(self._program), f"org.apache.spark.deploy.{name}", *arguments],
                env=self._environment, stdout=output, stderr=output,
            )  # fmt: skip

    def lose_a_worker(self) -> None:
        """kill -9 a worker with its executors."""
        _kill(self.workers.pop())

    def stop(self) -> None:
        for process in [*self.workers, *self._processes]:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    family = psutil.Process(process.pid).children(recursive=True)
    for one in [*family, process]:
        try:
            one.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    process.wait()
    psutil.wait_procs(family, timeout=10)


@pytest.fixture
def spark_cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    (tmp_path / "spark").mkdir()
    cluster = SparkCluster(tmp_path / "spark")
    yield cluster
    cluster.stop()


@pytest.mark.timeout(400)
def test_a_lost_worker_changes_no_number(
    kafka: str, tmp_path: Path, spark_cluster: SparkCluster
) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    directory = tmp_path / "project"
    directory.mkdir()
    placed: list[tuple[int, str]] = []
    with ChangeFeed(kafka, source, [ORDERS, CUSTOMERS]) as feed:
        running = Running(kafka, source, directory, spark_cluster.master)
        try:
            lost = False
            began = time.monotonic()
            position = ""
            with LogReader(kafka) as reader:
                for changes in traffic(51, 60):
                    placed += inserted(feed, changes)
                    position = feed.transaction(*changes)
                    time.sleep(0.1)
                written: list[dict[str, object]] = []
                while time.monotonic() - began < 330:
                    running.keep_running()
                    row = last_row(reader, source)
                    if row is not None and row.number > 1 and not lost:
                        spark_cluster.lose_a_worker()
                        lost = True
                        for changes in traffic(52, 30):
                            placed += inserted(feed, changes)
                            position = feed.transaction(*changes)
                    written = [
                        orjson.loads(value or b"")
                        for records in read_all(reader, f"{source}_placed")
                        for value in records.values
                    ]
                    reached = row is not None and row.positions.get(source) == position
                    if lost and reached and len(written) >= len(placed):
                        break
                    time.sleep(0.5)
        finally:
            running.stop()
        assert lost, running.log.read_text()[-3000:]
        assert shown(kafka, f"{source}_open_orders") == recompute(feed), running.log.read_text()[-3000:]  # fmt: skip
    assert Counter((row["id"], row["amount"]) for row in written) == Counter(placed)
