"""Fan-out of view changes to many subscribers.

One task watches the follower's environment; everybody who waits is woken together. A
subscriber pulls: it asks for what lies after its own tick, and subscribers at the same
tick share the same encoded bytes. A slow one simply asks later, and hurts nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson

from tailrace.views.errors import HistoryGoneError, ViewsNotReadyError
from tailrace.views.keys import key_columns
from tailrace.views.reader import Views

WATCH_EVERY = 0.02
KEEP_ALIVE = 15.0
KEPT_ANSWERS = 256


class Feed:
    """Serves `subscribe()` to any number of callers on one event loop."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._changed = asyncio.Condition()
        self._tick = -1
        self._answers: dict[tuple[str, int | None, int], tuple[bytes, int]] = {}
        self._watcher: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watcher = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._watcher:
            self._watcher.cancel()
        async with self._changed:
            self._changed.notify_all()

    async def _watch(self) -> None:
        while True:
            tick = self._current()
            if tick != self._tick:
                self._tick = tick
                async with self._changed:
                    self._changed.notify_all()
            await asyncio.sleep(WATCH_EVERY)

    def _current(self) -> int:
        try:
            with self._views.snapshot() as snapshot:
                return snapshot.tick
        except ViewsNotReadyError:
            return -1

    async def subscribe(self, name: str, after: int | None) -> AsyncIterator[bytes]:
        """Server-sent events: a snapshot (unless `after` is still known), then changes."""
        tick = after
        while True:
            data, tick = self._after(name, tick)
            if data:
                yield data
            try:
                async with asyncio.timeout(KEEP_ALIVE):
                    async with self._changed:
                        while self._tick == tick:
                            await self._changed.wait()
            except TimeoutError:
                yield b": still here\n\n"

    def _after(self, name: str, after: int | None) -> tuple[bytes, int]:
        with self._views.snapshot() as snapshot:
            now = snapshot.tick
        known = self._answers.get((name, after, now))
        if known is None:
            known = self._encode(name, after)
            if len(self._answers) >= KEPT_ANSWERS:
                self._answers.pop(next(iter(self._answers)))
            self._answers[name, after, known[1]] = known
        return known

    def _encode(self, name: str, after: int | None) -> tuple[bytes, int]:
        with self._views.snapshot() as snapshot:
            now = snapshot.tick
            held = snapshot.view(name)
            if after is not None:
                if held.changed <= after <= now:
                    return b"", now
                try:
                    batches = self._views.changes(name, after)
                except HistoryGoneError:
                    after = None
                else:
                    out = [
                        _event(
                            "changes",
                            batch.tick,
                            b'{"changes":[' + b",".join(batch.lines.splitlines()) + b"]}",
                        )
                        for batch in batches
                        if batch.tick <= now
                    ]
                    return b"".join(out), now
            columns = key_columns(held.info)
            rows = [orjson.loads(value) for _, value in snapshot.scan(name)]
            listed = [{"key": {c: row.get(c) for c in columns}, "row": row} for row in rows]
            body = orjson.dumps({"snapshot": listed, "position": snapshot.position})
            return _event("snapshot", now, body), now


def _event(kind: str, tick: int, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (tick, kind.encode(), data)
