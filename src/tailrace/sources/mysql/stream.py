"""The binlog stream of one server, from a place that it still has."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator

from tailrace.sources.errors import (
    BinlogLostError,
    PrivilegeError,
    ReplicationRefusedError,
    ServerUnreachableError,
)
from tailrace.sources.mysql.events import Event, Unpacker
from tailrace.sources.mysql.gtid import GtidSet, Known
from tailrace.sources.mysql.packets import Packets, read_error
from tailrace.sources.mysql.server import DENIED, GRANTS, Server, translated

COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID = 0x12, 0x1E
PURGED_OR_AHEAD = 1236


def replica_number(name: str) -> int:
    """A replica's number made of a name: large, so that it is nobody else's."""
    return zlib.crc32(name.encode()) | 0x40000000


class BinlogStream:
    """Events from `file` and `position`, or behind the transactions that are `known`."""

    def __init__(
        self, server: Server, number: int, name: str, file: str, position: int,
        known: Known | None, heartbeat_seconds: float,
    ) -> None:  # fmt: skip
        self._server = server
        self._unpacker = Unpacker()
        beat = int(heartbeat_seconds * 1_000_000_000)
        with translated("read the binlog"), server.connection.cursor() as cursor:
            cursor.execute(
                "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'"
            )
            cursor.execute(
                f"SET @master_heartbeat_period = {beat}, @source_heartbeat_period = {beat}"
            )
            if server.mariadb:
                cursor.execute("SET @mariadb_slave_capability = 4, @slave_gtid_strict_mode = 0")
                cursor.execute("SET @slave_connect_state = %s", (str(known or ""),))
            else:
                replica = str(uuid.uuid5(uuid.NAMESPACE_OID, f"tailrace {name}"))
                cursor.execute("SET @slave_uuid = %s, @replica_uuid = %s", (replica, replica))
        if isinstance(known, GtidSet):
            encoded = known.encoded()
            payload = b"".join(
                (
                    (4).to_bytes(2, "little"), number.to_bytes(4, "little"),
                    (0).to_bytes(4, "little"), (4).to_bytes(8, "little"),
                    len(encoded).to_bytes(4, "little"), encoded,
                )
            )  # fmt: skip
            command = COM_BINLOG_DUMP_GTID
        else:
            payload = b"".join(
                (
                    position.to_bytes(4, "little"), (0).to_bytes(2, "little"),
                    number.to_bytes(4, "little"), b"" if server.mariadb else file.encode(),
                )
            )  # fmt: skip
            command = COM_BINLOG_DUMP
        with translated("read the binlog"):
            self._packets = Packets(server.connection, command, payload)

    def wait(self, seconds: float) -> bool:
        return self._packets.wait(seconds)

    def receive(self) -> Iterator[Event]:
        """The events that have come."""
        for packet in self._packets.receive():
            head = packet[:1]
            if head == b"\x00":
                yield from self._unpacker.events(packet[1:])
            elif head == b"\xff":
                raise _refused(*read_error(packet))
            else:
                raise ServerUnreachableError(
                    "the server ended the stream of its binlog",
                    hint="capture connects again and goes on where the log ends",
                )

    def close(self) -> None:
        self._server.connection._force_close()


def _refused(number: int, text: str) -> Exception:
    lower = text.lower()
    if "same server_uuid" in lower or "same server_id" in lower:
        return ReplicationRefusedError(
            "another replica has the number of this source", detail=text,
            hint="give the source another `server_id=`",
        )  # fmt: skip
    if number in DENIED:
        return PrivilegeError(
            "the database user may not read the binlog", detail=text, hint=GRANTS,
        )  # fmt: skip
    gone = ("purged", "could not find", "not in the master's binlog", "missing the gtid")
    if number == PURGED_OR_AHEAD and any(word in lower for word in gone):
        return BinlogLostError("the server has not the changes that are next", detail=text)
    if number in (1053, 1927, 2013) or "shutdown" in lower:
        return ServerUnreachableError("the server ends the stream", detail=text)
    return ReplicationRefusedError(
        "the server refuses to send its binlog", detail=f"{number}: {text}",
        hint="see `tailrace source doctor`",
    )  # fmt: skip
