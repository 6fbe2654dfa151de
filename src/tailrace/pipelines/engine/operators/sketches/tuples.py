"""Tuple sketches: theta sketches (see `theta`) whose hashes carry a number each.

The number (a "summary") of a value that came several times is the sum, the least or the most
of what came with it, or always one. A sketch made of values keeps up to 15/8 of its `size`
exactly; beyond that, the `size` smallest hashes. The bytes are those of Apache DataSketches and
of Spark's `tuple_*` functions, little-endian; hashes are written in order:

    preamble longs u8, version u8 = 3, family u8 = 9, compact u8 = 1, 0 u8, flags u8,
    hash of the seed u16, count u32 and 0 u32 (unless empty or one hash), theta u64 (if below 1)
    then of each its hash u64, its number f64 or i32, its mode u8
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tailrace.pipelines.engine.operators.sketches.theta import (
    ONE,
    SEED_HASH,
    Theta,
    check_family,
    check_seed,
    hashes_of,
    unreadable,
)
from tailrace.pipelines.errors import SketchError

MODES = ("sum", "min", "max", "alwaysone")
Entry = tuple[float, int]  # a number, the place of its mode in MODES
_EMPTY, _COMPACT = 0x04, 0x0A
_START = {"min": math.inf, "max": -math.inf}


def combined(mode: str, values: Iterable[float], whole: bool) -> float:
    """The numbers of one value, made one. A sum of doubles is rounded once; one of integers
    wraps around at 32 bits, as in Spark."""
    if mode == "alwaysone":
        return 1 if whole else 1.0
    if mode == "sum":
        return _wrapped(int(sum(values))) if whole else exact_sum(list(values))
    best = start_of(mode, whole)
    for value in values:  # NaN is neither less nor more
        if value < best if mode == "min" else value > best:
            best = value
    return best


def _wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def exact_sum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # beyond all bounds, or inf - inf
        return sum(values)


def start_of(mode: str, whole: bool) -> float:
    """The number of a value that comes without one."""
    if whole:
        return {"sum": 0, "min": 2**31 - 1, "max": -(2**31), "alwaysone": 1}[mode]
    return {"sum": 0.0, "alwaysone": 1.0, **_START}[mode]


@dataclass(frozen=True, slots=True)
class Tuples:
    """`entries` by hash, all below `theta`; `whole`: the numbers are integers."""

    theta: int
    entries: Mapping[int, Entry]
    empty: bool
    whole: bool

    @classmethod
    def nothing(cls, whole: bool) -> Tuples:
        return cls(ONE, {}, True, whole)

    @classmethod
    def of(cls, keys: Sequence[object], numbers: Sequence[float], mode: str, whole: bool) -> Tuples:
        """All values with their numbers; nothing is dropped yet (see `settled`)."""
        found: dict[int, list[float]] = {}
        for hashed, number in zip(hashes_of(keys).tolist(), numbers, strict=True):
            if hashed:
                found.setdefault(hashed, []).append(number)
        place = MODES.index(mode)
        entries = {hashed: (combined(mode, all_, whole), place) for hashed, all_ in found.items()}
        return cls(ONE, entries, not entries, whole)

    @classmethod
    def of_theta(cls, sketch: Theta, mode: str, whole: bool) -> Tuples:
        entry = (start_of(mode, whole), MODES.index(mode))
        entries = dict.fromkeys(sketch.hashes.tolist(), entry)
        return cls(sketch.theta, entries, sketch.empty, whole)

    @property
    def rate(self) -> float:
        return self.theta / 2.0**63

    @property
    def estimate(self) -> float:
        """About how many values differ."""
        return len(self.entries) / self.rate if self.theta < ONE else float(len(self.entries))

    def settled(self, log_size: int) -> Tuples:
        """At most 15/8 of the size while nothing was dropped, afterwards at most the size."""
        most = (15 << log_size) // 8 if self.theta == ONE else 1 << log_size
        return self if len(self.entries) <= most else self.cut(1 << log_size)

    def cut(self, size: int) -> Tuples:
        """The `size` smallest hashes."""
        if len(self.entries) <= size:
            return self
        order = sorted(self.entries)
        kept = {hashed: self.entries[hashed] for hashed in order[:size]}
        return Tuples(order[size], kept, False, self.whole)

    def __bytes__(self) -> bytes:
        count, exact = len(self.entries), self.theta == ONE
        single = exact and count == 1
        longs = 1 if self.empty or single else 2 if exact else 3
        flags = _COMPACT | (_EMPTY if self.empty else 0)
        parts = [bytes([longs, 3, 9, 1, 0, flags]) + SEED_HASH]
        if longs > 1:
            parts.append(struct.pack("<II", count, 0))
        if longs > 2:
            parts.append(struct.pack("<Q", self.theta))
        form = struct.Struct("<QiB" if self.whole else "<QdB")
        parts += [form.pack(hashed, *self.entries[hashed]) for hashed in sorted(self.entries)]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes, whole: bool) -> Tuples:
        if check_family(data, 9) != 3 or data[3] != 1:
            raise unreadable("tuple", f"version {data[1]}, type {data[3]}")
        check_seed(data, "tuple")
        longs, form = data[0] & 0x3F, struct.Struct("<QiB" if whole else "<QdB")
        if data[5] & _EMPTY:
            return cls.nothing(whole)
        if longs > 3 or len(data) < 8 * longs:
            raise unreadable("tuple", f"{len(data)} bytes")
        count = int.from_bytes(data[8:12], "little") if longs > 1 else 1
        theta = int.from_bytes(data[16:24], "little") if longs > 2 else ONE
        if len(data) != 8 * longs + count * form.size:
            raise unreadable("tuple", f"{len(data)} bytes for {count} entries of {form.size}")
        rows = list(form.iter_unpack(data[8 * longs :]))
        if any(mode >= len(MODES) for _, _, mode in rows):
            raise unreadable("tuple", "an unknown mode")
        return cls(theta, {hashed: (value, mode) for hashed, value, mode in rows}, False, whole)


def union(sketches: Iterable[Tuples], mode: str, log_size: int, whole: bool) -> Tuples:
    """What all have seen together; a number only one of them has stays as it is."""
    known = [sketch for sketch in sketches if not sketch.empty]
    if not known:
        return Tuples.nothing(whole)
    theta = min(sketch.theta for sketch in known)
    entries = _grouped(known, mode, theta, whole, 1)
    return Tuples(theta, entries, False, whole).cut(1 << log_size)


def intersection(sketches: Sequence[Tuples], mode: str, whole: bool) -> Tuples:
    """What each of them has seen; nothing if there are none."""
    if not sketches or any(sketch.empty for sketch in sketches):
        return Tuples.nothing(whole)
    theta = min(sketch.theta for sketch in sketches)
    return Tuples(theta, _grouped(sketches, mode, theta, whole, len(sketches)), False, whole)


def _grouped(
    sketches: Sequence[Tuples], mode: str, theta: int, whole: bool, least: int
) -> dict[int, Entry]:
    """The entries that at least so many sketches have."""
    found: dict[int, list[Entry]] = {}
    for sketch in sketches:
        for hashed, entry in sketch.entries.items():
            if hashed < theta:
                found.setdefault(hashed, []).append(entry)
    place = MODES.index(mode)
    return {
        hashed: entries[0]
        if len(entries) == 1
        else (combined(mode, (value for value, _ in entries), whole), place)
        for hashed, entries in found.items()
        if len(entries) >= least
    }


def difference(left: Tuples, right: Theta | Tuples) -> Tuples:
    """What `left` has seen and `right` has not."""
    if left.empty or right.empty:
        return left
    theta = min(left.theta, right.theta)
    gone = set(right.hashes.tolist()) if isinstance(right, Theta) else set(right.entries)
    entries = {h: entry for h, entry in left.entries.items() if h < theta and h not in gone}
    return Tuples(theta, entries, not entries and theta == ONE, left.whole)


def summary(sketch: Tuples, mode: str) -> float:
    """The numbers of all values, made one; 0 if there are none."""
    values = [value for value, _ in sketch.entries.values()]
    if mode == "alwaysone" or not values:
        return len(values) if sketch.whole else float(len(values))
    if mode == "sum" and sketch.whole:
        return sum(values)  # as BIGINT: it does not wrap around
    if mode != "sum" and any(value != value for value in values):
        return math.nan
    return combined(mode, values, sketch.whole)


def check_mode(mode: str) -> str:
    if mode.lower() not in MODES:
        raise SketchError(f"no mode {mode!r}", hint=f"one of {', '.join(MODES)}")
    return mode.lower()
