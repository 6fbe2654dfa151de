"""Tasks that run again after they took effect.

Spark's workers get a `sitecustomize` that makes first attempts fail *after* what they wrote is
in the log or in a state file. On a standalone cluster, because Spark retries nothing on `local`.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import orjson
import pytest

from pipelines.shop import CUSTOMERS, ORDERS
from pipelines.spark.test_spark_cluster import Project, SparkCluster
from tailrace.pipelines.reading.reader import LogReader
from tailrace.testing.feed import ChangeFeed

pytestmark = [pytest.mark.crash, pytest.mark.spark]

FAULTS = '''
import os, sys

if "pyspark.daemon" in " ".join(sys.orig_argv):
    from pyspark import TaskContext

    from tailrace.pipelines.streams import writer
    from tailrace.pipelines.state import shard

    NOTES = os.environ["FAULTS_NOTES"]

    def note(text):
        with open(NOTES, "a") as file:
            file.write(text + "\\n")

    def faulty(name, work):
        """Every other first attempt fails after its work is done."""

        def wrapped(*arguments, **named):
            context = TaskContext.get()
            number = -1 if context is None else context.taskAttemptId()
            first = context is not None and context.attemptNumber() == 0 and number % 2 == 0
            if context is not None and context.attemptNumber() > 0:
                note(f"{name} again")
            done = work(*arguments, **named)
            if first:
                note(f"{name} failed")
                raise RuntimeError("this attempt is lost, what it did is not")
            return done

        return wrapped

    writer.write_slot = faulty("slot", writer.write_slot)
    shard.ShardAttempt.finish = faulty("state", shard.ShardAttempt.finish)
'''


@pytest.mark.timeout(900)
def test_a_task_that_runs_twice_counts_once(
    tailrace_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, notes = tmp_path / "faults", tmp_path / "notes"
    faults.mkdir()
    (faults / "sitecustomize.py").write_text(FAULTS)
    monkeypatch.setenv("PYTHONPATH", str(faults), prepend=":")
    monkeypatch.setenv("FAULTS_NOTES", str(notes))
    conf = {"spark.task.maxFailures": "8", "spark.executor.memory": "512m"}
    monkeypatch.setenv("PIPELINES_CONF", orjson.dumps(conf).decode())
    source = f"shop{uuid.uuid4().hex[:6]}"
    with (
        ChangeFeed(tailrace_broker, source, [ORDERS, CUSTOMERS]) as feed,
        LogReader(tailrace_broker) as reader,
    ):
        spark = SparkCluster(faults)
        project = Project(tailrace_broker, spark.master, tmp_path, feed, 70)
        try:
            for _ in range(2):  # several ticks and batches
                project.move(12)
                written = project.wait(reader)
        finally:
            project.running.stop()
            spark.stop()
        project.check(written)
    seen = set(notes.read_text().split("\n"))
    assert {"slot failed", "state failed", "slot again", "state again"} <= seen, seen
