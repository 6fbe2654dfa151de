"""The version that was valid at a row's time: JOIN … FOR SYSTEM_TIME AS OF.

    "l" + key + hash(row)       -> marshal (time, row, weight)    the rows of the left side
    "r" + key + time + ordinal  -> marshal (row, or None: gone)   every version of the right

A version is valid from its own time until that of the next one. A key whose versions changed
is computed again for all its rows, so a late version corrects what was joined before; a late
row simply finds its version.
"""

from __future__ import annotations

import hashlib
import marshal
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pyarrow as pa

from tailrace.pipelines.incremental.graph import DELETED, VERSIONED_AT, WEIGHT, TickContext
from tailrace.pipelines.incremental.keys import encode_keys
from tailrace.pipelines.incremental.rows import (
    Row,
    changes,
    dumps,
    encode_row,
    physical,
    to_rows,
    weighted,
    weights,
)
from tailrace.pipelines.state.store import OperatorState

ORDINAL = "__ordinal"
_OFFSET = 1 << 63
Versions = list[tuple[int, Row | None]]


@dataclass(frozen=True, slots=True)
class History:
    """Every version of a table, as facts. No state."""

    schema: pa.Schema
    table: str
    kind: ClassVar[str] = "history"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        return f"history of {self.table}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        table = inputs[0]
        count = table.num_rows
        ordinals = pa.array([(tick.number << 24) + i for i in range(count)], pa.int64())
        made = {name: table.column(name) for name in self.schema.names if name != ORDINAL}
        made[ORDINAL] = ordinals
        made[WEIGHT] = pa.array([1] * count, pa.int64())
        schema = weighted(self.schema)
        return pa.Table.from_arrays([made[name] for name in schema.names], schema=schema)


def history_schema(schema: pa.Schema) -> pa.Schema:
    return (
        schema.append(pa.field(VERSIONED_AT, pa.timestamp("us", tz="UTC")))
        .append(pa.field(DELETED, pa.bool_()))
        .append(pa.field(ORDINAL, pa.int64()))
    )


@dataclass(frozen=True, slots=True)
class AsOf:
    """The left columns, then those of the version at `time` (`outer`: NULL without one)."""

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    time: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    outer: bool
    schema: pa.Schema
    kind: ClassVar[str] = "as-of"
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        on = " and ".join(f"{a} = {b}" for a, b in pairs)
        kind = "left as-of join" if self.outer else "as-of join"
        return f"{kind} on {on} at {self.time} → {', '.join(self.schema.names)}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        left, right = inputs
        rows: dict[bytes, dict[bytes, list[Any]]] = {}
        times = physical(left.column(self.time))
        for at, (key, row, weight) in enumerate(
            zip(
                encode_keys(left, self.left_keys),
                to_rows(left, self.left),
                weights(left),
                strict=True,
            )
        ):
            data = encode_row((times[at], row))
            entry = b"l" + key + hashlib.blake2b(data, digest_size=16).digest()
            found = rows.setdefault(key, {}).setdefault(entry, [times[at], row, 0])
            found[2] += weight
        versions: dict[bytes, list[tuple[bytes, bytes]]] = {}
        payload = to_rows(right, self.right)
        gone = physical(right.column(DELETED))
        since = physical(right.column(VERSIONED_AT))
        ordinals = physical(right.column(ORDINAL))
        for at, key in enumerate(encode_keys(right, self.right_keys)):
            moment = (cast(int, since[at]) + _OFFSET).to_bytes(8, "big")
            entry = b"r" + key + moment + ordinals[at].to_bytes(8, "big")  # type: ignore[attr-defined]
            value = dumps(None if gone[at] else payload[at])
            versions.setdefault(key, []).append((entry, value))
        out: list[Row] = []
        counts: list[int] = []
        for key in sorted(rows.keys() | versions.keys()):
            self._apply_key(state, key, rows.get(key, {}), versions.get(key, []), out, counts)
        return changes(out, counts, self.schema)

    def _apply_key(
        self,
        state: OperatorState,
        key: bytes,
        delta: dict[bytes, list[Any]],
        added: list[tuple[bytes, bytes]],
        out: list[Row],
        counts: list[int],
    ) -> None:
        before = self._versions(state, key)
        after = before
        if added:
            stored = [marshal.loads(v) for _, v in state.scan(b"l" + key)]
            state.put_many(sorted(added))
            after = self._versions(state, key)
            for time, row, weight in stored:
                self._emit(time, row, -weight, before, out, counts)
                self._emit(time, row, weight, after, out, counts)
        entries = sorted(entry for entry, change in delta.items() if change[2])
        puts: list[tuple[bytes, bytes | None]] = []
        for entry, value in zip(entries, state.get_many(entries), strict=True):
            time, row, weight = delta[entry]
            self._emit(time, row, weight, after, out, counts)
            total = (marshal.loads(value)[2] if value is not None else 0) + weight
            puts.append((entry, dumps((time, row, total)) if total else None))
        state.put_many(puts)

    def _versions(self, state: OperatorState, key: bytes) -> Versions:
        start = 1 + len(key)
        return [
            (int.from_bytes(entry[start : start + 8], "big") - _OFFSET, marshal.loads(value))
            for entry, value in state.scan(b"r" + key)
        ]

    def _emit(
        self,
        time: int | None,
        row: Row,
        weight: int,
        versions: Versions,
        out: list[Row],
        counts: list[int],
    ) -> None:
        version: Row | None = None
        if time is not None:
            at = bisect_right(versions, time, key=lambda pair: pair[0])
            version = versions[at - 1][1] if at else None
        if version is None and not self.outer:
            return
        out.append(row + (version if version is not None else (None,) * len(self.right)))
        counts.append(weight)
