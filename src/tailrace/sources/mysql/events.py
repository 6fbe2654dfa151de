"""The events of a binlog stream, taken out of their packaging.

Checks checksums, opens what is compressed (single events of MariaDB, whole transactions of
MySQL) and gives `Event`s in the order of the stream.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import cramjam

from tailrace.sources.errors import BinlogChecksumError, ReplicationProtocolError
from tailrace.sources.mysql import values
from tailrace.sources.mysql.packets import length_of

QUERY, STOP, ROTATE, FORMAT, XID = 2, 3, 4, 15, 16
TABLE_MAP, HEARTBEAT, HEARTBEAT_V2, INCIDENT = 19, 27, 41, 26
GTID, ANONYMOUS_GTID, TAGGED_GTID, PREVIOUS_GTIDS = 33, 34, 42, 35
XA_PREPARE, PARTIAL_UPDATE, PAYLOAD = 38, 39, 40
MARIADB_GTID, GTID_LIST, ANNOTATE = 162, 163, 160
WRITE, UPDATE, DELETE = "c", "u", "d"
ROWS = {
    23: WRITE, 24: UPDATE, 25: DELETE, 30: WRITE, 31: UPDATE, 32: DELETE, PARTIAL_UPDATE: UPDATE,
}  # fmt: skip
# MariaDB's compressed events and what they are when opened.
PACKED = {165: QUERY, 166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
# Statements with their values, which stand for rows that are not told.
STATEMENT_PARTS = {5, 13, 14, 17, 18, 9}
# Nothing for us: LOAD files, ROWS_QUERY, groups' views, contexts, checkpoints, encryption.
IGNORED = {
    0, STOP, 8, 10, 11, 29, 36, 37, PREVIOUS_GTIDS, GTID_LIST, ANNOTATE, 161, 164, *STATEMENT_PARTS,
}  # fmt: skip
IGNORABLE_FLAG, ARTIFICIAL_FLAG = 0x80, 0x20
LARGEST_TRANSACTION = 4 << 30


@dataclass(frozen=True, slots=True)
class Event:
    """`end` is where it ends in its file, 0 for events that are in none; `start` where it
    begins, or its transaction's packaging."""

    type: int
    time: int
    server: int
    start: int
    end: int
    flags: int
    body: bytes


class Unpacker:
    """From packets of the stream to events."""

    def __init__(self) -> None:
        self._checksums = False

    def events(self, packet: bytes) -> Iterator[Event]:
        """What one packet (without its first byte) holds."""
        if len(packet) < 19:
            raise ReplicationProtocolError(
                "an event is too short", detail=f"It has {len(packet)} bytes."
            )
        kind = packet[4]
        size = int.from_bytes(packet[9:13], "little")
        if size != len(packet):
            raise ReplicationProtocolError(
                "an event has another length than it says",
                detail=f"It says {size:,} and has {len(packet):,} bytes.",
            )
        end = int.from_bytes(packet[13:17], "little")
        flags = int.from_bytes(packet[17:19], "little")
        if kind == FORMAT:
            self._checksums = packet[-5] == 1
        if kind == ROTATE and end == 0:
            # It comes before the format is told, with a checksum or without.
            packet = packet[:-4] if self._sums(packet) else packet
        elif kind == FORMAT:
            packet = packet[:-4]
        elif self._checksums:
            if not self._sums(packet):
                raise BinlogChecksumError(
                    "an event of the binlog is damaged",
                    detail=f"Type {kind}, ending at {end:,}: its checksum is another.",
                    hint="capture reads it again; if it stays, the file on the server is damaged",
                )
            packet = packet[:-4]
        event = Event(
            kind, int.from_bytes(packet[:4], "little"), int.from_bytes(packet[5:9], "little"),
            max(end - size, 0), end, flags, packet[19:],
        )  # fmt: skip
        if kind == PAYLOAD:
            yield from self._payload(event)
        elif kind in PACKED:
            yield _opened(event)
        else:
            yield event

    def _sums(self, packet: bytes) -> bool:
        return len(packet) >= 23 and zlib.crc32(packet[:-4]) == int.from_bytes(
            packet[-4:], "little"
        )

    def _payload(self, event: Event) -> Iterator[Event]:
        """A whole transaction in one event: fields with their type, then zstd or nothing."""
        body, at = event.body, 0
        compression, size = 255, 0
        try:
            while True:
                field, at = length_of(body, at)
                if field == 0:
                    break
                length, at = length_of(body, at)
                number, _ = length_of(body, at)
                if field == 2:
                    compression = number
                elif field == 3:
                    size = number
                at += length
        except IndexError as error:
            raise ReplicationProtocolError("a compressed transaction cannot be read") from error
        if size > LARGEST_TRANSACTION:
            raise ReplicationProtocolError("a compressed transaction says it is too large")
        content = body[at:]
        if compression == 255:
            made: bytes | bytearray = content
        elif compression == 0:
            made = _zstd(content, size)
        else:
            raise ReplicationProtocolError(
                "a transaction is compressed in an unknown way", detail=f"Number {compression}."
            )
        at = 0
        while at < len(made):
            length = int.from_bytes(made[at + 9 : at + 13], "little")
            if length < 19 or at + length > len(made):
                raise ReplicationProtocolError("an event inside a transaction has no true length")
            inner = bytes(made[at : at + length])
            at += length
            yield Event(
                inner[4], int.from_bytes(inner[:4], "little"), int.from_bytes(inner[5:9], "little"),
                event.start, event.end, int.from_bytes(inner[17:19], "little"), inner[19:],
            )  # fmt: skip


