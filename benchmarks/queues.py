"""Queues, groups and quotas on our broker beside Apache Kafka.

    python -m benchmarks.queues [--rounds 2] [--messages 20000] [--only queue|beats|quota …]

*queue*: four workers share one partition. *beats*: a thousand members of one server-side
group send heartbeats every five seconds; the figure is the broker's processor time. *quota*:
a producer is throttled while another one works; its rate and the time of its
acknowledgements with and without that neighbour.

Workers are processes with our own client, the same on both. Each round is a fresh topic
and group; the figure is the better of the rounds. Every message must be acknowledged by
exactly one worker, or the benchmark fails. Latency is from just before the send to the
moment a worker has the job, one message at a time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import psutil  # noqa: E402

import tailrace as tr  # noqa: E402
from servers.kafka import VERSION, Kafka  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.client.admin import Admin  # noqa: E402
from tailrace.client.cluster import COORDINATOR_MOVED, GROUP, Cluster  # noqa: E402
from tailrace.client.connection import Connection  # noqa: E402
from tailrace.client.quotas import CLIENT_ID, Quotas  # noqa: E402
from tailrace.records.encode import encode_columns  # noqa: E402
from tailrace.wire.apis import APIS, ApiKey  # noqa: E402
from tailrace.wire.messages import produce as produce_wire  # noqa: E402
from tailrace.wire.messages.consumer_group_heartbeat import (  # noqa: E402
    ConsumerGroupHeartbeatRequest,
    RequestTopicPartitions,
)

WORKERS = 4
VALUE = b"x" * 1000


def take(address: str, topic: str, ready: Any, go: Any, left: Any, counts: Any) -> None:
    with tr.connect(address) as log, log.queue(topic, topic, max_records=500) as queue:
        queue.poll(0.5)
        ready.release()
        go.wait()
        taken = 0
        while left.value > 0:
            jobs = queue.poll(0.2)
            for job in jobs:
                job.ack()
            if jobs:
                queue.flush()
                taken += len(jobs)
                with left.get_lock():
                    left.value -= len(jobs)
        counts.put(taken)


def throughput(address: str, topic: str, messages: int) -> float:
    context = multiprocessing.get_context("spawn")
    ready, go, counts = context.Semaphore(0), context.Event(), context.Queue()
    left = context.Value("i", messages)
    with tr.connect(address) as log:
        log.create_topic(topic, 1)
        workers = [
            context.Process(target=take, args=(address, topic, ready, go, left, counts))
            for _ in range(WORKERS)
        ]
        for worker in workers:
            worker.start()
        for _ in workers:
            ready.acquire()
        with log.producer() as producer:
            for _ in range(messages):
                producer.send(topic, value=VALUE)
        started = time.perf_counter()
        go.set()
        total = sum(counts.get() for _ in workers)
        seconds = time.perf_counter() - started
        for worker in workers:
            worker.join()
    if total != messages:
        raise SystemExit(f"{topic}: {total} acknowledgements for {messages} messages")
    return messages / seconds


def latencies(address: str, topic: str, count: int = 200) -> list[float]:
    found = []
    with tr.connect(address) as log:
        log.create_topic(topic, 1)
        with log.queue(topic, topic) as queue, log.producer(linger_ms=0) as producer:
            queue.poll(0.5)
            for _ in range(count):
                started = time.perf_counter()
                producer.send(topic, value=VALUE)
                jobs = queue.poll(10)
                found.append(time.perf_counter() - started)
                for job in jobs:
                    job.ack()
    return sorted(found)


# Heartbeats --------------------------------------------------------------------

MEMBERS = 1000
INTERVAL = 5.0
HEARTBEAT = APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT]


class Crowd:
    """Members of one group that do as they are told, on a few connections."""

    def __init__(self, address: str, group: str, topic: str, size: int) -> None:
        cluster = Cluster(address)
        # The group's home exists from now on.
        cluster.retry(lambda: cluster.coordinator(group, GROUP), "finding the coordinator")
        cluster.close()
        host, port = address.split(",")[0].rsplit(":", 1)
        self.connections = [Connection(host, int(port)) for _ in range(20)]
        self.group, self.topic = group, topic
        self.names = [f"member-{number}" for number in range(size)]
        self.epochs = dict.fromkeys(self.names, 0)
        self.owned: dict[str, list[Any]] = {name: [] for name in self.names}
        self.moved = True

    def beat(self, name: str, connection: Connection) -> None:
        joining = self.epochs[name] == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=name,
            member_epoch=self.epochs[name],
            rebalance_timeout_ms=60_000 if joining else -1,
            subscribed_topic_names=[self.topic] if joining else None,
            topic_partitions=self.owned[name] if self.moved or joining else None,
        )
        answer: Any = connection.request(HEARTBEAT, request)
        while answer.error_code in COORDINATOR_MOVED:  # Kafka is not quite there yet
            time.sleep(0.2)
            answer = connection.request(HEARTBEAT, request)
        if answer.error_code:
            raise SystemExit(f"heartbeat: {answer}")
        if answer.assignment is not None:
            self.owned[name] = [
                RequestTopicPartitions(row.topic_id, row.partitions)
                for row in answer.assignment.topic_partitions
            ]
        self.epochs[name] = answer.member_epoch

    def round(self) -> None:
        """One heartbeat of everybody, spread over the interval by the caller or at once."""
        for number, name in enumerate(self.names):
            self.beat(name, self.connections[number % len(self.connections)])

    def settle(self) -> None:
        """Until everybody is in the same epoch and nothing moves any more."""
        for _ in range(60):
            before = (dict(self.epochs), {name: len(rows) for name, rows in self.owned.items()})
            self.round()
            if before == (self.epochs, {name: len(rows) for name, rows in self.owned.items()}):
                self.moved = False
                return
        raise SystemExit("the group did not settle")

    def live(self, seconds: float) -> None:
        """Heartbeats as members send them: each every `INTERVAL`."""
        pause = INTERVAL / len(self.names)
        due = time.perf_counter()
        end = due + seconds
        number = 0
        while due < end:
            name = self.names[number % len(self.names)]
            self.beat(name, self.connections[number % len(self.connections)])
            number += 1
            due += pause
            time.sleep(max(0.0, due - time.perf_counter()))

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


def beats(address: str, process: psutil.Process, seconds: float = 15.0) -> float:
    """Share of one core the broker spends on the heartbeats of `MEMBERS`."""
    with tr.connect(address) as log:
        log.create_topic("crowd", MEMBERS)
    crowd = Crowd(address, "crowd", "crowd", MEMBERS)
    try:
        crowd.settle()
        idle_before = _cpu(process)
        time.sleep(seconds / 3)
        idle = (_cpu(process) - idle_before) / (seconds / 3)
        before = _cpu(process)
        crowd.live(seconds)
        return max(0.0, (_cpu(process) - before) / seconds - idle)
    finally:
        crowd.close()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


# Quotas ------------------------------------------------------------------------

PRODUCE = APIS[ApiKey.PRODUCE]


def produce_for(address: str, topic: str, name: str, seconds: float, size: int) -> list[float]:
    """Acknowledgement times of one producer that sends as fast as it is answered."""
    host, port = address.split(",")[0].rsplit(":", 1)
    connection = Connection(host, int(port), client_id=name.encode())
    batch = encode_columns([None], [b"x" * size], int(time.time() * 1000))
    request = produce_wire.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            produce_wire.TopicProduceData(topic, b"", [produce_wire.PartitionProduceData(0, batch)])
        ],
    )
    times = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        connection.send(PRODUCE, request, 9)
        answer: Any = connection.receive()
        if answer.responses[0].partition_responses[0].error_code:
            raise SystemExit(f"produce: {answer}")
        times.append(time.perf_counter() - started)
    connection.close()
    return sorted(times)


def throttled_neighbour(address: str, seconds: float = 8.0) -> tuple[float, float, float, float]:
    """Requests a second and p99 (ms) of a producer alone, and beside a throttled one."""
    with tr.connect(address) as log:
        for topic in ("mine", "theirs"):
            log.create_topic(topic, 1)
    with Admin(address) as admin:
        Quotas(admin).change({CLIENT_ID: "greedy"}, {"producer_byte_rate": 100_000.0})

    def alone() -> list[float]:
        return produce_for(address, "mine", "modest", seconds, 1000)

    def beside() -> list[float]:
        greedy = threading.Thread(
            target=produce_for, args=(address, "theirs", "greedy", seconds, 100_000)
        )
        greedy.start()
        times = alone()
        greedy.join()
        return times

    alone()  # warms the broker
    runs: list[tuple[list[float], list[float]]] = [(alone(), beside()) for _ in range(2)]

    def best(which: int, figure: Callable[[list[float]], float]) -> list[float]:
        return [figure(run[which]) for run in runs]

    rate: Callable[[list[float]], float] = lambda times: len(times) / seconds  # noqa: E731
    p99: Callable[[list[float]], float] = lambda times: times[int(len(times) * 0.99)] * 1000  # noqa: E731
    return max(best(0, rate)), max(best(1, rate)), min(best(0, p99)), min(best(1, p99))


def measure(address: str, rounds: int, messages: int) -> tuple[float, float, float]:
    rates, p50s, p99s = [], [], []
    for number in range(rounds + 1):  # the first round warms the broker
        rate = throughput(address, f"rate-{number}", messages)
        times = latencies(address, f"latency-{number}")
        if number:
            rates.append(rate)
            p50s.append(times[len(times) // 2])
            p99s.append(times[int(len(times) * 0.99)])
    return max(rates), min(p50s) * 1000, min(p99s) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--only", action="append", choices=("queue", "beats", "quota"))
    options = parser.parse_args()
    chosen = options.only or ["queue", "beats", "quota"]
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(directory) as broker:
        ours = figures(broker.address, broker.pid, chosen, options)
    with tempfile.TemporaryDirectory() as directory:
        kafka = Kafka(Path(directory))
        try:
            theirs = figures(kafka.bootstrap, kafka.servers[0].process.pid, chosen, options)
        finally:
            kafka.stop()
    print(f"{'':<48} {'ours':>10} {f'Kafka {VERSION}':>12}   ratio")
    for label, mine in ours.items():
        other = theirs[label]
        ratio = f"{mine / other:>6.2f}×" if other else ""
        print(f"{label:<48} {mine:>10,.2f} {other:>12,.2f} {ratio}")


def figures(
    address: str, pid: int, chosen: list[str], options: argparse.Namespace
) -> dict[str, float]:
    """Every figure chosen, of one broker."""
    found: dict[str, float] = {}
    if "queue" in chosen:
        rate, p50, p99 = measure(address, options.rounds, options.messages)
        found["4 workers, 1 partition, 1 KB: acknowledged/s"] = rate
        found["produce to acquire, p50, ms"] = p50
        found["produce to acquire, p99, ms"] = p99
    if "beats" in chosen:
        found[f"heartbeats of {MEMBERS:,} members, cores"] = beats(address, psutil.Process(pid))
    if "quota" in chosen:
        alone, beside, p99_alone, p99_beside = throttled_neighbour(address)
        found["producer alone, requests/s"] = alone
        found["beside a throttled one, requests/s"] = beside
        found["producer alone, p99, ms"] = p99_alone
        found["beside a throttled one, p99, ms"] = p99_beside
    return found


if __name__ == "__main__":
    main()
