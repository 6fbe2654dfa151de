"""The same requests to Apache Kafka and to us: the same answers.

Each script writes down what it heard; both lists must be equal. Scripts leave out what
cannot be equal: ids, times, the number of a leader's epoch.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

import crc32c
import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.clock import SYSTEM
from tailrace.testing.wire_client import WireClient, batch_of, values_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import alter_configs, create_partitions, delete_topics, metadata
from tailrace.wire.messages import create_topics as creation
from tailrace.wire.messages import describe_configs as description
from tailrace.wire.messages import fetch as fetching
from tailrace.wire.messages import incremental_alter_configs as incremental
from tailrace.wire.messages import list_offsets as listing
from tailrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tailrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

Heard = list[tuple[object, ...]]
TOPIC = 2
NOW = SYSTEM.wall_ms()


class Script:
    """One conversation: a client, a topic name of its own, and what was heard."""

    def __init__(self, address: str) -> None:
        self.client = WireClient(address)
        self.topic = f"t{uuid.uuid4().hex[:12]}"
        self.heard: Heard = []

    def note(self, *what: object) -> None:
        self.heard.append(what)

    def create(self, partitions: int = 1, name: str | None = None, **config: str) -> None:
        self.client.create(name or self.topic, partitions, **config)
        for _ in range(100):
            # Kafka tells of a topic before its leaders are ready.
            if not any(self.offset(-1, index)[0] for index in range(partitions)):
                return
            SYSTEM.sleep(0.05)

    def offset(self, at: int, partition: int = 0, **how: Any) -> tuple[int, int, int]:
        answer = self.client.ask(
            ApiKey.LIST_OFFSETS,
            how.get("version", 9),
            listing.ListOffsetsRequest(
                replica_id=-1,
                isolation_level=how.get("isolation", 0),
                topics=[
                    listing.ListOffsetsTopic(
                        how.get("name", self.topic),
                        [listing.ListOffsetsPartition(partition, how.get("epoch", -1), at)],
                    )
                ],
            ),
        )
        found = answer.topics[0].partitions[0]
        return found.error_code, found.offset, found.timestamp

    def produce(self, batch: bytes | bytearray, **how: Any) -> None:
        label = how.pop("label", "produce")
        result = self.client.produce(self.topic, batch, **how)
        self.note(label, result.error_code, result.base_offset)

    def fetch(self, offset: int, **how: Any) -> None:
        found = self.client.fetch(how.pop("name", self.topic), offset, **how)
        self.note("fetch", offset, found.error_code, found.high_watermark, values_of(found.records))


def produce_and_fetch(script: Script) -> None:
    script.create(2)
    for version in range(3, 13):
        script.produce(batch_of(b"a", b"b", timestamp=NOW), version=version, label=version)
    script.produce(batch_of(b"x"), partition=9)
    script.produce(batch_of(b"x"), acks=5)
    for offset in (0, 19, 20, 21, 10_000, -1):
        script.fetch(offset)
    script.fetch(0, partition=7)
    script.fetch(0, name="nowhere")
    script.fetch(0, epoch=1000)
    script.fetch(0, isolation=1)
    script.fetch(0, partition_max_bytes=1)
    script.fetch(0, max_bytes=1)


def bad_batches(script: Script) -> None:
    script.create()
    good = bytes(batch_of(b"value", timestamp=NOW))

    def changed(position: int, data: bytes, *, sealed: bool) -> bytes:
        made = bytearray(good)
        made[position : position + len(data)] = data
        if sealed:
            struct.pack_into(">I", made, 17, crc32c.crc32c(memoryview(made)[21:]))
        return bytes(made)

    script.produce(good, version=7, label="good")
    cases = {
        "bad crc": changed(17, b"\x00\x00\x00\x00", sealed=False),
        "flipped bit": changed(len(good) - 1, b"\x77", sealed=False),
        "magic 9": changed(16, b"\x09", sealed=False),
        "negative length": changed(8, b"\xff\xff\xff\xff", sealed=False),
        "short length": changed(8, b"\x00\x00\x00\x05", sealed=False),
        "cut": good[:-3],
        "length too long": changed(8, struct.pack(">i", len(good) + 50), sealed=False),
        "count does not match": changed(57, struct.pack(">i", 9), sealed=True),
        "offset delta does not match": changed(23, struct.pack(">i", 9), sealed=True),
        "header only": good[:61],
        "empty": b"",
        "two batches": good + good,
    }
    for label, batch in cases.items():
        script.produce(batch, version=7, label=label)
    script.produce(good, version=7, label="good again")


def idempotence(script: Script) -> None:
    script.create()
    producer = -1
    while producer < 0:  # Kafka has none to give just after its start
        answer = script.client.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 60_000))
        producer = answer.producer_id

    def send(sequence: int, count: int = 1, epoch: int = 0) -> None:
        values = [b"%d" % (sequence + n) for n in range(count)]
        batch = batch_of(
            *values,
            timestamp=NOW,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        script.produce(batch, label=("sequence", sequence, count, epoch))

    for sequence in range(7):
        send(sequence)
    for sequence in (6, 5, 3, 2, 1):  # five batches are remembered
        send(sequence)
    send(9)
    send(7, count=3)
    send(7, count=3)
    send(8)
    send(0, epoch=1)
    send(10)
    send(1, epoch=1)
    send(5, epoch=2)
    send(0, epoch=2)
    script.fetch(0)


def times(script: Script) -> None:
    script.create()
    for at in (5000, 9000, 7000):
        script.produce(batch_of(b"x", b"y", timestamp=NOW - 100_000 + at))
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        script.produce(batch_of(b"x", b"y", timestamp=NOW - 50_000, compression=codec))
    for at in (-1, -2, -3, -4):
        script.note(at, script.offset(at)[:2])
    for after in (0, 5000, 5001, 9000, 9001, 49_999, 50_000, 50_001):
        found = script.offset(NOW - 100_000 + after)
        script.note(after, found[0], found[1], found[2] - NOW if found[2] >= 0 else -1)
    script.note(script.offset(-1, 5)[:2], script.offset(-1, name="nowhere")[:2])
    script.note(script.offset(-1, epoch=1000)[0])
    script.note(script.offset(-1, isolation=1)[:2])
    script.produce(batch_of(b"far", timestamp=NOW + 10 * 3_600_000), label="from the future")


def sizes_and_keys(script: Script) -> None:
    script.create(max_message_bytes="2000")
    script.produce(batch_of(bytes(1500)), label="fits")
    script.produce(batch_of(bytes(3000)), label="too large")
    compacted = f"{script.topic}c"
    script.client.create(compacted, cleanup_policy="compact")
    SYSTEM.sleep(0.5)
    result = script.client.produce(compacted, batch_of(b"no key"))
    script.note("no key on a compacted topic", result.error_code)


def topics(script: Script) -> None:
    def create(name: str, partitions: int = 1, copies: int = 1, **config: str) -> None:
        answer = script.client.ask(
            ApiKey.CREATE_TOPICS,
            7,
            creation.CreateTopicsRequest(
                topics=[
                    creation.CreatableTopic(
                        name,
                        partitions,
                        copies,
                        [],
                        [
                            creation.CreatableTopicConfig(key.replace("_", "."), value)
                            for key, value in config.items()
                        ],
                    )
                ],
                timeout_ms=20_000,
            ),
        )
        result = answer.topics[0]
        script.note(
            "create", name.replace(script.topic, "t"), partitions, copies, sorted(config),
            result.error_code, result.num_partitions, result.replication_factor,
        )  # fmt: skip

    name = script.topic
    create(name, 2)
    create(name, 2)
    create("bad name")
    create("")
    create(".")
    create("x" * 250)
    create(f"{name}a", 0)
    create(f"{name}a", -3)
    create(f"{name}a", 1, 5)
    create(f"{name}a", 1, 0)
    create(f"{name}a", 1, 1, no_such_setting="1")
    create(f"{name}a", 1, 1, retention_ms="words")
    create(f"{name}a", 1, 1, cleanup_policy="nonsense")
    create(f"{name}a", -1, -1)

    def grow(topic: str, count: int) -> None:
        answer = script.client.ask(
            ApiKey.CREATE_PARTITIONS,
            3,
            create_partitions.CreatePartitionsRequest(
                topics=[create_partitions.CreatePartitionsTopic(topic, count, None)],
                timeout_ms=20_000,
            ),
        )
        script.note("grow", count, answer.results[0].error_code)

    grow(name, 1)
    grow(name, 2)
    grow("nowhere", 3)
    grow(name, 4)

    def delete(topic: str | None, topic_id: bytes = bytes(16)) -> None:
        answer = script.client.ask(
            ApiKey.DELETE_TOPICS,
            6,
            delete_topics.DeleteTopicsRequest(
                topics=[delete_topics.DeleteTopicState(topic, topic_id)], timeout_ms=20_000
            ),
        )
        script.note("delete", answer.responses[0].error_code)

    delete("nowhere")
    delete(None, b"\x05" * 16)
    delete(name)
    delete(name)


def looking_up(script: Script) -> None:
    script.create(2)
    found = script.client.ask(
        ApiKey.METADATA,
        12,
        metadata.MetadataRequest(
            topics=[
                metadata.MetadataRequestTopic(name=script.topic),
                metadata.MetadataRequestTopic(name="nowhere"),
                metadata.MetadataRequestTopic(name="bad name"),
            ],
            allow_auto_topic_creation=False,
        ),
    )
    for topic in sorted(found.topics, key=lambda one: one.name != script.topic):
        script.note(
            "metadata", topic.name == script.topic, topic.error_code, topic.is_internal,
            [(p.error_code, p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes)
             for p in sorted(topic.partitions, key=lambda one: one.partition_index)],
        )  # fmt: skip
    found = script.client.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(script.topic), TopicRequest("nowhere")]
        ),
    )
    for one in found.topics:
        script.note("describe", one.name == script.topic, one.error_code, len(one.partitions))

    def epoch_end(partition: int, current: int, epoch: int) -> None:
        answer = script.client.ask(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            4,
            OffsetForLeaderEpochRequest(
                replica_id=-2,
                topics=[
                    OffsetForLeaderTopic(
                        script.topic, [OffsetForLeaderPartition(partition, current, epoch)]
                    )
                ],
            ),
        )
        one = answer.topics[0].partitions[0]
        script.note("epoch", partition, current, epoch, one.error_code, one.end_offset)

    script.produce(batch_of(b"x"))
    epoch_end(0, -1, 0)
    epoch_end(0, -1, 50)
    epoch_end(0, 50, 0)
    epoch_end(9, -1, 0)


def settings(script: Script) -> None:
    script.create()

    def change(*changes: tuple[str, int, str | None], name: str | None = None) -> None:
        answer = script.client.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            incremental.IncrementalAlterConfigsRequest(
                resources=[
                    incremental.AlterConfigsResource(
                        TOPIC,
                        name or script.topic,
                        [incremental.AlterableConfig(*one) for one in changes],
                    )
                ]
            ),
        )
        script.note("change", changes, answer.responses[0].error_code)

    def tell(*names: str) -> None:
        SYSTEM.sleep(0.5)  # Kafka answers a change before its broker has taken it in
        answer = script.client.ask(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            description.DescribeConfigsRequest(
                resources=[description.DescribeConfigsResource(TOPIC, script.topic, list(names))]
            ),
        )
        result = answer.results[0]
        script.note(
            result.error_code,
            sorted(
                (one.name, one.value, one.config_source, one.config_type) for one in result.configs
            ),
        )

    every = ("retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes",
             "message.timestamp.type", "flush.messages")  # fmt: skip
    tell(*every)
    change(("retention.ms", 0, "5000"))
    change(("cleanup.policy", 2, "compact"))
    tell(*every)
    change(("cleanup.policy", 3, "delete"))
    change(("retention.ms", 1, None))
    tell(*every)
    change(("retention.ms", 0, "words"))
    change(("no.such", 0, "1"))
    change(("retention.ms", 2, "1"))
    change(("retention.ms", 0, "1"), ("retention.ms", 0, "2"))
    change(("retention.ms", 0, "1"), name="nowhere")
    tell("no.such")
    answer = script.client.ask(
        ApiKey.ALTER_CONFIGS,
        2,
        alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    TOPIC, script.topic, [alter_configs.AlterableConfig("segment.ms", "7000")]
                )
            ]
        ),
    )
    script.note("replace", answer.responses[0].error_code)
    tell(*every, "segment.ms")


def deleting_records(script: Script) -> None:
    script.create()
    for number in range(5):
        script.produce(batch_of(b"%d" % number))

    def delete(offset: int, name: str | None = None, partition: int = 0) -> None:
        answer = script.client.ask(
            ApiKey.DELETE_RECORDS,
            2,
            DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name or script.topic, [DeleteRecordsPartition(partition, offset)]
                    )
                ],
                timeout_ms=10_000,
            ),
        )
        one = answer.topics[0].partitions[0]
        script.note("delete", offset, one.error_code, one.low_watermark)

    delete(2)
    delete(1)
    delete(9)
    delete(0, "nowhere")
    delete(0, partition=4)
    script.fetch(1)
    script.fetch(2)
    script.note(script.offset(-2)[:2], script.offset(-1)[:2])
    delete(-1)
    script.note(script.offset(-2)[:2], script.offset(-1)[:2])


def sessions(script: Script) -> None:
    script.create(3)
    script.produce(batch_of(b"a"))

    def ask(
        session: int, epoch: int, *places: tuple[int, int], forget: tuple[int, ...] = ()
    ) -> int:
        answer = script.client.ask(
            ApiKey.FETCH,
            12,
            fetching.FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 20,
                session_id=session,
                session_epoch=epoch,
                topics=[
                    fetching.FetchTopic(
                        topic=script.topic,
                        partitions=[
                            fetching.FetchPartition(
                                partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                            )
                            for index, offset in places
                        ],
                    )
                ]
                if places
                else [],
                forgotten_topics_data=[
                    fetching.ForgottenTopic(topic=script.topic, partitions=list(forget))
                ]
                if forget
                else [],
            ),
        )
        told = sorted(
            (one.partition_index, one.error_code, len(values_of(one.records)))
            for topic in answer.responses
            for one in topic.partitions
        )
        script.note(
            "session", epoch, places, forget, answer.error_code, bool(answer.session_id), told
        )
        found: int = answer.session_id
        return found

    session = ask(0, 0, (0, 0), (1, 0), (2, 0))
    ask(session, 1)
    ask(session, 2, (0, 1))
    script.produce(batch_of(b"b"), partition=1)
    ask(session, 3)
    ask(session, 4, (1, 1))
    ask(session, 9)
    ask(session + 1, 3)
    ask(session, 5, forget=(2,))
    script.produce(batch_of(b"c"), partition=2)
    ask(session, 6)
    ask(session, -1, (0, 0))
    ask(session, 7)


SCRIPTS: list[Callable[[Script], None]] = [
    produce_and_fetch, bad_batches, idempotence, times, sizes_and_keys, topics, looking_up,
    settings, deleting_records, sessions,
]  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.__name__)
def test_answers_are_kafkas(
    kafka: str, start: Callable[..., BrokerThread], script: Callable[[Script], None]
) -> None:
    heard: list[Heard] = []
    for address in (kafka, start().address):
        run = Script(address)
        try:
            script(run)
        finally:
            run.client.close()
        heard.append(run.heard)
    theirs, ours = heard
    for one, other in zip(theirs, ours, strict=True):
        assert other == one
