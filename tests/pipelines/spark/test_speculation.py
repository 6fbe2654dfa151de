"""Speculation: Spark runs a second copy of a slow task on another host, and both do its work.

Spark makes no copy on the same host, so the two workers have an address of this machine
each. A `sitecustomize` in Spark's Python workers holds some first attempts up until their
copy runs: before their work, after it, and between a stream's rows and their commit.
"""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import orjson
import pytest

from pipelines.shop import CUSTOMERS, ORDERS
from pipelines.spark.test_spark_cluster import Project, SparkCluster
from tailrace.pipelines.reading.reader import LogReader
from tailrace.testing.feed import ChangeFeed

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.01",
    "spark.speculation.multiplier": "1.01",
    # A stage of one task has nothing to compare itself with.
    "spark.speculation.task.duration.threshold": "1s",
    "spark.speculation.efficiency.enabled": "false",
    "spark.executor.memory": "512m",
}
PLACES = ("slot before", "slot within", "slot after", "state before", "state after")

HELD_UP = '''
import os, sys, time

if "pyspark.daemon" in " ".join(sys.orig_argv):
    from pyspark import TaskContext

    from tailrace.client.writer import TransactionalWriter
    from tailrace.pipelines.streams import writer
    from tailrace.pipelines.state import shard

    NOTES = os.environ["HELD_UP_NOTES"]

    def note(text):
        with open(NOTES, "a") as file:
            file.write(text + "\\n")

    def notes():
        try:
            with open(NOTES) as file:
                return file.read().split("\\n")
        except FileNotFoundError:
            return []

    def held_up(kind):
        """Wait until a copy of this task runs, if it is this one's turn to be slow."""
        context = TaskContext.get()
        if context is None or context.attemptNumber() > 0:
            return
        known = notes()
        enough = sum(one.startswith(f"{kind} copied") for one in known) >= 2
        if enough or context.taskAttemptId() % 3:
            return
        place = f"{context.stageId()}/{context.partitionId()}"
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if f"copy {place}" in notes():
                note(f"{kind} copied {place}")
                return
            time.sleep(0.05)
        note(f"{kind} alone {place}")  # there was no free place for a copy

    def slow(name, work):
        def wrapped(*arguments, **named):
            context = TaskContext.get()
            if context is not None and context.attemptNumber() > 0:
                note(f"copy {context.stageId()}/{context.partitionId()}")
            held_up(f"{name} before")
            done = work(*arguments, **named)
            held_up(f"{name} after")
            return done

        return wrapped

    def commit(self):
        held_up("slot within")
        return original_commit(self)

    original_commit = TransactionalWriter.commit
    TransactionalWriter.commit = commit
    writer.write_slot = slow("slot", writer.write_slot)
    shard.ShardAttempt.finish = slow("state", shard.ShardAttempt.finish)
'''


@pytest.mark.timeout(1800)
def test_copies_of_slow_tasks_lose_and_double_nothing(
    tailrace_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, notes = tmp_path / "faults", tmp_path / "notes"
    faults.mkdir()
    notes.touch()
    (faults / "sitecustomize.py").write_text(HELD_UP)
    monkeypatch.setenv("PYTHONPATH", str(faults), prepend=":")
    monkeypatch.setenv("HELD_UP_NOTES", str(notes))
    monkeypatch.setenv("PIPELINES_CONF", orjson.dumps(SPECULATION).decode())
    source = f"shop{uuid.uuid4().hex[:6]}"

    def copied() -> Counter[str]:
        """How often an attempt was held up at each place until its copy ran."""
        lines = [line.split(" copied ") for line in notes.read_text().splitlines()]
        return Counter(line[0] for line in lines if len(line) == 2)

    with (
        ChangeFeed(tailrace_broker, source, [ORDERS, CUSTOMERS]) as feed,
        LogReader(tailrace_broker) as reader,
    ):
        spark = SparkCluster(faults, hosts=("127.0.0.1", "127.0.0.2"))
        project = Project(tailrace_broker, spark.master, tmp_path, feed, 100)
        try:
            for _ in range(25):  # ticks and batches, until every place has been met
                project.move(6)
                written = project.wait(reader)
                if copied().keys() >= set(PLACES):
                    break
        finally:
            project.running.stop()
            spark.stop()
        project.check(written)
    assert copied().keys() >= set(PLACES), notes.read_text()[-3000:]
