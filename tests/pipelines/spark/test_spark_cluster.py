"""The same pipelines on three Kafka brokers and a standalone Spark cluster.

Two addresses are changed, nothing else. A broker and a Spark worker are lost on the way, and
the kills of `test_pipelines_crash` are repeated; every number must come out the same. At the
end it prints what bringing the state's caches up to date took in each tick.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import psutil
import pyspark
import pytest

from pipelines.process.test_pipelines_crash import Running, inserted
from pipelines.shop import CUSTOMERS, ORDERS, graph, recompute, shown, traffic
from pipelines.ticks.test_ticks import in_process
from servers.kafka import Kafka, KafkaUnavailable
from servers.processes import bound_to_us, free_port
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.spark import java
from tailrace.pipelines.ticks.driver import TickDriver, TickSettings, last_row
from tailrace.telemetry.part import read_reports
from tailrace.testing.feed import ChangeFeed

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


class SparkCluster:
    """A master and two workers from the pyspark package; on several hosts where `hosts`
    names several addresses of this machine."""

    def __init__(self, directory: Path, hosts: Sequence[str] = ("127.0.0.1",) * 2) -> None:
        self._program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self._directory = directory
        self._environment = {
            **os.environ,
            "JAVA_HOME": str(java.find().home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_WORKER_DIR": str(directory / "work"),
            "SPARK_LOG_DIR": str(directory),
        }
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._processes = [self._start("127.0.0.1", "master.Master", "--port", str(port))]
        self.workers = [self._worker(host) for host in hosts]

    def _worker(self, host: str = "127.0.0.1") -> subprocess.Popen[bytes]:
        return self._start(host, "worker.Worker", self.master, "--cores", "2", "--memory", "800m")

    def _start(self, host: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        place = ("--host", host, "--webui-port", "0")
        with (self._directory / f"{name}.log").open("ab") as output:
            return subprocess.Popen(
                [*bound_to_us(), str(self._program), f"org.apache.spark.deploy.{name}", *arguments, *place],
                env={**self._environment, "SPARK_LOCAL_IP": host}, stdout=output, stderr=output,
            )  # fmt: skip

    def python_workers(self) -> list[psutil.Process]:
        """The Python processes below the executors."""
        return [
            one
            for worker in self.workers
            for one in psutil.Process(worker.pid).children(recursive=True)
            if "python" in one.name()
        ]

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


@dataclass(slots=True)
class Cluster:
    """Both clusters, and what was seen of the ticks."""

    kafka: Kafka
    spark: SparkCluster
    seen: dict[str, dict[int, tuple[int, int, int]]] = field(default_factory=dict)

    def watch(self, name: str, directory: Path) -> None:
        """Note the last tick's time, its catch-up and the size of the state."""
        for report in read_reports(directory / ".tailrace"):
            if report.get("tick_ms") is not None:
                figures = (report["tick_ms"], report["catch_up_ms"], report["state_bytes"])
                self.seen.setdefault(name, {})[report["tick"]] = figures

    def project(self, name: str, directory: Path, feed: ChangeFeed, seed: int) -> Project:
        return Project(
            self.kafka.bootstrap, self.spark.master, directory, feed, seed,
            lambda directory: self.watch(name, directory),
        )  # fmt: skip


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Cluster]:
    replicated = {"default.replication.factor": "3", "min.insync.replicas": "2"}
    try:
        kafka = Kafka(tmp_path_factory.mktemp("kafka"), nodes=3, settings=replicated)
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    made = Cluster(kafka, SparkCluster(tmp_path_factory.mktemp("spark")))
    yield made
    made.spark.stop()
    made.kafka.stop()
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        for name, ticks in made.seen.items():
            print(f"\n{name}: state's catch-up per tick (tick: catch-up of tick's time, state)")
            for number, (whole, catch_up, size) in sorted(ticks.items()):
                print(
                    f"  tick {number:>4}: {catch_up:>6} ms of {whole:>6} ms {size / 1024:>8.0f} KiB"
                )


