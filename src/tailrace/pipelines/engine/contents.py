"""What an operator has put out up to now, read from its state.

A view that begins later starts from it: the rows that the operators it shares with others
hold are the first changes its own operators see (see `ticks.seed_from_state`). Not every state tells:
an outer join does not keep rows whose key is NULL, what has expired was put out and
forgotten, a stream keeps nothing. Those are read from what they themselves read.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from itertools import islice
from typing import cast

import pyarrow as pa

from tailrace.pipelines.engine.graph import Operator
from tailrace.pipelines.engine.operators.bags import Bag
from tailrace.pipelines.engine.operators.counts import Counts
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.keyed import Keyed, KeylessTable
from tailrace.pipelines.engine.operators.sumjoin import SumJoin
from tailrace.pipelines.errors import ContentsError
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.keys import decodable, decode_key
from tailrace.pipelines.values.rows import Row, changes, decode_row

Found = tuple[pa.Table, bytes | None]


def readable(operator: Operator) -> bool:
    """Whether all that an operator has put out can be read from its state."""
    if getattr(operator, "expiry", None) is not None:
        return False
    match operator:
        case Keyed() | KeylessTable():
            return True
        case SumJoin():
            return not operator.outer
        case Join():
            return operator.mode in ("inner", "semi")
        case Group():
            return decodable([operator.schema.field(name).type for name in operator.keys])
        case Counts():
            return decodable(operator.schema.types)
    return False


def contents(operator: Operator, state: OperatorState, after: bytes, limit: int) -> Found:
    """The output of one shard whose place lies behind `after` (at first b""), about `limit`
    rows: changes that come, and the place to go on from; None if that was all.

    Raises ContentsError for a state that cannot be read, whole as it is."""
    read = _READERS[type(operator)]
    rows, weights, place = read(operator, state, after, limit)
    return changes(rows, weights, operator.schema), place  # type: ignore[attr-defined]


Read = tuple[list[Row], list[int], bytes | None]


def _page(
    state: OperatorState, prefix: bytes, after: bytes, limit: int
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    page = list(islice(state.scan(prefix, after), limit))
    return page, page[-1][0] if len(page) == limit else None


def _keyed(operator: Keyed, state: OperatorState, after: bytes, limit: int) -> Read:
    page, place = _page(state, b"", after, limit)
    return [decode_row(value) for _, value in page], [1] * len(page), place


def _bag(operator: KeylessTable, state: OperatorState, after: bytes, limit: int) -> Read:
    page, place = _page(state, b"", after, limit)
    found = [marshal.loads(value) for _, value in page]
    return [decode_row(data) for _, data in found], [weight for weight, _ in found], place


def _group(operator: Group, state: OperatorState, after: bytes, limit: int) -> Read:
    page, place = _page(state, b"g", after, limit)
    kinds = [operator.schema.field(name).type for name in operator.keys]
    keys = [_decoded(entry[1:], kinds) if kinds else () for entry, _ in page]
    values = [operator.shown(data) for _, data in page]
    return [k + v for k, v in zip(keys, values, strict=True)], [1] * len(page), place


def _counts(operator: Counts, state: OperatorState, after: bytes, limit: int) -> Read:
    page, place = _page(state, b"", after, limit)
    rows: list[Row] = []
    weights: list[int] = []
    for key, value in page:
        weight = operator.shown(marshal.loads(value))
        if weight:
            rows.append(_decoded(key, operator.schema.types))
            weights.append(weight)
    return rows, weights, place


def _join(operator: Join, state: OperatorState, after: bytes, limit: int) -> Read:
    rows: list[Row] = []
    weights: list[int] = []
    last = after
    for key, header in state.scan(b"l", after):
        if last and key.startswith(last):
            continue  # a row of the large bag before: no key begins with another
        if len(rows) >= limit:
            return rows, weights, last
        last = key
        right_key = b"r" + key[1:]
        right_header = state.get(right_key)
        if right_header is None:
            continue
        left = _rows(Bag(state, key, header))
        if operator.mode == "semi":
            rows += [row for row, _ in left]
            weights += [weight for _, weight in left]
            continue
        right = _rows(Bag(state, right_key, right_header))
        for row, weight in left:
            rows += [row + other for other, _ in right]
            weights += [weight * factor for _, factor in right]
    return rows, weights, None


def _sum_join(operator: SumJoin, state: OperatorState, after: bytes, limit: int) -> Read:
    rows: list[Row] = []
    last = after
    for key, header in state.scan(b"r", after):
        if last and key.startswith(last):
            continue  # a row of the large bag before: no key begins with another
        if len(rows) >= limit:
            return rows, [1] * len(rows), last
        last = key
        others = _rows(Bag(state, key, header))
        for row, amounts in operator.held(state, key[1:]):
            for other, weight in others:
                rows.append(row + other + tuple([weight * amount for amount in amounts]))
    return rows, [1] * len(rows), None


def _rows(bag: Bag) -> list[tuple[Row, int]]:
    return [(decode_row(data), weight) for data, weight in bag.rows()]


def _decoded(key: bytes, kinds: Iterable[pa.DataType]) -> Row:
    row = decode_key(key, kinds)
    if row is None:
        raise ContentsError(
            "a key in the state of an operator is cut short",
            detail=f"it begins with {key[:40]!r}",
            hint="the view is filled from its topics instead",
        )
    return row


_READERS: dict[type, Callable[..., Read]] = cast(
    "dict[type, Callable[..., Read]]",
    {
        Keyed: _keyed,
        KeylessTable: _bag,
        Group: _group,
        Counts: _counts,
        Join: _join,
        SumJoin: _sum_join,
    },
)
