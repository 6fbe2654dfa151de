"""A Kafka client that says exactly what a test wants said, and nothing else."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any

from tailrace.records.batch import Record, decode_records, encode_batch, iterate_batches
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import decode_response, encode_request
from tailrace.wire.message import Message
from tailrace.wire.messages import create_topics as creation
from tailrace.wire.messages import fetch as fetching
from tailrace.wire.messages import produce as producing


class WireClient:
    """One connection; one request at a time with `ask`, or pipelined with `say` and `hear`."""

    def __init__(self, address: str, *, timeout_seconds: float = 30) -> None:
        host, _, port = address.rpartition(":")
        self.sock = socket.create_connection((host, int(port)), timeout=timeout_seconds)
        self._number = 0
        self._asked: list[tuple[int, int, int]] = []

    def ask(self, api_key: int, version: int, message: Message) -> Any:
        """Send one request and wait for its answer."""
        self.say(api_key, version, message)
        return self.hear()

    def say(self, api_key: int, version: int, message: Message) -> None:
        """Send a request; its answer is heard later."""
        self._number += 1
        self.sock.sendall(encode_request(APIS[api_key], version, self._number, message))
        self._asked.append((api_key, version, self._number))

    def say_with(
        self, api_key: int, version: int, message: Message, *more: bytes | bytearray
    ) -> None:
        """Send a request and, in the same piece, frames whose answers nobody awaits."""
        self._number += 1
        asked = encode_request(APIS[api_key], version, self._number, message)
        self.sock.sendall(b"".join([asked, *more]))
        self._asked.append((api_key, version, self._number))

    def expect_nothing(self) -> None:
        """The last request gets no answer (acks=0)."""
        self._asked.pop()

    def hear(self) -> Any:
        """The answer to the oldest request that has none yet."""
        api_key, version, number = self._asked.pop(0)
        correlation_id, message = decode_response(APIS[api_key], version, self.read_frame())
        assert correlation_id == number, f"answer {correlation_id} to request {number}"
        return message

    def send_bytes(self, data: bytes | bytearray) -> None:
        """Send anything at all."""
        self.sock.sendall(data)

    def read_frame(self) -> bytes:
        """The next frame without its length; raises ConnectionError at the end."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def closed_by_peer(self) -> bool:
        """Wait for the peer to close (True) or to say something (False)."""
        try:
            return self.sock.recv(1) == b""
        except (ConnectionResetError, BrokenPipeError):
            return True

    def _read(self, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            chunk = self.sock.recv(count - len(out))
            if not chunk:
                raise ConnectionError("the peer closed the connection")
            out += chunk
        return bytes(out)

    # the sentences tests use most

    def create(self, name: str, partitions: int = 1, **config: str) -> bytes:
        """Create a topic (settings with `_` for `.`); its id."""
        answer = self.ask(
            ApiKey.CREATE_TOPICS,
            7,
            creation.CreateTopicsRequest(
                topics=[
                    creation.CreatableTopic(
                        name,
                        partitions,
                        1,
                        [],
                        [
                            creation.CreatableTopicConfig(key.replace("_", "."), value)
                            for key, value in config.items()
                        ],
                    )
                ]
            ),
        )
        result = answer.topics[0]
        assert result.error_code == 0, result
        topic_id: bytes = result.topic_id
        return topic_id

    def produce_request(
        self, topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = -1
    ) -> producing.ProduceRequest:
        return producing.ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=1000,
            topic_data=[
                producing.TopicProduceData(
                    name=topic,
                    partition_data=[producing.PartitionProduceData(partition, bytes(batch))],
                )
            ],
        )

    def produce(
        self,
        topic: str,
        batch: bytes | bytearray,
        partition: int = 0,
        *,
        acks: int = -1,
        version: int = 9,
    ) -> producing.PartitionProduceResponse:
        answer = self.ask(
            ApiKey.PRODUCE, version, self.produce_request(topic, batch, partition, acks)
        )
        result: producing.PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return result

    def fetch_request(
        self,
        topic: str,
        offset: int,
        partition: int = 0,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 50 << 20,
        partition_max_bytes: int = 1 << 20,
        isolation: int = 0,
        epoch: int = -1,
    ) -> fetching.FetchRequest:
        return fetching.FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=0,
            session_epoch=-1,
            topics=[
                fetching.FetchTopic(
                    topic=topic,
                    partitions=[
                        fetching.FetchPartition(
                            partition=partition,
                            current_leader_epoch=epoch,
                            fetch_offset=offset,
                            partition_max_bytes=partition_max_bytes,
                        )
                    ],
                )
            ],
        )

    def fetch(
        self, topic: str, offset: int, partition: int = 0, version: int = 12, **how: int
    ) -> fetching.PartitionData:
        answer = self.ask(
            ApiKey.FETCH, version, self.fetch_request(topic, offset, partition, **how)
        )
        found: fetching.PartitionData = answer.responses[0].partitions[0]
        return found

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def batch_of(*values: bytes, timestamp: int = 1_700_000_000_000, **how: Any) -> bytearray:
    """A batch of records without keys."""
    return encode_batch([Record(0, timestamp, None, value, ()) for value in values], **how)


def values_of(records: bytes | bytearray | memoryview | None) -> list[bytes | None]:
    """The values of all records of all whole batches."""
    data = bytes(records or b"")
    return [
        record.value
        for position, _ in iterate_batches(data)
        for record in decode_records(data, position)
    ]
