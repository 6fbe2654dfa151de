"""Control records: how a transaction's end stands in the log.

A marker is a control batch of one record. Key: version int16 (0), type int16 (0 abort,
1 commit). Value: version int16 (0), coordinator epoch int32.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tailrace.records.decode import decode_raw
from tailrace.records.encode import encode_columns
from tailrace.records.errors import InvalidRecordError
from tailrace.records.header import Buffer

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
ABORT, COMMIT = 0, 1


class Marker(NamedTuple):
    """What one control batch says."""

    commit: bool
    coordinator_epoch: int


def encode_marker(
    commit: bool,
    producer_id: int,
    epoch: int,
    coordinator_epoch: int,
    *,
    timestamp: int = 0,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """The control batch that ends a transaction of `producer_id`."""
    return encode_columns(
        [_KEY.pack(0, COMMIT if commit else ABORT)],
        [_VALUE.pack(0, coordinator_epoch)],
        timestamp,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=True,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def decode_marker(batch: Buffer, position: int = 0) -> Marker | None:
    """What the control batch at `position` says.

    None for a control type we do not know, and for a batch the cleaner has emptied.
    """
    for record in decode_raw(batch, position):
        if record.key is None or len(record.key) < 4:
            raise InvalidRecordError("a control record has no type")
        kind = _KEY.unpack_from(record.key)[1]
        if kind not in (ABORT, COMMIT):
            return None
        epoch = -1
        if record.value is not None and len(record.value) >= 6:
            epoch = _VALUE.unpack_from(record.value)[1]
        return Marker(kind == COMMIT, epoch)
    return None
