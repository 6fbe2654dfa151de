"""A bit that flipped in an internal topic is found; what it may have cost is answered with an
error, and everything else starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.broker.journal import partition_of
from tailrace.testing.wire_client import WireClient, batch_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import add_partitions_to_txn as adding
from tailrace.wire.messages import init_producer_id as init
from tailrace.wire.messages import offset_commit as committing
from tailrace.wire.messages import offset_fetch as fetching
from tailrace.wire.messages import write_txn_markers as marking

STORAGE_ERROR = 56
PARTITIONS = 4
Start = Callable[..., BrokerThread]


def commit_offset(talk: WireClient, group: str, offset: int, partition: int = 0) -> None:
    part = committing.OffsetCommitRequestPartition(partition, offset)
    answer = talk.ask(
        ApiKey.OFFSET_COMMIT,
        8,
        committing.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            topics=[committing.OffsetCommitRequestTopic(name="t", partitions=[part])],
        ),
    )
    assert answer.topics[0].partitions[0].error_code == 0


def committed(talk: WireClient, group: str, partition: int = 0) -> tuple[int, int]:
    answer = talk.ask(
        ApiKey.OFFSET_FETCH,
        7,
        fetching.OffsetFetchRequest(
            group_id=group, topics=[fetching.OffsetFetchRequestTopic("t", [partition])]
        ),
    )
    row = answer.topics[0].partitions[0]
    return row.error_code, row.committed_offset


def name_in(partition: int, avoid: str = "") -> str:
    return next(
        name
        for name in (f"name-{number}" for number in range(1000))
        if partition_of(name, PARTITIONS) == partition and name != avoid
    )


def flip(directory: Path, topic: str, partition: int, batch: int, within: int) -> None:
    """Flip a bit of the given batch, `within` bytes behind its header's start."""
    path = directory / f"{topic}-{partition}" / "00000000000000000000.log"
    data, position = bytearray(path.read_bytes()), 0
    for _ in range(batch):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    data[position + within] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("within", [8, 16, 19, 40, 62, 70, 90])
def test_an_offset_that_may_be_lost_is_an_error_and_not_a_guess(
    start: Start, tmp_path: Path, within: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start()
    hurt = partition_of("victim", PARTITIONS)
    other, neighbour = name_in((hurt + 1) % PARTITIONS), name_in(hurt, avoid="victim")
    with WireClient(broker.address) as talk:
        talk.create("t", partitions=2)
        commit_offset(talk, "victim", 0x1122)
        commit_offset(talk, "victim", 0x3344)  # this one will be hit
        commit_offset(talk, "victim", 0x5566, partition=1)
        commit_offset(talk, other, 7)
    broker.stop()
    flip(tmp_path / "log", "__consumer_offsets", hurt, 1, within)
    again = start()
    with WireClient(again.address) as talk:
        assert committed(talk, "victim") == (STORAGE_ERROR, -1)
        assert committed(talk, "victim", 1) == (0, 0x5566)  # written after what is lost
        assert committed(talk, other) == (0, 7)
        assert committed(talk, neighbour) == (STORAGE_ERROR, -1)  # it may have had one
        commit_offset(talk, "victim", 0x7788)
        assert committed(talk, "victim") == (0, 0x7788)
    told = [one for one in caplog.records if one.msg == "internal topic is damaged"]
    assert [(one.topic, one.partition, one.offset) for one in told] == [  # type: ignore[attr-defined]
        ("__consumer_offsets", hurt, 1)
    ]
    again.stop()
    with WireClient(start().address) as talk:
        assert committed(talk, "victim") == (0, 0x7788)


def begin(talk: WireClient, name: str) -> tuple[int, int, int]:
    answer = talk.ask(
        ApiKey.INIT_PRODUCER_ID,
        4,
        init.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
    )
    return answer.error_code, answer.producer_id, answer.producer_epoch


def open_transaction(talk: WireClient, name: str) -> int:
    _, producer_id, epoch = begin(talk, name)
    answer = talk.ask(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        adding.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[adding.AddPartitionsToTxnTopic("t", [0])],
        ),
    )
    row = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
    assert row.partition_error_code == 0
    request = talk.produce_request(
        "t",
        batch_of(
            b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
        ),
    )
    request.transactional_id = name
    answer = talk.ask(ApiKey.PRODUCE, 9, request)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return producer_id


@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("within", [16, 40, 62, 80])
def test_a_transaction_whose_end_may_be_lost_is_neither_committed_nor_aborted(
    start: Start, tmp_path: Path, batch: int, within: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start()
    hurt = partition_of("victim", PARTITIONS)
    other, neighbour = name_in((hurt + 1) % PARTITIONS), name_in(hurt, avoid="victim")
    with WireClient(broker.address) as talk:
        talk.create("t")
        producer_id = open_transaction(talk, "victim")  # batches 0 and 1
        begin(talk, neighbour)  # batch 2
        before = begin(talk, other)
    broker.stop()
    flip(tmp_path / "log", "__transaction_state", hurt, batch, within)
    again = start()
    partition = again.broker.store.partition("t", 0)
    with WireClient(again.address) as talk:
        assert begin(talk, other) == (0, before[1], before[2] + 1)
        if batch == 0:  # what came after says it all
            assert begin(talk, "victim")[:2] == (0, producer_id)
            return
        assert partition.producers.open
        end = partition.end_offset
        if batch == 2:  # the last word on it may have been in the damaged range
            assert begin(talk, "victim")[0] == STORAGE_ERROR
        assert partition.end_offset == end
        assert partition.last_stable_offset == 0
        assert "its end may be lost" in caplog.text
        topic = marking.WritableTxnMarkerTopic("t", [0])
        epoch = partition.producers.by_id[producer_id].epoch
        marker = marking.WritableTxnMarker(producer_id, epoch, True, [topic], 0)
        request = marking.WriteTxnMarkersRequest(markers=[marker])
        answer = talk.ask(ApiKey.WRITE_TXN_MARKERS, 1, request)
        assert answer.markers[0].topics[0].partitions[0].error_code == 0
        assert begin(talk, "victim")[0] == 0
        assert partition.last_stable_offset == partition.high_watermark
