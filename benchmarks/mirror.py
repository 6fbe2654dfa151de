"""A mirror between two Apache Kafkas, beside MirrorMaker 2 with exactly once, in the same run.

    python -m benchmarks.mirror [--records 600000] [--partitions 6] [--without-mirrormaker]

Records of 1 KB, lz4, written by librdkafka before either begins. Each mirror copies them into a target
of its own; processor time and memory are of the mirror's process alone. MirrorMaker's start (until its
first record is at the target) is left out and told; that of ours counts. Then, of ours: the first record after a start,
records that are opened, `translate`, and what a thousand idle partitions cost.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from benchmarks.measure import Table, Took  # noqa: E402
from confluent_kafka import Producer  # noqa: E402

from servers.kafka import VERSION, Kafka, java  # noqa: E402
from servers.processes import cache_directory, free_port  # noqa: E402
from tailrace.client.admin import Admin  # noqa: E402
from tailrace.mirroring.rows import Run  # noqa: E402
from tailrace.mirroring.translate import translate  # noqa: E402

POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tailrace</groupId><artifactId>mirror-maker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
TOPIC = "orders"
PATIENCE = 900.0


@dataclass(slots=True)
class Measured:
    """From the start, or from the first record at the target, to the last; `start_*` before that."""

    took: Took
    memory: int
    start_seconds: float
    start_cpu: float


def mirror_maker_jars() -> Path:
    """The directory with MirrorMaker's jars, fetched with Maven on first use."""
    target = cache_directory() / f"mirror-maker-{VERSION}"
    if (target / ".complete").exists():
        return target
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(POM)
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={target}"], check=True)
    (target / ".complete").touch()
    return target


def fill(bootstrap: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 50, "batch.size": 256 * 1024, "queue.buffering.max.messages": 50_000})  # fmt: skip
    pool = os.urandom(1 << 20)  # no two records of a batch are alike, so lz4 saves little
    for number in range(records):
        at = number * 7_919 % (len(pool) - 1024)
        body = pool[at : at + 1024]
        while True:
            try:
                producer.produce(TOPIC, key=b"%d" % number, value=body)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def watch(
    process: subprocess.Popen[bytes], arrived: Callable[[], int], records: int, *, start: bool
) -> Measured:
    """Until all records are there; the process is ended then. `start`: its start counts."""
    root = psutil.Process(process.pid)
    memory = 0
    stop = threading.Event()

    def sample() -> None:
        nonlocal memory
        while not stop.is_set():
            try:
                memory = max(memory, root.memory_info().rss)
            except psutil.Error:
                return
            stop.wait(0.2)

    threading.Thread(target=sample, daemon=True).start()
    began = time.perf_counter()
    first: tuple[float, float] | None = None
    cpu = 0.0
    while True:
        count = arrived()
        now = time.perf_counter()
        try:
            times = root.cpu_times()
            cpu = times.user + times.system
        except psutil.Error:
            pass
        if first is None and count:
            first = (now, cpu)
        if count >= records:
            break
        if now - began > PATIENCE or process.poll() not in (None, 0):
            raise RuntimeError(f"the mirror brought {count} of {records} records")
        time.sleep(0.02)
    stop.set()
    process.kill()
    process.wait()
    assert first is not None
    took = Took(now - began, cpu) if start else Took(now - first[0], cpu - first[1])
    return Measured(took, memory, first[0] - began, first[1])


def counter(bootstrap: str, topic: str, partitions: int) -> Callable[[], int]:
    """Offsets of a topic that readers see; 0 while there is none."""
    admin = Admin(bootstrap)
    places = [(topic, number) for number in range(partitions)]

    def arrived() -> int:
        if admin.describe_topic(topic) is None:
            return 0
        return sum(admin.end_offsets(places).values())

    return arrived


def run_ours(source: str, target: str, name: str, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "tailrace", "mirror", "run", name, "--from", source, "--to", target]  # fmt: skip
    return subprocess.Popen(
        [*command, "--topics", TOPIC, *more], stdout=subprocess.DEVNULL, cwd=ROOT
    )


