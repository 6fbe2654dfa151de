"""GROUP BY: −old +new of every group that changed.

    "g" + key                   -> marshal (rows, integers of linear aggregates, shown values,
                                   values of the ordered aggregates of a small group)
    "d" + number + key + value  -> marshal count           distinct aggregates
    "v" + number + key + order  -> see `ordered`           ordered aggregates of a large group
    "v" + number + key          -> see `growing`           the same, of rows that only come
    "s" + number + key          -> a sketch                approximate aggregates

Without keys there is always one row, from the first tick on. A group whose rows are gone
leaves the state.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import add
from typing import Any, ClassVar, cast

import pyarrow as pa

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.engine.operators.aggregates import Aggregate, Linear, form_of, linear
from tailrace.pipelines.engine.operators.append_only_extremes import (
    FIRST_ONLY,
    KEY_LIMIT,
    Growing,
    further,
)
from tailrace.pipelines.engine.operators.expiry import Expiry
from tailrace.pipelines.engine.operators.ordered import Extreme, Known, Ordered, is_plain_extreme
from tailrace.pipelines.engine.operators.sketches.approximate import Sketched
from tailrace.pipelines.engine.operators.sums import SUM_ROWS, Summed, given_sums, sum_columns
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import bounded, encode_keys, key_values
from tailrace.pipelines.values.rows import Row, changes, dumps, physical, to_rows, weights


@dataclass(frozen=True, slots=True)
class Group:
    """The output is the keys, then the aggregates, in their order.

    `rows`: the column that says how many rows each row of the input stands for, where joins
    have added up what the aggregates need (see `sumjoin`); those are their arguments then.
    """

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    schema: pa.Schema
    expiry: Expiry | None = None
    rows: str = ""
    kind: ClassVar[str] = "group"
    format: ClassVar[int] = 2  # before, ordered aggregates of small groups had entries, too
    reads: ClassVar[tuple[int, ...]] = (1,)

    @property
    def wakes(self) -> bool:
        return not self.keys

    @property
    def form(self) -> int:
        return max(map(form_of, self.aggregates), default=1)

    def describe(self) -> str:
        listed = ", ".join(aggregate.describe() for aggregate in self.aggregates)
        of = f" of {self.rows}" if self.rows else ""
        return f"group by ({', '.join(self.keys)}) {listed}{of}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0]
        kept = [(aggregate, linear(aggregate)) for aggregate in self.aggregates]
        width = sum(rule.width for _, rule in kept if rule)
        summed: Summed | None = None
        if self.rows:
            summed = given_sums(table, self.keys, self.rows, kept)
        elif table.num_rows >= SUM_ROWS:
            summed = sum_columns(table, self.keys, kept)
        if summed is not None:
            keys = encode_keys(summed.table, self.keys)
            if self.keys and len(set(keys)) == len(keys):
                return self._apply_sums(state, keys, summed, kept, tick)
            if summed.firsts:
                summed = None
            else:
                table, sums = summed.table, summed.sums
        counts = weights(table)
        keys = encode_keys(table, self.keys)
        shown: dict[bytes, Row] = dict(zip(keys, self._key_rows(table), strict=True))
        if not self.keys:
            shown[b"\x02"] = ()
        order = sorted(shown)
        found = state.get_many([b"g" + key for key in order])
        befores: list[Known | None] = [marshal.loads(value) if value else None for value in found]
        loaded = dict(zip(order, befores, strict=True))
        totals: dict[bytes, int] = dict.fromkeys(order, 0)
        for key, weight in zip(keys, counts, strict=True):
            totals[key] += weight
        deltas = {key: [0] * width for key in order} if width else {}
        puts: list[tuple[bytes, bytes | None]] = []
        at = 0
        front: list[Ordered | Sketched | Growing] = []
        if summed is not None and width:
            for key, row in zip(keys, sums, strict=True):
                deltas[key] = [a + b for a, b in zip(deltas[key], row, strict=True)]
        added = summed is None and self._add_sums(table, kept, deltas)
        for number, (aggregate, rule) in enumerate(kept if summed is None else ()):
            used = self._used(aggregate, table)
            if rule is None:
                front.append(
                    _keeper(aggregate)(state, number, aggregate, table, keys, counts, used)
                )
                continue
            if aggregate.distinct:
                _add_distinct(
                    state, number, aggregate, rule, table, keys, counts, used, deltas, at, puts
                )
            elif not added:
                _add_linear(aggregate, rule, table, keys, counts, used, deltas, at)
            at += rule.width
        holding: list[Ordered] = []
        for place, keeper in enumerate(front):
            if isinstance(keeper, Ordered):
                keeper.begin(place, len(holding), loaded)
                holding.append(keeper)
            keeper.write(puts)
        state.put_many(sorted(puts))
        plain = _plain(self.schema)
        out: list[Row] = []
        emitted: list[int] = []
        groups: list[tuple[bytes, bytes | None]] = []
        shown_before = [
            [None if before is None else before[2][i] for before in befores]
            for i in range(len(front))
        ]
        finished = [
            keeper.finish_all(order, known)
            if isinstance(keeper, Ordered)
            else list(map(keeper.finish, order, known))
            for keeper, known in zip(front, shown_before, strict=True)
        ]
        holds = [keeper.held_of(order) for keeper in holding]
        for key, before, values, held in zip(
            order, befores, _rows(finished, len(order)), _rows(holds, len(order)), strict=True
        ):
            rows = totals[key] + (before[0] if before else 0)
            slots = deltas[key] if width else []
            if before and width:
                slots = [a + b for a, b in zip(before[1], slots, strict=True)]
            alive = rows != 0 or not self.keys
            if width:
                old = self._row(kept, before[1], before[2]) if before else None
                new = self._row(kept, slots, values) if alive else None
            else:
                old = tuple(before[2]) if before else None
                new = values if alive else None
            if old != new if plain else not _same(old, new):
                prefix = shown[key]
                if old is not None:
                    out.append(prefix + old)
                    emitted.append(-1)
                if new is not None:
                    out.append(prefix + new)
                    emitted.append(1)
            entry = None
            if alive and holding:
                entry = dumps((rows, slots, list(values), list(held)))
            elif alive:
                entry = dumps((rows, slots, list(values)))
            groups.append((b"g" + key, entry))
        state.put_many(groups)
        self._forget(state, table, keys, {key for key in order if loaded[key] is None}, tick)
        return changes(out, emitted, self.schema)

    def _apply_sums(
        self,
        state: OperatorState,
        keys: list[bytes],
        given: Summed,
        kept: Sequence[tuple[Aggregate, Linear | None]],
        tick: TickContext,
    ) -> pa.Table:
        """Groups that are given once each, with what to add to them: the short way."""
        table, sums, counts = given.table, given.sums, weights(given.table)
        extremes = [aggregate for aggregate, rule in kept if rule is None]
        finishes: list[tuple[Callable[[list[int]], object], int, int]] = []
        for _, rule in kept if not extremes else ():
            at = finishes[-1][2] if finishes else 0
            finishes.append((rule.finish, at, at + rule.width))  # type: ignore[union-attr]
        plain = _plain(self.schema)
        prefixes = self._key_rows(table)
        order = sorted(range(len(keys)), key=keys.__getitem__)
        entries = [b"g" + keys[place] for place in order]
        out: list[Row] = []
        emitted: list[int] = []
        puts: list[tuple[bytes, bytes | None]] = []
        fresh: set[bytes] = set()
        for place, entry, value in zip(order, entries, state.get_many(entries), strict=True):
            slots, rows = sums[place], counts[place]
            values: Sequence[object] = given.firsts[place] if extremes else ()
            old: Row | None = None
            if value is None:
                fresh.add(keys[place])
            else:
                known, before, shown = cast(
                    "tuple[int, list[int], list[object]]", marshal.loads(value)
                )
                rows += known
                slots = list(map(add, before, slots))
                if extremes:
                    old = self._row(kept, before, shown)
                    values = list(map(further, extremes, shown, values))
                else:
                    old = tuple([finish(before[a:b]) for finish, a, b in finishes])
            new: Row | None = None
            if rows and extremes:
                new = self._row(kept, slots, values)
            elif rows:
                new = tuple([finish(slots[a:b]) for finish, a, b in finishes])
            if old != new if plain else not _same(old, new):
                prefix = prefixes[place]
                if old is not None:
                    out.append(prefix + old)
                    emitted.append(-1)
                if new is not None:
                    out.append(prefix + new)
                    emitted.append(1)
            puts.append((entry, dumps((rows, slots, list(values))) if rows else None))
        state.put_many(puts)
        self._forget(state, table, keys, fresh, tick)
        return changes(out, emitted, self.schema)

    def _forget(
        self,
        state: OperatorState,
        table: pa.Table,
        keys: Sequence[bytes],
        fresh: Collection[bytes],
        tick: TickContext,
    ) -> None:
        """Note when groups that are new (`fresh`) are over, and remove those that are."""
        horizon = self.expiry.horizon(tick) if self.expiry else None
        if self.expiry is None or horizon is None:
            return
        ends = zip(physical(table.column(self.expiry.column)), keys, strict=True)
        self.expiry.remember(
            state, ((cast("int | None", end), key) for end, key in ends if key in fresh)
        )
        over = self.expiry.over(state, horizon)
        gone = [entry for key in over for entry in self._entries(state, key)]
        state.put_many([(entry, None) for entry in sorted(gone)])

    def shown(self, data: bytes) -> Row:
        """The aggregates of a group, as its entry in the state has them."""
        _, slots, values, *_ = marshal.loads(data)
        return self._row([(a, linear(a)) for a in self.aggregates], slots, values)

    def _entries(self, state: OperatorState, key: bytes) -> list[bytes]:
        """Everything the state holds of a group."""
        found = [b"g" + key]
        for number in range(len(self.aggregates)):
            for letter in (b"d", b"v", b"s"):
                prefix = letter + b"%c" % number + bounded(key, KEY_LIMIT)
                found += [entry for entry, _ in state.scan(prefix)]
        return found

    def _key_rows(self, table: pa.Table) -> list[Row]:
        columns = [key_values(table.column(name)) for name in self.keys]
        return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows

    def _add_sums(
        self,
        table: pa.Table,
        kept: Sequence[tuple[Aggregate, Linear | None]],
        deltas: dict[bytes, list[int]],
    ) -> bool:
        """Add those aggregates that Arrow can add up, if it can for all but the distinct and
        the ordered ones; whether it could."""
        if table.num_rows < SUM_ROWS:
            return False
        simple = [one for one in kept if one[1] is not None and not one[0].distinct]
        summed = sum_columns(table, self.keys, simple) if simple else None
        if summed is None:
            return False
        places: list[int] = []
        at = 0
        for aggregate, rule in kept:
            if rule is not None:
                if not aggregate.distinct:
                    places += range(at, at + rule.width)
                at += rule.width
        for key, row in zip(encode_keys(summed.table, self.keys), summed.sums, strict=True):
            slots = deltas[key]
            for place, part in zip(places, row, strict=True):
                slots[place] += part
        return True

    def _used(self, aggregate: Aggregate, table: pa.Table) -> list[object] | None:
        return physical(table.column(aggregate.condition)) if aggregate.condition else None

    def _row(
        self,
        kept: Sequence[tuple[Aggregate, Linear | None]],
        slots: list[int],
        values: Sequence[object],
    ) -> Row:
        row: list[object] = []
        at = 0
        ordered = iter(values)
        for _, rule in kept:
            if rule is None:
                row.append(next(ordered))
            else:
                row.append(rule.finish(slots[at : at + rule.width]))
                at += rule.width
        return tuple(row)


def _keeper(aggregate: Aggregate) -> type[Ordered] | type[Sketched] | type[Growing]:
    """How an aggregate that is not linear keeps its values."""
    if not aggregate.grows:
        return Extreme if is_plain_extreme(aggregate) else Ordered
    return Growing if aggregate.function in FIRST_ONLY else Sketched


def _rows(columns: Sequence[Sequence[Any]], count: int) -> Iterable[Row]:
    """The rows of some columns, perhaps of none."""
    return zip(*columns, strict=True) if columns else repeat((), count)


def _plain(schema: pa.Schema) -> bool:
    """Whether equal values of these columns have equal bytes."""
    return not any(pa.types.is_floating(kind) or pa.types.is_nested(kind) for kind in schema.types)


def _same(old: Row | None, new: Row | None) -> bool:
    # By bytes: NaN equals itself and the sign of a zero counts.
    return old is new or (old is not None and new is not None and dumps(old) == dumps(new))


def _arguments(aggregate: Aggregate, table: pa.Table) -> list[Row]:
    return to_rows(table, aggregate.arguments)


def _add_linear(
    aggregate: Aggregate,
    rule: Linear,
    table: pa.Table,
    keys: list[bytes],
    counts: list[int],
    used: list[object] | None,
    deltas: dict[bytes, list[int]],
    at: int,
) -> None:
    parts_of = rule.parts
    for position, values in enumerate(_arguments(aggregate, table)):
        if used is not None and used[position] is not True:
            continue
        parts = parts_of(values)
        if parts is None:
            continue
        slots = deltas[keys[position]]
        weight = counts[position]
        index = at
        for part in parts:
            slots[index] += weight * part
            index += 1


def _add_distinct(
    state: OperatorState,
    number: int,
    aggregate: Aggregate,
    rule: Linear,
    table: pa.Table,
    keys: list[bytes],
    counts: list[int],
    used: list[object] | None,
    deltas: dict[bytes, list[int]],
    at: int,
    puts: list[tuple[bytes, bytes | None]],
) -> None:
    encoded = encode_keys(table, aggregate.arguments)
    changed: dict[bytes, list[Any]] = {}
    prefix = b"d%c" % number
    rows = _arguments(aggregate, table)
    for (key, argument), (weight, position) in _pairs(keys, encoded, counts, used).items():
        values = rows[position]
        if None not in values:
            entry = prefix + bounded(key, KEY_LIMIT) + bounded(argument, KEY_LIMIT)
            changed[entry] = [key, values, weight]
    entries = sorted(changed)
    for entry, value in zip(entries, state.get_many(entries), strict=True):
        key, values, weight = cast("tuple[bytes, Row, int]", changed[entry])
        before = marshal.loads(value) if value is not None else 0
        after = before + weight
        if after != before:
            puts.append((entry, dumps(after) if after else None))
        sign = (after > 0) - (before > 0)
        parts = rule.parts(values) if sign else None
        if parts is not None:
            slots = deltas[key]
            for index, part in enumerate(parts):
                slots[at + index] += sign * part


def _pairs(
    keys: list[bytes], arguments: list[bytes], counts: list[int], used: list[object] | None
) -> dict[tuple[bytes, bytes], tuple[int, int]]:
    """The weight of every pair of group and arguments, and a row that has it."""
    if used is not None:
        places = [place for place, one in enumerate(used) if one is True]
        keys, arguments = [keys[p] for p in places], [arguments[p] for p in places]
        counts = [counts[p] for p in places]
    else:
        places = list(range(len(keys)))
    pairs = list(zip(keys, arguments, strict=True))
    last = dict(zip(pairs, places, strict=True))
    if all(count == 1 for count in counts):
        return {pair: (weight, last[pair]) for pair, weight in Counter(pairs).items()}
    totals: dict[tuple[bytes, bytes], int] = dict.fromkeys(last, 0)
    for pair, count in zip(pairs, counts, strict=True):
        totals[pair] += count
    return {pair: (weight, last[pair]) for pair, weight in totals.items()}
