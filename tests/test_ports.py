"""A test's server gets a port that is its own, or another one."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from servers.processes import Server, free_port, on_free_ports

LISTENING = """
import socket, sys, time
with socket.socket() as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(sys.argv[1])))
    server.listen()
    time.sleep(600)
"""


def test_a_server_whose_port_somebody_else_took_starts_on_another(tmp_path: Path) -> None:
    with ExitStack() as kept:
        tried: list[int] = []

        def start(ports: list[int]) -> Server:
            tried.append(ports[1])
            if len(tried) == 1:  # between the choice and the server's bind
                thief = kept.enter_context(socket.create_server(("127.0.0.1", ports[1])))
                assert thief.getsockname()[1] == ports[1]
            command = [sys.executable, "-c", LISTENING, str(ports[1])]
            server = Server(command, tmp_path / f"{len(tried)}.log")
            kept.callback(server.stop)
            server.wait_until(lambda: server.listens(ports[1]))
            return server

        server = on_free_ports(start, 2)
        assert len(tried) == 2
        assert server.listens(tried[1])
        assert not server.listens(tried[0])


def test_a_server_that_fails_for_another_reason_is_not_tried_again() -> None:
    tried: list[list[int]] = []

    def start(ports: list[int]) -> None:
        tried.append(ports)
        raise RuntimeError("server ended at once: no such file")

    with pytest.raises(RuntimeError, match="no such file"):
        on_free_ports(start)
    assert len(tried) == 1
    assert free_port() not in tried[0]
