"""Frames in, answers out in order, on real sockets and a real loop."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.broker.connection import Connection, Slot
from tailrace.broker.endpoints import Endpoint
from tailrace.broker.listener import Acceptor, Listener
from tailrace.broker.loop import Loop
from tailrace.clock import SYSTEM


class Server:
    """A listener whose dispatch is the test's own."""

    def __init__(
        self, dispatch: Callable[[Connection, memoryview, int, int], None], **limits: int
    ) -> None:
        self.loop = Loop(SYSTEM)
        given = {
            "frame_limit_bytes": 8 << 20,
            "receive_budget_bytes": 64 << 20,
            "idle_seconds": 600,
            "connection_limit": 100,
            "connections_per_host": 100,
            **limits,
        }
        acceptors = [Acceptor(Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0))]
        self.listener = Listener(self.loop, SYSTEM, acceptors, dispatch, **given)
        self._thread = threading.Thread(target=self.loop.run, daemon=True)
        self._thread.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.listener.port), timeout=20)

    def call(self, callback: Callable[[], None]) -> None:
        done = threading.Event()
        self.loop.call_from_thread(lambda: (callback(), done.set()))  # type: ignore[func-returns-value]
        assert done.wait(20)

    def close(self) -> None:
        self.loop.call_from_thread(self.loop.stop)
        self._thread.join()
        self.listener.close()
        self.loop.close()


