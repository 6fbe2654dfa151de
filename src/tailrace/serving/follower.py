"""The process that keeps all views of a project at one tick.

It reads `__tailrace_ticks` and, for every row, the changelogs up to exactly the row's
end offsets, and puts rows, positions and history into one LMDB transaction. A view that
is new, or was built anew (another generation or topic), is first filled beside the one
being served, in transactions of bounded size, and takes its place with the tick.

A kill at any moment leaves the last whole tick; stores half filled are continued.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import orjson

from tailrace.client.errors import ClientError, UnknownTopicError
from tailrace.client.ranges import KafkaRanges, Range, RangeReader
from tailrace.client.ticks import last_row
from tailrace.clock import SYSTEM, Clock
from tailrace.modes import make_private
from tailrace.records.rows import normal_key, row_of
from tailrace.records.tick import TICKS_TOPIC, TickRow, ViewInfo, parse_tick
from tailrace.serving.errors import FollowerRunningError, ViewsDamagedError
from tailrace.serving.store import (
    DAMAGE,
    STATE,
    HeldView,
    Reached,
    State,
    compact,
    count_entries,
    decode_state,
    distrust,
    encode_state,
    forget_entries,
    history_key,
    index_key,
    is_alone,
    open_writer,
    opening,
    release,
    stored_key,
)
from tailrace.telemetry.metrics import counter
from tailrace.unsynced import WRITE_BACK

if TYPE_CHECKING:
    from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

COMPACT_AGAIN_SECONDS = 300.0
REFUSED = counter("tailrace_views_refused_records_total", "Changelog records that are not rows")

Changes = dict[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class FollowerSettings:
    """What a follower may use and keep."""

    history_bytes: int = 64 << 20
    build_records: int = 200_000
    catch_up_ticks: int = 64
    delete_retention: timedelta = timedelta(days=7)
    indexes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Follower:
    """Applies ticks of one project to the environment in `directory`."""

    def __init__(
        self,
        directory: Path,
        reader: RangeReader,
        project: str,
        *,
        settings: FollowerSettings | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.directory = directory
        self.project = project
        self.settings = settings or FollowerSettings()
        self._reader = reader
        self._clock = clock
        self._lock = _lock(directory)
        self._open()
        self.freshness_ms: int | None = None
        with self._environment.begin(self._meta) as transaction:
            value = transaction.get(STATE)
        self.state = State(project=project) if value is None else decode_state(value)
        self._tail = self.state.ticks_offset
        self._stale = self._is_stale()
        self._ticks_checked = False
        self._compacts_at = -1e9
        self._lost = ""  # why the files cannot be trusted

    def _open(self) -> None:
        self._environment = open_writer(self.directory)
        self._meta = self._environment.open_db(b"meta")
        self._history = self._environment.open_db(b"history")
        self._opening = opening(self._environment)
        self._stores: dict[str, Any] = {}

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        release(self._environment)
        self._lock.close()

    @property
    def tick(self) -> int | None:
        """The tick being served; None before the first."""
        return self.state.tick

    def step(self, timeout: float) -> int:
        """Wait up to `timeout` seconds for ticks and apply them; how many were applied.

        Raises ViewsDamagedError when the files cannot be trusted any more: whoever opens the
        directory next reads everything again from the log."""
        before = self.tick
        try:
            applied = self._step(timeout)
            if (
                self.state.compacted != self.state.purged
                and self._clock.monotonic() >= self._compacts_at
            ):
                self._compact()
        except DAMAGE as damage:
            self._lost = str(damage)
        if self._lost:
            distrust(self.directory)
            raise ViewsDamagedError(
                "the files of the views cannot be trusted",
                detail=f"{self.directory / 'data.mdb'}: {self._lost}",
                hint="they are read again from the log by themselves; look at the disk",
            )
        if applied or self.tick != before:
            WRITE_BACK.look(self.directory / "data.mdb", self._give_up)
        return applied

    def _give_up(self) -> None:
        """Pages could not be written (told in another thread)."""
        self._lost = "pages could not be written"

    def _step(self, timeout: float) -> int:
        if not self._ticks_checked:
            self._begin()
            self._ticks_checked = True
        chunk = self._reader.follow(TICKS_TOPIC, 0, self._tail, timeout)
        rows = [
            parse_tick(key, value)
            for key, value in zip(chunk.keys, chunk.values, strict=True)
            if key is not None and value is not None and self._is_ours(key)
        ]
        self._tail = max(self._tail, chunk.following)
        rows = _thin(rows, self.settings.catch_up_ticks)
        for index, row in enumerate(rows):
            try:
                self._apply(row, self._tail if index == len(rows) - 1 else None)
            except UnknownTopicError:
                newest = last_row(self._reader, self.project)
                if row.key == self.project and newest is not None and newest.tick <= row.tick:
                    raise
                # The generation was dropped since: a later row shows another one, or the
                # one being built beside was given up.
                log.info("tick of a dropped generation", extra={"key": row.key, "tick": row.tick})
        newest_values = dict(zip(chunk.keys, chunk.values, strict=True))
        ended = {
            key.decode(errors="replace")
            for key, value in newest_values.items()
            if key is not None and value is None and self._is_ours(key)
        }
        self._forget(ended - {self.project})
        return len(rows)

    def _forget(self, streams: set[str]) -> None:
        """Drop what was built beside the project under these keys: it has been taken over."""
        if not streams & self.state.streams.keys():
            return
        with self._writing() as transaction:
            state = decode_state(encode_state(self.state))
            for views in (state.views, state.building):
                for name in [n for n, v in views.items() if v.stream in streams]:
                    self._drop(transaction, views.pop(name))
            for stream in streams:
                state.streams.pop(stream, None)
            transaction.put(STATE, encode_state(state), db=self._meta)
        self.state = state

    def rebuild(self, views: Iterable[str] | None = None) -> None:
        """Read views (default: all) again from the start of their topics.

        They are served as they were until the copies are complete.
        """
        last = last_row(self._reader, self.project)
        if last is None:
            return
        wanted = set(self.state.views if views is None else views)
        self._apply(last, None, anew=wanted)

    # ------------------------------------------------------------------ reading the ticks

    def _is_ours(self, key: bytes) -> bool:
        name = key.decode(errors="replace")
        return name == self.project or name.startswith(self.project + "/")

    def _is_stale(self) -> bool:
        """Whether tombstones we have not seen may already be compacted away."""
        reached = self.state.streams.get(self.project)
        if reached is None:
            return False
        age_ms = self._clock.wall_ms() - reached.ts_ms
        return age_ms > self.settings.delete_retention / timedelta(milliseconds=1)

    def _begin(self) -> None:
        """Find where to go on; a log that is younger than our copy begins everything anew."""
        first, end = self._reader.bounds(TICKS_TOPIC).get(0, (0, 0))
        if self._tail > end:
            log.warning("the log is younger than the views; building them anew")
            self._reset()
        if self.state.tick is None or self._stale or self._tail < first:
            row = last_row(self._reader, self.project)
            self._tail = end
            if row is not None:
                self._apply(row, end, anew=set(self.state.views) if self._stale else set())
                self._stale = False

    def _reset(self) -> None:
        with self._writing() as transaction:
            for view in [*self.state.views.values(), *self.state.building.values()]:
                self._drop(transaction, view)
            transaction.drop(self._history, delete=False)
            self.state = State(project=self.project, builds=self.state.builds)
            transaction.put(STATE, encode_state(self.state), db=self._meta)
        self._tail = 0

    # ------------------------------------------------------------------ applying one tick

    def _apply(self, row: TickRow, tail: int | None, anew: set[str] | None = None) -> None:
        """Bring all views to `row`; one transaction, after new stores have been filled."""
        anew = anew or set()
        side = row.key != self.project
        reached = self.state.streams.get(row.key)
        if reached is not None and row.tick <= reached.tick and not anew:
            if row.tick == reached.tick or not self._went_back(row):
                return
            log.warning("ticks went back; building views anew", extra={"tick": row.tick})
            anew = set(row.views)
        names = {f"{n}@{v.generation}" if side else n: v for n, v in row.views.items()}
        fresh = {
            name: self._fill(name, info, row)
            for name, info in names.items()
            if self._needs_build(name, info, row, anew)
        }
        with self._writing() as transaction:
            state = decode_state(encode_state(self.state))
            for name in [n for n, v in state.views.items() if v.stream == row.key]:
                if name not in names or name in fresh:
                    self._drop(transaction, state.views.pop(name))
            for name, info in names.items():
                if name in fresh:
                    view = state.building.pop(name)
                    view.history_from = view.changed = row.tick
                    state.views[name] = view
                view = state.views[name]
                view.info = info
                changes = self._changes(view, row.ends.get(info.topic, {}))
                if changes:
                    self._put(transaction, view, changes)
                    self._remember(transaction, state, view, name, row.tick, changes)
                    view.changed = row.tick
                view.offsets.update(row.ends.get(info.topic, {}))
            state.streams[row.key] = Reached(
                row.tick,
                dict(row.positions),
                {topic: dict(by) for topic, by in row.inputs.items()},
                row.ts_ms,
            )
            if tail is not None:
                state.ticks_offset = tail
            if row.purged and row.purged != state.purged and not side:
                self._forget_history(transaction, state, row)
            self._trim(transaction, state, row.tick)
            transaction.put(STATE, encode_state(state), db=self._meta)
        self.state = state
        self.freshness_ms = max(0, self._clock.wall_ms() - row.ts_ms)

    def _forget_history(self, transaction: Any, state: State, row: TickRow) -> None:
        """What the views held before may be kept nowhere, and neither may its changes."""
        transaction.drop(self._history, delete=False)
        state.history_bytes, state.history_from = 0, row.tick
        for view in state.views.values():
            view.history_from = max(view.history_from, row.tick)
        if self.state.tick is None:
            state.compacted = row.purged  # there was nothing before
        state.purged = row.purged

    def _compact(self) -> None:
        """Write the files again: pages that hold nothing any more keep what stood in them. While
        somebody in this process reads them, or the disk has no room for a copy, it waits."""
        if not is_alone(self._environment):
            return
        release(self._environment)
        done = compact(self.directory)
        self._open()
        if not done:
            self._compacts_at = self._clock.monotonic() + COMPACT_AGAIN_SECONDS
            return
        state = replace(self.state, compacted=self.state.purged)
        with self._writing() as transaction:
            transaction.put(STATE, encode_state(state), db=self._meta)
        self.state = state
        log.info("files of the views written again", extra={"tick": self.tick})

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        try:
            with self._opening, self._environment.begin(write=True) as transaction:
                yield transaction
                count_entries(transaction, self._meta, self._stores)
        except BaseException:
            self._stores.clear()  # handles opened in an aborted transaction are void
            raise

    def _went_back(self, row: TickRow) -> bool:
        """Whether the row's ends lie before what we hold: another log, or one restored."""
        return any(
            row.ends.get(view.info.topic, {}).get(partition, 0) < offset
            for view in self.state.views.values()
            if view.stream == row.key
            for partition, offset in view.offsets.items()
        )

    def _needs_build(self, name: str, info: ViewInfo, row: TickRow, anew: set[str]) -> bool:
        held = self.state.views.get(name)
        return (
            held is None
            or name in anew
            or (held.info.topic, held.info.generation) != (info.topic, info.generation)
            or held.indexes != self._indexes(info)
        )

    def _indexes(self, info: ViewInfo) -> tuple[str, ...]:
        known = {column for column, _ in info.columns}
        return tuple(c for c in self.settings.indexes.get(info.name, ()) if c in known)

    def _fill(self, name: str, info: ViewInfo, row: TickRow) -> HeldView:
        """Read a view's whole topic into a store of its own, up to the row's ends.

        Committed in parts; a fill that was interrupted goes on where it stopped, unless
        the topic or generation is another one by now.
        """
        view = self.state.building.get(name)
        if view is not None and (
            (view.info.topic, view.info.generation) != (info.topic, info.generation)
            or view.indexes != self._indexes(info)
        ):
            with self._writing() as transaction:
                self._drop(transaction, self.state.building.pop(name))
                transaction.put(STATE, encode_state(self.state), db=self._meta)
            view = None
        if view is None:
            starts = {p: first for p, (first, _) in self._reader.bounds(info.topic).items()}
            self.state.builds += 1
            view = HeldView(
                info=info,
                store=f"rows/{info.name}/{self.state.builds}",
                stream=row.key,
                offsets=starts,
                indexes=self._indexes(info),
            )
            self.state.building[name] = view
        for partition, end in row.ends.get(info.topic, {}).items():
            start = view.offsets.get(partition, 0)
            changes: Changes = {}
            for chunk in self._reader.read([Range(info.topic, partition, start, end)]):
                _collect(changes, chunk.keys, chunk.values)
                if len(changes) >= self.settings.build_records:
                    self._store_part(view, partition, min(chunk.following, end), changes)
                    changes = {}
            self._store_part(view, partition, max(start, end), changes)
        return view

    def _store_part(self, view: HeldView, partition: int, following: int, changes: Changes) -> None:
        with self._writing() as transaction:
            self._put(transaction, view, changes)
            view.offsets[partition] = following
            transaction.put(STATE, encode_state(self.state), db=self._meta)

    def _changes(self, view: HeldView, ends: Mapping[int, int]) -> Changes:
        ranges = [
            Range(view.info.topic, partition, view.offsets.get(partition, 0), end)
            for partition, end in ends.items()
            if end > view.offsets.get(partition, 0)
        ]
        changes: Changes = {}
        if ranges:
            for chunk in self._reader.read(ranges):
                _collect(changes, chunk.keys, chunk.values)
        return changes

    # ------------------------------------------------------------------ one transaction

    def _open_store(self, transaction: Any, name: str) -> Any:
        store = self._stores.get(name)
        if store is None:
            store = self._environment.open_db(name.encode(), txn=transaction)
            self._stores[name] = store
        return store

    def _put(self, transaction: Any, view: HeldView, changes: Changes) -> None:
        store = self._open_store(transaction, view.store)
        if view.indexes:
            self._put_indexes(transaction, view, store, changes)
        with transaction.cursor(store) as cursor:
            cursor.putmulti(
                sorted((stored_key(k), row) for k, row in changes.items() if row is not None)
            )
        for key, row in changes.items():
            if row is None:
                transaction.delete(stored_key(key), db=store)

    def _put_indexes(self, transaction: Any, view: HeldView, store: Any, changes: Changes) -> None:
        databases = [self._open_store(transaction, index_name(view, c)) for c in view.indexes]
        for json_key, row in changes.items():
            key = stored_key(json_key)
            held = transaction.get(key, db=store)
            old = {} if held is None else orjson.loads(held)
            new = {} if row is None else orjson.loads(row)
            for column, database in zip(view.indexes, databases, strict=True):
                if held is not None:
                    transaction.delete(index_key(old.get(column), key), db=database)
                if row is not None:
                    transaction.put(index_key(new.get(column), key), key, db=database)

    def _drop(self, transaction: Any, view: HeldView) -> None:
        for name in [view.store, *(index_name(view, c) for c in view.indexes)]:
            store = self._open_store(transaction, name)
            transaction.drop(store, delete=True)
            forget_entries(transaction, self._meta, name)
            self._stores.pop(name, None)

    def _remember(
        self,
        transaction: Any,
        state: State,
        view: HeldView,
        name: str,
        tick: int,
        changes: Changes,
    ) -> None:
        lines = b"\n".join(
            b'{"key":%b,"row":%b}' % (key or b"null", row or b"null")
            for key, row in changes.items()
        )
        if len(lines) > self.settings.history_bytes // 2:
            view.history_from = tick
            return
        transaction.put(history_key(tick, name), lines, db=self._history)
        state.history_bytes += len(lines)

    def _trim(self, transaction: Any, state: State, tick: int) -> None:
        """Forget the oldest ticks until the history fits its bound."""
        if state.history_bytes <= self.settings.history_bytes:
            return
        with transaction.cursor(self._history) as cursor:
            while state.history_bytes > self.settings.history_bytes and cursor.first():
                oldest = int.from_bytes(cursor.key()[:8], "big")
                if oldest >= tick:
                    break
                state.history_bytes -= len(cursor.value())
                state.history_from = max(state.history_from, oldest)
                cursor.delete()


