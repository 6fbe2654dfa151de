"""`shop.table("orders").changes(…)`: typed changes from the log, sync and async."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fresh_loop
from tailrace.errors import UsageError
from tailrace.sources import Postgres
from tailrace.sources.errors import PositionError, PositionTooOldError
from tailrace.sources.log import BrokerSourceLog
from tailrace.sources.postgres.capture import PostgresCapture
from tailrace.telemetry.part import Part

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, customer text)"


@pytest.fixture
def shop(database: Any, tailrace_broker: str, tmp_path: Path) -> Iterator[Postgres]:
    """A captured database with three committed changes."""
    import threading

    database.run(ORDERS, "INSERT INTO orders VALUES (1, 'copied')")
    source = Postgres("shop", database.dsn, tables=["orders"])
    part = Part("shop", "source", "test", tailrace_broker, tmp_path)

    def work() -> None:
        PostgresCapture(source, BrokerSourceLog(tailrace_broker, "shop"), part).work()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield source
    part.stopping.set()
    thread.join(30)


def test_snapshot_then_changes(shop: Postgres, database: Any, tailrace_broker: str) -> None:
    stream = iter(_retry(shop, "snapshot", tailrace_broker))
    first = next(stream)
    assert (first.op, first.after) == ("read", {"id": 1, "customer": "copied"})
    database.run("UPDATE orders SET customer = 'x'", "DELETE FROM orders")
    second, third = next(stream), next(stream)
    assert (second.op, third.op, third.key) == ("update", "delete", {"id": 1})
    # A position lies behind its own change: reading on from it repeats nothing.
    again = iter(shop.table("orders").changes(second.position or "", bootstrap=tailrace_broker))
    assert next(again).op == "delete"


def test_only_what_happens_from_now_on(shop: Postgres, database: Any, tailrace_broker: str) -> None:
    next(iter(_retry(shop, "snapshot", tailrace_broker)))

    async def watch() -> list[str]:
        stream = aiter(shop.table("orders").changes("now", bootstrap=tailrace_broker))
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        for number in itertools.count(100):
            database.run(f"INSERT INTO orders VALUES ({number}, 'new')")
            done, _ = await asyncio.wait([waiting], timeout=0.2)
            if done:
                break
        return [waiting.result().op, waiting.result().after["customer"]]

    assert fresh_loop.run(watch()) == ["insert", "new"]


def test_a_position_that_means_nothing_is_refused(shop: Postgres, tailrace_broker: str) -> None:
    next(iter(_retry(shop, "snapshot", tailrace_broker)))
    table = shop.table("orders")
    with pytest.raises(PositionError):
        next(iter(table.changes("yesterday", bootstrap=tailrace_broker)))
    with pytest.raises(PositionError):
        next(iter(table.changes("pg:other:00", bootstrap=tailrace_broker)))
    with pytest.raises(PositionTooOldError) as caught:
        next(iter(table.changes("pg:shop:0000000000000001", bootstrap=tailrace_broker)))
    assert "history" in caught.value.hint
    with pytest.raises(UsageError, match="not captured"):
        next(iter(shop.table("absent").changes(bootstrap=tailrace_broker)))


def _retry(shop: Postgres, start: str, bootstrap: str) -> Any:
    """The stream, once the capture has made its topic."""
    import time

    from tailrace.client.admin import Admin

    with Admin(bootstrap) as admin:
        for _ in range(600):
            if admin.describe_topic("shop.public.orders") is not None:
                break
            time.sleep(0.05)
    return shop.table("orders").changes(start, bootstrap=bootstrap)
