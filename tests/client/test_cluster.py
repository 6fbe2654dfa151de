"""The writer on a cluster whose brokers go away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[object]:
    from servers.kafka import Kafka, KafkaUnavailable

    try:
        made = Kafka(tmp_path, nodes=3, settings={"min.insync.replicas": "2"})
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    yield made
    made.stop()


def test_transactions_go_on_when_leaders_and_coordinators_move(cluster: object) -> None:
    bootstrap = cluster.bootstrap  # type: ignore[attr-defined]
    with Admin(bootstrap) as admin:
        admin.create_topic("t", 6, {"min.insync.replicas": "2"}, replication_factor=3)
    kept: list[int] = []
    with TransactionalWriter(bootstrap, "moving") as writer:
        writer.init()
        for number in range(150):
            for partition in range(6):
                writer.send("t", partition, None, b"%d" % number)
            if number % 7 == 3:
                writer.flush()
                writer.abort()
            else:
                writer.commit()
                kept.append(number)
            if number in (30, 80):
                cluster.kill(number // 80)  # type: ignore[attr-defined]
            if number in (60, 110):
                cluster.restart(number // 110)  # type: ignore[attr-defined]
    with Admin(bootstrap) as admin, Fetcher(bootstrap) as fetcher:
        until = SYSTEM.monotonic() + 60
        while admin.topic_end_offsets("t") != admin.topic_end_offsets("t", "read_uncommitted"):
            assert SYSTEM.monotonic() < until
            SYSTEM.sleep(0.1)
        for partition in range(6):
            values = [int(record.value or b"") for record in fetcher.read_all("t", partition)]
            assert values == kept
