"""Settings that lose records, and the settings that do not: each shown on a throw-away cluster.

    acks-1             the leader acknowledges alone, and dies before its followers have the record
    no-retry           a producer that does not try again, while the leader changes
    unclean-election   a replica that missed records becomes leader
    min-insync-1       one copy is enough for an acknowledgement, and its machine is gone for ever
    hang               the leader hangs: how long a producer waits

Every experiment runs its setting and then what prevents the loss (or the wait), the same steps
both times, on three brokers of Apache Kafka. A record is *lost* if it was acknowledged and is not
there at the end; in `no-retry` also if it was refused or got no answer, and is not there.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.clock import SYSTEM
from tailrace.verify.checkers import judge
from tailrace.verify.errors import UnfinishedError
from tailrace.verify.faults import Interrupted
from tailrace.verify.final_read import read_everything
from tailrace.verify.history import History, Status, encode_payloads
from tailrace.verify.nodes import Node
from tailrace.verify.recorder import Recorder
from tailrace.verify.recovery import SECOND
from tailrace.verify.sending import PartitionSender
from tailrace.verify.throwaway import ThrowAway, start_kafka
from tailrace.verify.topology import Leadership, Topology
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import elect_leaders

TOPIC = "experiment"
BATCH = 50
RECORDS = 1_000
PATIENCE = 90.0
HANG_SECONDS = 25.0
UNCLEAN = 1

Stop = Callable[[], bool]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of an experiment."""

    settings: Mapping[str, object]
    sent: int
    acknowledged: int
    lost: int
    waited_seconds: float

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "settings": dict(self.settings)}


