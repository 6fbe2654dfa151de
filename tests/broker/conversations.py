"""Scripted conversations: the same requests to two brokers, the answers side by side."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tailrace.client.connection import Connection
from tailrace.records.encode import encode_columns
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.messages import consumer_protocol
from tailrace.wire.messages import create_topics as topics_wire
from tailrace.wire.messages import fetch as fetch_wire
from tailrace.wire.messages import join_group as join_wire
from tailrace.wire.messages import offset_commit as commit_wire
from tailrace.wire.messages import offset_fetch as offset_wire
from tailrace.wire.messages import produce as produce_wire
from tailrace.wire.messages import sync_group as sync_wire

Heard = list[tuple[str, object]]
"""What was asked, and what was answered."""

RETRY = (14, 15, 16, 51)
"""Loading, not available, not coordinator, concurrent transactions: Kafka asks to come back."""


class Talk:
    """One connection to one broker, and what was heard on it."""

    def __init__(
        self,
        address: str,
        heard: Heard | None = None,
        client_id: str = "tailrace",
    ) -> None:
        host, port = address.rsplit(":", 1)
        self.address = address
        self.connection = Connection(host, int(port), client_id=client_id.encode())
        self.heard: Heard = [] if heard is None else heard

    def note(self, what: str, answer: object) -> None:
        """Write down an answer that both brokers must give."""
        self.heard.append((what, answer))

    def ask(self, key: ApiKey, message: Any, version: int | None = None) -> Any:
        """Send a request in the highest version both sides speak, or in `version`."""
        api = APIS[key]
        self.connection.send(
            api, message, self.connection.version(api) if version is None else version
        )
        return self.connection.receive()

    def begin(self, key: ApiKey, message: Any, version: int | None = None) -> None:
        """Send a request whose answer comes later (`end`)."""
        api = APIS[key]
        self.connection.send(
            api, message, self.connection.version(api) if version is None else version
        )

    def end(self) -> Any:
        return self.connection.receive()

    def create_topic(self, name: str, partitions: int = 1) -> bytes:
        answer = self.ask(
            ApiKey.CREATE_TOPICS,
            topics_wire.CreateTopicsRequest(
                topics=[topics_wire.CreatableTopic(name, partitions, 1)], timeout_ms=30_000
            ),
        )
        assert answer.topics[0].error_code == 0, answer
        return bytes(answer.topics[0].topic_id)

    def join(
        self,
        group: str,
        member: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        topics: tuple[str, ...] = (),
    ) -> Any:
        return join_wire.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=30_000,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                join_wire.JoinGroupRequestProtocol(name, subscription(*topics))
                for name in protocols
            ],
        )

    def sync(
        self,
        group: str,
        member: str,
        generation: int,
        shares: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
    ) -> Any:
        return sync_wire.SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                sync_wire.SyncGroupRequestAssignment(*share) for share in (shares or {}).items()
            ],
        )

    def commit(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str = "",
        partition: int = 0,
        version: int = 9,
    ) -> int:
        answer = self.ask(
            ApiKey.OFFSET_COMMIT,
            commit_wire.OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=generation,
                member_id=member,
                group_instance_id=instance,
                topics=[
                    commit_wire.OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[
                            commit_wire.OffsetCommitRequestPartition(
                                partition, offset, -1, metadata
                            )
                        ],
                    )
                ],
            ),
            version,
        )
        return int(answer.topics[0].partitions[0].error_code)

    def committed(self, group: str, topic: str, *, stable: bool = False) -> tuple[int, int]:
        """Error and offset."""
        answer = self.ask(
            ApiKey.OFFSET_FETCH,
            offset_wire.OffsetFetchRequest(
                groups=[
                    offset_wire.OffsetFetchRequestGroup(
                        group_id=group,
                        topics=[
                            offset_wire.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
                        ],
                    )
                ],
                require_stable=stable,
            ),
            9,
        )
        [group_answer] = answer.groups
        if group_answer.error_code:
            return int(group_answer.error_code), -1
        found = group_answer.topics[0].partitions[0]
        return int(found.error_code), int(found.committed_offset)

    def produce(
        self,
        topic: str,
        value: bytes,
        *,
        transactional_id: str | None = None,
        producer_id: int = -1,
        epoch: int = -1,
        sequence: int = -1,
        partition: int = 0,
        version: int = 12,
    ) -> tuple[int, int]:
        """Error and offset."""
        batch = encode_columns(
            [b"k"],
            [value],
            1_700_000_000_000,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional_id is not None,
        )
        answer = self.ask(
            ApiKey.PRODUCE,
            produce_wire.ProduceRequest(
                transactional_id=transactional_id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    produce_wire.TopicProduceData(
                        name=topic,
                        partition_data=[produce_wire.PartitionProduceData(partition, batch)],
                    )
                ],
            ),
            version,
        )
        found = answer.responses[0].partition_responses[0]
        return int(found.error_code), int(found.base_offset)

    def stable_end(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """Last stable offset and high watermark."""
        answer = self.ask(
            ApiKey.FETCH,
            fetch_wire.FetchRequest(
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                isolation_level=1,
                topics=[
                    fetch_wire.FetchTopic(
                        topic=topic,
                        partitions=[
                            fetch_wire.FetchPartition(
                                partition=partition, fetch_offset=0, partition_max_bytes=1 << 20
                            )
                        ],
                    )
                ],
            ),
            11,
        )
        found = answer.responses[0].partitions[0]
        return int(found.last_stable_offset), int(found.high_watermark)

    def close(self) -> None:
        self.connection.close()


def subscription(*topics: str) -> bytes:
    """What a consumer says it reads."""
    out = bytearray((0, 0))
    consumer_protocol.ENCODE_CONSUMER_PROTOCOL_SUBSCRIPTION[0](
        consumer_protocol.ConsumerProtocolSubscription(topics=list(topics)), out
    )
    return bytes(out)


@contextmanager
def talking(address: str, count: int = 1) -> Iterator[list[Talk]]:
    """Connections to one broker that write down what they hear on one sheet."""
    heard: Heard = []
    talks: list[Talk] = []
    try:
        talks.extend(Talk(address, heard) for _ in range(count))
        yield talks
    finally:
        for talk in talks:
            talk.close()


def unique(prefix: str) -> str:
    """A name no other test has used."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def differences(mine: Heard, theirs: Heard) -> str:
    """Where two brokers answered one script differently, a line each; empty if nowhere."""
    return "\n".join(
        f"{what}: ours {answer}, theirs {expected}"
        for (what, answer), (_, expected) in zip(mine, theirs, strict=True)
        if answer != expected
    )
