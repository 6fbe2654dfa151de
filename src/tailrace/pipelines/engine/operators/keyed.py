"""The first operator on a table: from upserts to changes.

    record key -> marshal row          the last row of every key

The weight of a change never comes from the event's `before`: after compaction, a repeated
copy or under the default replica identity it does not match what a reader holds. An upsert
gives −old +new, a delete −old, an equal row nothing.
"""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import DELETED, KEY, WEIGHT
from tailrace.pipelines.values.keys import KEY_LIMIT, bounded
from tailrace.pipelines.values.rows import (
    changes,
    decode_row,
    decode_rows,
    encode_row,
    encode_rows,
    physical,
    to_rows,
    weighted,
    weights,
)


@dataclass(frozen=True, slots=True)
class Keyed:
    """A table with a primary key."""

    schema: pa.Schema
    table: str
    kind: ClassVar[str] = "keyed"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        return f"keyed {self.table} ({', '.join(self.schema.names)})"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        upserts = inputs[0]
        encoded = encode_rows(to_rows(upserts, self.schema.names))
        deleted = physical(upserts.column(DELETED))
        given = cast("list[bytes]", physical(upserts.column(KEY)))
        if given and not (min(map(len, given)) > 0 and max(map(len, given)) <= KEY_LIMIT):
            given = [bounded(key) for key in given]
        last = dict(zip(given, range(len(given)), strict=True))
        keys = sorted(last)
        gone: list[bytes] = []
        came: list[int] = []
        puts: list[tuple[bytes, bytes | None]] = []
        found = state.get_many(keys)
        if not any(found) and not any(deleted):  # a first fill
            came = [last[key] for key in keys]
            puts = list(zip(keys, [encoded[position] for position in came], strict=True))
        else:
            for key, old in zip(keys, found, strict=True):
                position = last[key]
                new = None if deleted[position] else encoded[position]
                if old == new:
                    continue
                if old is not None:
                    gone.append(old)
                if new is not None:
                    came.append(position)
                puts.append((key, new))
        state.put_many(puts)
        # The new rows are taken from the input as they stand, only old ones are rebuilt.
        fresh = upserts.select(self.schema.names).take(pa.array(came, pa.int64()))
        added = pa.Table.from_arrays(
            [*fresh.columns, pa.array(np.ones(len(came), "i8"))], schema=weighted(self.schema)
        )
        if not gone:
            return added
        return pa.concat_tables([changes(decode_rows(gone), [-1] * len(gone), self.schema), added])


@dataclass(frozen=True, slots=True)
class KeylessTable:
    """A table without primary key: a bag.

        marshal row (its hash when long) -> marshal (weight, row)

    A row that says "all before are gone" empties it.
    """

    schema: pa.Schema
    table: str
    kind: ClassVar[str] = "bag"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        return f"bag {self.table} ({', '.join(self.schema.names)})"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        events = inputs[0]
        cleared = False
        delta: dict[bytes, int] = {}
        for row, weight, clears in zip(
            to_rows(events, self.schema.names),
            weights(events),
            physical(events.column(DELETED)),
            strict=True,
        ):
            if clears:
                cleared, delta = True, {}
                continue
            data = encode_row(row)
            delta[data] = delta.get(data, 0) + weight
        if cleared:
            for _, value in state.scan():
                known, stored = marshal.loads(value)
                delta[stored] = delta.get(stored, 0) - known
        touched = sorted((bounded(data), data, weight) for data, weight in delta.items() if weight)
        puts: list[tuple[bytes, bytes | None]] = []
        for (key, data, weight), found in zip(
            touched, state.get_many([key for key, _, _ in touched]), strict=True
        ):
            after = (marshal.loads(found)[0] if found is not None else 0) + weight
            puts.append((key, encode_row((after, data)) if after else None))
        state.put_many(puts)
        return changes(
            [decode_row(data) for _, data, _ in touched],
            [weight for _, _, weight in touched],
            self.schema,
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """A stream: every row is new and stays. No state. `upcasts`: see `TableInput`."""

    schema: pa.Schema
    table: str
    upcasts: str = ""
    kind: ClassVar[str] = "stream"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        return f"stream {self.table} ({', '.join(self.schema.names)})"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0].select(self.schema.names)
        return table.append_column(
            pa.field(WEIGHT, pa.int64(), nullable=False), pa.array(np.ones(table.num_rows, "i8"))
        ).cast(weighted(self.schema))
