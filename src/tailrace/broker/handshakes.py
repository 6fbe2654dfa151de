"""TLS handshakes, beside the loop.

A step of a handshake is a signature and a key exchange: 0.2 ms with an elliptic curve, 4 ms with RSA
of 4096 bits, in which OpenSSL does not hold the interpreter. On the loop every other client
would wait for it. So a connection that has something to read is given away until its step is done;
the loop leaves its socket alone meanwhile, and closes it only when it is back, because its number
could else be another connection's while OpenSSL still writes to it.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tailrace.broker.loop import READ, WRITE, Loop
from tailrace.broker.principals import Principal

if TYPE_CHECKING:
    from tailrace.broker.secure_connection import SecureConnection

log = logging.getLogger(__name__)

MOST_THREADS = 4


@dataclass(frozen=True, slots=True)
class Shaken:
    """What came of a step: what to wait for, who it is, or why it failed. Without any of them
    the handshake is done, and who it is will be asked by SASL."""

    wait: int = 0
    principal: Principal | None = None
    error: Exception | None = None
    nobody: bool = False
    """Whether no rule makes a user of the certificate."""


class Handshakes:
    """Owns a thread, or a few where there are cores for them; started with the first handshake."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: SimpleQueue[SecureConnection | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._in_hand: set[SecureConnection] = set()

    def take(self, connection: SecureConnection) -> None:
        """Do the connection's next step; `shaken` is called on the loop with what came of it."""
        if not self._threads:
            count = max(1, min(MOST_THREADS, (os.cpu_count() or 1) // 2))
            for number in range(count):
                name = f"handshakes-{number}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        connection.in_hand = True
        self._in_hand.add(connection)
        self._waiting.put(connection)

    def _work(self) -> None:
        while (connection := self._waiting.get()) is not None:
            found = Shaken() if connection.closed else connection.step()
            self._loop.call_from_thread(lambda c=connection, f=found: self._back(c, f))  # type: ignore[misc]

    def _back(self, connection: SecureConnection, found: Shaken) -> None:
        self._in_hand.discard(connection)
        connection.in_hand = False
        if connection.closed:
            connection.sock.close()
        else:
            connection.shaken(found)

    def close(self) -> None:
        """End the threads; the connections are closed already."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        for connection in self._in_hand:
            connection.sock.close()
        self._in_hand.clear()


def wanted(error: ssl.SSLError) -> int:
    """What a handshake waits for that could not go on."""
    return WRITE if isinstance(error, ssl.SSLWantWriteError) else READ
