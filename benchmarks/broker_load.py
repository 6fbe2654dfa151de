"""A load generator that is not the limit: frames are built once and sent as they are.

What runs while the clock does is `broker_load.c`, compiled when it is first needed.
Nothing is encoded or decoded per message, and both brokers get byte-for-byte the same
requests. What comes back is checked: the error of every answer, count and size of what
is read.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tailrace.records.batch import Record, encode_batch
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import decode_response, encode_request
from tailrace.wire.message import Message
from tailrace.wire.messages import (
    create_topics,
    delete_topics,
    fetch,
    list_offsets,
    metadata,
    produce,
)

PRODUCE_VERSION = 9
FETCH_VERSION = 11
IN_FLIGHT = 5


class Line:
    """One connection with blocking calls."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.sock = socket.create_connection((host, int(port)), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    def ask(self, key: ApiKey, version: int, message: Message) -> Message:
        self._number += 1
        self.sock.sendall(encode_request(APIS[key], version, self._number, message))
        return decode_response(APIS[key], version, self.read())[1]

    def read(self) -> bytes:
        """One frame without its length."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return bytes(self._exactly(size))

    def _exactly(self, size: int) -> bytearray:
        out = bytearray(size)
        view = memoryview(out)
        done = 0
        while done < size:
            count = self.sock.recv_into(view[done:])
            if not count:
                raise ConnectionError("the broker closed the connection")
            done += count
        return out

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def create_topic(address: str, name: str, partitions: int, config: dict[str, str]) -> None:
    with Line(address) as line:
        answer = line.ask(
            ApiKey.CREATE_TOPICS,
            5,
            create_topics.CreateTopicsRequest(
                topics=[
                    create_topics.CreatableTopic(
                        name,
                        partitions,
                        1,
                        [],
                        [create_topics.CreatableTopicConfig(*pair) for pair in config.items()],
                    )
                ]
            ),
        )
        assert isinstance(answer, create_topics.CreateTopicsResponse)
        if answer.topics[0].error_code not in (0, 36):
            raise RuntimeError(f"{name}: {answer.topics[0]}")
        for _ in range(200):
            found = line.ask(
                ApiKey.METADATA,
                9,
                metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)]),
            )
            assert isinstance(found, metadata.MetadataResponse)
            rows = found.topics[0].partitions
            ready = len(rows) == partitions and not any(row.error_code for row in rows)
            if ready and _all_led(line, name, partitions):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{name} has no leaders")


def _offsets(
    line: Line, name: str, partitions: int
) -> list[list_offsets.ListOffsetsPartitionResponse]:
    answer = line.ask(
        ApiKey.LIST_OFFSETS,
        5,
        list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=name,
                    partitions=[
                        list_offsets.ListOffsetsPartition(partition_index=i, timestamp=-1)
                        for i in range(partitions)
                    ],
                )
            ],
        ),
    )
    assert isinstance(answer, list_offsets.ListOffsetsResponse)
    return answer.topics[0].partitions


def _all_led(line: Line, name: str, partitions: int) -> bool:
    """Whether every partition answers; Kafka's metadata is ahead of its leaders."""
    return not any(one.error_code for one in _offsets(line, name, partitions))


def delete_topic(address: str, name: str) -> None:
    """Give the topic's space, and the memory that caches it, back."""
    with Line(address) as line:
        request = delete_topics.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        line.ask(ApiKey.DELETE_TOPICS, 5, request)


def end_offsets(address: str, name: str, partitions: int) -> int:
    """The sum of all end offsets."""
    with Line(address) as line:
        return sum(one.offset for one in _offsets(line, name, partitions))


def batch(message_bytes: int, batch_bytes: int) -> tuple[bytes, int]:
    """A batch of equal messages, and how many they are."""
    count = max(1, batch_bytes // (message_bytes + 10))
    value = bytes(range(256)) * (message_bytes // 256 + 1)
    now = time.time_ns() // 1_000_000
    records = [Record(0, now, None, value[:message_bytes], ()) for _ in range(count)]
    return bytes(encode_batch(records)), count


def produce_frame(topic: str, partition: int, records: bytes, acks: int = 1) -> bytes:
    """A whole Produce request; the correlation id is the partition."""
    message = produce.ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            produce.TopicProduceData(
                name=topic, partition_data=[produce.PartitionProduceData(partition, records)]
            )
        ],
    )
    return bytes(encode_request(APIS[ApiKey.PRODUCE], PRODUCE_VERSION, partition, message))


