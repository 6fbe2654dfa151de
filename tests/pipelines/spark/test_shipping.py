"""What a project's functions need reaches the executors of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
import zipfile
from pathlib import Path

import orjson
import pytest

from pipelines.spark.test_spark_cluster import SparkCluster
from servers.processes import bound_to_us
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.spark.shipping import pack

DECLARED = """
import tailrace as tr
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from pipelines.prices import doubled
from {helper} import ADDED

numbers = tr.topic("{topic}", schema="n INT")

@F.udf(IntegerType())
def changed(n):
    return doubled(n) + ADDED

@tr.stream(numbers, name="{topic}_changed", trigger="1 second")
def stream(frame):
    return frame.select(changed("n").alias("n"))
"""


def project(home: Path, bootstrap: str, master: str, topic: str, helper: str) -> None:
    (home / "pipelines").mkdir(parents=True)
    (home / "tailrace.toml").write_text(
        f'[project]\nname = "p"\n[log]\nbootstrap = "{bootstrap}"\n[spark]\nmaster = "{master}"\n'
        'conf."spark.driver.host" = "127.0.0.1"\nconf."spark.driver.bindAddress" = "127.0.0.1"\n'
        'conf."spark.executor.memory" = "512m"\n'
    )
    (home / "pipelines" / "prices.py").write_text("def doubled(n):\n    return n * 2\n")
    (home / f"{helper}.py").write_text("ADDED = 100\n")
    (home / "pipelines" / "main.py").write_text(DECLARED.format(topic=topic, helper=helper))


def test_the_archive_holds_the_projects_python_files_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    project(home, "b:1", "local", "t", "helper")
    for odd in (".tailrace/x.py", "tests/test_x.py", "venv/lib/y.py", "lib/deep/z.py"):
        (home / odd).parent.mkdir(parents=True, exist_ok=True)
        (home / odd).write_text("")
    (home / "venv" / "pyvenv.cfg").write_text("")
    pack(home, tmp_path / "out" / "project.zip")
    with zipfile.ZipFile(tmp_path / "out" / "project.zip") as archive:
        assert archive.namelist() == [
            "helper.py", "lib/deep/z.py", "pipelines/main.py", "pipelines/prices.py",
            "pipelines/__init__.py",
        ]  # fmt: skip


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_functions_of_a_project_run_on_a_cluster(tailrace_broker: str, tmp_path: Path) -> None:
    """The workers know nothing of the project's folder, as on another machine."""
    topic, home = f"numbers{uuid.uuid4().hex[:6]}", tmp_path / "home"
    with TransactionalWriter(tailrace_broker, "w") as writer:
        writer.init()
        for number in range(5):
            writer.send(topic, 0, None, orjson.dumps({"n": number}))
        writer.commit()
    (tmp_path / "spark").mkdir()
    spark = SparkCluster(tmp_path / "spark")
    project(home, tailrace_broker, spark.master, topic, f"helper{topic}")
    command = [sys.executable, "-m", "tailrace.node.child", "pipelines", "p", str(home), tailrace_broker]  # fmt: skip
    with (tmp_path / "output").open("wb") as output:
        running = subprocess.Popen(
            [*bound_to_us(), *command], env=dict(os.environ), stdout=output, stderr=output
        )
    try:
        until, found = time.monotonic() + 400, list[int]()
        with LogReader(tailrace_broker) as reader:
            while len(found) < 5:
                said = (tmp_path / "output").read_text()
                assert time.monotonic() < until, said[-3000:]
                assert running.poll() is None, said[-3000:]
                values = [v for r in read_all(reader, f"{topic}_changed") for v in r.values]
                found = sorted(orjson.loads(value or b"")["n"] for value in values)
                time.sleep(0.3)
        assert found == [100, 102, 104, 106, 108]
    finally:
        running.terminate()
        try:
            running.wait(60)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        spark.stop()
