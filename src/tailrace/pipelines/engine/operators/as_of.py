"""The version that was valid at a row's time: JOIN … FOR SYSTEM_TIME AS OF.

    "l" + key + time + hash(row) -> marshal (time, row, weight)   the rows of the left side
    "u" + key + hash(row)        -> the same                      those without a time
    "r" + key + time + ordinal   -> marshal (row, or None: gone; status)     every version
    "x" + when + key of an entry -> nothing                       what may be forgotten then
    "z"                          -> time                          the newest of rows that left

A version is valid from its own time until that of the next one. The rows behind a version
that comes late are computed again, so it corrects what was joined before; a late row simply
finds its version. A row of a copy of the table is valid since ever where it is the first that
is known of its key. Else it says what was true when it was copied: a version of its own if
that differs from the one known, nothing if it does not.

Where the table's history is kept for a time only (`kept_ms`), a version leaves that long after
a tick saw it replaced, unless a row still stands on it: a row that is there can always be
changed and taken back exactly. A time whose version has left is *forgotten*: a row that comes
for it finds no version, and a version that begins in it is not taken. Rows of a stream (`facts`)
are never taken back; they leave as long after they came, and what was shown for them stays.
What comes too late for this is counted (`TickContext.forgotten`): rows for a forgotten time,
versions that begin in one, and versions that begin before a row of a stream that has left.
"""

from __future__ import annotations

import hashlib
import marshal
from bisect import bisect_right, insort
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.columns import COPIED, DELETED, VERSIONED_AT, WEIGHT
from tailrace.pipelines.values.keys import encode_keys
from tailrace.pipelines.values.rows import (
    Row,
    changes,
    dumps,
    encode_row,
    physical,
    to_rows,
    weighted,
    weights,
)

ORDINAL = "__ordinal"
SINCE_EVER = -62_135_596_800_000_000  # 0001-01-01, in microseconds
_OFFSET = 1 << 63
_LEFT = b"z"
_LAST, _REPLACED, _HELD, _FORGOTTEN = range(4)  # the status of a version


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
        .append(pa.field(COPIED, pa.bool_()))
        .append(pa.field(DELETED, pa.bool_()))
        .append(pa.field(ORDINAL, pa.int64()))
    )


@dataclass(frozen=True, slots=True)
class _Version:
    entry: bytes
    since: int
    row: Row | None
    status: int


