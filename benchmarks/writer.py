"""Our transactional writer beside librdkafka's, on our broker and on Apache Kafka.

    python -m benchmarks.writer [--rounds 3] [--transactions 100]

A transaction is 500 records of 100 bytes over four partitions. Rounds alternate; each
figure is the better of its rounds. After each run the committed records are counted, and
the benchmark fails if one is missing or too many.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from servers.kafka import VERSION, Kafka  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.client.admin import Admin  # noqa: E402
from tailrace.client.fetcher import Fetcher  # noqa: E402
from tailrace.client.writer import TransactionalWriter  # noqa: E402

PARTITIONS = 4
RECORDS = 500
VALUE = b"v" * 100

Figures = dict[str, list[float]]


def run_ours(address: str, topic: str, name: str, transactions: int, figures: Figures) -> None:
    share = RECORDS // PARTITIONS
    started = time.perf_counter()
    writer = TransactionalWriter(address, name)
    writer.init()
    durations = []
    for number in range(transactions):
        begun = time.perf_counter()
        for partition in range(PARTITIONS):
            writer.send_columns(topic, partition, [b"key"] * share, [VALUE] * share)
        writer.commit()
        durations.append(time.perf_counter() - begun)
        if number == 0:
            figures.setdefault("start", []).append(time.perf_counter() - started)
    writer.close()
    note(figures, durations)


def run_librdkafka(address: str, topic: str, name: str, transactions: int, figures: Figures) -> None:  # fmt: skip
    from confluent_kafka import Producer

    started = time.perf_counter()
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0, "log_level": 0}
    )
    producer.init_transactions(60)
    durations = []
    for number in range(transactions):
        begun = time.perf_counter()
        producer.begin_transaction()
        for record in range(RECORDS):
            producer.produce(topic, VALUE, b"key", partition=record % PARTITIONS)
        producer.commit_transaction(60)
        durations.append(time.perf_counter() - begun)
        if number == 0:
            figures.setdefault("start", []).append(time.perf_counter() - started)
    note(figures, durations)


def note(figures: Figures, durations: list[float]) -> None:
    durations = sorted(durations[1:])
    figures.setdefault("p50", []).append(statistics.median(durations))
    figures.setdefault("p99", []).append(durations[int(len(durations) * 0.99)])


def check(address: str, topic: str, wanted: int) -> None:
    with Fetcher(address) as fetcher:
        found = 0
        for partition in range(PARTITIONS):
            until = time.monotonic() + 20
            with Admin(address) as admin:
                while admin.end_offsets([(topic, partition)]) != admin.end_offsets(
                    [(topic, partition)], "read_uncommitted"
                ):
                    if time.monotonic() > until:
                        raise SystemExit("a transaction stays open")
                    time.sleep(0.05)
            found += sum(1 for _ in fetcher.read_all(topic, partition))
    if found != wanted:
        raise SystemExit(f"{topic}: {found} records, not {wanted}")


def measure(address: str, rounds: int, transactions: int) -> dict[str, Figures]:
    figures: dict[str, Figures] = {"ours": {}, "librdkafka": {}}
    for number in range(rounds + 1):  # the first round warms the broker and is thrown away
        kept = figures if number else {"ours": {}, "librdkafka": {}}
        for label, run in (("ours", run_ours), ("librdkafka", run_librdkafka)):
            topic = f"{label}-{number}"
            with Admin(address) as admin:
                admin.create_topic(topic, PARTITIONS)
                # A new topic takes Kafka a moment to lead: not what is measured here.
                admin.end_offsets([(topic, partition) for partition in range(PARTITIONS)])
            run(address, topic, topic, transactions, kept[label])
            check(address, topic, transactions * RECORDS)
    return figures


def show(where: str, figures: dict[str, Figures]) -> None:
    for figure, label in (
        ("start", "start to first commit"),
        ("p50", "transaction, p50"),
        ("p99", "transaction, p99"),
    ):
        ours = min(figures["ours"][figure]) * 1000
        theirs = min(figures["librdkafka"][figure]) * 1000
        print(f"{where:<14} {label:<22} {ours:>9.2f} {theirs:>11.2f} ms {ours / theirs:>7.2f}×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transactions", type=int, default=100)
    options = parser.parse_args()
    print(f"{'on':<14} {'figure':<22} {'ours':>9} {'librdkafka':>11}      ratio")
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(directory) as broker:
        show("our broker", measure(broker.address, options.rounds, options.transactions))
    with tempfile.TemporaryDirectory() as directory:
        kafka = Kafka(Path(directory))
        try:
            show(f"Kafka {VERSION}", measure(kafka.bootstrap, options.rounds, options.transactions))
        finally:
            kafka.stop()


if __name__ == "__main__":
    main()