def run_mirror_maker(source: str, target: str, folder: Path) -> subprocess.Popen[bytes]:
    port = free_port()
    settings = {
        "clusters": "a, b",
        "a.bootstrap.servers": source,
        "b.bootstrap.servers": target,
        "a->b.enabled": "true",
        "b->a.enabled": "false",
        "a->b.topics": TOPIC,
        "b.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{port}",
        "tasks.max": "2",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "a->b.producer.compression.type": "lz4",
        "b.producer.compression.type": "lz4",
        "b.producer.batch.size": "262144",
        "b.producer.linger.ms": "20",
        "a.consumer.fetch.max.bytes": "16777216",
        "a.consumer.max.partition.fetch.bytes": "4194304",
        "a.consumer.max.poll.records": "5000",
        "refresh.topics.interval.seconds": "5",
    }
    path = folder / "mm2.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    log = (folder / "mm2.log").open("wb")
    return subprocess.Popen(
        [java(), "-Xms256m", "-Xmx2g", "-cp", f"{mirror_maker_jars()}/*", MAIN, str(path)],
        stdout=log, stderr=log,
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=600_000)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--without-mirrormaker", action="store_true")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tailrace-bench-"))
    print(f"\nmirror: {chosen.records:,} records of 1 KB, {chosen.partitions} partitions, Kafka {VERSION} to Kafka {VERSION}", flush=True)  # fmt: skip
    table = Table()
    for name in ("source", "target"):
        (folder / name).mkdir()
    source = Kafka(folder / "source")
    target = Kafka(folder / "target")
    try:
        with Admin(source.bootstrap) as admin:
            admin.create_topic(TOPIC, chosen.partitions)
        fill(source.bootstrap, chosen.records)
        _beside(table, source, target, chosen, folder)
        _first_record(table, source, target, folder)
        _idle(table, source, target, folder)
    finally:
        source.stop()
        target.stop()
        shutil.rmtree(folder, ignore_errors=True)
    _translate(table)
    return 1 if table.missed else 0


def _beside(table: Table, source: Kafka, target: Kafka, chosen: argparse.Namespace, folder: Path) -> None:  # fmt: skip
    records = chosen.records
    with Admin(target.bootstrap) as admin:
        admin.create_topic(f"ours.{TOPIC}", chosen.partitions)
    ours = watch(
        run_ours(source.bootstrap, target.bootstrap, "ours", "--names", "prefix", "--prefix", "ours"),
        counter(target.bootstrap, f"ours.{TOPIC}", chosen.partitions), records, start=True,
    )  # fmt: skip
    table.speed("tailrace mirror", records, ours.took)
    table.figure("  its start is in that; most memory", f"{ours.memory >> 20} MB")
    whole = watch(
        run_ours(source.bootstrap, target.bootstrap, "whole", "--names", "prefix", "--prefix", "whole", "--cut", "transactions"),
        counter(target.bootstrap, f"whole.{TOPIC}", chosen.partitions), records, start=True,
    )  # fmt: skip
    table.speed("tailrace mirror --cut transactions", records, whole.took)
    if chosen.without_mirrormaker:
        return
    with Admin(target.bootstrap) as admin:
        admin.create_topic(TOPIC, chosen.partitions)
    theirs = watch(
        run_mirror_maker(source.bootstrap, target.bootstrap, folder),
        counter(target.bootstrap, TOPIC, chosen.partitions), records, start=False,
    )  # fmt: skip
    table.speed("MirrorMaker 2, exactly once, 2 tasks", records, theirs.took)
    table.figure("  its start, not counted", f"{theirs.start_seconds:.1f} s, {theirs.start_cpu:.1f} CPU-s, most memory {theirs.memory >> 20} MB")  # fmt: skip
    table.ratio("records per CPU-second, ours with its start", theirs.took.cpu / ours.took.cpu, 5)  # fmt: skip
    table.ratio("wall", ours.took.seconds / theirs.took.seconds, 0.8, most=True)
    table.ratio("memory", ours.memory / theirs.memory, 0.3, most=True)


def _first_record(table: Table, source: Kafka, target: Kafka, folder: Path) -> None:
    """A mirror that has caught up is started again, with one record more at the source."""
    fill(source.bootstrap, 1)
    arrived = counter(target.bootstrap, f"ours.{TOPIC}", 1)
    before = arrived()
    partitions = len(Admin(target.bootstrap).cluster.topic(f"ours.{TOPIC}").leaders)
    arrived = counter(target.bootstrap, f"ours.{TOPIC}", partitions)
    before = arrived()
    began = time.perf_counter()
    process = run_ours(source.bootstrap, target.bootstrap, "ours", "--names", "prefix", "--prefix", "ours")  # fmt: skip
    while arrived() == before:
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    process.kill()
    process.wait()
    table.ratio("first record after a start, seconds", seconds, 1.0, most=True)


def _idle(table: Table, source: Kafka, target: Kafka, folder: Path) -> None:
    with Admin(source.bootstrap) as admin:
        admin.create_topic("idle", 1000)
    command = [sys.executable, "-P", "-m", "tailrace", "mirror", "run", "idle", "--from", source.bootstrap, "--to", target.bootstrap, "--topics", "idle"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    try:
        time.sleep(20)
        root = psutil.Process(process.pid)
        before = root.cpu_times()
        time.sleep(20)
        after = root.cpu_times()
        share = (after.user + after.system - before.user - before.system) / 20
        table.ratio("1,000 idle partitions, share of a core", share, 0.05, most=True)
    finally:
        process.kill()
        process.wait()


def _translate(table: Table) -> None:
    """A hundred million records in runs of a hundred, as small transactions leave them."""
    runs = [Run(number * 101, number * 102, 100) for number in range(1_000_000)]
    began = time.perf_counter()
    for number in range(100):
        translate(runs, number * 1_000_003 % 101_000_000, -1)
    table.ratio("translate in a running mirror, milliseconds", (time.perf_counter() - began) * 10, 50, most=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
