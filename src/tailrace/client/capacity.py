"""How many partitions and brokers a load needs, and when a disk is full.

Plain arithmetic of the kind an operator does on paper, each figure with its reason:

- a partition is read by one member of a group and written by any number of producers, so
  the peak divided by what one consumer (or one producer) manages gives the partitions;
  where that is unknown, no partition keeps more than 25 GB;
- a broker's disk holds `retention x rate x replication` of what comes in, its network
  carries the peak once for each replica in, and once for each reading group and each
  further replica out;
- nothing is planned to be more than four fifths full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from tailrace.client.admin import Admin
from tailrace.client.errors import UnknownTopicError
from tailrace.client.sizes import partition_sizes
from tailrace.clock import SYSTEM, Clock

LARGEST_PARTITION = 25_000_000_000
FULL = 0.8
CACHE_SECONDS = 30  # readers this close to the end are served from memory
BROKER_MEMORY = 6_000_000_000  # what an Apache Kafka broker takes for itself
PARTITIONS_A_BROKER = 4_000


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in, how long it stays, who reads it. Rates are bytes a second."""

    rate: float
    peak: float
    retention: timedelta | None = timedelta(days=7)  # None: for ever
    producer_rate: float | None = None
    consumer_rate: float | None = None
    groups: int = 1
    members: int = 1
    keys: int | None = None
    record_bytes: int | None = None
    compacted: bool = False
    replication: int = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """What one broker has; None is not a limit that is known."""

    disk_bytes: float | None = None
    disk_rate: float | None = None
    network_rate: float | None = None
    memory_bytes: float | None = None
    partitions: int = PARTITIONS_A_BROKER


