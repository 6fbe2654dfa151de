"""A tick driver without pipelines: writes changelogs and tick rows to a real log."""

from __future__ import annotations

from typing import Any

import orjson

from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.records.tick import TICKS_TOPIC, TickRow, ViewInfo

INFO = ViewInfo("totals", "totals", 1, ("country",), (("country", "STRING"), ("n", "BIGINT")))


class Driver:
    """Writes ticks of the view `totals` as the tick driver does: one log transaction each."""

    def __init__(self, address: str, clock_ms: int = 0) -> None:
        with Admin(address) as admin:
            admin.ensure_topic("totals", 2, {"cleanup.policy": "compact"})
            admin.ensure_topic(TICKS_TOPIC, 1, {"cleanup.policy": "compact"})
        self.writer = TransactionalWriter(address, "tailrace.shop.ticks")
        self.writer.init()
        self.tick = 0
        self.ts_ms = clock_ms
        self.ends = {0: 0, 1: 0}
        self.rows: dict[str, Any] = {}

    def write(self, changes: dict[str, Any], *, commit: bool = True) -> None:
        for country, n in changes.items():
            value = None if n is None else orjson.dumps({"row": {"country": country, "n": n}})
            self.writer.send("totals", None, orjson.dumps({"country": country}), value)
        ends = dict(self.ends)
        for (topic, partition), following in self.writer.flush().items():
            if topic == "totals":
                ends[partition] = following
        row = TickRow(
            "shop", "shop", self.tick + 1, {"totals": ends}, {"totals": INFO}, ts_ms=self.ts_ms
        )
        self.writer.send(TICKS_TOPIC, 0, b"shop", row.encode())
        self.writer.flush()
        if not commit:
            self.writer.abort()
            return
        self.writer.commit()
        self.tick += 1
        self.ends = ends
        for country, n in changes.items():
            self.rows.pop(country, None)
            if n is not None:
                self.rows[country] = n

    def close(self) -> None:
        self.writer.close()
