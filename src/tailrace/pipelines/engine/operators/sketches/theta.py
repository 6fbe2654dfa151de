"""Theta sketches: how many different values there are, and set operations on such counts.

A sketch keeps the smallest hashes of the values it has seen, `theta` is the bound below which
it knows them all, and count / theta estimates how many there are. With `size` (a power of two)
hashes at most the estimate is good to about 1 / sqrt(size); up to `size` values it is exact.
What is kept depends on the set of values alone, not on their order or on how they were split.

The bytes are those of Apache DataSketches and of Spark's `theta_*` functions (hashes are the
upper 63 bits of Murmur3 with seed 9001), little-endian:

    preamble longs u8, version u8, family u8 = 3, entry bits u8 or 0, bytes of count u8 or 0,
    flags u8, hash of the seed u16
    version 3   count u32 and 1.0 f32 (unless empty or one hash), theta u64 (if below 1), hashes
    version 4   theta u64 (if below 1), count, differences of the sorted hashes, packed
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.pipelines.errors import SketchError

ONE = (1 << 63) - 1  # theta of a sketch that knows all hashes
SEED_HASH = b"\xcc\x93"
LOG_SIZE = 12
_SEED = 9001
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_EMPTY, _ORDERED, _SINGLE = 0x04, 0x1A, 0x3A  # flags
_FAMILIES = {3: "theta", 9: "tuple"}


def hash_bytes(data: bytes) -> int:
    """The hash of a text or of bytes: 63 bits of Murmur3 (x64, 128)."""
    first = second = _SEED
    whole = len(data) // 16 * 16
    for one, two in struct.iter_unpack("<QQ", data[:whole]):
        first = _rotate(first ^ _scatter(one, _C1, 31, _C2), 27) + second & _MASK
        first = first * 5 + 0x52DCE729 & _MASK
        second = _rotate(second ^ _scatter(two, _C2, 33, _C1), 31) + first & _MASK
        second = second * 5 + 0x38495AB5 & _MASK
    rest = data[whole:]
    if len(rest) > 8:
        second ^= _scatter(int.from_bytes(rest[8:], "little"), _C2, 33, _C1)
    if rest:
        first ^= _scatter(int.from_bytes(rest[:8], "little"), _C1, 31, _C2)
    first, second = first ^ len(data), second ^ len(data)
    first = first + second & _MASK
    second = second + first & _MASK
    return (_avalanche(first) + _avalanche(second) & _MASK) >> 1


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _scatter(word: int, before: int, bits: int, after: int) -> int:
    return _rotate(word * before & _MASK, bits) * after & _MASK


def _avalanche(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33


def hash_words(words: np.ndarray) -> np.ndarray:
    """The hashes of values of 8 bytes each, given as u64: `hash_bytes`, all at once."""

    def avalanche(value: np.ndarray) -> np.ndarray:
        value = (value ^ (value >> u(33))) * u(0xFF51AFD7ED558CCD)
        value = (value ^ (value >> u(33))) * u(0xC4CEB9FE1A85EC53)
        return np.asarray(value ^ (value >> u(33)))

    u = np.uint64
    mixed = words * u(_C1)
    mixed = ((mixed << u(31)) | (mixed >> u(33))) * u(_C2)
    first = (mixed ^ u(_SEED ^ 8)) + u(_SEED ^ 8)
    second = first + u(_SEED ^ 8)
    return np.asarray((avalanche(first) + avalanche(second)) >> u(1))


def hashes_of(values: Sequence[object]) -> np.ndarray:
    """The hash of each value (all of one type), 0 for what has none: the empty text, bytes
    or array. Whole numbers inside arrays have 4 bytes in `Narrow` arrays, else 8."""
    if not values:
        return np.empty(0, np.uint64)
    if isinstance(values[0], int):
        return hash_words(np.array(values, np.int64).view(np.uint64))
    if isinstance(values[0], float):
        numbers = np.array(values, np.float64) + 0.0  # no negative zero
        numbers[np.isnan(numbers)] = np.nan
        return hash_words(numbers.view(np.uint64))
    return np.array([hash_bytes(data) if data else 0 for data in map(_data, values)], np.uint64)


def _data(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    assert isinstance(value, bytes)
    return value


def packed(array: Sequence[int | None], wide: bool) -> bytes:
    """An array of INT or (`wide`) BIGINT as the bytes that are hashed; NULL counts as 0."""
    return struct.pack(f"<{len(array)}{'q' if wide else 'i'}", *(part or 0 for part in array))


@dataclass(frozen=True, slots=True, eq=False)
class Theta:
    """`hashes` are sorted and all below `theta`. `empty`: it has seen no value at all."""

    theta: int
    hashes: np.ndarray
    empty: bool

    @classmethod
    def nothing(cls) -> Theta:
        return cls(ONE, np.empty(0, np.uint64), True)

    @classmethod
    def of(cls, values: Sequence[object], log_size: int = LOG_SIZE) -> Theta:
        hashes = np.unique(hashes_of(values))
        hashes = hashes[hashes > 0]
        return _cut(ONE, hashes, 1 << log_size, not len(hashes))

    @property
    def estimate(self) -> float:
        """About how many values differ."""
        return len(self.hashes) * (2.0**63 / self.theta)

    def __bytes__(self) -> bytes:
        count, exact = len(self.hashes), self.theta == ONE
        if self.empty:
            return b"\x01\x03\x03\0\0\x1e\0\0"
        if exact and count == 1:
            return b"\x01\x03\x03\0\0" + bytes([_SINGLE]) + SEED_HASH + self.hashes.tobytes()
        if not count:
            head = b"\x03\x03\x03\0\0" + bytes([_ORDERED]) + SEED_HASH
            return head + struct.pack("<IfQ", 0, 1.0, self.theta)
        steps = np.diff(self.hashes, prepend=np.uint64(0))
        bits = int(np.bitwise_or.reduce(steps)).bit_length()
        width = (count.bit_length() + 7) // 8
        head = bytes([1 if exact else 2, 4, 3, bits, width, _ORDERED]) + SEED_HASH
        if not exact:
            head += self.theta.to_bytes(8, "little")
        text = "".join(format(step, f"0{bits}b") for step in steps.tolist())
        text += "0" * (-len(text) % 8)
        return head + count.to_bytes(width, "little") + int(text, 2).to_bytes(len(text) // 8)

    @classmethod
    def from_bytes(cls, data: bytes) -> Theta:
        version = check_family(data, 3)
        if data[5] & _EMPTY:
            return cls.nothing()
        longs = data[0] & 0x3F
        check_seed(data, "theta")
        if version == 4:
            theta, hashes = _unpacked(data, longs)
        elif version == 3:
            theta, hashes = _plain(data, longs)
        else:
            raise unreadable("theta", f"version {version}")
        if hashes.size and int(hashes[-1]) >= theta and longs > 1:
            hashes = hashes[hashes < theta]
        return cls(theta, hashes, not hashes.size and theta == ONE)


def check_family(data: bytes, family: int) -> int:
    """The version of a sketch's bytes, if they are of this family."""
    name = _FAMILIES[family]
    if len(data) < 8 or not data[0] & 0x3F:
        raise unreadable(name, f"{len(data)} bytes")
    if data[2] != family:
        raise unreadable(name, f"it is a {_FAMILIES.get(data[2], 'sketch of another kind')}")
    return data[1]


