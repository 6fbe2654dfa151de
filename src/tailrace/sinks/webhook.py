"""Changes as signed POST requests, in order per key, at least once.

One change a request (or `batch` of them), `parallel` requests at a time; changes of one
key always take the same lane, so they arrive in order. A receiver drops repeats by
`Idempotency-Key`, which names the record in the log.

Answers: 2xx is taken; 408, 425, 429 and 5xx mean "later" (the sink pauses, longer each
time, and then tries with a single request before it goes on with all lanes); any other
answer refuses the change, which becomes a dead letter. Where each row has an address of its
own, an owner who cannot be reached holds nobody up: three attempts, then a dead letter.
"""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
import http.client
import ipaddress
import socket
import threading
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.config import resolve
from tailrace.records.rows import python_rows
from tailrace.sinks.base import AT, DELETED, OFFSET, PARTITION, Batch, Shape, SinkPosition
from tailrace.sinks.declare import Webhook
from tailrace.sinks.errors import (
    RowsRefusedError,
    SinkDeclarationError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.local import LocalPosition
from tailrace.sinks.registry import Copy, Surroundings

LATER = (408, 425, 429)
CLOSED = (401, 403, 407)
OWN_ATTEMPTS = 3  # at an address of a row
OWN_PAUSE_SECONDS = 0.5


class WebhookSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "every"

    def __init__(self, copy: Copy, surroundings: Surroundings, *, clock: Clock = SYSTEM) -> None:
        assert isinstance(copy.declaration, Webhook)
        self._copy = copy
        self._declaration = copy.declaration
        self._clock = clock
        self._position = LocalPosition(surroundings.directory, copy.name)
        self._lanes = [_Lane(copy.declaration) for _ in range(copy.declaration.parallel)]
        self._pool: ThreadPoolExecutor | None = None
        self._delivered: set[str] = set()
        self._careful = False

    def open(self, shape: Shape) -> None:
        if not shape.keyed and self._declaration.parallel > 1:
            self._lanes = self._lanes[:1]  # without keys only one lane keeps the order
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self._lanes), thread_name_prefix="webhook")
        self._position.claim()

    def position(self) -> SinkPosition | None:
        return self._position.load()

    def apply(self, batch: Batch) -> None:
        self._position.check()
        changes = describe_changes(self._copy, batch)
        lanes: list[list[dict[str, Any]]] = [[] for _ in self._lanes]
        for change in changes:
            if change["id"] not in self._delivered:
                lane = zlib.crc32(orjson.dumps(change["key"])) % len(lanes)
                lanes[lane].append(change)
        try:
            if self._careful:  # the last attempt failed: knock before coming in
                first = next((lane for lane in lanes if lane), [])
                for change in first[:1]:
                    self._send(self._lanes[lanes.index(first)], [change])
                    first.remove(change)
                self._careful = False
            assert self._pool is not None
            futures = [
                self._pool.submit(self._send_all, lane, waiting)
                for lane, waiting in zip(self._lanes, lanes, strict=True)
                if waiting
            ]
            errors = [error for future in futures if (error := future.exception()) is not None]
        except TargetUnavailableError as error:
            errors = [error]
        if errors:
            self._careful = any(isinstance(error, TargetUnavailableError) for error in errors)
            raise next((e for e in errors if isinstance(e, TargetUnavailableError)), errors[0])
        self._position.store(batch.position)
        # Only these: a batch with a refused row comes again in pieces.
        self._delivered.difference_update(change["id"] for change in changes)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        for lane in self._lanes:
            lane.close()

    def _send_all(self, lane: _Lane, changes: Sequence[dict[str, Any]]) -> None:
        size = self._declaration.batch
        for start in range(0, len(changes), size):
            self._send(lane, changes[start : start + size])

    def _send(self, lane: _Lane, changes: Sequence[dict[str, Any]]) -> None:
        single = self._declaration.batch == 1
        identity = changes[0]["id"] if single else f"{changes[0]['id']}+{len(changes)}"
        body = orjson.dumps(changes[0] if single else {"changes": list(changes)})
        headers = {"Content-Type": "application/json", "Idempotency-Key": identity}
        if self._declaration.secret is not None:
            seconds = self._clock.wall_ms() // 1000
            headers["Tailrace-Signature"] = sign(resolve(self._declaration.secret), body, seconds)
        if self._declaration.address is None:
            assert self._declaration.url is not None
            lane.post(resolve(self._declaration.url), body, headers)
        elif (url := self._address(changes[0])) is not None:
            lane.post_to_owner(url, body, headers)
        self._delivered.update(change["id"] for change in changes)

    def _address(self, change: Mapping[str, Any]) -> str | None:
        """Where a row wants to be sent; None: nowhere."""
        column = self._declaration.address
        row = change["row"]
        if row is None:
            return None  # it is gone, and its address with it
        if column not in row:
            raise SinkDeclarationError(
                f"the rows of {self._copy.subject} have no column {column!r}",
                hint=f"columns: {', '.join(row)}",
            )
        return None if row[column] is None else str(row[column])


