"""Connections between processes that share an event topic: frames both ways, one thread.

A frame is its length (4 bytes, big-endian) and that many bytes. Before the first one both sides
show that they know the secret of the group, without saying it: the server sends 32 random bytes,
the client answers with HMAC-SHA256 over them and 32 bytes of its own, the server proves itself
with HMAC-SHA256 over those. Until then nothing longer than that is read, nobody has more than
a few seconds, and of too many who have not shown it yet the first to come is the first to go: they
take the place of no member. Nothing here ever blocks but `connect`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import secrets
import selectors
import socket
import threading
from collections.abc import Callable

from tailrace.client.cluster import parse_addresses
from tailrace.clock import SYSTEM
from tailrace.loopback import is_loopback

log = logging.getLogger(__name__)

NONCE_BYTES = PROOF_BYTES = 32
MOST_FRAME_BYTES = 16 * 1024 * 1024
MOST_WAITING_BYTES = 64 * 1024 * 1024
MOST_LINKS = 512
MOST_STRANGERS = 128
"""Connections that have not shown the secret yet."""
SHAKING_SECONDS = 5.0
READ_BYTES = 256 * 1024
_SERVER, _CLIENT = b"tailrace events server", b"tailrace events client"

OnFrame = Callable[["Link", bytes], None]
OnClosed = Callable[["Link"], None]


def prove(secret: str, role: bytes, nonce: bytes) -> bytes:
    return hmac.digest(secret.encode(), role + nonce, hashlib.sha256)


class Link:
    """One connection that has shaken hands. `send` is safe from any thread."""

    def __init__(
        self,
        links: Links,
        made: socket.socket,
        on_frame: OnFrame,
        on_closed: OnClosed,
        on_drained: Callable[[], None] = lambda: None,
    ) -> None:
        self._links = links
        self._socket = made
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._on_drained = on_drained
        self._lock = threading.Lock()
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._nonce = b""
        self.shaken = False
        self.until = 0.0
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frames: list[bytes]) -> None:
        """Send frames, or keep them until the other side reads; a closed link drops them."""
        data = b"".join([len(each).to_bytes(4, "big") + each for each in frames])
        with self._lock:
            if self.closed:
                return
            waiting = bool(self._outgoing)
            if not waiting:
                data = self._push(data)
            self._outgoing += data
            full = len(self._outgoing) > MOST_WAITING_BYTES
            ask = bool(self._outgoing) and not waiting
        if full:
            log.warning("a process that does not read its answers is cut off")
            self._links.drop(self)
        elif ask:
            self._links.want_to_write(self)

    def _push(self, data: bytes | bytearray) -> bytes:
        """What of it could not be sent now."""
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._links.drop(self)
            return b""
        return bytes(data[sent:]) if sent < len(data) else b""

    def close(self) -> None:
        self._links.drop(self)

    # By the thread of the links ------------------------------------------------

    def write(self) -> bool:
        """Send what waits; whether some is left."""
        with self._lock:
            if not self.closed and self._outgoing:
                self._outgoing[:] = self._push(self._outgoing)
            return bool(self._outgoing)

    def greet(self) -> None:
        """A server's first words."""
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self.until = SYSTEM.monotonic() + SHAKING_SECONDS
        with self._lock:
            self._outgoing += self._push(self._nonce)

    def read(self) -> bool:
        """Take in what has come; False: the link is at its end."""
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        self._incoming += data
        if not self.shaken and not self._shake():
            return len(self._incoming) < NONCE_BYTES + PROOF_BYTES
        return self._frames()

    def _shake(self) -> bool:
        if len(self._incoming) < PROOF_BYTES + NONCE_BYTES:
            return False
        proof = bytes(self._incoming[:PROOF_BYTES])
        theirs = bytes(self._incoming[PROOF_BYTES : PROOF_BYTES + NONCE_BYTES])
        if not hmac.compare_digest(proof, prove(self._links.secret, _CLIENT, self._nonce)):
            log.warning("a stranger at the door of an event topic was turned away")
            return False
        if not self._links.admit(self):
            log.warning("a member of an event topic found no room")
            return False
        del self._incoming[: PROOF_BYTES + NONCE_BYTES]
        self.shaken = True
        with self._lock:
            self._outgoing += self._push(prove(self._links.secret, _SERVER, theirs))
        return True

    def _frames(self) -> bool:
        incoming, position = self._incoming, 0
        while len(incoming) - position >= 4:
            size = int.from_bytes(incoming[position : position + 4], "big")
            if size > MOST_FRAME_BYTES:
                log.warning("a frame that claims too many bytes", extra={"bytes": size})
                return False
            if len(incoming) - position - 4 < size:
                break
            self._on_frame(self, bytes(incoming[position + 4 : position + 4 + size]))
            position += 4 + size
        if position:
            del incoming[:position]
            self._on_drained()
        return True

    def end(self) -> None:
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._socket.close()
        self._on_closed(self)


