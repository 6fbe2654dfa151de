"""A console over views in memory and a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from servers.consoles import Console
from tailrace.console.app import Served, create_app
from tailrace.console.figures import Figures
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Guard
from tailrace.project import load, scaffold
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.views.follower import Follower
from tailrace.views.reader import Views


@pytest.fixture
def console(tmp_path: Path, tailrace_broker: str) -> Iterator[Console]:
    scaffold.create(tmp_path / "shop")
    project = load.load(tmp_path / "shop")
    log = MemoryLog()
    ticks = TickWriter(log, "shop")
    ticks.declare("open_orders", ["country"], [("country", "STRING"), ("orders", "BIGINT")])
    views = Views(tmp_path / "views")
    figures = Figures(tailrace_broker)
    served = Served(project, tailrace_broker, views, figures)
    app = Guard(FastLookups(create_app(served), views), host="127.0.0.1", token=None)
    with (
        Follower(tmp_path / "views", log, "shop") as follower,
        TestClient(app, base_url="http://127.0.0.1:8080") as client,
    ):
        made = Console(client, ticks, follower, served)
        made.tick(NL=2, DE=1)
        yield made
    figures.close()
    views.close()
