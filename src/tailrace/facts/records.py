"""An event as a record of the log.

    key      the stream
    value    the event as JSON
    headers, in this order:
        tailrace.event     the type, `Opened`; of a later version `Opened.2`
        tailrace.version   the number of the event in its stream: 1, 2, 3 …
        tailrace.meta      JSON: id, command, name, cause, correlation, actor

A record in an event topic without the first header is *foreign*: it is counted, and nothing
else. A new owner of a partition begins with a *fence*: a record with the header
`tailrace.fence` in a transaction that is aborted, so that no reader sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tailrace.records.batch import Headers, assemble
from tailrace.records.encode import varint
from tailrace.records.event_headers import EVENT, META, VERSION
from tailrace.records.header import HEADER_BYTES

FENCE = "tailrace.fence"
_SMALL = [varint(number) for number in range(4096)]


def _sized(data: bytes) -> bytes:
    length = len(data)
    return (_SMALL[length] if length < 4096 else varint(length)) + data


_EVENT = varint(3) + _sized(EVENT.encode())
_KINDS: dict[bytes, bytes] = {}
"""By type, what stands before the number of an event: the same bytes in every record."""
_VERSION, _META = _sized(VERSION.encode()), _sized(META.encode())


class Meta(msgspec.Struct, frozen=True, gc=False):
    """What the header `tailrace.meta` holds."""

    id: str
    command: str
    name: str | None = None
    cause: str | None = None
    correlation: str | None = None
    actor: str | None = None


encode_meta = msgspec.json.Encoder().encode
decode_meta = msgspec.json.Decoder(Meta).decode


class CommandOf(msgspec.Struct, frozen=True, gc=False):
    """Of the meta data, what a record must have to be an event."""

    command: str


decode_command = msgspec.json.Decoder(CommandOf).decode
decode_commands = msgspec.json.Decoder(list[CommandOf]).decode


class Stored(NamedTuple):
    """One event as it stands in the log."""

    offset: int
    timestamp: int
    stream: str
    kind: str
    """As the header says it: `Opened` or `Opened.2`."""
    version: int
    meta: bytes
    value: bytes


def parse_record(
    offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers
) -> Stored | None:
    """The event of a record; None if it is foreign."""
    if key is None or value is None or len(headers) < 3 or headers[0][0] != EVENT:
        return None
    (_, kind), (second, number), (third, meta) = headers[:3]
    if kind is None or number is None or meta is None or (second, third) != (VERSION, META):
        return None
    try:
        return Stored(
            offset, timestamp, key.decode(), kind.decode("ascii"), int(number), meta, value
        )
    except ValueError:
        return None


LONGEST_STREAM = 480
LONGEST_COMMAND_ID = 480


def is_stream(key: bytes) -> bool:
    """Whether a key can be a stream of ours; what another program wrote may be anything."""
    return 0 < len(key) <= LONGEST_STREAM and 0 not in key


class BatchOfEvents:
    """Records of one batch as they are added; `encode` makes the batch."""

    __slots__ = ("_parts", "count", "size_bytes", "timestamp")

    def __init__(self, timestamp: int) -> None:
        self.timestamp = timestamp
        self.count = 0
        self.size_bytes = HEADER_BYTES
        self._parts: list[bytes] = []

    def extend(self, records: Sequence[bytes]) -> None:
        """Add records that `encode_record` made for the places from `count` on."""
        self._parts += records
        self.count += len(records)
        self.size_bytes += sum(map(len, records))

    def encode(self, producer_id: int, producer_epoch: int, base_sequence: int) -> bytearray:
        """The batch, under these numbers."""
        return assemble(
            b"".join(self._parts),
            count=self.count,
            last_offset_delta=self.count - 1,
            attributes=0,
            base_timestamp=self.timestamp,
            max_timestamp=self.timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )


def encode_record(
    place: int, stream: bytes, kind: bytes, version: int, meta: bytes, value: bytes
) -> bytes:
    """One record of a batch, at this place in it; all of a batch have its time."""
    number = b"%d" % version
    headers = _KINDS.get(kind)
    if headers is None:
        headers = _EVENT + _sized(kind) + _VERSION
        if len(_KINDS) < 4096:
            _KINDS[kind] = headers
    if len(value) < 4096 and len(meta) < 4096 and place < 4096:
        body = b"".join(
            (
                b"\x00\x00",  # attributes, time delta
                _SMALL[place],
                _SMALL[len(stream)],
                stream,
                _SMALL[len(value)],
                value,
                headers,
                _SMALL[len(number)],
                number,
                _META,
                _SMALL[len(meta)],
                meta,
            )
        )
        return (_SMALL[len(body)] if len(body) < 4096 else varint(len(body))) + body
    body = b"".join(
        (
            b"\x00\x00",
            varint(place),
            _sized(stream),
            _sized(value),
            headers,
            _sized(number),
            _META,
            _sized(meta),
        )
    )
    return _sized(body)
