"""Transactions of 100 records beside Apache Kafka, and what heartbeats cost.

    python -m benchmarks.transactions [--rounds 3] [--transactions 300]

The client is librdkafka for both. Our broker has every commit on the disk before it
answers; Kafka answers when it is in the page cache, so a second row shows ours with
`transaction.flush=false`. Rounds alternate, each figure is the better of its rounds. After
each run the committed records are counted; one too few or too many fails the benchmark.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from confluent_kafka import Producer  # noqa: E402

from servers.kafka import VERSION, Kafka  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.client.admin import Admin  # noqa: E402
from tailrace.client.connection import Connection  # noqa: E402
from tailrace.client.fetcher import Fetcher  # noqa: E402
from tailrace.wire.apis import APIS, ApiKey  # noqa: E402
from tailrace.wire.messages.consumer_group_heartbeat import (  # noqa: E402
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

PARTITIONS = 4
RECORDS = 100
VALUE = b"v" * 100
MEMBERS = 1000
BEAT_SECONDS = 5.0


@dataclass
class Contender:
    """One broker and the best it reached."""

    name: str
    address: str
    commits: float = 0.0
    p50_ms: float = float("inf")
    p99_ms: float = float("inf")
    rounds: list[tuple[float, float, float]] = field(default_factory=list)

    def note(self, commits: float, p50_ms: float, p99_ms: float) -> None:
        self.rounds.append((commits, p50_ms, p99_ms))
        self.commits = max(self.commits, commits)
        self.p50_ms = min(self.p50_ms, p50_ms)
        self.p99_ms = min(self.p99_ms, p99_ms)


def run(who: Contender, topic: str, transactions: int) -> None:
    """One producer, one transaction after another."""
    with Admin(who.address) as admin:
        admin.create_topic(topic, PARTITIONS)
    producer = Producer(
        {"bootstrap.servers": who.address, "transactional.id": topic, "linger.ms": 0}
    )
    producer.init_transactions(60)
    durations: list[float] = []
    started = time.perf_counter()
    for number in range(transactions):
        if number == transactions // 10:
            durations.clear()
            started = time.perf_counter()
        producer.begin_transaction()
        for index in range(RECORDS):
            producer.produce(topic, partition=index % PARTITIONS, value=VALUE)
        before = time.perf_counter()
        producer.commit_transaction(60)
        durations.append(time.perf_counter() - before)
    elapsed = time.perf_counter() - started
    found = count(who.address, topic)
    if found != transactions * RECORDS:
        raise SystemExit(f"{who.name}: {found} records committed, {transactions * RECORDS} sent")
    durations.sort()
    who.note(
        len(durations) / elapsed,
        durations[len(durations) // 2] * 1000,
        durations[int(len(durations) * 0.99)] * 1000,
    )


def count(address: str, topic: str) -> int:
    with Admin(address) as admin:
        ends = admin.topic_end_offsets(topic)
    with Fetcher(address) as fetcher:
        return sum(
            1 for index, end in ends.items() for _ in fetcher.read_range(topic, index, 0, end)
        )


def heartbeats(address: str, process: psutil.Process) -> float:
    """Cores that the quiet heartbeats of 1,000 members of one group cost."""
    host, port = address.rsplit(":", 1)
    with Admin(address) as admin:
        admin.create_topic("beats", 100)
    connection = Connection(host, int(port))
    api = APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT]
    epochs: dict[str, int] = {}

    def beat(name: str, **given: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id="crowd", member_id=name, member_epoch=epochs.get(name, 0), **given
        )
        answer = connection.request(api, request)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if answer.error_code:
            raise SystemExit(f"heartbeat refused: {answer}")
        epochs[name] = answer.member_epoch

    names = [f"member-{number}" for number in range(MEMBERS)]
    for name in names:
        beat(
            name,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["beats"],
            topic_partitions=[],
        )
    for _ in range(3):
        for name in names:
            beat(name, topic_partitions=[])
    before = process.cpu_times()
    for _ in range(4):
        for name in names:
            beat(name)
    after = process.cpu_times()
    connection.close()
    spent = after.user + after.system - before.user - before.system
    return float(spent / 4 / BEAT_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transactions", type=int, default=300)
    given = parser.parse_args()
    print(
        f"python -m benchmarks.transactions --rounds {given.rounds} --transactions {given.transactions}"
    )
    print(
        f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"Apache Kafka {VERSION}, load before: {os.getloadavg()[0]:.1f}\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        places = {name: Path(scratch) / name for name in ("synced", "unsynced", "kafka")}
        for place in places.values():
            place.mkdir()
        stops: list[Callable[[], object]] = []
        try:
            synced = BrokerProcess(places["synced"])
            stops.append(synced.stop)
            unsynced = BrokerProcess(places["unsynced"], settings={"transaction.flush": "false"})
            stops.append(unsynced.stop)
            kafka = Kafka(places["kafka"])
            stops.append(kafka.stop)
            contenders = [
                Contender("tailrace", synced.address),
                Contender("tailrace, transaction.flush=false", unsynced.address),
                Contender("kafka", kafka.bootstrap),
            ]
            for number in range(given.rounds):
                for who in contenders:
                    run(who, f"round-{number}", given.transactions)
            theirs = contenders[-1]
            print(
                f"{'100 records a transaction':<36}{'commits/s':>10}{'p50 ms':>9}{'p99 ms':>9}   ratios to Kafka"
            )
            for who in contenders:
                ratios = (
                    f"{who.commits / theirs.commits:.2f}  {who.p50_ms / theirs.p50_ms:.2f}  "
                    f"{who.p99_ms / theirs.p99_ms:.2f}"
                )
                print(
                    f"{who.name:<36}{who.commits:>10.0f}{who.p50_ms:>9.2f}{who.p99_ms:>9.2f}   {ratios}"
                )
            print("wanted of tailrace: commits ≥ 1.0, p99 ≤ 1.0\n")
            cores = heartbeats(synced.address, psutil.Process(synced.pid))
            print(
                f"heartbeats of {MEMBERS} members of a server-side group: {cores:.3f} cores (wanted ≤ 0.2)"
            )
        finally:
            for stop in stops:
                stop()


if __name__ == "__main__":
    main()
