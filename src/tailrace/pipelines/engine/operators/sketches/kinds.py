"""Aggregates that make or merge sketches (see the other modules of this room).

A group without values shows an empty sketch, as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from tailrace.pipelines.engine.operators.aggregates import Aggregate, Values
from tailrace.pipelines.engine.operators.sketches import frequent, kll, theta, tuples
from tailrace.pipelines.engine.operators.sketches.count_min import CountMin
from tailrace.pipelines.engine.operators.sketches.frequent import Frequent
from tailrace.pipelines.engine.operators.sketches.kll import Kll
from tailrace.pipelines.engine.operators.sketches.rule import SketchRule
from tailrace.pipelines.engine.operators.sketches.theta import Theta
from tailrace.pipelines.engine.operators.sketches.tuples import Tuples
from tailrace.pipelines.engine.operators.sketches.vectors import VectorSum
from tailrace.pipelines.errors import SketchError
from tailrace.pipelines.values.rows import physical, thaw_part


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


class CountMinSketch(SketchRule):
    """Parameters: relative error, confidence, seed."""

    def new(self) -> CountMin:
        error, confidence, seed = self.parameters
        return CountMin(cast(float, error), cast(float, confidence), cast(int, seed))

    def load(self, data: bytes) -> CountMin:
        return CountMin.from_bytes(data)

    def add(self, sketch: CountMin, values: Values) -> CountMin:
        for value, count in values:
            sketch.add(cast("int | str | bytes", value), count)
        return sketch

    def finish(self, sketch: CountMin | None) -> object:
        return bytes(self.new() if sketch is None else sketch)


class Vectors(SketchRule):
    """vector_sum, vector_avg. Parameter: whether the mean is wanted."""

    def new(self) -> VectorSum:
        return VectorSum()

    def load(self, data: bytes) -> VectorSum:
        return VectorSum.from_bytes(data)

    def add(self, sketch: VectorSum, values: Values) -> VectorSum:
        for value, count in values:
            sketch.add(cast("tuple[float | None, ...]", value), count)
        return sketch

    def finish(self, sketch: VectorSum | None) -> object:
        return None if sketch is None else sketch.shown(cast(bool, self.parameters[0]))


class TopK(SketchRule):
    """approx_top_k, over structs of one item, so that NULLs count too. Parameters: how many to
    show (None: the sketch itself, approx_top_k_accumulate), how many to track."""

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self.kind = self.argument.field(0).type
        self.shown, self.items = cast("tuple[int | None, int]", self.parameters)

    def new(self) -> Frequent:
        return Frequent(self.kind, self.items)

    def load(self, data: bytes) -> Frequent:
        return Frequent.from_bytes(data, self.kind)

    def add(self, sketch: Frequent, values: Values) -> Frequent:
        sketch.update((self._item(value), count) for value, count in values)
        return sketch

    def _item(self, value: object) -> object:
        return thaw_part(cast("tuple[Any, ...]", value)[1][1], self.kind)

    def finish(self, sketch: Frequent | None) -> object:
        sketch = self.new() if sketch is None else sketch
        if self.shown is None:
            return frequent.state_of(sketch, self.items)
        top = [{"item": item, "count": count} for item, count in sketch.top(self.shown)]
        return physical(pa.array([top], frequent.top_type(self.kind)))[0]

    def exactly(self, values: Values) -> object:
        if self.shown is None:
            return super().exactly(values)
        whole = Frequent(self.kind, max(len(values), self.items))
        return self.finish(self.add(whole, values))


class TopKCombine(TopK):
    """Over what approx_top_k_accumulate gives. Parameter: how many to track, or None for as
    many as all of the sketches do."""

    def __init__(self, aggregate: Aggregate) -> None:
        SketchRule.__init__(self, aggregate)
        self.kind = self.argument.field(2).type
        self.wanted = cast("int | None", self.parameters[0])
        self.items, self.shown = self.wanted or frequent.ITEMS, None

    def new(self) -> tuple[int, Frequent] | None:  # type: ignore[override]
        return None

    def load(self, data: bytes) -> _Combined:  # type: ignore[override]
        return _Combined(int.from_bytes(data[:4]), Frequent.from_bytes(data[4:], self.kind))

    def add(self, sketch: _Combined | None, values: Values) -> _Combined:  # type: ignore[override]
        for value, count in values:
            parts = [part for _, part in cast("tuple[Any, ...]", value)[1:]]
            data, items = cast("tuple[bytes, int]", parts[:2])
            if sketch is None:
                size = self.wanted or items
                sketch = _Combined(size, Frequent(self.kind, size))
            if self.wanted is None and items != sketch.items:
                raise SketchError(
                    f"sketches of {sketch.items} and of {items} items",
                    hint="give approx_top_k_combine how many to track",
                )
            for _ in range(count):
                sketch.sketch.merge(Frequent.from_bytes(data, self.kind))
        assert sketch is not None
        return sketch

    def finish(self, sketch: _Combined | None) -> object:  # type: ignore[override]
        if sketch is None:
            return frequent.state_of(Frequent(self.kind, self.items), self.items)
        return frequent.state_of(sketch.sketch, sketch.items)

    def exactly(self, values: Values) -> object:
        return SketchRule.exactly(self, values)


@dataclass(frozen=True, slots=True)
class _Combined:
    """How many items the sketches track, and all of them together."""

    items: int
    sketch: Frequent

    def __bytes__(self) -> bytes:
        return self.items.to_bytes(4) + bytes(self.sketch)
