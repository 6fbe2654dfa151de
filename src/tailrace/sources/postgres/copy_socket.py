"""COPY data in large pieces: many messages at a time instead of one.

libpq hands out COPY data message by message, and the call costs more than decoding the
row. On a connection without encryption the socket is read here, once libpq has made the
connection and authenticated; it stays idle meanwhile and can be used again when a COPY is
over. Under TLS or GSS everything goes through libpq.

A message on the wire is its kind (one byte), its length (four bytes, counting
themselves), and its content; COPY data has the kind `d`.
"""

from __future__ import annotations

import math
import os
import select
import socket
import struct
from collections.abc import Callable, Iterator

import numpy
import psycopg
from psycopg import pq

_HEAD = struct.Struct(">BI")
_DATA = ord("d")
_STARTED = b"GHW"  # CopyIn, CopyOut, CopyBoth
_PASSING = b"NSA"  # notice, parameter, notification
RECEIVE_BYTES = 1 << 18
SMALLEST_BLOCK = 4096
GATHER_PIECES = 64
GATHER_SECONDS = 0.02


class CopyError(Exception):
    """The server refused or ended a COPY; `state` is its SQLSTATE."""

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state


class CopySocket:
    """COPY commands on a connection. One at a time; not for several threads."""

    def __init__(self, connection: pq.abc.PGconn) -> None:
        self._libpq = connection
        self._plain = not connection.ssl_in_use and not _uses_gssapi(connection)
        self._socket: socket.socket | None = None
        if self._plain:
            self._socket = socket.socket(fileno=os.dup(connection.socket))
            self._socket.setblocking(False)
        self._poll = select.poll()
        self._poll.register(connection.socket, select.POLLIN)
        # What is left of the last read; what came behind it, not joined before there are
        # `_needed` bytes: a row of many megabytes comes in hundreds of pieces.
        self._rest = b""
        self._more: list[bytes] = []
        self._more_bytes = 0
        self._needed = 5
        self._ended = False  # libpq has told the end of the COPY

    def wait(self, seconds: float | None) -> bool:
        """Whether data came within `seconds`; None waits as long as it takes."""
        return bool(self._poll.poll(None if seconds is None else max(0, math.ceil(seconds * 1000))))

    def start(self, command: bytes) -> None:
        """Send a command that begins a COPY; `CopyError` if the server refuses."""
        self._rest, self._needed = b"", 5
        self._ended = False
        if not self._plain:
            result = self._libpq.exec_(command)
            if result.status not in (pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH):
                state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
                raise CopyError(_decoded(result.error_message), state)
            return
        self._send_all(_message(b"Q", command + b"\0"))
        while True:
            found = self._next_message()
            if found is None:
                self.wait(None)
                self._receive()
            elif found[0] in _STARTED:
                return
            elif found[0] == ord("E"):
                error = _error(found[1])
                self._until_ready()
                raise error

    def send(self, content: bytes) -> None:
        """COPY data to the server."""
        if self._plain:
            self._send_all(_message(b"d", content))
        else:
            self._libpq.put_copy_data(content)
            self._libpq.flush()

    def read(
        self, most_bytes: int = RECEIVE_BYTES, *, enough: Callable[[bytes], bool] | None = None
    ) -> tuple[bytes, list[int], bool]:
        """What has arrived, without waiting: bytes, where the content of each message of
        COPY data begins in them, and whether the COPY is over.

        With `enough` it waits a few milliseconds for more, until that is true of what came:
        a socket between processes holds some hundred rows, too few to be worth decoding
        as columns.

        The content of a message ends 5 bytes before the next begins, that of the last
        at the end of the bytes.
        """
        if not self._plain:
            return self._read_libpq(most_bytes)
        self._receive(most_bytes)
        if self._more:
            return b"", [], False  # not even one message is whole
        if enough is not None:
            for _ in range(GATHER_PIECES):
                if len(self._rest) + self._more_bytes >= most_bytes or enough(self._rest):
                    break
                if not self.wait(GATHER_SECONDS):
                    break
                self._receive(most_bytes)
                if self._more:
                    return b"", [], False
        data, self._needed = self._rest, 5
        starts: list[int] = []
        begins = starts.append
        head = _HEAD.unpack_from
        position, size = 0, len(data)
        while position + 5 <= size:
            kind, length = head(data, position)
            following = position + length + 1
            if following > size:
                break
            if kind == _DATA:
                begins(position + 5)
            elif kind not in _PASSING:
                # What came before is whole; what ends the COPY is read after it.
                self._rest = data[position:]
                if starts:
                    return data[:position], starts, False
                self._end()
                return b"", [], True
            elif starts:
                # Let the messages before it stay without a gap.
                self._rest = data[following:]
                return data[:position], starts, False
            else:
                data, position, size = data[following:], 0, size - following
                continue
            position = following
        self._rest = data[position:]
        if size - position >= 5:
            self._needed = head(data, position)[1] + 1
        return data[:position], starts, False

    def _read_libpq(self, most_bytes: int) -> tuple[bytes, list[int], bool]:
        pieces: list[bytes] = []
        starts: list[int] = []
        position = 0
        consumed = False
        while position < most_bytes and not self._ended:
            count, content = self._libpq.get_copy_data(1)
            if count == 0:
                if consumed:
                    break
                self._libpq.consume_input()
                consumed = True
                continue
            if count < 0:
                self._ended = True
                break
            consumed = False
            piece = bytes(content)
            pieces += [_HEAD.pack(_DATA, len(piece) + 4), piece]
            starts.append(position + 5)
            position += 5 + len(piece)
        if self._ended and not pieces:
            self._end_libpq()
            return b"", [], True
        return b"".join(pieces), starts, False

    def contents(self, most_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The content of a COPY … TO STDOUT in text form, in pieces of whole lines, to its end."""
        while True:
            if self._plain and (lines := self._lines(most_bytes)):
                yield lines
                continue
            # What has arrived was received just now.
            data, starts, over = self.read(0 if self._plain else most_bytes)
            if starts:
                ends = [*starts[1:], len(data) + 5]
                yield b"".join(
                    [data[start : end - 5] for start, end in zip(starts, ends, strict=True)]
                )
            elif over:
                return
            else:
                self.wait(None)

    def close(self) -> None:
        """Leave the connection to libpq."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # --- the plain socket ------------------------------------------------------------------

    def _receive(self, most_bytes: int = RECEIVE_BYTES) -> None:
        """Add what has arrived to what is left of the last read."""
        assert self._socket is not None
        received = 0
        while received < most_bytes:
            try:
                piece = self._socket.recv(RECEIVE_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                raise psycopg.OperationalError(f"connection lost: {error}") from error
            if not piece:
                if received:
                    break  # said when what came before is read
                raise psycopg.OperationalError(self._last_words() or "the server went away")
            self._more.append(piece)
            received += len(piece)
        self._more_bytes += received
        if self._more and len(self._rest) + self._more_bytes >= self._needed:
            self._rest = b"".join((self._rest, *self._more))
            self._more, self._more_bytes = [], 0

    def _lines(self, most_bytes: int) -> bytes:
        """The lines that have arrived, without the heads of their messages; nothing where they
        must be looked at one by one.

        A line ends where the next message begins. What looks like that inside of a head makes
        a chain of lengths that does not fit, and is left to `read`.
        """
        self._receive(most_bytes)
        if self._more or len(self._rest) < SMALLEST_BLOCK:
            return b""
        raw = numpy.frombuffer(self._rest, numpy.uint8)
        behind = numpy.flatnonzero((raw[:-1] == 10) & (raw[1:] == _DATA)) + 1
        starts = numpy.concatenate(([0], behind))
        heads = starts[:-1]
        lengths = sum(raw[heads + 1 + i].astype(numpy.int64) << 24 - 8 * i for i in range(4))
        if len(heads) < 2 or raw[0] != _DATA or bool((heads + lengths + 1 != behind).any()):
            return b""
        end = int(behind[-1])
        kept = numpy.ones(end, numpy.bool_)
        for i in range(5):
            kept[heads + i] = False
        lines = raw[:end][kept].tobytes()
        self._rest, self._needed = self._rest[end:], 5
        return lines

    def _next_message(self) -> tuple[int, bytes] | None:
        """The next message of any kind, if it is there as a whole."""
        if len(self._rest) < 5:
            return None
        kind, length = _HEAD.unpack_from(self._rest)
        if len(self._rest) < length + 1:
            return None
        content = self._rest[5 : length + 1]
        self._rest = self._rest[length + 1 :]
        return kind, content

    def _until_ready(self) -> CopyError | None:
        """Read on until the server waits for the next command; the error it told."""
        error: CopyError | None = None
        while True:
            found = self._next_message()
            if found is None:
                self.wait(None)
                self._receive()
            elif found[0] == ord("E"):
                error = _error(found[1])
                if error.state[:2] in ("57", "08"):  # it shuts down, and says nothing more
                    return error
            elif found[0] == ord("Z"):
                return error

    def _end(self) -> None:
        """The COPY ends here: read to the end of the command, raise what it says."""
        error = self._until_ready()
        if error is not None:
            raise error

    def _last_words(self) -> str:
        """What an error among the bytes that are left says."""
        while (found := self._next_message()) is not None:
            if found[0] == ord("E"):
                return str(_error(found[1]))
        return ""

    def _send_all(self, data: bytes) -> None:
        assert self._socket is not None
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                select.select([], [self._socket], [])
            except OSError as error:
                raise psycopg.OperationalError(f"connection lost: {error}") from error

    def _end_libpq(self) -> None:
        failure: CopyError | None = None
        while (result := self._libpq.get_result()) is not None:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
                failure = CopyError(_decoded(result.error_message), state)
            elif result.status == pq.ExecStatus.COPY_BOTH:
                break
        if failure is not None:
            raise failure


def _uses_gssapi(connection: pq.abc.PGconn) -> bool:
    try:
        return bool(connection.used_gssapi)
    except psycopg.NotSupportedError:  # libpq before 16 cannot tell: leave it to it
        return True


def _message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack(">I", len(content) + 4) + content


def _decoded(message: bytes | None) -> str:
    return (message or b"").decode(errors="replace").strip()


def _error(content: bytes) -> CopyError:
    """An ErrorResponse: fields of one letter and text, each ended by a zero byte."""
    fields = {part[:1]: part[1:].decode(errors="replace") for part in content.split(b"\0") if part}
    message = f"{fields.get(b'S', 'ERROR')}:  {fields.get(b'M', '')}"
    if b"D" in fields:
        message += f"\nDETAIL:  {fields[b'D']}"
    return CopyError(message, fields.get(b"C", ""))
