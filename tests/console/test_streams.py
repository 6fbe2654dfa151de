"""Records and table changes as server-sent events: from a place, filtered, resumed."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from confluent_kafka import Producer

import fresh_loop
from servers.sites import Site
from tailrace.console import app, streams
from tailrace.console.conditions import compile_condition
from tailrace.console.errors import UnknownNameError
from tailrace.console.streams import change_events, record_events
from tailrace.errors import UsageError


def produce(bootstrap: str, topic: str, *records: tuple[str | None, Any]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in records:
        producer.produce(topic, key=key, value=None if value is None else json.dumps(value))
    assert producer.flush(10) == 0


def take(events: AsyncIterator[bytes], records: int) -> tuple[list[Any], str, list[str]]:
    """The first `records` items of the stream, the last event's id, and the kinds seen."""

    async def collect() -> tuple[list[Any], str, list[str]]:
        found: list[Any] = []
        kinds: list[str] = []
        last = ""
        async with asyncio.timeout(30):
            async for event in events:
                lines = dict(line.split(": ", 1) for line in event.decode().strip().split("\n"))
                if "data" in lines:
                    found += json.loads(lines["data"])
                    kinds.append(lines["event"])
                    last = lines["id"]
                if len(found) >= records:
                    break
        await events.aclose()  # type: ignore[attr-defined]
        return found, last, kinds

    return fresh_loop.run(collect())


def test_records_come_from_a_place_and_go_on_after_the_last_id(tailrace_broker: str) -> None:
    produce(tailrace_broker, "t", *[("k", {"n": n}) for n in range(5)])
    found, last, _ = take(record_events(tailrace_broker, "t", "0:2", None, None), 3)
    assert [json.loads(record["value"])["n"] for record in found] == [2, 3, 4]
    produce(tailrace_broker, "t", ("k", {"n": 5}))
    found, _, _ = take(record_events(tailrace_broker, "t", "latest", last, None), 1)
    assert [record["offset"] for record in found] == [5]


def test_a_filter_is_evaluated_at_the_server(tailrace_broker: str) -> None:
    produce(tailrace_broker, "t", *[("k", {"n": n}) for n in range(10)], ("k", ["not", "an", "object"]))  # fmt: skip
    condition = compile_condition('n > 7 OR "offset" = 0')
    found, _, _ = take(record_events(tailrace_broker, "t", "earliest", None, condition), 3)
    assert [record["offset"] for record in found] == [0, 8, 9]


def test_a_table_without_a_key_gives_each_row_as_often_as_it_is_there(
    tailrace_broker: str,
) -> None:
    def change(op: str, before: Any, after: Any) -> tuple[None, dict[str, Any]]:
        return None, {"op": op, "before": before, "after": after}

    old, new, other = {"n": 1, "w": "a"}, {"n": 1, "w": "b"}, {"n": 2, "w": "c"}
    produce(
        tailrace_broker, "shop.public.lines",
        change("r", None, old), change("r", None, old), change("t", None, None),
        *[change("r", None, row) for row in (old, old, old, other)],
        change("u", old, new), change("d", other, None), change("c", None, other),
    )  # fmt: skip
    rows, last, kinds = take(
        change_events(tailrace_broker, "shop.public.lines", "snapshot", None, None), 4
    )
    assert kinds == ["snapshot"]
    assert sorted(rows, key=repr) == [old, old, new, other]
    chosen = compile_condition("n = 2")
    rows, _, _ = take(
        change_events(tailrace_broker, "shop.public.lines", "snapshot", None, chosen), 1
    )
    assert rows == [other]
    produce(tailrace_broker, "shop.public.lines", change("c", None, old), change("t", None, None))
    found, _, _ = take(change_events(tailrace_broker, "shop.public.lines", "now", last, chosen), 1)
    assert [one["op"] for one in found] == ["t"]


def test_a_table_gives_its_rows_and_then_its_changes(tailrace_broker: str) -> None:
    def change(op: str, after: Any) -> dict[str, Any]:
        return {"op": op, "before": None, "after": after}

    produce(
        tailrace_broker,
        "shop.public.orders",
        ('{"id":1}', change("c", {"id": 1, "status": "open"})),
        ('{"id":2}', change("c", {"id": 2, "status": "open"})),
        ('{"id":1}', change("u", {"id": 1, "status": "paid"})),
        ('{"id":2}', change("d", None)),
        ('{"id":2}', None),
    )
    topic = "shop.public.orders"
    rows, last, kinds = take(change_events(tailrace_broker, topic, "snapshot", None, None), 1)
    assert rows == [{"id": 1, "status": "paid"}]
    assert kinds == ["snapshot"]
    produce(tailrace_broker, topic, ('{"id":3}', change("c", {"id": 3, "status": "open"})))
    found, _, kinds = take(change_events(tailrace_broker, topic, "snapshot", last, None), 1)
    assert kinds == ["change"]
    assert found[0]["after"] == {"id": 3, "status": "open"}
    assert found[0]["key"] == {"id": 3}


def test_unknown_topics_and_places_are_refused(tailrace_broker: str) -> None:
    with pytest.raises(UnknownNameError):
        record_events(tailrace_broker, "absent", "latest", None, None)
    produce(tailrace_broker, "t", ("k", 1))
    with pytest.raises(UsageError):
        record_events(tailrace_broker, "t", "yesterday", None, None)


def test_the_live_stream_tells_when_the_views_move(site: Site) -> None:
    site.console.tick(NL=1)
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as listener:
        listener.sendall(b"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        received = b""
        while b"data: {" not in received:
            received += listener.recv(65536)
        before = site.console.served.views.position
        site.console.tick(NL=2)
        moved = site.console.served.views.position
        assert moved != before
        while b"event: position\ndata: " + moved.encode() not in received:
            received += listener.recv(65536)


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@pytest.mark.parametrize("path", ["/api/live", "/api/topics/t/records?from=earliest"])
def test_a_listener_who_leaves_takes_its_stream_along(site: Site, path: str) -> None:
    produce(site.console.served.bootstrap, "t", ("k", {"n": 1}))
    kept = Kept()
    logging.getLogger("uvicorn.error").addHandler(kept)
    try:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", site.port), timeout=20) as listener:
                listener.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                received = b""
                while b"data: " not in received:
                    received += listener.recv(65536)
        deadline = time.monotonic() + 30
        while streams._open._value < streams.MOST_SUBSCRIBERS or app._endings:  # type: ignore[attr-defined]
            assert time.monotonic() < deadline, "a stream outlived its listener"
            time.sleep(0.05)
        listening = socket.create_connection(("127.0.0.1", site.port), timeout=20)
        listening.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert listening.recv(65536)
        site.down()  # and a stream ends when the server does
        while listening.recv(65536):
            pass
        listening.close()
        assert kept.told == []
    finally:
        logging.getLogger("uvicorn.error").removeHandler(kept)
