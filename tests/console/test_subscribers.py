"""Subscriptions to views: every change once and in order, whoever else listens."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import fresh_loop
from servers.consoles import Console
from servers.running_console import running
from tailrace.console import feed as feed_module
from tailrace.console.conditions import compile_condition
from tailrace.console.feed import Feed, Subscription
from tailrace.serving.follower import FollowerSettings


@dataclass
class Listener:
    """A subscriber that keeps the rows it was told, and what came when."""

    feed: Feed
    after: int | None = None
    gate: asyncio.Event | None = None
    rows: dict[str, Any] = field(default_factory=dict)
    ticks: list[int] = field(default_factory=list)
    snapshots: int = 0
    parts: int = 0

    def start(self) -> None:
        self.subscription = Subscription("open_orders", self.after)
        self.task = asyncio.create_task(self.feed.pump(self.subscription, self.send))

    async def stop(self) -> None:
        self.subscription.close()
        await self.task

    async def send(self, message: Any) -> None:
        if self.gate is not None:
            await self.gate.wait()
        self.parts += 1
        for event in message["body"].decode().split("\n\n")[:-1]:
            self.take(event)

    def take(self, event: str) -> None:
        lines = dict(line.split(": ", 1) for line in event.split("\n"))
        data = json.loads(lines["data"])
        if lines["event"] == "snapshot":
            self.snapshots += 1
            self.rows = {item["key"]["country"]: item["row"]["orders"] for item in data["snapshot"]}
        else:
            for change in data["changes"]:
                country, row = change["key"]["country"], change["row"]
                self.rows.pop(country, None)
                if row is not None:
                    self.rows[country] = row["orders"]
        assert data["position"] == f"tick:shop:{lines['id']}"
        self.ticks.append(int(lines["id"]))


def contents(console: Console) -> dict[str, int]:
    return {row["country"]: row["orders"] for row in console.ticks.contents["open_orders"].values()}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def with_feed(console: Console, work: Callable[[Feed], Awaitable[None]]) -> None:
    async def run() -> None:
        feed = Feed(console.served.views)
        feed.start()
        try:
            await work(feed)
        finally:
            await feed.stop()

    fresh_loop.run(run())


def test_every_subscriber_sees_every_change_once_whenever_it_came(console: Console) -> None:
    chance = random.Random(3)

    async def work(feed: Feed) -> None:
        listeners: list[Listener] = []
        for number in range(2, 42):
            listener = Listener(feed)
            listener.start()
            listeners.append(listener)
            await asyncio.sleep(chance.choice([0, 0, 0.01, 0.03]))
            console.tick(**{f"C{chance.randrange(9)}": chance.choice([None, number])})
        wanted = contents(console)
        await until(lambda: all(one.rows == wanted and one.ticks[-1] == 41 for one in listeners))
        for one in listeners:
            assert one.snapshots == 1
            assert one.ticks == list(range(one.ticks[0], 42))
            await one.stop()

    with_feed(console, work)


def test_a_subscriber_that_does_not_read_keeps_nobody_waiting(console: Console) -> None:
    async def work(feed: Feed) -> None:
        slow, quick = Listener(feed, gate=asyncio.Event()), Listener(feed)
        slow.start()
        quick.start()
        await until(lambda: quick.snapshots == 1)
        for number in range(2, 30):
            console.tick(NL=number)
            await until(lambda: quick.ticks[-1] == number)  # noqa: B023
        assert slow.ticks == []
        assert slow.gate is not None
        slow.gate.set()
        await until(lambda: slow.rows == quick.rows)
        assert slow.ticks[0] == 1
        assert slow.ticks[1:] == list(range(2, 30))
        assert slow.parts < 10  # what it missed came together
        await slow.stop()
        await quick.stop()

    with_feed(console, work)


def test_what_was_missed_comes_in_parts_of_bounded_size(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "PART_BYTES", 300)
    for number in range(2, 30):
        console.tick(NL=number, **{f"C{number}": number})

    async def work(feed: Feed) -> None:
        late = Listener(feed, after=4)
        late.start()
        await until(lambda: late.ticks[-1:] == [29])
        assert late.snapshots == 0
        assert late.ticks == list(range(5, 30))
        assert late.parts > 5
        await late.stop()

    with_feed(console, work)


def test_a_tick_that_is_no_longer_known_begins_with_a_snapshot(console: Console) -> None:
    console.follower.settings = FollowerSettings(history_bytes=400)
    for number in range(2, 30):
        console.tick(NL=number)

    async def work(feed: Feed) -> None:
        forgotten, unborn, known = Listener(feed, 2), Listener(feed, 77), Listener(feed, 28)
        for one in (forgotten, unborn, known):
            one.start()
        await until(lambda: all(one.ticks == [29] for one in (forgotten, unborn, known)))
        assert (forgotten.snapshots, unborn.snapshots, known.snapshots) == (1, 1, 0)
        console.tick(NL=99)
        await until(lambda: all(one.ticks == [29, 30] for one in (forgotten, unborn, known)))
        for one in (forgotten, unborn, known):
            await one.stop()

    with_feed(console, work)


def test_a_large_snapshot_is_made_beside_the_loop(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "ROWS_AT_ONCE", 1)

    async def work(feed: Feed) -> None:
        listeners = [Listener(feed) for _ in range(5)]
        for one in listeners:
            one.start()
        console.tick(FR=7)
        wanted = contents(console)
        await until(lambda: all(one.rows == wanted for one in listeners))
        for one in listeners:
            await one.stop()

    with_feed(console, work)


def test_a_condition_chooses_rows_and_tells_those_that_leave(console: Console) -> None:
    async def work(feed: Feed) -> None:
        condition = compile_condition("orders > 1")
        chosen = Listener(feed)
        chosen.subscription = Subscription("open_orders", None, ("orders > 1", condition))
        chosen.task = asyncio.create_task(feed.pump(chosen.subscription, chosen.send))
        await until(lambda: chosen.rows == {"NL": 2})
        console.tick(DE=5)
        await until(lambda: chosen.rows == {"NL": 2, "DE": 5})
        console.tick(NL=1)
        await until(lambda: chosen.rows == {"DE": 5})
        await chosen.stop()

    with_feed(console, work)


def test_a_condition_that_cannot_be_read_is_400(console: Console) -> None:
    answer = console.client.get("/api/views/open_orders/changes", params={"where": "orders >"})
    assert answer.status_code == 400
    assert answer.json()["hint"] or answer.json()["detail"]


def subscribe(port: int, after: int | None = None) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    last = b"" if after is None else b"Last-Event-ID: %d\r\n" % after
    made.sendall(
        b"GET /api/views/open_orders/changes HTTP/1.1\r\nHost: 127.0.0.1:1\r\n%b\r\n" % last
    )
    return made


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    data = b""
    while wanted not in data:
        got = connection.recv(65536)
        assert got, data
        data += got
    return data


def test_over_http_subscribers_come_and_go_and_the_server_stops_with_them(
    console: Console,
) -> None:
    with running(console) as port:
        subscribers = [subscribe(port) for _ in range(20)]
        for one in subscribers:
            begun = read_until(one, b"event: snapshot")
            assert b"text/event-stream" in begun
            assert b"content-security-policy" in begun
        for one in subscribers[:5]:
            one.close()
        console.tick(FR=7)
        console.tick(FR=None)
        for one in subscribers[5:]:
            seen = read_until(one, b"id: 3\n")
            assert seen.count(b"id: 2\n") == seen.count(b"event: changes") - 1 == 1
        resumed = subscribe(port, after=2)
        seen = read_until(resumed, b"id: 3\n")
        assert b"snapshot" not in seen
        assert b'"row":null' in seen
        resumed.close()
    for one in subscribers[5:]:
        while one.recv(65536):
            pass  # the server has ended every stream
        one.close()
