"""A Spark session from a project's settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
from tailrace.pipelines.spark import session

spark = session.start("t", Path(sys.argv[1]), master="local[1]", conf={"spark.pyspark.python": sys.argv[2], "spark.ui.enabled": "true", "spark.ui.port": "0"})
def same(batches):
    yield from batches
assert spark.range(3).mapInArrow(same, "id BIGINT").count() == 3
import urllib.request
import psutil
from types import SimpleNamespace
from tailrace.pipelines.ticks.job import name_job
work = SimpleNamespace(graph=SimpleNamespace(views=dict.fromkeys("abcdefg")), context=SimpleNamespace(number=7))
name_job(spark.sparkContext, work)
spark.sparkContext.parallelize([1], 1).count()
page = urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/api/v1/applications/" + spark.sparkContext.applicationId + "/jobs").read().decode()
assert "tick 7: a, b, c, d, e" in page, page
port = int(spark.sparkContext.uiWebUrl.rpartition(":")[2])
for process in psutil.Process().children(recursive=True):
    for one in process.net_connections("inet"):
        if one.status == psutil.CONN_LISTEN and one.laddr.port == port:
            assert one.laddr.ip in ("127.0.0.1", "::ffff:127.0.0.1"), one
spark.stop()
"""

ATTACKED = """
import socket, struct, sys
from pathlib import Path
from tailrace.pipelines.spark import session

spark = session.start("t", Path(sys.argv[1]), master="local[1]")
def same(batches):
    yield from batches
assert spark.range(3).mapInArrow(same, "id BIGINT").count() == 3
port = int(spark.sparkContext.getConf().get("spark.driver.port"))
body = b"\\0" * 4 + b"\\xac\\xed\\0\\5sr\\0\\x10com.evil.NotThere"  # a Java object of a class
with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
    stranger.sendall(struct.pack(">qbqi", 21 + len(body), 3, 7, len(body)) + body)
    answer = stranger.recv(65536)
print(answer.decode("latin-1"))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_ports_of_spark_take_nothing_from_strangers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ATTACKED, str(tmp_path / "spark")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Sasl" in done.stdout, done.stdout
    assert "ObjectInputStream" not in done.stdout


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_python_of_the_executors_is_a_setting(tmp_path: Path) -> None:
    python, used = tmp_path / "their-python", tmp_path / "used"
    python.write_text(f'#!/bin/sh\ntouch {used}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "spark"), str(python)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert used.exists()


def test_sockets_lie_in_the_scratch_directory_if_their_names_fit(tmp_path: Path) -> None:
    from tailrace.pipelines.spark.session import _socket_settings

    short, long = Path("/tmp") / tmp_path.name, tmp_path / ("x" * 61)
    try:
        settings = _socket_settings(short)
        assert settings["spark.python.unix.domain.socket.dir"] == str(short)
        assert short.is_dir()
    finally:
        short.rmdir()
    assert _socket_settings(long) == {}
    assert not long.exists()


def test_a_worker_whose_spark_is_gone_ends_without_a_stack() -> None:
    import socket

    from tailrace.pipelines.spark.workers import quiet

    def flushes_late(sock: socket.socket, authenticated: bool) -> int:
        there.close()
        sock.sendall(b"what is left")
        return 0

    here, there = socket.socketpair()
    there.sendall(b"a task")  # a worker that has worked before waits for the next one
    with here:
        assert quiet(flushes_late)(here, True) == 1


STARTING = """
import sys
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.spark import workers
from tailrace.pipelines.streams import source
from tailrace.testing.ticks import table

sql = "SELECT s, sum(n) AS m FROM t WHERE n > 3 AND s <> 'a' GROUP BY s"
compile_views([ViewDefinition("v", sql)], [table("t", "id BIGINT, s STRING, n INT", ["id"])])
assert "pandas" not in sys.modules
workers.preload()
assert set(workers.NEEDED) <= set(sys.modules)
"""


def test_what_starts_often_does_not_import_pandas_and_workers_are_forked_with_it() -> None:
    subprocess.run([sys.executable, "-c", STARTING], check=True)


ENDING = """
import sys
from pathlib import Path
from tailrace.pipelines.spark import session

spark = session.start("t", Path(sys.argv[1]), master="local[2]", queries=False)
assert spark.sparkContext.parallelize(range(4), 2).map(lambda n: n + 1).sum() == 10
spark.stop()
"""


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_ends_without_stacks(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(tmp_path / "spark")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
