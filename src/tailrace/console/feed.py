"""Fan-out of view changes to many subscribers.

One task watches the follower's environment and wakes those whose view has changed. A
subscriber pulls: it asks for what lies after its own tick, and all that are at the same
tick get the same encoded bytes, so a change is read and encoded once however many listen.
A slow one is asked for less often: while its connection is full nothing is kept for it
but its tick, and what it missed comes from the history, in parts of bounded size. One
that has fallen behind the history gets a new snapshot. Conditions are never evaluated on
the event loop, and each has a time limit: a subscriber's own condition can end its own
subscription and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import orjson
from starlette.responses import Response

from tailrace.console.conditions import Condition, within
from tailrace.console.errors import ConditionTimeoutError
from tailrace.console.security import Receive, Scope, Send
from tailrace.console.streams import failed_event
from tailrace.records.position import parse_position
from tailrace.serving.errors import HistoryGoneError, UnknownViewError, ViewsNotReadyError
from tailrace.serving.reader import Snapshot, Views, not_reached
from tailrace.serving.store import KEY_LIMIT
from tailrace.serving.subscribe import changes_after

log = logging.getLogger(__name__)

WATCH_EVERY = 0.02
KEEP_ALIVE = 15.0
STILL_HERE = b": still here\n\n"
PART_BYTES = 1 << 20
ROWS_AT_ONCE = 2_000
THREADS = 2  # that evaluate conditions, which others wrote: the rest go on beside them

# A view, the rows of it that are wanted, and the tick after which.
Place = tuple[str, tuple[str, Condition] | None, int | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """Events that bring a subscriber to `tick`; `more`: there is more already."""

    data: bytes
    tick: int
    more: bool = False


class Subscription:
    """One subscriber: its tick, and whether there is something new for it. `where` are
    the rows it wants, as a condition that the same text always stands for."""

    __slots__ = ("_waiter", "closed", "name", "news", "tick", "where")

    def __init__(
        self, name: str, after: int | None, where: tuple[str, Condition] | None = None
    ) -> None:
        self.name = name
        self.where = where
        self.tick = after
        self.news = False
        self.closed = False
        self._waiter: asyncio.Future[bytes] | None = None

    async def wait(self) -> bytes:
        """Return when there is something new, or with what else is to be sent."""
        if self.news or self.closed:
            return b""
        self._waiter = asyncio.get_running_loop().create_future()
        return await self._waiter

    def wake(self) -> None:
        self.news = True
        self.tell(b"")

    def close(self) -> None:
        """Let `Feed.pump` end."""
        self.closed = True
        self.tell(b"")

    def tell(self, data: bytes) -> None:
        """Have `data` sent, if nothing else is on its way."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(data)


