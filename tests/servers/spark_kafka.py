"""Spark's own Kafka connector for tests and benchmarks, from Maven.

The newest connector that is published for this line of Spark is taken; an older minor
version runs on a newer Spark. The jars are copied once into the user's cache directory.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

from servers.processes import cache_directory

ARTIFACTS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:{spark}",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)
CANDIDATES = ("4.3.0", "4.2.0", "4.1.0", "4.0.1", "4.0.0")


class ConnectorUnavailable(Exception):
    """Why Spark's Kafka connector cannot be had on this machine."""


def connector_jars() -> list[Path]:
    """The jars for `spark.jars`, fetched with Maven on first use."""
    target = cache_directory() / "spark-kafka"
    done = target / ".complete"
    if not done.exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise ConnectorUnavailable("Maven is not installed, and the jars are not in the cache")
        target.mkdir(parents=True, exist_ok=True)
        with (cache_directory() / "spark-kafka.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes must not fetch at once
            if not done.exists():
                for artifact in ARTIFACTS:
                    _fetch(maven, artifact, target)
                done.touch()
    return sorted(target.glob("*.jar"))


def _fetch(maven: str, artifact: str, target: Path) -> None:
    """Copy one jar; the newest of the candidates where the version is open."""
    said = ""
    for version in CANDIDATES if "{spark}" in artifact else ("",):
        run = subprocess.run(
            [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact.format(spark=version)}",
             f"-DoutputDirectory={target}", "-Dmdep.useBaseVersion=true", "-Dtransitive=false"],
            capture_output=True, text=True, cwd=target,
        )  # fmt: skip
        if run.returncode == 0:
            return
        said = run.stdout[-500:]
    raise ConnectorUnavailable(f"Maven could not fetch {artifact}: {said}")
