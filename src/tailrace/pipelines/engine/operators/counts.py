"""Operators that only count: DISTINCT, INTERSECT, EXCEPT, UNION ALL, constants.

    row -> marshal [count in each input]

The output holds a row as often as a function of its counts says; what is emitted is the
change of that function.
"""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import encode_keys, key_values
from tailrace.pipelines.values.rows import Row, changes, dumps, weighted, weights


@dataclass(frozen=True, slots=True)
class Counts:
    """`mode`: distinct, intersect, intersect all, except, except all."""

    mode: str
    schema: pa.Schema
    kind: ClassVar[str] = "counts"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        return f"{self.mode} of ({', '.join(self.schema.names)})"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        deltas: dict[bytes, list[int]] = {}
        shown: dict[bytes, Row] = {}
        for number, table in enumerate(inputs):
            names = [name for name in table.column_names if name != "__weight"]
            keys = encode_keys(table, names)
            for key, row, weight in zip(keys, _rows(table, names), weights(table), strict=True):
                counts = deltas.get(key)
                if counts is None:
                    deltas[key] = counts = [0] * len(inputs)
                    shown[key] = row
                counts[number] += weight
        touched = sorted(key for key, counts in deltas.items() if any(counts))
        out: list[Row] = []
        emitted: list[int] = []
        puts: list[tuple[bytes, bytes | None]] = []
        for key, value in zip(touched, state.get_many(touched), strict=True):
            before = marshal.loads(value) if value is not None else [0] * len(inputs)
            after = [a + b for a, b in zip(before, deltas[key], strict=True)]
            puts.append((key, dumps(after) if any(after) else None))
            change = self.shown(after) - self.shown(before)
            if change:
                out.append(shown[key])
                emitted.append(change)
        state.put_many(puts)
        return changes(out, emitted, self.schema)

    def shown(self, counts: list[int]) -> int:
        """How often the output holds a row with these counts."""
        first, second = counts[0], counts[1] if len(counts) > 1 else 0
        match self.mode:
            case "distinct":
                return int(first > 0)
            case "intersect":
                return int(first > 0 and second > 0)
            case "intersect all":
                return min(first, second)
            case "except":
                return int(first > 0 and second <= 0)
            case _:
                return max(first - second, 0)


def _rows(table: pa.Table, names: list[str]) -> list[Row]:
    columns = [key_values(table.column(name)) for name in names]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


@dataclass(frozen=True, slots=True)
class UnionAll:
    """All inputs' changes. No state."""

    schema: pa.Schema
    kind: ClassVar[str] = "union"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        return f"union all ({', '.join(self.schema.names)})"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        schema = weighted(self.schema)
        return pa.concat_tables(
            [table.rename_columns(schema.names) for table in inputs if table.num_rows]
            or [schema.empty_table()]
        )


@dataclass(frozen=True, slots=True)
class Constants:
    """Rows written in the query: emitted once, in the operator's first tick.

    "done" -> "1"
    """

    rows: tuple[Row, ...]
    schema: pa.Schema
    kind: ClassVar[str] = "constants"
    wakes: ClassVar[bool] = True

    def describe(self) -> str:
        return f"constants {self.rows!r}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        if not self.rows or state.get(b"done") is not None:
            return weighted(self.schema).empty_table()
        state.put_many([(b"done", b"1")])
        columns = list(zip(*self.rows, strict=True))
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=False)]
        arrays.append(pa.array([1] * len(self.rows), pa.int64()))
        return pa.Table.from_arrays(arrays, schema=weighted(self.schema))
