"""Records of a topic and changes of a table as server-sent events.

A subscription owns one reader thread and a bounded queue: a slow subscriber stops its
own reader and nobody else's. The event id is where to go on, `partition:offset` for
every partition, so `Last-Event-ID` resumes without gap or repeat.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

import orjson

from tailrace.client.ranges import Chunk, KafkaRanges, Range
from tailrace.console.conditions import Condition, within
from tailrace.console.errors import TooManySubscribersError, UnknownNameError
from tailrace.console.records import as_records
from tailrace.errors import TailraceError, UsageError

MOST_SUBSCRIBERS = 200
QUEUE = 64
KEEP_ALIVE = 15.0
_open = threading.BoundedSemaphore(MOST_SUBSCRIBERS)


def parse_place(text: str) -> dict[int, int]:
    """`0:12,1:40` as offsets by partition."""
    try:
        pairs = (part.split(":") for part in text.split(","))
        return {int(partition): int(offset) for partition, offset in pairs}
    except ValueError as error:
        raise UsageError(f"{text!r} is no place in a topic", hint="write 0:12,1:40") from error


def record_events(
    bootstrap: str, topic: str, start: str, last_id: str | None, where: Condition | None
) -> AsyncGenerator[bytes]:
    """Every record from `start` (earliest, latest, or a place) on, as it comes."""

    def encode(chunk: Chunk) -> list[bytes]:
        chosen = where and within(where)
        return [
            orjson.dumps(record)
            for record in as_records(chunk)
            if chosen is None or chosen({**_object(record["value"]), **_about(record)})
        ]

    return _Subscription(bootstrap, topic, start, last_id, encode).events("record")


def change_events(
    bootstrap: str, topic: str, start: str, last_id: str | None, where: Condition | None
) -> AsyncGenerator[bytes]:
    """A table's changes: `start` "snapshot" gives its rows first, "now" only what comes."""

    def encode(chunk: Chunk) -> list[bytes]:
        found = []
        chosen = where and within(where)
        for offset, key, value in zip(chunk.offsets, chunk.keys, chunk.values, strict=True):
            if value is None:
                continue  # the tombstone after a delete says nothing new
            change = _object(value.decode(errors="replace"))
            row = change.get("after") or change.get("before") or {}
            # A `t` empties the table: it concerns whatever rows were chosen.
            if chosen is None or change.get("op") == "t" or chosen({**row, "op": change.get("op")}):
                about = {"key": _object((key or b"").decode(errors="replace")), "offset": offset}
                found.append(orjson.dumps({**change, **about}))
        return found

    opened = "latest" if start == "now" else "earliest" if start == "snapshot" else start
    return _Subscription(
        bootstrap, topic, opened, last_id, encode, snapshot=start == "snapshot", where=where
    ).events("change")