class _Stage:
    """A cluster with one topic of one partition, and what is written to it."""

    def __init__(self, log: ThrowAway, stopping: Stop) -> None:
        self.log = log
        self._stopping = stopping
        self.topology = Topology(log.address)
        self.recorder = Recorder()

    def close(self) -> None:
        self.topology.close()

    def create(self, replicas: int, config: Mapping[str, str] | None = None) -> None:
        with Admin(self.log.address) as admin:
            admin.create_topic(TOPIC, 1, config, replication_factor=replicas)
        self.until(lambda: len(self.state().in_sync) == replicas, "all replicas in sync")

    def state(self) -> Leadership:
        with contextlib.suppress(ClientError):
            found = self.topology.leaders(TOPIC)
            if 0 in found:
                return found[0]
        return Leadership(-1, -1, (), ())

    def node(self, id: int) -> Node:
        return next(each for each in self.log.nodes if each.id == id)

    def until(self, holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait for something that has to happen. Raises UnfinishedError, Interrupted."""
        if not self.wait(holds, seconds):
            raise UnfinishedError(f"the cluster did not get there within {seconds:g} s: {what}")

    def wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        end = SYSTEM.monotonic() + seconds
        while True:
            if self._stopping():
                raise Interrupted
            if holds():
                return True
            if SYSTEM.monotonic() >= end:
                return False
            SYSTEM.sleep(0.05)

    def write(
        self,
        count: int,
        *,
        acks: int = -1,
        retry_seconds: float = 0.0,
        request_seconds: float = 10.0,
        pause: float = 0.0,
        give_up_after: int | None = None,
    ) -> None:
        """Write so many records in batches; with `give_up_after` failures in a row, fewer."""
        sender = PartitionSender(
            self.log.address, TOPIC, 0, idempotent=retry_seconds > 0, acks=acks,
            retry_seconds=retry_seconds, request_seconds=request_seconds, stopping=self._stopping,
        )  # fmt: skip
        recorder, producer, first, failures = self.recorder, -1, 0, 0
        try:
            for _ in range(count // BATCH):
                if self._stopping():
                    raise Interrupted
                if producer < 0:
                    sender.begin()
                    producer, first = recorder.producer("writer", "plain"), 0
                values = encode_payloads(recorder.run, producer, first, BATCH, 100)
                sent_at = recorder.now()
                outcome = sender.send(values)
                recorder.sent(producer, first, BATCH, 0, outcome.offset, outcome.status, sent_at)
                first += BATCH
                if outcome.status is not Status.ACKNOWLEDGED:
                    producer, failures = -1, failures + 1
                    if failures == give_up_after:
                        return
                else:
                    failures = 0
                SYSTEM.sleep(pause)
        finally:
            sender.close()

    def elect_uncleanly(self) -> None:
        """Ask for a leader at any price, as an operator would whose partition has none."""
        with Admin(self.log.address) as admin:
            admin.ask(
                ApiKey.ELECT_LEADERS,
                elect_leaders.ElectLeadersRequest(
                    UNCLEAN, [elect_leaders.TopicPartitions(TOPIC, [0])], 10_000
                ),
                elect_leaders.ElectLeadersResponse,
            )

    def outcome(self, settings: Mapping[str, object], *, count_unwritten: bool = False) -> Outcome:
        """Read everything and count."""
        self.until(lambda: self.state().leader >= 0, "a leader")
        log = read_everything(
            self.log.address, TOPIC, 1, self.recorder.run, wait=self.wait, seconds=PATIENCE
        )
        history = self.recorder.history(
            log, began="", address=self.log.address, topic=TOPIC, partitions=1, groups=(),
            settings=dict(settings),
        )  # fmt: skip
        sends = history["sends"]
        sent = len(sends["status"])
        lost = judge(history)["nothing-lost"].count
        if count_unwritten:
            lost = sent - len(log["offset"])
        return Outcome(
            settings,
            sent,
            int((sends["status"] == Status.ACKNOWLEDGED).sum()),
            lost,
            _longest_wait(history),
        )


def _longest_wait(history: History) -> float:
    sends = history["sends"]
    if not len(sends["sent_at"]):
        return 0.0
    return round(float((sends["answered_at"] - sends["sent_at"]).max()) / SECOND, 1)


def _acks_1(stage: _Stage, acks: str) -> Outcome:
    stage.create(3)
    stage.write(RECORDS, retry_seconds=60.0)
    leader = stage.state().leader
    followers = [each for each in stage.log.nodes if each.id != leader]
    try:
        for each in followers:
            each.pause()
        stage.write(RECORDS, acks=1 if acks == "1" else -1, request_seconds=2.0, give_up_after=1)
        stage.node(leader).kill()
    finally:
        for each in followers:
            each.resume()
    stage.until(lambda: stage.state().leader not in (-1, leader), "another leader")
    stage.node(leader).start()
    return stage.outcome({"acks": acks})


def _no_retry(stage: _Stage, retries: bool) -> Outcome:
    stage.create(3, {"min.insync.replicas": "2"})
    leader = stage.state().leader
    stage.write(RECORDS, retry_seconds=60.0)
    stage.node(leader).kill()
    stage.write(RECORDS, retry_seconds=120.0 if retries else 0.0, request_seconds=5.0, pause=0.05)
    stage.until(lambda: stage.state().leader not in (-1, leader), "another leader")
    stage.write(RECORDS, retry_seconds=120.0 if retries else 0.0)
    stage.node(leader).start()
    return stage.outcome({"retries": 2_147_483_647 if retries else 0}, count_unwritten=True)


def _unclean_election(stage: _Stage, unclean: bool) -> Outcome:
    """Two replicas: nodes are brokers and controllers, and two of three are needed for those."""
    stage.create(
        2, {"unclean.leader.election.enable": str(unclean).lower(), "min.insync.replicas": "1"}
    )
    stage.write(RECORDS // 2, retry_seconds=60.0)
    first = stage.state()
    follower = next(each for each in first.replicas if each != first.leader)
    stage.node(follower).kill()
    stage.until(lambda: stage.state().in_sync == (first.leader,), "the follower out of sync")
    stage.write(RECORDS // 2, retry_seconds=60.0)
    stage.node(first.leader).kill()
    stage.node(follower).start()
    stage.wait(lambda: stage.state().leader == follower, 30.0 if unclean else 10.0)
    stage.node(first.leader).start()
    return stage.outcome({"unclean.leader.election.enable": unclean})


def _min_insync_1(stage: _Stage, copies: int) -> Outcome:
    """The machine of the last in-sync replica never comes back; somebody asks for any leader."""
    stage.create(2, {"min.insync.replicas": str(copies)})
    stage.write(RECORDS // 2, retry_seconds=60.0)
    first = stage.state()
    follower = next(each for each in first.replicas if each != first.leader)
    stage.node(follower).kill()
    # With two copies asked for, Kafka keeps the follower as one that may lead.
    stage.until(lambda: stage.state().in_sync == (first.leader,), "the follower out of sync")
    stage.write(RECORDS // 2, give_up_after=1)
    stage.node(first.leader).kill()
    stage.node(follower).start()

    def led() -> bool:
        if stage.state().leader == follower:
            return True
        with contextlib.suppress(ClientError):
            stage.elect_uncleanly()
        return False

    stage.wait(lambda: stage.state().leader == follower, 10.0)
    stage.until(led, "the follower as leader")
    with Admin(stage.log.address) as admin:
        # Below this number of copies nothing new can be read, not even what is there already.
        admin.alter_topic_config(TOPIC, {"min.insync.replicas": "1"})
    stage.write(BATCH, retry_seconds=60.0)  # the high watermark moves with the next write
    return stage.outcome({"min.insync.replicas": copies})


def _hang(stage: _Stage, seconds: float) -> Outcome:
    stage.create(3, {"min.insync.replicas": "2"})
    stage.write(RECORDS // 2, retry_seconds=60.0)
    leader = stage.node(stage.state().leader)
    resuming = threading.Timer(HANG_SECONDS, leader.resume)
    leader.pause()
    resuming.start()  # the sender waits on its socket
    try:
        stage.write(RECORDS // 2, retry_seconds=120.0, request_seconds=seconds)
    finally:
        resuming.cancel()
        leader.resume()
    return stage.outcome({"request.timeout.ms": int(seconds * 1000)})


EXPERIMENTS: dict[str, tuple[Callable[[_Stage, Any], Outcome], tuple[Any, Any]]] = {
    "acks-1": (_acks_1, ("1", "all")),
    "no-retry": (_no_retry, (False, True)),
    "unclean-election": (_unclean_election, (True, False)),
    "min-insync-1": (_min_insync_1, (1, 2)),
    "hang": (_hang, (60.0, 3.0)),
}


def run_experiment(
    name: str, jars: Path, *, stopping: Stop = lambda: False, tell: Tell = lambda line: None
) -> list[Outcome]:
    """Both runs of an experiment, each on a cluster of its own.

    Raises Interrupted, ThrowAwayError, UnfinishedError.
    """
    work, (loses, keeps) = EXPERIMENTS[name]
    outcomes = []
    for setting in (loses, keeps):
        tell(f"{name}: starting three brokers")
        log = start_kafka(jars, stopping=stopping, settings={"min.insync.replicas": "1"})
        try:
            stage = _Stage(log, stopping)
            try:
                outcomes.append(work(stage, setting))
            finally:
                stage.close()
        finally:
            log.stop()
    return outcomes
