"""Many rows that come, on one side of an inner join: a whole tick in columns.

The short way of a first fill, and of a stream. Keys of which rows also go take the long way. Rows are sorted by key and by their bytes, so the rows of a key
lie side by side and the bytes of its new frame (see `bags`) are a stretch of one buffer: Python
sees keys, not rows. What matches is put together by Arrow. State and output are those of the
long way, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from marshal import loads

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.operators import bags
from tailrace.pipelines.engine.operators.bags import Bag, matching, read_touched
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import WEIGHT
from tailrace.pipelines.values.keys import encode_keys
from tailrace.pipelines.values.rows import Row, encode_rows, physical, to_array, to_rows, weighted

ARRIVAL_ROWS = 1_000  # of one side at least; fewer are faster one by one
_COMING = 8  # rows that come for one that goes, at least
_MOST_WEIGHT = (1 << 31) - 1  # what `marshal` writes in four bytes


def pays(table: pa.Table) -> bool:
    """Whether so many rows came, and so few went, that columns are faster than rows."""
    count = table.num_rows
    if count < ARRIVAL_ROWS:
        return False
    gone = np.count_nonzero(table.column(WEIGHT).to_numpy() < 0)
    return bool(gone * _COMING <= count)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows of one side, sorted; those of key `n` are at `starts[n] : starts[n + 1]`. Keys of which
    rows also go are not among them: their changes are `others`."""

    table: pa.Table
    keys: list[bytes]
    starts: np.ndarray
    frames: list[bytes]  # by key: the entries of a marshalled dict of its rows
    others: dict[bytes, dict[bytes, int]]

    @classmethod
    def of(cls, table: pa.Table, keys: Sequence[str], names: Sequence[str]) -> Arrivals | None:
        """The rows of a table whose keys are not NULL; None when the long way must be taken."""
        if not table.num_rows:
            return None
        weights = table.column(WEIGHT).to_numpy()
        if max(int(weights.max()), -int(weights.min())) * len(weights) > _MOST_WEIGHT:
            return None
        rows = pa.array(encode_rows(to_rows(table, names)), pa.binary())
        by = pa.array(encode_keys(table, keys), pa.binary())
        both = pc.binary_join_element_wise(by, rows, b"")
        order = pc.sort_indices(both)
        places = _beginnings(both.take(order))
        added = np.add.reduceat(weights[order.to_numpy()], places)  # of equal rows
        left = np.flatnonzero(added)
        order, weights = order.take(pa.array(places[left])), added[left]
        by, rows = by.take(order), rows.take(order)
        starts = _beginnings(by)
        found: list[bytes] = by.take(pa.array(starts)).to_pylist()
        if len(set(found)) < len(found):
            return None  # a cut key is the beginning of another: its rows need not be side by side
        others: dict[bytes, dict[bytes, int]] = {}
        if len(weights) and weights.min() < 0:
            gone = np.minimum.reduceat(weights, starts) < 0
            ends = np.append(starts[1:], len(weights))
            for number in np.flatnonzero(gone).tolist():
                own = slice(int(starts[number]), int(ends[number]))
                others[found[number]] = dict(
                    zip(rows[own].to_pylist(), weights[own].tolist(), strict=True)
                )
            stays = np.flatnonzero(np.repeat(~gone, ends - starts))
            order, weights = order.take(pa.array(stays)), weights[stays]
            by, rows = by.take(pa.array(stays)), rows.take(pa.array(stays))
            starts = _beginnings(by)
            found = [key for key, went in zip(found, gone.tolist(), strict=True) if not went]
        starts = np.append(starts, len(by))
        columns = [table.column(name).take(order) for name in names]
        taken = pa.Table.from_arrays([*columns, pa.array(weights)], names=[*names, WEIGHT])
        frames = _stretches(_entries(rows, weights), starts) if found else []
        return cls(taken, found, starts, frames, others)

    def values(self, name: str) -> Iterator[tuple[object, bytes]]:
        """The physical value of a column in every row, with the row's key."""
        keys = chain.from_iterable(map(repeat, self.keys, np.diff(self.starts).tolist()))
        return zip(physical(self.table.column(name)), keys, strict=True)

    def store(self, state: OperatorState, side: bytes) -> list[tuple[bytes, bytes | None]]:
        """What to write to put the rows into their bags."""
        keys = [side + key for key in self.keys]
        counts = np.diff(self.starts).tolist()
        puts: list[tuple[bytes, bytes | None]] = []
        long: list[tuple[Bag, dict[bytes, int]]] = []
        most = bags.SPILL_ROWS
        for key, header, frame, count in zip(
            keys, state.get_many(keys), self.frames, counts, strict=True
        ):
            if header is None and count <= most:
                puts.append((key, b"\x03%c{%b0" % (count, frame)))
            elif header is not None and header[0] == 3 and header[1] + count <= most:
                value = b"\x03%c%b%b0" % (header[1] + count, header[2:-1], frame)
                puts.append((key, value))
            else:
                long.append((Bag(state, key, header), loads(b"{%b0" % frame)))
        read_touched(state, long)
        for bag, delta in long:
            bag.change(delta, puts)
        if long:
            puts.sort()
        return puts

    def joined(
        self, state: OperatorState, side: bytes, names: Sequence[str], left: bool, schema: pa.Schema
    ) -> pa.Table:
        """The pairs with the rows of the other side, which is `side`."""
        rows: list[Row] = []
        factors: list[int] = []
        counts: list[int] = []
        keys = [side + key for key in self.keys]
        for key, header in zip(keys, state.get_many(keys), strict=True):
            found = matching(state, key, header) if header is not None else ()
            counts.append(len(found))
            for row, factor in found:
                rows.append(row)
                factors.append(factor)
        ours, theirs = _pairs(self.starts, np.array(counts, "i8"))
        mine = [self.table.column(name).take(pa.array(ours)) for name in names]
        fields = list(schema)
        others = fields[len(mine) :] if left else fields[: len(fields) - len(mine)]
        weights = self.table.column(WEIGHT).to_numpy()[ours] * np.array(factors, "i8")[theirs]
        other = [
            to_array(values, field.type).take(pa.array(theirs))
            for values, field in zip(_columns(rows, len(others)), others, strict=True)
        ]
        arrays = [*mine, *other] if left else [*other, *mine]
        arrays = [
            array.cast(field.type) if array.type != field.type else array
            for array, field in zip(arrays, schema, strict=True)
        ]
        return pa.Table.from_arrays([*arrays, pa.array(weights)], schema=weighted(schema))


