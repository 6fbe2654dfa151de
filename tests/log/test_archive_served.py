"""An ordinary consumer reads a topic whose old part lies in an object store."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerThread


@pytest.mark.parametrize("kind", ["directory", "object store"])
def test_a_consumer_reads_through_the_archive(tmp_path: Path, kind: str) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    place = tmp_path / "archive"
    settings = {
        "tailrace.archive.url": str(place) if kind == "directory" else f"local://{place}",
        "log.retention.check.interval.ms": "200",
        "log.flush.offset.checkpoint.interval.ms": "200",
    }
    with BrokerThread(tmp_path / "data", settings=settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        config = {
            "remote.storage.enable": "true",
            "local.retention.ms": "1",
            "internal.segment.bytes": "4000",
        }
        for future in admin.create_topics([NewTopic("t", 1, 1, config=config)]).values():
            future.result(30)
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0})
        for number in range(60):
            producer.produce("t", b"%d" % number * 100, partition=0)
            producer.flush(30)
        deadline = time.monotonic() + 60
        folder = tmp_path / "data" / "t-0"
        while len(list(folder.glob("*.log"))) > 1:
            assert time.monotonic() < deadline, "nothing was archived"
            time.sleep(0.05)
        assert list(place.rglob("*.log"))
        consumer = Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "readers",
                "auto.offset.reset": "error",
            }
        )
        try:
            consumer.assign([TopicPartition("t", 0, 0)])
            found: list[bytes] = []
            while len(found) < 60:
                assert time.monotonic() < deadline + 60, f"only {len(found)} records came"
                message = consumer.poll(1)
                if message is not None:
                    assert message.error() is None
                    found.append(message.value())
            assert found == [b"%d" % number * 100 for number in range(60)]
        finally:
            consumer.close()
