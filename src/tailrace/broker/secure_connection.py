"""A connection that speaks TLS, on the broker's own loop.

The handshake is made beside the loop (`handshakes`), so that a flood of them leaves it to others.
After it, frames come and go as on any connection, with three differences: what OpenSSL
holds decrypted is not seen by epoll and is drained here; a send that would block is repeated with
the same bytes; records of files are read into memory to be encrypted, unless the kernel has the keys.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections import deque
from typing import TYPE_CHECKING

from tailrace.broker.authentication.tls import Tls, kernel_encrypts
from tailrace.broker.connection import SCRATCH_BYTES, SENDFILE_BYTES, Connection, Range
from tailrace.broker.handshakes import Shaken, wanted
from tailrace.broker.loop import GONE, READ, WRITE

if TYPE_CHECKING:
    from tailrace.broker.endpoints import Endpoint
    from tailrace.broker.listener import Listener

RECORD_BYTES = 16 * 1024
# More than a record is on the wire: what OpenSSL may hold that no frame has got yet.
HELD_BYTES = 20 * 1024
CHUNK_BYTES = 128 * 1024
RECEIVE_BUDGET_BYTES = 1024 * 1024

Out = deque[bytes | bytearray | memoryview | Range]


class SecureConnection(Connection):
    """Owns a non-blocking SSLSocket."""

    __slots__ = (
        "_again_planned",
        "_kernel",
        "_read_wants_write",
        "_sending",
        "_tls",
        "established",
        "in_hand",
    )

    sock: ssl.SSLSocket

    def __init__(
        self,
        sock: ssl.SSLSocket,
        peer: str,
        number: int,
        listener: Listener,
        endpoint: Endpoint,
        tls: Tls,
    ) -> None:
        self._tls = tls
        self.established = False
        self.in_hand = False
        """Whether a step of the handshake is being done, so that the socket must stay open."""
        self._kernel = False
        self._sending: bytes | memoryview | None = None
        """What OpenSSL was given and did not take: it must be given the same again."""
        self._read_wants_write = False
        self._again_planned = False
        super().__init__(sock, peer, number, listener, endpoint)

    # the handshake

    def step(self) -> Shaken:
        """One step of it, on a thread of `Handshakes`."""
        try:
            self.sock.do_handshake()
            if self.endpoint.sasl:
                return Shaken()
            principal = self._tls.principal(self.sock)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            return Shaken(wait=wanted(error))
        except Exception as error:  # no TLS, or a name that cannot be read, which is nobody's
            return Shaken(error=error)
        return Shaken(principal=principal, nobody=principal is None)

    def shaken(self, found: Shaken) -> None:
        """What came of a step; back on the loop."""
        self._listener.heard(self)
        if found.wait:
            self._wait_for(found.wait)
            return
        if found.error is not None or found.nobody:
            self._listener.handshake_failed(self, found.error)
            self.close()
            return
        if found.principal is not None:
            self.principal = found.principal
            self._listener.known(self)
        self.established = True
        self._kernel = self._tls.kernel_offload and kernel_encrypts(self.sock)
        self._wait_for(READ)
        self._receive()

    def _wait_for(self, mask: int) -> None:
        if mask != self._mask:
            self._mask = mask
            self._listener.loop.change(self.sock.fileno(), mask)

    # events

    def _on_event(self, mask: int) -> None:
        if not self.established:
            if mask & (READ | WRITE):
                self._wait_for(0)  # the socket is another thread's until the step is done
                self._listener.handshakes.take(self)
            else:
                self.close()
            return
        if mask & READ or (mask & WRITE and self._read_wants_write):
            self._read_wants_write = False
            self._receive()
        elif mask & GONE:
            self.close()
            return
        if mask & WRITE and not self.closed:
            self.flush()

    def _receive(self) -> None:
        listener = self._listener
        self.used_at = listener.now
        budget = RECEIVE_BUDGET_BYTES
        dry = False
        while not dry and not self.closed and not (self.paused or self.starved or self._yielding):
            begin = self.filled_bytes
            own = self._view
            if own is not None and (begin or len(own) > SCRATCH_BYTES):
                view = own
            else:
                view = listener.scratch
            end, dry = self._fill(view, begin)
            if end < 0:
                self.close()
                return
            budget -= end - begin
            if end > begin:
                self._receiving = True
                try:
                    self._consume(view, end)
                finally:
                    self._receiving = False
            if budget <= 0 and not dry:
                self._plan_again()
                break
        if not self.closed:
            self.flush()
            if self._read_wants_write:
                self._watch()

    def _fill(self, view: memoryview, end: int) -> tuple[int, bool]:
        """Decrypt into `view` from `end` on; where it ends (-1: the peer is gone), and
        whether nothing more has come. What came before the peer went is given first."""
        room, begin = len(view), end
        cut = end > 0  # the rest of a frame has been waited for: all that came of it is taken
        try:
            while end < room:
                count = self.sock.recv_into(view[end:])
                if count == 0:
                    return (end, False) if end > begin else (-1, True)
                end += count
                if count < RECORD_BYTES and not cut and not self.sock.pending():
                    return end, True
        except ssl.SSLWantReadError:
            return end, True
        except ssl.SSLWantWriteError:
            self._read_wants_write = True
            return end, True
        except OSError:
            return (end, False) if end > begin else (-1, True)
        return end, False

    def _plan_again(self) -> None:
        if not self._again_planned:
            self._again_planned = True
            self._listener.loop.call_later(0, self._again)

    def _again(self) -> None:
        self._again_planned = False
        if not self.closed:
            self._receive()

    def resume(self) -> None:
        super().resume()
        if (
            not (self.closed or self.muted or self.paused or self.starved or self._yielding)
            and self.established
            and self.sock.pending()
        ):
            self._plan_again()

    def _wake_at(self, missing: int) -> None:
        """What is missing of a frame takes at least as many bytes encrypted, but for what OpenSSL
        has taken from the socket already."""
        super()._wake_at(0 if self._kernel else missing - HELD_BYTES)

    def _left_alone(self) -> bool:
        try:
            return not socket.socket.recv(self.sock, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    # sending

    def _send(self, out: Out, budget: int) -> int:
        if not self.established:
            return budget
        corked = False
        try:
            while out and budget > 0:
                head = out[0]
                if self._kernel and self._sending is None and type(head) is Range:
                    wanted = min(head.length, SENDFILE_BYTES)
                    sent = os.sendfile(
                        self.sock.fileno(), head.source.descriptor, head.position, wanted
                    )
                    if sent == 0:
                        raise OSError("the file ended before the range that was promised")
                    self._took(sent)
                    budget -= sent
                    continue
                if self._sending is None:
                    self._sending = _chunk(out)
                if not corked and len(self._sending) > RECORD_BYTES:
                    # OpenSSL writes record by record: the peer is not woken for each of them.
                    corked = True
                    self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
                sent = self.sock.send(self._sending)
                rest = memoryview(self._sending)[sent:]
                self._sending = rest if len(rest) else None
                budget -= sent
                self._drop(sent)
        except (ssl.SSLWantWriteError, BlockingIOError):
            pass  # the socket is full; the loop says when it is not
        except ssl.SSLWantReadError:
            pass  # the peer changes its keys: what it sends is read, then this goes on
        finally:
            if corked:
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        return budget

    def _drop(self, sent: int) -> None:
        """Take what was sent from the head of the queue."""
        out = self._out
        while sent:
            head = out[0]
            if isinstance(head, Range):
                taken = min(sent, head.length)
                self._took(taken)
            else:
                taken = min(sent, len(head))
                self.out_bytes -= taken
                if taken == len(head):
                    out.popleft()
                else:
                    out[0] = memoryview(head)[taken:]
            sent -= taken

    def _watch(self) -> None:
        mask = 0 if self.paused or self.starved or self._yielding else READ
        if self._out or self._read_wants_write:
            mask |= WRITE
        self._wait_for(mask)

    def close(self) -> None:
        if self.established and not self.closed and not self._out:
            try:
                self.sock.unwrap()  # says goodbye; the answer is not waited for
            except (OSError, ValueError):
                pass
        super().close()

    def _close_socket(self) -> None:
        if not self.in_hand:
            self.sock.close()


def _chunk(out: Out) -> bytes | memoryview:
    """Up to `CHUNK_BYTES` from the head of the queue in one piece."""
    head = out[0]
    if not isinstance(head, Range) and len(head) >= RECORD_BYTES:
        return memoryview(head)[:CHUNK_BYTES]
    pieces: list[bytes | bytearray | memoryview] = []
    room = CHUNK_BYTES
    for part in out:
        if isinstance(part, Range):
            piece = os.pread(part.source.descriptor, min(part.length, room), part.position)
            if not piece:
                raise OSError("the file ended before the range that was promised")
            pieces.append(piece)
            if len(piece) < part.length:
                break
        else:
            pieces.append(part if len(part) <= room else memoryview(part)[:room])
        room -= len(pieces[-1])
        if room <= 0:
            break
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], bytes) else b"".join(pieces)
