"""One row becomes many: an array's elements, the windows a time falls into. No state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import WEIGHT
from tailrace.pipelines.values.rows import weighted


@dataclass(frozen=True, slots=True)
class Expand:
    """The carried `columns`, then what an element of the array `source` gives.

    `fields`: the element is a struct and gives one column per field. `position`: its place
    (from 0) comes first. `outer`: a row without elements gives one with NULLs.
    """

    source: str
    columns: tuple[str, ...]
    fields: bool
    position: bool
    outer: bool
    schema: pa.Schema
    kind: ClassVar[str] = "expand"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        outer = " outer" if self.outer else ""
        return f"expand{outer} {self.source} → {', '.join(self.schema.names)}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0].combine_chunks()
        values = table.column(self.source).combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        elements = pc.list_flatten(values)
        if self.outer:
            shown = np.maximum(lengths, 1)
            parents = np.repeat(np.arange(len(lengths)), shown)
            starts = np.repeat(np.cumsum(lengths) - lengths, shown)
            places = _places(shown)
            empty = np.repeat(lengths == 0, shown)
            elements = elements.take(pa.array(starts + places, mask=empty))
            positions = pa.array(places.astype("i4"), mask=empty)
        else:
            parents = np.repeat(np.arange(len(lengths)), lengths)
            positions = pa.array(_places(lengths).astype("i4"))
        rows = table.select([*self.columns, WEIGHT]).take(pa.array(parents))
        made: list[pa.Array] = [positions] if self.position else []
        if self.fields:
            made += [pc.struct_field(elements, at) for at in range(len(elements.type))]
        else:
            made.append(elements)
        arrays = [*(rows.column(name) for name in self.columns), *made, rows.column(WEIGHT)]
        return pa.Table.from_arrays(arrays, schema=weighted(self.schema))


def _places(lengths: np.ndarray) -> np.ndarray:
    """0, 1, … within each run."""
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    places: np.ndarray = np.arange(len(starts)) - starts
    return places
