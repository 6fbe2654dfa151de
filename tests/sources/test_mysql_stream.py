"""Bytes of a binlog stream that are long, damaged or unknown, without a server."""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.sources.errors import BinlogChecksumError, ReplicationProtocolError
from tailrace.sources.mysql import packets
from tailrace.sources.mysql.events import FORMAT, IGNORABLE_FLAG, QUERY, Event, Unpacker
from tailrace.sources.mysql.json_diffs import Diffs, DoesNotFit, read_diffs
from tailrace.sources.mysql.packets import Packets
from tailrace.sources.mysql.reception import Reception
from tailrace.sources.mysql.stream import _refused
from tailrace.sources.mysql.table_map import read_table_map


def connected() -> tuple[Packets, socket.socket]:
    ours, theirs = socket.socketpair()
    connection: Any = SimpleNamespace(_sock=ours, _execute_command=lambda command, payload: None)
    return Packets(connection, 0, b""), theirs


def framed(content: bytes) -> bytes:
    made = bytearray()
    longest = packets.LONGEST
    for number, at in enumerate(range(0, len(content) + 1, longest)):
        piece = content[at : at + longest]
        made += len(piece).to_bytes(3, "little") + bytes([number & 255]) + piece
    return bytes(made)


def test_a_packet_that_goes_on_in_others_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "LONGEST", 1000)  # of 16 MiB
    taken, theirs = connected()
    wanted = [b"a" * 999, b"b" * 1000, b"c" * 2005, b"d"]
    sending = threading.Thread(target=lambda: theirs.sendall(b"".join(map(framed, wanted))))
    sending.start()
    found: list[bytes] = []
    while len(found) < len(wanted):
        found += taken.receive()
    sending.join()
    assert found == wanted
    theirs.close()
    taken._socket.close()


def test_a_packet_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "LONGEST", 1000)
    monkeypatch.setattr(packets, "LARGEST_BYTES", 1000)
    taken, theirs = connected()
    sending = threading.Thread(target=lambda: theirs.sendall(framed(b"x" * 2000)))
    sending.start()
    with pytest.raises(ReplicationProtocolError, match="without end"):
        list(taken.all(30))
    theirs.close()
    taken._socket.close()
    sending.join()


def event(kind: int, body: bytes, flags: int = 0) -> bytes:
    head = struct.pack("<IBIIIH", 0, kind, 1, 19 + len(body) + 4, 500, flags)
    return head + body + zlib.crc32(head + body).to_bytes(4, "little")


def test_a_damaged_event_is_told_and_never_taken() -> None:
    unpacker = Unpacker()
    list(unpacker.events(event(FORMAT, b"\4\0" + b"8" * 55 + b"\1")))
    good = event(QUERY, b"SELECT 1")
    assert [one.body for one in unpacker.events(good)] == [b"SELECT 1"]
    for at in range(19, len(good)):
        bad = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        with pytest.raises(BinlogChecksumError) as told:
            list(unpacker.events(bad))
    assert told.value.hint
    assert told.value.detail
    with pytest.raises(ReplicationProtocolError):
        list(unpacker.events(good[:-1]))


def receiving() -> Reception:
    """Only what `take` needs outside a transaction."""
    made = object.__new__(Reception)
    made.transaction, made.file, made.position = None, "binlog.000001", 1 << 32
    return made


def test_an_unknown_event_is_passed_by_only_if_it_may_be() -> None:
    reception = receiving()
    reception.take(Event(99, 0, 1, 400, 500, IGNORABLE_FLAG, b""))
    assert reception.position == (1 << 32) + 500
    with pytest.raises(ReplicationProtocolError, match="type 99") as told:
        reception.take(Event(99, 0, 1, 500, 600, 0, b""))
    assert told.value.hint
    assert reception.position == (1 << 32) + 500


def test_an_unknown_type_of_a_column_is_told() -> None:
    body = bytes(6) + b"\1\0" + b"\1s\0" + b"\1t\0" + b"\1" + bytes([99]) + b"\0" + b"\0"
    with pytest.raises(ReplicationProtocolError, match="type") as told:
        read_table_map(body, lambda number: pytest.fail("no text"), {}, mariadb=False)
    assert told.value.hint or told.value.detail


@pytest.mark.parametrize(
    ("number", "text", "code"),
    [
        (1236, "A replica with the same server_uuid/server_id as this replica has connected", "replication-refused"),
        (1236, "Could not find first log file name in binary log index file", "binlog-lost"),
        (1236, "the master has purged required binary logs", "binlog-lost"),
        (1227, "Access denied; you need the REPLICATION SLAVE privilege", "source-privilege"),
        (1053, "Server shutdown in progress", "source-unreachable"),
        (1236, "something else", "replication-refused"),
    ],
)  # fmt: skip
def test_refusals_are_told_in_four_parts(number: int, text: str, code: str) -> None:
    error: Any = _refused(number, text)
    assert error.code == code
    assert text in error.detail


def test_changes_of_json_fit_or_are_refused() -> None:
    document = {"a": [1, {"b": 2}], "cc": None}
    told = Diffs([(0, ("a", 1, "b"), 5), (1, ("bb",), 6), (1, ("a", 0), 0), (2, ("cc",), None)])
    assert told.applied(document) == {"a": [0, 1, {"b": 5}], "bb": 6}
    assert list(Diffs([(1, ("b",), 1)]).applied(document)) == ["a", "b", "cc"]
    assert document == {"a": [1, {"b": 2}], "cc": None}
    for change in [(0, ("x",), 1), (1, ("a",), 1), (2, ("a", 7), None), (0, (0,), 1), (2, (), None), (1, ("cc", "d"), 1)]:  # fmt: skip
        with pytest.raises(DoesNotFit):
            Diffs([change]).applied(document)


@given(st.binary(max_size=60))
def test_any_bytes_are_changes_or_refused(data: bytes) -> None:
    try:
        read_diffs(data)
    except (ReplicationProtocolError, IndexError, UnicodeDecodeError, ValueError):
        pass  # what the rows' reader tells as rows that cannot be read
