"""Small summaries of many values: how many differ, where quantiles lie, which are frequent,
which were there.

| summary | library and form | error |
|---|---|---|
| `Distinct` | HyperLogLog of Apache DataSketches | 1.6 % with `precision` 12 (one sigma) |
| `Quantiles` | KLL of Apache DataSketches | rank within 1.7 % with `size` 200 (99 %) |
| `Frequent` | Frequent Items of Apache DataSketches | `Frequent.error` of the total weight, with bounds |
| `Members` | a Bloom filter of our own | `share` of false yes, never a false no |

Each is made with `of(values)`, merged with `a | b`, written with `bytes(a)` and read with
`from_bytes`. The bytes of the first two are those of Spark's `hll_sketch_agg` and
`kll_sketch_agg_double`, so what a stream computes in the JVM and what a view keeps merge.

A summary can only grow: nothing can be taken out of it again. Views therefore keep one only
where rows never leave (see `engine.operators.sketches.approximate`).
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tailrace.pipelines.errors import SketchError

PRECISION = 12
SIZE = 200
LOG_ITEMS = 10
_BLOOM = struct.Struct(">4sBQ")  # magic, hashes, bits
_BLOOM_MAGIC = b"TRB1"


def _library() -> Any:
    try:
        import datasketches
    except ImportError as missing:
        raise SketchError(
            "sketches need the package datasketches",
            hint="pip install 'tailrace[sketches]'",
        ) from missing
    return datasketches


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


class Distinct:
    """How many different values there were, in a few kilobytes.

    The answer depends on the set of values alone, not on their order or on how often
    each came.
    """

    def __init__(self, precision: int = PRECISION) -> None:
        self._union = _library().hll_union(precision)
        self.precision = precision

    @classmethod
    def of(cls, values: Iterable[object], precision: int = PRECISION) -> Self:
        made = cls(precision)
        made.update(values)
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        sketch = _read(_library().hll_sketch.deserialize, data, "HyperLogLog")
        made = cls(sketch.lg_config_k)
        made._union.update(sketch)
        return made

    def update(self, values: Iterable[object]) -> None:
        add = self._union.update
        for value in values:
            if value == "":
                add("\0")  # the library passes over an empty text; here it is a value
            else:
                add(value if isinstance(value, int | float | str) else _text(value))

    def __or__(self, other: Distinct) -> Distinct:
        made = Distinct(min(self.precision, other.precision))
        for one in (self, other):
            made._union.update(one._settled())
        return made

    def __bytes__(self) -> bytes:
        return bytes(self._settled().serialize_updatable())

    @property
    def estimate(self) -> int:
        """About how many values differ."""
        estimate: float = self._settled().get_estimate()
        return round(estimate)

    def bounds(self, deviations: int = 2) -> tuple[float, float]:
        """Where the true number lies, with 1, 2 or 3 standard deviations."""
        result = self._settled()
        return result.get_lower_bound(deviations), result.get_upper_bound(deviations)

    def _settled(self) -> Any:
        """The sketch without what it remembers of the order of arrival, which it forgets
        when merged: here with itself."""
        kind = _library().tgt_hll_type.HLL_8
        sketch = self._union.get_result(kind)
        union = _library().hll_union(self.precision)
        union.update(sketch)
        union.update(sketch)
        return union.get_result(kind)


class Quantiles:
    """Where the values lie: quantiles and ranks. Two runs may differ within the error."""

    def __init__(self, size: int = SIZE) -> None:
        self._sketch = _library().kll_doubles_sketch(size)

    @classmethod
    def of(cls, values: Iterable[float], size: int = SIZE) -> Self:
        made = cls(size)
        made.update(values)
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        made = cls.__new__(cls)
        made._sketch = _read(_library().kll_doubles_sketch.deserialize, data, "KLL")
        return made

    def update(self, values: Iterable[float]) -> None:
        import numpy as np

        array = np.fromiter((float(value) for value in values), dtype="f8")
        if len(array):
            self._sketch.update(array[~np.isnan(array)])

    def __or__(self, other: Quantiles) -> Quantiles:
        made = Quantiles.from_bytes(bytes(self))
        made._sketch.merge(other._sketch)
        return made

    def __bytes__(self) -> bytes:
        return bytes(self._sketch.serialize())

    @property
    def count(self) -> int:
        """How many values it has seen."""
        return int(self._sketch.n)

    @property
    def error(self) -> float:
        """By how much a rank may be wrong, in 99 of 100 cases."""
        return float(self._sketch.normalized_rank_error(False))

    def quantile(self, share: float) -> float | None:
        """The value below which `share` of all lie; None if there are none."""
        return None if self._sketch.is_empty() else float(self._sketch.get_quantile(share, True))

    def rank(self, value: float) -> float | None:
        """The share of values at most `value`."""
        return None if self._sketch.is_empty() else float(self._sketch.get_rank(value, True))


@dataclass(frozen=True, slots=True)
class Heavy:
    """A frequent value: its true weight lies within [low, high]."""

    item: str
    estimate: int
    low: int
    high: int


class Frequent:
    """The values that come most often, with how often."""

    def __init__(self, log_items: int = LOG_ITEMS) -> None:
        self._sketch = _library().frequent_strings_sketch(log_items)

    @classmethod
    def of(cls, values: Iterable[object], log_items: int = LOG_ITEMS) -> Self:
        made = cls(log_items)
        made.update((value, 1) for value in values)
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        made = cls.__new__(cls)
        made._sketch = _read(_library().frequent_strings_sketch.deserialize, data, "Frequent Items")
        return made

    def update(self, pairs: Iterable[tuple[object, int]]) -> None:
        """Add values with their weights."""
        for value, weight in pairs:
            self._sketch.update(_text(value), weight)

    def __or__(self, other: Frequent) -> Frequent:
        made = Frequent.from_bytes(bytes(self))
        made._sketch.merge(other._sketch)
        return made

    def __bytes__(self) -> bytes:
        return bytes(self._sketch.serialize())

    @property
    def total(self) -> int:
        return int(self._sketch.total_weight)

    @property
    def error(self) -> float:
        """The share of the total by which an estimate may be too high."""
        return float(self._sketch.epsilon)

    def top(self, count: int) -> list[Heavy]:
        """The `count` most frequent values, the first one first."""
        found = self._sketch.get_frequent_items(
            _library().frequent_items_error_type.NO_FALSE_NEGATIVES
        )
        listed = [Heavy(item, estimate, low, high) for item, estimate, low, high in found]
        return sorted(listed, key=lambda one: (-one.estimate, one.item))[:count]


class Members:
    """Which values were there: `value in members` is never wrongly false, and wrongly true
    for about `share` of other values, up to `expected` different ones."""

    def __init__(self, expected: int = 10_000, share: float = 0.01) -> None:
        if expected < 1 or not 0 < share < 1:
            raise SketchError(
                f"no filter for {expected} values at {share}", hint="share=0.01 is one per cent"
            )
        bits = math.ceil(-expected * math.log(share) / math.log(2) ** 2 / 8) * 8
        self._hashes = max(1, round(bits / expected * math.log(2)))
        self._bits = bytearray(bits // 8)

    @classmethod
    def of(cls, values: Iterable[object], expected: int = 10_000, share: float = 0.01) -> Self:
        made = cls(expected, share)
        made.update(values)
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        made = cls.__new__(cls)
        if len(data) < _BLOOM.size or data[:4] != _BLOOM_MAGIC:
            raise _unreadable("Bloom", f"{len(data)} bytes that begin with {data[:4]!r}")
        _, made._hashes, bits = _BLOOM.unpack_from(data)
        made._bits = bytearray(data[_BLOOM.size :])
        if len(made._bits) * 8 != bits or not made._hashes:
            raise _unreadable("Bloom", f"{len(made._bits)} bytes for {bits} bits")
        return made

    def update(self, values: Iterable[object]) -> None:
        held = self._bits
        for value in values:
            for place in self._places(value):
                held[place >> 3] |= 1 << (place & 7)

    def __contains__(self, value: object) -> bool:
        return all(self._bits[place >> 3] >> (place & 7) & 1 for place in self._places(value))

    def __or__(self, other: Members) -> Members:
        if len(self._bits) != len(other._bits) or self._hashes != other._hashes:
            raise SketchError(
                "two filters of different size cannot be merged",
                detail=f"{len(self._bits) * 8} and {len(other._bits) * 8} bits",
                hint="make both with the same expected= and share=",
            )
        made = Members.from_bytes(bytes(self))
        made._bits = bytearray(a | b for a, b in zip(self._bits, other._bits, strict=True))
        return made

    def __bytes__(self) -> bytes:
        return _BLOOM.pack(_BLOOM_MAGIC, self._hashes, len(self._bits) * 8) + bytes(self._bits)

    def _places(self, value: object) -> Iterable[int]:
        data = value if isinstance(value, bytes) else _text(value).encode()
        first, second = struct.unpack("<QQ", hashlib.blake2b(data, digest_size=16).digest())
        size = len(self._bits) * 8
        return ((first + number * (second | 1)) % size for number in range(self._hashes))


def merged(sketches: Sequence[bytes | None], kind: type[Distinct | Quantiles | Frequent | Members]) -> bytes | None:  # fmt: skip
    """The bytes of all of them together; None if there are none."""
    made: Any = None
    for data in sketches:
        if data is not None:
            one = kind.from_bytes(data)
            made = one if made is None else made | one
    return None if made is None else bytes(made)


# In streams ---------------------------------------------------------------------------------
# Spark has the first three: F.approx_count_distinct, F.hll_sketch_agg, F.kll_sketch_agg_double,
# F.expr("approx_top_k(item, 10)"). It has no Bloom filter for users.


def _read(read: Any, data: bytes, kind: str) -> Any:
    try:
        return read(data)
    except (RuntimeError, ValueError, IndexError, MemoryError) as problem:
        raise _unreadable(kind, str(problem)) from problem


def _unreadable(kind: str, detail: str) -> SketchError:
    return SketchError(
        f"these bytes are no {kind} sketch",
        detail=detail,
        hint="was it made by another function, or cut short?",
    )
