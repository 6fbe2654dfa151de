"""The broker beside Apache Kafka: one table of ratios, both raw figures beside each.

    python -m benchmarks.broker [--rounds 3] [--gigabytes 1.0] [--only NAME …] [--json FILE]

Both brokers run on this machine, one at a time under load, in alternating rounds, on
fresh topics; each figure is the better of its rounds. The load generator
(`broker_load`, a C program) sends frames built before the clock started. Every run is checked:
offsets, counts and bytes must add up, or the benchmark fails. Before each of them the memory
that its files will fill is touched once (`measure.touch_pages`), for both brokers alike.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from benchmarks import broker_load as load  # noqa: E402
from benchmarks.measure import touch_pages  # noqa: E402

from servers.kafka import VERSION, Kafka, java  # noqa: E402
from servers.processes import Server, free_port  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.wire.apis import ApiKey  # noqa: E402
from tailrace.wire.messages.metadata import MetadataRequest  # noqa: E402

PARTITIONS = 8
BATCH_BYTES = 1_000_000
PASSES = 4  # one pass is over before clocks and windows have settled


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure: how it reads, and the ratio (ours ÷ Kafka's) that is wanted."""

    label: str
    unit: str
    wanted: float
    more_is_better: bool


GOALS: dict[str, Goal] = {
    "produce_1k": Goal("produce, 1 KB messages", "MB/s", 1.5, True),
    "consume_1k": Goal("consume, 1 KB messages", "MB/s", 1.0, True),
    "cpu_in": Goal("broker CPU per GB in", "s", 0.35, False),
    "cpu_out": Goal("broker CPU per GB out", "s", 1.0, False),
    "produce_100": Goal("produce, 100 B messages", "messages/s", 1.0, True),
    "consume_100": Goal("consume, 100 B messages", "messages/s", 1.0, True),
    "requests": Goal("produce requests of one message", "1/s", 1.0, True),
    "ack_p50": Goal("acknowledgement, p50", "ms", 1.0, False),
    "ack_p99": Goal("acknowledgement, p99", "ms", 1.0, False),
    "end_p50": Goal("end to end, p50", "ms", 1.0, False),
    "end_p99": Goal("end to end, p99", "ms", 0.5, False),
    "flush_p50": Goal("acknowledgement after fdatasync, p50", "ms", 1.0, False),
    "memory": Goal("memory after load", "MB", 0.1, False),
    "start": Goal("start to first metadata", "s", 0.05, False),
}


class KafkaWithHeap(Kafka):
    """Apache Kafka with the heap it ships with."""

    def _start(self, node: int) -> Server:
        command = [
            java(), "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{self._libraries}/*",
            "kafka.Kafka", str(self.directory / f"node-{node}.properties"),
        ]  # fmt: skip
        return Server(command, self.directory / f"node-{node}.log")


@dataclass
class Contender:
    """One of the two brokers: where it is, which process, what it reached."""

    name: str
    address: str
    process: psutil.Process
    stop: Callable[[], None]
    figures: dict[str, list[float]] = field(default_factory=dict)

    def note(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)

    def best(self, name: str) -> float:
        values = self.figures[name]
        return max(values) if GOALS[name].more_is_better else min(values)

    def cpu(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)


def first_answer(address: str, started: float) -> float:
    """Seconds from `started` until Metadata is answered."""
    while True:
        try:
            with load.Line(address) as line:
                line.ask(ApiKey.METADATA, 9, MetadataRequest(topics=None))
                return time.perf_counter() - started
        except OSError:
            time.sleep(0.002)


def start_ours(directory: Path) -> Contender:
    # An installed package comes with its bytecode: one start before the clock makes it.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{directory}-bytecode"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with BrokerProcess(Path(f"{directory}-first"), environment=environment) as broker:
        first_answer(broker.address, 0.0)
    port = free_port()
    started = time.perf_counter()
    broker = BrokerProcess(directory, listen=f"127.0.0.1:{port}", environment=environment)
    took = first_answer(broker.address, started)
    ours = Contender("tailrace", broker.address, psutil.Process(broker.pid), lambda: _end(broker))
    ours.note("start", took)
    return ours


def _end(broker: BrokerProcess) -> None:
    broker.stop()


def start_kafka(directory: Path) -> Contender:
    kafka = KafkaWithHeap(directory)
    # The class formats the directory first: what counts is exec to first answer, again.
    kafka.kill()
    started = time.perf_counter()
    kafka.servers[0] = kafka._start(0)
    took = first_answer(kafka.bootstrap, started)
    found = Contender(
        "kafka", kafka.bootstrap, psutil.Process(kafka.servers[0].process.pid), kafka.stop
    )
    found.note("start", took)
    return found


