"""Changelog records reach the partition of their key, whoever has chosen it, and none is lost."""

from __future__ import annotations

import uuid

import pytest

from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.engine.changelog import Piece
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks.changes import FEW_CHANGES, arranged, send_changes
from tailrace.records.columns import bytes_array
from tailrace.records.partitioner import partition_for

PARTITIONS = 3


def piece(first: int, count: int) -> Piece:
    numbers = range(first, first + count)
    keys = [b'{"id":%d}' % number for number in numbers]
    return Piece(bytes_array(keys), bytes_array([b'{"row":%d}' % number for number in numbers]))


@pytest.mark.parametrize("sizes", [
    (1,), (FEW_CHANGES - 1,), (FEW_CHANGES,), (3, 300), (300, 3, 50), (20_000, 5), (5, 20_000),
])  # fmt: skip
@pytest.mark.parametrize("chosen", [0, 2, PARTITIONS])  # partitions that a task thought there are
def test_every_record_reaches_the_partition_of_its_key(
    tailrace_broker: str, sizes: tuple[int, ...], chosen: int
) -> None:
    topic = f"changes-{uuid.uuid4().hex[:8]}"
    pieces = [piece(sum(sizes[:at]), size) for at, size in enumerate(sizes)]
    if chosen:
        pieces = [arranged(one, chosen) for one in pieces]
    with Admin(tailrace_broker) as admin:
        admin.ensure_topic(topic, PARTITIONS, {})
    with TransactionalWriter(tailrace_broker, topic) as writer:
        writer.init()
        assert send_changes(writer, topic, pieces, (("tick", b"1"),)) == sum(sizes)
        writer.commit()
    found: dict[bytes, tuple[int, bytes]] = {}
    with LogReader(tailrace_broker) as reader:
        for records in read_all(reader, topic):
            for key, value in zip(records.keys, records.values, strict=True):
                assert key is not None
                assert value is not None
                assert key not in found
                found[key] = records.partition, value
    expected = {b'{"id":%d}' % n: b'{"row":%d}' % n for n in range(sum(sizes))}
    assert found == {k: (partition_for(k, PARTITIONS), v) for k, v in expected.items()}
