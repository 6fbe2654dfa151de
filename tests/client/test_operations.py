"""Cluster status, elections and moves: what is planned from a state; the embedded broker."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from log_helpers import HandClock
from tailrace.cli.main import cli
from tailrace.client import moves
from tailrace.client.admin import Admin
from tailrace.client.elections import Election, plan_elections
from tailrace.client.errors import AuthenticationError, BrokerUnavailableError
from tailrace.client.moves import PlannedMove, plan_moves
from tailrace.client.operations import (
    BrokerState,
    ClusterState,
    ControllerState,
    Flapping,
    Move,
    Operations,
    PartitionState,
    Throttle,
    TopicState,
    survival,
)
from tailrace.errors import UsageError


def _broker(id: int, state: str = "up", size: int = 0, rack: str | None = None) -> BrokerState:
    return BrokerState(id, state, f"b{id}:9092", rack, 0, 0, size)


def _partition(
    number: int, replicas: tuple[int, ...], in_sync: tuple[int, ...] | None = None, leader: int = -2
) -> PartitionState:
    led_by = replicas[0] if leader == -2 else leader
    return PartitionState(number, led_by, 1, replicas[0], replicas, replicas if in_sync is None else in_sync)  # fmt: skip


def _state(
    *partitions: PartitionState,
    brokers: tuple[BrokerState, ...] = (),
    moves: tuple[Move, ...] = (),
    throttles: tuple[Throttle, ...] = (),
    controller: int = 1,
) -> ClusterState:
    topic = TopicState("orders", 3, 2, False, partitions)
    known = brokers or tuple(_broker(id) for id in (1, 2, 3))
    return ClusterState(ControllerState(controller), known, (topic,), moves, throttles)


def test_a_whole_cluster_is_good() -> None:
    state = _state(_partition(0, (1, 2, 3)), _partition(1, (2, 3, 1)))
    assert state.good
    assert state.suspects == []
    assert state.document()["under_replicated"] == []


def test_what_a_partition_lacks_is_told_with_the_broker_it_shares() -> None:
    state = _state(
        _partition(0, (1, 2, 3), (1, 2)),
        _partition(1, (2, 3, 1), (2,)),
        _partition(2, (3, 1, 2), (), -1),
        brokers=(_broker(1), _broker(2), _broker(3, "gone")),
    )
    assert not state.good
    assert [each["partition"] for each in state.under_replicated] == [0, 1, 2]
    assert state.under_min_insync == [
        {"topic": "orders", "partition": 1},
        {"topic": "orders", "partition": 2},
    ]
    assert state.offline == [{"topic": "orders", "partition": 2}]
    assert state.suspects[0] == {"broker": 3, "partitions": 3}


def test_nobody_in_charge_is_not_good() -> None:
    assert not _state(_partition(0, (1, 2)), controller=-1).good


def test_a_replica_that_is_being_added_is_not_missed() -> None:
    move = Move("orders", 0, (1, 2, 3), (3,), (2,))
    partition = _partition(0, (1, 2, 3), (1, 2))
    assert _state(partition, moves=(move,)).good
    assert not _state(partition).good


def test_a_throttle_without_a_move_was_left() -> None:
    throttle = Throttle("broker", "1", "leader.replication.throttled.rate", "1")
    partition = _partition(0, (1, 2, 3))
    assert _state(partition, throttles=(throttle,)).left_throttles
    moving = Move("orders", 0, (1, 2, 3), (3,), ())
    assert not _state(partition, throttles=(throttle,), moves=(moving,)).left_throttles


AWAY = BrokerUnavailableError("away")


@pytest.mark.parametrize(
    ("answers", "asked", "cleared"),
    [
        ([AWAY, (Move("orders", 0, (1, 2), (3,), ()),), ()], 3, 1),  # whose ever move it is
        ([AuthenticationError("no")], 1, 0),
        ([AWAY] * 9, 5, 0),
    ],
)
def test_a_watch_takes_throttles_away_when_nothing_moves_any_more(
    monkeypatch: pytest.MonkeyPatch, answers: list[object], asked: int, cleared: int
) -> None:
    operations = Mock(moves=Mock(side_effect=answers))
    clear = Mock()
    monkeypatch.setattr(moves, "LONGEST_WATCH_SECONDS", 5.0)
    monkeypatch.setattr(moves, "Operations", lambda admin: operations)
    monkeypatch.setattr(moves, "clear_throttles", clear)
    moves.keep_watch(Mock(), (), HandClock())
    assert (operations.moves.call_count, clear.call_count) == (asked, cleared)


def test_in_sync_replicas_that_come_and_go_are_flapping() -> None:
    flapping = Flapping()
    whole, lacking = _state(_partition(0, (1, 2))), _state(_partition(0, (1, 2), (1,)))
    for moment, state in enumerate((whole, lacking, whole)):
        assert flapping.observe(state, moment) == []
    assert flapping.observe(lacking, 3) == [{"topic": "orders", "partition": 0, "changes": 3}]
    assert flapping.observe(lacking, 3_000) == []  # long ago


def test_elections_are_planned_for_partitions_that_others_lead() -> None:
    state = _state(
        _partition(0, (1, 2, 3)), _partition(1, (2, 3, 1), leader=3), _partition(2, (3, 1), (), -1)
    )
    assert plan_elections(state, unclean=False) == [Election("orders", 1, 3, 2)]
    assert plan_elections(state, unclean=True) == [Election("orders", 2, -1, 3)]
    assert plan_elections(state, unclean=False, only=[("orders", 0)]) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((1, 1, False), "one copy: it is lost with its disk"),
        ((3, 2, False), "3 copies, 2 must have a record: what is acknowledged survives 1 broker, writes go on without 1 broker"),
        ((3, 3, False), "3 copies, 3 must have a record: what is acknowledged survives 2 brokers, writes need all of them"),
        ((3, 1, True), "3 copies, 1 must have a record: what is acknowledged may be on one broker alone, writes go on without 2 brokers; an unclean election may lose it all the same"),
        ((2, 3, False), "2 copies, and 3 must have a record: nothing can be written"),
    ],
)  # fmt: skip
def test_what_settings_of_replication_mean_is_told(settings: tuple[int, int, bool], words: str) -> None:  # fmt: skip
    assert survival(*settings) == words


FOUR = tuple(_broker(id, size=size) for id, size in ((1, 10), (2, 20), (3, 30), (4, 0)))


def test_a_broker_is_emptied_and_the_order_of_the_others_is_kept() -> None:
    state = _state(_partition(0, (1, 2, 3)), _partition(1, (3, 4, 1)), brokers=FOUR)
    assert plan_moves(state, {}, leaving=3) == [
        PlannedMove("orders", 0, (1, 2, 3), (1, 2, 4)),
        PlannedMove("orders", 1, (3, 4, 1), (2, 4, 1)),
    ]


def test_newcomers_are_the_emptiest_after_what_is_planned() -> None:
    state = _state(*(_partition(n, (3,)) for n in range(4)), brokers=FOUR)
    sizes = {("orders", n): 15 for n in range(4)}
    moves = plan_moves(state, sizes, leaving=3)
    assert [each.after for each in moves] == [(4,), (1,), (4,), (2,)]


def test_another_rack_comes_before_an_emptier_broker() -> None:
    racks = (_broker(1, rack="a"), _broker(2, rack="b"), _broker(3, size=9, rack="a"), _broker(4, rack="b"))  # fmt: skip
    state = _state(_partition(0, (2, 1)), brokers=racks)
    assert plan_moves(state, {}, leaving=1)[0].after == (2, 3)


def test_a_topic_is_brought_to_named_brokers_alone() -> None:
    state = _state(_partition(0, (1, 3)), _partition(1, (1, 2)), brokers=FOUR)
    assert plan_moves(state, {}, places=[("orders", 0), ("orders", 1)], to=[1, 2]) == [
        PlannedMove("orders", 0, (1, 3), (1, 2))
    ]


def test_a_plan_that_cannot_be_is_refused() -> None:
    state = _state(_partition(0, (1, 2, 3)), brokers=(*FOUR[:3], _broker(4, "gone")))
    with pytest.raises(UsageError, match="fewer brokers"):
        plan_moves(state, {}, leaving=3)
    with pytest.raises(UsageError, match="broker 4 is not there"):
        plan_moves(state, {}, leaving=3, to=[4])
    with pytest.raises(UsageError, match="no broker 9"):
        plan_moves(state, {}, leaving=9)


@given(st.data())
def test_every_plan_keeps_the_number_of_copies_and_names_no_broker_twice(data: st.DataObject) -> None:  # fmt: skip
    ids = data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=7, unique=True))
    copies = data.draw(st.integers(1, len(ids) - 1))
    partitions = [
        _partition(n, tuple(data.draw(st.permutations(ids))[:copies]))
        for n in range(data.draw(st.integers(1, 6)))
    ]
    leaving = data.draw(st.sampled_from(ids))
    brokers = tuple(
        _broker(id, size=data.draw(st.integers(0, 99)), rack=data.draw(st.sampled_from(["a", "b", None])))
        for id in ids
    )  # fmt: skip
    moves = plan_moves(_state(*partitions, brokers=brokers), {}, leaving=leaving)
    assert [each.partition for each in moves] == [
        each.partition for each in partitions if leaving in each.replicas
    ]
    for each in moves:
        assert leaving not in each.after
        assert len(set(each.after)) == len(each.before)
        assert set(each.after) <= set(ids)
        kept = [(a, b) for a, b in zip(each.before, each.after, strict=True) if a != leaving]
        assert all(a == b for a, b in kept)


# The embedded broker ---------------------------------------------------------------


def _cluster(address: str, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["cluster", *arguments, "--bootstrap", address])
    if isinstance(result.exception, UsageError):
        return 2, result.exception.message
    return result.exit_code, result.output


def test_the_embedded_broker_keeps_one_copy_and_is_good(tailrace_broker: str) -> None:
    with Admin(tailrace_broker) as admin:
        admin.create_topic("orders", 2)
        state = Operations(admin).status()
    assert state.good
    assert state.controller == ControllerState(1, None, (1,))
    assert [each.name for each in state.topics] == ["orders"]
    assert state.brokers[0].leaders == 2
    status, text = _cluster(tailrace_broker, "status")
    assert status == 0
    assert "one broker, one copy of everything" in text
    described = CliRunner().invoke(
        cli, ["topic", "describe", "orders", "--bootstrap", tailrace_broker]
    )
    assert "one copy: it is lost with its disk" in described.output
    status, text = _cluster(tailrace_broker, "status", "--json")
    document = json.loads(text)
    assert document["flapping"] is None
    assert document["topics"][0]["partitions"][1]["leader"] == 1
    assert _cluster(tailrace_broker, "elect", "--execute", "--json") == (
        0,
        '{"executed":true,"elections":[]}\n',
    )


def test_wrong_use_is_refused_before_anything_is_asked(tailrace_broker: str) -> None:
    assert "loses what the new leader misses" in _cluster(tailrace_broker, "elect", "--unclean")[1]
    assert _cluster(tailrace_broker, "elect", "--accept-loss")[0] == 2
    assert 'no topic "nope"' in _cluster(tailrace_broker, "elect", "nope")[1]
    assert "what is to move" in _cluster(tailrace_broker, "move")[1]
    assert "what is to move" in _cluster(tailrace_broker, "move", "orders")[1]
    assert "fewer brokers" in _with_topic(tailrace_broker, "move", "--from", "1")[1]
    assert "not there to move to" in _cluster(tailrace_broker, "move", "orders", "--to", "7")[1]
    for wrong in (["--to", "x"], ["--to", "1", "--throttle", "1MB"], ["--to", "1", "--wait"]):
        assert _cluster(tailrace_broker, "move", "orders", *wrong)[0] == 2
    assert _cluster(tailrace_broker, "move", "--cancel", "--from", "1")[0] == 2


def _with_topic(address: str, *arguments: str) -> tuple[int, str]:
    with Admin(address) as admin:
        admin.create_topic("orders", 1)
    return _cluster(address, *arguments)
