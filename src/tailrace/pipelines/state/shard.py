"""One attempt at one tick: reads the committed state, keeps its own changes in memory.

`Attempt` opens shards as operators ask for them. `finish` writes one delta per shard
that changed; closing without it forgets everything. Nothing an attempt does can be seen
by another until a committed tick row names its files.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any

import lmdb

from tailrace.clock import SYSTEM
from tailrace.pipelines.state import delta
from tailrace.pipelines.state.cache import (
    LONGEST_PLAIN_KEY,
    ShardCache,
    Stamp,
    loaded_pair,
    stored_key,
)
from tailrace.pipelines.state.collector import collector_resting
from tailrace.pipelines.state.files import Draft, StateFiles
from tailrace.pipelines.state.route import due, kept, merge
from tailrace.pipelines.state.store import Version

SNAPSHOT_EVERY = 1_000
_FEW = 64
_PUT_AT_ONCE = 8


class LiveState:
    """The state of one operator: committed rows below, this tick's changes above."""

    def __init__(self, transaction: Any, database: Any | None) -> None:
        self._transaction = transaction
        self._database = database
        self.changes: dict[bytes, bytes | None] = {}
        self._order: list[bytes] | None = []  # sorted keys of `changes`; None: sort when needed

    def get(self, key: bytes) -> bytes | None:
        if key in self.changes:
            return self.changes[key]
        if self._database is None:
            return None
        stored = self._transaction.get(stored_key(key), db=self._database)
        return None if stored is None else loaded_pair(stored_key(key), stored)[1]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        changes = self.changes
        if self._database is None:
            return [changes.get(key) for key in keys]
        if len(keys) < 4 or len(max(keys, key=len)) > LONGEST_PLAIN_KEY:
            return [self.get(key) for key in keys]
        with self._transaction.cursor(self._database) as cursor:
            found: dict[bytes, bytes] = dict(cursor.getmulti(keys))
        if not changes:
            return [found.get(key) for key in keys]
        return [changes[key] if key in changes else found.get(key) for key in keys]

    def put_many(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        items = list(items)
        if self._order is not None and len(items) < _FEW:
            for key, _ in items:
                if key not in self.changes:
                    bisect.insort(self._order, key)
                    self.changes[key] = None
        else:
            self._order = None
        self.changes.update(items)

    def scan(self, prefix: bytes = b"", after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        if self._order is None:
            self._order = sorted(self.changes)
        order = self._order
        position = bisect.bisect_left(order, prefix)
        if after:
            position = max(position, bisect.bisect_right(order, after))
        for key, value in self._committed(prefix, after):
            while position < len(order) and order[position] < key:
                yield from self._changed(order[position], prefix)
                position += 1
            if position < len(order) and order[position] == key:
                yield from self._changed(key, prefix)
                position += 1
            else:
                yield key, value
        while position < len(order) and order[position].startswith(prefix):
            yield from self._changed(order[position], prefix)
            position += 1

    def _changed(self, key: bytes, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        value = self.changes[key]
        if value is not None and key.startswith(prefix):
            yield key, value

    def _committed(self, prefix: bytes, after: bytes) -> Iterator[tuple[bytes, bytes]]:
        pairs = self._stored(prefix, max(prefix, after))
        return (pair for pair in pairs if pair[0] > after) if after else pairs

    def _stored(self, prefix: bytes, first: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Committed pairs with the prefix, from about `first` on."""
        if self._database is None:
            return
        with self._transaction.cursor(self._database) as cursor:
            run: list[tuple[bytes, bytes]] = []  # long keys with one beginning, out of order
            start = prefix[:LONGEST_PLAIN_KEY]
            place = first[:LONGEST_PLAIN_KEY]
            if not (cursor.set_range(place) if place else cursor.first()):
                return
            for stored, value in cursor.iternext():
                if not stored.startswith(start):
                    break
                if run and (
                    len(stored) <= LONGEST_PLAIN_KEY
                    or stored[:LONGEST_PLAIN_KEY] != run[0][0][:LONGEST_PLAIN_KEY]
                ):
                    yield from sorted(run)
                    run = []
                if len(stored) > LONGEST_PLAIN_KEY:
                    pair = loaded_pair(stored, value)
                    if pair[0].startswith(prefix):
                        run.append(pair)
                elif len(prefix) <= len(stored):
                    yield stored, value
            yield from sorted(run)


@dataclass(frozen=True, slots=True)
class Figures:
    """One shard in one tick: bytes of its cache, versions since a snapshot, bytes written."""

    cache_bytes: int
    depth: int
    written_bytes: int


class ShardAttempt:
    """One shard during one attempt. A context manager."""

    def __init__(
        self,
        files: StateFiles,
        cache_directory: Path,
        shard: int,
        version: Version,
        cache_limit: int | None = None,
    ) -> None:
        self._files = files
        self._shard = shard
        self._version = version
        self._cache = ShardCache(files, cache_directory, shard, cache_limit)
        self._written: Sequence[str] = ()
        self._stack = contextlib.ExitStack()
        self._environment: Any = None
        self._transaction: Any = None
        self._stamp = Stamp((), 0)
        self._states: dict[str, LiveState] = {}
        self._taken: set[str] = set()

    def __enter__(self) -> ShardAttempt:
        opened = self._stack.enter_context(self._cache.reading(self._version))
        self._environment, self._transaction, self._stamp = opened
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def of(self, operator: str) -> LiveState:
        """The state of `operator`; empty if the committed tick does not know it."""
        state = self._states.get(operator)
        if state is None:
            state = LiveState(self._transaction, self._database(operator))
            self._states[operator] = state
        return state

    def take(self, operator: str, other: ShardAttempt) -> None:
        """Let `operator` begin from what `other` holds of it, in place of what there was.

        It is read where it lies, and written whole when this attempt finishes: `other` must
        stay open until then."""
        self._states[operator] = LiveState(other._transaction, other._database(operator))
        self._taken.add(operator)

    def operators(self) -> list[str]:
        """The operators that have state at this version."""
        with self._transaction.cursor() as cursor:
            return [name.decode() for name in cursor.iternext(values=False) if name[:1] != b"!"]

    def size(self, operator: str) -> tuple[int, int]:
        """Rows of `operator` at this version, and the bytes their pages take."""
        database = self._database(operator)
        if database is None:
            return 0, 0
        stat = self._transaction.stat(database)
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return stat["entries"], pages * stat["psize"]

    def finish(
        self,
        tick: int,
        level: int = 0,
        *,
        output: str = "",
        dropped: Sequence[str] = (),
        snapshot_every: int | None = SNAPSHOT_EVERY,
        merged: Sequence[int] = (),
        only: Collection[str] | None = None,
        drafts: list[Draft] | None = None,
    ) -> Version:
        """Write this attempt's changes; returns the files it wrote, none if nothing changed.

        When the chain behind it has grown to `snapshot_every` files, a snapshot of the
        state it began from is written beside the delta. `merged`: how many versions
        before it are merged into one file each time so many have come (see `route.TIERS`).
        `only`: the operators whose changes are written; another attempt writes the others'.
        What lands in `drafts` is for whoever called to finish.
        """
        changes = self._changes(only)
        first = list(islice(changes, 1))
        gone = tuple(name for name in dropped if self._database(name) is not None)
        if not first and not gone:
            return ()
        names: list[str] = []
        depth, merges = self._stamp.depth + 1, self._stamp.merges
        if snapshot_every is not None and depth > snapshot_every:
            header = delta.Header(self._shard, tick, level, self._version, snapshot=True, depth=1)
            names.append(delta.write(self._files, header, self._everything(), drafts))
            depth, merges = 1, ()
        elif merged:
            merges = self._merge(tick, level, merged, names, drafts)
        header = delta.Header(
            self._shard, tick, level, self._version, False, output, depth, gone, None, merges
        )
        names.append(delta.write(self._files, header, chain(first, changes), drafts))
        self._written = names
        return tuple(names)

    def whole(self, tick: int) -> Version:
        """Write the committed state as a version of its own, to which no way leads from any
        earlier one: the files before it are needed no more, and every cache is made anew."""
        header = delta.Header(self._shard, tick, 0, (delta.CUT_OFF,), snapshot=True, depth=1)
        return (delta.write(self._files, header, self._everything()),)

    def _merge(
        self,
        tick: int,
        level: int,
        tiers: Sequence[int],
        names: list[str],
        drafts: list[Draft] | None,
    ) -> tuple[delta.Merge, ...]:
        """Merge the stretches whose time has come; the merges this version knows of."""
        depth, merges = self._stamp.depth, list(self._stamp.merges)
        for tier in tiers:
            begins = due(merges, tier, depth)
            if begins is None:
                continue
            found = merge(self._files, self._shard, self._version, merges, begins)
            name = ""  # not merged, and not tried again
            if found is not None:
                base, chunks, gone = found
                header = delta.Header(
                    self._shard, tick, level, self._version, depth=depth, dropped=gone, base=base
                )
                name = delta.write(self._files, header, chunks, drafts)
                names.append(name)
            merges.append((depth, begins, name))
        return kept(merges, tiers)

    @property
    def figures(self) -> Figures:
        """How large the shard is on this host, how long its chain, what was written."""
        written = sum(self._files.size(self._shard, name) for name in self._written)
        return Figures(self._cache.used_bytes(), self._stamp.depth, written)

    def _changes(self, only: Collection[str] | None) -> Iterator[delta.Chunk]:
        for operator, state in sorted(self._states.items()):
            if only is not None and operator not in only:
                continue
            if operator in self._taken:
                before = LiveState(self._transaction, self._database(operator))
                yield from _in_chunks(operator, _replacing(before.scan(), state.scan()))
                continue
            keys, values = list(state.changes), list(state.changes.values())
            order = sorted(keys)
            if order != keys:  # most operators write in order
                keys, values = order, list(map(state.changes.__getitem__, order))
            for first in range(0, len(keys), delta.BATCH_ROWS):
                last = first + delta.BATCH_ROWS
                yield operator, keys[first:last], values[first:last]

    def _everything(self) -> Iterator[delta.Chunk]:
        for operator in self.operators():
            committed = LiveState(self._transaction, self._database(operator))
            yield from _in_chunks(operator, committed.scan())

    def _database(self, operator: str) -> Any | None:
        try:
            return self._environment.open_db(operator.encode(), txn=self._transaction, create=False)
        except (lmdb.NotFoundError, lmdb.ReadonlyError):
            return None


def _in_chunks(operator: str, pairs: Iterable[tuple[bytes, bytes | None]]) -> Iterator[delta.Chunk]:
    rest = iter(pairs)
    while page := list(islice(rest, delta.BATCH_ROWS)):
        yield operator, [key for key, _ in page], [value for _, value in page]


def _replacing(
    old: Iterable[tuple[bytes, bytes]], new: Iterable[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes | None]]:
    """The changes from one sorted run of pairs to another: all of `new`, and what goes."""
    left = iter(old)
    known = next(left, None)
    for key, value in new:
        while known is not None and known[0] <= key:
            if known[0] < key:
                yield known[0], None
            known = next(left, None)
        yield key, value
    while known is not None:
        yield known[0], None
        known = next(left, None)


@dataclass(slots=True)
class Attempt:
    """All shards of one attempt at one tick; shards are opened when first asked for."""

    files: StateFiles
    cache_directory: Path
    versions: Mapping[int, Version]
    cache_limit: int | None
    _shards: dict[int, ShardAttempt]
    _stack: contextlib.ExitStack
    opened_ms: int = 0  # what it took to bring the caches up to date

    @classmethod
    def begin(
        cls,
        files: StateFiles,
        cache_directory: Path,
        versions: Mapping[int, Version],
        *,
        cache_limit: int | None = None,
    ) -> Attempt:
        return cls(files, cache_directory, versions, cache_limit, {}, contextlib.ExitStack())

    def __enter__(self) -> Attempt:
        self._stack.enter_context(collector_resting())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._shards.clear()

    def shard(self, shard: int) -> ShardAttempt:
        """One shard, at the version the last tick row names."""
        if shard not in self._shards:
            began = SYSTEM.monotonic()
            version = tuple(self.versions.get(shard, ()))
            attempt = ShardAttempt(
                self.files, self.cache_directory, shard, version, self.cache_limit
            )
            self._shards[shard] = self._stack.enter_context(attempt)
            self.opened_ms += round((SYSTEM.monotonic() - began) * 1000)
        return self._shards[shard]

    def of(self, shard: int, operator: str) -> LiveState:
        return self.shard(shard).of(operator)

    def adopt(
        self, files: StateFiles, cache: Path, versions: Mapping[int, Version],
        shards: Iterable[int], operators: Iterable[str],
    ) -> None:  # fmt: skip
        """Begin `operators` from the state another sequence of ticks holds at `versions`."""
        other = self._stack.enter_context(Attempt.begin(files, cache, versions))
        for shard in shards:
            for operator in operators:
                self.shard(shard).take(operator, other.shard(shard))

    @property
    def figures(self) -> dict[int, Figures]:
        """The figures of every shard that was opened."""
        return {number: shard.figures for number, shard in self._shards.items()}

    def finish(
        self,
        tick: int,
        level: int = 0,
        *,
        output: str = "",
        dropped: Sequence[str] = (),
        snapshot_every: int | None = SNAPSHOT_EVERY,
        merged: Sequence[int] = (),
        only: Collection[str] | None = None,
    ) -> dict[int, Version]:
        """Write what changed; the new files of each shard that changed."""

        drafts: list[Draft] | None = None if self.files.remote else []

        def one(shard: ShardAttempt) -> Version:
            return shard.finish(
                tick, level, output=output, dropped=dropped,
                snapshot_every=snapshot_every, merged=merged, only=only, drafts=drafts,
            )  # fmt: skip

        numbers = sorted(self._shards)
        shards = [self._shards[number] for number in numbers]
        if drafts is None and shards:
            with ThreadPoolExecutor(min(len(numbers), _PUT_AT_ONCE)) as pool:
                written = list(pool.map(one, shards))
        else:  # threads would cost more than they save: encoding holds Python's lock
            try:
                written = [one(shard) for shard in shards]
                self.files.finish(drafts or ())
            except BaseException:
                for draft in drafts or ():  # a full disk is tried again and again
                    draft.path.unlink(missing_ok=True)
                raise
        return {number: names for number, names in zip(numbers, written, strict=True) if names}