def throughput(
    who: Contender, tag: str, message_bytes: int, total_bytes: int, scratch: Path
) -> None:
    """Produce, then consume, and check that the sums agree."""
    kind = "1k" if message_bytes > 500 else "100"
    topic = f"load-{kind}-{tag}"
    load.create_topic(who.address, topic, PARTITIONS, {"file.delete.delay.ms": "0"})
    touch_pages(scratch, total_bytes * 5 // 4)
    before = who.cpu()
    sent = load.produce_load(
        who.address, topic, PARTITIONS, message_bytes, BATCH_BYTES, total_bytes
    )
    cpu_in = who.cpu() - before
    ends = load.end_offsets(who.address, topic, PARTITIONS)
    if ends != sent.messages:
        raise SystemExit(f"{who.name}: sent {sent.messages} messages, the log holds {ends}")
    before = who.cpu()
    got = load.consume_load(who.address, topic, PARTITIONS, sent.messages, passes=PASSES)
    cpu_out = who.cpu() - before
    if (got.messages, got.bytes) != (sent.messages * PASSES, sent.bytes * PASSES):
        raise SystemExit(f"{who.name}: sent {sent}, read {got} in {PASSES} passes")
    load.delete_topic(who.address, topic)
    if kind == "1k":
        who.note("produce_1k", sent.bytes / sent.seconds / 1e6)
        who.note("consume_1k", got.bytes / got.seconds / 1e6)
        who.note("cpu_in", cpu_in / (sent.bytes / 1e9))
        who.note("cpu_out", cpu_out / (got.bytes / 1e9))
    else:
        who.note("produce_100", sent.messages / sent.seconds)
        who.note("consume_100", got.messages / got.seconds)


def small_requests(who: Contender, tag: str) -> None:
    topic = f"requests-{tag}"
    load.create_topic(who.address, topic, 2, {})
    sent = load.produce_load(
        who.address, topic, 2, 100, 1, 170 * 40_000, connections=2, in_flight=50
    )
    if load.end_offsets(who.address, topic, 2) != sent.messages:
        raise SystemExit(f"{who.name}: messages are missing")
    who.note("requests", sent.messages / sent.seconds)


def latencies(who: Contender, tag: str) -> None:
    topic = f"latency-{tag}"
    load.create_topic(who.address, topic, 1, {})
    times = sorted(load.acknowledgement_seconds(who.address, topic, 4000))
    who.note("ack_p50", statistics.median(times) * 1000)
    who.note("ack_p99", times[int(len(times) * 0.99)] * 1000)
    times = sorted(load.end_to_end_seconds(who.address, topic, 2000))
    who.note("end_p50", statistics.median(times) * 1000)
    who.note("end_p99", times[int(len(times) * 0.99)] * 1000)
    load.create_topic(who.address, f"flush-{tag}", 1, {"flush.messages": "1"})
    times = sorted(load.acknowledgement_seconds(who.address, f"flush-{tag}", 500))
    who.note("flush_p50", statistics.median(times) * 1000)


def compare(rounds: int, total_bytes: int) -> tuple[Contender, Contender]:
    """Alternating rounds; the first of each is a warm-up and not counted."""
    scratch = Path(tempfile.mkdtemp(prefix="tailrace-bench-"))
    contenders: list[Contender] = []
    try:
        contenders = [start_ours(scratch / "ours"), start_kafka(_made(scratch / "kafka"))]
        for number in range(rounds + 1):
            for who in contenders:
                kept = {name: list(values) for name, values in who.figures.items()}
                print(f"  round {number} {who.name}", file=sys.stderr, flush=True)
                size = total_bytes if number else total_bytes // 4
                throughput(who, str(number), 1024, size, scratch)
                throughput(who, str(number), 100, size // 2, scratch)
                small_requests(who, str(number))
                latencies(who, str(number))
                if number == 0:
                    who.figures = kept
        for who in contenders:
            who.note("memory", who.process.memory_info().rss / 1e6)
    finally:
        for who in contenders:
            who.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    return contenders[0], contenders[1]


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


def table(ours: Contender, kafka: Contender) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, goal in GOALS.items():
        if name not in ours.figures:
            continue
        mine, theirs = ours.best(name), kafka.best(name)
        ratio = mine / theirs
        met = ratio >= goal.wanted if goal.more_is_better else ratio <= goal.wanted
        rows.append(
            {
                "figure": goal.label, "unit": goal.unit, "tailrace": mine, "kafka": theirs,
                "ratio": ratio, "wanted": f"{'≥' if goal.more_is_better else '≤'} {goal.wanted}",
                "met": met,
            }
        )  # fmt: skip
    return rows


def show(rows: list[dict[str, object]]) -> None:
    print(f"{'figure':<38}{'unit':<12}{'tailrace':>14}{'kafka':>15}{'ratio':>8}  wanted")
    for row in rows:
        print(
            f"{row['figure']:<38}{row['unit']:<12}{row['tailrace']:>14,.2f}{row['kafka']:>15,.2f}"
            f"{row['ratio']:>8.2f}  {row['wanted']:<8} {'' if row['met'] else 'missed'}"
        )


def show_rounds(*contenders: Contender) -> None:
    print("\nevery round:")
    for name, goal in GOALS.items():
        for who in contenders:
            if name in who.figures:
                figures = "  ".join(f"{value:,.2f}" for value in who.figures[name])
                print(f"  {goal.label:<38}{who.name:<10}{figures} {goal.unit}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=["kafka", "scale"], choices=["kafka", "scale"])
    parser.add_argument("--json", type=Path, default=None)
    given = parser.parse_args()
    print(f"python -m benchmarks.broker --rounds {given.rounds} --gigabytes {given.gigabytes}")
    print(f"{version_of(['cc', '--version'])}; {version_of([java(), '-version'])}")
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"Apache Kafka {VERSION} (one KRaft node, 1 GB heap), load before: "
          f"{os.getloadavg()[0]:.1f}\n")  # fmt: skip
    document: dict[str, object] = {}
    if "kafka" in given.only:
        ours, kafka = compare(given.rounds, int(given.gigabytes * 1e9))
        rows = table(ours, kafka)
        show(rows)
        show_rounds(ours, kafka)
        document["ratios"] = rows
        document["rounds"] = {"tailrace": ours.figures, "kafka": kafka.figures}
        print()
    if "scale" in given.only:
        from benchmarks.broker_scale import run

        document["scale"] = run()
    if given.json is not None:
        given.json.write_text(json.dumps(document, indent=1))


def version_of(command: list[str]) -> str:
    """The first line a program says about itself."""
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).splitlines()[0]


if __name__ == "__main__":
    main()