class Links:
    """All connections of a process for one topic, and its door."""

    def __init__(self, on_frame: OnFrame, on_closed: OnClosed) -> None:
        self.secret = secrets.token_hex(32)
        self.address = ""
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._door: socket.socket | None = None
        self._links: set[Link] = set()
        self._strangers: dict[Link, None] = {}  # those of them that have not shown the secret
        self._new: list[Link] = []
        self._writing: list[Link] = []
        self._dropped: list[Link] = []
        self._lock = threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="events links", daemon=True)
        self._thread.start()

    def listen(self, address: str) -> str:
        """Open the door; where it is. Raises OSError."""
        ((host, port),) = parse_addresses(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        door = socket.create_server((host, port), family=family, backlog=128)
        door.setblocking(False)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{shown}:{door.getsockname()[1]}"
        if not is_loopback(host):
            log.warning("owners of events can be reached from other machines", extra={"address": self.address})  # fmt: skip
        self._door = door
        self._wake()
        return self.address

    def connect(
        self,
        address: str,
        secret: str,
        on_frame: OnFrame,
        on_closed: OnClosed,
        timeout: float,
        on_drained: Callable[[], None],
    ) -> Link:
        """A link to another process; `on_drained` after the frames that came together. Blocks; raises OSError: ConnectionRefusedError when nobody
        listens there, PermissionError when it is not who it should be."""
        ((host, port),) = parse_addresses(address)
        made = socket.create_connection((host, port), timeout)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            nonce = _exactly(made, NONCE_BYTES)
            ours = secrets.token_bytes(NONCE_BYTES)
            made.sendall(prove(secret, _CLIENT, nonce) + ours)
            if not hmac.compare_digest(_exactly(made, PROOF_BYTES), prove(secret, _SERVER, ours)):
                raise PermissionError(f"{address} is not the owner it should be")
            made.setblocking(False)
        except BaseException:
            made.close()
            raise
        link = Link(self, made, on_frame, on_closed, on_drained)
        link.shaken = True
        with self._lock:
            if self._stopping:  # the thread may have looked for the last time
                made.close()
                raise ConnectionAbortedError("the links are closed")
            self._new.append(link)
        self._wake()
        return link

    def want_to_write(self, link: Link) -> None:
        with self._lock:
            self._writing.append(link)
        self._wake()

    def drop(self, link: Link) -> None:
        with self._lock:
            self._dropped.append(link)
        self._wake()

    def close(self) -> None:
        with self._lock:
            self._stopping = True
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            self._waker.send(b"\x00")

    # The thread ----------------------------------------------------------------

    def _run(self) -> None:
        door: socket.socket | None = None
        while not self._stopping:
            if door is None and self._door is not None:
                door = self._door
                self._selector.register(door, selectors.EVENT_READ)
            self._take_changes()
            for key, events in self._selector.select(1.0):
                made = key.fileobj
                if made is self._woken:
                    self._woken.recv(4096)
                elif made is door:
                    self._accept(door)
                elif isinstance(made, Link):
                    self._serve(made, events)
            self._end_those_who_do_not_shake()
        self._take_changes()  # a link that was made since
        for link in list(self._links):
            self._end(link)
        if door is not None or self._door is not None:
            assert self._door is not None
            self._door.close()
        self._selector.close()
        self._woken.close()
        self._waker.close()

    def _take_changes(self) -> None:
        with self._lock:
            new, writing, dropped = self._new, self._writing, self._dropped
            self._new, self._writing, self._dropped = [], [], []
        for link in new:
            self._links.add(link)
            self._selector.register(link, selectors.EVENT_READ)
        for link in writing:
            if link in self._links:
                self._selector.modify(link, selectors.EVENT_READ | selectors.EVENT_WRITE)
        for link in dropped:
            self._end(link)

    def _accept(self, door: socket.socket) -> None:
        while True:
            try:
                made, _ = door.accept()
            except OSError:
                return
            if len(self._strangers) >= MOST_STRANGERS:
                self._end(next(iter(self._strangers)))
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(self, made, self._on_frame, self._on_closed)
            self._links.add(link)
            self._strangers[link] = None
            self._selector.register(link, selectors.EVENT_READ)
            link.greet()

    def admit(self, link: Link) -> bool:
        """Whether there is room for one that has shown the secret."""
        self._strangers.pop(link, None)
        return len(self._links) - len(self._strangers) <= MOST_LINKS

    def _serve(self, link: Link, events: int) -> None:
        if link not in self._links:
            return
        try:
            going_on = not events & selectors.EVENT_READ or link.read()
        except Exception:  # hostile or broken bytes end their own link and no other
            log.warning("a link was ended by what came on it", exc_info=True)
            going_on = False
        if not going_on:
            self._end(link)
        elif events & selectors.EVENT_WRITE and not link.write():
            self._selector.modify(link, selectors.EVENT_READ)

    def _end_those_who_do_not_shake(self) -> None:
        now = SYSTEM.monotonic()
        for link in [each for each in self._strangers if each.until < now]:
            self._end(link)

    def _end(self, link: Link) -> None:
        if link in self._links:
            self._links.discard(link)
            self._strangers.pop(link, None)
            self._selector.unregister(link)
        link.end()


def _exactly(made: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = made.recv(size - len(data))
        if not more:
            raise ConnectionResetError("the other side closed the connection")
        data += more
    return data
