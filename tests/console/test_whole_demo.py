"""`tailrace demo` as it is, in a real browser: every page at three sizes in two themes, without an
error, a failed request or a finding of axe, and everything the shop declares at work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from servers.sites import CHROMIUM

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.thorough,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser"),
]
SIZES = {"desktop": (1280, 860), "tablet": (820, 1100), "phone": (390, 800)}
THEMES = ("light", "dark")
PAGES = [
    "", "sources", "sources/shop", "topics", "topics/reviews", "pipelines", "views", "views/ratings", "views/open_orders", "patterns", "patterns/card_testing",
    "percolations", "percolations/noticed", "sinks", "sinks/open_orders.sqlite", "groups", "schemas",
    "schemas/points-Earned", "events", "events/workshop", "cluster", "mirrors",
    "mirrors/to-standby", "alarms", "parts",
]  # fmt: skip
QUICK = ["", "topics", "percolations", "mirrors", "events"]  # what is looked at in all six ways
# Where pictures of all of it go, for people to look at.
PICTURES = os.environ.get("TAILRACE_PICTURES")


@dataclass
class Demo:
    address: str
    token: str
    directory: Path
    said: list[str]

    def ask(self, path: str) -> Any:
        request = urllib.request.Request(self.address + path, headers={"Authorization": f"Bearer {self.token}"})  # fmt: skip
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def sql(self, query: str) -> list[dict[str, Any]]:
        body = json.dumps({"sql": query}).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}/api/sql", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            rows: list[dict[str, Any]] = json.load(answer)["rows"]
        return rows

    def tailrace(self, *words: str) -> str:
        command = [sys.executable, "-m", "tailrace", *words, "--project", str(self.directory)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    command = [sys.executable, "-m", "tailrace", "demo", "--no-browser", "--console", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said: list[str] = []
    address = token = ""
    directory = Path()
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"^console (\S+?)/#token=(\S+)", line):
            address, token = found[1], found[2]
        if found := re.search(r"project  (\S+)", line):
            directory = Path(found[1])
        if "open orders in the view" in line:
            break
    assert directory != Path(), "".join(said)
    try:
        yield Demo(address, token, directory, said)
        assert process.poll() is None, "the demo ended by itself"
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core needs npm")
    place = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--no-save", "--prefix", str(place), "axe-core@4"]
    if subprocess.run(command, cwd=place, capture_output=True).returncode:
        pytest.skip("npm could not install axe-core")
    return (place / "node_modules" / "axe-core" / "axe.min.js").read_text()


def until(told: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not told():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.5)


def test_everything_the_shop_declares_is_at_work(demo: Demo) -> None:
    printed = "".join(demo.said)
    for words in ("standby  127.0.0.1:", "topics/reviews", "percolate list", "events reactions"):
        assert words in printed
    until(lambda: demo.sql("SELECT sum(reviews) AS n FROM ratings")[0]["n"])
    until(lambda: {"sent", "delivered"} <= {row["status"] for row in demo.sql("SELECT status FROM parcels_by_status")})  # fmt: skip
    parts = {part["name"]: part for part in demo.ask("/api/status")["parts"]}
    for name in ("web", "carrier", "metrics", "to-standby", "registry"):
        assert parts[name]["state"] == "running", parts[name]
    for name in ("web", "carrier", "metrics"):
        assert parts[name]["accepted"] > 0
        assert not parts[name].get("refused"), parts[name]
    until(lambda: "metrics" in demo.tailrace("topic", "list"))
    subjects = set(demo.ask("/api/subjects")["subjects"])
    assert {"points-Earned", "points-Spent"} <= subjects
    until(lambda: "customer-" in demo.tailrace("topic", "read", "workshop", "--max", "5"))
    until(lambda: "query_id" in demo.tailrace("topic", "read", "noticed", "--max", "1"))
    until(lambda: "reaction:thanks" in demo.tailrace("topic", "read", "points", "--max", "2000", "--json"))  # fmt: skip
    assert demo.ask("/api/mirrors")["mirrors"][0]["state"] == "running"


def test_no_page_has_an_error_or_a_finding(demo: Demo, browser: Browser, axe: str) -> None:
    wrong: list[str] = []
    for size, (width, height) in SIZES.items():
        for theme in THEMES:
            page = browser.new_page(viewport={"width": width, "height": height}, bypass_csp=True)
            watch(page, f"{size} {theme}", wrong)
            page.goto(f"{demo.address}/#token={demo.token}")
            page.evaluate(f"localStorage.setItem('tailrace-theme', '{theme}')")
            page.reload()
            for name in PAGES if (size, theme) == ("desktop", "light") else QUICK:
                look(page, demo, name, f"{size} {theme}", axe, wrong)
            page.close()
    assert not wrong, "\n".join(wrong)


def watch(page: Page, where: str, wrong: list[str]) -> None:
    """Keep all that fails on a page."""
    page.on("pageerror", lambda error: wrong.append(f"{where}: {error}"))
    page.on(
        "console",
        lambda message: wrong.append(f"{where}: {page.url}: {message.text}") if message.type in ("error", "warning") else None,
    )  # fmt: skip
    page.on(
        "response",
        lambda answer: wrong.append(f"{where}: {answer.status} {answer.url}") if answer.status >= 400 else None,
    )  # fmt: skip


def look(page: Page, demo: Demo, name: str, where: str, axe: str, wrong: list[str]) -> None:
    """One page: it comes within its time, has no alarm of its own, fits, and axe finds nothing."""
    page.goto(f"{demo.address}/#/{name}")
    page.locator("main h1").first.wait_for()
    page.wait_for_timeout(1500)
    if PICTURES:
        place = Path(PICTURES) / f"{name.replace('/', '-') or 'overview'}-{where.replace(' ', '-')}.png"  # fmt: skip
        page.screenshot(path=place, full_page=True)
    shown = page.locator("main [role=alert]").all_inner_texts()
    # A busy machine interrupts a stream now and then; it says that it goes on by itself.
    wrong.extend(f"{where}: {name}: {alert}" for alert in shown if "again by itself" not in alert)
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        wrong.append(f"{where}: {name} is wider than the window")
    page.evaluate(axe)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    wrong.extend(
        f"{where}: {name}: {each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
    )
