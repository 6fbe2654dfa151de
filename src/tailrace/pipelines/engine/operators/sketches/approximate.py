"""Approximate aggregates: sketches where rows only come, exact values where they also go.

Nothing can be taken out of a sketch. So the compiler looks at the input of a group:

- *It only grows* (a stream, filtered, projected, joined with streams or constants): the
  group keeps one sketch per aggregate, of fixed size, and merges each tick into it.
- *Rows can be taken back* (a table, another aggregate, a clock): the group keeps its values
  with their counts, as for `percentile`. The number shown is then exact, and a
  sketch that is shown is made anew from the values that are left.

    "s" + number + key -> the sketch's bytes
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa

from tailrace.pipelines.engine.operators.aggregates import Aggregate, Values
from tailrace.pipelines.engine.operators.sketches import kinds
from tailrace.pipelines.engine.operators.sketches.rule import SketchRule
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values import sketches
from tailrace.pipelines.values.keys import bounded
from tailrace.pipelines.values.rows import physical
from tailrace.pipelines.values.types import is_float

_KEY_LIMIT = 200


class ApproxCountDistinct(SketchRule):
    def new(self) -> sketches.Distinct:
        return sketches.Distinct(cast(int, self.parameters[0]))

    def load(self, data: bytes) -> sketches.Distinct:
        return sketches.Distinct.from_bytes(data)

    def finish(self, sketch: sketches.Distinct | None) -> object:
        return 0 if sketch is None else sketch.estimate

    def exactly(self, values: Values) -> object:
        return len({value for value, _ in values})


class HllSketch(SketchRule):
    def new(self) -> sketches.Distinct:
        return sketches.Distinct(cast(int, self.parameters[0]))

    def load(self, data: bytes) -> sketches.Distinct:
        return sketches.Distinct.from_bytes(data)

    def add(self, sketch: sketches.Distinct, values: Values) -> sketches.Distinct:
        sketch.update(value for value, _ in values if value != "")  # Spark's passes it over
        return sketch

    def finish(self, sketch: sketches.Distinct | None) -> object:
        return bytes(self.new() if sketch is None else sketch)


class ApproxPercentile(SketchRule):
    def new(self) -> sketches.Quantiles:
        return sketches.Quantiles(cast(int, self.parameters[1]))

    def load(self, data: bytes) -> sketches.Quantiles:
        return sketches.Quantiles.from_bytes(data)

    def add(self, sketch: sketches.Quantiles, values: Values) -> sketches.Quantiles:
        sketch.update(cast(float, value) for value, count in values for _ in range(count))
        return sketch

    def finish(self, sketch: sketches.Quantiles | None) -> object:
        return self._shaped(lambda share: None if sketch is None else sketch.quantile(share))

    def exactly(self, values: Values) -> object:
        total = sum(count for _, count in values)

        def pick(share: float) -> object:
            left = max(0, math.ceil(share * total) - 1)
            for value, count in values:
                if left < count:
                    return value
                left -= count
            return None

        return self._shaped(pick)

    def _shaped(self, pick: Callable[[float], object]) -> object:
        shares = self.parameters[0]
        if isinstance(shares, tuple):
            found = [self._typed(pick(share)) for share in shares]
            return None if None in found else tuple(found)
        return self._typed(pick(cast(float, shares)))

    def _typed(self, value: object) -> object:
        return value if value is None or is_float(self.argument) else round(cast(float, value))


class BloomFilter(SketchRule):
    def new(self) -> sketches.Members:
        expected, share = self.parameters
        return sketches.Members(cast(int, expected), cast(float, share))

    def load(self, data: bytes) -> sketches.Members:
        return sketches.Members.from_bytes(data)


class Merging(SketchRule):
    """An aggregate over sketches: all of them together."""

    def __init__(self, aggregate: Aggregate, kind: type[Any]) -> None:
        super().__init__(aggregate)
        self._kind = kind

    def new(self) -> Any:
        return None

    def load(self, data: bytes) -> Any:
        return self._kind.from_bytes(data)

    def add(self, sketch: Any, values: Values) -> Any:
        for value, _ in values:
            one = self._kind.from_bytes(value)
            sketch = one if sketch is None else sketch | one
        return sketch


_RULES: dict[str, Callable[[Aggregate], SketchRule]] = {
    "approx_count_distinct": ApproxCountDistinct,
    "approx_percentile": ApproxPercentile,
    "approx_top_k": kinds.TopK,
    "approx_top_k_accumulate": kinds.TopK,
    "approx_top_k_combine": kinds.TopKCombine,
    "count_min_sketch": kinds.CountMinSketch,
    "vector_sum": kinds.Vectors,
    "vector_avg": kinds.Vectors,
    "hll_sketch_agg": HllSketch,
    **{f"kll_sketch_agg_{kind}": kinds.KllSketch for kind in ("bigint", "float", "double")},
    **{f"kll_merge_agg_{kind}": kinds.KllMerge for kind in ("bigint", "float", "double")},
    "theta_sketch_agg": kinds.ThetaSketch,
    "theta_union_agg": kinds.ThetaUnion,
    "theta_intersection_agg": kinds.ThetaIntersection,
    **{f"tuple_sketch_agg_{kind}": kinds.TupleSketch for kind in ("double", "integer")},
    **{f"tuple_union_agg_{kind}": kinds.TupleUnion for kind in ("double", "integer")},
    **{f"tuple_intersection_agg_{kind}": kinds.TupleIntersection for kind in ("double", "integer")},
    "bloom_filter_agg": BloomFilter,
    "hll_union_agg": lambda aggregate: Merging(aggregate, sketches.Distinct),
    "bloom_union_agg": lambda aggregate: Merging(aggregate, sketches.Members),
}
SKETCHED = frozenset(_RULES)


def rule_of(aggregate: Aggregate) -> SketchRule:
    return _RULES[aggregate.function](aggregate)


class Sketched:
    """The changes to one approximate aggregate in this tick, where rows only come."""

    def __init__(
        self,
        state: OperatorState,
        number: int,
        aggregate: Aggregate,
        table: pa.Table,
        keys: list[bytes],
        counts: list[int],
        used: list[object] | None,
    ) -> None:
        self._state = state
        self._rule = rule_of(aggregate)
        self._prefix = b"s%c" % number
        self._shown: dict[bytes, object] = {}
        fed: dict[bytes, dict[object, int]] = {}
        for position, value in enumerate(physical(table.column(aggregate.arguments[0]))):
            if value is None or (used is not None and used[position] is not True):
                continue
            values = fed.setdefault(keys[position], {})
            values[value] = values.get(value, 0) + counts[position]
        self._fed = fed

    def write(self, puts: list[tuple[bytes, bytes | None]]) -> None:
        rule, keys = self._rule, sorted(self._fed)
        entries = [self._prefix + bounded(key, _KEY_LIMIT) for key in keys]
        for key, entry, data in zip(keys, entries, self._state.get_many(entries), strict=True):
            sketch = rule.new() if data is None else rule.load(data)
            # In one order, so that a tick's answer depends on its rows alone.
            sketch = rule.add(
                sketch, sorted(self._fed[key].items(), key=lambda pair: repr(pair[0]))
            )
            puts.append((entry, bytes(sketch)))
            self._shown[key] = rule.finish(sketch)

    def finish(self, key: bytes, before: object) -> object:
        if key in self._shown:
            return self._shown[key]
        return self._rule.finish(None) if before is None else before