def check_produced(frame: bytes) -> int:
    """The base offset of a Produce answer; raises if it is an error."""
    _, answer = decode_response(APIS[ApiKey.PRODUCE], PRODUCE_VERSION, frame)
    assert isinstance(answer, produce.ProduceResponse)
    result = answer.responses[0].partition_responses[0]
    if result.error_code:
        raise RuntimeError(f"produce failed: {result}")
    return result.base_offset


@dataclass(frozen=True, slots=True)
class Moved:
    """What a run moved, and how long it took."""

    messages: int
    bytes: int
    seconds: float


def produce_load(
    address: str,
    topic: str,
    partitions: int,
    message_bytes: int,
    batch_bytes: int,
    total_bytes: int,
    *,
    connections: int = 1,
    in_flight: int = IN_FLIGHT,
) -> Moved:
    """Send the same batch to all partitions in turn, `in_flight` requests at a time."""
    records, count = batch(message_bytes, batch_bytes)
    wanted = max(connections * in_flight, total_bytes // len(records))
    frames = b"".join(produce_frame(topic, index, records) for index in range(partitions))
    out = _run("produce", address, frames, _result_at(topic), wanted, connections, in_flight)
    return Moved(wanted * count, wanted * len(records), float(out))


def consume_load(
    address: str,
    topic: str,
    partitions: int,
    messages: int,
    partition_max_bytes: int = 8 << 20,
    *,
    first: int = 0,
    passes: int = 1,
    yielding: bool = False,
) -> Moved:
    """Read every partition from the offset `first` until `messages` were seen, `passes`
    times; counts them by the headers of their batches. `yielding`: at the lowest priority, so
    that on few cores it is the broker that serves it, not the reader, that others feel."""
    words = (topic, partitions, messages, partition_max_bytes, first, passes)
    out = _run("consume", address, None, *words, niceness=19 if yielding else 0)
    seen, size, seconds = out.split()
    return Moved(int(seen), int(size), float(seconds))


def acknowledgement_seconds(
    address: str, topic: str, rounds: int, message_bytes: int = 100
) -> list[float]:
    """The time of each of `rounds` requests of one message, one after the other."""
    frame = produce_frame(topic, 0, batch(message_bytes, 1)[0])
    out = _run("ack", address, frame, _result_at(topic), rounds)
    return [float(line) / 1e6 for line in out.split()]


def end_to_end_seconds(address: str, topic: str, rounds: int) -> list[float]:
    """From sending a message to having it in a waiting consumer's hands."""
    frame = produce_frame(topic, 0, batch(100, 1)[0])
    out = _run("end", address, frame, _result_at(topic), rounds, topic)
    return [float(line) / 1e6 for line in out.split()]


def _result_at(topic: str) -> int:
    """Where a Produce answer holds its error: behind correlation id, tags, topics, name,
    partitions and index."""
    return 4 + 1 + 1 + 1 + len(topic) + 1 + 4


def _run(
    command: str, address: str, frames: bytes | None, *given: object, niceness: int = 0
) -> str:
    """What the C program prints; ends the benchmark if it failed."""
    host, _, port = address.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host
    with tempfile.NamedTemporaryFile() as file:
        if frames is not None:
            file.write(frames)
            file.flush()
        words = [command, host, port, *([file.name] if frames is not None else []), *given]
        polite = ["nice", "-n", str(niceness)] if niceness else []
        done = subprocess.run(
            [*polite, program(), *map(str, words)], capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"{command} on {address}: {done.stderr.strip()}")
    return done.stdout


@functools.cache
def program() -> Path:
    """The load generator, compiled once a run with the machine's compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("the load generator is a C program: install a C compiler (cc)")
    directory = Path(tempfile.mkdtemp(prefix="tailrace-load-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    made = directory / "broker_load"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-O2", "-std=gnu11", "-o", made, source], check=True)
    return made


def fetch_frame(
    topic: str, positions: dict[int, int], partition_max_bytes: int, max_wait_ms: int = 500
) -> bytearray:
    message = fetch.FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=0,
        session_epoch=-1,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                partitions=[
                    fetch.FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                    )
                    for index, offset in positions.items()
                ],
            )
        ],
    )
    return encode_request(APIS[ApiKey.FETCH], FETCH_VERSION, 1, message)
