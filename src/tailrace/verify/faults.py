"""Faults, one at a time, each undone before the next.

kill             kill -9 of a node, then its start
pause            SIGSTOP for a while: it holds its connections and answers nothing
restart          SIGTERM, then its start
kill-leader      kill of the node that leads most of the partitions
kill-controller  kill of the active controller
rolling          restart of every node, one after another, each back in sync first
cut              every connection of this process to the log is shut down
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tailrace.client.errors import ClientError
from tailrace.errors import UsageError
from tailrace.verify.errors import VerifyError
from tailrace.verify.nodes import Node
from tailrace.verify.recorder import Recorder
from tailrace.verify.topology import Topology

FAULTS = ("kill", "pause", "restart", "kill-leader", "kill-controller", "rolling", "cut")
NEEDS_START = frozenset(FAULTS) - {"pause", "cut"}
PAUSE_SECONDS = 5.0
DOWN_SECONDS = 1.0
ELECTION_SECONDS = 60.0
IN_SYNC_SECONDS = 180.0

Wait = Callable[[Callable[[], bool], float], bool]  # until it holds, or the seconds are over


class Interrupted(Exception):
    """The user wants the run to end."""


def parse_faults(text: str) -> list[str]:
    """`kill,pause,…`. Raises UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FAULTS:
            raise UsageError(f"there is no fault {name!r}", hint=f"there are {', '.join(FAULTS)}")
    return names


def refuse_impossible(faults: Iterable[str], nodes: Sequence[Node], brokers: int) -> None:
    """Raise UsageError for a fault that the named nodes do not allow."""
    for fault in faults:
        if fault == "cut":
            continue
        if not nodes:
            raise UsageError(
                f"the fault {fault} needs processes to hurt",
                detail="only processes that you name are hurt",
                hint="--node '1=pid:4711,start:COMMAND', or a throw-away log: --embedded, --kafka JARS",
            )
        if fault in NEEDS_START and any(node.start_command is None for node in nodes):
            lacking = next(node for node in nodes if node.start_command is None)
            raise UsageError(
                f"the fault {fault} stops nodes, and node {lacking.id} could not be started again",
                hint=f"--node '{lacking.id}=pid:{lacking.pid},start:COMMAND', or only pause",
            )
        if fault in ("kill-leader", "kill-controller") and len(nodes) < brokers:
            raise UsageError(
                f"the fault {fault} may hit any broker, and not all of them are named",
                detail=f"{brokers} brokers, {len(nodes)} named",
            )


class Faults:
    """Runs faults on named nodes; used by the main thread only."""

    def __init__(
        self, nodes: Sequence[Node], topology: Topology, topic: str, recorder: Recorder, wait: Wait
    ) -> None:
        self._nodes = list(nodes)
        self._topology = topology
        self._topic = topic
        self._recorder = recorder
        self._wait = wait
        self._turn = 0

    def run(self, kind: str) -> None:
        """One fault from its beginning to its end. Raises Interrupted, VerifyError."""
        match kind:
            case "cut":
                at = self._recorder.now()
                cut_connections(self._topology.brokers().values())
                self._recorder.hurt(kind, "", at)
            case "pause":
                node = self._next()
                with self._recorded(kind, node):
                    node.pause()
                    self._wait(lambda: False, PAUSE_SECONDS)
                    node.resume()
            case "kill" | "restart":
                node = self._next()
                with self._recorded(kind, node):
                    self._stop(node, kill=kind == "kill")
            case "kill-leader":
                node = self._leader()
                with self._recorded(kind, node):
                    self._stop(node, kill=True, until_led=True)
            case "kill-controller":
                node = self._controller()
                with self._recorded(kind, node):
                    self._stop(node, kill=True)
            case "rolling":
                for node in self._nodes:
                    with self._recorded(kind, node):
                        self._stop(node, kill=False)
                    self.await_in_sync()
            case _:
                raise AssertionError(kind)

    def await_in_sync(self) -> None:
        """Wait until every partition has a leader and all its replicas in sync."""
        if not self._wait(self.in_sync, IN_SYNC_SECONDS):
            raise VerifyError(f"not all replicas were in sync again within {IN_SYNC_SECONDS:g} s")

    def in_sync(self) -> bool:
        with contextlib.suppress(ClientError):
            found = self._topology.leaders(self._topic)
            return bool(found) and all(
                each.leader >= 0 and len(each.in_sync) == len(each.replicas)
                for each in found.values()
            )
        return False

    @contextlib.contextmanager
    def _recorded(self, kind: str, node: Node):  # type: ignore[no-untyped-def]
        at = self._recorder.now()
        try:
            yield
        finally:
            self._recorder.hurt(kind, str(node.id), at)

    def _stop(self, node: Node, *, kill: bool, until_led: bool = False) -> None:
        """Stop it, and start it again after a moment, or when others lead what it led."""
        if kill:
            node.kill()
        else:
            node.terminate()
        if until_led and len(self._nodes) > 1:
            self._wait(lambda: self._led_by_others(node), ELECTION_SECONDS)
        else:
            self._wait(lambda: False, DOWN_SECONDS)
        node.launch()
        node.start()

    def _led_by_others(self, node: Node) -> bool:
        with contextlib.suppress(ClientError):
            found = self._topology.leaders(self._topic)
            return bool(found) and all(
                each.leader >= 0 and each.leader != node.id for each in found.values()
            )
        return False

    def _next(self) -> Node:
        self._turn += 1
        return self._nodes[self._turn % len(self._nodes)]

    def _leader(self) -> Node:
        led = Counter(each.leader for each in self._topology.leaders(self._topic).values())
        (most, _), *_ = led.most_common(1)
        return self._named(most)

    def _controller(self) -> Node:
        controller = self._topology.controller()
        if controller is None:
            raise UsageError(
                "this log has no elected controller to kill",
                detail="the embedded broker is alone; a cluster of Apache Kafka has one",
            )
        return self._named(controller)

    def _named(self, id: int) -> Node:
        for node in self._nodes:
            if node.id == id:
                return node
        raise VerifyError(f"broker {id} is none of the named nodes")


def cut_connections(addresses: Iterable[tuple[str, int]]) -> int:
    """Shut down every connection of this process to these addresses; how many there were."""
    peers: set[tuple[str, int]] = set()
    for host, port in addresses:
        with contextlib.suppress(OSError):
            for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                peers.add((str(found[4][0]), port))
    cut = 0
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError, ValueError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as copy:
                if copy.family in (socket.AF_INET, socket.AF_INET6):
                    peer = copy.getpeername()
                    if (str(peer[0]).removeprefix("::ffff:"), peer[1]) in peers:
                        copy.shutdown(socket.SHUT_RDWR)
                        cut += 1
    return cut
