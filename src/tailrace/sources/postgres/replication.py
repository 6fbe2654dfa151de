"""A replication connection on psycopg's `pq` layer: COPY BOTH, keepalives, status updates.

psycopg has no replication interface; the protocol is two kinds of message from the
server (`w` WAL data, `k` keepalive) and one to it (`r` standby status), all inside
COPY data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

import numpy
import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from tailrace.clock import SYSTEM, Clock
from tailrace.sources.errors import (
    ReplicationProtocolError,
    ReplicationRefusedError,
    ServerUnreachableError,
    SlotLostError,
    SlotMissingError,
    SlotOwnedError,
    SlotTakenError,
    SourceDeclarationError,
    SourceError,
    UnsupportedServerError,
)
from tailrace.sources.postgres.columns import Positions, read_u32
from tailrace.sources.postgres.copy_socket import CopyError, CopySocket
from tailrace.sources.postgres.types import SESSION_OPTIONS

# Microseconds between Postgres's epoch, 2000-01-01, and 1970-01-01.
EPOCH_MICROSECONDS = 946_684_800_000_000

_KEEPALIVE = struct.Struct(">cqqB")
_STATUS = struct.Struct(">cqqqqB")
# COPY data (5 bytes) with a WAL message (25) with a Commit (26).
_COMMIT_BYTES = 56
_COMMIT_HEAD = b"d\0\0\0\x37w"
_POSITION = struct.Struct(">q").unpack_from
# Lets a decoder read a 5-byte column head at the last byte, and the head of a short message.
_PADDING = bytes(40)
# Messages read at a time; and from how many rows of one kind on whole columns are decoded.
READ_BYTES = 1 << 18
# SQLSTATE classes that speak of the request, not of the moment: features, state, names, rights.
_LASTING = ("0A", "22", "28", "3D", "42", "55")
SMALLEST_RUN = 200


@dataclass(frozen=True, slots=True)
class RowRun:
    """Rows of one table, all inserted or all updated without an old row, one behind the
    other in `data`; `starts` are the positions of their WAL messages."""

    data: bytes
    starts: Positions
    ends: Positions
    kind: int
    relation: int

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, part: slice) -> RowRun:
        return replace(self, starts=self.starts[part], ends=self.ends[part])

    @property
    def tuples(self) -> Positions:
        """Where each row's number of columns stands."""
        return self.starts + 31

    @property
    def lsns(self) -> Positions:
        raw = numpy.frombuffer(self.data, numpy.uint8)
        return (read_u32(raw, self.starts + 1) << 32) | read_u32(raw, self.starts + 5)

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """The same rows one by one."""
        data = self.data
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield _POSITION(data, start + 1)[0], data[start + 25 : end + 4]


def conninfo(dsn: str, **extra: str) -> str:
    """`dsn` with the session settings that make text forms depend on values alone."""
    # client_encoding is a parameter of its own: it goes with the start-up packet.
    given = _parsed(dsn)
    options = f"{given.get('options') or ''} {SESSION_OPTIONS}".strip()
    return make_conninfo(
        dsn, options=options, client_encoding="UTF8", application_name="tailrace", **extra
    )


