"""Which partition a key belongs to: murmur2 as in Kafka's Java client, for any bytes."""

from __future__ import annotations

import struct

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 of `data` as an unsigned 32-bit number."""
    length = len(data)
    state = (_SEED ^ length) & _MASK
    words = length >> 2
    for word in struct.unpack_from(f"<{words}I", data):
        word = (word * _M) & _MASK
        word ^= word >> 24
        word = (word * _M) & _MASK
        state = ((state * _M) & _MASK) ^ word
    tail = data[words << 2 :]
    if tail:
        state ^= int.from_bytes(tail, "little")
        state = (state * _M) & _MASK
    state ^= state >> 13
    state = (state * _M) & _MASK
    return state ^ (state >> 15)


def partition_for(key: bytes, partitions: int) -> int:
    """The partition Kafka's default partitioner picks for a record with this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
