"""Thousands who connect and never log in: they go in time, cost little, and nobody else notices."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from servers.certificates import Authority
from servers.processes import free_port
from tailrace.broker.embedded import BrokerProcess
from tailrace.testing.wire_client import WireClient, batch_of

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

CROWD = 5_000
HALF_A_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
KILOBYTES_EACH = 64


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    """As many open files as a crowd needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CROWD + 1_000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("said", [b"", HALF_A_HELLO, b"\0\0\x01"], ids=["silent", "hello", "frame"])
def test_a_crowd_that_never_logs_in(tmp_path: Path, listener: str, said: bytes) -> None:
    authority = Authority()
    issued = authority.issue("broker")
    (tmp_path / "broker.pem").write_text(issued.key + issued.certificate)
    settings = {
        "listener.security.protocol.map": "OPEN:PLAINTEXT",
        "ssl.keystore.location": str(tmp_path / "broker.pem"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "tailrace.login.timeout.ms": "3000",
    }
    with contextlib.ExitStack() as held:
        held.enter_context(many_files())
        opened = free_port()
        # The address that is told is the first listener's.
        listen = f"{listener}://127.0.0.1:0,OPEN://127.0.0.1:{opened}"
        broker = BrokerProcess(tmp_path / "log", listen=listen, settings=settings)
        held.callback(broker.stop)
        host, _, port = broker.address.rpartition(":")
        if listener == "SASL_SSL":  # what TLS needs at all is loaded with the first handshake
            context = ssl.create_default_context(cadata=authority.pem)
            with socket.create_connection((host, int(port))) as plain:
                context.wrap_socket(plain, server_hostname="localhost").close()
        known = held.enter_context(WireClient(f"127.0.0.1:{opened}"))
        known.create("t")
        process = psutil.Process(broker.pid)
        before = process.memory_info().rss
        crowd = select.poll()
        sockets = {}
        for _ in range(CROWD):
            one = held.enter_context(socket.create_connection((host, int(port))))
            if said:
                one.sendall(said)
            crowd.register(one, select.POLLIN)
            sockets[one.fileno()] = one
        began = time.monotonic()
        for number in range(200):
            assert known.produce("t", batch_of(b"%d" % number)).error_code == 0
        print(f"acks beside {CROWD}: {(time.monotonic() - began) / 200 * 1000:.2f} ms each")
        grown = process.memory_info().rss - before
        print(f"memory: {grown / CROWD / 1024:.1f} KB each")
        assert grown < CROWD * KILOBYTES_EACH * 1024
        until = time.monotonic() + 300
        while sockets:
            assert time.monotonic() < until, f"{len(sockets)} are still there"
            for descriptor, _ in crowd.poll(1000):
                with contextlib.suppress(OSError):
                    assert sockets[descriptor].recv(1) == b""
                crowd.unregister(descriptor)
                sockets.pop(descriptor).close()
        assert known.produce("t", batch_of(b"after")).error_code == 0
