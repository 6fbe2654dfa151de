"""The demo as a whole: how soon it lives, what it costs, how fresh it stays.

    python -m benchmarks.demo [--rate 200] [--seconds 60]

Starts `tailrace demo` as a person would, opens the page in Chromium where there is one,
and reads processor time and memory of every process of the tree from /proc (memory as
Pss: what is shared is counted once). Prints one table with the goals beside. Chromium is
measured apart: it is the visitor's, not the demo's.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from playwright.sync_api import Page, sync_playwright

TICKS = os.sysconf("SC_CLK_TCK")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


class Api:
    """The console's API on one connection at a time."""

    def __init__(self, link: str) -> None:
        """`link` as `tailrace demo` prints it, with the token."""
        url = urlsplit(link)
        self.host = url.netloc
        self.headers = {"Authorization": f"Bearer {url.fragment.removeprefix('token=')}"}

    def get(self, path: str) -> Any:
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request("GET", path, headers=self.headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise OSError(f"{path}: {answer.status}")
            return json.loads(body)
        finally:
            connection.close()


def tree(root: int) -> dict[int, str]:
    """Every process below `root`, itself included, with a name people know."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: dict[int, str] = {}
    waiting = [(root, "supervisor")]
    while waiting:
        pid, name = waiting.pop()
        found[pid] = name
        waiting += [(child, _name(child, name)) for child in children.get(pid, [])]
    return found


def _name(pid: int, parent: str) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")  # fmt: skip
    except OSError:
        return parent
    for part in ("broker", "source", "pipelines", "views", "sink", "console"):
        if f"tailrace {part}" in words or f" {part} " in words:
            return "sinks" if part == "sink" else part
    if "people.py" in words:
        return "people (the load)"
    if "postgres" in words:
        return "postgres"
    if "redis-server" in words:
        return "redis"
    return "Spark" if parent in ("pipelines", "Spark") else parent


def processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def usage(root: int, seconds: float) -> dict[str, tuple[float, int]]:
    """Cores and bytes by name over `seconds`; of processes that were there all the time, and
    of those that came meanwhile since they came."""
    before = {pid: processor_seconds(pid) for pid in tree(root)}
    time.sleep(seconds)
    found: dict[str, tuple[float, int]] = {}
    for pid, name in tree(root).items():
        cores = (processor_seconds(pid) - before.get(pid, 0.0)) / seconds
        known = found.get(name, (0.0, 0))
        found[name] = (known[0] + cores, known[1] + memory_bytes(pid))
    return found


def freshness(api: Api, dsn: str, rounds: int) -> list[float]:
    """Milliseconds from a commit until the views cover it."""
    took = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(rounds):
            connection.execute("UPDATE customers SET city = city || '' WHERE id = 1")
            lsn = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
            assert lsn is not None
            began = time.perf_counter()
            with contextlib.suppress(OSError):  # it did not come in time: the time-out counts
                api.get(f"/api/views/open_orders?limit=1&timeout=30s&at_least=pg:shop:{int(lsn[0]):016X}")  # fmt: skip
            took.append((time.perf_counter() - began) * 1000)
            time.sleep(0.37)
    return took


def seen(page: Page, dsn: str, rounds: int) -> list[float]:
    """Milliseconds from a commit until the open page shows it."""
    took = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(rounds):
            country = f"Q{number}"
            bar = page.get_by_role("list", name="Open orders by country").get_by_text(country, exact=True)  # fmt: skip
            with connection.transaction():
                customer = connection.execute("INSERT INTO customers (name, country, city) VALUES ('Zoe', %s, 'Oz') RETURNING id", (country,)).fetchone()  # fmt: skip
                assert customer is not None
                connection.execute("INSERT INTO orders (customer_id, product_id, quantity, amount, status) VALUES (%s, 1, 1, 1, 'open')", customer)  # fmt: skip
            began = time.perf_counter()
            bar.wait_for()
            took.append((time.perf_counter() - began) * 1000)
            connection.execute("DELETE FROM orders WHERE customer_id = %s", customer)
            time.sleep(0.37)
    return took


@contextlib.contextmanager
def watched(address: str) -> Iterator[tuple[Page, float] | None]:
    """The page open in Chromium, and seconds until its topology stood (the middle of three
    new tabs, one at a time); None without a browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        took = []
        for _ in range(4):  # the first one warms the program itself
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(address)
            page.locator("[data-node='open_orders']").wait_for()
            took.append(time.perf_counter() - began)
            if len(took) < 4:
                page.close()
        yield page, sorted(took[1:])[1]
        browser.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rate", type=float, default=200.0)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--settle", type=float, default=30.0)
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the demo must not outlive us
    program = str(Path(sys.executable).with_name("tailrace"))
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as scratch:
        os.chmod(scratch, 0o755)
        command = [program, "demo", "--no-browser", "--rate", str(chosen.rate), "--keep", scratch, "--console", "127.0.0.1:0"]  # fmt: skip
        began = time.perf_counter()
        demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            rows = measure(demo, began, chosen)
        finally:
            demo.send_signal(signal.SIGTERM)
            demo.wait()
    print(
        f"\nthe demo at {chosen.rate:g} changes/s, {chosen.seconds:g} s, {os.cpu_count()} cores\n"
    )
    for label, value, goal in rows:
        print(f"{label:<40} {value:<34} {goal}")


