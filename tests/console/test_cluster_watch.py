"""What a cluster did between two looks, what is alarming in one, and its metrics."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from tailrace.client.operations import (
    BrokerState,
    ClusterState,
    ControllerState,
    Move,
    PartitionState,
    Throttle,
    TopicState,
)
from tailrace.console.cluster_watch import Changes, ClusterWatch, cluster_alarms
from tailrace.telemetry.metrics import exposition


def partition(leader: int = 1, in_sync: tuple[int, ...] = (1, 2, 3)) -> PartitionState:
    return PartitionState(0, leader, 4, 1, (1, 2, 3), in_sync)


def cluster(of: PartitionState, *, controller: int = 1, moves: tuple[Move, ...] = (), throttles: tuple[Throttle, ...] = (), gone: int = 0) -> ClusterState:  # fmt: skip
    brokers = tuple(
        BrokerState(id, "gone" if id == gone else "up", f"b{id}:1", None, 1, 1, 1)
        for id in (1, 2, 3)
    )
    return ClusterState(ControllerState(controller), brokers, (TopicState("orders", 3, 2, False, (of,)),), moves, throttles)  # fmt: skip


MOVE = Move("orders", 0, (1, 2, 3, 4), (4,), (3,), 0.5)


def test_only_what_changed_between_two_looks_happened() -> None:
    changes = Changes()
    assert list(changes.between(cluster(partition(), moves=(MOVE,)))) == []
    assert list(changes.between(cluster(partition(), moves=(MOVE,)))) == []
    found = list(changes.between(cluster(partition(2, (2, 3)), controller=3)))
    assert [(kind, text) for kind, _, _, text in found] == [
        ("elections", "controller 1 → 3"),
        ("elections", "leader 1 → 2, epoch 4"),
        ("replicas", "broker 1 is no longer in sync"),
        ("moves", "move ended"),
    ]
    found = list(changes.between(cluster(partition(-1, (2, 3, 1)), controller=-1, moves=(MOVE,))))
    assert [text for _, _, _, text in found] == [
        "controller 3 → none",
        "leader 2 → none, epoch 4",
        "broker 1 is in sync again",
        "moves to brokers 4, leaves 3",
    ]


def test_a_look_is_kept_with_its_history_logged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = ClusterWatch("127.0.0.1:1")
    assert watch.document is None
    assert list(cluster_alarms(watch.document)) == []
    with caplog.at_level(logging.INFO, logger="tailrace.cluster"):
        for in_sync in ((1, 2, 3), (1, 2), (1, 2, 3), (1, 2)):
            watch.take(cluster(partition(1, in_sync)))
    assert {record.name for record in caplog.records} == {"tailrace.cluster.replicas"}
    document = watch.document
    assert document is not None
    assert document["flapping"] == [{"topic": "orders", "partition": 0, "changes": 3}]
    assert [event["text"] for event in document["events"]] == [
        "broker 3 is no longer in sync",
        "broker 3 is in sync again",
        "broker 3 is no longer in sync",
    ]
    shown = exposition().decode()
    assert "tailrace_cluster_under_replicated_partitions 1.0" in shown
    assert "tailrace_cluster_controllers 1.0" in shown
    watch.close()


@pytest.mark.parametrize(
    ("state", "level", "said"),
    [
        (cluster(partition(), controller=-1), "critical", "no controller"),
        (cluster(partition(-1, ())), "critical", "without a leader"),
        (cluster(partition(1, (1,))), "critical", "below min.insync.replicas"),
        (cluster(partition(1, (1, 2))), "warning", "broker 3 is missing in 1 of them"),
        (cluster(partition(1, (1, 2)), gone=3), "critical", "does not see broker 3"),
        (cluster(partition(), throttles=(Throttle("broker", "1", "rate", "5"),)), "warning", "throttles replication"),
    ],
)  # fmt: skip
def test_what_deserves_attention_is_an_alarm(state: ClusterState, level: str, said: str) -> None:
    found = list(cluster_alarms({**state.document(), "flapping": []}))
    assert any(each["level"] == level and said in each["message"] for each in found), found
    good = cluster(partition())
    assert list(cluster_alarms({**good.document(), "flapping": []})) == []
    assert list(cluster_alarms({**replace(good, throttles=state.throttles, moves=(MOVE,)).document(), "flapping": []})) == []  # fmt: skip
