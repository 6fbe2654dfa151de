"""`tailrace plan`: figures with reasons, judged by a disk that is filled hour by hour."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from tailrace.client.admin import Admin
from tailrace.client.capacity import FULL, LARGEST_PARTITION, Load, Machine, measure, plan
from tailrace.client.errors import UnknownTopicError

MB, GB = 1e6, 1e9
TAILRACE = str(Path(sys.executable).with_name("tailrace"))


def hours_by_filling(rate: float, retention_hours: int, room: float, most: int) -> float | None:
    """The naive twin: write hour by hour, remove what is too old."""
    kept: list[float] = []
    for hour in range(most):
        kept = [*kept, rate * 3600][-retention_hours:] if retention_hours else kept
        if sum(kept) > room:
            return hour
    return None


def test_partitions_follow_from_the_peak_and_one_consumer() -> None:
    made = plan(Load(rate=20 * MB, peak=60 * MB, consumer_rate=5 * MB, producer_rate=10 * MB), Machine())  # fmt: skip
    assert made.partitions[0].count == 12
    assert "consumer" in made.partitions[0].reason
    assert made.partitions[1].count == 6


def test_where_a_consumer_is_unknown_a_partition_keeps_25_gigabytes() -> None:
    made = plan(Load(rate=1 * MB, peak=1 * MB, retention=timedelta(days=7)), Machine())
    assert made.kept_bytes == 604_800 * MB
    assert made.partitions[0].count == 25
    assert made.kept_bytes / made.partitions[0].count <= LARGEST_PARTITION


def test_more_partitions_than_keys_are_not_planned() -> None:
    made = plan(Load(rate=MB, peak=50 * MB, consumer_rate=MB, keys=10), Machine())
    assert made.partitions[0].count == 10
    assert any("keys" in note for note in made.notes)


def test_members_each_have_a_partition() -> None:
    assert plan(Load(rate=1, peak=1, members=9), Machine()).partitions[0].count == 9


def test_brokers_follow_from_the_scarcest_thing() -> None:
    load = Load(rate=20 * MB, peak=60 * MB, consumer_rate=5 * MB, groups=3, replication=3)
    plenty = {"disk_bytes": 1e15, "disk_rate": 1e12, "network_rate": 1e12, "memory_bytes": 1e12}
    for scarce, expected in (
        ({"disk_bytes": 4e12}, 12),  # 7 days x 20 MB/s x 3 = 36.3 TB by 3.2 TB
        ({"disk_rate": 200 * MB}, 3),  # 180 MB/s by 160: two, but three copies
        ({"network_rate": 50 * MB}, 8),  # out: 60 x (3 + 2) = 300 MB/s by 40
        ({"memory_bytes": 7e9}, 6),  # 30 s x 180 MB/s = 5.4 GB by 1 GB
        ({"partitions": 5}, 8),  # 36 copies by 5
    ):
        made = plan(load, Machine(**{**plenty, **scarce}))  # type: ignore[arg-type]
        assert made.brokers[0].count == expected, made.brokers
    assert any("log.bootstrap" in note for note in made.notes)


def test_a_compacted_topic_keeps_its_keys_however_much_comes_in() -> None:
    load = Load(rate=9 * MB, peak=9 * MB, retention=None, keys=1_000_000, record_bytes=1000, compacted=True)  # fmt: skip
    made = plan(load, Machine(disk_bytes=10 * GB), brokers=1)
    assert made.kept_bytes == 2 * GB
    assert made.hours_until_full is None
    assert made.enough


def test_what_is_kept_for_ever_fills_any_disk() -> None:
    load = Load(rate=1 * MB, peak=1 * MB, retention=None)
    made = plan(load, Machine(disk_bytes=100 * GB), brokers=1, used_bytes=28 * GB)
    assert made.hours_until_full == pytest.approx(20)
    assert made.enough is False
    now = plan(load, Machine(disk_bytes=100 * GB), brokers=1, kept_now=100 * GB)
    assert now.hours_until_full == 0


@given(
    rate=st.integers(1, 50), retention=st.integers(1, 60), disk=st.integers(1, 4000),
    replication=st.integers(1, 3), groups=st.integers(0, 5),
)  # fmt: skip
def test_planned_brokers_suffice_and_the_hours_are_those_of_a_filled_disk(
    rate: int, retention: int, disk: int, replication: int, groups: int
) -> None:
    load = Load(
        rate=rate * MB, peak=2 * rate * MB, retention=timedelta(hours=retention),
        consumer_rate=1 * MB, groups=groups, replication=replication,
    )  # fmt: skip
    machine = Machine(disk_bytes=disk * GB, network_rate=100 * MB)
    needed = plan(load, machine).brokers[0].count
    made = plan(load, machine, brokers=needed)
    assert made.enough
    assert made.hours_until_full is None
    assert made.kept_bytes is not None
    assert made.kept_bytes * replication <= needed * machine.disk_bytes * FULL * (1 + 1e-9)
    one = plan(load, machine, brokers=1)
    filled = hours_by_filling(rate * MB * replication, retention, disk * GB, 200)
    if filled is None:
        assert one.hours_until_full is None or one.hours_until_full >= 199
    elif one.hours_until_full is not None:
        assert filled <= one.hours_until_full <= filled + 1


def test_a_running_topic_is_measured(tailrace_broker: str) -> None:
    producer = Producer({"bootstrap.servers": tailrace_broker})
    with Admin(tailrace_broker) as admin:
        with pytest.raises(UnknownTopicError):
            measure(admin, "absent", 0)
        admin.create_topic("clicks", partitions=2, config={"retention.ms": "3600000"})
        seen = measure(admin, "clicks", 0)
        assert seen.rate == 0
        assert seen.retention == timedelta(hours=1)
        assert seen.partitions == 2
        assert not seen.compacted
        for number in range(1000):
            producer.produce("clicks", key=str(number).encode(), value=bytes(1000))
        assert producer.flush(10) == 0
        assert measure(admin, "clicks", 0).used_bytes > 1_000_000
    command = [TAILRACE, "plan", "--topic", "clicks", "--sample", "100ms", "--rate", "1 MB/s", "--disk", "1 GB", "--brokers", "1", "--log", tailrace_broker, "--json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr  # 3.6 GB do not fit
    assert json.loads(done.stdout)["measured"]["partitions"] == 2
