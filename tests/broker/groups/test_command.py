"""`tailrace group` against a running broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer

from tailrace.broker.embedded import BrokerThread
from tailrace.cli.main import cli
from tailrace.client.admin import Admin

RECORDS = 40


@pytest.fixture
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), durable=False) as broker:
        with Admin(broker.address) as admin:
            admin.create_topic("clicks", 2)
        producer = Producer({"bootstrap.servers": broker.address})
        for number in range(RECORDS):
            producer.produce("clicks", value=str(number), partition=number % 2)
        assert producer.flush(10) == 0
        yield broker.address


def reader(address: str) -> Consumer:
    """A consumer that has read and committed everything."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["clicks"])
    read = 0
    while read < RECORDS:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        read += 1
    consumer.commit(asynchronous=False)
    return consumer


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=True)


def answer(*arguments: str) -> object:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.output)


def test_group_is_listed_described_moved_and_deleted(address: str) -> None:
    consumer = reader(address)
    at = ("--log", address)
    [row] = answer("group", "list", *at)  # type: ignore[misc]
    assert row == {"group": "readers", "state": "Stable", "kind": "classic", "members": 1, "lag": 0}
    described = answer("group", "describe", "readers", *at)
    assert isinstance(described, dict)
    assert [one["partitions"] for one in described["members"]] == [[["clicks", 0], ["clicks", 1]]]
    assert [one["lag"] for one in described["partitions"]] == [0, 0]

    living = run("group", "reset", "readers", "--to", "earliest", "--execute", *at)
    assert living.exit_code == 1
    assert "members" in living.exception.detail  # type: ignore[union-attr]
    assert run("group", "delete", "readers", *at).exit_code == 1
    consumer.close()

    shown = run("group", "reset", "readers", "--to", "5", *at)
    assert "nothing was changed" in shown.output
    assert [row["committed"] for row in partitions(address)] == [20, 20]
    answer("group", "reset", "readers", "--to", "5", "--topic", "clicks:1", "--execute", *at)
    assert [row["committed"] for row in partitions(address)] == [20, 5]
    answer("group", "reset", "readers", "--to", "earliest", "--execute", *at)
    assert [row["lag"] for row in partitions(address)] == [20, 20]
    answer("group", "reset", "readers", "--to", "2100-01-01T00:00:00", "--execute", *at)
    assert [row["lag"] for row in partitions(address)] == [0, 0]
    answer("group", "delete", "readers", *at)
    assert answer("group", "list", *at) == []
    assert run("group", "describe", "readers", *at).exit_code == 1
    assert run("group", "reset", "readers", "--to", "latest", *at).exit_code == 1


def partitions(address: str) -> list[dict[str, object]]:
    described = answer("group", "describe", "readers", "--log", address)
    assert isinstance(described, dict)
    return list(described["partitions"])