def index_name(view: HeldView, column: str) -> str:
    return f"index/{view.store[5:]}/{column}"


def _collect(changes: Changes, keys: list[bytes | None], values: list[bytes | None]) -> None:
    for key, value in zip(keys, values, strict=True):
        if key is None:
            continue
        try:
            changes[normal_key(key)] = None if value is None else row_of(value)
        except (ValueError, KeyError, TypeError):
            # Not written by a tick: someone else wrote into the changelog.
            REFUSED.inc()
            log.warning("changelog record is not a row", extra={"key": key[:200]})


def _thin(rows: list[TickRow], most: int) -> list[TickRow]:
    """All rows when they are few; else only the last of each key: a reader far behind
    applies many ticks as one."""
    if len(rows) <= most:
        return rows
    last = {row.key: index for index, row in enumerate(rows)}
    return [row for index, row in enumerate(rows) if last[row.key] == index]


def _lock(directory: Path) -> IO[str]:
    """Hold `<directory>/follower.lock` until closed; one follower at a time."""
    make_private(directory)
    handle = open(directory / "follower.lock", "a+")  # noqa: SIM115 - held for life
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.seek(0)
        holder = handle.read().strip() or "unknown"
        handle.close()
        raise FollowerRunningError(
            "another follower keeps these views",
            detail=f"Process {holder} holds {directory / 'follower.lock'}.",
            hint="stop it, or give this project another directory",
        ) from None
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle


def run(part: Part, settings: FollowerSettings | None = None, *, expected: bool = False) -> None:
    """Follow the project of `part` until it must stop.

    A log that does not answer is waited for; what was applied is served meanwhile.
    `expected`: the project has views, so it is running only once a tick is served.
    """
    reader = KafkaRanges(part.bootstrap)
    try:
        with Follower(
            part.directory / "views", reader, part.project, settings=settings, clock=part.clock
        ) as follower:
            part.report("starting" if expected and follower.tick is None else "running", lag=0)
            reported = 0.0
            while not part.stopping.is_set():
                error: ClientError | None = None
                try:
                    applied = follower.step(timeout=0.2)
                except ClientError as reason:
                    applied, error = 0, reason
                    log.warning("the log does not answer", extra={"error": str(reason)})
                    part.stopping.wait(0.5)
                now = part.clock.monotonic()
                first = applied and not reported
                if now - reported >= 1 or first:
                    reported = now
                    _report(part, follower, error, expected)
            part.report("stopped")
    finally:
        reader.close()


def _report(part: Part, follower: Follower, error: ClientError | None, expected: bool) -> None:
    request = follower.directory / "rebuild"
    if request.exists() and error is None:
        names = request.read_text().split()
        request.unlink()
        follower.rebuild(names or None)
    reached = follower.state.streams.get(part.project)
    if error is not None:
        state = "lagging"
    else:
        state = "starting" if expected and reached is None else "running"
    part.report(
        state,
        error=None if error is None else error.as_dict(),
        lag=0,
        freshness_ms=follower.freshness_ms,
        views=len(follower.state.views),
        answers=sorted(follower.state.views),
        tick=None if reached is None else reached.tick,
        position=None if reached is None else f"tick:{part.project}:{reached.tick}",
        tick_at=None if reached is None else reached.ts_ms,
    )