class Feed:
    """Serves `pump()` to any number of callers on one event loop."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._changed: dict[str, int] = {}
        self._answers: dict[Place, Answer | asyncio.Future[Answer]] = {}
        self._seen = -1
        self._moved: asyncio.Future[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._conditions = ThreadPoolExecutor(THREADS, "condition")

    def start(self) -> None:
        """Watch the views, on the running event loop."""
        self.loop = asyncio.get_running_loop()
        self._watcher = self.loop.create_task(self._watch())

    async def stop(self) -> None:
        """End every subscription; safe to call twice."""
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None
        self._conditions.shutdown(wait=False, cancel_futures=True)
        for subscriptions in self._subscriptions.values():
            for subscription in subscriptions:
                subscription.close()

    async def pump(self, subscription: Subscription, send: Send) -> None:
        """Send server-sent events until the subscription is closed: a snapshot (unless
        the ticks after its own are still known), then every change."""
        name = subscription.name
        subscriptions = self._subscriptions.setdefault(name, set())
        subscriptions.add(subscription)
        try:
            while not subscription.closed:
                subscription.news = False
                place = (name, subscription.where, subscription.tick)
                answer = self._answers.get(place)
                if not isinstance(answer, Answer):  # nobody was here at this tick before
                    answer = await self._answer(place)
                if answer.data:
                    await send(_part(answer.data))
                subscription.tick = answer.tick
                if answer.more:
                    continue
                while told := await subscription.wait():
                    await send(_part(told))
        except (UnknownViewError, ViewsNotReadyError) as error:
            log.info("a subscription ends", extra={"view": name, "error": str(error)})
        except ConditionTimeoutError as error:
            await send(_part(failed_event(error)))
        finally:
            subscriptions.discard(subscription)
            if not subscriptions:
                self._subscriptions.pop(name, None)

    async def wait(self, position: str, seconds: float) -> None:
        """`Views.wait`, without a thread: those who wait are told when the views move."""
        wanted = parse_position(position)
        until = asyncio.get_running_loop().time() + seconds
        while True:
            reached, here = self._views.covers(wanted)
            if reached:
                return
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                raise not_reached(wanted, reached, here, seconds)
            await self.moved(left)

    async def moved(self, seconds: float) -> bool:
        """Whether the views moved within `seconds`; returns as soon as they do."""
        if self._moved is None:
            self._moved = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait({self._moved}, timeout=seconds)
        return bool(done)

    # ------------------------------------------------------------------ watching

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        told_at = loop.time()
        while True:
            try:
                self._look()
            except ViewsNotReadyError:
                self._seen = -1
            if loop.time() - told_at >= KEEP_ALIVE:
                told_at = loop.time()
                for subscriptions in self._subscriptions.values():
                    for subscription in subscriptions:
                        subscription.tell(STILL_HERE)
            await asyncio.sleep(WATCH_EVERY)

    def _look(self) -> None:
        """Wake the subscribers of every view that has changed."""
        with self._views.snapshot() as snapshot:
            if snapshot.transaction_id == self._seen:
                return
            self._seen = snapshot.transaction_id
            if self._moved is not None:
                self._moved.set_result(None)
                self._moved = None
            changed = {name: held.changed for name, held in snapshot.state.views.items()}
        self._answers.clear()
        before, self._changed = self._changed, changed
        for name, subscriptions in self._subscriptions.items():
            if changed.get(name) != before.get(name):
                for subscription in subscriptions:
                    subscription.wake()

    # ------------------------------------------------------------------ encoding

    async def _answer(self, place: Place) -> Answer:
        """What follows a tick; the same for everybody until the views move on."""
        held = self._answers.get(place)
        if held is None:
            name, where, after = place
            loop = asyncio.get_running_loop()
            if where is not None:
                held = loop.run_in_executor(self._conditions, self._chosen, name, after, where[1])
            else:
                with self._views.snapshot() as snapshot:
                    held = None if after is None else changes_part(snapshot, name, after)
                    if held is None and snapshot.count(name) <= ROWS_AT_ONCE:
                        held = snapshot_part(snapshot, name)
                if held is None:
                    held = loop.run_in_executor(None, self._snapshot, name)
            self._answers[place] = held
        if isinstance(held, Answer):
            return held
        try:
            return await asyncio.shield(held)
        except Exception:
            self._answers.pop(place, None)
            raise

    def _snapshot(self, name: str) -> Answer:
        with self._views.snapshot() as snapshot:
            return snapshot_part(snapshot, name)

    def _chosen(self, name: str, after: int | None, condition: Condition) -> Answer:
        where = within(condition)
        with self._views.snapshot() as snapshot:
            held = None if after is None else changes_part(snapshot, name, after, where)
            return snapshot_part(snapshot, name, where) if held is None else held


def changes_part(
    snapshot: Snapshot, name: str, after: int, where: Condition | None = None
) -> Answer | None:
    """The changes after a tick, as much as fits a part; None if they are forgotten. With
    a condition, a row that does not meet it is told as gone."""
    if snapshot.view(name).changed <= after <= snapshot.tick:
        return Answer(b"", snapshot.tick)
    events: list[bytes] = []
    size = 0
    try:
        for batch in changes_after(snapshot, name, after):
            if size > PART_BYTES:
                return Answer(b"".join(events), after, more=True)
            position = f"tick:{snapshot.state.project}:{batch.tick}".encode()
            lines = (batch.lines if where is None else _chosen(batch.lines, where)).replace(
                b"\n", b","
            )
            data = b'{"changes":[%b],"position":%b}' % (lines, orjson.dumps(position.decode()))
            events.append(_event(b"changes", batch.tick, data))
            size += len(data)
            after = batch.tick
    except HistoryGoneError:
        return None
    return Answer(b"".join(events), snapshot.tick)


def snapshot_part(snapshot: Snapshot, name: str, where: Condition | None = None) -> Answer:
    """All rows now, or those that meet a condition."""
    columns = snapshot.view(name).info.key
    rows = b",".join(
        b'{"key":%b,"row":%b}' % (_key(key, row, columns), row)
        for key, row in snapshot.scan(name)
        if where is None or where(orjson.loads(row))
    )
    data = b'{"snapshot":[%b],"position":%b}' % (rows, orjson.dumps(snapshot.position))
    return Answer(_event(b"snapshot", snapshot.tick, data), snapshot.tick)


def _chosen(lines: bytes, where: Condition) -> bytes:
    """Changes with the rows that meet a condition; the others are gone for who asks so."""
    chosen = []
    for line in lines.splitlines():
        change = orjson.loads(line)
        if change["row"] is not None and not where(change["row"]):
            line = orjson.dumps({"key": change["key"], "row": None})
        chosen.append(line)
    return b"\n".join(chosen)


def _key(stored: bytes, row: bytes, columns: tuple[str, ...]) -> bytes:
    """A row's key as JSON; a stored key near LMDB's limit may end in a digest."""
    if len(stored) < KEY_LIMIT and stored.startswith(b"{"):
        return stored
    values = orjson.loads(row)
    return orjson.dumps({column: values.get(column) for column in columns})


def _event(kind: bytes, tick: int, data: bytes) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (tick, kind, data)


def _part(data: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": True}


class ChangesResponse(Response):
    """A subscription as the answer to a request, until the client goes."""

    media_type = "text/event-stream"

    def __init__(
        self,
        feed: Feed,
        name: str,
        after: int | None,
        where: tuple[str, Condition] | None = None,
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._feed = feed
        self._subscription = Subscription(name, after, where)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        leaving = asyncio.create_task(self._leave(receive))
        try:
            await self._feed.pump(self._subscription, send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            leaving.cancel()

    async def _leave(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._subscription.close()
