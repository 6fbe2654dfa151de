"""The verifier on Apache Kafka: three brokers, every fault, and settings that lose records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.kafka import KafkaUnavailable, jars
from tailrace.verify.errors import ThrowAwayError
from tailrace.verify.experiments import Outcome, run_experiment
from tailrace.verify.faults import FAULTS
from tailrace.verify.run import Plan, run
from tailrace.verify.throwaway import start_kafka

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def libraries() -> Iterator[Path]:
    try:
        yield jars()
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")


def test_every_promise_holds_under_every_fault(libraries: Path) -> None:
    log = start_kafka(libraries)
    try:
        finished = run(
            log.address,
            Plan(seconds=30, faults=FAULTS, replication=3, min_insync=2),
            log.nodes,
        )
    finally:
        log.stop()
    assert finished.verdict.holds, finished.verdict
    assert finished.left == ()
    history = finished.history
    assert {each.kind for each in history.about.faults} == set(FAULTS)
    assert len({each.leader for each in history.about.leaders if each.leader >= 0}) > 1
    # Every in-sync replica was asked for its own end, not leaders alone.
    assert {int(each) for each in history["replicas"]["replica"]} == {1, 2, 3}


def _experiment(name: str, libraries: Path) -> tuple[Outcome, Outcome]:
    first, second = run_experiment(name, libraries)
    return first, second


def test_an_acknowledgement_of_the_leader_alone_is_lost_with_it(libraries: Path) -> None:
    loses, keeps = _experiment("acks-1", libraries)
    assert loses.settings == {"acks": "1"}
    assert loses.lost > 0
    assert loses.acknowledged > keeps.acknowledged > 0
    assert keeps.lost == 0


def test_what_is_not_retried_is_not_written(libraries: Path) -> None:
    loses, keeps = _experiment("no-retry", libraries)
    assert loses.lost > 0
    assert keeps.lost == 0
    assert keeps.acknowledged == keeps.sent


def test_an_unclean_election_loses_what_was_acknowledged(libraries: Path) -> None:
    loses, keeps = _experiment("unclean-election", libraries)
    assert loses.settings == {"unclean.leader.election.enable": True}
    assert loses.lost > 0
    assert keeps.lost == 0
    assert keeps.acknowledged == loses.acknowledged


def test_one_copy_is_lost_with_its_machine(libraries: Path) -> None:
    loses, keeps = _experiment("min-insync-1", libraries)
    assert loses.settings == {"min.insync.replicas": 1}
    assert loses.lost > 0
    assert keeps.lost == 0
    assert loses.acknowledged > keeps.acknowledged > 0


def test_a_shorter_time_out_leaves_a_leader_that_hangs(libraries: Path) -> None:
    waits, leaves = _experiment("hang", libraries)
    assert waits.lost == leaves.lost == 0
    assert waits.acknowledged == waits.sent == leaves.acknowledged
    assert leaves.waited_seconds < waits.waited_seconds


def test_a_folder_without_kafka_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThrowAwayError, match="does not hold Apache Kafka's jars"):
        start_kafka(tmp_path)