class _Lane:
    """One kept connection."""

    def __init__(self, declaration: Webhook) -> None:
        self._declaration = declaration
        self._connection: http.client.HTTPConnection | None = None
        self._connected = ("", "")  # scheme and host of the kept connection

    def post_to_owner(self, address: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Send to an address that stands in a row. What fails concerns this row alone."""
        url = urlsplit(address)
        try:
            known = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or True)
        except ValueError:
            known = False
        if not known or url.username is not None:
            raise RowsRefusedError(f"{address[:200]!r} is no address that can be called")
        for left in reversed(range(OWN_ATTEMPTS)):
            try:
                self.post(address, body, headers)
                return
            except (TargetUnavailableError, TargetRefusedError) as reason:
                if not left or isinstance(reason, TargetRefusedError):
                    raise RowsRefusedError(reason.message, detail=reason.detail) from reason
                threading.Event().wait(OWN_PAUSE_SECONDS)

    def _check_public(self, host: str) -> None:
        """Refuse to speak to what is not on the public internet, as it is connected now."""
        allowed = self._declaration.hosts
        if any(fnmatch.fnmatchcase(host.lower(), one.lower()) for one in allowed):
            return
        assert self._connection is not None
        peer = ipaddress.ip_address(self._connection.sock.getpeername()[0].partition("%")[0])
        mapped = getattr(peer, "ipv4_mapped", None)
        if allowed or not (mapped or peer).is_global or peer.is_multicast:
            self.close()
            raise RowsRefusedError(
                f"{host} is not among the hosts that rows may name",
                detail=f"connected to {peer}",
                hint='name it: sinks.Webhook(address="url", hosts=["hooks.example.org"])',
            )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def post(self, address: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Send and judge the answer."""
        url = urlsplit(address)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise SinkDeclarationError(
                "a webhook needs an address", hint="url='https://example.org/hook'"
            )
        if self._connected != (url.scheme, url.netloc):
            self.close()
        kept = self._connection is not None
        own = {name: resolve(value) for name, value in self._declaration.headers.items()}
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            if self._connection is None:
                kind = (
                    http.client.HTTPSConnection
                    if url.scheme == "https"
                    else http.client.HTTPConnection
                )
                self._connection = kind(
                    url.netloc.rpartition("@")[2],
                    timeout=self._declaration.timeout.total_seconds(),
                )
                self._connection.connect()
                # Head and body are two writes; without this the second waits for the first.
                self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._connected = (url.scheme, url.netloc)
                if self._declaration.address is not None:
                    self._check_public(url.hostname)
            self._connection.request("POST", path, body, {**own, **headers})
            answer = self._connection.getresponse()
            text = answer.read(2000)
        except (OSError, http.client.HTTPException) as reason:
            self.close()
            if kept and isinstance(reason, http.client.RemoteDisconnected | ConnectionError):
                # A kept connection may have been closed while idle; the key drops repeats.
                self.post(address, body, headers)
                return
            raise TargetUnavailableError(
                f"webhook {url.hostname} cannot be reached",
                detail=str(reason),
                hint="the sink tries again until it answers",
            ) from reason
        if 200 <= answer.status < 300:
            if answer.will_close or answer.length:
                self.close()
            return
        self.close()
        told = f"{answer.status} {answer.reason}: {text.decode(errors='replace')[:500]}"
        if answer.status in CLOSED:
            raise TargetRefusedError(
                f"webhook {url.hostname} lets nobody in",
                detail=told,
                hint="check secret and headers",
            )
        if answer.status in LATER or answer.status >= 500:
            raise TargetUnavailableError(
                f"webhook {url.hostname} asks to come later",
                detail=told,
                hint="the sink tries again",
            )
        raise RowsRefusedError(f"webhook {url.hostname} refuses the change", detail=told)


def sign(secret: str, body: bytes, seconds: int) -> str:
    """The value of `Tailrace-Signature`. A receiver computes the same and compares with
    `hmac.compare_digest`; an old `t` is a replay."""
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={digest.hexdigest()}"


def describe_changes(copy: Copy, batch: Batch) -> list[dict[str, Any]]:
    """Changes as a receiver sees them, in the order of the log."""
    shape = batch.shape
    described = []
    for row in python_rows(batch.changes):
        place = f"{row[PARTITION]}-{row[OFFSET]}"
        described.append(
            {
                "id": f"{copy.name}-{batch.position.generation}-{place}",
                "view": copy.subject,
                "op": "delete" if row[DELETED] else "upsert",
                "key": {name: row[name] for name in shape.key},
                "row": None if row[DELETED] else {name: row[name] for name in shape.names},
                "at_ms": row[AT],
            }
        )
    return described