def check_seed(data: bytes, name: str) -> None:
    if data[6:8] != SEED_HASH:
        raise unreadable(name, "it was made with another seed than 9001")


def _plain(data: bytes, longs: int) -> tuple[int, np.ndarray]:
    if longs == 1:
        return ONE, _words(data, 8, 1)
    if longs > 3 or len(data) < longs * 8:
        raise unreadable("theta", f"{len(data)} bytes")
    count = int.from_bytes(data[8:12], "little")
    theta = int.from_bytes(data[16:24], "little") if longs > 2 else ONE
    return theta, np.sort(_words(data, longs * 8, count))


def _words(data: bytes, start: int, count: int) -> np.ndarray:
    if len(data) < start + 8 * count:
        raise unreadable("theta", f"{len(data)} bytes for {count} hashes")
    return np.frombuffer(data, "<u8", count, start).astype(np.uint64)


def _unpacked(data: bytes, longs: int) -> tuple[int, np.ndarray]:
    bits, width, at = data[3], data[4], longs * 8
    theta = int.from_bytes(data[8:16], "little") if longs > 1 else ONE
    count = int.from_bytes(data[at : at + width], "little")
    rest = data[at + width :]
    if len(data) < at + width or not 1 <= bits <= 63 or len(rest) * 8 < count * bits:
        raise unreadable("theta", f"{len(data)} bytes for {count} hashes of {bits} bits")
    text = format(int.from_bytes(rest), f"0{len(rest) * 8}b")
    steps = [int(text[place : place + bits], 2) for place in range(0, count * bits, bits)]
    return theta, np.cumsum(np.array(steps, np.uint64), dtype=np.uint64)


def unreadable(name: str, detail: str) -> SketchError:
    return SketchError(
        f"these bytes are no {name} sketch",
        detail=detail,
        hint="was it made by another function, or cut short?",
    )


def _cut(theta: int, hashes: np.ndarray, size: int, empty: bool) -> Theta:
    if len(hashes) > size:
        theta, hashes = int(hashes[size]), hashes[:size]
    return Theta(theta, hashes, empty)


def union(sketches: Iterable[Theta], log_size: int = LOG_SIZE) -> Theta:
    """What all of them have seen together."""
    known = [sketch for sketch in sketches if not sketch.empty]
    if not known:
        return Theta.nothing()
    theta = min(sketch.theta for sketch in known)
    hashes = np.unique(np.concatenate([sketch.hashes for sketch in known]))
    return _cut(theta, hashes[hashes < theta], 1 << log_size, False)


def intersection(sketches: Sequence[Theta]) -> Theta:
    """What each of them has seen; nothing if there are none."""
    if not sketches or any(sketch.empty for sketch in sketches):
        return Theta.nothing()
    theta = min(sketch.theta for sketch in sketches)
    hashes = sketches[0].hashes
    for sketch in sketches[1:]:
        hashes = np.intersect1d(hashes, sketch.hashes, assume_unique=True)
    hashes = hashes[hashes < theta]
    return Theta(theta, hashes, not len(hashes) and theta == ONE)


def difference(left: Theta, right: Theta) -> Theta:
    """What `left` has seen and `right` has not."""
    if left.empty or right.empty:
        return left
    theta = min(left.theta, right.theta)
    hashes = np.setdiff1d(left.hashes, right.hashes, assume_unique=True)
    hashes = hashes[hashes < theta]
    return Theta(theta, hashes, not len(hashes) and theta == ONE)


def check_log_size(log_size: int) -> int:
    if not 4 <= log_size <= 26:
        raise SketchError(
            f"no sketch of 2^{log_size} entries", hint="lgNomEntries lies between 4 and 26"
        )
    return log_size
