"""Two threads that look at the log beside the load: who leads, and who has what was acknowledged.

The probe asks every in-sync replica for its own end right after an acknowledgement. What a broker
says about replicas in sync can be a moment old: a leader that has just dropped a slow replica
acknowledges without it, and says so a little later. So a replica that lacks a record counts
only if it is still called in sync, under the same leader epoch, for a second after that.
"""

from __future__ import annotations

import contextlib
import queue
import threading

from tailrace.client.errors import ClientError
from tailrace.verify.recorder import Recorder
from tailrace.verify.topology import Leadership, Topology

LOOK_SECONDS = 0.2
CONFIRM_SECONDS, CONFIRM_TIMES = 0.2, 5


class Watch:
    """`asked` after an acknowledgement; both threads end with `stop`."""

    def __init__(self, address: str, topic: str, recorder: Recorder) -> None:
        self._address = address
        self._topic = topic
        self._recorder = recorder
        self._stopping = threading.Event()
        self._acknowledged: queue.Queue[tuple[int, int]] = queue.Queue(maxsize=1)
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name="verify watch", daemon=True)
            for work in (self._look, self._probe)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float = 30.0) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(seconds)

    def asked(self, partition: int, offset: int) -> None:
        """A record was acknowledged; its replicas are asked if nothing else is being asked."""
        with contextlib.suppress(queue.Full):
            self._acknowledged.put_nowait((partition, offset))

    def _guarded(self, work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            self._recorder.failed(error)

    def _look(self) -> None:
        topology = Topology(self._address, clock=self._recorder.clock)
        try:
            while not self._stopping.is_set():
                with contextlib.suppress(ClientError):
                    self._recorder.leaders_are(
                        {
                            partition: (each.leader, each.epoch, each.in_sync)
                            for partition, each in topology.leaders(self._topic).items()
                        }
                    )
                self._stopping.wait(LOOK_SECONDS)
        finally:
            topology.close()

    def _probe(self) -> None:
        topology = Topology(self._address, seconds=2.0, clock=self._recorder.clock)
        try:
            while not self._stopping.is_set():
                try:
                    partition, offset = self._acknowledged.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    continue
                with contextlib.suppress(ClientError):
                    self._ask(topology, partition, offset)
        finally:
            topology.close()

    def _ask(self, topology: Topology, partition: int, offset: int) -> None:
        before = topology.leaders(self._topic).get(partition)
        if before is None:
            return
        asked_at = self._recorder.now()
        ends = {each: topology.end_at(each, self._topic, partition) for each in before.in_sync}
        told = {broker: end for broker, end in ends.items() if end is not None}
        behind = {broker: end for broker, end in told.items() if end <= offset}
        if behind:
            behind = self._confirmed(topology, partition, before, behind)
        for broker, end in told.items():
            if end > offset or broker in behind:
                self._recorder.replicas.extend(
                    partition=[partition], offset=[offset], replica=[broker], end=[end],
                    asked_at=[asked_at],
                )  # fmt: skip

    def _confirmed(
        self, topology: Topology, partition: int, before: Leadership, behind: dict[int, int]
    ) -> dict[int, int]:
        """Those that are called in sync all the time, under the same epoch."""
        for _ in range(CONFIRM_TIMES):
            if self._stopping.wait(CONFIRM_SECONDS):
                return {}
            now = topology.leaders(self._topic).get(partition)
            if now is None or now.epoch != before.epoch:
                return {}
            behind = {each: end for each, end in behind.items() if each in now.in_sync}
        return behind
