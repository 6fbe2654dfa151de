"""A load generator that is not the limit: frames are built once and sent as they are.

Nothing is encoded or decoded per message while the clock runs, so a Python loop moves
gigabytes a second and both brokers get byte-for-byte the same requests. What comes
back is checked: offsets and errors of every answer, count and size of what is read.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from dataclasses import dataclass

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
IOV = 64


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
    # Correlation id, tags, topics, name, partitions, index; then error and base offset.
    result_at = 4 + 1 + 1 + 1 + len(topic) + 1 + 4
    frames = [produce_frame(topic, index, records) for index in range(partitions)]
    wanted = max(connections * in_flight, total_bytes // len(records))
    lines = [Line(address) for _ in range(connections)]
    selector = selectors.DefaultSelector()
    sent = answered = 0
    state: dict[socket.socket, tuple[list[memoryview], bytearray, list[int]]] = {}

    def next_frame(sock: socket.socket) -> None:
        nonlocal sent
        if sent < wanted:
            state[sock][0].append(memoryview(frames[sent % partitions]))
            sent += 1

    started = time.perf_counter()
    for line in lines:
        line.sock.setblocking(False)
        state[line.sock] = ([], bytearray(), [])
        for _ in range(in_flight):
            next_frame(line.sock)
        selector.register(line.sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
    while answered < wanted:
        for key, mask in selector.select(60):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            queue, received, _ = state[sock]
            if mask & selectors.EVENT_READ:
                data = sock.recv(65536)
                if not data:
                    raise ConnectionError("the broker closed the connection")
                received += data
                position = 0
                while len(received) - position >= 4:
                    (size,) = struct.unpack_from(">i", received, position)
                    if len(received) - position < 4 + size:
                        break
                    (error,) = struct.unpack_from(">h", received, position + 4 + result_at)
                    if error:
                        check_produced(bytes(received[position + 4 : position + 4 + size]))
                    position += 4 + size
                    answered += 1
                    next_frame(sock)
                del received[:position]
            while queue:
                small = queue[:IOV] if len(queue[0]) < 4096 else queue[:1]
                try:
                    gone = sock.sendmsg(small)
                except BlockingIOError:
                    break
                while gone:
                    if gone >= len(queue[0]):
                        gone -= len(queue.pop(0))
                    else:
                        queue[0] = queue[0][gone:]
                        gone = 0
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if queue else 0)
            if key.events != events:
                selector.modify(sock, events)
    seconds = time.perf_counter() - started
    for line in lines:
        line.close()
    selector.close()
    return Moved(wanted * count, wanted * len(records), seconds)


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


def consume_load(
    address: str, topic: str, partitions: int, messages: int, partition_max_bytes: int = 8 << 20
) -> Moved:
    """Read every partition from the start until `messages` were seen; counts them by headers."""
    positions = dict.fromkeys(range(partitions), 0)
    seen = size = 0
    buffer = bytearray(64 << 20)
    view = memoryview(buffer)
    with Line(address) as line:
        started = time.perf_counter()
        while seen < messages:
            line.sock.sendall(fetch_frame(topic, positions, partition_max_bytes))
            have = 0
            total = 4
            while have < total:
                count = line.sock.recv_into(view[have:])
                if not count:
                    raise ConnectionError("the broker closed the connection")
                have += count
                if total == 4 and have >= 4:
                    total = 4 + int(struct.unpack_from(">i", buffer)[0])
            got, got_bytes = _count(view[:total], positions)
            seen += got
            size += got_bytes
        seconds = time.perf_counter() - started
    return Moved(seen, size, seconds)


def _count(frame: memoryview, positions: dict[int, int]) -> tuple[int, int]:
    """Messages and bytes of a Fetch answer (version 11); moves the positions on."""
    position = 4 + 4 + 4 + 2 + 4
    (topics,) = struct.unpack_from(">i", frame, position)
    position += 4
    seen = size = 0
    for _ in range(topics):
        (name,) = struct.unpack_from(">h", frame, position)
        position += 2 + name
        (count,) = struct.unpack_from(">i", frame, position)
        position += 4
        for _ in range(count):
            index, error = struct.unpack_from(">ih", frame, position)
            if error:
                raise RuntimeError(f"fetch failed with {error}")
            position += 6 + 24
            (aborted,) = struct.unpack_from(">i", frame, position)
            position += 4 + 16 * max(aborted, 0) + 4
            (length,) = struct.unpack_from(">i", frame, position)
            position += 4
            end = position + max(length, 0)
            place = position
            while end - place >= 61:
                base, batch_length = struct.unpack_from(">qi", frame, place)
                if place + 12 + batch_length > end:
                    break
                (delta,) = struct.unpack_from(">i", frame, place + 23)
                positions[index] = base + delta + 1
                seen += delta + 1
                place += 12 + batch_length
                size += 12 + batch_length
            position = end
    return seen, size


def acknowledgement_seconds(
    address: str, topic: str, rounds: int, message_bytes: int = 100
) -> list[float]:
    """The time of each of `rounds` requests of one message, one after the other."""
    records, _ = batch(message_bytes, 1)
    frame = produce_frame(topic, 0, records)
    times: list[float] = []
    with Line(address) as line:
        for number in range(rounds + 200):
            before = time.perf_counter()
            line.sock.sendall(frame)
            answer = line.read()
            after = time.perf_counter()
            if number >= 200:
                times.append(after - before)
        check_produced(answer)
    return times


def end_to_end_seconds(address: str, topic: str, rounds: int) -> list[float]:
    """From sending a message to having it in a waiting consumer's hands."""
    records, _ = batch(100, 1)
    frame = produce_frame(topic, 0, records)
    times: list[float] = []
    with Line(address) as writer, Line(address) as reader:
        writer.sock.sendall(frame)
        offset = check_produced(writer.read()) + 1
        for number in range(rounds + 200):
            reader.sock.sendall(fetch_frame(topic, {0: offset}, 1 << 20, 10_000))
            # Let the fetch be parked before the message is sent.
            pause = time.perf_counter() + 0.0006
            while time.perf_counter() < pause:
                pass
            before = time.perf_counter()
            writer.sock.sendall(frame)
            answer = reader.read()
            after = time.perf_counter()
            positions = {0: offset}
            found, _ = _count(memoryview(b"\0\0\0\0" + answer), positions)
            if found != 1:
                raise RuntimeError(f"{found} messages came instead of one")
            offset = positions[0]
            writer.read()
            if number >= 200:
                times.append(after - before)
    return times
