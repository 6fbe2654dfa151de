"""One client's socket: frames in, answers out in order.

An idle connection holds no buffer. Bytes arrive in a buffer shared by the whole
server; only a frame that is cut by the end of a read gets a buffer of its own, which
the connection keeps while it goes on sending large frames. Nothing is allocated on
the word of a length field alone: `STEP_BYTES` for anyone, beyond that from the server's
budget and only as more arrives.

Answers wait in slots, one per request, and leave in the order of the requests. File
ranges leave by `sendfile`, with the header before them held back by MSG_MORE.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from tailrace.broker.loop import GONE, READ, WRITE
from tailrace.broker.principals import ANONYMOUS

if TYPE_CHECKING:
    from tailrace.broker.authentication.log_in import LogIn
    from tailrace.broker.authorization.authorizer import Decisions
    from tailrace.broker.endpoints import Endpoint
    from tailrace.broker.inspection import Look
    from tailrace.broker.listener import Listener

log = logging.getLogger(__name__)

SCRATCH_BYTES = 64 * 1024
# After so many requests it is the turn of the others: a few milliseconds at most.
REQUESTS_PER_TURN = 256
STEP_BYTES = 4 * 1024
FIRST_BYTES = 64 * 1024
LOW_WATER_BYTES = 256 * 1024
WRITE_QUEUE_LIMIT_BYTES = 4 * 1024 * 1024
PENDING_LIMIT = 512
SEND_BUDGET_BYTES = 512 * 1024
# What a queued file range counts for: it holds a descriptor and no memory worth naming.
RANGE_BYTES = 4096
SENDFILE_BYTES = 512 * 1024
SEND_VECTORS = 64

_LENGTH = Struct(">i")
_API_KEY = Struct(">h")


class FileRange(Protocol):
    """Bytes of an open file that wait to be sent; holds the file open until released."""

    @property
    def descriptor(self) -> int: ...

    @property
    def position(self) -> int: ...

    @property
    def length(self) -> int: ...

    def release(self) -> None: ...


class Hold(Exception):
    """Raised by a handler: keep this request as it is and dispatch it again after `unmute`."""


class Slot:
    """The place of one answer in the order of a connection's answers."""

    __slots__ = ("filled", "parts")

    def __init__(self) -> None:
        self.filled = False
        self.parts: list[bytes | bytearray | memoryview | FileRange] = []


class Range:
    """A file range and how much of it is left."""

    __slots__ = ("length", "position", "source")

    def __init__(self, source: FileRange) -> None:
        self.source = source
        self.position = source.position
        self.length = source.length


