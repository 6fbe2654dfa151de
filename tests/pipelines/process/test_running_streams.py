"""What streams find in the Spark that runs them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import tailrace as tr
from tailrace import sources
from tailrace.pipelines.process.running_streams import RunningStreams
from tailrace.pipelines.streams.source import LogSource


def test_spark_knows_the_log_before_the_first_stream_starts() -> None:
    shop = sources.SQLite("shop", path="shop.db", tables=["orders"], history={"orders": "1 day"})

    @tr.stream(shop.table("orders").inserts())
    def placed(orders: Any) -> Any:
        return orders

    registered: list[object] = []
    session: Any = SimpleNamespace(dataSource=SimpleNamespace(register=registered.append))
    part: Any = SimpleNamespace()
    settings: Any = SimpleNamespace()
    RunningStreams([], part, session, settings)
    assert registered == []
    RunningStreams([placed], part, session, settings)
    assert registered == [LogSource]
