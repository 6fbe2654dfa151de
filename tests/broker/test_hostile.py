"""Bytes of an enemy: the broker stays up, small and at everybody else's service."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tailrace.broker.embedded import BrokerProcess
from tailrace.testing.hostile import absurd_frame, damage
from tailrace.testing.wire_client import WireClient, batch_of, values_of
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import encode_request
from tailrace.wire.messages import metadata
from tailrace.wire.messages.api_versions import ApiVersionsRequest

MEMORY_LIMIT_BYTES = 160 * 1024 * 1024


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[BrokerProcess]:
    # Internal topics with few partitions: random group requests would else open many files.
    with BrokerProcess(tmp_path / "log", settings={"group.min.session.timeout.ms": "1"}) as broker:
        with WireClient(broker.address) as client:
            client.create("safe")
            client.produce("safe", batch_of(b"precious"))
        yield broker


def assert_well(victim: BrokerProcess) -> None:
    """It serves, keeps what it had, and has not grown."""
    assert victim.process.poll() is None, victim.words()
    with WireClient(victim.address) as client:
        client.create("t" + str(random.getrandbits(60)))
        assert values_of(client.fetch("safe", 0).records) == [b"precious"]
    memory = psutil.Process(victim.pid).memory_info().rss
    assert memory < MEMORY_LIMIT_BYTES, f"{memory / 2**20:.0f} MB"


def offered(victim: BrokerProcess) -> list[tuple[int, int]]:
    with WireClient(victim.address) as client:
        answer = client.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    return [
        (one.api_key, version)
        for one in answer.api_keys
        for version in range(one.min_version, one.max_version + 1)
    ]


def attack(victim: BrokerProcess, rounds: int, seed: int, *, broken: bool) -> None:
    chance = random.Random(seed)
    for key, version in offered(victim):
        sock = _connect(victim)
        for _ in range(rounds):
            frame = absurd_frame(key, version, chance)
            if broken:
                frame = damage(frame, chance)
            try:
                sock.sendall(frame)
                sock.setblocking(False)
                while sock.recv(65536):
                    pass
            except BlockingIOError:
                sock.setblocking(True)
                continue
            except OSError:
                pass
            sock.close()
            sock = _connect(victim)
        sock.close()


def _connect(victim: BrokerProcess) -> socket.socket:
    host, _, port = victim.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


@pytest.mark.parametrize("broken", [False, True])
def test_every_request_and_version_survives_absurd_and_broken_frames(
    victim: BrokerProcess, broken: bool
) -> None:
    attack(victim, 6, 1, broken=broken)
    assert_well(victim)
    assert "request failed" not in victim.words()
    assert victim.stop() == 0


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("broken", [False, True])
def test_many_absurd_and_broken_frames(victim: BrokerProcess, seed: int, broken: bool) -> None:
    attack(victim, 60, seed, broken=broken)
    assert_well(victim)
    assert "request failed" not in victim.words()
    assert victim.stop() == 0


def test_random_bytes_close_only_their_own_connection(victim: BrokerProcess) -> None:
    chance = random.Random(7)
    with WireClient(victim.address) as neighbour:
        for _ in range(200):
            with _connect(victim) as sock:
                try:
                    sock.sendall(chance.randbytes(chance.randint(1, 3000)))
                except OSError:
                    continue
            assert neighbour.fetch("safe", 0).error_code == 0
    assert_well(victim)


def test_giant_claims_cost_nothing(victim: BrokerProcess) -> None:
    before = psutil.Process(victim.pid).memory_info().rss
    socks = [_connect(victim) for _ in range(200)]
    for sock in socks:
        sock.sendall(struct.pack(">i", 100 << 20) + bytes(10))
    assert_well(victim)
    assert psutil.Process(victim.pid).memory_info().rss - before < 30 << 20
    for sock in socks:
        sock.close()


def test_senders_of_endless_frames_share_a_budget(tmp_path: Path) -> None:
    with BrokerProcess(
        tmp_path / "log", settings={"queued.max.request.bytes": str(40 << 20)}
    ) as victim:
        with WireClient(victim.address) as client:
            client.create("safe")
            client.produce("safe", batch_of(b"precious"))
        socks = [_connect(victim) for _ in range(20)]

        def pour(sock: socket.socket) -> None:
            sock.settimeout(1)
            try:
                sock.sendall(struct.pack(">i", 90 << 20) + bytes(20 << 20))
            except OSError:
                pass

        pourers = [threading.Thread(target=pour, args=(sock,)) for sock in socks]
        for one in pourers:
            one.start()
        for one in pourers:
            one.join()
        assert_well(victim)
        for sock in socks:
            sock.close()


def test_one_who_asks_much_and_reads_nothing_costs_little(victim: BrokerProcess) -> None:
    with WireClient(victim.address) as client:
        client.create("wide", 1000)
    request = metadata.MetadataRequest(topics=None)
    frame = encode_request(APIS[ApiKey.METADATA], 9, 1, request)
    before = psutil.Process(victim.pid).memory_info().rss
    with _connect(victim) as sock:
        sock.setblocking(False)
        try:
            for _ in range(10_000):
                sock.send(bytes(frame) * 1000)
        except BlockingIOError:
            pass
        assert_well(victim)
        assert psutil.Process(victim.pid).memory_info().rss - before < 40 << 20


def test_two_thousand_connections_are_served(victim: BrokerProcess) -> None:
    socks: list[WireClient] = []
    try:
        for _ in range(2000):
            client = WireClient(victim.address)
            socks.append(client)
    except OSError:
        pytest.skip("this machine does not allow so many open files")
    try:
        for client in socks[::50]:
            assert values_of(client.fetch("safe", 0).records) == [b"precious"]
        assert_well(victim)
    finally:
        for client in socks:
            client.close()
