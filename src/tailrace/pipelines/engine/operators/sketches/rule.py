"""What an approximate aggregate must know of its sketch."""

from __future__ import annotations

from typing import Any

from tailrace.pipelines.engine.operators.aggregates import Aggregate, Values


class SketchRule:
    """How one approximate aggregate keeps, feeds and reads its sketch."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.parameters = aggregate.parameters
        self.argument = aggregate.argument_types[0]
        self.distinct = aggregate.distinct

    def new(self) -> Any:
        raise NotImplementedError

    def load(self, data: bytes) -> Any:
        raise NotImplementedError

    def add(self, sketch: Any, values: Values) -> Any:
        """Feed values with their counts; gives the sketch to go on with."""
        sketch.update(value for value, _ in values)
        return sketch

    def finish(self, sketch: Any) -> object:
        """What the view shows; `sketch` is None where there was no value."""
        return None if sketch is None else bytes(sketch)

    def exactly(self, values: Values) -> object:
        """What the view shows of all values, where they are kept."""
        if self.distinct:
            values = [(value, 1) for value, _ in values]
        return self.finish(self.add(self.new(), values) if values else None)
