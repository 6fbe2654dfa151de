"""A broker's door that lies.

It stands between clients and an embedded broker that tells its address as its own, so that every
client comes through it. What it does is its mode:

    lose    acknowledges some writes of plain producers and never passes them on
    double  passes some of them on twice
    swap    acknowledges some and passes them on behind the producer's next
    move    tells a wrong offset for some
    reveal  has every reader read uncommitted
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import decode_request_header, decode_response
from tailrace.wire.produce import ProduceResult, decode_produce_request, encode_produce_response

_size = struct.Struct(">i")
PRODUCER_ID_AT = 43  # in a batch


class LyingProxy:
    """`port` is for clients; `target` is set once the broker behind it runs. Of the writes that
    it may lie about every `lie_every`-th is concerned; `lies` counts them."""

    def __init__(self, mode: str, lie_every: int = 3) -> None:
        self.target: tuple[str, int] = ("127.0.0.1", 0)
        self.lies = 0
        self._mode = mode
        self._lie_every = lie_every
        self._writes = 0
        self._ends: dict[int, int] = {}
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(10)
        for each in self._open:
            each.close()

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self.target)
            except OSError:
                return
            self._open += (client, broker)
            self._start(self._pass_requests, client, broker)

    def _pass_requests(self, client: socket.socket, broker: socket.socket) -> None:
        """One request at a time: an answer of ours must not come before those to earlier ones."""
        late: bytes | None = None
        with contextlib.suppress(OSError):
            while (frame := _read_frame(client)) is not None:
                frame = self._reveal(frame) if self._mode == "reveal" else frame
                liable = self._mode != "reveal" and self._is_liable(frame)
                if liable and self._mode == "lose":
                    client.sendall(self._invented(frame))
                    continue
                if liable and self._mode == "swap" and late is None:
                    late = frame
                    client.sendall(self._invented(frame))
                    continue
                answer = b""
                for _ in range(2 if liable and self._mode == "double" else 1):
                    found = _ask(broker, frame)
                    if found is None:
                        return
                    answer = found
                self._learn(frame, answer)
                if late is not None and self._place(frame) == self._place(late):
                    told = _ask(broker, late)
                    if told is None:
                        return
                    self._learn(late, told)
                    late = None
                if liable and self._mode == "move":
                    client.sendall(self._invented(frame))
                    continue
                answer = _size.pack(len(answer)) + answer
                client.sendall(answer)
        for each in (client, broker):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _is_liable(self, frame: bytes) -> bool:
        """Whether this is a plain producer's write whose turn it is."""
        header = decode_request_header(memoryview(frame))
        if header.api_key != ApiKey.PRODUCE:
            return False
        body = decode_produce_request(header.api_version, memoryview(frame), header.body)
        records = bytes(body.partitions[0].records or b"")
        if struct.unpack_from(">q", records, PRODUCER_ID_AT)[0] >= 0:
            return False
        with self._lock:
            self._writes += 1
            if self._writes % self._lie_every or body.partitions[0].partition not in self._ends:
                return False
            self.lies += 1
            return True

    def _place(self, frame: bytes) -> tuple[str, int] | None:
        """Where a write goes."""
        header = decode_request_header(memoryview(frame))
        if header.api_key != ApiKey.PRODUCE:
            return None
        body = decode_produce_request(header.api_version, memoryview(frame), header.body)
        return body.partitions[0].topic, body.partitions[0].partition

    def _invented(self, frame: bytes) -> bytes:
        """The answer of a broker that wrote it, at the offset behind the last true one."""
        header = decode_request_header(memoryview(frame))
        body = decode_produce_request(header.api_version, memoryview(frame), header.body)
        (place,) = body.partitions
        result = ProduceResult(place.topic, place.partition, 0, self._ends[place.partition])
        return bytes(encode_produce_response(header.api_version, header.correlation_id, [result]))

    def _reveal(self, frame: bytes) -> bytes:
        header = decode_request_header(memoryview(frame))
        if header.api_key != ApiKey.FETCH:
            return frame
        # After wait, least and most bytes; the replica's id is before those up to version 14.
        at = header.body + (16 if header.api_version < 15 else 12)
        self.lies += 1
        return frame[:at] + b"\x00" + frame[at + 1 :]

    def _learn(self, frame: bytes, answer: bytes) -> None:
        """Where a partition ends, so that lies are plausible."""
        header = decode_request_header(memoryview(frame))
        if header.api_key != ApiKey.PRODUCE:
            return
        _, response = decode_response(APIS[ApiKey.PRODUCE], header.api_version, memoryview(answer))
        for topic in response.responses:  # type: ignore[attr-defined]
            for each in topic.partition_responses:
                if each.error_code == 0:
                    with self._lock:
                        self._ends[each.index] = max(
                            self._ends.get(each.index, 0), each.base_offset + 1
                        )


def _ask(broker: socket.socket, frame: bytes) -> bytes | None:
    broker.sendall(_size.pack(len(frame)) + frame)
    return _read_frame(broker)


def _read_frame(source: socket.socket) -> bytes | None:
    head = _read(source, 4)
    return None if head is None else _read(source, _size.unpack(head)[0])


def _read(source: socket.socket, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        piece = source.recv(size - len(found))
        if not piece:
            return None
        found += piece
    return bytes(found)
