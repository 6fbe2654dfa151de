"""Row patterns with Flink SQL, in a process and an environment of its own.

    python -m benchmarks.patterns_flink BOOTSTRAP BROKER_PID DIRECTORY PATTERN:INPUT …
                                                  (with the Python of Flink's environment)

Runs each pattern in streaming mode over a topic of JSON up to its end, and prints a line of JSON
for each: pattern, topic of the matches, seconds, CPU seconds of the Java process and of the
broker. State is on the heap, which is Flink's fastest; matches are written in transactions, with
a checkpoint every 10 s and at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PATTERNS = {
    "automaton": (
        "count(D.price) AS falls, LAST(E.price) AS price",
        "S D{2,} U+ E",
        "S AS S.kind = 0, D AS D.kind = 1, U AS U.kind = 2, E AS E.kind = 3",
    ),
    "threads": (
        "count(A.price) AS falls, LAST(B.price) AS price",
        "A+ B",
        "A AS A.kind < 3 AND avg(A.price) < 60, B AS B.price > 1.1 * FIRST(A.price) AND B.kind = 3",
    ),
}


def process_cpu(pid: int) -> float:
    """CPU seconds of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(bootstrap: str, broker: int, directory: str, wanted: list[str]) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    from pipelines_flink import cpu  # type: ignore[import-not-found]

    tables: Any = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    jars = ";".join(f"file://{path}" for path in sorted(Path(directory).glob("*.jar")))
    for setting, value in {
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.dir": f"file://{directory}/checkpoints",
        "parallelism.default": str(os.cpu_count() or 2),
        "pipeline.jars": jars,
    }.items():
        tables.get_config().set(setting, value)
    for number, name in enumerate(wanted):
        pattern, _, source = name.partition(":")
        measures, steps, define = PATTERNS[pattern]
        target = f"flink_{pattern}_{source}"
        tables.execute_sql(
            f"""CREATE TABLE in_{number} (k INT, kind INT, price DOUBLE, `at` TIMESTAMP(3),
                WATERMARK FOR `at` AS `at` - INTERVAL '30' SECOND)
                WITH ('connector' = 'kafka', 'topic' = '{source}',
                      'properties.bootstrap.servers' = '{bootstrap}',
                      'properties.isolation.level' = 'read_committed',
                      'scan.startup.mode' = 'earliest-offset',
                      'scan.bounded.mode' = 'latest-offset', 'format' = 'json',
                      'json.timestamp-format.standard' = 'ISO-8601')"""
        )
        tables.execute_sql(
            f"""CREATE TABLE out_{number} (k INT, falls BIGINT, price DOUBLE)
                WITH ('connector' = 'kafka', 'topic' = '{target}', 'format' = 'json',
                      'properties.bootstrap.servers' = '{bootstrap}',
                      'properties.transaction.timeout.ms' = '600000',
                      'sink.delivery-guarantee' = 'exactly-once',
                      'sink.transactional-id-prefix' = '{target}')"""
        )
        before, served, began = cpu(), process_cpu(broker), time.perf_counter()
        tables.execute_sql(
            f"""INSERT INTO out_{number} SELECT * FROM in_{number} MATCH_RECOGNIZE (
                PARTITION BY k ORDER BY `at` MEASURES {measures} ONE ROW PER MATCH
                AFTER MATCH SKIP PAST LAST ROW PATTERN ({steps}) DEFINE {define}) AS m"""
        ).wait()
        told = {
            "pattern": pattern, "input": source, "topic": target,
            "seconds": time.perf_counter() - began, "cpu": cpu() - before,
            "broker": process_cpu(broker) - served,
        }  # fmt: skip
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
