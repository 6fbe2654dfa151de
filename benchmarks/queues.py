"""A share group on our broker beside Apache Kafka: four workers on one partition.

    python -m benchmarks.queues [--rounds 2] [--messages 20000]

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
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import tailrace as tr  # noqa: E402
from servers.kafka import VERSION, Kafka  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402

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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(directory) as broker:
        ours = measure(broker.address, options.rounds, options.messages)
    with tempfile.TemporaryDirectory() as directory:
        kafka = Kafka(Path(directory))
        try:
            theirs = measure(kafka.bootstrap, options.rounds, options.messages)
        finally:
            kafka.stop()
    print(f"{'share group, 4 workers, 1 KB':<32} {'ours':>10} {f'Kafka {VERSION}':>12}   ratio")
    for label, unit, mine, other in (
        ("acknowledged", "jobs/s", ours[0], theirs[0]),
        ("produce to acquire, p50", "ms", ours[1], theirs[1]),
        ("produce to acquire, p99", "ms", ours[2], theirs[2]),
    ):
        print(f"{label + ', ' + unit:<32} {mine:>10,.2f} {other:>12,.2f} {mine / other:>6.2f}×")


if __name__ == "__main__":
    main()
