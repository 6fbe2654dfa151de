"""The console under load: look-ups by key, status calls, subscribers.

    python -m benchmarks.console [--seconds 5] [--subscribers 2000]

Three processes, pinned to cores of their own where there are enough: the console's
server, a follower that applies changes to the views it serves, and this one, which asks
over plain sockets. On two cores the follower and the load share one, so that the server
has its own. CPU seconds of the server stand beside every figure: they say what a quiet
machine would do.

Look-ups are measured twice: as many as 16 connections can ask one after the other, and
at a fixed rate of 5,000 a second, where the wait for a free connection counts too.
Every subscriber must see every change once, in order; the time is from the change's
commit in the follower to its arrival at the subscriber.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.console_load import Lookups, Subscribers, percentile
from benchmarks.console_log import ROWS, SyntheticLog

from tailrace.project import scaffold
from tailrace.serving.follower import Follower
from tailrace.telemetry.part import Part, read_reports

CHANGES_A_TICK = 1_000
TICKS_A_SECOND = 10
PACE = 5_000


def serve(directory: Path, core: int, pipe: Connection) -> None:
    """The console's process, as `tailrace up` starts it, without a log."""
    from tailrace.console import server
    from tailrace.project import load

    pin(core)
    os.environ["TAILRACE_CONSOLE__LISTEN"] = "127.0.0.1:0"
    os.environ["TAILRACE_CONSOLE__TOKEN"] = "none"
    part = Part("console", "console", "shop", "127.0.0.1:9", directory)

    def answer() -> None:
        address = ""
        while not address:
            time.sleep(0.05)
            reports = [r for r in read_reports(directory) if r.get("state") == "running"]
            address = str(reports[0]["address"]) if reports else ""
        pipe.send(int(address.rpartition(":")[2]))
        while pipe.recv() == "cpu":
            usage = resource.getrusage(resource.RUSAGE_SELF)
            pipe.send(usage.ru_utime + usage.ru_stime)
        part.stopping.set()

    threading.Thread(target=answer, daemon=True).start()
    server.run(load.load(directory / "shop"), part)


def follow(directory: Path, core: int, pipe: Connection) -> None:
    """The follower's process: told (changes of `v`, of `small`) a tick, until told again."""
    pin(core)
    log = SyntheticLog()
    with Follower(directory / "views", log, "shop") as follower:
        follower.step(0)
        pipe.send(log.rows)
        work = (0, 0)
        due = began = time.monotonic()
        ticks = 0
        while True:
            if pipe.poll(max(0.0, due - time.monotonic()) if any(work) else None):
                told = pipe.recv()
                elapsed = time.monotonic() - began
                pipe.send((log.offset("small"), ticks * work[0] / elapsed))
                if told is None:
                    return
                work, due, ticks = told, time.monotonic(), 0
                began = due
                continue
            log.tick({"v": work[0], "small": work[1]})
            follower.step(0)
            ticks += 1
            due += 1 / TICKS_A_SECOND


def pin(core: int) -> None:
    if core < (os.cpu_count() or 1):
        os.sched_setaffinity(0, {core})


class Child:
    """A process of this benchmark and the pipe to it."""

    def __init__(self, target: Callable[[Path, int, Connection], None], *arguments: object) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        self.process = spawn.Process(target=target, args=(*arguments, theirs), daemon=True)
        self.process.start()
        self.first = self.pipe.recv()

    def ask(self, what: object) -> object:
        self.pipe.send(what)
        return self.pipe.recv()


def status_calls(port: int, count: int) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    latencies = []
    for _ in range(count):
        at = time.perf_counter()
        connection.request("GET", "/api/status")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        latencies.append((time.perf_counter() - at) * 1000)
    connection.close()
    return latencies


class Table:
    """Figures and the goals they are held against."""

    def __init__(self) -> None:
        print(f"{'':42} {'':38} {'goal':24}")

    def row(self, label: str, figure: str, goal: str = "", good: bool | None = None) -> None:
        mark = "" if good is None else "met" if good else "MISSED"
        print(f"{label:42} {figure:38} {goal:24} {mark}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--subscribers", type=int, default=2_000)
    chosen = options.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        scaffold.create(directory / "shop")
        follower = Child(follow, directory, min(1, cores - 1))
        server = Child(serve, directory, 0)
        pin(min(2, cores - 1))
        measure(int(server.first), server, follower, chosen.seconds, chosen.subscribers)
        server.pipe.send("stop")
        follower.ask(None)
        server.process.join(10)
        follower.process.join(10)


def measure(port: int, server: Child, follower: Child, seconds: float, subscribers: int) -> None:
    table = Table()

    def cpu() -> float:
        return float(str(server.ask("cpu")))

    def changes(v: int, small: int) -> tuple[int, float]:
        told = follower.ask((v, small))
        assert isinstance(told, tuple)
        return told

    Lookups(port, 16, ROWS).run(1.0)  # warm up
    for label, count in (("at rest", 0), ("10,000 changes/s", CHANGES_A_TICK)):
        for pace in (None, PACE):
            changes(count, 0)
            before = cpu()
            asked = Lookups(port, 16 if pace is None else 64, ROWS)
            latencies = asked.run(seconds, pace)
            used = cpu() - before
            _, applied = changes(0, 0)
            rate = len(latencies) / asked.elapsed
            high = percentile(latencies, 0.99)
            middle = percentile(latencies, 0.5)
            figure = f"p50 {middle:.2f} ms, p99 {high:.2f} ms"
            if pace is None:
                name = f"look-ups, {label}, 16 connections"
                table.row(name, f"{rate:,.0f}/s", "≥ 5,000/s" * bool(count), rate >= 5000 if count else None)  # fmt: skip
                table.row("", figure)
            else:
                name = f"look-ups, {label}, {pace:,} a second"
                table.row(name, figure, "p99 ≤ 5 ms" * bool(count), high <= 5 if count else None)
            table.row("", f"{used / len(latencies) * 1e6:.1f} µs CPU each; {applied:,.0f} changes/s")  # fmt: skip
    latencies = status_calls(port, 200)
    table.row("status calls", f"p50 {percentile(latencies, 0.5):.2f} ms, p99 {percentile(latencies, 0.99):.2f} ms")  # fmt: skip
    listening = Subscribers(port, subscribers)
    listening.connect()
    changes(0, 1)
    before = cpu()
    listening.run(seconds)
    last, _ = changes(0, 0)
    used = cpu() - before
    listening.finish(last, 10)
    slowest = max(listening.latencies)
    told = f"{listening.received:,} of {listening.expected:,} changes, {listening.gaps} gaps"
    complete = listening.received == listening.expected and not listening.gaps
    name = f"{subscribers:,} subscribers, {TICKS_A_SECOND} changes/s"
    table.row(name, told, "all, none twice", complete)
    table.row("", f"slowest {slowest:.0f} ms, p50 {percentile(listening.latencies, 0.5):.0f} ms", "≤ 1 s", slowest <= 1000)  # fmt: skip
    table.row("", f"{used / max(1, listening.received) * 1e6:.1f} µs CPU each, {used / seconds:.2f} cores")  # fmt: skip


if __name__ == "__main__":
    main()
