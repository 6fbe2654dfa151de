"""Counting auction bids in windows with Flink SQL, in a process and an environment of its own.

    python -m benchmarks.pipelines_flink INPUT OUTPUT      (with the Python of Flink's environment)

Reads JSON lines, counts bids per auction and 10 s window in streaming mode, writes the counts
as CSV. Prints seconds and CPU seconds of the Java process as JSON. `environment()` makes the
environment in the user's cache on first use; it needs Java 11, 17 or 21.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

VERSION = "2.3.0"
CONNECTOR = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"


def environment() -> Path | None:
    """The Python of an environment with Flink; None if it cannot be made here."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
    python = root / f"flink-{VERSION}" / "bin" / "python"
    done = root / f"flink-{VERSION}" / ".complete"
    if done.exists():
        return python
    commands = (
        [sys.executable, "-m", "venv", str(python.parent.parent)],
        [str(python), "-m", "pip", "install", "--quiet", f"apache-flink=={VERSION}"],
    )
    for command in commands:
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            print(f"  Flink is not there: {run.stderr.strip()[-300:]}")
            return None
    done.touch()
    return python


def connector() -> Path | None:
    """Flink's connector for Kafka, fetched with Maven on first use; None if it cannot be had."""
    python = environment()
    if python is None:
        return None
    target = python.parent.parent / "connector"
    if not list(target.glob("*.jar")):
        target.mkdir(exist_ok=True)
        run = subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={CONNECTOR}",
             f"-DoutputDirectory={target}", "-Dtransitive=false"],
            capture_output=True, text=True, cwd=target,
        )  # fmt: skip
        if run.returncode:
            print(f"  Flink's connector is not there: {run.stdout.strip()[-300:]}")
            return None
    return next(target.glob("*.jar"))


def cpu() -> float:
    """CPU seconds of the Java process that this one has started."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        fields = rest.split()
        if name == "java" and int(fields[1]) == os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main(source: str, target: str) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", str(os.cpu_count() or 2))
    tables.execute_sql(
        f"""CREATE TABLE bids (auction BIGINT, price BIGINT, `at` BIGINT,
            ts AS TO_TIMESTAMP_LTZ(`at`, 3), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR
        ) WITH ('connector' = 'filesystem', 'path' = '{source}', 'format' = 'json')"""
    )
    tables.execute_sql(
        f"""CREATE TABLE counts (window_start TIMESTAMP(3), auction BIGINT, bids BIGINT)
            WITH ('connector' = 'filesystem', 'path' = '{target}', 'format' = 'csv')"""
    )

    before, began = cpu(), time.perf_counter()
    tables.execute_sql(
        """INSERT INTO counts SELECT window_start, auction, count(*) AS bids
           FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
           GROUP BY window_start, window_end, auction"""
    ).wait()
    print(json.dumps({"seconds": time.perf_counter() - began, "cpu": cpu() - before}))


def total(target: Path) -> int:
    """The sum of the counts Flink wrote."""
    lines = (line for path in target.rglob("*") if path.is_file() for line in path.open())
    return sum(int(line.rsplit(",", 1)[1]) for line in lines)


if __name__ == "__main__":
    main(*sys.argv[1:3])
