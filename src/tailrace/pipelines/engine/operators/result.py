"""The last operator of a view: from changes to upserts under the view's key.

    key -> marshal row                 the row the changelog shows
    row -> marshal (count,)            a bag: how often it is there
    hash(row) -> marshal (count, row)  the same of a row too long to be a key
    "x" + time + key                   when that is over (see `expiry`): it stays in the
                                       changelog and need not be remembered

A tick's changes are added up per key; at most one row of weight 1 may remain. At most one
record per key and tick is emitted, and none when the row is the one already shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators.bags import by_key
from tailrace.pipelines.engine.operators.expiry import Expiry
from tailrace.pipelines.errors import KeyNotUniqueError
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import DELETED, WEIGHT
from tailrace.pipelines.values.keys import KEY_LIMIT, bounded, encode_keys
from tailrace.pipelines.values.rows import (
    Row,
    decode_row,
    encode_row,
    encode_rows,
    to_array,
    to_rows,
    weights,
)
from tailrace.records.rows import python_rows


@dataclass(frozen=True, slots=True)
class Result:
    """A view with a key. Output: the view's columns and `__deleted`.

    `unique`: the input never holds two rows of one key (it is a GROUP BY of that key), so
    nothing need be remembered: a row that comes is shown, one that only goes is gone.
    """

    view: str
    schema: pa.Schema
    key: tuple[str, ...]
    unique: bool = False
    expiry: Expiry | None = None
    kind: ClassVar[str] = "result"
    wakes: ClassVar[bool] = False

    @property
    def stateless(self) -> bool:
        return self.unique

    def describe(self) -> str:
        return f"result {self.view} {'unique ' if self.unique else ''}key ({', '.join(self.key)})"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0]
        if self.unique:
            return self._passed_on(table)
        rows = to_rows(table, self.schema.names)
        deltas = by_key(encode_keys(table, self.key), encode_rows(rows), weights(table))
        keys = sorted(deltas)
        out: list[Row] = []
        deleted: list[bool] = []
        puts: list[tuple[bytes, bytes | None]] = []
        for key, old in zip(keys, state.get_many(keys), strict=True):
            left = dict(deltas[key])
            if old is not None:
                left[old] = left.get(old, 0) + 1
            left = {row: weight for row, weight in left.items() if weight}
            if len(left) > 1 or any(weight != 1 for weight in left.values()):
                raise self._not_unique(left)
            new = next(iter(left), None)
            if new == old:
                continue
            out.append(decode_row(new if new is not None else old))  # type: ignore[arg-type]
            deleted.append(new is None)
            puts.append((key, new))
        state.put_many(puts)
        if self.expiry is not None:
            shown = zip(out, [key for key, _ in puts], deleted, strict=True)
            _forget(state, self.expiry, self.schema, tick, shown, _of_key)
        return _upserts(out, deleted, self.schema)

    def _passed_on(self, table: pa.Table) -> pa.Table:
        counts = table.column(WEIGHT).to_numpy()
        table = table.select(self.schema.names)
        came = table.filter(pa.array(counts > 0))
        gone = table.filter(pa.array(counts < 0))
        if gone.num_rows:
            gone = gone.filter(self._over(gone, came))
        deleted = np.repeat([False, True], [came.num_rows, gone.num_rows])
        rows = pa.concat_tables([came, gone]).append_column(DELETED, pa.array(deleted, pa.bool_()))
        return rows.cast(self.schema.append(pa.field(DELETED, pa.bool_())))

    def _over(self, gone: pa.Table, came: pa.Table) -> pa.Array:
        """Which rows that go are not replaced by one of their key."""
        kind = self.schema.field(self.key[0]).type if len(self.key) == 1 else None
        if kind is not None and (pa.types.is_integer(kind) or pa.types.is_string(kind)):
            column = came.column(self.key[0])
            return pc.invert(pc.is_in(gone.column(self.key[0]), value_set=column))
        shown = set(encode_keys(came, self.key))
        return pa.array([key not in shown for key in encode_keys(gone, self.key)], pa.bool_())

    def _not_unique(self, rows: dict[bytes, int]) -> KeyNotUniqueError:
        some = sorted(rows.items())[:5]
        table = _to_table([decode_row(row) for row, _ in some], self.schema)
        shown = "\n".join(
            f"{weight} × {orjson.dumps(row, default=str).decode()}"
            for row, (_, weight) in zip(python_rows(table), some, strict=True)
        )
        return KeyNotUniqueError(
            f"key is not unique in view {self.view!r}",
            detail=f"Rows with the same ({', '.join(self.key)}):\n{shown}",
            hint="declare more key columns, or leave key= out: the view is then a bag with counts",
        )


@dataclass(frozen=True, slots=True)
class BagResult:
    """A view without a key. Output: the view's columns, `count` and `__deleted`."""

    view: str
    schema: pa.Schema
    expiry: Expiry | None = None
    kind: ClassVar[str] = "result"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        return f"result {self.view} as a bag"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0].select(self.schema.names[:-1])
        encoded = encode_rows(to_rows(table))
        places, totals = _added_up(encoded, inputs[0].column(WEIGHT).to_numpy())
        datas = [encoded[place] for place in places]
        keys = [d if 0 < len(d) <= KEY_LIMIT else bounded(d) for d in datas]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys, datas = [keys[i] for i in order], [datas[i] for i in order]
        counts = [totals[i] for i in order]
        found = state.get_many(keys)
        if any(found):
            known = (0 if value is None else cast(int, decode_row(value)[0]) for value in found)
            counts = [before + more for before, more in zip(known, counts, strict=True)]
        state.put_many(
            (key, encode_row((count,) if key is data else (count, data)) if count else None)
            for key, count, data in zip(keys, counts, datas, strict=True)
        )
        # The rows are taken from the input as they stand.
        shown = table.take(pa.array([places[i] for i in order], pa.int64()))
        after = np.array(counts, dtype="i8")
        if self.expiry is not None:
            gone = (after == 0).tolist()
            seen = zip(to_rows(shown), keys, gone, strict=True)
            _forget(state, self.expiry, self.schema, tick, seen, _in_bag)
        columns = [*shown.columns, pa.array(after), pa.array(after == 0)]
        names = [*self.schema.names, DELETED]
        return pa.table(columns, names).cast(self.schema.append(pa.field(DELETED, pa.bool_())))


