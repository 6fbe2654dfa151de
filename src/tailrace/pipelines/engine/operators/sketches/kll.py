"""KLL sketches: quantiles and ranks of many numbers, in a few kilobytes.

Level h holds items that stand for 2^h values each. While there is room everything stays in
level 0 and all answers are exact; a level that is full is sorted, every other item of it goes
one level up, and the rest is dropped. With `k` = 200 a rank is then good to 1.33 %.

Which half goes up is chosen by a hash of how much was seen, so equal input in equal order
gives equal bytes. They are those of Apache DataSketches and of Spark's `kll_*` functions
(there a coin decides), little-endian:

    preamble ints u8, version u8, family u8 = 15, flags u8, k u16, m u8 = 8, 0 u8
    nothing else if empty (flag 1); the item if there is one (flag 4); otherwise
    count u64, smallest k u16, levels u8, 0 u8, start of each level u32 …, least, most, items
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tailrace.pipelines.engine.operators.sketches.theta import hash_bytes, unreadable
from tailrace.pipelines.errors import SketchError
from tailrace.pipelines.values.casts import format_float, format_single

SIZE = 200
_SMALLEST = 8  # what a level holds at least: "m"
_HEAD = struct.Struct("<BBBBHBB")
_BODY = struct.Struct("<QHBB")
_EMPTY, _SORTED, _SINGLE = 1, 2, 4
_ROUNDING = 1e7  # ranks are cut to 7 digits before they are rounded up, as in DataSketches
_NAMES = {"<i8": "Longs", "<f4": "Floats", "<f8": "Doubles"}


@lru_cache(4096)
def capacity(k: int, levels: int, height: int) -> int:
    """How many items a level may hold."""
    depth = levels - height - 1
    return max(_SMALLEST, ((2 * k << depth) // int(3**depth) + 1) // 2)


@lru_cache(1024)
def room(k: int, levels: int) -> int:
    return sum(capacity(k, levels, height) for height in range(levels))


@dataclass(slots=True)
class Kll:
    """`kind` is numpy's name of the item type. Levels above 0 are sorted."""

    kind: str
    k: int = SIZE
    count: int = 0
    smallest_k: int = 0
    levels: list[np.ndarray] = field(default_factory=list)
    least: float = 0
    most: float = 0

    def __post_init__(self) -> None:
        self.smallest_k = self.smallest_k or self.k
        self.levels = self.levels or [np.empty(0, self.kind)]

    @property
    def retained(self) -> int:
        return sum(map(len, self.levels))

    def update(self, values: Sequence[float], counts: Sequence[int] | None = None) -> None:
        """Take in values, each so many times; NaN is passed over."""
        items = np.array(values, self.kind)
        if counts is not None:
            items = np.repeat(items, counts)
        if self.kind != "<i8":
            items = items[~np.isnan(items)]
        if not len(items):
            return
        self._widen(items.min().item(), items.max().item())
        at = 0
        while at < len(items):
            free = room(self.k, len(self.levels)) - self.retained
            if free <= 0:
                self._compact()
                continue
            part = items[at : at + free]
            self.levels[0] = np.concatenate((self.levels[0], part))
            self.count += len(part)
            at += free

    def merge(self, other: Kll) -> None:
        if not other.count:
            return
        self._widen(other.least, other.most)
        if len(other.levels) > 1:  # it has dropped items: its error is ours from now on
            self.smallest_k = min(self.smallest_k, other.smallest_k)
        for height, items in enumerate(other.levels):
            if height == len(self.levels):
                self.levels.append(np.empty(0, self.kind))
            joined = np.concatenate((self.levels[height], items))
            self.levels[height] = np.sort(joined) if height else joined
        self.count += other.count
        while self.retained > room(self.k, len(self.levels)):
            self._compact()

    def _widen(self, least: float, most: float) -> None:
        self.least = min(self.least, least) if self.count else least
        self.most = max(self.most, most) if self.count else most

    def _compact(self) -> None:
        """Halve the lowest level that is full."""
        many = len(self.levels)
        height = next(h for h in range(many) if len(self.levels[h]) >= capacity(self.k, many, h))
        if height == many - 1:
            self.levels.append(np.empty(0, self.kind))
        items = self.levels[height] if height else np.sort(self.levels[0])
        odd = len(items) % 2
        first = hash_bytes(struct.pack("<QQ", self.count, height)) & 1
        upper = np.concatenate((self.levels[height + 1], items[odd + first :: 2]))
        self.levels[height + 1] = np.sort(upper)
        self.levels[height] = items[:odd]

    def __bytes__(self) -> bytes:
        if not self.count:
            return _HEAD.pack(2, 1, 15, _EMPTY, self.k, _SMALLEST, 0)
        if self.count == 1:
            head = _HEAD.pack(2, 2, 15, _SINGLE, self.k, _SMALLEST, 0)
            return head + self.levels[0].tobytes()
        head = _HEAD.pack(5, 1, 15, 0, self.k, _SMALLEST, 0)
        many = len(self.levels)
        starts = np.cumsum([room(self.k, many) - self.retained, *map(len, self.levels[:-1])])
        ends = np.array([self.least, self.most], self.kind)
        body = _BODY.pack(self.count, self.smallest_k, many, 0) + starts.astype("<u4").tobytes()
        return b"".join((head, body, ends.tobytes(), *(one.tobytes() for one in self.levels)))

    @classmethod
    def from_bytes(cls, data: bytes, kind: str) -> Kll:
        if len(data) < _HEAD.size:
            raise unreadable("KLL", f"{len(data)} bytes")
        _, version, family, flags, k, smallest, _ = _HEAD.unpack_from(data)
        if family != 15 or version not in (1, 2) or smallest != _SMALLEST or k < _SMALLEST:
            raise unreadable("KLL", f"family {family}, version {version}, k {k}")
        made = cls(kind, k)
        if flags & _EMPTY:
            return made
        if flags & _SINGLE:
            made.levels = [_items(data, kind, _HEAD.size, 1)]
            made.count, made.least = 1, made.levels[0][0].item()
            made.most = made.least
            return made
        if len(data) < _HEAD.size + _BODY.size:
            raise unreadable("KLL", f"{len(data)} bytes")
        made.count, made.smallest_k, many, _ = _BODY.unpack_from(data, _HEAD.size)
        at = _HEAD.size + _BODY.size
        starts = [*_items(data, "<u4", at, many).tolist(), room(k, many)] if many else []
        if not many or many > 60 or sorted(starts) != starts:
            raise unreadable("KLL", f"{many} levels")
        at += 4 * many
        ends = _items(data, kind, at, 2)
        made.least, made.most = ends.tolist()
        items = _items(data, kind, at + 2 * ends.itemsize, starts[-1] - starts[0])
        if len(data) != at + items.nbytes + ends.nbytes:
            raise unreadable("KLL", f"{len(data)} bytes for {len(items)} items")
        edges = [start - starts[0] for start in starts]
        made.levels = [items[a:b] for a, b in pairwise(edges)]
        if sum(len(one) << height for height, one in enumerate(made.levels)) != made.count:
            raise unreadable("KLL", f"its levels do not hold {made.count} values")
        return made

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """All items in order, and how many values lie at or below each. The least and the
        most stand for one value each where they were dropped."""
        items = np.concatenate(self.levels)
        weights = np.repeat(
            np.array([1 << height for height in range(len(self.levels))], np.int64),
            [len(one) for one in self.levels],
        )
        order = np.argsort(items, kind="stable")
        items, below = items[order], np.cumsum(weights[order])
        if items[-1] != self.most:
            below[-1] -= 1
            items, below = np.append(items, self.most), np.append(below, self.count)
        if items[0] != self.least:
            items, below = np.insert(items, 0, self.least), np.insert(below, 0, 1)
        return items.astype(self.kind), below

    def quantiles(self, shares: Iterable[float]) -> list[float]:
        """For each share the value at or below which so much of all lies."""
        items, below = self._sorted()
        found = []
        for share in shares:
            rank = share * self.count
            if self.count <= _ROUNDING:
                rank = math.floor(rank * _ROUNDING + 0.5) / _ROUNDING
            place = int(np.searchsorted(below, math.ceil(rank)))
            found.append(items[min(place, len(items) - 1)].item())
        return found

    def ranks(self, values: Iterable[float]) -> list[float]:
        """For each value the share of all that lies at or below it."""
        items, below = self._sorted()
        found = []
        for value in values:
            place = int(np.searchsorted(items, np.array(value, self.kind), side="right"))
            found.append(int(below[place - 1]) / self.count if place else 0.0)
        return found

    def describe(self) -> str:
        """The summary that DataSketches prints."""
        many, retained = len(self.levels), self.retained
        whole = room(self.k, many)
        width = np.dtype(self.kind).itemsize

        def shown(end: float) -> str:
            if not self.count or self.kind == "<i8":
                return str(end) if self.count else "NaN"
            return format_single(end) if self.kind == "<f4" else format_float(end)

        lines = [
            ("K", self.k),
            ("Dynamic min K", self.smallest_k),
            ("M", _SMALLEST),
            ("N", self.count),
            ("Epsilon", f"{100 * 2.296 / self.smallest_k**0.9723:.3f}%"),
            ("Epsilon PMF", f"{100 * 2.446 / self.smallest_k**0.9433:.3f}%"),
            ("Empty", str(not self.count).lower()),
            ("Estimation Mode", str(many > 1).lower()),
            ("Levels", many),
            ("Level 0 Sorted", "false"),
            ("Capacity Items", whole),
            ("Retained Items", retained),
            ("Free Space", whole - retained),
            ("ReadOnly", "false"),
            ("Updatable Storage Bytes", 20 + 4 * (many + 1) + (whole + 2) * width),
            ("Compact Storage Bytes", len(bytes(self))),
            ("Min Item", shown(self.least)),
            ("Max Item", shown(self.most)),
        ]
        body = "".join(f"   {name:<23}: {value}\n" for name, value in lines)
        title = f"### KllKll{_NAMES[self.kind]}Sketch Summary:"
        return f"\n{title}\n{body}### End sketch summary\n"


def merged(sketches: Iterable[Kll], kind: str, k: int | None = None) -> Kll:
    """All of them together, with the smallest of their `k` where none is given."""
    known = list(sketches)
    made = Kll(kind, k or min((one.k for one in known), default=SIZE))
    for one in known:
        made.merge(one)
    return made


def _items(data: bytes, kind: str, at: int, count: int) -> np.ndarray:
    width = np.dtype(kind).itemsize
    if len(data) < at + width * count:
        raise unreadable("KLL", f"{len(data)} bytes for {count} items of {width} bytes")
    return np.frombuffer(data, kind, count, at)


def check_share(share: float) -> float:
    if not 0 <= share <= 1:
        raise SketchError(f"{share} is no share", hint="it lies between 0.0 and 1.0")
    return share
