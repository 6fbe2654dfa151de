"""What a test of the console holds in its hands."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi.testclient import TestClient

from tailrace.console.app import Served
from tailrace.testing.changelogs import TickWriter
from tailrace.views.follower import Follower


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
