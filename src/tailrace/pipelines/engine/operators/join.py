"""Equi-joins of two inputs that both change.

    "l" + key, "r" + key -> bag        the rows of each side (see `bags`)
    "xl" + time + key, "xr" …          when rows of that bag are over (see `expiry`)
    "h"                                how long partners are apart (see `between`)

A join is bilinear: Δ(L⋈R) = ΔL⋈R ∪ (L+ΔL)⋈ΔR. The outer, semi and anti parts depend only on
whether the other side has rows under the key: as long as that does not flip they follow the
change, when it flips they emit or retract the key's rows. A NULL in a key column matches
nothing, unless that column is compared null-safely. Conditions beyond equality are filters
behind an inner join; the compiler builds the other kinds from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators import arrivals
from tailrace.pipelines.engine.operators.bags import (
    Bag,
    Matches,
    by_key,
    by_one_row,
    read_bags,
    read_touched,
)
from tailrace.pipelines.engine.operators.expiry import PREFIX, Expiry, coarse
from tailrace.pipelines.engine.operators.join_distance import Between
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import encode_keys
from tailrace.pipelines.values.rows import Row, changes, decode_row, encode_rows, to_rows, weights

Rows = list[tuple[Row, int]]


@dataclass(frozen=True, slots=True)
class _Side:
    """What came on one side, which is called `mark`: changes by key with their rows by their
    bytes, and rows that stayed columns, of other keys."""

    mark: bytes
    names: tuple[str, ...]
    deltas: dict[bytes, dict[bytes, int]]
    rows: dict[bytes, Row]
    arrived: arrivals.Arrivals | None = None

    def __bool__(self) -> bool:
        return bool(self.deltas) or bool(self.arrived is not None and self.arrived.keys)

    def times(self, place: int) -> Iterator[tuple[object, bytes]]:
        """The value in a column of every row, with the row's key."""
        for key, delta in self.deltas.items():
            for row in delta:
                yield self.rows[row][place], key
        if self.arrived is not None:
            yield from self.arrived.values(self.names[place])