def _zstd(data: bytes, size: int) -> bytearray:
    """What the packaging says it holds, and not a byte more; memory is taken as it is filled."""
    made = bytearray(size)
    try:
        length = cramjam.zstd.decompress_into(data, made)
    except cramjam.DecompressionError as error:
        raise ReplicationProtocolError(
            "a compressed transaction cannot be unpacked", detail=str(error)
        ) from error
    if length != size:
        raise ReplicationProtocolError(
            "a compressed transaction has another length than it says", detail=f"{size:,} bytes"
        )
    return made


def _opened(event: Event) -> Event:
    """A compressed event of MariaDB: head as it is, then 1 byte, length, zlib."""
    body = event.body
    kind = PACKED[event.type]
    if kind == QUERY:
        # Thread, time, length of the database's name, error, length of the variables.
        head = 13 + int.from_bytes(body[11:13], "little") + body[8] + 1
        return _with(event, kind, body[:head] + _inflated(body[head:]))
    at = 8 if kind in (23, 24, 25) else 8 + int.from_bytes(body[8:10], "little")
    count, at = length_of(body, at)
    at += (count + 7) // 8 * (2 if ROWS[kind] == UPDATE else 1)
    return _with(event, kind, body[:at] + _inflated(body[at:]))


def _inflated(data: bytes) -> bytes:
    if not data or data[0] & 0x80 == 0 or data[0] >> 4 & 7:
        raise ReplicationProtocolError("a compressed event is packed in an unknown way")
    size = data[0] & 7
    length = int.from_bytes(data[1 : 1 + size], "big")
    return values.unpacked(data[1 + size :], length)


def _with(event: Event, kind: int, body: bytes) -> Event:
    return Event(kind, event.time, event.server, event.start, event.end, event.flags, body)


def read_query(body: bytes) -> tuple[str, str]:
    """Database and text of a QUERY event."""
    try:
        variables = int.from_bytes(body[11:13], "little")
        at = 13 + variables
        length = body[8]
        schema = body[at : at + length].decode("utf-8", "replace")
        return schema, body[at + length + 1 :].decode("utf-8", "replace")
    except IndexError as error:
        raise ReplicationProtocolError("a QUERY event cannot be read") from error


def read_rows_head(event: Event) -> tuple[int, int, bytes, bytes, int]:
    """Table id, number of columns, which are there before and after, and where rows begin."""
    body = event.body
    identifier = int.from_bytes(body[:6], "little")
    at = 8
    if event.type >= 30:
        at += int.from_bytes(body[8:10], "little")
    count, at = length_of(body, at)
    size = (count + 7) // 8
    before = body[at : at + size]
    at += size
    after = before
    if ROWS[event.type] == UPDATE:
        after = body[at : at + size]
        at += size
    return identifier, count, before, after, at
