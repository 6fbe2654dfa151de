"""One run: topic, load, faults, final read, verdict; and whatever was hurt is whole again.

Ctrl-C (SIGINT), SIGTERM and SIGHUP only set a flag, which every wait looks at, so that nothing
can break into the undoing of faults. The main thread hurts nodes; all else has threads.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError, UnknownTopicError
from tailrace.client.groups import Groups
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock, to_datetime
from tailrace.errors import UsageError
from tailrace.verify.checkers import Verdict, judge
from tailrace.verify.errors import UnfinishedError
from tailrace.verify.faults import Faults, Interrupted, refuse_impossible
from tailrace.verify.final_read import read_everything
from tailrace.verify.history import Columns, History, write_history
from tailrace.verify.nodes import Node
from tailrace.verify.recorder import Recorder
from tailrace.verify.topology import Topology
from tailrace.verify.watching import Watch
from tailrace.verify.workload import Load, Workload

SLICE = 0.05
REST_SECONDS = 2.0
PATIENCE_SECONDS = 180.0
TIDY_SECONDS = 15.0
# The settings that decide how long a recovery takes; told beside it.
EXPLAINING = (
    "broker.session.timeout.ms",
    "replica.lag.time.max.ms",
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "unclean.leader.election.enable",
)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does."""

    seconds: float = 60.0
    faults: tuple[str, ...] = ()
    partitions: int = 3
    replication: int = -1
    min_insync: int | None = None
    topic: str | None = None
    load: Load = field(default_factory=Load)


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that came to its end. `left` names what could not be tidied up."""

    history: History
    verdict: Verdict
    left: tuple[str, ...]


class Stopping:
    """Set by signals; safe to ask from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """While this lasts, signals that end a program only set the flag."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

        def note(number: int, frame: FrameType | None) -> None:
            self._event.set()

        before = {number: signal.signal(number, note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(
    address: str,
    plan: Plan,
    nodes: Sequence[Node] = (),
    *,
    folder: Path | None = None,
    stopping: Stopping | None = None,
    tell: Progress = lambda line: None,
    clock: Clock = SYSTEM,
) -> Finished:
    """Verify the log at `address`. With `folder` the history is written to its `history`.

    Raises Interrupted when `stopping` was set, UsageError for what cannot be asked of this log,
    UnfinishedError if it did not come to rest.
    """
    return _Run(address, plan, nodes, folder, stopping or Stopping(), tell, clock).run()


class _Run:
    def __init__(
        self,
        address: str,
        plan: Plan,
        nodes: Sequence[Node],
        folder: Path | None,
        stopping: Stopping,
        tell: Progress,
        clock: Clock,
    ) -> None:
        self._address = address
        self._plan = plan
        self._nodes = nodes
        self._folder = folder
        self._stopping = stopping
        self._tell = tell
        self._clock = clock
        self._recorder = Recorder(clock)
        self._topic = plan.topic or f"tailrace-verify-{self._recorder.run.hex()[:8]}"
        self._brokers: list[int] = []
        self._made = False
        self._left: list[str] = []
        self._workload: Workload | None = None
        self._watch: Watch | None = None

    def run(self) -> Finished:
        began = to_datetime(self._clock.wall_ms()).isoformat(timespec="seconds")
        topology = Topology(self._address, clock=self._clock)
        try:
            self._brokers = sorted(topology.brokers())
            refuse_impossible(self._plan.faults, self._nodes, len(self._brokers))
            if "kill-controller" in self._plan.faults and topology.controller() is None:
                raise UsageError(
                    "this log has no elected controller to kill",
                    detail="the embedded broker is alone; a cluster of Apache Kafka has one",
                )
            self._create()
            self._load_and_hurt(topology)
            history = self._finish(began)
        finally:
            self._tidy()
            topology.close()
        if self._folder is not None:
            write_history(self._folder / "history", history)
        self._tell(f"judging {len(history['sends']['producer']):,} sends and {len(history['polls']['consumer']):,} reads")  # fmt: skip
        return Finished(history, judge(history), tuple(self._left))

    # The load ------------------------------------------------------------------

    def _create(self) -> None:
        config = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
        if self._plan.min_insync is not None:
            config["min.insync.replicas"] = str(self._plan.min_insync)
        with Admin(self._address, timeout=30.0, clock=self._clock) as admin:
            if admin.describe_topic(self._topic) is not None:
                raise UsageError(
                    f'the topic "{self._topic}" exists',
                    detail="the verifier writes only to topics that it made, and deletes them",
                    hint="leave --topic out, or give a name that is free",
                )
            self._made = True  # before it is: a call that is broken off may have made it
            admin.create_topic(
                self._topic,
                self._plan.partitions,
                config,
                replication_factor=self._plan.replication,
            )

    def _load_and_hurt(self, topology: Topology) -> None:
        self._watch = watch = Watch(self._address, self._topic, self._recorder)
        self._workload = workload = Workload(
            self._address,
            self._topic,
            self._plan.partitions,
            self._recorder,
            replace(
                self._plan.load,
                stay_seconds=min(self._plan.load.stay_seconds, self._plan.seconds / 3),
            ),
            watch.asked,
        )
        watch.start()
        workload.start()
        self._tell(f'writing to "{self._topic}", {self._plan.partitions} partitions')
        faults = Faults(self._nodes, topology, self._topic, self._recorder, self._wait)
        self._flows(0)
        until = self._clock.monotonic() + self._plan.seconds
        if self._plan.faults:
            pause = max(REST_SECONDS, self._plan.seconds / (len(self._plan.faults) + 1) / 2)
            done = 0
            while done < len(self._plan.faults) or self._clock.monotonic() < until:
                kind = self._plan.faults[done % len(self._plan.faults)]
                self._wait(lambda: False, pause)
                if done >= len(self._plan.faults) and self._clock.monotonic() >= until:
                    break
                self._tell(f"fault: {kind}")
                faults.run(kind)
                self._flows(self._recorder.now())
                faults.await_in_sync()
                done += 1
        self._wait(lambda: False, until - self._clock.monotonic())
        # However short the run: the group rebalanced.
        self._wait(lambda: bool(workload.departures), PATIENCE_SECONDS)

    def _flows(self, since: int) -> None:
        """Wait until every partition acknowledges, and the group is given records again."""
        read = len(self._recorder.polls)
        partitions = self._plan.partitions
        if not self._wait(
            lambda: (
                self._recorder.acknowledged_since(since, partitions)
                and len(self._recorder.polls) > read
            ),
            PATIENCE_SECONDS,
        ):
            raise UnfinishedError(
                f"nothing was written and read again for {PATIENCE_SECONDS:g} s",
                detail="every partition must acknowledge a record, and a consumer be given one",
            )

    def _wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Until it holds, or the time is over; raises what ended a thread, or Interrupted."""
        until = self._clock.monotonic() + seconds
        while True:
            if self._stopping():
                raise Interrupted
            self._recorder.check()
            if holds():
                return True
            left = until - self._clock.monotonic()
            if left <= 0:
                return False
            self._clock.sleep(min(SLICE, left))

    # The end of the load -------------------------------------------------------

    def _finish(self, began: str) -> History:
        assert self._workload is not None
        assert self._watch is not None
        workload = self._workload
        self._tell("no more writes; reading everything")
        if not self._wait(workload.stop_writing, PATIENCE_SECONDS):
            raise UnfinishedError("a producer did not end", detail=f"{PATIENCE_SECONDS:g} s long")
        self._watch.stop()
        self._end_transactions(workload)
        log = self._read_all()
        ends = [-1] * self._plan.partitions
        for partition, offset in zip(
            log["partition"].tolist(), log["offset"].tolist(), strict=True
        ):
            ends[partition] = max(ends[partition], offset)
        self._await_readers(workload, ends)
        if not workload.stop():
            raise UnfinishedError("a consumer did not end when it was asked to")
        self._recorder.check()
        return self._recorder.history(
            log,
            began=began,
            address=str(self._address),
            topic=self._topic,
            partitions=self._plan.partitions,
            groups=[workload.group],
            settings=self._settings(),
        )

    def _end_transactions(self, workload: Workload) -> None:
        """A writer that was given up may have left one open; its successor ends it."""
        for name in workload.transactional_ids():
            with TransactionalWriter(
                self._address, name, timeout=timedelta(seconds=PATIENCE_SECONDS), clock=self._clock
            ) as writer:
                writer.init()

    def _read_all(self) -> Columns:
        return read_everything(
            self._address,
            self._topic,
            self._plan.partitions,
            self._recorder.run,
            wait=self._wait,
            seconds=PATIENCE_SECONDS,
            clock=self._clock,
        )

    def _await_readers(self, workload: Workload, ends: Sequence[int]) -> None:
        """Until all consumers have the last record; they have as long as they move."""
        read = workload.read_so_far()
        while not self._wait(lambda: not workload.caught_up(ends), PATIENCE_SECONDS):
            if workload.read_so_far() == read:
                raise UnfinishedError(
                    f"a consumer was given nothing for {PATIENCE_SECONDS:g} s and is not at the end",
                    detail="\n".join(workload.caught_up(ends)[:5]),
                )
            read = workload.read_so_far()

    def _settings(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            **self._plan.load.settings,
            "faults": list(self._plan.faults),
            "replication": self._plan.replication,
        }
        with (
            contextlib.suppress(ClientError),
            Admin(self._address, timeout=TIDY_SECONDS, clock=self._clock) as admin,
        ):
            entries = admin.topic_config(self._topic)
            found["min.insync.replicas"] = entries["min.insync.replicas"].value
            brokers = admin.broker_config(min(self._brokers))
            found |= {name: brokers[name].value for name in EXPLAINING if name in brokers}
        return found

    # Tidying up ----------------------------------------------------------------

    def _tidy(self) -> None:
        """Nodes first, then threads, group and topic. Never raises; `left` names the rest."""
        for node in self._nodes:
            if (left := node.restore()) is not None:
                self._left.append(left)
        if self._watch is not None:
            self._watch.stop(TIDY_SECONDS)
        if self._workload is not None:
            self._workload.stop(TIDY_SECONDS)
        if not self._made or any(node.throw_away for node in self._nodes):
            return  # with the log its topic goes
        try:
            with Admin(self._address, timeout=TIDY_SECONDS, clock=self._clock) as admin:
                with contextlib.suppress(UnknownTopicError):
                    admin.delete_topic(self._topic)
                if self._workload is not None:
                    with contextlib.suppress(ClientError):
                        Groups(admin).delete([self._workload.group])
        except ClientError as error:
            self._left.append(
                f'the topic "{self._topic}" was not deleted ({error}): '
                f"`tailrace topic delete {self._topic}`"
            )
        for line in self._left:
            self._tell(f"left behind: {line}")
