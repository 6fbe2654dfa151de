"""Joins below a GROUP BY that only counts and adds up: sums in place of rows.

    "l" + key + 00 + row         -> 00 + the amounts, 8 bytes each
    "l" + key + 01 + hash(row)   -> 01 + marshal (amounts, row): where a row or a number is long
    "r" + key                    -> bag        the rows of the other side (see `bags`)

What a GROUP BY adds up of one side of a join need not be kept row by row: rows of that side
that are equal in all other columns meet the same rows and end in the same groups. So the
amounts are kept, how many rows there are and their sums, which is all that the join hands on.
Five million orders of a thousand products in fifty countries are fifty thousand entries.

A row that goes out says how much is added: its amounts are negative where something is taken
away, and its weight is how often that is to be done. Sums are whole numbers (decimals in units of
their scale), exact however large.
"""

from __future__ import annotations

import hashlib
import marshal
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators.bags import Matches, by_key, read_bags, read_touched
from tailrace.pipelines.engine.operators.sums import added_up, numbers, plus, times
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import WEIGHT
from tailrace.pipelines.values.keys import encode_keys
from tailrace.pipelines.values.rows import (
    Row,
    changes,
    decode_row,
    dumps,
    encode_rows,
    to_array,
    to_rows,
    weighted,
    weights,
)

COUNT = pa.int64()
TOTAL = pa.decimal128(38, 0)
LONGEST_ROW = 200  # bytes of a row in a key
_WORDS, _MARSHAL = b"\x00", b"\x01"


