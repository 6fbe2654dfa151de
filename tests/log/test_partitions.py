"""Appending and reading: offsets, sequences, sizes, times, transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from log_helpers import HandClock, batch, read_all
from tailrace.log.errors import (
    CoordinatorFencedError,
    InvalidProducerEpochError,
    InvalidTimestampError,
    InvalidTransactionStateError,
    LogError,
    MessageTooLargeError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    PolicyViolationError,
)
from tailrace.log.partition import Partition
from tailrace.log.store import Store
from tailrace.records.batch import decode_records, encode_columns, iterate_batches, read_header
from tailrace.records.errors import InvalidRecordError

OpenStore = Callable[..., Store]


def make(store: Store, **config: object) -> Partition:
    texts = {name.replace("_", "."): str(value) for name, value in config.items()}
    return store.create_topic("t", 1, texts).partitions[0]


def sequenced(
    sequence: int, *values: bytes, epoch: int = 0, transactional: bool = False
) -> bytearray:
    return batch(
        *values,
        producer_id=7,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def test_offsets_are_given_one_by_one(open_store: OpenStore) -> None:
    partition = make(open_store())
    assert partition.append(batch(b"a", b"b"))[:2] == (0, 1)
    assert partition.append(batch(b"c"))[:2] == (2, 2)
    assert partition.high_watermark == partition.last_stable_offset == partition.end_offset == 3
    assert [record.value for record in read_all(partition)] == [b"a", b"b", b"c"]


def test_the_file_holds_the_very_bytes_that_came(open_store: OpenStore) -> None:
    partition = make(open_store())
    sent = batch(b"a" * 100, b"b", compression="zstd")
    partition.append(sent)
    with partition.read(0, 10**6) as piece:
        assert piece.read() == bytes(sent)


def test_a_reader_in_the_middle_of_a_batch_gets_the_whole_batch(open_store: OpenStore) -> None:
    partition = make(open_store())
    for _ in range(50):
        partition.append(batch(b"x", b"y", b"z"))
    with partition.read(76, 10) as piece:
        data = piece.read()
    assert [header.base_offset for _, header in iterate_batches(data)] == [75]


def test_without_minimum_a_small_limit_cuts_the_batch(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(batch(b"x" * 1000))
    with partition.read(0, 10, minimum_one_batch=False) as piece:
        assert piece.length == 10


def test_outside_the_log_is_an_error_and_at_its_end_is_nothing(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(batch(b"a"))
    assert partition.read(1, 100).length == 0
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRangeError) as caught:
            partition.read(offset, 100)
        assert caught.value.kafka_code == 1


@pytest.mark.parametrize("size", [1, 200, 5000])
def test_every_offset_is_found_across_many_segments(open_store: OpenStore, size: int) -> None:
    partition = make(open_store(), internal_segment_bytes=20_000, index_interval_bytes=500)
    count = 300 if size < 5000 else 40
    for number in range(count):
        partition.append(batch(b"%d" % number, b"x" * size))
    assert len(partition.segments) > 1
    for offset in range(0, 2 * count, 7):
        with partition.read(offset, 100) as piece:
            header = read_header(piece.read())
        assert header.base_offset <= offset <= header.last_offset
    assert len(read_all(partition, max_bytes=3000)) == 2 * count


def test_a_slice_outlives_its_segment(open_store: OpenStore) -> None:
    partition = make(open_store(), internal_segment_bytes=100)
    for number in range(3):
        partition.append(batch(b"%d" % number * 100))
    piece = partition.read(0, 10**6)
    partition.delete_records(2)
    assert [r.offset for r in decode_records(piece.read())] == [0]
    piece.release()


def test_a_second_batch_in_one_request_is_refused(open_store: OpenStore) -> None:
    partition = make(open_store())
    with pytest.raises(InvalidRecordError):
        partition.append(batch(b"a") + batch(b"b"))
    assert partition.end_offset == 0


def test_clients_may_not_write_control_batches_or_offsets(open_store: OpenStore) -> None:
    partition = make(open_store())
    for wrong in (batch(b"a", control=True), batch(b"a", base_offset=5)):
        with pytest.raises(InvalidRecordError):
            partition.append(wrong)


def test_a_batch_over_the_limit_is_refused(open_store: OpenStore) -> None:
    partition = make(open_store(), max_message_bytes=500)
    with pytest.raises(MessageTooLargeError) as caught:
        partition.append(batch(b"x" * 1000))
    assert caught.value.kafka_code == 10
    partition.append(batch(b"x" * 100))


def test_a_compacted_topic_wants_keys_in_every_codec(open_store: OpenStore) -> None:
    partition = make(open_store(), cleanup_policy="compact")
    for codec in ("none", "gzip", "zstd"):
        with pytest.raises(InvalidRecordError) as caught:
            partition.append(batch(b"x", key=None, compression=codec))
        assert caught.value.kafka_code == 87
    partition.append(batch(b"x", key=b""))


def test_a_time_far_in_the_future_is_refused(open_store: OpenStore, clock: HandClock) -> None:
    partition = make(open_store(), message_timestamp_before_max_ms=1000)
    for wrong in (clock.now + 3_700_000, clock.now - 5000):
        with pytest.raises(InvalidTimestampError) as caught:
            partition.append(batch(b"x", at=wrong))
        assert caught.value.kafka_code == 32


def test_append_time_is_the_brokers(open_store: OpenStore, clock: HandClock) -> None:
    partition = make(open_store(), message_timestamp_type="LogAppendTime")
    answer = partition.append(batch(b"x", b"y", at=5))
    assert answer.log_append_time == clock.now
    assert [record.timestamp for record in read_all(partition)] == [clock.now, clock.now]


def test_a_topics_own_codec_replaces_the_producers(open_store: OpenStore) -> None:
    partition = make(open_store(), compression_type="zstd")
    partition.append(batch(b"x" * 500, b"y"))
    with partition.read(0, 10**6) as piece:
        assert read_header(piece.read()).codec == 4
    assert [record.value for record in read_all(partition)] == [b"x" * 500, b"y"]


# ── idempotent producers ────────────────────────────────────────────────────────────


def test_each_of_the_last_five_batches_is_answered_with_its_first_result(
    open_store: OpenStore,
) -> None:
    partition = make(open_store())
    for number in range(8):
        partition.append(sequenced(number * 2, b"a", b"b"))
    for number in range(3, 8):
        answer = partition.append(sequenced(number * 2, b"a", b"b"))
        assert answer.duplicate
        assert (answer.base_offset, answer.last_offset) == (number * 2, number * 2 + 1)
    with pytest.raises(OutOfOrderSequenceError):
        partition.append(sequenced(4, b"a", b"b"))
    assert partition.end_offset == 16


def test_a_gap_in_the_sequence_is_refused(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(sequenced(0, b"a"))
    with pytest.raises(OutOfOrderSequenceError) as caught:
        partition.append(sequenced(2, b"c"))
    assert caught.value.kafka_code == 45


def test_a_new_epoch_restarts_at_zero_and_fences_the_old(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(sequenced(0, b"a"))
    with pytest.raises(OutOfOrderSequenceError):
        partition.append(sequenced(1, b"b", epoch=1))
    partition.append(sequenced(0, b"b", epoch=1))
    with pytest.raises(InvalidProducerEpochError) as caught:
        partition.append(sequenced(1, b"c", epoch=0))
    assert caught.value.kafka_code == 47


def test_sequences_go_on_after_the_largest_number(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(sequenced(2**31 - 2, b"a", b"b", b"c"))
    partition.append(sequenced(1, b"d"))
    assert partition.append(sequenced(2**31 - 2, b"a", b"b", b"c")).duplicate


def test_idle_producers_are_forgotten(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store(producer_id_expiration_ms="1000")
    partition = make(store)
    partition.append(sequenced(0, b"a"))
    store.tick()
    assert partition.describe_producers()
    clock.now += 700_000
    store.tick()
    assert partition.describe_producers() == []
    partition.append(sequenced(9, b"b"))  # as Kafka: an unknown producer begins anywhere


# ── transactions ────────────────────────────────────────────────────────────────────


def test_an_open_transaction_holds_the_stable_offset(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(batch(b"before"))
    partition.append(sequenced(0, b"x", transactional=True))
    partition.append(batch(b"after"))
    assert (partition.last_stable_offset, partition.high_watermark) == (1, 3)
    assert partition.has_open_transaction(7)
    assert len(read_all(partition, limit=partition.last_stable_offset)) == 1
    marker = partition.append_marker(7, 0, True, 0)
    assert marker.base_offset == 3
    assert partition.last_stable_offset == 4
    assert partition.aborted_transactions(0, 10) == []


def test_an_aborted_transaction_is_listed_for_its_readers(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(sequenced(0, b"x", transactional=True))
    partition.append(sequenced(1, b"y", transactional=True))
    partition.append_marker(7, 0, False, 0)
    partition.append(batch(b"after"))
    assert partition.aborted_transactions(0, 4) == [(7, 0)]
    assert partition.aborted_transactions(3, 4) == []


def test_writing_outside_an_open_transaction_is_refused(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(sequenced(0, b"x", transactional=True))
    with pytest.raises(InvalidTransactionStateError):
        partition.append(sequenced(1, b"y"))


def test_a_late_marker_is_refused(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(sequenced(0, b"x", epoch=3, transactional=True))
    with pytest.raises(InvalidProducerEpochError):
        partition.append_marker(7, 2, True, 5)
    partition.append_marker(7, 3, True, 5)
    with pytest.raises(CoordinatorFencedError):
        partition.append_marker(7, 3, True, 4)


def test_offsets_in_a_transaction_need_no_sequence(open_store: OpenStore) -> None:
    store = open_store()
    partition = make(store)
    write = batch(b"offsets", producer_id=7, producer_epoch=0, transactional=True)
    with pytest.raises(InvalidRecordError):
        partition.append(bytearray(write))
    partition.append_internal(write)
    assert partition.last_stable_offset == 0
    store.abandon()
    again = open_store().partition("t", 0)
    assert again.has_open_transaction(7)
    again.append_marker(7, 0, True, 0)
    assert again.last_stable_offset == 2


# ── time, epochs, deletion ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_lookup_by_time_is_exact_inside_batches(open_store: OpenStore, codec: str) -> None:
    partition = make(open_store(), internal_segment_bytes=400, index_interval_bytes=100)
    times = [100, 300, 200, 500, 400, 600, 650, 640, 700, 800, 900, 50]
    for place in range(0, len(times), 3):
        partition.append(
            encode_columns([b"k"] * 3, [b"v" * 50] * 3, times[place : place + 3], compression=codec)
        )
    for wanted in range(0, 1000, 25):
        expected = next(((o, t) for o, t in enumerate(times) if t >= wanted), None)
        found = partition.offset_for_time(wanted)
        assert (found and found[:2]) == expected, wanted
    largest = partition.max_timestamp_offset()
    assert largest is not None
    assert largest[:2] == (10, 900)


@pytest.mark.parametrize("time", [-1, 0])
def test_records_without_a_time_are_taken(open_store: OpenStore, time: int) -> None:
    store = open_store()
    partition = make(store, internal_segment_bytes=500, index_interval_bytes=50)
    for number in range(20):
        partition.append(batch(b"%d" % number, at=time))
    assert len(partition.segments) > 2
    assert partition.offset_for_time(1) is None
    for end in (store.abandon, None):
        if end is not None:
            end()
        else:
            store.close()
        store = open_store()
        partition = store.partition("t", 0)
        assert len(read_all(partition)) == 20
        assert partition.active.max_timestamp == time


def test_a_full_index_closes_its_segment(open_store: OpenStore) -> None:
    partition = make(open_store(), index_interval_bytes=0, segment_index_bytes=80)
    for number in range(50):
        partition.append(batch(b"%d" % number))
    assert [segment.base_offset for segment in partition.segments] == [0, 11, 22, 33, 44]


def test_segments_come_of_age_at_different_times(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    config = {"segment.ms": "1000000", "segment.jitter.ms": "1000000"}
    partitions = store.create_topic("t", 20, config).partitions
    for partition in partitions:
        partition.append(batch(b"x", at=clock.now))
        partition.roll(clock.now)
        partition.append(batch(b"y", at=clock.now))
    clock.now += 500_000
    store.tick()
    assert {len(partition.segments) for partition in partitions} == {2, 3}


def test_old_event_times_do_not_make_a_producer_forgotten(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store()
    partition = make(store)
    old = batch(b"a", at=5, producer_id=7, producer_epoch=0, base_sequence=0)
    partition.append(bytearray(old))
    store.tick()
    assert partition.append(old).duplicate


def test_deleting_records_moves_the_start(open_store: OpenStore) -> None:
    store = open_store()
    partition = make(store, internal_segment_bytes=200)
    for number in range(10):
        partition.append(batch(b"%d" % number * 90))
    assert partition.delete_records(5) == 5
    assert partition.delete_records(3) == 5
    assert [record.offset for record in read_all(partition)] == [5, 6, 7, 8, 9]
    with pytest.raises(OffsetOutOfRangeError):
        partition.delete_records(11)
    assert partition.delete_records(-1) == 10
    store.tick()
    assert len(partition.segments) == 1


def test_a_compacted_topic_refuses_deletion_by_offset(open_store: OpenStore) -> None:
    partition = make(open_store(), cleanup_policy="compact")
    with pytest.raises(PolicyViolationError) as caught:
        partition.delete_records(0)
    assert caught.value.kafka_code == 44


def test_under_flush_one_readers_see_only_what_is_synced(open_store: OpenStore) -> None:
    partition = make(open_store(), flush_messages=1)
    answer = partition.append(batch(b"a"))
    assert partition.needs_sync
    assert partition.high_watermark == 0
    ticket = partition.begin_sync()
    assert ticket is not None
    partition.append(batch(b"b"))
    ticket.run()
    ticket.finish()
    assert partition.high_watermark == 1 == answer.last_offset + 1
    partition.sync()
    assert partition.high_watermark == 2
    assert partition.begin_sync() is None


def test_a_transaction_stays_open_until_its_marker_is_synced(open_store: OpenStore) -> None:
    partition = make(open_store(), flush_messages=1)
    partition.append(sequenced(0, b"x", transactional=True))
    partition.sync()
    partition.append_marker(7, 0, True, 0)
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
    partition.sync()
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 2)


def test_every_error_has_a_kafka_number() -> None:
    waiting = [LogError]
    while waiting:
        kind = waiting.pop()
        assert isinstance(kind.kafka_code, int)
        waiting += kind.__subclasses__()