_Arrival = tuple[int, int, bool, "Row | None"]  # ordinal, time, of a copy?, row (None: gone)


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
    kept_ms: int | None = None
    facts: bool = False
    table: str = ""  # the topic of the versions
    null_safe: tuple[bool, ...] = ()  # by key; else NULL is no key of any version
    kind: ClassVar[str] = "as-of"
    form: ClassVar[int] = 2  # before, rows whose key is NULL stood under their times
    wakes: ClassVar[bool] = False

    def describe(self) -> str:
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        signs = ["<=>" if safe else "=" for safe in self.null_safe] or ["="] * len(self.left_keys)
        on = " and ".join(f"{a} {sign} {b}" for (a, b), sign in zip(pairs, signs, strict=True))
        kind = "left as-of join" if self.outer else "as-of join"
        kept = "for ever" if self.kept_ms is None else f"for {_words(self.kept_ms)}"
        what = "rows and replaced versions" if self.facts else "replaced versions"
        shown = ", ".join(self.schema.names)
        return f"{kind} on {on} at {self.time} → {shown}; keeps {what} {kept}"

    def apply(self, state: OperatorState, inputs: list[pa.Table], tick: TickContext) -> pa.Table:
        left, right = inputs
        self._forget_due(state, tick)
        rows: dict[bytes, dict[bytes, list[Any]]] = {}
        times = self._times(left)
        for at, (key, row, weight) in enumerate(
            zip(
                encode_keys(left, self.left_keys),
                to_rows(left, self.left),
                weights(left),
                strict=True,
            )
        ):
            time = times[at]
            digest = hashlib.blake2b(encode_row((time, row)), digest_size=16).digest()
            entry = b"u" + key + digest if time is None else b"l" + key + _bytes(time) + digest
            found = rows.setdefault(key, {}).setdefault(entry, [time, row, 0])
            found[2] += weight
        versions: dict[bytes, list[_Arrival]] = {}
        columns = (right.column(name) for name in (ORDINAL, VERSIONED_AT, COPIED, DELETED))
        for key, row, ordinal, since, copied, gone in zip(
            encode_keys(right, self.right_keys),
            to_rows(right, self.right),
            *map(physical, columns),
            strict=True,
        ):
            arrival = (cast(int, ordinal), cast(int, since), bool(copied), None if gone else row)
            versions.setdefault(key, []).append(arrival)
        out: list[Row] = []
        counts: list[int] = []
        for key in sorted(rows.keys() | versions.keys()):
            self._apply_key(state, key, rows.get(key, {}), versions.get(key, []), tick, out, counts)
        return changes(out, counts, self.schema)

    def _times(self, left: pa.Table) -> list[int | None]:
        """The times of the rows; those whose key is NULL have no version at any."""
        times = left.column(self.time)
        for name, safe in zip(self.left_keys, self.null_safe, strict=False):
            if not safe and left.column(name).null_count:
                times = pc.if_else(pc.is_null(left.column(name)), None, times)
        return cast("list[int | None]", physical(times))

    def _apply_key(
        self,
        state: OperatorState,
        key: bytes,
        delta: dict[bytes, list[Any]],
        arrived: list[_Arrival],
        tick: TickContext,
        out: list[Row],
        counts: list[int],
    ) -> None:
        before = _versions(state, key)
        after = before
        added = self._timed(key, before, arrived)
        if added:
            after = self._take_in(state, before, added, tick)
            earliest = added[0][0][1:-8]  # the key and the time of the first
            stored = [marshal.loads(v) for _, v in state.scan(b"l" + key, b"l" + earliest)]
            for time, row, weight in stored:
                was, now = _at(before, time), _at(after, time)
                if was != now:
                    self._emit(row, -weight, was, out, counts)
                    self._emit(row, weight, now, out, counts)
        entries = sorted(entry for entry, change in delta.items() if change[2])
        puts: list[tuple[bytes, bytes | None]] = []
        left: list[int] = []
        for entry, value in zip(entries, state.get_many(entries), strict=True):
            time, row, weight = delta[entry]
            self._emit(row, weight, _at(after, time), out, counts)
            if weight > 0 and _is_forgotten(after, time):
                tick.count_forgotten(self.table, weight)
            total = (marshal.loads(value)[2] if value is not None else 0) + weight
            puts.append((entry, dumps((time, row, total)) if total else None))
            if time is not None and not total:
                left.append(time)
            elif self.facts and self.kept_ms is not None and time is not None:
                puts.append((self._note(entry, tick), b"\x01"))
        state.put_many(sorted(puts, key=lambda pair: pair[0]))
        if self.kept_ms is not None:
            # A row that left, or a version in front of it, may have been all that held another.
            left += [_moment(entry[-16:-8]) - 1 for entry, _ in added]
            for time in left:
                self._release(state, key, time)

    def _timed(
        self, key: bytes, before: list[_Version], arrived: list[_Arrival]
    ) -> list[tuple[bytes, Row | None]]:
        """The versions that came, by their entries: those of a copy have their times now."""
        known = list(before)
        place = self.right.index(VERSIONED_AT) if VERSIONED_AT in self.right else None
        for ordinal, since, copied, row in sorted(arrived, key=lambda one: one[0]):
            if copied and not known:
                since = SINCE_EVER
                if row is not None and place is not None:
                    row = (*row[:place], since, *row[place + 1 :])
            elif copied and _without(_at(known, since), place) == _without(row, place):
                continue
            entry = b"r" + key + _bytes(since) + ordinal.to_bytes(8, "big")
            insort(known, _Version(entry, since, row, _LAST), key=lambda version: version.entry)
        old = {version.entry for version in before}
        return [(version.entry, version.row) for version in known if version.entry not in old]

    def _take_in(
        self,
        state: OperatorState,
        before: list[_Version],
        added: list[tuple[bytes, Row | None]],
        tick: TickContext,
    ) -> list[_Version]:
        """The versions with those that came; the ones that are replaced now are noted."""
        known = list(before)
        newest = state.get(_LEFT) if self.facts else None
        for entry, row in added:
            at = bisect_right(known, entry, key=lambda version: version.entry)
            begins_in_forgotten = at > 0 and known[at - 1].status == _FORGOTTEN
            if begins_in_forgotten or (newest is not None and entry[-16:-8] <= newest):
                tick.count_forgotten(self.table, 1)
            if begins_in_forgotten:
                continue
            known.insert(at, _Version(entry, _moment(entry[-16:-8]), row, _LAST))
        puts: list[tuple[bytes, bytes | None]] = []
        came = {entry for entry, _ in added}
        for at, version in enumerate(known):
            replaced = at + 1 < len(known) and version.status == _LAST
            if replaced and self.kept_ms is not None:
                known[at] = version = replace(version, status=_REPLACED)
                puts.append((self._note(version.entry, tick), b"\x01"))
            if replaced or version.entry in came:
                puts.append((version.entry, dumps((version.row, version.status))))
        state.put_many(sorted(puts, key=lambda pair: pair[0]))
        return known

    def _emit(
        self, row: Row, weight: int, version: Row | None, out: list[Row], counts: list[int]
    ) -> None:
        if version is None and not self.outer:
            return
        out.append(row + (version if version is not None else (None,) * len(self.right)))
        counts.append(weight)

    # Forgetting -------------------------------------------------------------------------------

    def _note(self, entry: bytes, tick: TickContext) -> bytes:
        assert self.kept_ms is not None
        return b"x" + _bytes(tick.now_ms + self.kept_ms) + entry

    def _forget_due(self, state: OperatorState, tick: TickContext) -> None:
        """Let go what was to be kept until now: rows of a stream, then versions."""
        if self.kept_ms is None:
            return
        last = _bytes(tick.now_ms)
        due: list[bytes] = []
        for note, _ in state.scan(b"x"):
            if note[1:9] > last:
                break
            due.append(note)
        rows = [note[9:] for note in due if note[9:10] == b"l"]
        state.put_many(sorted((entry, None) for entry in (*due, *rows)))
        if rows:
            newest = max(entry[-24:-16] for entry in rows)
            state.put_many([(_LEFT, max(newest, state.get(_LEFT) or newest))])
        for entry in rows:
            self._release(state, entry[1:-24], _moment(entry[-24:-16]))
        for note in due:
            if note[9:10] == b"r":
                self._forget(state, note[10:-16], note[9:])

    def _release(self, state: OperatorState, key: bytes, time: int) -> None:
        """The version at `time` may have waited for the last row that stands on it."""
        versions = _versions(state, key)
        at = bisect_right(versions, time, key=lambda version: version.since)
        if at and versions[at - 1].status == _HELD:
            self._forget(state, key, versions[at - 1].entry)

    def _forget(self, state: OperatorState, key: bytes, entry: bytes) -> None:
        versions = _versions(state, key)
        at = next((i for i, version in enumerate(versions) if version.entry == entry), None)
        if at is None or at + 1 >= len(versions):
            return
        version, following = versions[at], versions[at + 1]
        first = next(iter(state.scan(b"l" + key, b"l" + key + _bytes(version.since))), None)
        if first is not None and _moment(first[0][-24:-16]) < following.since:
            state.put_many([(entry, dumps((version.row, _HELD)))])
            return
        # One mark stands for all the forgotten time up to the next version.
        marked = at > 0 and versions[at - 1].status == _FORGOTTEN
        puts = [(entry, None if marked else dumps((None, _FORGOTTEN)))]
        if following.status == _FORGOTTEN:
            puts.append((following.entry, None))
        state.put_many(puts)


def _versions(state: OperatorState, key: bytes) -> list[_Version]:
    return [
        _Version(entry, _moment(entry[-16:-8]), *marshal.loads(value))
        for entry, value in state.scan(b"r" + key)
    ]


def _at(versions: list[_Version], time: int | None) -> Row | None:
    """The version that is valid at a time; None: there is none, or it is forgotten."""
    if time is None:
        return None
    at = bisect_right(versions, time, key=lambda version: version.since)
    return versions[at - 1].row if at else None


def _without(row: Row | None, place: int | None) -> Row | None:
    """A version without the time it tells of itself."""
    return row if row is None or place is None else row[:place] + row[place + 1 :]


def _is_forgotten(versions: list[_Version], time: int | None) -> bool:
    if time is None:
        return False
    at = bisect_right(versions, time, key=lambda version: version.since)
    return at > 0 and versions[at - 1].status == _FORGOTTEN


def _words(milliseconds: int) -> str:
    """A duration as people say it."""
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("seconds", 1_000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


def _bytes(moment: int) -> bytes:
    return (moment + _OFFSET).to_bytes(8, "big")


def _moment(data: bytes) -> int:
    return int.from_bytes(data, "big") - _OFFSET
