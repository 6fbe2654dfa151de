"""Topics whose producers must not run away from a group, and those that drop instead."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from broker.conversations import Talk
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.pressure.rules import BLOCK, SLOW, Lag, Rule
from tailrace.client.admin import Admin
from tailrace.client.errors import RequestError
from tailrace.records.encode import encode_columns
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import encode_request
from tailrace.wire.messages import produce as wire

PREFIX = "tailrace.slow.consumer."


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), durable=False) as running:
        yield running


@pytest.fixture
def talk(broker: BrokerThread) -> Iterator[Talk]:
    with closing(Talk(broker.address)) as one:
        yield one


def make(broker: BrokerThread, name: str = "t", partitions: int = 1, **given: str | int) -> None:
    with Admin(broker.address) as admin:
        admin.create_topic(
            name,
            partitions,
            {f"{PREFIX}{key.replace('_', '.')}": str(value) for key, value in given.items()},
        )


def request(topic: str, count: int = 1, *, acks: int = -1, timeout_ms: int = 30_000) -> Any:
    batch = encode_columns([None] * count, [b"x" * 100] * count, int(time.time() * 1000))
    return wire.ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[wire.TopicProduceData(topic, b"", [wire.PartitionProduceData(0, batch)])],
    )


def send(talk: Talk, topic: str, count: int = 1, **given: int) -> tuple[int, int]:
    """Error and pause."""
    answer = talk.ask(ApiKey.PRODUCE, request(topic, count, **given), 9)
    return answer.responses[0].partition_responses[0].error_code, answer.throttle_time_ms


def status(broker: BrokerThread, topic: str = "t") -> dict[str, Any]:
    return broker.broker.pressure.of_topic(topic)


def until(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never came true")


def test_producers_are_slowed_while_the_group_is_behind(broker: BrokerThread, talk: Talk) -> None:
    make(broker, policy="slow", group="g", max_records=10)
    assert send(talk, "t", 10) == (0, 0)
    error, pause = send(talk, "t", 1)
    assert (error, pause > 0) == (0, True)
    farther = send(talk, "t", 9)[1]
    assert farther > pause  # the farther behind, the longer
    assert status(broker)["delayed_requests"] == 2
    assert status(broker)["over"]
    with closing(Talk(broker.address)) as group:
        assert group.commit("g", "t", 15) == 0
    assert send(talk, "t", 1) == (0, 0)
    assert status(broker)["lag"]["records"] == 6


def test_a_blocked_request_waits_until_the_group_has_caught_up(
    broker: BrokerThread, talk: Talk
) -> None:
    make(broker, policy="block", group="g", max_records=5)
    assert send(talk, "t", 6) == (0, 0)
    answers: list[tuple[int, int]] = []
    with closing(Talk(broker.address)) as blocked:
        sender = threading.Thread(target=lambda: answers.append(send(blocked, "t", 1)))
        sender.start()
        until(lambda: status(broker)["held_connections"] == 1)
        assert talk.stable_end("t") == (6, 6)  # nothing of it is in the log
        make(broker, "other")
        assert send(talk, "other", 100) == (0, 0)
        assert talk.commit("g", "t", 1) == 0
        sender.join(30)
    assert answers == [(0, 0)]
    assert talk.stable_end("t") == (7, 7)
    assert status(broker)["delayed_requests"] == 1
    assert status(broker)["refused_requests"] == 0


def test_a_request_that_waited_too_long_is_refused_and_leaves_nothing(
    broker: BrokerThread, talk: Talk
) -> None:
    make(broker, policy="block", group="g", max_records=0)
    assert send(talk, "t", 1) == (0, 0)
    timed_out = 7
    assert send(talk, "t", 1, timeout_ms=300)[0] == timed_out
    assert talk.stable_end("t") == (1, 1)
    assert status(broker)["refused_requests"] == 1


def test_a_held_request_of_somebody_who_left_is_not_carried_out(
    broker: BrokerThread, talk: Talk
) -> None:
    make(broker, policy="block", group="g", max_records=0)
    assert send(talk, "t", 1) == (0, 0)
    host, port = broker.address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(encode_request(APIS[ApiKey.PRODUCE], 9, 1, request("t"), b"hasty"))
        until(lambda: status(broker)["held_connections"] == 1)
    assert talk.commit("g", "t", 1) == 0
    until(lambda: status(broker)["held_connections"] == 0)
    until(lambda: len(broker.broker.listener.connections) == 1)
    assert talk.stable_end("t") == (1, 1)


def test_requests_behind_a_held_one_keep_their_order(broker: BrokerThread, talk: Talk) -> None:
    make(broker, policy="block", group="g", max_records=0)
    make(broker, "free")
    assert send(talk, "t", 1) == (0, 0)
    with closing(Talk(broker.address)) as eager:
        for topic in ("t", "free", "t"):
            eager.begin(ApiKey.PRODUCE, request(topic), 9)
        until(lambda: status(broker)["held_connections"] == 1)
        for offset in (1, 2):
            assert talk.commit("g", "t", offset) == 0
        offsets = [eager.end().responses[0].partition_responses[0].base_offset for _ in range(2)]
        talk.commit("g", "t", 2)
        offsets.append(eager.end().responses[0].partition_responses[0].base_offset)
    assert offsets == [1, 0, 2]


def test_a_queue_can_be_the_group_that_is_waited_for(broker: BrokerThread) -> None:
    import tailrace as tr

    make(broker, policy="block", group="workers", max_records=3)
    with (
        tr.connect(broker.address) as log,
        log.queue("t", group="workers") as queue,
        closing(Talk(broker.address)) as talk,
    ):
        assert send(talk, "t", 4) == (0, 0)
        talk.begin(ApiKey.PRODUCE, request("t"), 9)
        until(lambda: status(broker)["held_connections"] == 1)
        for job in queue.poll(10):
            job.ack()
        queue.flush()
        assert talk.end().responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize(("limit", "value"), [("max_bytes", 300), ("max_ms", 50)])
def test_bytes_and_time_are_limits_too(
    broker: BrokerThread, talk: Talk, limit: str, value: int
) -> None:
    make(broker, policy="slow", group="g", **{limit: value})
    send(talk, "t", 3)
    until(lambda: send(talk, "t", 1)[1] > 0)
    talk.commit("g", "t", talk.stable_end("t")[0])
    until(lambda: not status(broker)["over"])


def test_drop_keeps_no_more_than_the_limit_and_counts_what_groups_lost(
    broker: BrokerThread, talk: Talk
) -> None:
    make(broker, policy="drop", max_records=10)
    talk.commit("early", "t", 15)
    talk.commit("late", "t", 4)
    send(talk, "t", 20)
    until(lambda: status(broker)["dropped_records"] == 10)
    assert start(broker) == 10
    assert status(broker)["lost"] == {"late": 6}
    send(talk, "t", 10)
    until(lambda: status(broker)["dropped_records"] == 20)
    assert status(broker)["lost"] == {"late": 16, "early": 5}
    assert broker.broker.pressure.of_group("late")["lost"] == {"t": 16}


def start(broker: BrokerThread) -> int:
    partition = broker.broker.partition_by_name("t", 0)
    assert partition is not None
    return partition.log_start_offset


def test_drop_by_bytes_and_by_age(broker: BrokerThread, talk: Talk) -> None:
    make(broker, policy="drop", max_bytes=2_000)
    for _ in range(30):
        send(talk, "t", 1)
    until(lambda: start(broker) > 0)
    assert 15 <= start(broker) < 29
    with Admin(broker.address) as admin:
        admin.alter_topic_config("t", {f"{PREFIX}max.ms": "1"})
    until(lambda: start(broker) == 30)


def test_a_policy_needs_its_limit_and_its_group(broker: BrokerThread) -> None:
    for given in (
        {"policy": "slow", "group": "g"},
        {"policy": "block", "max_records": 5},
        {"policy": "drop"},
        {"policy": "panic"},
    ):
        with pytest.raises(RequestError):
            make(broker, **given)  # type: ignore[arg-type]


def test_taking_a_policy_away_releases_who_waits(broker: BrokerThread, talk: Talk) -> None:
    make(broker, policy="block", group="g", max_records=0)
    send(talk, "t", 1)
    with closing(Talk(broker.address)) as blocked:
        blocked.begin(ApiKey.PRODUCE, request("t"), 9)
        until(lambda: status(broker)["held_connections"] == 1)
        with Admin(broker.address) as admin:
            admin.alter_topic_config("t", {f"{PREFIX}policy": None})
        assert blocked.end().responses[0].partition_responses[0].error_code == 0


def test_the_figures_are_told_over_the_wire_and_on_the_page(
    broker: BrokerThread, talk: Talk
) -> None:
    make(broker, policy="slow", group="g", max_records=4)
    send(talk, "t", 5)
    talk.commit("g", "t", 2)
    with Admin(broker.address) as admin:
        told = json.loads(admin.status("topic", "t") or "{}")
        assert told["group"] == "g"
        assert told["delayed_requests"] == 1
        held = json.loads(admin.status("group", "g") or "{}")
        assert held["retention_used"].keys() == {"t"}
        assert held["holds_back"]["t"]["lag"]["records"] >= 3
        assert "tailrace.status" not in admin.topic_config("t")
    page = broker.broker.metrics.page().decode()
    labels = '{topic="t",consumergroup="g",policy="slow"}'
    assert f"tailrace_slow_consumer_delayed_requests_total{labels} 1.0" in page
    assert 'tailrace_consumergroup_retention_used_ratio{consumergroup="g",topic="t"' in page


def test_pauses_grow_with_the_lag_and_end() -> None:
    rule = Rule(SLOW, "g", max_records=100)
    assert rule.pause(Lag(100)) == 0
    assert 0 < rule.pause(Lag(101)) < rule.pause(Lag(200)) < rule.pause(Lag(400)) <= 5.0
    assert rule.pause(Lag(10**12)) == 5.0
    assert Rule(BLOCK, "g", max_records=1).pause(Lag(5)) == 0
    assert Rule(SLOW, "g", max_records=0).over(Lag(1))
    assert Rule(SLOW, "g", max_ms=5).over(Lag(1, 1, 6))


def test_describing_a_topic_and_a_group_tells_it(broker: BrokerThread, talk: Talk) -> None:
    from click.testing import CliRunner

    from tailrace.cli.main import cli

    def run(*words: str) -> str:
        return CliRunner().invoke(cli, [*words, "--log", broker.address]).output

    make(broker, policy="slow", group="g", max_records=100)
    send(talk, "t", 101)
    talk.commit("g", "t", 0)
    shown = run("topic", "describe", "t")
    assert "slow producers for group g, which is too far behind: 101 records" in shown
    assert "1 requests waited" in shown
    assert json.loads(run("topic", "describe", "t", "--json"))["slow_consumers"]["over"] is True
    assert "t waits for it (slow): holds producers back, 1 requests" in run(
        "group", "describe", "g"
    )
    make(broker, "u", policy="drop", max_records=1)
    talk.commit("g", "u", 0)
    send(talk, "u", 5)
    until(lambda: status(broker, "u")["lost"])
    assert "lost 4 records of u" in run("group", "describe", "g")
    assert "group g lost 4 records" in run("topic", "describe", "u")