@dataclass(frozen=True, slots=True)
class SumJoin:
    """The output is `kept`, the columns of `other`, then the amounts: how many rows, and of each
    measure how many are not NULL and, where `summed` says so, their sum.

    `measures` are columns of the first input, one each; or, where that comes from such a join
    (`added`), its amounts in their order. `outer`: a row of the other side without a match stands
    for one row in which the measures are NULL; nothing is `kept` then.
    """

    outer: bool
    keys: tuple[str, ...]
    other_keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    kept: tuple[str, ...]
    other: tuple[str, ...]
    measures: tuple[str, ...]
    summed: tuple[bool, ...]
    added: bool
    schema: pa.Schema
    kind: ClassVar[str] = "join"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        pairs = zip(self.keys, self.other_keys, self.null_safe, strict=True)
        on = " and ".join(f"{a} {'<=>' if safe else '='} {b}" for a, b, safe in pairs)
        shown = ", ".join(self.schema.names[: -self.width])
        kind, what = "outer" if self.outer else "inner", ", ".join(self.measures)
        return f"{kind} join on {on} → {shown or 'nothing'}; keeps sums of {what}"

    @property
    def width(self) -> int:
        """How many amounts there are."""
        return 1 + len(self.summed) + sum(self.summed)

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        summed, _ = _matchable(inputs[0], self.keys, self.null_safe)
        others, lonely = _matchable(inputs[1], self.other_keys, self.null_safe)
        out = [weighted(self.schema).empty_table()]
        # Δ(L⋈R) = L⋈ΔR ∪ ΔL⋈(R+ΔR): in a first fill L is empty, and need not be looked through.
        if others.num_rows:
            out.append(self._change_others(state, others))
        if summed.num_rows:
            out.append(self._add(state, summed))
        if self.outer and lonely is not None:
            none = (0,) * (self.width - 1)
            pairs = zip(to_rows(lonely, self.other), weights(lonely), strict=True)
            rows = [(*row, weight, *none) for row, weight in pairs]
            out.append(changes(rows, [1] * len(rows), self.schema))
        found = pa.concat_tables(out)
        both = summed.num_rows and others.num_rows
        return self._cancelled(found) if both else found

    def _add(self, state: OperatorState, table: pa.Table) -> pa.Table:
        """Add what came to the sums, and show it with its matches."""
        table = table.combine_chunks()
        keys = encode_keys(table, self.keys)
        rows = encode_rows(to_rows(table, self.kept))
        firsts, amounts = added_up(_entries(keys, rows), self._amounts(table))
        keys, rows = [keys[first] for first in firsts], [rows[first] for first in firsts]
        entries = _entries(keys, rows)
        before = _unpacked(state.get_many(entries), self.width)
        after = list(map(plus, before, amounts))
        state.put_many(zip(entries, _packed(after, rows), strict=True))
        if self.outer:
            alone = (after[0] == 0).astype("i8") - (before[0] == 0)
            amounts[0] = plus(amounts[0], alone)
        kept = table.select(self.kept).take(firsts) if self.kept else None
        return self._shown(state, kept, keys, amounts)

    def _shown(
        self,
        state: OperatorState,
        kept: pa.Table | None,
        keys: list[bytes],
        amounts: list[np.ndarray],
    ) -> pa.Table:
        """Amounts with the rows of the other side that they meet."""
        asked = [b"r" + key for key in dict.fromkeys(keys)]
        matches = Matches(state)
        found = {
            entry[1:]: matches.of(entry, header)
            for entry, header in zip(asked, state.get_many(asked), strict=True)
            if header is not None
        }
        none: list[tuple[Row, int]] = []
        met = [found.get(key, none) for key in keys]
        places = np.repeat(np.arange(len(met)), list(map(len, met)))
        factors = np.array([factor for rows in met for _, factor in rows], "i8")
        columns = list(zip(*(row for rows in met for row, _ in rows), strict=True))
        kinds = self.schema.types[len(self.kept) : -self.width]
        others = [to_array(column, kind) for column, kind in zip(columns, kinds, strict=False)]
        if not columns:
            others = [pa.array([], kind) for kind in kinds]
        arrays = [] if kept is None else kept.take(places).columns
        return self._table([*arrays, *others], [times(one[places], factors) for one in amounts])

    def _change_others(self, state: OperatorState, table: pa.Table) -> pa.Table:
        """Take in rows of the other side, and show them with the sums they meet."""
        nothing = next(state.scan(b"l"), None) is None
        rows = to_rows(table, self.other)
        encoded = encode_rows(rows)
        known = dict(zip(encoded, rows, strict=True))
        deltas = by_key(encode_keys(table, self.other_keys), encoded, weights(table))
        bags = read_bags(state, [b"r" + key for key in sorted(deltas)])
        read_touched(state, [(bags[b"r" + key], delta) for key, delta in deltas.items()])
        puts: list[tuple[bytes, bytes | None]] = []
        for key, delta in deltas.items():
            bags[b"r" + key].change(delta, puts)
        state.put_many(sorted(puts))
        out: list[Row] = []
        if nothing and not self.outer:
            return weighted(self.schema).empty_table()
        for key in sorted(deltas):
            for row, amounts in self._alone() if nothing else self.held(state, key):
                for other, weight in deltas[key].items():
                    out.append(row + known[other] + tuple([weight * one for one in amounts]))
        return changes(out, [1] * len(out), self.schema)

    def held(self, state: OperatorState, key: bytes) -> list[tuple[Row, tuple[int, ...]]]:
        """What the rows of a key add up to: what is kept of them, and the amounts."""
        prefix = b"l" + key
        found = []
        for entry, value in state.scan(prefix):
            amounts, long = _read(value, self.width)
            row = decode_row(entry[len(prefix) + 1 :] if long is None else long)
            found.append((row, amounts))
        return found or self._alone()

    def _alone(self) -> list[tuple[Row, tuple[int, ...]]]:
        """What stands for the rows of a key that has none."""
        return [((), (1, *(0,) * (self.width - 1)))] if self.outer else []

    def _cancelled(self, table: pa.Table) -> pa.Table:
        """Equal rows added up: where both sides have changed, pairs that never were are shown
        and taken back."""
        names = self.schema.names
        rows = encode_rows(to_rows(table, names[: -self.width]))
        once = table.column(WEIGHT).to_numpy()
        given = [times(numbers(table.column(name)), once) for name in names[-self.width :]]
        firsts, amounts = added_up(rows, given)
        left = np.flatnonzero(np.any([one != 0 for one in amounts], axis=0))
        shown = [table.column(name) for name in names[: -self.width]]
        chosen = pa.array(np.array(firsts, "i8")[left])
        return self._table([one.take(chosen) for one in shown], [one[left] for one in amounts])

    def _amounts(self, table: pa.Table) -> list[np.ndarray]:
        """What each row adds: of rows, and of each measure values and their sum."""
        often = table.column(WEIGHT).to_numpy()
        if self.added:
            return [times(numbers(table.column(name)), often) for name in self.measures]
        found = [often]
        for name, summed in zip(self.measures, self.summed, strict=True):
            column = table.column(name)
            found.append(often * column.is_valid().to_numpy() if column.null_count else often)
            if summed:
                found.append(times(numbers(column), often))
        return found

    def _table(self, shown: Sequence[pa.Array], amounts: Sequence[np.ndarray]) -> pa.Table:
        """Rows that go out: each is to be added once."""
        kinds = self.schema.types[-self.width :]
        columns = [_column(one, kind) for one, kind in zip(amounts, kinds, strict=True)]
        once = pa.array(np.ones(len(amounts[0]), "i8"))
        return pa.Table.from_arrays([*shown, *columns, once], schema=weighted(self.schema))