def measure(
    demo: subprocess.Popen[str], began: float, chosen: argparse.Namespace
) -> list[tuple[str, str, str]]:
    assert demo.stdout is not None
    address = ""
    for line in demo.stdout:
        if found := re.match(r"console (\S+)", line):
            address = found[1]
            break
    api = Api(address)
    while True:
        with contextlib.suppress(OSError, KeyError):
            if api.get("/api/views/open_orders")["rows"]:
                break
        time.sleep(0.1)
    rows = [("first live figures", f"{time.perf_counter() - began:.1f} s", "≤ 45 s")]
    sockets = Path(next(p for p in Path(os.environ.get("TMPDIR", "/tmp")).glob("tr-pg-*") if _is_child(p, demo.pid)))  # fmt: skip
    dsn = f"host={sockets} port=5432 user=postgres dbname=postgres"
    time.sleep(chosen.settle)
    with watched(address) as opened:
        if opened is not None:
            rows.append(("page interactive", f"{opened[1]:.2f} s", "≤ 1 s"))
        by_name = usage(demo.pid, chosen.seconds)
        took = freshness(api, dsn, 30)
        shown = [] if opened is None else seen(opened[0], dsn, 30)
        latencies = []
        for _ in range(200):
            at = time.perf_counter()
            api.get("/api/status")
            latencies.append((time.perf_counter() - at) * 1000)
    cores = sum(c for c, _ in by_name.values())
    memory = sum(m for _, m in by_name.values())
    rows.append(("all of it", f"{cores:.2f} cores, {memory / 1e9:.2f} GB", "≤ 1.5 cores, 3 GB"))
    for name, (used, held) in sorted(by_name.items(), key=lambda one: -one[1][0]):
        goal = {"supervisor": "≤ 1 % of a core, 60 MB", "console": "≤ 5 % of a core"}.get(name, "")
        rows.append((f"  {name}", f"{used * 100:.1f} % of a core, {held / 1e6:.0f} MB", goal))
    rows.append(("commit → views", f"p50 {percentile(took, 0.5):.0f} ms, p99 {percentile(took, 0.99):.0f} ms", "p50 < 1 s"))  # fmt: skip
    if shown:
        rows.append(("commit → page", f"p50 {percentile(shown, 0.5):.0f} ms, p99 {percentile(shown, 0.99):.0f} ms", "p50 < 1 s"))  # fmt: skip
    rows.append(("status call", f"p50 {percentile(latencies, 0.5):.1f} ms, p99 {percentile(latencies, 0.99):.1f} ms", "p99 ≤ 50 ms"))  # fmt: skip
    return rows


def _is_child(sockets: Path, root: int) -> bool:
    """Whether the Postgres of these sockets belongs to the demo."""
    for pid in tree(root):
        with contextlib.suppress(OSError):
            if sockets.name in Path(f"/proc/{pid}/cmdline").read_text():
                return True
    return False


if __name__ == "__main__":
    main()