def congestion_control(sock: socket.socket) -> bytes:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(
        dispatch: Callable[[Connection, memoryview, int, int], None], **limits: int
    ) -> Server:
        servers.append(Server(dispatch, **limits))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def echo(connection: Connection, view: memoryview, start: int, end: int) -> None:
    connection.send_now(struct.pack(">i", end - start) + bytes(view[start:end]))


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def read_frame(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    return read_exactly(sock, size)


def read_exactly(sock: socket.socket, count: int) -> bytes:
    out = bytearray()
    while len(out) < count:
        chunk = sock.recv(count - len(out))
        assert chunk, "the connection was closed"
        out += chunk
    return bytes(out)


def assert_closed(sock: socket.socket) -> None:
    try:
        assert sock.recv(1) == b""
    except ConnectionResetError:
        pass


def test_frames_of_any_size_come_back_whole(serve: Callable[..., Server]) -> None:
    server = serve(echo)
    sizes = [8, 9, 4095, 65_535, 65_536, 262_144, 262_145, 1_000_000, 8, 3_000_000, 20]
    payloads = [os.urandom(size) for size in sizes]
    with server.connect() as sock:
        sender = threading.Thread(target=sock.sendall, args=(b"".join(map(frame, payloads)),))
        sender.start()
        for payload in payloads:
            assert read_frame(sock) == payload
        sender.join()


@pytest.mark.parametrize("seed", range(8))
def test_frames_cut_at_random_places_come_back_whole(
    serve: Callable[..., Server], seed: int
) -> None:
    server = serve(echo)
    chance = random.Random(seed)
    payloads = [chance.randbytes(chance.choice([8, 50, 5000, 70_000])) for _ in range(60)]
    stream = b"".join(map(frame, payloads))
    with server.connect() as sock:

        def send() -> None:
            position = 0
            while position < len(stream):
                size = chance.choice([1, 3, 4, 5, 100, 10_000, 100_000])
                sock.sendall(stream[position : position + size])
                position += size

        sender = threading.Thread(target=send)
        sender.start()
        for payload in payloads:
            assert read_frame(sock) == payload
        sender.join()


@pytest.mark.parametrize("seed", range(5))
def test_answers_leave_in_the_order_of_requests(serve: Callable[..., Server], seed: int) -> None:
    chance = random.Random(seed)
    waiting: list[tuple[Connection, Slot, bytes]] = []

    def park(connection: Connection, view: memoryview, start: int, end: int) -> None:
        payload = bytes(view[start:end])
        if chance.random() < 0.5:
            waiting.append((connection, connection.open_slot(), payload))
        else:
            connection.send_now(frame(payload))

    server = serve(park)
    payloads = [struct.pack(">q", number) for number in range(200)]
    with server.connect() as sock:
        sock.sendall(b"".join(map(frame, payloads)))
        received: list[bytes] = []
        sock.settimeout(0.05)
        while len(received) < len(payloads):

            def release() -> None:
                chance.shuffle(waiting)
                for _ in range(min(len(waiting), 7)):
                    connection, slot, payload = waiting.pop()
                    connection.fill(slot, frame(payload))

            server.call(release)
            try:
                sock.settimeout(0.05)
                head = sock.recv(1)
                sock.settimeout(20)
                (size,) = struct.unpack(">i", head + read_exactly(sock, 3))
                received.append(read_exactly(sock, size))
            except TimeoutError:
                continue
    assert received == payloads


class WholeFile:
    """A file range that counts its releases."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        self.position = 0
        self.length = path.stat().st_size
        self.released = 0

    def release(self) -> None:
        self.released += 1
        os.close(self.descriptor)


def test_a_file_range_is_sent_after_its_header_and_released_once(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    content = os.urandom(9_000_001)
    (tmp_path / "segment").write_bytes(content)
    ranges: list[WholeFile] = []

    def send(connection: Connection, view: memoryview, start: int, end: int) -> None:
        ranges.append(WholeFile(tmp_path / "segment"))
        slot = connection.open_slot()
        slot.parts = [struct.pack(">i", len(content) + 3), ranges[-1], b"end"]
        connection.fill_parts(slot)

    server = serve(send)
    with server.connect() as sock:
        sock.sendall(frame(b"12345678") * 2)
        for _ in range(2):
            assert read_frame(sock) == content + b"end"
    assert [one.released for one in ranges] == [1, 1]


def test_a_file_range_is_released_when_the_reader_goes_away(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    (tmp_path / "segment").write_bytes(bytes(60_000_000))
    ranges: list[WholeFile] = []

    def send(connection: Connection, view: memoryview, start: int, end: int) -> None:
        ranges.append(WholeFile(tmp_path / "segment"))
        slot = connection.open_slot()
        slot.parts = [ranges[-1]]
        connection.fill_parts(slot)

    server = serve(send)
    with server.connect() as sock:
        sock.sendall(frame(b"12345678"))
        read_exactly(sock, 10_000)
    other = server.connect()
    other.close()
    for _ in range(200):
        if ranges[0].released:
            break
        server.call(lambda: None)
        SYSTEM.sleep(0.02)
    assert ranges[0].released == 1


@pytest.mark.parametrize("size", [-1, 0, 7, 8 * 2**20 + 1, 2**31 - 1])
def test_a_length_outside_the_limits_closes_the_connection(
    serve: Callable[..., Server], size: int
) -> None:
    server = serve(echo)
    with server.connect() as sock, server.connect() as neighbour:
        sock.sendall(struct.pack(">i", size) + b"GET / HTTP/1.1\r\n")
        assert_closed(sock)
        neighbour.sendall(frame(b"still here"))
        assert read_frame(neighbour) == b"still here"


def test_a_claimed_length_alone_allocates_little(serve: Callable[..., Server]) -> None:
    server = serve(echo)
    socks = [server.connect() for _ in range(20)]
    for sock in socks:
        sock.sendall(struct.pack(">i", 8 << 20) + b"x")
    SYSTEM.sleep(0.1)
    held: list[int] = []
    server.call(lambda: held.append(server.listener.reserved_bytes))
    assert held[0] <= 20 * 64 * 1024
    for sock in socks:
        sock.close()


def test_large_frames_wait_for_memory_and_all_arrive(serve: Callable[..., Server]) -> None:
    server = serve(echo, receive_budget_bytes=3 << 20)
    payload = os.urandom(1 << 20)
    results: list[bool] = []

    def client() -> None:
        with server.connect() as sock:
            sender = threading.Thread(target=sock.sendall, args=(frame(payload),))
            sender.start()
            results.append(read_frame(sock) == payload)
            sender.join()

    clients = [threading.Thread(target=client) for _ in range(12)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert results == [True] * 12


def test_a_reader_that_does_not_read_is_not_read_from(serve: Callable[..., Server]) -> None:
    received = 0

    def answer_much(connection: Connection, view: memoryview, start: int, end: int) -> None:
        nonlocal received
        received += 1
        connection.send_now(frame(bytes(1_000_000)))

    server = serve(answer_much)
    with server.connect() as sock, server.connect() as neighbour:
        sock.setblocking(False)
        sent = 0
        try:
            for _ in range(100_000):
                sent += sock.send(frame(b"12345678") * 100)
        except BlockingIOError:
            pass
        neighbour.sendall(frame(b"12345678"))
        assert len(read_frame(neighbour)) == 1_000_000
        # 4 MB wait to be sent, and what the kernel's buffers took: far from all requests.
        assert received < 100 < sent // 12


def test_a_flood_lets_the_others_have_their_turn(serve: Callable[..., Server]) -> None:
    order: list[bytes] = []

    def note(connection: Connection, view: memoryview, start: int, end: int) -> None:
        order.append(bytes(view[start:end]))
        echo(connection, view, start, end)

    server = serve(note)
    with server.connect() as flood, server.connect() as neighbour:
        for sock in (flood, neighbour):
            sock.sendall(frame(b"hello!!!"))
            assert read_frame(sock) == b"hello!!!"
        held = threading.Event()
        server.loop.call_from_thread(lambda: (held.wait(20), None)[1])
        flood.sendall(frame(b"12345678") * 5000)
        neighbour.sendall(frame(b"my turn?"))
        held.set()
        assert read_frame(neighbour) == b"my turn?"
        for _ in range(5000):
            assert read_frame(flood) == b"12345678"
    assert order.index(b"my turn?") < 1000


def test_connections_past_the_limit_wait_until_one_goes(serve: Callable[..., Server]) -> None:
    server = serve(echo, connection_limit=3)
    good = [server.connect() for _ in range(3)]
    for sock in good:
        sock.sendall(frame(b"12345678"))
        assert read_frame(sock) == b"12345678"
    with server.connect() as extra, server.connect() as other:
        for each in (extra, other):
            each.sendall(frame(b"welcome!"))
        server.call(lambda: None)
        assert len(server.listener.connections) == 3
        for sock in good:  # those that are there are served meanwhile
            sock.sendall(frame(b"12345678"))
            assert read_frame(sock) == b"12345678"
        good.pop().close()
        assert read_frame(extra) == b"welcome!"
        good.pop().close()
        assert read_frame(other) == b"welcome!"
    for sock in good:
        sock.close()


def test_what_is_sent_to_this_machine_is_not_paced(serve: Callable[..., Server]) -> None:
    found: list[bytes] = []

    def dispatch(connection: Connection, view: memoryview, start: int, end: int) -> None:
        found.append(congestion_control(connection.sock))
        connection.send_now(struct.pack(">i", 0))

    with serve(dispatch).connect() as sock:
        sock.sendall(struct.pack(">i", 8) + bytes(8))
        assert sock.recv(4) == bytes(4)
    assert found == [b"reno"]
