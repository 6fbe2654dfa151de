"""A real Kafka Connect worker for tests, from Maven's `org.apache.kafka:connect-runtime`."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path

import httpx

from servers.kafka import VERSION, KafkaUnavailable, java
from servers.processes import Server, cache_directory, free_port

POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tailrace</groupId><artifactId>connect-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-file</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""


def jars() -> Path:
    """The directory with Connect's jars, fetched with Maven on first use."""
    target = cache_directory() / f"kafka-connect-{VERSION}"
    done = target / ".complete"
    if done.exists():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable("Maven is not installed, and Connect's jars are not in the cache")
    with (cache_directory() / "kafka-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return target
        with tempfile.TemporaryDirectory() as scratch:
            pom = Path(scratch) / "pom.xml"
            pom.write_text(POM)
            command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            run = subprocess.run(
                [*command, f"-DoutputDirectory={target}"], capture_output=True, text=True
            )
        if run.returncode:
            raise KafkaUnavailable(f"Maven could not fetch Connect: {run.stdout[-500:]}")
        done.touch()
    return target


class KafkaConnect:
    """One worker of the group `connect-of-kafka`; its topics are Connect's usual ones."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        libraries = jars()
        self.address = f"127.0.0.1:{free_port()}"
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect-of-kafka",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "offset.storage.partitions": "3",
            "status.storage.topic": "connect-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "listeners": f"http://{self.address}",
            "exactly.once.source.support": "enabled",
            "plugin.discovery": "service_load",
            # None but the class path.
            "plugin.path": str(directory / "no-plugins"),
        }
        (directory / "no-plugins").mkdir()
        path = directory / "connect.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        command = [
            java(), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{libraries}/*",
            "org.apache.kafka.connect.cli.ConnectDistributed", str(path),
        ]  # fmt: skip
        self.server = Server(command, directory / "connect.log")
        try:
            self.server.wait_until(self._answers, 120)
        except BaseException:
            self.server.stop()
            raise

    def _answers(self) -> bool:
        try:
            return httpx.get(f"http://{self.address}/connectors", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self) -> None:
        self.server.stop()