def _matchable(
    table: pa.Table, keys: Sequence[str], null_safe: Sequence[bool]
) -> tuple[pa.Table, pa.Table | None]:
    """The rows whose key can match one, and the others if there are any."""
    null = None
    for name, safe in zip(keys, null_safe, strict=True):
        if not safe and table.column(name).null_count:
            mask = pc.is_null(table.column(name))
            null = mask if null is None else pc.or_(null, mask)
    if null is None:
        return table, None
    return table.filter(pc.invert(null)), table.filter(null)


def _entries(keys: Sequence[bytes], rows: Sequence[bytes]) -> list[bytes]:
    """Where the amounts of each row stand."""
    if len(max(rows, key=len, default=b"")) <= LONGEST_ROW:
        return [b"l%b\x00%b" % pair for pair in zip(keys, rows, strict=True)]
    hashed = [
        b"\x00" + row
        if len(row) <= LONGEST_ROW
        else b"\x01" + hashlib.blake2b(row, digest_size=16).digest()
        for row in rows
    ]
    return [b"l%b%b" % pair for pair in zip(keys, hashed, strict=True)]


def _form(width: int) -> np.dtype[np.void]:
    return np.dtype([("marker", "u1"), ("words", "<i8", (width,))])


def _packed(amounts: Sequence[np.ndarray], rows: Sequence[bytes]) -> list[bytes | None]:
    """Amounts as the state keeps them; None where there is nothing."""
    width, count = len(amounts), len(rows)
    there = np.any([one != 0 for one in amounts], axis=0).tolist()
    if all(one.dtype != object for one in amounts):
        made = np.zeros(count, _form(width))
        made["words"] = np.stack(amounts, axis=1)
        data, size = made.tobytes(), made.itemsize
        found = [
            data[at : at + size] if some else None
            for at, some in zip(range(0, len(data), size), there, strict=True)
        ]
        if len(max(rows, key=len, default=b"")) <= LONGEST_ROW:
            return found
    columns = [one.tolist() for one in amounts]
    return [
        _MARSHAL + dumps((given, row if len(row) > LONGEST_ROW else None)) if some else None
        for given, row, some in zip(zip(*columns, strict=True), rows, there, strict=True)
    ]


def _unpacked(values: Sequence[bytes | None], width: int) -> list[np.ndarray]:
    """The reverse of `_packed`; zeros where there is nothing."""
    form = _form(width)
    nothing = bytes(form.itemsize)
    held = [value or nothing for value in values]
    if set(map(len, held)) == {form.itemsize}:
        read = np.frombuffer(b"".join(held), form)
        if not read["marker"].any():
            return [read["words"][:, place] for place in range(width)]
    found = [_read(value, width)[0] for value in held]
    return [np.array(column, object) for column in zip(*found, strict=True)]


def _read(value: bytes, width: int) -> tuple[tuple[int, ...], bytes | None]:
    """The amounts of an entry, and the row of one that does not hold it in its key."""
    if value[:1] == _WORDS:
        return struct.unpack(f"<{width}q", value[1:]), None
    return cast("tuple[tuple[int, ...], bytes | None]", marshal.loads(value[1:]))


def _column(amounts: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Amounts as an Arrow column."""
    if kind == COUNT:
        return pa.array(amounts.astype("i8", copy=False))
    if amounts.dtype == object:
        return to_array(amounts.tolist(), kind)
    words = np.empty(2 * len(amounts), "<i8")
    words[0::2], words[1::2] = amounts, amounts >> 63
    return pa.Array.from_buffers(kind, len(amounts), [None, pa.py_buffer(words)])
