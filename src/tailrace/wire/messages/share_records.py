"""share_records: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

# mypy: ignore-errors

from __future__ import annotations

from struct import Struct, pack, unpack_from

from tailrace.wire.message import (
    ELEMENTS_LIMIT,
    NEW,
    TAGS_LIMIT,
    TOO_MANY_ELEMENTS,
    Message,
    fail,
    read_long_varint,
    read_varint,
    skip_tags,
    write_bytes,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
    write_varint,
)

_struct_16si = Struct(">16si")
_read_16si = _struct_16si.unpack_from
_write_16si = _struct_16si.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_iiiqqq = Struct(">iiiqqq")
_read_iiiqqq = _struct_iiiqqq.unpack_from
_write_iiiqqq = _struct_iiiqqq.pack
_struct_qqbh = Struct(">qqbh")
_read_qqbh = _struct_qqbh.unpack_from
_write_qqbh = _struct_qqbh.pack


class ShareSnapshotKey(Message):
    __slots__ = ("group_id", "topic_id", "partition",)

    def __init__(
        self,
        group_id: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partition: int = 0,
    ) -> None:
        self.group_id: str = group_id
        self.topic_id: bytes = topic_id
        self.partition: int = partition


class StateBatch(Message):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count",)

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count


class ShareSnapshotValue(Message):
    __slots__ = ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "create_timestamp", "write_timestamp", "state_batches",)

    def __init__(
        self,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[StateBatch] = NEW,
    ) -> None:
        self.snapshot_epoch: int = snapshot_epoch
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count
        self.create_timestamp: int = create_timestamp
        self.write_timestamp: int = write_timestamp
        self.state_batches: list[StateBatch] = [] if state_batches is NEW else state_batches


def _decode_share_snapshot_key_0(b: memoryview, p: int = 0) -> ShareSnapshotKey:
    end = len(b)
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("group_id is null")
    q = p + n
    if q > end:
        raise fail("group_id past the end")
    group_id_1 = str(b[p:q], "utf-8")
    p = q
    topic_id_1, partition_1 = _read_16si(b, p)
    p += 20
    return ShareSnapshotKey(group_id_1, topic_id_1, partition_1)


DECODE_SHARE_SNAPSHOT_KEY = {
    0: _decode_share_snapshot_key_0,
}


def _encode_share_snapshot_key_0(m: ShareSnapshotKey, out: bytearray) -> None:
    write_string(out, m.group_id)
    out += _write_16si(m.topic_id, m.partition)


ENCODE_SHARE_SNAPSHOT_KEY = {
    0: _encode_share_snapshot_key_0,
}


def _decode_share_snapshot_value_0(b: memoryview, p: int = 0) -> ShareSnapshotValue:
    end = len(b)
    snapshot_epoch_1, state_epoch_1, leader_epoch_1, start_offset_1, create_timestamp_1, write_timestamp_1 = _read_iiiqqq(b, p)
    p += 36
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("state_batches is null")
    if n * 20 > end - p:
        raise fail("state_batches has more elements than bytes")
    state_batches_1 = []
    for _ in range(n):
        first_offset_2, last_offset_2, delivery_state_2, delivery_count_2 = _read_qqbh(b, p)
        p += 19
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        state_batches_1.append(StateBatch(first_offset_2, last_offset_2, delivery_state_2, delivery_count_2))
    delivery_complete_count_1 = -1
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_3 = p + n
        if stop_3 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            (delivery_complete_count_1,) = _read_i(b, p)
            p += 4
            if p != stop_3:
                raise fail("delivery_complete_count is not as long as it says")
        else:
            p = stop_3
    return ShareSnapshotValue(snapshot_epoch_1, state_epoch_1, leader_epoch_1, start_offset_1, delivery_complete_count_1, create_timestamp_1, write_timestamp_1, state_batches_1)


DECODE_SHARE_SNAPSHOT_VALUE = {
    0: _decode_share_snapshot_value_0,
}


def _encode_share_snapshot_value_0(m: ShareSnapshotValue, out: bytearray) -> None:
    out += _write_iiiqqq(m.snapshot_epoch, m.state_epoch, m.leader_epoch, m.start_offset, m.create_timestamp, m.write_timestamp)
    each_1 = m.state_batches
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_qqbh(each_1_m.first_offset, each_1_m.last_offset, each_1_m.delivery_state, each_1_m.delivery_count)
        out.append(0)
    given_2 = m.delivery_complete_count != -1
    out.append(given_2)
    if given_2:
        kept_3 = out
        out = bytearray()
        out += _write_i(m.delivery_complete_count)
        write_varint(kept_3, 0)
        write_varint(kept_3, len(out))
        kept_3 += out
        out = kept_3


ENCODE_SHARE_SNAPSHOT_VALUE = {
    0: _encode_share_snapshot_value_0,
}
