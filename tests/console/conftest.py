"""A console over views in memory and a real broker; the same in a browser."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from fastapi.testclient import TestClient

from servers.consoles import Console
from servers.sites import CHROMIUM, FLAGS, Site
from tailrace.console import alarms
from tailrace.console.app import Served, create_app
from tailrace.console.figures import Figures
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Access, Guard
from tailrace.project import load, scaffold
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views
from tailrace.testing.changelogs import MemoryLog, TickWriter

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

STREAM = """
import tailrace as tr

clicks = tr.topic("clicks", schema="term STRING")

@tr.stream(clicks)
def terms(clicks):
    return clicks.select("term")
"""


@pytest.fixture
def console(tmp_path: Path, tailrace_broker: str) -> Iterator[Console]:
    scaffold.create(tmp_path / "shop")
    (tmp_path / "shop" / "pipelines" / "terms.py").write_text(STREAM)
    project = load.load(tmp_path / "shop")
    log = MemoryLog()
    ticks = TickWriter(log, "shop")
    ticks.declare("open_orders", ["country"], [("country", "STRING"), ("orders", "BIGINT")])
    views = Views(tmp_path / "views")
    figures = Figures(tailrace_broker)
    served = Served(project, tailrace_broker, views, figures)
    app = Guard(FastLookups(create_app(served), views), Access("127.0.0.1", None))
    with (
        Follower(tmp_path / "views", log, "shop") as follower,
        TestClient(app, base_url="http://127.0.0.1:8080") as client,
    ):
        made = Console(client, ticks, follower, served)
        made.tick(NL=2, DE=1)
        yield made
    figures.close()
    views.close()


@pytest.fixture(scope="module")  # its loop runs in the main thread: coroutines use `fresh_loop`
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(autouse=True)
def no_alarm_of_this_machines_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarms, "_disk", lambda directory: iter(()))


@pytest.fixture
def site(console: Console) -> Iterator[Site]:
    # Bound and never listening: nobody else gets the port, not even while the site is down.
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        made = Site(console, reserved.getsockname()[1])
        made.up()
        yield made
        made.down()


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """Playwright waits without a limit for a Chromium that stands still; one was seen. End it."""

    def end() -> None:
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "chrom" in child.name():
                    child.kill()

    timer = threading.Timer(60.0, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    try:
        with _patience():
            opened = browser.new_page()
    except Exception:  # a Chromium that stood still was ended: another one
        browser = browser.browser_type.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = browser.new_page()
    opened.set_default_timeout(60_000)
    requests: list[str] = []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("pageerror", lambda error: site.errors.append(str(error)))
    opened.goto(site.address)
    yield opened
    with contextlib.suppress(Exception), _patience():
        opened.close()
    assert not site.errors
    assert all(url.startswith((site.address, "data:")) for url in requests)
