"""A replication connection on psycopg's `pq` layer: COPY BOTH, keepalives, status updates.

psycopg has no replication interface; the protocol is two kinds of message from the
server (`w` WAL data, `k` keepalive) and one to it (`r` standby status), all inside
COPY data.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Iterator
from types import TracebackType

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from tailrace.clock import SYSTEM, Clock
from tailrace.sources.errors import (
    ReplicationProtocolError,
    ServerUnreachableError,
    SlotLostError,
    SlotMissingError,
    SlotTakenError,
)
from tailrace.sources.postgres.types import SESSION_OPTIONS

# Microseconds between Postgres's epoch, 2000-01-01, and 1970-01-01.
EPOCH_MICROSECONDS = 946_684_800_000_000

_KEEPALIVE = struct.Struct(">cqqB")
_STATUS = struct.Struct(">cqqqqB")
_POSITION = struct.Struct(">q").unpack_from
_join = b"".join
_PADDING = b"\0\0\0\0"  # lets a decoder read a 5-byte column head at the last byte


def conninfo(dsn: str, **extra: str) -> str:
    """`dsn` with the session settings that make text forms depend on values alone."""
    # client_encoding is a parameter of its own: it goes with the start-up packet.
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    options = f"{given.get('options') or ''} {SESSION_OPTIONS}".strip()
    return make_conninfo(
        dsn, options=options, client_encoding="UTF8", application_name="tailrace", **extra
    )


class ReplicationStream:
    """One slot being read. The caller alternates `messages` and `confirm`."""

    def __init__(
        self,
        dsn: str,
        slot: str,
        publication: str,
        start: int,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        self._clock = clock
        self.slot = slot
        self.received = start
        self.wal_end = start
        self._confirmed = start
        self._told_at = clock.monotonic()
        self._connection = connect_replication(dsn)
        self.server_version = self._connection.server_version
        options = f"proto_version '1', publication_names '{_quoted(publication)}', messages 'true'"
        command = (
            f'START_REPLICATION SLOT "{slot}" LOGICAL {start >> 32:X}/{start & 0xFFFFFFFF:X} '
            f"({options})"
        )
        result = self._connection.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            message = (result.error_message or b"").decode(errors="replace").strip()
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
            self.close()
            raise _start_error(slot, message, state.decode())
        self._poll = select.poll()
        self._poll.register(self._connection.socket, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Whether data came within `seconds`."""
        return bool(self._poll.poll(max(0, int(seconds * 1000))))

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """What has arrived, without waiting: (WAL position, pgoutput message + 4 bytes).

        Keepalives are taken in here: they move `wal_end` and are answered.
        """
        get_copy_data = self._connection.get_copy_data
        consumed = False
        while True:
            try:
                count, data = get_copy_data(1)
                if count == 0:
                    if consumed:
                        return
                    # Never blocks; what it brought is taken in the next round.
                    self._connection.consume_input()
                    consumed = True
                    continue
            except psycopg.OperationalError as error:
                raise self._lost(str(error)) from error
            if count < 0:
                raise self._lost(self._end_of_copy())
            consumed = False
            if data[0] == 0x77:
                (lsn,) = _POSITION(data, 1)
                if lsn > self.received:
                    self.received = lsn
                yield lsn, _join((data[25:], _PADDING))
            elif data[0] == 0x6B:
                self._keepalive(bytes(data))
            else:
                raise ReplicationProtocolError(f"unknown replication message {data[0]:#x}")

    def _keepalive(self, data: bytes) -> None:
        _, end, _, reply = _KEEPALIVE.unpack(data)
        if end > self.wal_end:
            self.wal_end = end
        if reply:
            self.confirm(self._confirmed)

    def confirm(self, position: int, *, ask: bool = False) -> None:
        """Tell the server that everything before `position` is on our disk.

        `ask` makes it answer with a keepalive that says how far its WAL was read.
        """
        self._confirmed = max(self._confirmed, position)
        written = max(self.received, self._confirmed)
        now = SYSTEM.wall_ms() * 1000 - EPOCH_MICROSECONDS
        message = _STATUS.pack(
            b"r", written, self._confirmed, self._confirmed, now, 1 if ask else 0
        )
        try:
            self._connection.put_copy_data(message)
            self._connection.flush()
        except psycopg.OperationalError as error:
            raise self._lost(str(error)) from error
        self._told_at = self._clock.monotonic()

    @property
    def silent_for(self) -> float:
        """Seconds since the server last heard from us."""
        return self._clock.monotonic() - self._told_at

    def _end_of_copy(self) -> str:
        result = self._connection.get_result()
        message = b"" if result is None else result.error_message or b""
        return message.decode(errors="replace").strip() or "the server ended the stream"

    def _lost(self, message: str) -> ServerUnreachableError | SlotLostError:
        if "requested WAL segment" in message or "can no longer get changes" in message:
            return SlotLostError(f'the WAL that slot "{self.slot}" needs is gone', detail=message)
        return ServerUnreachableError(
            "the server closed the replication connection",
            detail=message.strip(),
            hint="capture connects again and goes on where the log ends",
        )

    def close(self) -> None:
        self._connection.finish()

    def __enter__(self) -> ReplicationStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def connect_replication(dsn: str) -> pq.abc.PGconn:
    """A connection that understands replication commands."""
    connection = pq.PGconn.connect(conninfo(dsn, replication="database").encode())
    if connection.status != pq.ConnStatus.OK:
        message = connection.error_message.decode(errors="replace").strip()
        connection.finish()
        raise ServerUnreachableError("the database does not answer", detail=message)
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _start_error(slot: str, message: str, state: str) -> Exception:
    if state == "55006":
        return SlotTakenError(
            f'replication slot "{slot}" is in use',
            detail=message,
            hint="stop the other process, or name another slot with `slot=`",
        )
    if state == "42704":
        return SlotMissingError(f'replication slot "{slot}" does not exist', detail=message)
    if "can no longer get changes" in message or "has been invalidated" in message:
        return SlotLostError(f'replication slot "{slot}" lost its WAL', detail=message)
    if state == "55000" and "invalid" in message:
        return SlotLostError(f'replication slot "{slot}" lost its WAL', detail=message)
    return ServerUnreachableError("replication does not start", detail=message)
