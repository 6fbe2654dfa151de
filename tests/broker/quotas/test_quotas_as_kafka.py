"""Quotas are set and shown as Apache Kafka does, by its own tools too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.conversations import Heard, differences, unique
from broker.quotas.quota_talk import QuotaTalk
from tailrace.broker.embedded import BrokerThread

EXACT, IS_DEFAULT, SPECIFIED = 0, 1, 2


@pytest.fixture
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), durable=False) as broker:
        yield broker.address


def script(address: str) -> Heard:
    user, other, client = "u", "v", "c"
    rate = {"producer_byte_rate": 1e6}
    with closing(QuotaTalk(address)) as talk:
        note = talk.note

        def settled(what: str, expected: object, *components: tuple[str, int, str | None]) -> None:
            for _ in range(100):  # Kafka's brokers hear of it a little later
                if talk.described(*components) == expected:
                    break
                time.sleep(0.05)
            note(what, talk.described(*components))

        note("nothing", talk.described())
        note("nobody", talk.alter(({}, rate)))
        note("empty user", talk.alter(({"user": ""}, rate)))
        note("group", talk.alter(({"group": "g"}, rate)))
        note("no such key", talk.alter(({"user": user}, {"magic": 1.0})))
        note("zero", talk.alter(({"user": user}, {"producer_byte_rate": 0.0})))
        note("negative", talk.alter(({"user": user}, {"request_percentage": -1.0})))
        note("fraction", talk.alter(({"user": user}, {"producer_byte_rate": 1.5})))
        note("fraction of time", talk.alter(({"user": other}, {"request_percentage": 1.5})))
        note("only checked", talk.alter(({"user": user}, rate), validate_only=True))
        note("user", talk.alter(({"user": user}, rate)))
        note(
            "both",
            talk.alter(({"user": user, "client-id": client}, {**rate, "consumer_byte_rate": 5.0})),
        )
        note("defaults", talk.alter(({"user": None}, rate), ({"client-id": None}, rate)))
        note("client", talk.alter(({"client-id": client}, {"controller_mutation_rate": 0.5})))
        note("remove what is not there", talk.alter(({"user": "w"}, {"producer_byte_rate": None})))
        everything = [
            ([("client-id", "<default>")], [("producer_byte_rate", 1e6)]),
            ([("client-id", client)], [("controller_mutation_rate", 0.5)]),
            (
                [("client-id", client), ("user", user)],
                [("consumer_byte_rate", 5.0), ("producer_byte_rate", 1e6)],
            ),
            ([("user", "<default>")], [("producer_byte_rate", 1e6)]),
            ([("user", user)], [("producer_byte_rate", 1e6)]),
            ([("user", other)], [("request_percentage", 1.5)]),
        ]
        settled("everything", everything)
        note("a user", talk.described(("user", EXACT, user)))
        note("a user alone", talk.described(("user", EXACT, user), strict=True))
        note("any user", talk.described(("user", SPECIFIED, None), strict=True))
        note("default user", talk.described(("user", IS_DEFAULT, None)))
        note(
            "client and user",
            talk.described(("user", SPECIFIED, None), ("client-id", EXACT, client)),
        )
        note("ip", talk.described(("ip", SPECIFIED, None)))
        note("ip and user", talk.described(("ip", SPECIFIED, None), ("user", SPECIFIED, None)))
        note("twice", talk.described(("user", SPECIFIED, None), ("user", EXACT, user)))
        note("no type", talk.described(("", SPECIFIED, None)))
        note("unknown type", talk.described(("group", SPECIFIED, None)))
        note("exact without a name", talk.described(("user", EXACT, None)))
        note("default with a name", talk.described(("user", IS_DEFAULT, user)))
        note("no such match", talk.described(("user", 7, None)))
        for entity, values in everything:
            parts = {kind: None if name == "<default>" else name for kind, name in entity}
            note(f"remove {entity}", talk.alter((parts, {key: None for key, _ in values})))
        settled("nothing again", [])
        return talk.heard  # fmt: skip


def test_the_script_runs_without_a_kafka(ours: str) -> None:
    heard = dict(script(ours))
    assert heard["nothing"] == heard["nothing again"] == []
    assert heard["user"] == heard["both"] == [0]
    assert heard["defaults"] == [0, 0]


@pytest.mark.clients
def test_quotas_are_set_and_shown_as_kafka_does(ours: str, kafka: str) -> None:
    found = differences(script(ours), script(kafka))
    assert not found, found


@pytest.mark.clients
def test_kafkas_own_tool_sets_and_shows_them(ours: str) -> None:
    from servers.kafka import tool

    def configs(*arguments: str) -> str:
        main = "kafka.admin.ConfigCommand"
        return tool(main, "--bootstrap-server", ours, *arguments)

    configs(
        "--alter", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048",
        "--entity-type", "users", "--entity-name", "alice",
        "--entity-type", "clients", "--entity-name", "loader",
    )  # fmt: skip
    configs("--alter", "--add-config", "request_percentage=50",
            "--entity-type", "clients", "--entity-default")  # fmt: skip
    shown = configs("--describe", "--entity-type", "users", "--entity-name", "alice",
                    "--entity-type", "clients", "--entity-name", "loader")  # fmt: skip
    assert "producer_byte_rate=1024.0" in shown
    assert "consumer_byte_rate=2048.0" in shown
    assert "request_percentage=50.0" in configs("--describe", "--entity-type", "clients")
    configs("--alter", "--delete-config", "request_percentage",
            "--entity-type", "clients", "--entity-default")  # fmt: skip
    assert "request_percentage" not in configs("--describe", "--entity-type", "clients")


@pytest.mark.clients
def test_librdkafka_hears_of_its_pauses(ours: str) -> None:
    from confluent_kafka import Producer

    pauses: list[float] = []
    with closing(QuotaTalk(ours)) as talk:
        talk.create_topic("t")
        talk.alter(({"client-id": "fast"}, {"producer_byte_rate": 20_000.0}))
    producer = Producer(
        {
            "bootstrap.servers": ours,
            "client.id": "fast",
            "linger.ms": 0,
            "throttle_cb": lambda event: pauses.append(event.throttle_time),
        }
    )
    for _ in range(3):
        producer.produce("t", b"x" * 100_000)
        producer.flush(30)
    producer.poll(1)
    assert max(pauses) > 0


@pytest.mark.clients
def test_javas_producer_keeps_to_its_quota(ours: str, tmp_path: Path) -> None:
    from servers.kafka import tool

    topic = unique("topic")
    with closing(QuotaTalk(ours)) as talk:
        talk.create_topic(topic)
        talk.alter(({"client-id": "java"}, {"producer_byte_rate": 100_000.0}))
    out = tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", topic, "--num-records", "1500",
        "--record-size", "1000", "--throughput", "-1", "--print-metrics", "--producer-props",
        f"bootstrap.servers={ours}", "client.id=java", "batch.size=10000",
    )  # fmt: skip
    [line] = [one for one in out.splitlines() if "produce-throttle-time-max" in one]
    assert float(line.split()[-1]) > 0
    # 1.5 MB at 100 KB/s, of which the windows let 1 MB through at once.
    [summary] = [one for one in out.splitlines() if "records/sec" in one and "99.9th" in one]
    assert float(summary.split("(")[1].split()[0]) < 0.6