@dataclass(frozen=True, slots=True)
class Join:
    """`mode`: inner, left, right, full, semi or anti. The output is the left columns, then
    (unless semi or anti) the right ones, both under their own names."""

    mode: str
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    schema: pa.Schema
    # Of the left rows and of the right ones; the right side of a semi or anti join then
    # keeps the time alone.
    expiry: tuple[Expiry, Expiry] | None = None
    between: Between | None = None
    kind: ClassVar[str] = "join"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        pairs = zip(self.left_keys, self.right_keys, self.null_safe, strict=True)
        on = " and ".join(f"{a} {'<=>' if safe else '='} {b}" for a, b, safe in pairs)
        ends = "".join(f" until {one.column} + {one.adds}" for one in self.expiry or ())
        apart = self.between.describe() if self.between is not None else ""
        shown = ", ".join(self.schema.names)
        return f"{self.mode} join on {on or 'everything'} → {shown}{ends}{apart}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        pairs = self._joined(state, inputs, tick)
        if self.between is not None:
            self.between.count(state, pairs)
        return pairs

    def _joined(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        out: list[Row] = []
        counts: list[int] = []
        came = [
            self._side(b"l", inputs[0], self.left_keys, self.left, out, counts),
            self._side(b"r", inputs[1], self.right_keys, self.right, out, counts),
        ]
        tables: list[pa.Table] = []
        if self.mode == "inner" or not all(came):
            # One side after the other: the rows of the right side meet those of the left that
            # are in the state by then, as Δ(L⋈R) = ΔL⋈R ∪ (L+ΔL)⋈ΔR has it.
            for side in filter(None, came):
                tables += self._arrive(state, side)
                if side.deltas:
                    self._one_side(state, side.deltas, side.rows, side.mark, out, counts)
        else:
            self._both_sides(state, came[0].deltas, came[1].deltas, out, counts)
        for side, expiry in zip(came, self.expiry or (), strict=False):
            horizon = expiry.horizon(tick)
            if horizon is not None:
                _forget(state, side, side.names.index(expiry.column), expiry, horizon)
        if out or not tables:
            tables.append(changes(out, counts, self.schema))
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def _side(
        self,
        mark: bytes,
        table: pa.Table,
        keys: tuple[str, ...],
        names: tuple[str, ...],
        out: list[Row],
        counts: list[int],
    ) -> _Side:
        """What came on one side. Many rows that only come stay columns, as far as an inner join
        can take them so."""
        found = None
        if self.mode == "inner" and keys and arrivals.pays(table):
            table = table.combine_chunks()
            for name, safe in zip(keys, self.null_safe, strict=True):
                if not safe and table.column(name).null_count:
                    table = table.filter(pc.is_valid(table.column(name)))
            found = arrivals.Arrivals.of(table, keys, names)
        if found is not None:
            rows = {row: decode_row(row) for delta in found.others.values() for row in delta}
            return _Side(mark, names, found.others, rows, found)
        deltas, rows = self._deltas(mark, table, keys, names, out, counts)
        return _Side(mark, names, deltas, rows)

    def _arrive(self, state: OperatorState, side: _Side) -> list[pa.Table]:
        """Take in the rows of a side that stayed columns, and show them with their matches."""
        found = side.arrived
        if found is None or not found.keys:
            return []
        left = side.mark == b"l"
        puts = found.store(state, side.mark)
        shown = found.joined(state, b"r" if left else b"l", side.names, left, self.schema)
        state.put_many(puts)
        return [shown]

    def _both_sides(
        self,
        state: OperatorState,
        left: dict[bytes, dict[bytes, int]],
        right: dict[bytes, dict[bytes, int]],
        out: list[Row],
        counts: list[int],
    ) -> None:
        """A join other than an inner one of which both sides changed, key by key."""
        keys = sorted(left.keys() | right.keys())
        bags = read_bags(state, [b"l" + key for key in keys] + [b"r" + key for key in keys])
        puts: list[tuple[bytes, bytes | None]] = []
        none: dict[bytes, int] = {}
        read_touched(state, [(bags[b"l" + key], delta) for key, delta in left.items()])
        read_touched(state, [(bags[b"r" + key], delta) for key, delta in right.items()])
        for key in keys:
            self._apply_key(
                bags[b"l" + key], left.get(key, none), bags[b"r" + key], right.get(key, none),
                out, counts, puts,
            )  # fmt: skip
        puts.sort()
        state.put_many(puts)

    def _one_side(
        self,
        state: OperatorState,
        deltas: dict[bytes, dict[bytes, int]],
        rows: dict[bytes, Row],
        side: bytes,
        out: list[Row],
        counts: list[int],
    ) -> None:
        """A join of which one side changed: by far the most common case, kept short. `rows`:
        those of `deltas`, read."""
        mode, left = self.mode, side == b"l"
        pairs = mode not in ("semi", "anti")
        # Rows of this side that go out by themselves: those with a match, or those without.
        alone = mode in ("left", "full", "anti") if left else mode in ("right", "full")
        matched = left and mode == "semi"
        # What a row of the other side counts for by itself once this side has its first row.
        turned = 0
        if mode in (("right", "full") if left else ("left", "full", "anti")):
            turned = -1
        elif not left and mode == "semi":
            turned = 1
        own, others_own = (self.left, self.right) if left else (self.right, self.left)
        pad: Row = (None,) * (len(self.schema) - len(own))
        other_pad: Row = (None,) * (len(self.schema) - len(others_own))
        keys = sorted(deltas)
        other = b"r" if left else b"l"
        own_keys = [side + key for key in keys]
        other_keys = [other + key for key in keys]
        changed = [deltas[key] for key in keys]
        held = state.get_many(own_keys)
        large = {
            key: (Bag(state, key, was), delta)
            for key, was, delta in zip(own_keys, held, changed, strict=True)
            if was is not None and was[0] == 1
        }
        read_touched(state, large.values())
        puts: list[tuple[bytes, bytes | None]] = []
        found, matches = state.get_many(other_keys), Matches(state)
        for own_key, was, delta, key, header in zip(
            own_keys, held, changed, other_keys, found, strict=True
        ):
            value = by_one_row(was, *next(iter(delta.items()))) if len(delta) == 1 else None
            if value is not None:
                is_there = bool(value)
                puts.append((own_key, value or None))
            else:
                bag = large[own_key][0] if own_key in large else Bag(state, own_key, was)
                is_there = bag.change(delta, puts)
            if header is None:
                if alone:
                    for data, weight in delta.items():
                        out.append(rows[data] + pad if left else pad + rows[data])
                        counts.append(weight)
                continue
            turns = turned * (is_there - (was is not None))
            if matched:
                out.extend(rows[data] for data in delta)
                counts.extend(delta.values())
            if not pairs and not turns:
                continue
            others = matches.of(key, header)
            if pairs:
                for data, weight in delta.items():
                    row = rows[data]
                    for match, factor in others:
                        out.append(row + match if left else match + row)
                        counts.append(weight * factor)
            if turns:
                for match, factor in others:
                    out.append(other_pad + match if left else match + other_pad)
                    counts.append(turns * factor)
        puts.sort()
        state.put_many(puts)

    def _deltas(
        self,
        side: bytes,
        table: pa.Table,
        keys: tuple[str, ...],
        names: tuple[str, ...],
        out: list[Row],
        counts: list[int],
    ) -> tuple[dict[bytes, dict[bytes, int]], dict[bytes, Row]]:
        """The side's changes by key, and their rows by their bytes. Rows that can match nothing
        go straight out, padded."""
        if not table.num_rows:
            return {}, {}
        null = None
        for name, safe in zip(keys, self.null_safe, strict=True):
            if not safe and table.column(name).null_count:
                mask = pc.is_null(table.column(name))
                null = mask if null is None else pc.or_(null, mask)
        if null is not None:
            lonely = table.filter(null)
            table = table.filter(pc.invert(null))
            pad = (None,) * (len(self.schema) - len(names))
            if side == b"l" and self.mode in ("left", "full", "anti"):
                out.extend(row + pad for row in to_rows(lonely, names))
                counts.extend(weights(lonely))
            elif side == b"r" and self.mode in ("right", "full"):
                out.extend(pad + row for row in to_rows(lonely, names))
                counts.extend(weights(lonely))
        rows = to_rows(table, names)
        encoded = encode_rows(rows)
        deltas = by_key(encode_keys(table, keys), encoded, weights(table))
        return deltas, dict(zip(encoded, rows, strict=True))

    def _apply_key(
        self,
        left: Bag,
        left_delta: dict[bytes, int],
        right: Bag,
        right_delta: dict[bytes, int],
        out: list[Row],
        counts: list[int],
        puts: list[tuple[bytes, bytes | None]],
    ) -> None:
        mode = self.mode
        left_was, right_was = bool(left), bool(right)
        left_is = left.change(left_delta, puts) if left_delta else left_was
        right_is = right.change(right_delta, puts) if right_delta else right_was
        pairs = mode in ("left", "right", "full")
        flips = left_was != left_is or right_was != right_is
        changed_left: Rows = [(decode_row(row), weight) for row, weight in left_delta.items()]
        changed_right: Rows = [(decode_row(row), weight) for row, weight in right_delta.items()]
        old_left: Rows = []
        old_right: Rows = []
        if left_was and ((pairs and right_delta) or right_was != right_is):
            old_left = [(decode_row(row), weight) for row, weight in left.rows()]
        if right_was and (
            (pairs and left_delta) or (mode in ("right", "full") and left_was != left_is)
        ):
            old_right = [(decode_row(row), weight) for row, weight in right.rows()]
        if pairs:
            for row, weight in changed_left:
                for other, factor in old_right:
                    out.append(row + other)
                    counts.append(weight * factor)
            for other, factor in changed_right:
                for row, weight in old_left:
                    out.append(row + other)
                    counts.append(weight * factor)
                for row, weight in changed_left:
                    out.append(row + other)
                    counts.append(weight * factor)
        if not (flips or left_delta or right_delta):
            return
        if mode == "semi":
            _conditional(old_left, changed_left, right_was, right_is, (), True, out, counts)
            return
        pad: Row = (None,) * (len(self.schema) - len(self.left))
        if mode in ("left", "full", "anti"):
            _conditional(
                old_left, changed_left, not right_was, not right_is, pad, True, out, counts
            )
        if mode in ("right", "full"):
            pad = (None,) * len(self.left)
            _conditional(
                old_right, changed_right, not left_was, not left_is, pad, False, out, counts
            )


def _forget(state: OperatorState, side: _Side, place: int, expiry: Expiry, horizon: int) -> None:
    """Note when the rows that came are over, and remove those that are."""
    mark = side.mark
    expiry.remember(state, ((coarse(end), key) for end, key in side.times(place)), PREFIX + mark)
    bags = read_bags(state, [mark + key for key in expiry.over(state, horizon, PREFIX + mark)])
    puts: list[tuple[bytes, bytes | None]] = []
    for bag in bags.values():
        past = {
            row: -weight
            for row, weight in bag.rows()
            if expiry.is_over(decode_row(row)[place], horizon)
        }
        if past:
            bag.change(past, puts)
    state.put_many(sorted(puts))


def _conditional(
    old: Rows,
    changed: Rows,
    was: bool,
    shown: bool,
    pad: Row,
    pad_right: bool,
    out: list[Row],
    counts: list[int],
) -> None:
    """The change of "the rows, if the condition holds" when it held and when it holds now."""
    if was and shown:
        emit = changed
    elif was:
        emit = [(row, -weight) for row, weight in old]
    elif shown:
        emit = old + changed
    else:
        return
    for row, weight in emit:
        out.append(row + pad if pad_right else pad + row)
        counts.append(weight)
