"""What a test of the console holds in its hands."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from fastapi.testclient import TestClient

from tailrace.console.app import Served
from tailrace.records.tick import TickRow, ViewInfo
from tailrace.serving.follower import Follower
from tailrace.testing.changelogs import TickWriter


@dataclass
class Console:
    """What a test of the console needs: a client, and hands on what it serves."""

    client: TestClient
    ticks: TickWriter
    follower: Follower
    served: Served

    def tick(self, **rows: int | None) -> None:
        """One tick that sets (or removes) countries in the view `open_orders`."""
        changes = [
            ({"country": c}, None if n is None else {"country": c, "orders": n})
            for c, n in rows.items()
        ]
        self.ticks.tick({"open_orders": changes}, positions={"shop": "pg:shop:00000000000000FF"})
        self.follower.step(0.1)


class LogTicks:
    """Ticks of the view `open_orders` in a real log, as the pipelines write them."""

    def __init__(self, bootstrap: str, project: str = "shop") -> None:
        from tailrace.client.admin import Admin
        from tailrace.records.tick import TICKS_TOPIC

        self.bootstrap = bootstrap
        self.project = project
        self.number = 0
        columns = (("country", "STRING"), ("orders", "BIGINT"), ("value", "BIGINT"))
        self.view = ViewInfo("open_orders", "open_orders", 1, ("country",), columns)
        with Admin(bootstrap) as admin:
            admin.ensure_topic(TICKS_TOPIC, 1, {"cleanup.policy": "compact"})
            admin.ensure_topic("open_orders", 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "604800000"})  # fmt: skip

    def tick(self, at_ms: int, **rows: int | None) -> None:
        """One committed tick that sets (or removes) countries."""
        from tailrace.client.writer import TransactionalWriter
        from tailrace.records.tick import TICKS_TOPIC

        self.number += 1
        with TransactionalWriter(self.bootstrap, f"tailrace.{self.project}.ticks") as writer:
            writer.init()
            for country, orders in rows.items():
                key = orjson.dumps({"country": country})
                row = {"row": {"country": country, "orders": orders, "value": 10 * (orders or 0)}}
                writer.send("open_orders", 0, key, None if orders is None else orjson.dumps(row))
            ends = writer.flush()
            self.end = ends.get(("open_orders", 0), getattr(self, "end", 0))
            written = TickRow(
                self.project,
                self.project,
                self.number,
                {"open_orders": {0: self.end}},
                {"open_orders": self.view},
                {"shop": f"lite:shop:{self.number:016X}"},
                {},
                at_ms,
            )
            writer.send(TICKS_TOPIC, 0, self.project.encode(), written.encode())
            writer.commit()