@dataclass(frozen=True, slots=True)
class Need:
    """A number and the reason for it."""

    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a load needs. `partitions` and `brokers` list every demand, the largest first."""

    partitions: tuple[Need, ...]
    brokers: tuple[Need, ...]
    kept_bytes: float | None  # of one copy; None: without end
    notes: tuple[str, ...]
    hours_until_full: float | None  # None: never
    enough: bool | None  # whether the brokers asked about suffice


def plan(
    load: Load,
    machine: Machine,
    *,
    brokers: int | None = None,
    used_bytes: float = 0,
    kept_now: float = 0,
) -> Plan:
    """The plan for `load` on machines like `machine`; `brokers` is how many there are,
    `used_bytes` what others keep on their disks, `kept_now` what this load has there."""
    kept = kept_bytes(load)
    partitions, notes = _partitions(load, kept)
    needed = _brokers(load, machine, kept, partitions[0].count)
    have = brokers if brokers is not None else needed[0].count
    if needed[0].count > 1 or load.replication > 1:
        notes.append("more than one broker is Apache Kafka's work: set log.bootstrap")
    hours = _hours(load, machine, kept, have, used_bytes, kept_now)
    return Plan(
        partitions=tuple(partitions),
        brokers=tuple(needed),
        kept_bytes=kept,
        notes=tuple(notes),
        hours_until_full=hours,
        enough=None if brokers is None else brokers >= needed[0].count and hours is None,
    )


def kept_bytes(load: Load) -> float | None:
    """Bytes of one copy once retention works; None when nothing is ever removed."""
    limits = []
    if load.retention is not None:
        limits.append(load.rate * load.retention.total_seconds())
    if load.compacted and load.keys is not None and load.record_bytes is not None:
        # Between two rounds of the cleaner as much again is dirty.
        limits.append(2.0 * load.keys * load.record_bytes)
    return min(limits, default=None)


def _partitions(load: Load, kept: float | None) -> tuple[list[Need], list[str]]:
    needs, notes = [], []
    for rate, who in ((load.consumer_rate, "consumer"), (load.producer_rate, "producer")):
        if rate is not None:
            needs.append(Need(_up(load.peak / rate), f"peak {_mb(load.peak)} by {_mb(rate)} of one {who}"))  # fmt: skip
    if load.consumer_rate is None:
        if kept is None:
            notes.append("what one consumer manages is unknown and nothing is removed: measure a consumer")  # fmt: skip
        else:
            needs.append(Need(_up(kept / LARGEST_PARTITION), f"{_gb(kept)} kept, at most {_gb(LARGEST_PARTITION)} a partition"))  # fmt: skip
    needs.append(Need(max(1, load.members), f"{load.members} members of a group, each with one"))
    needs.sort(key=lambda need: -need.count)
    if load.keys is not None and needs[0].count > load.keys:
        notes.append(f"{needs[0].count} partitions but {load.keys} keys: some would stay empty")
        needs.insert(0, Need(max(1, load.keys), f"{load.keys} keys, each in one partition"))
    return needs, notes


def _brokers(load: Load, machine: Machine, kept: float | None, partitions: int) -> list[Need]:
    copies = load.replication
    needs = [Need(copies, f"{copies} copies on machines of their own")]
    if machine.disk_bytes is not None and kept is not None:
        stored = kept * copies
        needs.append(Need(_up(stored / (machine.disk_bytes * FULL)), f"disk: {_gb(stored)} by {_gb(machine.disk_bytes)} each, {FULL:.0%} full"))  # fmt: skip
    if machine.disk_rate is not None:
        written = load.peak * copies
        needs.append(Need(_up(written / (machine.disk_rate * FULL)), f"disk rate: {_mb(written)} written by {_mb(machine.disk_rate)} each"))  # fmt: skip
    if machine.network_rate is not None:
        for name, carried in (
            ("in", load.peak * copies),
            ("out", load.peak * (load.groups + copies - 1)),
        ):
            needs.append(Need(_up(carried / (machine.network_rate * FULL)), f"network {name}: {_mb(carried)} by {_mb(machine.network_rate)} each"))  # fmt: skip
    if machine.memory_bytes is not None:
        cached = load.peak * copies * CACHE_SECONDS
        room = max(1.0, machine.memory_bytes - BROKER_MEMORY)
        needs.append(Need(_up(cached / room), f"memory: the last {CACHE_SECONDS} s ({_gb(cached)}) in the page cache"))  # fmt: skip
    needs.append(Need(_up(partitions * copies / machine.partitions), f"{partitions * copies:,} partition copies, {machine.partitions:,} a broker"))  # fmt: skip
    return sorted(needs, key=lambda need: -need.count)


def _hours(
    load: Load, machine: Machine, kept: float | None, brokers: int, used: float, now: float
) -> float | None:
    if machine.disk_bytes is None or load.rate <= 0:
        return None
    room = max(0.0, machine.disk_bytes * brokers - used)
    if kept is not None and kept * load.replication <= room:
        return None  # retention removes the oldest before
    return max(0.0, room - now) / (load.rate * load.replication) / 3600


@dataclass(frozen=True, slots=True)
class Measured:
    """What a topic of a running log does."""

    rate: float
    record_bytes: int | None
    retention: timedelta | None
    compacted: bool
    partitions: int
    used_bytes: int


def measure(admin: Admin, topic: str, seconds: float, *, clock: Clock = SYSTEM) -> Measured:
    """Watch a topic for `seconds`: bytes by what its partitions grow on their disks."""
    known = admin.describe_topic(topic)
    if known is None:
        raise UnknownTopicError(f"there is no topic {topic!r}", hint="`tailrace topic list`")

    def look() -> tuple[int, int]:
        sizes = partition_sizes(admin)
        ends = admin.topic_end_offsets(topic)
        return sum(size for (name, _), size in sizes.items() if name == topic), sum(ends.values())

    began = clock.monotonic()
    size, end = look()
    clock.sleep(seconds)
    size_after, end_after = look()
    elapsed = max(1e-6, clock.monotonic() - began)
    grown, records = max(0, size_after - size), max(0, end_after - end)
    config = {name: entry.value or "" for name, entry in admin.topic_config(topic).items()}
    kept = int(config.get("retention.ms") or -1)
    policy = config.get("cleanup.policy", "delete")
    return Measured(
        rate=grown / elapsed,
        record_bytes=round(grown / records) if records else None,
        retention=timedelta(milliseconds=kept) if kept >= 0 and "delete" in policy else None,
        compacted="compact" in policy,
        partitions=len(known.leaders),
        used_bytes=size_after,
    )


def _up(value: float) -> int:
    return max(1, math.ceil(value - 1e-9))


def _mb(rate: float) -> str:
    return f"{rate / 1e6:,.1f} MB/s"


def _gb(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
