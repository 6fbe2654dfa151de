"""Our cleaner beside Apache Kafka's, on the same segments.

    python -m benchmarks.compaction [--records 10000000] [--keys 1000000]

Segments of 100-byte records are written once. Kafka gets a copy in its own data directory
(the formats are equal), both clean from the beginning, and the CPU time of each is taken
from the operating system: our child's, and the JVM's from the moment it is told to clean
until its checkpoint says it has. The last value of every key is compared at the end.

Then a broker gets the same segments, and one client writes to another topic, one message
after the other: before the cleaner runs, while it runs at full speed, and after.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import orjson
import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from benchmarks import broker_load as load  # noqa: E402

from servers.kafka import VERSION, Kafka  # noqa: E402
from tailrace.broker.embedded import BrokerProcess  # noqa: E402
from tailrace.log.compaction import make_job  # noqa: E402
from tailrace.log.settings import LogSettings  # noqa: E402
from tailrace.log.store import Store  # noqa: E402
from tailrace.records.batch import decode_raw, encode_columns, iterate_batches  # noqa: E402

TOPIC = "kept"
_DAY_MS = "86400000"


def write(folder: Path, records: int, keys: int) -> tuple[Path, bytes, int]:
    """(partition's directory, the cleaning job, bytes to be cleaned)."""
    chance = random.Random(1)
    store = Store.open([folder])
    config = {"cleanup.policy": "compact", "segment.bytes": str(64 * 1024**2)}
    partition = store.create_topic(TOPIC, 1, config).partitions[0]
    now = int(time.time() * 1000)
    values = [b"x" * 85] * 1000
    for _ in range(records // 1000):
        names = [b"key-%08d" % chance.randrange(keys) for _ in range(1000)]
        partition.append(encode_columns(names, values, now))
    partition.roll(now)
    partition.append(encode_columns([b"the end"], [b""], now))
    size = sum(segment.size for segment in partition.segments[:-1])
    job = orjson.dumps(asdict(make_job(partition, LogSettings(), now)))
    store.close()
    return partition.directory, job, size


def clean_ours(job: bytes) -> tuple[float, float]:
    """(seconds, CPU seconds) of the child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "tailrace.log.cleaner"], input=job, check=True, capture_output=True
    )
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def clean_theirs(folder: Path, segments: Path) -> tuple[float, float, Path]:
    """(seconds, CPU seconds, the partition's directory) of Kafka's cleaner."""
    from confluent_kafka.admin import AdminClient, NewTopic

    kafka = Kafka(folder, settings={"log.cleaner.backoff.ms": "200"})
    try:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        config = {
            "cleanup.policy": "compact",
            "segment.bytes": str(64 * 1024**2),
            "min.cleanable.dirty.ratio": "1.0",
        }
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values():
            future.result(30)
        place = folder / "node-0" / f"{TOPIC}-0"
        time.sleep(1)
        kafka.kill()
        for path in place.glob("0*"):
            path.unlink()
        for path in segments.glob("0*"):
            shutil.copy(path, place / path.name)
        kafka.restart()
        process = psutil.Process(kafka.servers[0].process.pid)
        _settle(process)
        alter(kafka.bootstrap, "min.cleanable.dirty.ratio", "0.0")
        before, started = sum(process.cpu_times()[:2]), time.perf_counter()
        checkpoint = place.parent / "cleaner-offset-checkpoint"
        while f"{TOPIC} 0 " not in (checkpoint.read_text() if checkpoint.exists() else ""):
            time.sleep(0.05)
        seconds = time.perf_counter() - started
        return seconds, sum(process.cpu_times()[:2]) - before, place
    finally:
        kafka.stop()


def _settle(process: psutil.Process) -> None:
    """Wait until starting up no longer takes CPU."""
    while True:
        before = sum(process.cpu_times()[:2])
        time.sleep(1)
        if sum(process.cpu_times()[:2]) - before < 0.1:
            return


def alter(bootstrap: str, name: str, value: str) -> None:
    """Give the compacted topic another setting."""
    from confluent_kafka.admin import (  # fmt: skip
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([change]).values():
        future.result(30)


def produce_beside(folder: Path) -> tuple[list[float], list[float]]:
    """Acknowledgement times on another topic without a cleaner at work, and with one."""
    with Store.open([folder]) as store:
        # Holds the cleaner back until it is wanted.
        store.alter_config(TOPIC, {"min.compaction.lag.ms": _DAY_MS})
    without: list[float] = []
    during: list[float] = []
    with BrokerProcess(folder, settings={"log.cleaner.backoff.ms": "100"}) as broker:
        process = psutil.Process(broker.pid)
        load.create_topic(broker.address, "beside", 1, {})
        without += load.acknowledgement_seconds(broker.address, "beside", 100_000)
        alter(broker.address, "min.compaction.lag.ms", "0")
        while not process.children():
            time.sleep(0.005)
        while process.children():
            times = load.acknowledgement_seconds(broker.address, "beside", 500)
            if process.children():
                during += times
        without += load.acknowledgement_seconds(broker.address, "beside", 100_000)
    return sorted(without), sorted(during)


def last_values(files: list[Path]) -> dict[bytes | None, int]:
    """Key → offset of its last record."""
    found: dict[bytes | None, int] = {}
    for path in files:
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            if header.record_count:
                for record in decode_raw(data, position):
                    found[record.key] = record.offset
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        directory, job, size = write(root / "ours", wanted.records, wanted.keys)
        copy = root / "copy"
        shutil.copytree(directory, copy)
        shutil.copytree(root / "ours", root / "broker")
        (root / "kafka").mkdir()
        their_seconds, their_cpu, place = clean_theirs(root / "kafka", copy)
        our_seconds, our_cpu = clean_ours(job)
        ours = last_values(sorted(directory.glob("*.log.cleaned")))
        theirs = last_values(sorted(place.glob("*.log"))[:-1])
        if ours != theirs:
            raise SystemExit(f"the results differ: {len(ours)} and {len(theirs)} keys")
        without, during = produce_beside(root / "broker")
        served = last_values(sorted((root / "broker" / directory.name).glob("*.log"))[:-1])
        if served != ours:
            raise SystemExit(f"the broker's result differs: {len(served)} and {len(ours)} keys")
    megabytes = size / 1e6
    print(f"{wanted.records:,} records, {len(ours):,} keys, {megabytes:,.0f} MB to clean")
    print(f"{'':24}{'Tailrace':>12}{'Kafka ' + VERSION:>14}{'ratio':>8}")
    rates = megabytes / our_cpu, megabytes / their_cpu
    print(f"{'MB per CPU second':24}{rates[0]:12.1f}{rates[1]:14.1f}{rates[0] / rates[1]:8.2f}")
    print(f"{'CPU seconds':24}{our_cpu:12.2f}{their_cpu:14.2f}{our_cpu / their_cpu:8.2f}")
    print(
        f"{'seconds':24}{our_seconds:12.2f}{their_seconds:14.2f}{our_seconds / their_seconds:8.2f}"
    )
    print(f"{'produce beside it, ms':24}{'without':>12}{'cleaning':>14}{'ratio':>8}")
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        quiet, busy = (times[int(len(times) * share)] * 1000 for times in (without, during))
        print(f"{'acknowledgement, ' + name:24}{quiet:12.3f}{busy:14.3f}{busy / quiet:8.2f}")
    print(f"{'requests':24}{len(without):12,}{len(during):14,}")


if __name__ == "__main__":
    main()