class Connection:
    """Owns a non-blocking socket; every method runs on the loop thread."""

    __slots__ = (
        "_buffer", "_flush_planned", "_listener", "_low_water", "_mask", "_out", "_receiving", "_slots",
        "_view", "_yielding", "challenge", "client_id", "client_software", "closed", "closing", "decisions", "dispatch",
        "endpoint", "filled_bytes", "frame_limit_bytes", "held_until", "host", "least_frame_bytes", "listener",
        "log_in", "login_until", "look", "monotonic", "muted", "number", "out_bytes", "paused", "peer",
        "principal", "project", "sock", "starved", "used_at",
    )  # fmt: skip

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        number: int,
        listener: Listener,
        endpoint: Endpoint,
    ) -> None:
        self.sock = sock
        self.peer = peer
        self.host = peer
        """The peer's address, as text."""
        self.endpoint = endpoint
        self.listener = endpoint.name
        self.log_in: LogIn | None = None
        """The log-in over SASL that this listener asks for."""
        self.login_until = 0.0
        """When it must have identified itself; 0 once it has."""
        self.dispatch = listener.dispatch
        self.frame_limit_bytes = listener.frame_limit_bytes
        self.least_frame_bytes = 8
        self.number = number
        self.closed = False
        self.closing = False
        self.paused = False
        self.starved = False
        self.filled_bytes = 0
        self.out_bytes = 0
        self.used_at = listener.now
        self.monotonic = listener.monotonic
        self.client_software = ("unknown", "unknown")
        self.principal = ANONYMOUS
        self.decisions: Decisions | None = None
        """What the authorizer remembers of this connection."""
        self.project = False
        """Whether the peer has shown that it belongs to the project (`handlers.identity`)."""
        self.challenge = b""
        self.look: Look | None = None
        """What is found in the batches of the request that is held here."""
        self.client_id = ""  # of the request being served; kept only while quotas are set
        self.muted = False
        self.held_until = 0.0
        """How long a request that is not served yet may wait here; 0 if none does."""
        self._listener = listener
        self._buffer: bytearray | None = None
        self._view: memoryview | None = None
        self._slots: deque[Slot] = deque()
        self._out: deque[bytes | bytearray | memoryview | Range] = deque()
        self._receiving = False
        self._flush_planned = False
        self._yielding = False
        self._low_water = 1
        self._mask = READ
        listener.loop.watch(sock.fileno(), READ, self._on_event)

    # answers

    def open_slot(self) -> Slot:
        """Take the next place in the order of answers."""
        slot = Slot()
        self._slots.append(slot)
        if len(self._slots) >= PENDING_LIMIT:
            self.paused = True
        return slot

    def fill(self, slot: Slot, payload: bytes | bytearray) -> None:
        """Give a slot its answer (empty: nothing is sent for it)."""
        if payload:
            slot.parts.append(payload)
        self.fill_parts(slot)

    def fill_parts(self, slot: Slot) -> None:
        """The slot's `parts` are complete: send them once everything before them is sent."""
        slot.filled = True
        slots = self._slots
        if self.closed:
            release_parts(slot.parts)
            return
        if slots and slots[0] is slot:
            while slots and slots[0].filled:
                for part in slots.popleft().parts:
                    self._queue(part)
            if not self._receiving and not self._flush_planned:
                self._flush_planned = True
                self._listener.loop.call_soon(self._flush_later)

    def send_now(self, payload: bytes | bytearray) -> None:
        """Answer the request being dispatched without a slot, if nothing waits before it."""
        if self._slots:
            self.fill(self.open_slot(), payload)
        else:
            self._out.append(payload)
            self.out_bytes += len(payload)
            if self.out_bytes > WRITE_QUEUE_LIMIT_BYTES:
                self.paused = True

    def _queue(self, part: bytes | bytearray | memoryview | FileRange) -> None:
        if isinstance(part, (bytes, bytearray, memoryview)):
            self._out.append(part)
            self.out_bytes += len(part)
        else:
            self._out.append(Range(part))
            self.out_bytes += RANGE_BYTES
        if self.out_bytes > WRITE_QUEUE_LIMIT_BYTES:
            self.paused = True

    # events

    def _on_event(self, mask: int) -> None:
        if mask & READ:
            self._receive()
        elif mask & GONE:
            self.close()
            return
        if mask & WRITE and not self.closed:
            self.flush()

    def _receive(self) -> None:
        listener = self._listener
        self.used_at = listener.now
        filled = self.filled_bytes
        try:
            if filled:
                assert self._view is not None
                view = self._view
                count = self.sock.recv_into(view[filled:])
            elif self._view is not None and len(self._view) > SCRATCH_BYTES:
                # A sender of large frames: receive where the frame will be needed.
                view = self._view
                count = self.sock.recv_into(view)
            else:
                view = listener.scratch
                count = self.sock.recv_into(view)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        if count == 0:
            self.close()
            return
        self._receiving = True
        try:
            self._consume(view, filled + count)
        finally:
            self._receiving = False
        if not self.closed:
            self.flush()

    def _consume(self, view: memoryview, end: int) -> None:
        """Dispatch every whole frame of `view[:end]` and keep what is left."""
        listener = self._listener
        usual = listener.other_limit_bytes
        position = 0
        size = 0
        turns = REQUESTS_PER_TURN
        while end - position >= 4 and turns and not self.paused:
            (size,) = _LENGTH.unpack_from(view, position)
            if not self.least_frame_bytes <= size <= self.frame_limit_bytes:
                listener.refused_frame(self, size)
                self.close()
                return
            if size > usual and end - position >= 6:
                (key,) = _API_KEY.unpack_from(view, position + 4)
                if listener.too_large(size, key):
                    listener.refused_frame(self, size, key)
                    self.close()
                    return
            frame_end = position + 4 + size
            if frame_end > end:
                break
            try:
                self.dispatch(self, view, position + 4, frame_end)
            except Hold:
                self.muted = self.paused = True
                listener.muted_total += 1
                break
            if self.closed:
                return
            position = frame_end
            size = 0
            turns -= 1
        left = end - position
        if left == 0:
            self.filled_bytes = 0
            if self._low_water != 1:
                self._wake_at(0)
            return
        if not turns:
            self._yielding = True
            listener.loop.call_later(0, self.resume)
        self._keep(view, position, left, (4 + size) if size else left)

    def _keep(self, view: memoryview, position: int, left: int, wanted: int) -> None:
        """Move a cut frame to the front of this connection's own buffer, with room for the rest."""
        have = len(self._buffer) if self._buffer is not None else 0
        size = max(wanted, left, STEP_BYTES)
        for most in (FIRST_BYTES, STEP_BYTES):
            if size > most and left < most // 2:
                size = most  # a length alone is worth no more than this
        if size > have and not self._listener.reserve(self, size - have, size <= STEP_BYTES):
            self.starved = True
            size = left
        if size > have:
            if self.starved:
                self._listener.reserve(self, size - have, True)
            grown = bytearray(size)
            grown[:left] = view[position : position + left]
            self._buffer, self._view = grown, memoryview(grown)
        elif position or view is not self._view:
            own = self._view
            assert own is not None
            own[:left] = view[position : position + left]  # memoryviews may overlap
        self.filled_bytes = left
        self._wake_at(wanted - left)
        self._watch()

    def _wake_at(self, missing: int) -> None:
        """Be woken once a good part of a large frame has arrived, not for every packet."""
        low_water = min(missing, LOW_WATER_BYTES) if missing >= SCRATCH_BYTES else 1
        if low_water != self._low_water:
            self._low_water = low_water
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)

    def resume(self) -> None:
        """Go on reading after a pause: frames that were already received come first."""
        if self.closed or self.muted:
            return
        self.paused = False
        self.starved = False
        self._yielding = False
        if self.filled_bytes:
            assert self._view is not None
            self._receiving = True
            try:
                self._consume(self._view, self.filled_bytes)
            finally:
                self._receiving = False
        if not self.closed:
            self.flush()

    def mute(self, seconds: float) -> None:
        """Read nothing for a while; what was asked before is still answered."""
        if self.closed or self.muted:
            return
        self.muted = self.paused = True
        self._listener.muted_total += 1
        self._listener.loop.call_later(seconds, self.unmute)
        self._watch()

    def rest(self) -> None:
        """Read nothing until `unmute`: a request is being worked on."""
        if not (self.closed or self.muted):
            self.muted = self.paused = True
            self._watch()

    def unmute(self) -> None:
        """The end of `mute`."""
        if self.muted and not self.closed:
            self.muted = False
            self.used_at = self.monotonic()
            if self.held_until and self._left_alone():
                self.close()  # it has sent the request again elsewhere, or given it up
            else:
                self.resume()

    def _left_alone(self) -> bool:
        """Whether the peer has closed its end."""
        try:
            return not self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def drop_buffer(self) -> None:
        """Give an unused receive buffer back; a cut frame keeps it."""
        if self._buffer is not None and not self.filled_bytes:
            self._listener.give_back(len(self._buffer))
            self._buffer = None
            self._view = None

    # sending

    def _flush_later(self) -> None:
        self._flush_planned = False
        if not self.closed:
            self.flush()

    def flush(self) -> None:
        """Send what is queued, as far as the socket takes it and fairness allows."""
        out = self._out
        try:
            budget = self._send(out, SEND_BUDGET_BYTES)
        except OSError:
            self.close()
            return
        self._listener.bytes_out += SEND_BUDGET_BYTES - budget
        if self.closing and not out:
            self.close()
            return
        if self.paused and not out and len(self._slots) < PENDING_LIMIT // 2:
            self._listener.loop.call_soon(self.resume)
        if out or self._mask != READ or self.paused:
            self._watch()

    def _send(self, out: deque[bytes | bytearray | memoryview | Range], budget: int) -> int:
        """Send from the head of the queue; what is left of the budget."""
        try:
            while out and budget > 0:
                head = out[0]
                if type(head) is Range:
                    wanted = min(head.length, SENDFILE_BYTES)
                    sent = os.sendfile(
                        self.sock.fileno(), head.source.descriptor, head.position, wanted
                    )
                    if sent == 0:
                        raise OSError("the file ended before the range that was promised")
                    self._took(sent)
                    full = sent == wanted
                else:
                    sent, full = self._send_memory(out)
                    self.out_bytes -= sent
                budget -= sent
                if not full:
                    break
        except BlockingIOError:
            pass  # the socket is full; the loop says when it is not
        return budget

    def _took(self, sent: int) -> None:
        """That many bytes of the range at the head are on their way."""
        head = self._out[0]
        assert isinstance(head, Range)
        head.position += sent
        head.length -= sent
        if head.length == 0:
            self._out.popleft()
            head.source.release()
            self.out_bytes -= RANGE_BYTES

    def _send_memory(self, out: deque[bytes | bytearray | memoryview | Range]) -> tuple[int, bool]:
        """Send the bytes at the head of the queue; how many went, and whether all did."""
        head = out[0]
        assert not isinstance(head, Range)
        if len(out) == 1:
            wanted = len(head)
            sent = self.sock.send(head)
            if sent == wanted:
                out.popleft()
            else:
                out[0] = memoryview(head)[sent:]
            return sent, sent == wanted
        vectors: list[bytes | bytearray | memoryview] = []
        wanted = 0
        flags = 0
        for part in out:
            if isinstance(part, Range):
                flags = socket.MSG_MORE
                break
            vectors.append(part)
            wanted += len(part)
            if len(vectors) == SEND_VECTORS:
                break
        sent = self.sock.sendmsg(vectors, (), flags)
        left = sent
        while left:
            head = out[0]
            assert not isinstance(head, Range)
            if len(head) <= left:
                left -= len(head)
                out.popleft()
            else:
                out[0] = memoryview(head)[left:]
                left = 0
        return sent, sent == wanted

    def _watch(self) -> None:
        """Wait for what this connection can use now."""
        mask = 0 if self.paused or self.starved or self._yielding else READ
        if self._out:
            mask |= WRITE
        if mask != self._mask:
            self._mask = mask
            self._listener.loop.change(self.sock.fileno(), mask)

    # the end

    def close_after_answers(self) -> None:
        """Read nothing more; close once what is queued is sent."""
        self.closing = True
        self.paused = True
        if not self._out:
            self.close()
        else:
            self._watch()

    def close(self) -> None:
        """Close at once; parked answers of this connection are dropped."""
        if self.closed:
            return
        self.closed = True
        self._listener.loop.forget(self.sock.fileno())
        self._close_socket()
        for entry in self._out:
            if isinstance(entry, Range):
                entry.source.release()
        self._out.clear()
        for slot in self._slots:
            release_parts(slot.parts)
        self._slots.clear()
        if self._buffer is not None:
            self._listener.give_back(len(self._buffer))
            self._buffer = None
            self._view = None
        self._listener.gone(self)

    def _close_socket(self) -> None:
        self.sock.close()


def release_parts(parts: list[bytes | bytearray | memoryview | FileRange]) -> None:
    """Let the files of an answer go that will not be sent."""
    for part in parts:
        if not isinstance(part, (bytes, bytearray, memoryview)):
            part.release()
    parts.clear()
