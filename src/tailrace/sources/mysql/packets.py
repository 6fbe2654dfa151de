"""The packets of MySQL's protocol, read from a socket that the driver has logged in.

A packet is 3 bytes of length, 1 of sequence and its content; one of 2^24-1 bytes goes on in
the next. Nothing here allocates by what a peer announces: memory grows with what has come.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from typing import Any

from tailrace.sources.errors import ReplicationProtocolError, ServerUnreachableError

LONGEST = (1 << 24) - 1
# The largest packet a server can be set to send.
LARGEST_BYTES = (1 << 30) + (1 << 20)
READ_BYTES = 1 << 18


class Packets:
    """Whole packets of one connection, as many as have come."""

    def __init__(self, connection: Any, command: int, payload: bytes) -> None:
        # The driver has read every answer of the server: nothing is left in its own buffer.
        connection._execute_command(command, payload)
        self._connection = connection
        self._socket: socket.socket = connection._sock
        self._buffer = bytearray()
        self._long = bytearray()
        self._long_open = False
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Whether bytes have come; waits for them."""
        if getattr(self._socket, "pending", int)():
            return True
        return bool(self._poll.poll(max(seconds, 0) * 1000))

    def receive(self) -> list[bytes]:
        """Read what there is, at least something, and take the whole packets out of it."""
        try:
            data = self._socket.recv(READ_BYTES)
        except (TimeoutError, BlockingIOError):
            return []
        except OSError as error:
            raise _lost(str(error)) from error
        if not data:
            raise _lost("the server closed the connection")
        if self._buffer:
            self._buffer += data
            source: bytes | bytearray = self._buffer
        else:
            source = data
        found: list[bytes] = []
        at, end = 0, len(source)
        while end - at >= 4:
            length = source[at] | source[at + 1] << 8 | source[at + 2] << 16
            following = at + 4 + length
            if following > end:
                break
            content = bytes(source[at + 4 : following])
            at = following
            if length == LONGEST or self._long_open:
                self._long += content
                self._long_open = length == LONGEST
                if len(self._long) > LARGEST_BYTES:
                    raise ReplicationProtocolError(
                        "the server sends a packet without end",
                        detail=f"More than {LARGEST_BYTES:,} bytes have come.",
                    )
                if not self._long_open:
                    found.append(bytes(self._long))
                    self._long = bytearray()
                continue
            found.append(content)
        if source is self._buffer:
            del self._buffer[:at]
        else:
            self._buffer += source[at:]
        return found

    def all(self, patience: float) -> Iterator[bytes]:
        """Packet after packet, for an answer that has an end."""
        while True:
            if not self.wait(patience):
                raise _lost(f"no word from the server for {patience:.0f} s")
            yield from self.receive()


def _lost(reason: str) -> ServerUnreachableError:
    return ServerUnreachableError(
        "the connection to the database was lost",
        detail=reason,
        hint="capture connects again and goes on where the log ends",
    )


def length_of(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer and where it ends."""
    first = data[at]
    if first < 251:
        return first, at + 1
    if first == 252:
        return int.from_bytes(data[at + 1 : at + 3], "little"), at + 3
    if first == 253:
        return int.from_bytes(data[at + 1 : at + 4], "little"), at + 4
    if first == 254:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    raise ReplicationProtocolError("a length that is none", detail=f"It begins with {first}.")


def read_error(packet: bytes) -> tuple[int, str]:
    """Number and text of an error packet."""
    number = int.from_bytes(packet[1:3], "little")
    text = packet[3:]
    if text[:1] == b"#":
        text = text[6:]
    return number, text.decode("utf-8", "replace")
