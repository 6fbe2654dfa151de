"""Other people's clients add, list and remove our access rules, and are refused by them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from broker.authorization.users import Guarded
from servers.kafka import KafkaUnavailable, jars, tool
from tailrace.broker.authorization.acls import (
    ALL,
    ALLOW,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    Acl,
)

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

OURS = Acl(CLUSTER, CLUSTER_NAME, LITERAL, "User:ANONYMOUS", "*", ALL, ALLOW)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """A broker where who does not log in may do everything to the cluster, and nothing else."""
    with Guarded(tmp_path / "log") as broker:
        broker.add([OURS])
        yield broker


def test_franz_go_adds_lists_and_removes(guarded: Guarded, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go")
    program = tmp_path / "client"
    made = subprocess.run(
        [go, "build", "-o", str(program), "."],
        cwd=Path(__file__).parent / "go",
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"Go could not build the client: {made.stderr[-300:]}")
    done = subprocess.run(
        [str(program), guarded.address, "t", "acls"], capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["created", "2", "described", "2", "deleted", "2"]
    assert guarded.acls() == {OURS}


@pytest.fixture
def kafka_acls(guarded: Guarded) -> Callable[..., str]:
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(f"needs Kafka's jars: {reason}")

    def run(*arguments: str) -> str:
        return tool(
            "org.apache.kafka.tools.AclCommand", "--bootstrap-server", guarded.address, *arguments
        )

    return run


def test_kafka_acls_adds_lists_and_removes(
    guarded: Guarded, kafka_acls: Callable[..., str]
) -> None:
    kafka_acls(
        "--add", "--allow-principal", "User:alice", "--allow-host", "10.0.0.1",
        "--operation", "Read", "--operation", "Write", "--topic", "shop.",
        "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    kafka_acls("--add", "--deny-principal", "User:bob", "--operation", "All", "--group", "*")
    alice = {
        Acl(TOPIC, "shop.", PREFIXED, "User:alice", "10.0.0.1", one, ALLOW) for one in (READ, WRITE)
    }
    bob = {Acl(GROUP, "*", LITERAL, "User:bob", "*", ALL, DENY)}
    assert guarded.acls() == alice | bob | {OURS}
    told = kafka_acls("--list", "--topic", "shop.orders", "--resource-pattern-type", "match")
    assert "User:alice" in told
    assert "User:bob" not in told
    assert "shop." not in kafka_acls("--list", "--topic", "shop.orders")
    kafka_acls("--remove", "--force", "--group", "*")
    assert guarded.acls() == alice | {OURS}
    kafka_acls(
        "--add", "--producer", "--consumer", "--allow-principal", "User:carol", "--topic", "t",
        "--group", "g",
    )  # fmt: skip
    assert Acl(GROUP, "g", LITERAL, "User:carol", "*", READ, ALLOW) in guarded.acls()


def test_librdkafka_adds_lists_and_removes(guarded: Guarded) -> None:
    admin = AdminClient({"bootstrap.servers": guarded.address})
    rule = AclBinding(
        ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, "User:alice", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    for future in admin.create_acls([rule], request_timeout=30).values():
        assert future.result() is None
    wanted = AclBindingFilter(
        ResourceType.TOPIC, "t", ResourcePatternType.MATCH, None, None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    assert admin.describe_acls(wanted, request_timeout=30).result() == [rule]
    [gone] = admin.delete_acls([wanted], request_timeout=30).values()
    assert gone.result() == [rule]
    assert guarded.acls() == {OURS}


def test_librdkafka_is_told_what_it_may_not_do(guarded: Guarded) -> None:
    guarded.admin.create("t")

    def send() -> KafkaError | None:
        seen: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": guarded.address, "message.timeout.ms": 20_000})
        producer.produce("t", b"v", on_delivery=lambda error, _: seen.append(error))
        producer.flush(30)
        return seen.pop()

    guarded.allow("ANONYMOUS", (DESCRIBE, TOPIC, "t"))
    refused = send()
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    guarded.allow("ANONYMOUS", (WRITE, TOPIC, "t"))
    assert send() is None

    def read(until: Callable[[KafkaError | None], bool]) -> KafkaError | None:
        consumer = Consumer(
            {
                "bootstrap.servers": guarded.address,
                "group.id": "g",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["t"])
        try:
            for _ in range(60):
                message = consumer.poll(1)
                if message is not None and until(message.error()):
                    return message.error()
        finally:
            consumer.close()
        raise AssertionError("nothing came")

    refused = read(lambda error: error is not None)
    assert refused is not None
    assert refused.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    guarded.allow("ANONYMOUS", (READ, GROUP, "g"))
    refused = read(lambda error: error is not None)
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    guarded.allow("ANONYMOUS", (READ, TOPIC, "t"))
    assert read(lambda error: error is None) is None