class _Subscription:
    """One reader thread, one bounded queue, one subscriber."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        start: str,
        last_id: str | None,
        encode: Callable[[Chunk], list[bytes]],
        *,
        snapshot: bool = False,
        where: Condition | None = None,
    ) -> None:
        if not _open.acquire(blocking=False):
            raise TooManySubscribersError(
                f"{MOST_SUBSCRIBERS} subscriptions are open already",
                hint="close one, or read the topic with a Kafka client",
            )
        self._topic = topic
        self._encode = encode
        self._where = where
        self._stopping = threading.Event()
        self._reader = KafkaRanges(bootstrap)
        try:
            bounds = self._reader.bounds(topic)
            if not bounds:
                raise UnknownNameError(f"there is no topic {topic!r}")
            self._place = _first_place(bounds, last_id or start)
        except BaseException:
            self._close()
            raise
        self._snapshot_to = (
            {p: end for p, (_, end) in bounds.items()} if snapshot and last_id is None else None
        )

    async def events(self, kind: str) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | BaseException] = asyncio.Queue(QUEUE)
        thread = threading.Thread(target=self._run, args=(kind, loop, queue), daemon=True)
        thread.start()
        try:
            while True:
                try:
                    item = await asyncio.wait_for(queue.get(), KEEP_ALIVE)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if isinstance(item, BaseException):
                    if isinstance(item, TailraceError):
                        yield failed_event(item)
                    return
                yield item
        finally:
            self._stopping.set()
            # The reader must be gone before its event loop is; it looks twice a second.
            await asyncio.shield(loop.run_in_executor(None, thread.join))

    def _run(
        self,
        kind: str,
        loop: asyncio.AbstractEventLoop,
        queue: asyncio.Queue[bytes | BaseException],
    ) -> None:
        def put(item: bytes | BaseException) -> None:
            if self._stopping.is_set():
                return
            waiting = asyncio.run_coroutine_threadsafe(queue.put(item), loop)
            while True:
                try:
                    waiting.result(0.5)
                    return
                except FutureTimeoutError:
                    if self._stopping.is_set():
                        waiting.cancel()
                        return

        try:
            if self._snapshot_to is not None:
                put(self._read_snapshot())
            while not self._stopping.is_set():
                for partition in list(self._place):
                    wait = 0.5 / len(self._place)
                    chunk = self._reader.follow(
                        self._topic, partition, self._place[partition], wait
                    )
                    self._place[partition] = max(self._place[partition], chunk.following)
                    encoded = self._encode(chunk)
                    if encoded:
                        put(self._event(kind, b"[" + b",".join(encoded) + b"]"))
        except Exception as error:
            put(error)
        finally:
            self._close()

    def _read_snapshot(self) -> bytes:
        assert self._snapshot_to is not None
        rows: dict[bytes, dict[str, Any]] = {}
        bags: dict[int, _Bag] = {}
        ranges = [
            Range(self._topic, p, self._place[p], end) for p, end in self._snapshot_to.items()
        ]
        for chunk in self._reader.read(ranges):
            for key, value in zip(chunk.keys, chunk.values, strict=True):
                change = _object((value or b"").decode(errors="replace"))
                row = change.get("after")
                if key is None:
                    bags.setdefault(chunk.partition, _Bag()).take(change)
                elif row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
        self._place.update(self._snapshot_to)
        there = [*rows.values(), *(row for bag in bags.values() for row in bag.rows())]
        where = self._where and within(self._where)
        chosen = [row for row in there if where is None or where(row)]
        return self._event("snapshot", orjson.dumps(chosen))

    def _event(self, kind: str, data: bytes) -> bytes:
        place = ",".join(f"{p}:{o}" for p, o in sorted(self._place.items()))
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (place.encode(), kind.encode(), data)

    def _close(self) -> None:
        self._reader.close()
        _open.release()


def failed_event(error: TailraceError) -> bytes:
    """The last event of a subscription that cannot go on."""
    return b"event: failed\ndata: %b\n\n" % orjson.dumps(error.as_dict())


class _Bag:
    """The rows of a table without a key, told apart by all their columns."""

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[int, dict[str, Any]]] = {}

    def take(self, change: Mapping[str, Any]) -> None:
        if change.get("op") == "t":
            self._rows.clear()
        for side, weight in (("before", -1), ("after", 1)):
            row = change.get(side)
            if isinstance(row, dict):
                name = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
                count = self._rows.get(name, (0, row))[0] + weight
                if count:
                    self._rows[name] = (count, row)
                else:
                    del self._rows[name]

    def rows(self) -> list[dict[str, Any]]:
        return [row for count, row in self._rows.values() for _ in range(count)]


def _first_place(bounds: Mapping[int, tuple[int, int]], start: str) -> dict[int, int]:
    if start == "earliest":
        return {partition: first for partition, (first, _) in bounds.items()}
    if start == "latest":
        return {partition: end for partition, (_, end) in bounds.items()}
    given = parse_place(start)
    return {p: max(first, given.get(p, first)) for p, (first, _) in bounds.items()}


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = orjson.loads(text or "")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _about(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("key", "partition", "offset", "timestamp")}
