"""A mirror between two Apache Kafkas, beside MirrorMaker 2 with exactly once, in the same run.

    python -m benchmarks.mirror [--records 600000] [--partitions 6] [--without-mirrormaker]

Records of 1 KB, lz4, written by librdkafka before either begins. Each mirror copies them into a target
of its own; processor time and memory are of the mirror's process alone. MirrorMaker's start (until its
first record is at the target) is left out and told; that of ours counts. Then the time of a record from site to site
through both, fifty a second. Then, of ours: records that are opened, conflicts of a key, the first record after a start,
`translate`, and what a thousand idle partitions cost.
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
from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402

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
TRAVELLERS = 500
SETTLED_NS = 2_000_000_000  # after the first arrival


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


def fill(bootstrap: str, records: int, topic: str = TOPIC, keys: int = 1 << 30) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 50, "batch.size": 256 * 1024, "queue.buffering.max.messages": 50_000})  # fmt: skip
    pool = os.urandom(1 << 20)  # no two records of a batch are alike, so lz4 saves little
    for number in range(records):
        at = number * 7_919 % (len(pool) - 1024)
        body = pool[at : at + 1024]
        while True:
            try:
                producer.produce(topic, key=b"%d" % (number % keys), value=body)
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


def run_ours(
    source: str, target: str, name: str, *more: str, topic: str = TOPIC
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "tailrace", "mirror", "run", name, "--from", source, "--to", target]  # fmt: skip
    return subprocess.Popen(
        [*command, "--topics", topic, *more], stdout=subprocess.DEVNULL, cwd=ROOT
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
        theirs = _beside(table, source, target, chosen, folder)
        _site_to_site(table, source, target, folder, beside=theirs is not None)
        _opened(table, source, target, chosen, theirs)
        _conflicts(table, source, target, chosen)
        _first_record(table, source, target, folder)
        _idle(table, source, target, folder)
    finally:
        source.stop()
        target.stop()
        shutil.rmtree(folder, ignore_errors=True)
    _translate(table)
    return 1 if table.missed else 0


def _beside(table: Table, source: Kafka, target: Kafka, chosen: argparse.Namespace, folder: Path) -> Took | None:  # fmt: skip
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
        return None
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
    return theirs.took


def _site_to_site(
    table: Table, source: Kafka, target: Kafka, folder: Path, *, beside: bool
) -> None:
    """From the producer's call to a reader of committed records at the target."""
    process = run_ours(source.bootstrap, target.bootstrap, "ours", "--names", "prefix", "--prefix", "ours")  # fmt: skip
    ours = _travel(source, target, f"ours.{TOPIC}", process)
    table.figure("site to site, p50 and p99, milliseconds", f"{ours[0]:.1f}  {ours[1]:.1f}")
    if not beside:
        return
    process = run_mirror_maker(source.bootstrap, target.bootstrap, folder)
    theirs = _travel(source, target, TOPIC, process)
    table.figure("  MirrorMaker 2", f"{theirs[0]:.1f}  {theirs[1]:.1f}")
    table.ratio("site to site, p50", ours[0] / theirs[0], 0.7, most=True)
    table.ratio("site to site, p99", ours[1] / theirs[1], 0.8, most=True)


def _travel(
    source: Kafka, target: Kafka, topic: str, process: subprocess.Popen[bytes]
) -> tuple[float, float]:
    """p50 and p99 in ms of `TRAVELLERS` records that were sent after the first had arrived."""
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "travel", "isolation.level": "read_committed", "enable.auto.commit": False, "fetch.wait.max.ms": 10})  # fmt: skip
    with Admin(target.bootstrap) as admin:
        count = len(admin.cluster.topic(topic).leaders)
        ends = admin.end_offsets([(topic, number) for number in range(count)])
    consumer.assign([TopicPartition(topic, number, ends[topic, number]) for number in range(count)])
    producer = Producer({"bootstrap.servers": source.bootstrap, "linger.ms": 0})
    began = time.perf_counter()
    took: list[float] = []
    sent_at = -1e9
    counted_from: int | None = None
    try:
        while len(took) < TRAVELLERS:
            if time.perf_counter() - began > PATIENCE:
                raise RuntimeError(f"{len(took)} records came to {topic}")
            if time.perf_counter() - sent_at >= 0.02:
                sent_at = time.perf_counter()
                producer.produce(TOPIC, value=b"travel %d" % time.perf_counter_ns())
            producer.poll(0)
            found = consumer.poll(0.002)
            if found is not None and found.error() is None:
                word, _, at = (found.value() or b"").partition(b" ")
                now = time.perf_counter_ns()
                if word == b"travel" and counted_from is None:
                    counted_from = now + SETTLED_NS
                if word == b"travel" and counted_from is not None and int(at) >= counted_from:
                    took.append((now - int(at)) / 1e6)
    finally:
        process.kill()
        process.wait()
        consumer.close()
        producer.flush(30)
    last = sorted(took)
    return last[len(last) // 2], last[len(last) * 99 // 100]


def _opened(table: Table, source: Kafka, target: Kafka, chosen: argparse.Namespace, theirs: Took | None) -> None:  # fmt: skip
    """Batches of a topic whose log sets the times are opened and written again."""
    records = chosen.records
    with Admin(source.bootstrap) as admin:
        admin.create_topic(
            "stamped", chosen.partitions, {"message.timestamp.type": "LogAppendTime"}
        )
    with Admin(target.bootstrap) as admin:
        admin.create_topic("stamped", chosen.partitions)
    fill(source.bootstrap, records, "stamped")
    opened = watch(
        run_ours(source.bootstrap, target.bootstrap, "opened", topic="stamped"),
        counter(target.bootstrap, "stamped", chosen.partitions), records, start=True,
    ).took  # fmt: skip
    table.speed("tailrace mirror, batches opened", records, opened)
    if theirs is not None:
        ratio = (records / opened.cpu) / (chosen.records / theirs.cpu)
        table.ratio("opened, records per CPU-second", ratio, 1.5)


def _conflicts(table: Table, source: Kafka, target: Kafka, chosen: argparse.Namespace) -> None:
    """Keys that both sites write; the latest record wins."""
    records = chosen.records // 8
    for bootstrap, count in ((source.bootstrap, records), (target.bootstrap, records // 10)):
        with Admin(bootstrap) as admin:
            admin.create_topic("carts", chosen.partitions)
        fill(bootstrap, count, "carts", keys=10_000)
    began = time.perf_counter()
    process = run_ours(
        source.bootstrap, target.bootstrap, "settling", "--site", "ams", "--other", "ber",
        "--conflicts", "latest", "--until-caught-up", topic="carts",
    )  # fmt: skip
    root, cpu = psutil.Process(process.pid), 0.0
    while process.poll() is None:
        try:
            times = root.cpu_times()
            cpu = times.user + times.system
        except psutil.Error:
            pass
        time.sleep(0.02)
    table.speed(
        "tailrace mirror, conflicts settled", records, Took(time.perf_counter() - began, cpu)
    )


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
