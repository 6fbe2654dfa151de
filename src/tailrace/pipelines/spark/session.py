"""A Spark session with the settings that pipelines need.

The same on `local[*]`, a standalone cluster, YARN and Kubernetes: only `spark.master`
differs, and any setting can be overridden by `[spark] conf` in `tailrace.toml`.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.errors import ComponentMissingError
from tailrace.modes import make_private
from tailrace.pipelines.errors import SparkUnavailableError
from tailrace.pipelines.spark import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    # A tick or a micro-batch is small and known; adaptive execution would re-plan it,
    # and with it the number of tasks that write.
    "spark.sql.adaptive.enabled": "false",
    "spark.speculation": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.python.worker.reuse": "true",
    # The default manager forks about 18 processes a batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.numRecentProgressUpdates": "30",
    "spark.ui.enabled": "false",
    "spark.ui.killEnabled": "false",  # any page in a browser could end a tick's job
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.locality.wait": "0s",
}

# How many of its slots a session has for tasks that stay (see `ticks.resident`).
RESIDENT_TASKS = "spark.tailrace.residentTasks"
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(,\s*\d+)?\])?")

LONGEST_SOCKET_DIRECTORY = 60  # of the 104 bytes that systems allow; Spark's names take 43

_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


def start(
    name: str,
    directory: Path,
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    queries: bool = True,
) -> SparkSession:
    """Start Spark, or give the session that runs.

    `directory` gets Spark's own log (`spark.log`), its scratch files and its warehouse.
    `queries`: whether it will run streams or queries; ticks of views are no queries.
    """
    make_private(directory)
    os.environ["JAVA_HOME"] = str(java.find().home)
    wished = (conf or {}).get("spark.pyspark.python")
    if wished:  # a path on the executors; Spark itself reads only the variable by now
        os.environ["PYSPARK_PYTHON"] = wished
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    log4j = directory / "log4j2.properties"
    log4j.write_text(_LOGGING.format(path=directory / "spark.log"))
    try:
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise ComponentMissingError(
            "PySpark is not installed", hint="pip install 'tailrace[spark]'"
        ) from missing
    settings = {
        **SETTINGS,
        **_local_settings(master, directory, log4j, queries),
        **dict(conf or {}),
    }
    if master.startswith("local") and settings["spark.ui.enabled"] == "true":
        # Its pages listen on every address of the machine unless this says otherwise.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    slots, resident = with_resident_tasks(master)
    settings.setdefault(RESIDENT_TASKS, str(resident))
    builder = SparkSession.builder.appName(name).master(slots)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as problem:
        raise SparkUnavailableError(
            "Spark did not start",
            # The first line only says that a Java call failed; the second says why.
            detail=" ".join(str(problem).strip().splitlines()[:2]) or repr(problem),
            hint=f"look into {directory / 'spark.log'}; is `spark.master` ({master}) right?",
        ) from problem
    # Prints whole JVM stacks to stderr; the same errors are raised and told in our form.
    for noisy in ("DataFrameQueryContextLogger", "py4j.clientserver"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    return session


def cores_of(master: str) -> int | None:
    """How many tasks a master on this machine runs at once; None for one elsewhere."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    cores = found[1] or "1"
    return max(1, (os.cpu_count() or 2) if cores == "*" else int(cores))


def with_resident_tasks(master: str) -> tuple[str, int]:
    """A master on this machine with as many slots again, for tasks that stay: else those would take
    the place of streams and of large ticks. How many they are; none on clusters."""
    cores, found = cores_of(master), _LOCAL.fullmatch(master)
    if cores is None or found is None:
        return master, 0
    return f"local[{2 * cores}{found[2] or ''}]", cores


def _socket_settings(scratch: Path) -> dict[str, str]:
    """Spark and its Python workers talk through sockets of this machine, if they have a place:
    over TCP a job that follows the last one closely begins 40 ms late."""
    if len(os.fsencode(scratch)) > LONGEST_SOCKET_DIRECTORY:
        return {}
    make_private(scratch)
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(scratch),
    }


def _local_settings(master: str, directory: Path, log4j: Path, queries: bool) -> dict[str, str]:
    options = f"-Dlog4j2.configurationFile={log4j.resolve().as_uri()} -XX:+UseSerialGC -Xss4m"
    if not queries:
        # Ticks only have the JVM hand bytes on. Its second compiler would take more processor
        # time than all of that: a fifth of a first fill.
        options += " -XX:TieredStopAtLevel=1"
    common = {
        "spark.driver.extraJavaOptions": options,
        "spark.sql.warehouse.dir": str((directory / "warehouse").resolve()),
    }
    if not master.startswith("local"):
        return common
    cores = os.cpu_count() or 2
    scratch = (directory / "scratch").resolve()
    return {
        **common,
        **_socket_settings(scratch),
        "spark.python.daemon.module": "tailrace.pipelines.spark.workers",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Its ports take Java objects from whoever connects; now only from who knows a secret
        # that Spark makes itself, and hands to nobody, in local mode.
        "spark.authenticate": "true",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": str(max(2, cores)),
        "spark.default.parallelism": str(max(2, cores)),
        "spark.sql.artifact.isolation.enabled": "false",
    }