class Project:
    """The small shop's pipelines on a cluster, and what they must show."""

    def __init__(
        self,
        bootstrap: str,
        master: str,
        directory: Path,
        feed: ChangeFeed,
        seed: int,
        watch: Callable[[Path], None] = lambda _: None,
    ) -> None:
        self.bootstrap, self.feed, self.directory, self._watch = bootstrap, feed, directory, watch
        self.placed: list[tuple[int, str]] = []
        self.position = ""
        self.seed = seed
        self.running = Running(bootstrap, feed.source, directory, master)

    def move(self, transactions: int) -> None:
        self.seed += 1
        for changes in traffic(self.seed, transactions):
            self.placed += inserted(self.feed, changes)
            self.position = self.feed.transaction(*changes)

    def wait(self, reader: LogReader, seconds: float = 500) -> list[dict[str, object]]:
        """Wait until views and stream have everything that was written; the stream's rows."""
        until = time.monotonic() + seconds
        source = self.feed.source
        written: list[dict[str, object]] = []
        while time.monotonic() < until:
            self.running.keep_running()
            self._watch(self.directory)
            row = last_row(reader, source)
            if row is not None and row.positions.get(source) == self.position:
                written = [
                    orjson.loads(value or b"")
                    for records in read_all(reader, f"{source}_placed")
                    for value in records.values
                ]
                if len(written) >= len(self.placed):
                    return written
            time.sleep(0.5)
        raise AssertionError(f"not there after {seconds} s: {self.running.log.read_text()[-3000:]}")

    def check(self, written: list[dict[str, object]]) -> None:
        view, expected = f"{self.feed.source}_open_orders", recompute(self.feed)
        until = time.monotonic() + 20  # a replicated commit is readable a little later
        while shown(self.bootstrap, view) != expected and time.monotonic() < until:
            time.sleep(0.2)
        assert shown(self.bootstrap, view) == expected
        assert Counter((row["id"], row["amount"]) for row in written) == Counter(self.placed)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["driver", "jvm", "worker"])
def test_kills_lose_and_double_nothing(cluster: Cluster, tmp_path: Path, victim: str) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    with (
        ChangeFeed(cluster.kafka.bootstrap, source, [ORDERS, CUSTOMERS]) as feed,
        LogReader(cluster.kafka.bootstrap) as reader,
    ):
        project = cluster.project(f"kill -9 of the {victim}", tmp_path, feed, 60)
        try:
            project.move(20)
            project.wait(reader)
            for _ in range(2):
                project.move(20)
                if victim == "worker":
                    for one in cluster.spark.python_workers()[:1]:
                        one.send_signal(signal.SIGKILL)
                else:
                    project.running.kill(victim)
                project.move(10)
                written = project.wait(reader)
        finally:
            project.running.stop()
        project.check(written)


@pytest.mark.timeout(1800)
def test_a_lost_broker_and_a_lost_worker_change_no_number(cluster: Cluster, tmp_path: Path) -> None:
    source = f"shop{uuid.uuid4().hex[:6]}"
    with (
        ChangeFeed(cluster.kafka.bootstrap, source, [ORDERS, CUSTOMERS]) as feed,
        LogReader(cluster.kafka.bootstrap) as reader,
    ):
        project = cluster.project("losing a broker and a worker", tmp_path, feed, 80)
        try:
            project.move(30)
            project.wait(reader)
            cluster.spark.lose_a_worker()
            project.move(30)
            project.wait(reader)
            cluster.kafka.kill(1)
            project.move(30)
            project.wait(reader)
            cluster.kafka.restart(1)
            cluster.spark.workers.append(cluster.spark._worker())
            project.move(30)
            written = project.wait(reader)
        finally:
            project.running.stop()
        project.check(written)


@pytest.mark.timeout(600)
def test_ticks_go_on_when_any_one_broker_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    """The driver and its tasks in this process: what is lost is a broker each time."""
    bootstrap = cluster.kafka.bootstrap
    source = f"shop{uuid.uuid4().hex[:6]}"
    settings = TickSettings(source, bootstrap, str(tmp_path / "state"), str(tmp_path / "cache"))
    with ChangeFeed(bootstrap, source, [ORDERS, CUSTOMERS]) as feed:
        driver = TickDriver(graph(source, f"{source}_open"), settings, in_process)
        try:
            driver.start()
            for node in range(3):
                cluster.kafka.kill(node)
                for changes in traffic(90 + node, 15):
                    position = feed.transaction(*changes)
                until = time.monotonic() + 150
                while driver.last.positions.get(source) != position:
                    assert time.monotonic() < until
                    driver.step(1.0)
                until = time.monotonic() + 30
                while shown(bootstrap, f"{source}_open") != recompute(feed):
                    assert time.monotonic() < until
                    time.sleep(0.2)
                cluster.kafka.restart(node)
                wait_for_replicas(bootstrap)
        finally:
            driver.close()


def wait_for_replicas(bootstrap: str) -> None:
    """Wait until every partition has all its replicas in step again."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    until = time.monotonic() + 90
    while time.monotonic() < until:
        topics = admin.list_topics(timeout=10).topics.values()
        if all(len(p.isrs) == len(p.replicas) for t in topics for p in t.partitions.values()):
            return
        time.sleep(0.3)
    raise AssertionError("replicas are not in step")
