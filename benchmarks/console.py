"""The console under load: look-ups by key, status calls, subscribers.

    python -m benchmarks.console [--seconds 5] [--subscribers 500]

A child process serves views of 100,000 rows while another tick of changes is applied
ten times a second; the load comes from this process over plain sockets, pipelined on one
connection. The changes are applied by a thread of this process too and take the
interpreter from the load: the rate under changes is a floor, its p99 the client's as much
as the server's. CPU seconds of the server stand beside every figure. Prints one table;
asserts that every look-up was answered. What subscribers missed is printed, not judged.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import multiprocessing
import os
import resource
import socket
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tailrace.console.app import Served, create_app
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Guard
from tailrace.project import load, scaffold
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.views.follower import Follower
from tailrace.views.reader import Views

ROWS = 100_000
CHANGES_A_TICK = 1_000


class NoFigures:
    """Figures of a log that is not there: this benchmark is about views."""

    topics: list[dict[str, object]] = []
    groups: list[dict[str, object]] = []


def serve(directory: Path, ready: Connection) -> None:
    """The console's process."""
    import uvicorn

    project = load.load(directory / "shop")
    views = Views(directory / "views")
    served = Served(project, "", views, NoFigures())  # type: ignore[arg-type]
    app = Guard(FastLookups(create_app(served), views), host="127.0.0.1", token=None)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(4096)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))

    def watch() -> None:
        while not server.started:
            time.sleep(0.01)
        ready.send(listening.getsockname()[1])
        while True:
            command = ready.recv()
            if command == "cpu":
                usage = resource.getrusage(resource.RUSAGE_SELF)
                ready.send(usage.ru_utime + usage.ru_stime)
            else:
                os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    server.run(sockets=[listening])


def follow(directory: Path, stop: threading.Event, ticks: TickWriter, log: MemoryLog) -> None:
    """Ten ticks of a thousand changes a second: 10,000 changes/s."""
    number = 0
    with Follower(directory / "views", log, "shop") as follower:
        while not stop.is_set():
            number += 1
            began = time.monotonic()
            keys = [(number * CHANGES_A_TICK + i) % ROWS for i in range(CHANGES_A_TICK)]
            ticks.tick({"v": [({"id": k}, {"id": k, "n": number}) for k in keys]})
            follower.step(0.01)
            stop.wait(max(0.0, 0.1 - (time.monotonic() - began)))


def lookups(port: int, seconds: float) -> tuple[int, list[float]]:
    """Keyed look-ups on one connection, 16 in flight; count and latencies."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = b"GET /api/views/v/%d HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"
    latencies: list[float] = []
    done = 0
    buffer = b""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        at = time.perf_counter()
        connection.sendall(b"".join(request % ((done * 7919 + i) % ROWS) for i in range(16)))
        answered = 0
        while answered < 16:
            buffer += connection.recv(65536)
            answered = buffer.count(b'{"row":')
        assert buffer.count(b"200 OK") == 16, buffer[:500]
        buffer = b""
        done += 16
        latencies.append((time.perf_counter() - at) * 1000)
    connection.close()
    return done, latencies


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


async def subscribe(port: int, subscribers: int, seconds: float) -> tuple[int, int]:
    """How many events each of `subscribers` received: (fewest, most)."""

    async def one() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
        writer.write(b"GET /api/views/small/changes HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")
        seen = 0
        try:
            async with asyncio.timeout(seconds):
                while True:
                    line = await reader.readline()
                    seen += line.startswith(b"event: changes")
        except TimeoutError:
            writer.close()
        return seen

    counts = await asyncio.gather(*(one() for _ in range(subscribers)))
    return min(counts), max(counts)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--subscribers", type=int, default=500)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        scaffold.create(directory / "shop")
        log = MemoryLog()
        log.chunk_records = 10_000
        ticks = TickWriter(log, "shop", partitions=1)
        ticks.declare("v", ["id"], [("id", "BIGINT"), ("n", "BIGINT")])
        ticks.declare("small", ["id"], [("id", "BIGINT"), ("n", "BIGINT")])
        ticks.tick({"v": [({"id": i}, {"id": i, "n": 0}) for i in range(ROWS)], "small": [({"id": 1}, {"id": 1, "n": 0})]})  # fmt: skip
        with Follower(directory / "views", log, "shop") as follower:
            follower.step(0.1)
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(
            target=serve, args=(directory, theirs), daemon=True
        )
        child.start()
        port = ours.recv()

        def cpu() -> float:
            ours.send("cpu")
            return float(ours.recv())

        rows: list[tuple[str, str, str]] = []
        for label, changing in (("look-ups, views at rest", False), ("look-ups, 10,000 changes/s", True)):  # fmt: skip
            stop = threading.Event()
            writer = threading.Thread(target=follow, args=(directory, stop, ticks, log))
            if changing:
                writer.start()
            before = cpu()
            done, latencies = lookups(port, chosen.seconds)
            used = cpu() - before
            stop.set()
            if changing:
                writer.join()
            rows.append((label, f"{done / chosen.seconds:,.0f}/s; {done / used:,.0f} per CPU-second", f"p50 {percentile(latencies, 0.5):.2f} ms, p99 {percentile(latencies, 0.99):.2f} ms for 16"))  # fmt: skip
        latencies = status_calls(port, 200)
        rows.append(("status calls", "", f"p50 {percentile(latencies, 0.5):.2f} ms, p99 {percentile(latencies, 0.99):.2f} ms"))  # fmt: skip
        stop = threading.Event()

        def change() -> None:
            number = 0
            with Follower(directory / "views", log, "shop") as follower:
                while not stop.is_set():
                    number += 1
                    ticks.tick({"small": [({"id": 1}, {"id": 1, "n": number})]})
                    follower.step(0.01)
                    stop.wait(0.1)

        changer = threading.Thread(target=change)
        before = cpu()
        changer.start()
        least, most = asyncio.run(subscribe(port, chosen.subscribers, chosen.seconds))
        used = cpu() - before
        stop.set()
        changer.join()
        rows.append((f"{chosen.subscribers} subscribers, 10 changes/s", f"each saw {least} to {most} changes in {chosen.seconds:g} s", f"{used / chosen.seconds:.2f} cores"))  # fmt: skip
        ours.send("stop")
        child.join()
    for label, rate, latency in rows:
        print(f"{label:<34} {rate:<44} {latency}")


if __name__ == "__main__":
    main()
