"""Aggregates that make or merge theta, tuple and KLL sketches (see `library`).

A group without values shows an empty sketch, as in Spark.
"""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from tailrace.pipelines.incremental.library import kll, theta, tuples
from tailrace.pipelines.incremental.library.kll import Kll
from tailrace.pipelines.incremental.library.theta import Theta
from tailrace.pipelines.incremental.library.tuples import Tuples
from tailrace.pipelines.incremental.operators.aggregates import Aggregate, Values
from tailrace.pipelines.incremental.operators.sketch_rule import SketchRule


def hashable(kind: pa.DataType, value: object) -> object:
    """A value in the form in which it is hashed: arrays as bytes."""
    if not pa.types.is_list(kind):
        return value
    array = cast("tuple[int | None, ...]", value)
    return theta.packed(array, kind.value_type == pa.int64())


class ThetaSketch(SketchRule):
    """Parameter: the logarithm of the size."""

    def new(self) -> Theta:
        return Theta.nothing()

    def load(self, data: bytes) -> Theta:
        return Theta.from_bytes(data)

    def add(self, sketch: Theta, values: Values) -> Theta:
        log_size = cast(int, self.parameters[0])
        fresh = Theta.of([hashable(self.argument, value) for value, _ in values], log_size)
        return fresh if sketch.empty else theta.union((sketch, fresh), log_size)

    def finish(self, sketch: Theta | None) -> object:
        return bytes(sketch or Theta.nothing())


class ThetaUnion(ThetaSketch):
    def add(self, sketch: Theta, values: Values) -> Theta:
        known = [Theta.from_bytes(cast(bytes, value)) for value, _ in values]
        return theta.union([sketch, *known], cast(int, self.parameters[0]))


class ThetaIntersection(ThetaSketch):
    def new(self) -> Theta | None:  # type: ignore[override]
        return None

    def add(self, sketch: Theta | None, values: Values) -> Theta:
        known = [Theta.from_bytes(cast(bytes, value)) for value, _ in values]
        return theta.intersection(known if sketch is None else [sketch, *known])


class TupleSketch(SketchRule):
    """Over structs of a key and its number. Parameters: whether the numbers are whole, the
    mode, and (not for intersections) the logarithm of the size."""

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self.whole = cast(bool, self.parameters[0])
        self.mode = cast(str, self.parameters[1])
        self.log_size = cast(int, self.parameters[2])

    def new(self) -> Tuples:
        return Tuples.nothing(self.whole)

    def load(self, data: bytes) -> Tuples:
        return Tuples.from_bytes(data, self.whole)

    def add(self, sketch: Tuples, values: Values) -> Tuples:
        keys: list[object] = []
        numbers: list[float] = []
        kind = self.argument.field("key").type
        for pair, count in values:
            (_, key), (_, number) = cast("tuple[Any, ...]", pair)[1:]
            keys.append(hashable(kind, key))
            # So often the same number: only a sum can tell.
            numbers.append(number * count if self.mode == "sum" else number)
        fresh = Tuples.of(keys, numbers, self.mode, self.whole)
        if not sketch.empty:
            fresh = tuples.union((sketch, fresh), self.mode, 62, self.whole)
        return fresh.settled(self.log_size)

    def finish(self, sketch: Tuples | None) -> object:
        return bytes(sketch or Tuples.nothing(self.whole))


class TupleUnion(TupleSketch):
    def add(self, sketch: Tuples, values: Values) -> Tuples:
        known = [self.load(cast(bytes, value)) for value, count in values for _ in range(count)]
        return tuples.union([sketch, *known], self.mode, self.log_size, self.whole)


class TupleIntersection(TupleSketch):
    def new(self) -> Tuples | None:  # type: ignore[override]
        return None

    def add(self, sketch: Tuples | None, values: Values) -> Tuples:
        known = [self.load(cast(bytes, value)) for value, count in values for _ in range(count)]
        if sketch is not None:
            known.insert(0, sketch)
        return tuples.intersection(known, self.mode, self.whole)


class KllSketch(SketchRule):
    """Parameters: numpy's name of the item type, and `k`."""

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self.kind = cast(str, self.parameters[0])
        self.k = cast("int | None", self.parameters[1])

    def new(self) -> Kll:
        return Kll(self.kind, self.k or kll.SIZE)

    def load(self, data: bytes) -> Kll:
        return Kll.from_bytes(data, self.kind)

    def add(self, sketch: Kll, values: Values) -> Kll:
        items = cast("list[tuple[float, int]]", values)
        sketch.update([value for value, _ in items], [count for _, count in items])
        return sketch

    def finish(self, sketch: Kll | None) -> object:
        return bytes(self.new() if sketch is None else sketch)


class KllMerge(KllSketch):
    """`k` is None where the sketches have it."""

    def new(self) -> Kll | None:  # type: ignore[override]
        return None

    def add(self, sketch: Kll | None, values: Values) -> Kll:
        known = [self.load(cast(bytes, value)) for value, count in values for _ in range(count)]
        if sketch is not None:
            known.insert(0, sketch)
        return kll.merged(known, self.kind, self.k)

    def finish(self, sketch: Kll | None) -> object:
        return bytes(Kll(self.kind, self.k or kll.SIZE) if sketch is None else sketch)
