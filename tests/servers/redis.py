"""A Redis server for tests: one a session, flushed for every test."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.processes import Server, on_free_ports


class RedisServer:
    """Started by the constructor; data in memory only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        on_free_ports(self._begin)

    def _begin(self, ports: list[int]) -> None:
        (self.port,) = ports
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        self._server = Server(
            [
                "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                "--appendonly", "yes", "--appendfsync", "no", "--save", "", "--dir", str(self._directory),
            ],
            self._directory / "redis.log",
        )  # fmt: skip
        self._server.wait_until(lambda: self._server.listens(self.port) and self._serves())

    def _serves(self) -> bool:
        """Whether its data is loaded; until then it answers, but not to questions."""
        with socket.create_connection(("127.0.0.1", self.port)) as asking:
            asking.sendall(b"PING\r\n")
            return asking.recv(100).startswith((b"+PONG", b"-NOAUTH"))

    def stop(self) -> None:
        self._server.stop()


def start_redis() -> Iterator[RedisServer]:
    """Yield a running server; skips where the machine has none."""
    if shutil.which("redis-server") is None:
        pytest.skip("needs redis-server (Debian: apt install redis-server)")
    pytest.importorskip("redis")
    with tempfile.TemporaryDirectory(prefix="tailrace-redis-") as directory:
        server = RedisServer(Path(directory))
        yield server
        server.stop()