def _added_up(rows: Sequence[bytes], weights: np.ndarray) -> tuple[Sequence[int], Sequence[int]]:
    """Where each row that changes stands, and by how much it does."""
    places = dict(zip(rows, range(len(rows)), strict=True))
    if (weights == 1).all():
        if len(places) == len(rows):
            return range(len(rows)), [1] * len(rows)
        return list(places.values()), list(map(Counter(rows).__getitem__, places))
    totals: dict[bytes, int] = dict.fromkeys(places, 0)
    for row, weight in zip(rows, weights.tolist(), strict=True):
        totals[row] += weight
    changed = [row for row, total in totals.items() if total]
    return [places[row] for row in changed], [totals[row] for row in changed]


def _of_key(key: bytes, value: bytes) -> Row:
    return decode_row(value)


def _in_bag(key: bytes, value: bytes) -> Row:
    held = decode_row(value)
    return decode_row(cast(bytes, held[1]) if len(held) > 1 else key)


def _forget(
    state: OperatorState,
    expiry: Expiry,
    schema: pa.Schema,
    tick: TickContext,
    shown: Iterable[tuple[Row, bytes, bool]],
    stored: Callable[[bytes, bytes], Row],
) -> None:
    """Note when what is shown now can change no more, and forget what cannot already."""
    horizon = expiry.horizon(tick)
    if horizon is None:
        return
    at = schema.names.index(expiry.column)
    expiry.remember(state, ((cast("int | None", r[at]), key) for r, key, gone in shown if not gone))
    over = expiry.over(state, horizon)
    state.put_many(
        [
            (key, None)
            for key, value in zip(over, state.get_many(over), strict=True)
            # A row that came in its place since then has a note of its own.
            if value is not None and expiry.is_over(stored(key, value)[at], horizon)
        ]
    )


def _upserts(rows: list[Row], deleted: list[bool], schema: pa.Schema) -> pa.Table:
    return _to_table(rows, schema).append_column(
        pa.field(DELETED, pa.bool_()), pa.array(deleted, pa.bool_())
    )


def _to_table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [to_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
