"""Spark's count-min sketch: about how often each value came, never too few.

`depth` rows of `width` counters; a value adds to one counter of each row. Sketches of the same
shape and seed add up, counter by counter. The bytes are those of Spark's CountMinSketch,
big-endian:

    version i32 = 1, values seen i64, depth i32, width i32, a factor i64 for each row,
    the counters i64 row by row
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from tailrace.pipelines.engine.operators.sketches.hashes import murmur
from tailrace.pipelines.engine.operators.sketches.theta import unreadable

_HEAD = struct.Struct(">iqii")
_LARGEST = (1 << 31) - 1


def java_random(seed: int) -> Iterator[int]:
    """The states of Java's random numbers: 48 bits each, the upper ones are used."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)
    while True:
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        yield state


@lru_cache(64)
def factors(depth: int, seed: int) -> tuple[int, ...]:
    """A number below 2^31 - 1 for each row."""
    states = (state >> 17 for state in java_random(seed))
    return tuple(next(s for s in states if s < _LARGEST) for _ in range(depth))


class CountMin:
    """`width` = 2 / the relative error, `depth` = -log2(1 - confidence), both rounded up."""

    def __init__(self, error: float, confidence: float, seed: int) -> None:
        width = math.ceil(2 / error)
        depth = math.ceil(-math.log1p(-confidence) / math.log(2))
        self.factors = factors(depth, seed)
        self.total = 0
        self.counters = np.zeros((depth, width), np.int64)

    def add(self, value: int | str | bytes, count: int) -> None:
        self.total += count
        for row, place in enumerate(self._places(value)):
            self.counters[row, place] += count

    def _places(self, value: int | str | bytes) -> Iterator[int]:
        depth, width = self.counters.shape
        if isinstance(value, int):
            for factor in self.factors:
                mixed = _signed(factor * value, 64)
                yield (mixed + (mixed >> 32) & _LARGEST) % width
            return
        data = value.encode() if isinstance(value, str) else value
        first = _signed(murmur(data, 0), 32)
        second = _signed(murmur(data, first & 0xFFFFFFFF), 32)
        for row in range(depth):
            yield abs(_signed(first + row * second, 32)) % width

    def __bytes__(self) -> bytes:
        depth, width = self.counters.shape
        head = _HEAD.pack(1, self.total, depth, width) + struct.pack(f">{depth}q", *self.factors)
        return head + self.counters.astype(">i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> CountMin:
        if len(data) < _HEAD.size:
            raise unreadable("count-min", f"{len(data)} bytes")
        version, total, depth, width = _HEAD.unpack_from(data)
        if version != 1 or len(data) != _HEAD.size + 8 * depth * (width + 1):
            raise unreadable("count-min", f"version {version}, {len(data)} bytes")
        made = cls.__new__(cls)
        made.total, made.factors = total, struct.unpack_from(f">{depth}q", data, _HEAD.size)
        counters = np.frombuffer(data, ">i8", depth * width, _HEAD.size + 8 * depth)
        made.counters = counters.reshape(depth, width).astype(np.int64)
        return made


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half
