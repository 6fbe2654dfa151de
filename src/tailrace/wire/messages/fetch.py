"""Fetch: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

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

_struct_16s = Struct(">16s")
_read_16s = _struct_16s.unpack_from
_write_16s = _struct_16s.pack
_struct_h = Struct(">h")
_read_h = _struct_h.unpack_from
_write_h = _struct_h.pack
_struct_i = Struct(">i")
_read_i = _struct_i.unpack_from
_write_i = _struct_i.pack
_struct_ihi = Struct(">ihi")
_read_ihi = _struct_ihi.unpack_from
_write_ihi = _struct_ihi.pack
_struct_ihqq = Struct(">ihqq")
_read_ihqq = _struct_ihqq.unpack_from
_write_ihqq = _struct_ihqq.pack
_struct_ihqqq = Struct(">ihqqq")
_read_ihqqq = _struct_ihqqq.unpack_from
_write_ihqqq = _struct_ihqqq.pack
_struct_ii = Struct(">ii")
_read_ii = _struct_ii.unpack_from
_write_ii = _struct_ii.pack
_struct_iiibii = Struct(">iiibii")
_read_iiibii = _struct_iiibii.unpack_from
_write_iiibii = _struct_iiibii.pack
_struct_iiiib = Struct(">iiiib")
_read_iiiib = _struct_iiiib.unpack_from
_write_iiiib = _struct_iiiib.pack
_struct_iiiibii = Struct(">iiiibii")
_read_iiiibii = _struct_iiiibii.unpack_from
_write_iiiibii = _struct_iiiibii.pack
_struct_iiqiqi = Struct(">iiqiqi")
_read_iiqiqi = _struct_iiqiqi.unpack_from
_write_iiqiqi = _struct_iiqiqi.pack
_struct_iiqqi = Struct(">iiqqi")
_read_iiqqi = _struct_iiqqi.unpack_from
_write_iiqqi = _struct_iiqqi.pack
_struct_iq = Struct(">iq")
_read_iq = _struct_iq.unpack_from
_write_iq = _struct_iq.pack
_struct_iqi = Struct(">iqi")
_read_iqi = _struct_iqi.unpack_from
_write_iqi = _struct_iqi.pack
_struct_iqqi = Struct(">iqqi")
_read_iqqi = _struct_iqqi.unpack_from
_write_iqqi = _struct_iqqi.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack
_struct_qi = Struct(">qi")
_read_qi = _struct_qi.unpack_from
_write_qi = _struct_qi.pack
_struct_qq = Struct(">qq")
_read_qq = _struct_qq.unpack_from
_write_qq = _struct_qq.pack


class ReplicaState(Message):
    __slots__ = ("replica_id", "replica_epoch",)

    def __init__(
        self,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_epoch: int = replica_epoch


class FetchPartition(Message):
    __slots__ = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset", "partition_max_bytes", "replica_directory_id", "high_watermark",)

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.fetch_offset: int = fetch_offset
        self.last_fetched_epoch: int = last_fetched_epoch
        self.log_start_offset: int = log_start_offset
        self.partition_max_bytes: int = partition_max_bytes
        self.replica_directory_id: bytes = replica_directory_id
        self.high_watermark: int = high_watermark


class FetchTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions",)

    def __init__(
        self,
        topic: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[FetchPartition] = NEW,
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is NEW else partitions


class ForgottenTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions",)

    def __init__(
        self,
        topic: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[int] = NEW,
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is NEW else partitions


class FetchRequest(Message):
    __slots__ = ("cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id",)

    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState = NEW,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = NEW,
        forgotten_topics_data: list[ForgottenTopic] = NEW,
        rack_id: str = '',
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.replica_state: ReplicaState = ReplicaState() if replica_state is NEW else replica_state
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: list[FetchTopic] = [] if topics is NEW else topics
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is NEW else forgotten_topics_data
        self.rack_id: str = rack_id


class EpochEndOffset(Message):
    __slots__ = ("epoch", "end_offset",)

    def __init__(
        self,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch: int = epoch
        self.end_offset: int = end_offset


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch",)

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class SnapshotId(Message):
    __slots__ = ("end_offset", "epoch",)

    def __init__(
        self,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


class AbortedTransaction(Message):
    __slots__ = ("producer_id", "first_offset",)

    def __init__(
        self,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset


class PartitionData(Message):
    __slots__ = ("partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset", "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica", "records",)

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset = NEW,
        current_leader: LeaderIdAndEpoch = NEW,
        snapshot_id: SnapshotId = NEW,
        aborted_transactions: list[AbortedTransaction] | None = NEW,
        preferred_read_replica: int = -1,
        records: bytes | bytearray | memoryview | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.high_watermark: int = high_watermark
        self.last_stable_offset: int = last_stable_offset
        self.log_start_offset: int = log_start_offset
        self.diverging_epoch: EpochEndOffset = EpochEndOffset() if diverging_epoch is NEW else diverging_epoch
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is NEW else current_leader
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is NEW else snapshot_id
        self.aborted_transactions: list[AbortedTransaction] | None = [] if aborted_transactions is NEW else aborted_transactions
        self.preferred_read_replica: int = preferred_read_replica
        self.records: bytes | bytearray | memoryview | None = records


class FetchableTopicResponse(Message):
    __slots__ = ("topic", "topic_id", "partitions",)

    def __init__(
        self,
        topic: str = '',
        topic_id: bytes = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00',
        partitions: list[PartitionData] = NEW,
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is NEW else partitions


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port", "rack",)

    def __init__(
        self,
        node_id: int = 0,
        host: str = '',
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class FetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = NEW,
        node_endpoints: list[NodeEndpoint] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: list[FetchableTopicResponse] = [] if responses is NEW else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is NEW else node_endpoints


def _decode_fetch_request_4(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1 = _read_iiiib(b, p)
    p += 17
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 16 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, fetch_offset_3, partition_max_bytes_3 = _read_iqi(b, p)
            p += 16
            partitions_2.append(FetchPartition(partition_3, -1, fetch_offset_3, -1, -1, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        topics_1.append(FetchTopic(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return FetchRequest(None, replica_id_1, ReplicaState(), max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, 0, -1, topics_1, [], '')


def _decode_fetch_request_5(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1 = _read_iiiib(b, p)
    p += 17
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 24 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, fetch_offset_3, log_start_offset_3, partition_max_bytes_3 = _read_iqqi(b, p)
            p += 24
            partitions_2.append(FetchPartition(partition_3, -1, fetch_offset_3, -1, log_start_offset_3, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        topics_1.append(FetchTopic(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return FetchRequest(None, replica_id_1, ReplicaState(), max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, 0, -1, topics_1, [], '')


def _decode_fetch_request_7(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiiibii(b, p)
    p += 25
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 24 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, fetch_offset_3, log_start_offset_3, partition_max_bytes_3 = _read_iqqi(b, p)
            p += 24
            partitions_2.append(FetchPartition(partition_3, -1, fetch_offset_3, -1, log_start_offset_3, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        topics_1.append(FetchTopic(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 6 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_4 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_4 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        forgotten_topics_data_1.append(ForgottenTopic(topic_4, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_4))
    return FetchRequest(None, replica_id_1, ReplicaState(), max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, '')


def _decode_fetch_request_9(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiiibii(b, p)
    p += 25
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 28 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, fetch_offset_3, log_start_offset_3, partition_max_bytes_3 = _read_iiqqi(b, p)
            p += 28
            partitions_2.append(FetchPartition(partition_3, current_leader_epoch_3, fetch_offset_3, -1, log_start_offset_3, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        topics_1.append(FetchTopic(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 6 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_4 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_4 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        forgotten_topics_data_1.append(ForgottenTopic(topic_4, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_4))
    return FetchRequest(None, replica_id_1, ReplicaState(), max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, '')


def _decode_fetch_request_11(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiiibii(b, p)
    p += 25
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("topics is null")
    if n * 6 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 28 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, fetch_offset_3, log_start_offset_3, partition_max_bytes_3 = _read_iiqqi(b, p)
            p += 28
            partitions_2.append(FetchPartition(partition_3, current_leader_epoch_3, fetch_offset_3, -1, log_start_offset_3, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        topics_1.append(FetchTopic(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 6 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_4 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_4 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        forgotten_topics_data_1.append(ForgottenTopic(topic_4, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_4))
    (n,) = _read_h(b, p)
    p += 2
    if n < 0:
        raise fail("rack_id is null")
    q = p + n
    if q > end:
        raise fail("rack_id past the end")
    rack_id_1 = str(b[p:q], "utf-8")
    p = q
    return FetchRequest(None, replica_id_1, ReplicaState(), max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, rack_id_1)


def _decode_fetch_request_12(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiiibii(b, p)
    p += 25
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 3 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 33 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3 = _read_iiqiqi(b, p)
            p += 32
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(FetchPartition(partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(FetchTopic(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 3 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_4 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_4 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        forgotten_topics_data_1.append(ForgottenTopic(topic_4, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_4))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("rack_id is null")
    q = p + n
    if q > end:
        raise fail("rack_id past the end")
    rack_id_1 = str(b[p:q], "utf-8")
    p = q
    cluster_id_1 = None
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_5 = p + n
        if stop_5 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                cluster_id_1 = None
            else:
                q = p + n
                if q > end:
                    raise fail("cluster_id past the end")
                cluster_id_1 = str(b[p:q], "utf-8")
                p = q
            if p != stop_5:
                raise fail("cluster_id is not as long as it says")
        else:
            p = stop_5
    return FetchRequest(cluster_id_1, replica_id_1, ReplicaState(), max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, rack_id_1)


def _decode_fetch_request_13(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    replica_id_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiiibii(b, p)
    p += 25
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 18 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 33 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3 = _read_iiqiqi(b, p)
            p += 32
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(FetchPartition(partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(FetchTopic('', topic_id_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 18 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (topic_id_4,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_4 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        forgotten_topics_data_1.append(ForgottenTopic('', topic_id_4, partitions_4))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("rack_id is null")
    q = p + n
    if q > end:
        raise fail("rack_id past the end")
    rack_id_1 = str(b[p:q], "utf-8")
    p = q
    cluster_id_1 = None
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_5 = p + n
        if stop_5 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                cluster_id_1 = None
            else:
                q = p + n
                if q > end:
                    raise fail("cluster_id past the end")
                cluster_id_1 = str(b[p:q], "utf-8")
                p = q
            if p != stop_5:
                raise fail("cluster_id is not as long as it says")
        else:
            p = stop_5
    return FetchRequest(cluster_id_1, replica_id_1, ReplicaState(), max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, rack_id_1)


def _decode_fetch_request_15(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiibii(b, p)
    p += 21
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 18 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 33 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3 = _read_iiqiqi(b, p)
            p += 32
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            partitions_2.append(FetchPartition(partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 9223372036854775807))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(FetchTopic('', topic_id_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 18 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (topic_id_4,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_4 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        forgotten_topics_data_1.append(ForgottenTopic('', topic_id_4, partitions_4))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("rack_id is null")
    q = p + n
    if q > end:
        raise fail("rack_id past the end")
    rack_id_1 = str(b[p:q], "utf-8")
    p = q
    cluster_id_1 = None
    replica_state_1 = ReplicaState()
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_5 = p + n
        if stop_5 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                cluster_id_1 = None
            else:
                q = p + n
                if q > end:
                    raise fail("cluster_id past the end")
                cluster_id_1 = str(b[p:q], "utf-8")
                p = q
            if p != stop_5:
                raise fail("cluster_id is not as long as it says")
        elif tag == 1:
            replica_id_6, replica_epoch_6 = _read_iq(b, p)
            p += 12
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            replica_state_1 = ReplicaState(replica_id_6, replica_epoch_6)
            if p != stop_5:
                raise fail("replica_state is not as long as it says")
        else:
            p = stop_5
    return FetchRequest(cluster_id_1, -1, replica_state_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, rack_id_1)


def _decode_fetch_request_17(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiibii(b, p)
    p += 21
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 18 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 33 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3 = _read_iiqiqi(b, p)
            p += 32
            replica_directory_id_3 = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
            n, p = read_varint(b, p)
            if n > TAGS_LIMIT:
                raise fail("too many tagged fields")
            for _ in range(n):
                tag, p = read_varint(b, p)
                n, p = read_varint(b, p)
                stop_4 = p + n
                if stop_4 > end:
                    raise fail("tagged field past the end")
                if tag == 0:
                    (replica_directory_id_3,) = _read_16s(b, p)
                    p += 16
                    if p != stop_4:
                        raise fail("replica_directory_id is not as long as it says")
                else:
                    p = stop_4
            partitions_2.append(FetchPartition(partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3, replica_directory_id_3, 9223372036854775807))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(FetchTopic('', topic_id_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 18 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (topic_id_5,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_5 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        forgotten_topics_data_1.append(ForgottenTopic('', topic_id_5, partitions_5))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("rack_id is null")
    q = p + n
    if q > end:
        raise fail("rack_id past the end")
    rack_id_1 = str(b[p:q], "utf-8")
    p = q
    cluster_id_1 = None
    replica_state_1 = ReplicaState()
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_6 = p + n
        if stop_6 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                cluster_id_1 = None
            else:
                q = p + n
                if q > end:
                    raise fail("cluster_id past the end")
                cluster_id_1 = str(b[p:q], "utf-8")
                p = q
            if p != stop_6:
                raise fail("cluster_id is not as long as it says")
        elif tag == 1:
            replica_id_7, replica_epoch_7 = _read_iq(b, p)
            p += 12
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            replica_state_1 = ReplicaState(replica_id_7, replica_epoch_7)
            if p != stop_6:
                raise fail("replica_state is not as long as it says")
        else:
            p = stop_6
    return FetchRequest(cluster_id_1, -1, replica_state_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, rack_id_1)


def _decode_fetch_request_18(b: memoryview, p: int = 0) -> FetchRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1 = _read_iiibii(b, p)
    p += 21
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("topics is null")
    if n * 18 > end - p:
        raise fail("topics has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    topics_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 33 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_2 = []
        for _ in range(n):
            partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3 = _read_iiqiqi(b, p)
            p += 32
            replica_directory_id_3 = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
            high_watermark_3 = 9223372036854775807
            n, p = read_varint(b, p)
            if n > TAGS_LIMIT:
                raise fail("too many tagged fields")
            for _ in range(n):
                tag, p = read_varint(b, p)
                n, p = read_varint(b, p)
                stop_4 = p + n
                if stop_4 > end:
                    raise fail("tagged field past the end")
                if tag == 0:
                    (replica_directory_id_3,) = _read_16s(b, p)
                    p += 16
                    if p != stop_4:
                        raise fail("replica_directory_id is not as long as it says")
                elif tag == 1:
                    (high_watermark_3,) = _read_q(b, p)
                    p += 8
                    if p != stop_4:
                        raise fail("high_watermark is not as long as it says")
                else:
                    p = stop_4
            partitions_2.append(FetchPartition(partition_3, current_leader_epoch_3, fetch_offset_3, last_fetched_epoch_3, log_start_offset_3, partition_max_bytes_3, replica_directory_id_3, high_watermark_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        topics_1.append(FetchTopic('', topic_id_2, partitions_2))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("forgotten_topics_data is null")
    if n * 18 > end - p:
        raise fail("forgotten_topics_data has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    forgotten_topics_data_1 = []
    for _ in range(n):
        (topic_id_5,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 4 > end - p:
            raise fail("partitions has more elements than bytes")
        left -= n
        if left < 0:
            raise fail(TOO_MANY_ELEMENTS)
        partitions_5 = list(unpack_from(f">{n}i", b, p))
        p += 4 * n
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        forgotten_topics_data_1.append(ForgottenTopic('', topic_id_5, partitions_5))
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("rack_id is null")
    q = p + n
    if q > end:
        raise fail("rack_id past the end")
    rack_id_1 = str(b[p:q], "utf-8")
    p = q
    cluster_id_1 = None
    replica_state_1 = ReplicaState()
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_6 = p + n
        if stop_6 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                cluster_id_1 = None
            else:
                q = p + n
                if q > end:
                    raise fail("cluster_id past the end")
                cluster_id_1 = str(b[p:q], "utf-8")
                p = q
            if p != stop_6:
                raise fail("cluster_id is not as long as it says")
        elif tag == 1:
            replica_id_7, replica_epoch_7 = _read_iq(b, p)
            p += 12
            if b[p]:
                p = skip_tags(b, p)
            else:
                p += 1
            replica_state_1 = ReplicaState(replica_id_7, replica_epoch_7)
            if p != stop_6:
                raise fail("replica_state is not as long as it says")
        else:
            p = stop_6
    return FetchRequest(cluster_id_1, -1, replica_state_1, max_wait_ms_1, min_bytes_1, max_bytes_1, isolation_level_1, session_id_1, session_epoch_1, topics_1, forgotten_topics_data_1, rack_id_1)


DECODE_FETCH_REQUEST = {
    4: _decode_fetch_request_4,
    5: _decode_fetch_request_5,
    6: _decode_fetch_request_5,
    7: _decode_fetch_request_7,
    8: _decode_fetch_request_7,
    9: _decode_fetch_request_9,
    10: _decode_fetch_request_9,
    11: _decode_fetch_request_11,
    12: _decode_fetch_request_12,
    13: _decode_fetch_request_13,
    14: _decode_fetch_request_13,
    15: _decode_fetch_request_15,
    16: _decode_fetch_request_15,
    17: _decode_fetch_request_17,
    18: _decode_fetch_request_18,
}


def _encode_fetch_request_4(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiiib(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqi(each_2_m.partition, each_2_m.fetch_offset, each_2_m.partition_max_bytes)


def _encode_fetch_request_5(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiiib(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqqi(each_2_m.partition, each_2_m.fetch_offset, each_2_m.log_start_offset, each_2_m.partition_max_bytes)


def _encode_fetch_request_7(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiiibii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iqqi(each_2_m.partition, each_2_m.fetch_offset, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
    each_3 = m.forgotten_topics_data
    out += _write_i(len(each_3))
    for each_3_m in each_3:
        write_string(out, each_3_m.topic)
        each_4 = each_3_m.partitions
        out += _write_i(len(each_4))
        out += pack(f">{len(each_4)}i", *each_4)


def _encode_fetch_request_9(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiiibii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iiqqi(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.fetch_offset, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
    each_3 = m.forgotten_topics_data
    out += _write_i(len(each_3))
    for each_3_m in each_3:
        write_string(out, each_3_m.topic)
        each_4 = each_3_m.partitions
        out += _write_i(len(each_4))
        out += pack(f">{len(each_4)}i", *each_4)


def _encode_fetch_request_11(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiiibii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_iiqqi(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.fetch_offset, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
    each_3 = m.forgotten_topics_data
    out += _write_i(len(each_3))
    for each_3_m in each_3:
        write_string(out, each_3_m.topic)
        each_4 = each_3_m.partitions
        out += _write_i(len(each_4))
        out += pack(f">{len(each_4)}i", *each_4)
    write_string(out, m.rack_id)


def _encode_fetch_request_12(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiiibii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iiqiqi(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.fetch_offset, each_2_m.last_fetched_epoch, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
            out.append(0)
        out.append(0)
    each_3 = m.forgotten_topics_data
    write_varint(out, len(each_3) + 1)
    for each_3_m in each_3:
        write_compact_string(out, each_3_m.topic)
        each_4 = each_3_m.partitions
        write_varint(out, len(each_4) + 1)
        out += pack(f">{len(each_4)}i", *each_4)
        out.append(0)
    write_compact_string(out, m.rack_id)
    given_5 = m.cluster_id is not None
    out.append(given_5)
    if given_5:
        kept_6 = out
        out = bytearray()
        write_compact_nullable_string(out, m.cluster_id)
        write_varint(kept_6, 0)
        write_varint(kept_6, len(out))
        kept_6 += out
        out = kept_6


def _encode_fetch_request_13(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiiibii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iiqiqi(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.fetch_offset, each_2_m.last_fetched_epoch, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
            out.append(0)
        out.append(0)
    each_3 = m.forgotten_topics_data
    write_varint(out, len(each_3) + 1)
    for each_3_m in each_3:
        out += _write_16s(each_3_m.topic_id)
        each_4 = each_3_m.partitions
        write_varint(out, len(each_4) + 1)
        out += pack(f">{len(each_4)}i", *each_4)
        out.append(0)
    write_compact_string(out, m.rack_id)
    given_5 = m.cluster_id is not None
    out.append(given_5)
    if given_5:
        kept_6 = out
        out = bytearray()
        write_compact_nullable_string(out, m.cluster_id)
        write_varint(kept_6, 0)
        write_varint(kept_6, len(out))
        kept_6 += out
        out = kept_6


def _encode_fetch_request_15(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiibii(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iiqiqi(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.fetch_offset, each_2_m.last_fetched_epoch, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
            out.append(0)
        out.append(0)
    each_3 = m.forgotten_topics_data
    write_varint(out, len(each_3) + 1)
    for each_3_m in each_3:
        out += _write_16s(each_3_m.topic_id)
        each_4 = each_3_m.partitions
        write_varint(out, len(each_4) + 1)
        out += pack(f">{len(each_4)}i", *each_4)
        out.append(0)
    write_compact_string(out, m.rack_id)
    given_5 = m.cluster_id is not None
    given_6 = m.replica_state != ReplicaState()
    out.append(given_5 + given_6)
    if given_5:
        kept_7 = out
        out = bytearray()
        write_compact_nullable_string(out, m.cluster_id)
        write_varint(kept_7, 0)
        write_varint(kept_7, len(out))
        kept_7 += out
        out = kept_7
    if given_6:
        kept_8 = out
        out = bytearray()
        each_9 = m.replica_state
        out += _write_iq(each_9.replica_id, each_9.replica_epoch)
        out.append(0)
        write_varint(kept_8, 1)
        write_varint(kept_8, len(out))
        kept_8 += out
        out = kept_8


def _encode_fetch_request_17(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiibii(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iiqiqi(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.fetch_offset, each_2_m.last_fetched_epoch, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
            given_3 = each_2_m.replica_directory_id != b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
            out.append(given_3)
            if given_3:
                kept_4 = out
                out = bytearray()
                out += _write_16s(each_2_m.replica_directory_id)
                write_varint(kept_4, 0)
                write_varint(kept_4, len(out))
                kept_4 += out
                out = kept_4
        out.append(0)
    each_5 = m.forgotten_topics_data
    write_varint(out, len(each_5) + 1)
    for each_5_m in each_5:
        out += _write_16s(each_5_m.topic_id)
        each_6 = each_5_m.partitions
        write_varint(out, len(each_6) + 1)
        out += pack(f">{len(each_6)}i", *each_6)
        out.append(0)
    write_compact_string(out, m.rack_id)
    given_7 = m.cluster_id is not None
    given_8 = m.replica_state != ReplicaState()
    out.append(given_7 + given_8)
    if given_7:
        kept_9 = out
        out = bytearray()
        write_compact_nullable_string(out, m.cluster_id)
        write_varint(kept_9, 0)
        write_varint(kept_9, len(out))
        kept_9 += out
        out = kept_9
    if given_8:
        kept_10 = out
        out = bytearray()
        each_11 = m.replica_state
        out += _write_iq(each_11.replica_id, each_11.replica_epoch)
        out.append(0)
        write_varint(kept_10, 1)
        write_varint(kept_10, len(out))
        kept_10 += out
        out = kept_10


def _encode_fetch_request_18(m: FetchRequest, out: bytearray) -> None:
    out += _write_iiibii(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    each_1 = m.topics
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_iiqiqi(each_2_m.partition, each_2_m.current_leader_epoch, each_2_m.fetch_offset, each_2_m.last_fetched_epoch, each_2_m.log_start_offset, each_2_m.partition_max_bytes)
            given_3 = each_2_m.replica_directory_id != b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
            given_4 = each_2_m.high_watermark != 9223372036854775807
            out.append(given_3 + given_4)
            if given_3:
                kept_5 = out
                out = bytearray()
                out += _write_16s(each_2_m.replica_directory_id)
                write_varint(kept_5, 0)
                write_varint(kept_5, len(out))
                kept_5 += out
                out = kept_5
            if given_4:
                kept_6 = out
                out = bytearray()
                out += _write_q(each_2_m.high_watermark)
                write_varint(kept_6, 1)
                write_varint(kept_6, len(out))
                kept_6 += out
                out = kept_6
        out.append(0)
    each_7 = m.forgotten_topics_data
    write_varint(out, len(each_7) + 1)
    for each_7_m in each_7:
        out += _write_16s(each_7_m.topic_id)
        each_8 = each_7_m.partitions
        write_varint(out, len(each_8) + 1)
        out += pack(f">{len(each_8)}i", *each_8)
        out.append(0)
    write_compact_string(out, m.rack_id)
    given_9 = m.cluster_id is not None
    given_10 = m.replica_state != ReplicaState()
    out.append(given_9 + given_10)
    if given_9:
        kept_11 = out
        out = bytearray()
        write_compact_nullable_string(out, m.cluster_id)
        write_varint(kept_11, 0)
        write_varint(kept_11, len(out))
        kept_11 += out
        out = kept_11
    if given_10:
        kept_12 = out
        out = bytearray()
        each_13 = m.replica_state
        out += _write_iq(each_13.replica_id, each_13.replica_epoch)
        out.append(0)
        write_varint(kept_12, 1)
        write_varint(kept_12, len(out))
        kept_12 += out
        out = kept_12


ENCODE_FETCH_REQUEST = {
    4: _encode_fetch_request_4,
    5: _encode_fetch_request_5,
    6: _encode_fetch_request_5,
    7: _encode_fetch_request_7,
    8: _encode_fetch_request_7,
    9: _encode_fetch_request_9,
    10: _encode_fetch_request_9,
    11: _encode_fetch_request_11,
    12: _encode_fetch_request_12,
    13: _encode_fetch_request_13,
    14: _encode_fetch_request_13,
    15: _encode_fetch_request_15,
    16: _encode_fetch_request_15,
    17: _encode_fetch_request_17,
    18: _encode_fetch_request_18,
}


def _decode_fetch_response_4(b: memoryview, p: int = 0) -> FetchResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 30 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3 = _read_ihqq(b, p)
            p += 22
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                aborted_transactions_3 = None
            else:
                if n * 16 > end - p:
                    raise fail("aborted_transactions has more elements than bytes")
                aborted_transactions_3 = []
                for _ in range(n):
                    producer_id_4, first_offset_4 = _read_qq(b, p)
                    p += 16
                    aborted_transactions_3.append(AbortedTransaction(producer_id_4, first_offset_4))
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            partitions_2.append(PartitionData(partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, -1, EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId(), aborted_transactions_3, -1, records_3))
        responses_1.append(FetchableTopicResponse(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return FetchResponse(throttle_time_ms_1, 0, 0, responses_1, [])


def _decode_fetch_response_5(b: memoryview, p: int = 0) -> FetchResponse:
    end = len(b)
    (throttle_time_ms_1,) = _read_i(b, p)
    p += 4
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 38 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                aborted_transactions_3 = None
            else:
                if n * 16 > end - p:
                    raise fail("aborted_transactions has more elements than bytes")
                aborted_transactions_3 = []
                for _ in range(n):
                    producer_id_4, first_offset_4 = _read_qq(b, p)
                    p += 16
                    aborted_transactions_3.append(AbortedTransaction(producer_id_4, first_offset_4))
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            partitions_2.append(PartitionData(partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3, EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId(), aborted_transactions_3, -1, records_3))
        responses_1.append(FetchableTopicResponse(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return FetchResponse(throttle_time_ms_1, 0, 0, responses_1, [])


def _decode_fetch_response_7(b: memoryview, p: int = 0) -> FetchResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, session_id_1 = _read_ihi(b, p)
    p += 10
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 38 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                aborted_transactions_3 = None
            else:
                if n * 16 > end - p:
                    raise fail("aborted_transactions has more elements than bytes")
                aborted_transactions_3 = []
                for _ in range(n):
                    producer_id_4, first_offset_4 = _read_qq(b, p)
                    p += 16
                    aborted_transactions_3.append(AbortedTransaction(producer_id_4, first_offset_4))
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            partitions_2.append(PartitionData(partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3, EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId(), aborted_transactions_3, -1, records_3))
        responses_1.append(FetchableTopicResponse(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return FetchResponse(throttle_time_ms_1, error_code_1, session_id_1, responses_1, [])


def _decode_fetch_response_11(b: memoryview, p: int = 0) -> FetchResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, session_id_1 = _read_ihi(b, p)
    p += 10
    (n,) = _read_i(b, p)
    p += 4
    if n < 0:
        raise fail("responses is null")
    if n * 6 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        (n,) = _read_h(b, p)
        p += 2
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        (n,) = _read_i(b, p)
        p += 4
        if n < 0:
            raise fail("partitions is null")
        if n * 42 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                aborted_transactions_3 = None
            else:
                if n * 16 > end - p:
                    raise fail("aborted_transactions has more elements than bytes")
                aborted_transactions_3 = []
                for _ in range(n):
                    producer_id_4, first_offset_4 = _read_qq(b, p)
                    p += 16
                    aborted_transactions_3.append(AbortedTransaction(producer_id_4, first_offset_4))
            (preferred_read_replica_3,) = _read_i(b, p)
            p += 4
            (n,) = _read_i(b, p)
            p += 4
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            partitions_2.append(PartitionData(partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3, EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId(), aborted_transactions_3, preferred_read_replica_3, records_3))
        responses_1.append(FetchableTopicResponse(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    return FetchResponse(throttle_time_ms_1, error_code_1, session_id_1, responses_1, [])


def _decode_fetch_response_12(b: memoryview, p: int = 0) -> FetchResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, session_id_1 = _read_ihi(b, p)
    p += 10
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("responses is null")
    if n * 3 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("topic is null")
        q = p + n
        if q > end:
            raise fail("topic past the end")
        topic_2 = str(b[p:q], "utf-8")
        p = q
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 37 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                aborted_transactions_3 = None
            else:
                if n * 17 > end - p:
                    raise fail("aborted_transactions has more elements than bytes")
                aborted_transactions_3 = []
                for _ in range(n):
                    producer_id_4, first_offset_4 = _read_qq(b, p)
                    p += 16
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    aborted_transactions_3.append(AbortedTransaction(producer_id_4, first_offset_4))
            (preferred_read_replica_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            diverging_epoch_3 = EpochEndOffset()
            current_leader_3 = LeaderIdAndEpoch()
            snapshot_id_3 = SnapshotId()
            n, p = read_varint(b, p)
            if n > TAGS_LIMIT:
                raise fail("too many tagged fields")
            for _ in range(n):
                tag, p = read_varint(b, p)
                n, p = read_varint(b, p)
                stop_5 = p + n
                if stop_5 > end:
                    raise fail("tagged field past the end")
                if tag == 0:
                    epoch_6, end_offset_6 = _read_iq(b, p)
                    p += 12
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    diverging_epoch_3 = EpochEndOffset(epoch_6, end_offset_6)
                    if p != stop_5:
                        raise fail("diverging_epoch is not as long as it says")
                elif tag == 1:
                    leader_id_7, leader_epoch_7 = _read_ii(b, p)
                    p += 8
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    current_leader_3 = LeaderIdAndEpoch(leader_id_7, leader_epoch_7)
                    if p != stop_5:
                        raise fail("current_leader is not as long as it says")
                elif tag == 2:
                    end_offset_8, epoch_8 = _read_qi(b, p)
                    p += 12
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    snapshot_id_3 = SnapshotId(end_offset_8, epoch_8)
                    if p != stop_5:
                        raise fail("snapshot_id is not as long as it says")
                else:
                    p = stop_5
            partitions_2.append(PartitionData(partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3, diverging_epoch_3, current_leader_3, snapshot_id_3, aborted_transactions_3, preferred_read_replica_3, records_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(FetchableTopicResponse(topic_2, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return FetchResponse(throttle_time_ms_1, error_code_1, session_id_1, responses_1, [])


def _decode_fetch_response_13(b: memoryview, p: int = 0) -> FetchResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, session_id_1 = _read_ihi(b, p)
    p += 10
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("responses is null")
    if n * 18 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 37 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                aborted_transactions_3 = None
            else:
                if n * 17 > end - p:
                    raise fail("aborted_transactions has more elements than bytes")
                aborted_transactions_3 = []
                for _ in range(n):
                    producer_id_4, first_offset_4 = _read_qq(b, p)
                    p += 16
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    aborted_transactions_3.append(AbortedTransaction(producer_id_4, first_offset_4))
            (preferred_read_replica_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            diverging_epoch_3 = EpochEndOffset()
            current_leader_3 = LeaderIdAndEpoch()
            snapshot_id_3 = SnapshotId()
            n, p = read_varint(b, p)
            if n > TAGS_LIMIT:
                raise fail("too many tagged fields")
            for _ in range(n):
                tag, p = read_varint(b, p)
                n, p = read_varint(b, p)
                stop_5 = p + n
                if stop_5 > end:
                    raise fail("tagged field past the end")
                if tag == 0:
                    epoch_6, end_offset_6 = _read_iq(b, p)
                    p += 12
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    diverging_epoch_3 = EpochEndOffset(epoch_6, end_offset_6)
                    if p != stop_5:
                        raise fail("diverging_epoch is not as long as it says")
                elif tag == 1:
                    leader_id_7, leader_epoch_7 = _read_ii(b, p)
                    p += 8
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    current_leader_3 = LeaderIdAndEpoch(leader_id_7, leader_epoch_7)
                    if p != stop_5:
                        raise fail("current_leader is not as long as it says")
                elif tag == 2:
                    end_offset_8, epoch_8 = _read_qi(b, p)
                    p += 12
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    snapshot_id_3 = SnapshotId(end_offset_8, epoch_8)
                    if p != stop_5:
                        raise fail("snapshot_id is not as long as it says")
                else:
                    p = stop_5
            partitions_2.append(PartitionData(partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3, diverging_epoch_3, current_leader_3, snapshot_id_3, aborted_transactions_3, preferred_read_replica_3, records_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(FetchableTopicResponse('', topic_id_2, partitions_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return FetchResponse(throttle_time_ms_1, error_code_1, session_id_1, responses_1, [])


def _decode_fetch_response_16(b: memoryview, p: int = 0) -> FetchResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1, session_id_1 = _read_ihi(b, p)
    p += 10
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("responses is null")
    if n * 18 > end - p:
        raise fail("responses has more elements than bytes")
    responses_1 = []
    for _ in range(n):
        (topic_id_2,) = _read_16s(b, p)
        p += 16
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("partitions is null")
        if n * 37 > end - p:
            raise fail("partitions has more elements than bytes")
        partitions_2 = []
        for _ in range(n):
            partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3 = _read_ihqqq(b, p)
            p += 30
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                aborted_transactions_3 = None
            else:
                if n * 17 > end - p:
                    raise fail("aborted_transactions has more elements than bytes")
                aborted_transactions_3 = []
                for _ in range(n):
                    producer_id_4, first_offset_4 = _read_qq(b, p)
                    p += 16
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    aborted_transactions_3.append(AbortedTransaction(producer_id_4, first_offset_4))
            (preferred_read_replica_3,) = _read_i(b, p)
            p += 4
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                records_3 = None
            else:
                q = p + n
                if q > end:
                    raise fail("records past the end")
                records_3 = b[p:q]
                p = q
            diverging_epoch_3 = EpochEndOffset()
            current_leader_3 = LeaderIdAndEpoch()
            snapshot_id_3 = SnapshotId()
            n, p = read_varint(b, p)
            if n > TAGS_LIMIT:
                raise fail("too many tagged fields")
            for _ in range(n):
                tag, p = read_varint(b, p)
                n, p = read_varint(b, p)
                stop_5 = p + n
                if stop_5 > end:
                    raise fail("tagged field past the end")
                if tag == 0:
                    epoch_6, end_offset_6 = _read_iq(b, p)
                    p += 12
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    diverging_epoch_3 = EpochEndOffset(epoch_6, end_offset_6)
                    if p != stop_5:
                        raise fail("diverging_epoch is not as long as it says")
                elif tag == 1:
                    leader_id_7, leader_epoch_7 = _read_ii(b, p)
                    p += 8
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    current_leader_3 = LeaderIdAndEpoch(leader_id_7, leader_epoch_7)
                    if p != stop_5:
                        raise fail("current_leader is not as long as it says")
                elif tag == 2:
                    end_offset_8, epoch_8 = _read_qi(b, p)
                    p += 12
                    if b[p]:
                        p = skip_tags(b, p)
                    else:
                        p += 1
                    snapshot_id_3 = SnapshotId(end_offset_8, epoch_8)
                    if p != stop_5:
                        raise fail("snapshot_id is not as long as it says")
                else:
                    p = stop_5
            partitions_2.append(PartitionData(partition_index_3, error_code_3, high_watermark_3, last_stable_offset_3, log_start_offset_3, diverging_epoch_3, current_leader_3, snapshot_id_3, aborted_transactions_3, preferred_read_replica_3, records_3))
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        responses_1.append(FetchableTopicResponse('', topic_id_2, partitions_2))
    node_endpoints_1 = []
    n, p = read_varint(b, p)
    if n > TAGS_LIMIT:
        raise fail("too many tagged fields")
    for _ in range(n):
        tag, p = read_varint(b, p)
        n, p = read_varint(b, p)
        stop_9 = p + n
        if stop_9 > end:
            raise fail("tagged field past the end")
        if tag == 0:
            n = b[p] - 1
            p += 1
            if n > 126:
                n, p = read_long_varint(b, p - 1)
                n -= 1
            if n < 0:
                raise fail("node_endpoints is null")
            if n * 11 > end - p:
                raise fail("node_endpoints has more elements than bytes")
            node_endpoints_1 = []
            for _ in range(n):
                (node_id_10,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    raise fail("host is null")
                q = p + n
                if q > end:
                    raise fail("host past the end")
                host_10 = str(b[p:q], "utf-8")
                p = q
                (port_10,) = _read_i(b, p)
                p += 4
                n = b[p] - 1
                p += 1
                if n > 126:
                    n, p = read_long_varint(b, p - 1)
                    n -= 1
                if n < 0:
                    rack_10 = None
                else:
                    q = p + n
                    if q > end:
                        raise fail("rack past the end")
                    rack_10 = str(b[p:q], "utf-8")
                    p = q
                if b[p]:
                    p = skip_tags(b, p)
                else:
                    p += 1
                node_endpoints_1.append(NodeEndpoint(node_id_10, host_10, port_10, rack_10))
            if p != stop_9:
                raise fail("node_endpoints is not as long as it says")
        else:
            p = stop_9
    return FetchResponse(throttle_time_ms_1, error_code_1, session_id_1, responses_1, node_endpoints_1)


DECODE_FETCH_RESPONSE = {
    4: _decode_fetch_response_4,
    5: _decode_fetch_response_5,
    6: _decode_fetch_response_5,
    7: _decode_fetch_response_7,
    8: _decode_fetch_response_7,
    9: _decode_fetch_response_7,
    10: _decode_fetch_response_7,
    11: _decode_fetch_response_11,
    12: _decode_fetch_response_12,
    13: _decode_fetch_response_13,
    14: _decode_fetch_response_13,
    15: _decode_fetch_response_13,
    16: _decode_fetch_response_16,
    17: _decode_fetch_response_16,
    18: _decode_fetch_response_16,
}


def _encode_fetch_response_4(m: FetchResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.high_watermark, each_2_m.last_stable_offset)
            each_3 = each_2_m.aborted_transactions
            if each_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _write_i(len(each_3))
                for each_3_m in each_3:
                    out += _write_qq(each_3_m.producer_id, each_3_m.first_offset)
            write_bytes(out, each_2_m.records)


def _encode_fetch_response_5(m: FetchResponse, out: bytearray) -> None:
    out += _write_i(m.throttle_time_ms)
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.high_watermark, each_2_m.last_stable_offset, each_2_m.log_start_offset)
            each_3 = each_2_m.aborted_transactions
            if each_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _write_i(len(each_3))
                for each_3_m in each_3:
                    out += _write_qq(each_3_m.producer_id, each_3_m.first_offset)
            write_bytes(out, each_2_m.records)


def _encode_fetch_response_7(m: FetchResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.session_id)
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.high_watermark, each_2_m.last_stable_offset, each_2_m.log_start_offset)
            each_3 = each_2_m.aborted_transactions
            if each_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _write_i(len(each_3))
                for each_3_m in each_3:
                    out += _write_qq(each_3_m.producer_id, each_3_m.first_offset)
            write_bytes(out, each_2_m.records)


def _encode_fetch_response_11(m: FetchResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.session_id)
    each_1 = m.responses
    out += _write_i(len(each_1))
    for each_1_m in each_1:
        write_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        out += _write_i(len(each_2))
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.high_watermark, each_2_m.last_stable_offset, each_2_m.log_start_offset)
            each_3 = each_2_m.aborted_transactions
            if each_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _write_i(len(each_3))
                for each_3_m in each_3:
                    out += _write_qq(each_3_m.producer_id, each_3_m.first_offset)
            out += _write_i(each_2_m.preferred_read_replica)
            write_bytes(out, each_2_m.records)


def _encode_fetch_response_12(m: FetchResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.session_id)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m.topic)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.high_watermark, each_2_m.last_stable_offset, each_2_m.log_start_offset)
            each_3 = each_2_m.aborted_transactions
            if each_3 is None:
                out.append(0)
            else:
                write_varint(out, len(each_3) + 1)
                for each_3_m in each_3:
                    out += _write_qq(each_3_m.producer_id, each_3_m.first_offset)
                    out.append(0)
            out += _write_i(each_2_m.preferred_read_replica)
            write_compact_bytes(out, each_2_m.records)
            given_4 = each_2_m.diverging_epoch != EpochEndOffset()
            given_5 = each_2_m.current_leader != LeaderIdAndEpoch()
            given_6 = each_2_m.snapshot_id != SnapshotId()
            out.append(given_4 + given_5 + given_6)
            if given_4:
                kept_7 = out
                out = bytearray()
                each_8 = each_2_m.diverging_epoch
                out += _write_iq(each_8.epoch, each_8.end_offset)
                out.append(0)
                write_varint(kept_7, 0)
                write_varint(kept_7, len(out))
                kept_7 += out
                out = kept_7
            if given_5:
                kept_9 = out
                out = bytearray()
                each_10 = each_2_m.current_leader
                out += _write_ii(each_10.leader_id, each_10.leader_epoch)
                out.append(0)
                write_varint(kept_9, 1)
                write_varint(kept_9, len(out))
                kept_9 += out
                out = kept_9
            if given_6:
                kept_11 = out
                out = bytearray()
                each_12 = each_2_m.snapshot_id
                out += _write_qi(each_12.end_offset, each_12.epoch)
                out.append(0)
                write_varint(kept_11, 2)
                write_varint(kept_11, len(out))
                kept_11 += out
                out = kept_11
        out.append(0)
    out.append(0)


def _encode_fetch_response_13(m: FetchResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.session_id)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.high_watermark, each_2_m.last_stable_offset, each_2_m.log_start_offset)
            each_3 = each_2_m.aborted_transactions
            if each_3 is None:
                out.append(0)
            else:
                write_varint(out, len(each_3) + 1)
                for each_3_m in each_3:
                    out += _write_qq(each_3_m.producer_id, each_3_m.first_offset)
                    out.append(0)
            out += _write_i(each_2_m.preferred_read_replica)
            write_compact_bytes(out, each_2_m.records)
            given_4 = each_2_m.diverging_epoch != EpochEndOffset()
            given_5 = each_2_m.current_leader != LeaderIdAndEpoch()
            given_6 = each_2_m.snapshot_id != SnapshotId()
            out.append(given_4 + given_5 + given_6)
            if given_4:
                kept_7 = out
                out = bytearray()
                each_8 = each_2_m.diverging_epoch
                out += _write_iq(each_8.epoch, each_8.end_offset)
                out.append(0)
                write_varint(kept_7, 0)
                write_varint(kept_7, len(out))
                kept_7 += out
                out = kept_7
            if given_5:
                kept_9 = out
                out = bytearray()
                each_10 = each_2_m.current_leader
                out += _write_ii(each_10.leader_id, each_10.leader_epoch)
                out.append(0)
                write_varint(kept_9, 1)
                write_varint(kept_9, len(out))
                kept_9 += out
                out = kept_9
            if given_6:
                kept_11 = out
                out = bytearray()
                each_12 = each_2_m.snapshot_id
                out += _write_qi(each_12.end_offset, each_12.epoch)
                out.append(0)
                write_varint(kept_11, 2)
                write_varint(kept_11, len(out))
                kept_11 += out
                out = kept_11
        out.append(0)
    out.append(0)


def _encode_fetch_response_16(m: FetchResponse, out: bytearray) -> None:
    out += _write_ihi(m.throttle_time_ms, m.error_code, m.session_id)
    each_1 = m.responses
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        out += _write_16s(each_1_m.topic_id)
        each_2 = each_1_m.partitions
        write_varint(out, len(each_2) + 1)
        for each_2_m in each_2:
            out += _write_ihqqq(each_2_m.partition_index, each_2_m.error_code, each_2_m.high_watermark, each_2_m.last_stable_offset, each_2_m.log_start_offset)
            each_3 = each_2_m.aborted_transactions
            if each_3 is None:
                out.append(0)
            else:
                write_varint(out, len(each_3) + 1)
                for each_3_m in each_3:
                    out += _write_qq(each_3_m.producer_id, each_3_m.first_offset)
                    out.append(0)
            out += _write_i(each_2_m.preferred_read_replica)
            write_compact_bytes(out, each_2_m.records)
            given_4 = each_2_m.diverging_epoch != EpochEndOffset()
            given_5 = each_2_m.current_leader != LeaderIdAndEpoch()
            given_6 = each_2_m.snapshot_id != SnapshotId()
            out.append(given_4 + given_5 + given_6)
            if given_4:
                kept_7 = out
                out = bytearray()
                each_8 = each_2_m.diverging_epoch
                out += _write_iq(each_8.epoch, each_8.end_offset)
                out.append(0)
                write_varint(kept_7, 0)
                write_varint(kept_7, len(out))
                kept_7 += out
                out = kept_7
            if given_5:
                kept_9 = out
                out = bytearray()
                each_10 = each_2_m.current_leader
                out += _write_ii(each_10.leader_id, each_10.leader_epoch)
                out.append(0)
                write_varint(kept_9, 1)
                write_varint(kept_9, len(out))
                kept_9 += out
                out = kept_9
            if given_6:
                kept_11 = out
                out = bytearray()
                each_12 = each_2_m.snapshot_id
                out += _write_qi(each_12.end_offset, each_12.epoch)
                out.append(0)
                write_varint(kept_11, 2)
                write_varint(kept_11, len(out))
                kept_11 += out
                out = kept_11
        out.append(0)
    given_13 = m.node_endpoints != []
    out.append(given_13)
    if given_13:
        kept_14 = out
        out = bytearray()
        each_15 = m.node_endpoints
        write_varint(out, len(each_15) + 1)
        for each_15_m in each_15:
            out += _write_i(each_15_m.node_id)
            write_compact_string(out, each_15_m.host)
            out += _write_i(each_15_m.port)
            write_compact_nullable_string(out, each_15_m.rack)
            out.append(0)
        write_varint(kept_14, 0)
        write_varint(kept_14, len(out))
        kept_14 += out
        out = kept_14


ENCODE_FETCH_RESPONSE = {
    4: _encode_fetch_response_4,
    5: _encode_fetch_response_5,
    6: _encode_fetch_response_5,
    7: _encode_fetch_response_7,
    8: _encode_fetch_response_7,
    9: _encode_fetch_response_7,
    10: _encode_fetch_response_7,
    11: _encode_fetch_response_11,
    12: _encode_fetch_response_12,
    13: _encode_fetch_response_13,
    14: _encode_fetch_response_13,
    15: _encode_fetch_response_13,
    16: _encode_fetch_response_16,
    17: _encode_fetch_response_16,
    18: _encode_fetch_response_16,
}
