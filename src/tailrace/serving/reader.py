"""Asking the views from any process on the machine.

`open_views(directory)` opens the follower's environment read-only. Every answer comes
from one read transaction and therefore from one tick, and says from which. Several
questions at one tick: `with views.snapshot() as snapshot: …`.

Safe to use from several threads; open again after a fork.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import lmdb
import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.records.position import Position, covered, parse_position
from tailrace.records.rows import read_rows
from tailrace.records.tick import ViewInfo
from tailrace.serving.errors import (
    PositionTimeoutError,
    PositionUnknownError,
    UnknownViewError,
    ViewsError,
    ViewsNotReadyError,
)
from tailrace.serving.filling import why_absent, why_unread
from tailrace.serving.keys import key_encoder
from tailrace.serving.store import (
    KEY_LIMIT,
    STATE,
    HeldView,
    State,
    decode_state,
    index_key,
    open_reader,
    opening,
    release,
    stored_key,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tailrace.serving.query import Engine
    from tailrace.serving.subscribe import Event, TickChanges

Row = dict[str, Any]
MOST_ROWS = 100_000
WAIT_PAUSE = 0.004


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a view or a query. `next` goes on after them; None at the end."""

    rows: list[Row]
    next: str | None
    position: str


class Snapshot:
    """One tick, as long as it is open. Made by `Views.snapshot`."""

    def __init__(
        self, transaction: Any, state: State, stores: Mapping[str, Any], directory: Path
    ) -> None:
        self._transaction = transaction
        self._directory = directory  # of the follower, in the project's state
        self._stores = stores
        self._encoders: dict[str, tuple[Callable[[object], bytes], Any]] = {}
        self.state = state
        self.transaction_id = int(transaction.id())

    @property
    def tick(self) -> int:
        tick = self.state.tick
        assert tick is not None
        return tick

    @property
    def position(self) -> str:
        return f"tick:{self.state.project}:{self.tick}"

    @property
    def names(self) -> list[str]:
        return sorted(self.state.views)

    def view(self, name: str) -> HeldView:
        held = self.state.views.get(name)
        if held is None:
            if (reason := self.why_absent(name)) is not None:
                raise reason
            known = ", ".join(self.names) or "none"
            raise UnknownViewError(
                f"no view {name!r}",
                detail=f"At {self.position} there are: {known}.",
                hint="see `tailrace view list`",
            )
        return held

    def asked(self, name: str) -> HeldView:
        """`view`, for a question about rows: refused while nothing has been read for them."""
        held = self.view(name)
        reached = self.state.streams.get(held.stream)
        if reached is not None and not any(any(e.values()) for e in reached.inputs.values()):
            reason = why_unread(self._directory.parent, name, reached.tick)
            if reason is not None:
                raise reason
        return held

    def why_absent(self, name: str) -> ViewsError | None:
        """Why a view that is not here cannot be asked yet; None: there is no such view."""
        return why_absent(self._directory.parent, name)

    def get(self, name: str, key: object) -> Row | None:
        """The row under `key` (a value, a sequence for composite keys, or a mapping)."""
        value = self.get_bytes(name, key)
        return None if value is None else orjson.loads(value)

    def get_bytes(self, name: str, key: object) -> bytes | None:
        """The same row as the JSON text it is stored as."""
        encode = self._encoders.get(name)
        if encode is None:
            held = self.asked(name)
            encode = self._encoders[name] = (key_encoder(held.info), self._stores[held.store])
        found: bytes | None = self._transaction.get(stored_key(encode[0](key)), db=encode[1])
        return found

    def count(self, name: str) -> int:
        """How many rows the view has."""
        return int(self._transaction.stat(self._stores[self.view(name).store])["entries"])

    def scan(self, name: str, after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Stored keys and JSON rows in key order, after a key."""
        with self._transaction.cursor(self._stores[self.view(name).store]) as cursor:
            if after is None:
                found = cursor.first()
            else:
                found = cursor.set_range(after)
                if found and bytes(cursor.key()) == after:
                    found = cursor.next()
            if found:
                for key, value in cursor.iternext():
                    yield bytes(key), bytes(value)

    def lookup(self, name: str, column: str, value: object) -> Iterator[tuple[bytes, bytes]]:
        """Rows whose indexed `column` has `value`, in key order."""
        held = self.view(name)
        prefix = index_key(value)
        store = self._stores[held.store]
        with self._transaction.cursor(self._stores[_index_name(held, column)]) as cursor:
            if not cursor.set_range(prefix):
                return
            for entry, key in cursor.iternext():
                if not bytes(entry).startswith(prefix):
                    return
                row = self._transaction.get(bytes(key), db=store)
                if row is not None:
                    yield bytes(key), bytes(row)

    def history(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries of the change history from a key on."""
        with self._transaction.cursor(self._stores["history"]) as cursor:
            if cursor.set_range(start):
                for key, value in cursor.iternext():
                    yield bytes(key), bytes(value)

    def table(self, name: str) -> pa.Table:
        """All rows as Arrow."""
        rows = [value for _, value in self.scan(name)]
        return read_rows(rows, self.view(name).info.columns)[0]


class Views:
    """The views of a project, read from the follower's directory."""

    def __init__(self, directory: Path, *, clock: Clock = SYSTEM) -> None:
        self.directory = directory
        self._clock = clock
        self._environment: Any = None
        self._inode = 0
        self._meta: Any = None
        self._stores: dict[str, Any] = {}
        self._guard = threading.Lock()
        self._opened = 0
        self._current: tuple[int, State] = (-1, State())
        self._engine: Engine | None = None
        self._ways: dict[str, tuple[State, Callable[[object], bytes], Any, ViewInfo, bytes]] = {}

    def __enter__(self) -> Views:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stores.clear()
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        if self._environment is not None:
            release(self._environment)
            self._environment = None

    def __getitem__(self, name: str) -> View:
        return View(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    def names(self) -> list[str]:
        with self.snapshot() as snapshot:
            return snapshot.names

    @property
    def position(self) -> str:
        """The tick being served, as a position."""
        with self.snapshot() as snapshot:
            return snapshot.position

    def describe(self, name: str) -> ViewInfo:
        with self.snapshot() as snapshot:
            return snapshot.view(name).info

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """One consistent tick. Do not keep it for long: pages it sees cannot be reused."""
        transaction, state = self._begin()
        try:
            yield Snapshot(transaction, state, self._stores, self.directory)
        finally:
            transaction.abort()

    def get(
        self, name: str, key: object, *, at_least: str | None = None, timeout: float = 5.0
    ) -> Row | None:
        """The row under `key`, or None."""
        if at_least is not None:
            self.wait(at_least, timeout)
        value = self.find(name, key)[0]
        return None if value is None else orjson.loads(value)

    def find(self, name: str, key: object) -> tuple[bytes | None, bytes]:
        """The row under `key` as the JSON text it is stored as, and the position."""
        # The shortest way there is: no snapshot object, no state but the cached one.
        transaction, state = self._begin()
        try:
            way = self._ways.get(name)
            if way is None or way[0] is not state:
                snapshot = Snapshot(transaction, state, self._stores, self.directory)
                held = snapshot.asked(name)
                encode = way[1] if way and way[3] == held.info else key_encoder(held.info)
                store, position = self._stores[held.store], snapshot.position.encode()
                way = self._ways[name] = (state, encode, store, held.info, position)
            text = way[1](key)
            if len(text) > KEY_LIMIT:
                text = stored_key(text)
            return transaction.get(text, db=way[2]), way[4]
        finally:
            transaction.abort()

    def rows(
        self,
        name: str,
        *,
        where: str | Mapping[str, object] | None = None,
        limit: int = 1000,
        after: str | None = None,
        at_least: str | None = None,
        timeout: float = 5.0,
        most_bytes: int | None = None,
    ) -> Page:
        """Rows in the order of their keys' JSON text.

        `where` is a SQL condition on the view's columns, or a mapping of column to value
        (answered from an index where the column has one). `after` is an earlier page's
        `next`. A page ends before `limit` rows where they would take more than `most_bytes`.
        """
        if not 1 <= limit <= MOST_ROWS:
            raise UsageError(
                f"limit {limit} is out of range", hint=f"take 1 to {MOST_ROWS}, and page on"
            )
        if at_least is not None:
            self.wait(at_least, timeout)
        start = None if after is None else _decode_cursor(after)
        with self.snapshot() as snapshot:
            held = snapshot.asked(name)
            if isinstance(where, Mapping):
                found = _matching(snapshot, held, where, start)
            elif where is None or not where.strip():
                found = snapshot.scan(name, start)
            else:
                found = self._query().filter(held.info, snapshot.scan(name, start), where)
            rows: list[Row] = []
            last, more, size = b"", False, 0
            for key, value in found:
                size += len(value)
                if len(rows) == limit or (rows and most_bytes is not None and size > most_bytes):
                    more = True
                    break
                rows.append(orjson.loads(value))
                last = key
            return Page(rows, _encode_cursor(last) if more else None, snapshot.position)

    def sql(
        self,
        query: str,
        parameters: Sequence[object] | None = None,
        *,
        at_least: str | None = None,
        timeout: float = 5.0,
        limit: int | None = None,
        most_bytes: int | None = None,
    ) -> Page:
        """Answer one SELECT over the views, all at one tick; of a longer answer the first
        `limit` rows, or those that take at most `most_bytes`."""
        if at_least is not None:
            self.wait(at_least, timeout)
        with self.snapshot() as snapshot:
            return self._query().ask(snapshot, query, parameters, limit, most_bytes)

    def arrow(self, query: str, parameters: Sequence[object] | None = None) -> pa.Table:
        """The same as an Arrow table."""
        with self.snapshot() as snapshot:
            return self._query().table(snapshot, query, parameters)

    def changes(self, name: str, after: int) -> list[TickChanges]:
        """What changed in a view after a tick; `HistoryGoneError` if that is forgotten."""
        from tailrace.serving.subscribe import changes_after

        with self.snapshot() as snapshot:
            return list(changes_after(snapshot, name, after))

    def subscribe(
        self, name: str, *, after: int | None = None, idle: float = 1.0
    ) -> Iterator[Event]:
        """A snapshot (unless `after` is still in the history), then changes as they come.

        Nothing is left out or repeated. Every `idle` seconds without a change an event of
        kind "idle" is given, so that the caller can stop.
        """
        from tailrace.serving.subscribe import subscribe

        return subscribe(self, name, after=after, idle=idle)

    def wait(self, position: str, timeout: float = 5.0) -> str:
        """Return once the views have everything up to `position`; where they are then.

        `PositionTimeoutError` if that takes longer, `PositionUnknownError` if the views
        do not depend on what the position belongs to.
        """
        wanted = parse_position(position)
        until = self._clock.monotonic() + timeout
        while True:
            seen = self._last_transaction() if self._environment is not None else -1
            reached, here = self.covers(wanted)
            if reached:
                return here
            if self._clock.monotonic() >= until:
                raise not_reached(wanted, reached, here, timeout)
            self.wait_for_change(seen, until - self._clock.monotonic())

    def covers(self, wanted: Position) -> tuple[bool | None, str]:
        """Whether the views have everything up to a position (None: they do not follow
        what it belongs to), and where they are."""
        with self._ready_or_none() as snapshot:
            if snapshot is None:
                return False, "nothing yet"
            return _covers(snapshot.state, wanted), snapshot.position

    def wait_for_change(self, seen: int, timeout: float) -> bool:
        """Return when there is something newer than the snapshot with transaction id
        `seen`, or False after `timeout` seconds."""
        until = self._clock.monotonic() + timeout
        while self._environment is None or self._last_transaction() == seen:
            left = until - self._clock.monotonic()
            if left <= 0:
                return False
            self._clock.sleep(min(WAIT_PAUSE, left))
            if self._environment is None:
                return False
            self._reopen_if_replaced()
        return True

    # ------------------------------------------------------------------ transactions

    @contextmanager
    def _ready_or_none(self) -> Iterator[Snapshot | None]:
        try:
            transaction, state = self._begin()
        except ViewsNotReadyError:
            yield None
            return
        try:
            yield Snapshot(transaction, state, self._stores, self.directory)
        finally:
            transaction.abort()

    def _last_transaction(self) -> int:
        return int(self._environment.info()["last_txnid"])

    def _open(self) -> None:
        with self._guard:
            if self._environment is not None:
                return  # another thread was first
            environment = None
            try:
                environment = open_reader(self.directory)
                with opening(environment):
                    self._meta = environment.open_db(b"meta", create=False)
                    self._stores["history"] = environment.open_db(b"history", create=False)
                self._inode = os.stat(self.directory / "data.mdb").st_ino
            except (lmdb.Error, OSError) as reason:
                if environment is not None:
                    release(environment)
                raise self._not_ready() from reason
            self._current = (-1, State())
            self._opened += 1
            self._environment = environment  # last: from here on others use it

    def _not_ready(self) -> ViewsNotReadyError:
        return ViewsNotReadyError(
            "the views are not served yet",
            detail=f"No tick has been applied in {self.directory}.",
            hint="start the project with `tailrace up`; `tailrace status` shows what it waits for",
        )

    def _reopen_if_replaced(self) -> None:
        """A follower that began anew after a crash of the machine has made new files."""
        try:
            inode = os.stat(self.directory / "data.mdb").st_ino
        except FileNotFoundError:
            return
        if inode != self._inode:
            self.close()

    def _begin(self) -> tuple[Any, State]:
        """A read transaction and its state; the stores of the state are open."""
        while True:
            environment = self._environment
            if environment is None:
                self._open()
                continue
            opened = self._opened
            transaction = environment.begin()
            seen, state = self._current
            if transaction.id() != seen:
                value = transaction.get(STATE, db=self._meta)
                newer = None if value is None else decode_state(value)
                if newer is None or newer.tick is None:
                    transaction.abort()
                    raise self._not_ready()
                missing = [
                    name
                    for held in newer.views.values()
                    for name in [held.store, *(_index_name(held, c) for c in held.indexes)]
                    if name not in self._stores
                ]
                if missing:
                    transaction.abort()
                    self._open_stores(environment, missing)
                    continue
                state = newer
                self._current = (transaction.id(), state)
            if opened == self._opened:
                return transaction, state
            # A handle is visible only to transactions begun after it was opened, and
            # another thread has opened some since ours began.
            transaction.abort()

    def _open_stores(self, environment: Any, names: list[str]) -> None:
        with self._guard, opening(environment):
            handles = {}
            for name in names:
                try:
                    handles[name] = environment.open_db(name.encode(), create=False)
                except lmdb.NotFoundError:
                    break  # replaced in the meantime: read the state again
            # Counted before they can be found: whoever finds them knows they are new.
            self._opened += 1
            self._stores.update(handles)

    def _query(self) -> Engine:
        from tailrace.serving.query import Engine

        with self._guard:
            if self._engine is None:
                self._engine = Engine()
            return self._engine


@dataclass(frozen=True, slots=True)
class View:
    """One view of `Views`, by name."""

    views: Views
    name: str

    def get(self, *key: object, at_least: str | None = None, timeout: float = 5.0) -> Row | None:
        """The row under a key; composite keys as several arguments."""
        return self.views.get(
            self.name, key[0] if len(key) == 1 else key, at_least=at_least, timeout=timeout
        )

    def rows(
        self,
        *,
        where: str | Mapping[str, object] | None = None,
        limit: int = 1000,
        after: str | None = None,
        at_least: str | None = None,
        timeout: float = 5.0,
    ) -> Page:
        return self.views.rows(
            self.name, where=where, limit=limit, after=after, at_least=at_least, timeout=timeout
        )

    def sql(self, query: str, *, at_least: str | None = None, timeout: float = 5.0) -> Page:
        """A SELECT at one tick; this view is also called `this`."""
        return self.views.sql(
            f'WITH this AS (SELECT * FROM "{self.name}") {query}',
            at_least=at_least,
            timeout=timeout,
        )

    def changes(self, *, after: int | None = None, idle: float = 1.0) -> Iterator[Event]:
        """Snapshot, then changes; see `Views.subscribe`."""
        return self.views.subscribe(self.name, after=after, idle=idle)


def open_views(directory: str | Path) -> Views:
    """The views of a project's directory (the one that holds `views/`, or that itself)."""
    path = Path(directory)
    return Views(path / "views" if (path / "views").is_dir() else path)


def _index_name(held: HeldView, column: str) -> str:
    return f"index/{held.store[5:]}/{column}"


def not_reached(wanted: Position, reached: bool | None, here: str, timeout: float) -> ViewsError:
    """The error of a wait that has run out."""
    if reached is None:
        return PositionUnknownError(
            f"the views do not follow {wanted.kind}:{wanted.name}",
            detail=f"They are at {here}.",
            hint="`tailrace view explain NAME` lists the sources of a view",
        )
    return PositionTimeoutError(
        f"the views have not reached {wanted} in {timeout:g} s",
        detail=f"They are at {here}.",
        hint="ask again with a longer timeout, or see `tailrace status`",
    )


def _covers(state: State, wanted: Position) -> bool | None:
    reached = state.streams[state.project]
    return covered(
        wanted,
        project=state.project,
        tick=reached.tick,
        positions=reached.positions,
        inputs=reached.inputs,
    )


def _matching(
    snapshot: Snapshot, held: HeldView, where: Mapping[str, object], start: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    name = held.info.name
    indexed = next((column for column in where if column in held.indexes), None)
    found = (
        snapshot.scan(name, start)
        if indexed is None
        else snapshot.lookup(name, indexed, where[indexed])
    )
    for key, value in found:
        if start is not None and key <= start:
            continue
        row = orjson.loads(value)
        if all(row.get(column) == wanted for column, wanted in where.items()):
            yield key, value


def _encode_cursor(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _decode_cursor(text: str) -> bytes:
    try:
        key = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        key = b""
    if not 0 < len(key) <= KEY_LIMIT:
        raise UsageError(f"{text[:100]!r} does not come from an earlier page")
    return key