def _beginnings(values: pa.BinaryArray) -> np.ndarray:
    """Where a value differs from the one before it."""
    if not len(values):
        return np.empty(0, "i8")
    differs = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    return np.append(0, np.flatnonzero(differs) + 1)


def _columns(rows: Sequence[Row], width: int) -> Sequence[Sequence[object]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _pairs(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of every pair: each row of a key with each of the key's others."""
    sizes = np.diff(starts)
    each = np.repeat(counts, sizes)  # by row of ours, how many it meets
    firsts = np.repeat(np.cumsum(counts) - counts, sizes)
    ours = np.repeat(np.arange(len(each)), each)
    within = np.arange(len(ours)) - np.repeat(np.cumsum(each) - each, each)
    return ours, np.repeat(firsts, each) + within


def _entries(rows: pa.BinaryArray, weights: np.ndarray) -> pa.BinaryArray:
    """Row and weight as `marshal` writes them inside a dict."""
    count = len(rows)
    heads = np.empty((count, 5), "u1")
    heads[:, 0] = ord("s")
    heads[:, 1:] = pc.binary_length(rows).to_numpy().astype("<u4").view("u1").reshape(count, 4)
    tails = np.empty((count, 5), "u1")
    tails[:, 0] = ord("i")
    tails[:, 1:] = weights.astype("<i4").view("u1").reshape(count, 4)
    return pc.binary_join_element_wise(_fixed(heads), rows, _fixed(tails), b"")


def _fixed(octets: np.ndarray) -> pa.BinaryArray:
    """One value per row of a matrix."""
    count, width = octets.shape
    offsets = pa.py_buffer(np.arange(0, width * (count + 1), width, dtype="i4"))
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(octets)])


def _stretches(values: pa.BinaryArray, starts: np.ndarray) -> list[bytes]:
    """The values from each start to the next, put together."""
    offsets = np.frombuffer(values.buffers()[1], "i4")[values.offset :]
    edges = pa.py_buffer(np.ascontiguousarray(offsets[starts]))
    whole = pa.Array.from_buffers(pa.binary(), len(starts) - 1, [None, edges, values.buffers()[2]])
    found: list[bytes] = whole.to_pylist()
    return found