def _parsed(dsn: str) -> dict[str, object]:
    """The parts of a DSN. What libpq says of one that it cannot read, or reads in another
    way than it was meant, would quote pieces of it, and a piece may be the password."""
    found: dict[str, object] = {}
    unread = False
    try:
        found |= psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        unread = True
    ports = str(found.get("port") or "0").replace(",", "")
    names = f"{found.get('host') or ''}{found.get('hostaddr') or ''}{found.get('dbname') or ''}"
    misread = "://" in dsn and ("@" in names or not ports.isdigit())
    if unread or misread:
        raise SourceDeclarationError(
            "the connection string of the database cannot be read",
            detail="It is not shown, because it may hold a password. In a URL, `@`, `/`, `:`, `?`, "
            "`#` and `%` inside a user or password are written %40, %2F, %3A, %3F, %23 and %25.",
            hint="check `dsn=`: postgresql://user@host:5432/database, or host=… dbname=… user=…",
        )
    return found


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
        # Set inside a large transaction, of which no row can be written before its end.
        self.patient = False
        self._confirmed = start
        self._told_at = clock.monotonic()
        self._connection = connect_replication(dsn)
        self.server_version = self._connection.server_version
        options = f"proto_version '1', publication_names '{_quoted(publication)}', messages 'true'"
        command = (
            f'START_REPLICATION SLOT "{slot}" LOGICAL {start >> 32:X}/{start & 0xFFFFFFFF:X} '
            f"({options})"
        )
        self._copy = CopySocket(self._connection)
        try:
            self._copy.start(command.encode())
        except CopyError as error:
            self.close()
            raise _start_error(slot, str(error), error.state) from error
        except psycopg.OperationalError as error:
            self.close()
            raise self._lost(str(error)) from error

    def wait(self, seconds: float) -> bool:
        """Whether data came within `seconds`."""
        return self._copy.wait(seconds)

    def messages(self) -> Iterator[tuple[int, bytes] | RowRun]:
        """What has arrived, without waiting: (WAL position, pgoutput message + some bytes),
        and many rows of one kind as a run.

        Keepalives are taken in here: they move `wal_end` and are answered.
        """
        while True:
            try:
                data, starts, over = self._copy.read(
                    READ_BYTES, enough=_ends_with_commit if self.patient else None
                )
            except (psycopg.OperationalError, CopyError) as error:
                raise self._lost(str(error)) from error
            if over:
                raise self._lost("the server ended the stream")
            if not starts:
                return
            ends = [start - 5 for start in starts[1:]]
            ends.append(len(data))
            data += _PADDING
            if len(starts) < SMALLEST_RUN:
                yield from self._single(data, starts, ends)
            else:
                yield from self._runs(data, starts, ends)

    def _single(
        self, data: bytes, starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[tuple[int, bytes]]:
        for start, end in zip(starts, ends, strict=True):
            kind = data[start]
            if kind == 0x77:
                (lsn,) = _POSITION(data, start + 1)
                if lsn > self.received:
                    self.received = lsn
                yield lsn, data[start + 25 : end + 4]
            elif kind == 0x6B:
                self._keepalive(data[start:end])
            else:
                raise ReplicationProtocolError(f"unknown replication message {kind:#x}")

    def _runs(
        self, data: bytes, starts: list[int], ends: list[int]
    ) -> Iterator[tuple[int, bytes] | RowRun]:
        """Find rows of one kind and one table that follow each other."""
        raw = numpy.frombuffer(data, numpy.uint8)
        places = numpy.array(starts, numpy.int64)
        kinds = raw[places + 25].astype(numpy.int64)
        rows = (raw[places] == 0x77) & ((kinds == 0x49) | (kinds == 0x55))
        rows &= raw[places + 30] == 0x4E
        # What names kind and table; -1 for anything that is no such row.
        names = numpy.where(rows, (kinds << 32) | read_u32(raw, places + 26), -1)
        borders = (numpy.flatnonzero(names[1:] != names[:-1]) + 1).tolist()
        for first, last in zip([0, *borders], [*borders, len(starts)], strict=True):
            name = int(names[first])
            if name < 0 or last - first < SMALLEST_RUN:
                yield from self._single(data, starts[first:last], ends[first:last])
                continue
            (lsn,) = _POSITION(data, starts[last - 1] + 1)
            self.received = max(self.received, lsn)
            yield RowRun(
                data,
                places[first:last],
                numpy.array(ends[first:last], numpy.int64),
                name >> 32,
                name & 0xFFFFFFFF,
            )

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
            self._copy.send(message)
        except psycopg.OperationalError as error:
            raise self._lost(str(error)) from error
        self._told_at = self._clock.monotonic()

    @property
    def silent_for(self) -> float:
        """Seconds since the server last heard from us."""
        return self._clock.monotonic() - self._told_at

    def _lost(self, message: str) -> SourceError:
        if "invalid byte sequence for encoding" in message:
            return UnsupportedServerError(
                "a captured row has text that is not UTF-8",
                detail=f"{message.strip()}\nThe database's encoding is SQL_ASCII: it keeps any bytes.",
                hint="repair the row, then drop the slot; capture compares the tables and goes on:\n"
                f"SELECT pg_drop_replication_slot('{self.slot}');",
            )
        if "requested WAL segment" in message or "can no longer get changes" in message:
            return SlotLostError(f'the WAL that slot "{self.slot}" needs is gone', detail=message)
        return ServerUnreachableError(
            "the server closed the replication connection",
            detail=message.strip(),
            hint="capture connects again and goes on where the log ends",
        )

    def close(self) -> None:
        self._copy.close()
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


def _ends_with_commit(data: bytes) -> bool:
    """Whether the last message is a commit: nobody should wait behind it."""
    start = len(data) - _COMMIT_BYTES
    return start >= 0 and data[start : start + 6] == _COMMIT_HEAD and data[start + 30] == 0x43


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
    if "was not created in this database" in message:
        return SlotOwnedError(
            f'replication slot "{slot}" belongs to another database',
            detail=message,
            hint="name another slot with `slot=`",
        )
    if state[:2] in _LASTING:
        return ReplicationRefusedError(
            "the server refuses to start replication", detail=message,
            hint="see `tailrace source doctor`",
        )  # fmt: skip
    return ServerUnreachableError("replication does not start", detail=message)
