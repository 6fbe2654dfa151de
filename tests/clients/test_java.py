"""Apache Kafka's own command-line tools, on the Java client."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from servers.kafka import KafkaUnavailable, jars, tool
from tailrace.broker.embedded import BrokerProcess

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

TOOLS = "org.apache.kafka.tools"


@pytest.fixture(scope="module", autouse=True)
def kafka_jars() -> Path:
    try:
        return jars()
    except KafkaUnavailable as reason:
        pytest.skip(f"needs Kafka's jars: {reason}")


@pytest.fixture
def created(address: str, topic: str) -> str:
    topics(address, "--create", "--topic", topic, "--partitions", "3")
    return topic


def topics(address: str, *arguments: str) -> str:
    return tool(f"{TOOLS}.TopicCommand", "--bootstrap-server", address, *arguments)


def fill(address: str, name: str, count: int) -> None:
    tool(
        f"{TOOLS}.VerifiableProducer", "--bootstrap-server", address, "--topic", name,
        "--max-messages", str(count), "--acks", "-1",
    )  # fmt: skip


def test_kafka_topics_creates_describes_alters_lists_and_deletes(address: str, topic: str) -> None:
    topics(address, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=5")
    told = topics(address, "--describe", "--topic", topic)
    assert "PartitionCount: 2" in told
    assert "retention.ms=5" in told
    assert re.search(r"Partition: 1\s+Leader: 1\s+Replicas: 1\s+Isr: 1", told)
    topics(address, "--alter", "--topic", topic, "--partitions", "4")
    assert "PartitionCount: 4" in topics(address, "--describe", "--topic", topic)
    assert topic in topics(address, "--list").split()
    topics(address, "--delete", "--topic", topic)
    assert topic not in topics(address, "--list").split()


def test_verifiable_producer_and_consumer_agree(address: str, created: str) -> None:
    sent = tool(
        f"{TOOLS}.VerifiableProducer", "--bootstrap-server", address, "--topic", created,
        "--max-messages", "2000", "--acks", "-1",
    )  # fmt: skip
    events = [json.loads(line) for line in sent.splitlines() if line.startswith("{")]
    assert sum(event["name"] == "producer_send_success" for event in events) == 2000
    got = tool(
        f"{TOOLS}.VerifiableConsumer", "--bootstrap-server", address, "--topic", created,
        "--group-id", created, "--max-messages", "2000", "--reset-policy", "earliest",
    )  # fmt: skip
    events = [json.loads(line) for line in got.splitlines() if line.startswith("{")]
    assert sum(e["count"] for e in events if e["name"] == "records_consumed") == 2000
    assert any(e["name"] == "offsets_committed" and e["success"] for e in events)


def test_console_producer_and_consumer_pass_keys_and_values(address: str, created: str) -> None:
    tool(
        f"{TOOLS}.ConsoleProducer", "--bootstrap-server", address, "--topic", created,
        "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
        stdin="a:one\nb:two\n",
    )  # fmt: skip
    got = tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", address, "--topic", created,
        "--from-beginning", "--max-messages", "2", "--timeout-ms", "30000",
        "--formatter-property", "print.key=true", "--formatter-property", "key.separator=:",
    )  # fmt: skip
    assert sorted(got.split()) == ["a:one", "b:two"]


def test_perf_tools_move_all_messages(address: str, created: str) -> None:
    sent = tool(
        f"{TOOLS}.ProducerPerformance", "--bootstrap-server", address, "--topic", created,
        "--num-records", "20000", "--record-size", "500", "--throughput", "-1",
        "--command-property", "acks=all",
    )  # fmt: skip
    assert "20000 records sent" in sent
    got = tool(
        f"{TOOLS}.ConsumerPerformance", "--bootstrap-server", address, "--topic", created,
        "--num-records", "20000",
    )  # fmt: skip
    assert ", 20000, " in got.splitlines()[-1]


def test_consumer_groups_are_listed_described_reset_and_deleted(address: str, created: str) -> None:
    fill(address, created, 300)
    tool(
        f"{TOOLS}.VerifiableConsumer", "--bootstrap-server", address, "--topic", created,
        "--group-id", created, "--max-messages", "300", "--reset-policy", "earliest",
    )  # fmt: skip

    def groups(*arguments: str) -> str:
        return tool(
            f"{TOOLS}.consumer.group.ConsumerGroupCommand",
            "--bootstrap-server",
            address,
            *arguments,
        )

    assert created in groups("--list").split()
    described = groups("--describe", "--group", created)
    rows = [line.split() for line in described.splitlines() if line.startswith(created)]
    assert sum(int(row[3]) for row in rows) == 300
    assert all(row[5] == "0" for row in rows)
    groups("--reset-offsets", "--group", created, "--topic", created, "--to-earliest", "--execute")
    described = groups("--describe", "--group", created)
    rows = [line.split() for line in described.splitlines() if line.startswith(created)]
    assert sum(int(row[5]) for row in rows) == 300
    assert "successful" in groups("--delete", "--group", created)


def test_kafka_configs_changes_topics_and_brokers(address: str, created: str) -> None:
    def configs(*arguments: str) -> str:
        return tool("kafka.admin.ConfigCommand", "--bootstrap-server", address, *arguments)

    configs("--alter", "--topic", created, "--add-config", "retention.ms=777")
    assert "retention.ms=777" in configs("--describe", "--topic", created)
    configs("--alter", "--topic", created, "--delete-config", "retention.ms")
    assert "retention.ms=777" not in configs("--describe", "--topic", created)
    configs("--alter", "--broker", "1", "--add-config", "log.retention.ms=600000")
    assert "log.retention.ms=600000" in configs("--describe", "--broker", "1")
    configs("--alter", "--broker", "1", "--delete-config", "log.retention.ms")


def test_offsets_are_listed_and_records_deleted(address: str, topic: str, tmp_path: Path) -> None:
    topics(address, "--create", "--topic", topic, "--partitions", "1")
    fill(address, topic, 90)

    def offsets(at: str) -> dict[int, int]:
        told = tool(
            f"{TOOLS}.GetOffsetShell",
            "--bootstrap-server",
            address,
            "--topic",
            topic,
            "--time",
            at,
        )
        rows = (line.rsplit(":", 2) for line in told.split())
        return {int(index): int(offset) for _, index, offset in rows}

    assert sum(offsets("-1").values()) == 90
    (tmp_path / "delete.json").write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 5}]})
    )
    tool(
        f"{TOOLS}.DeleteRecordsCommand", "--bootstrap-server", address,
        "--offset-json-file", str(tmp_path / "delete.json"),
    )  # fmt: skip
    assert offsets("-2") == {0: 5}


def test_log_dirs_and_api_versions_are_described(address: str, created: str) -> None:
    told = tool(
        f"{TOOLS}.LogDirsCommand", "--bootstrap-server", address, "--describe",
        "--topic-list", created,
    )  # fmt: skip
    document = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    parts = document["brokers"][0]["logDirs"][0]["partitions"]
    assert {part["partition"] for part in parts} == {f"{created}-{index}" for index in range(3)}
    versions = tool(f"{TOOLS}.BrokerApiVersionsCommand", "--bootstrap-server", address)
    assert re.search(r"Produce\(0\): \d to 13", versions)


def test_dump_log_reads_our_segments(tmp_path: Path, topic: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        topics(broker.address, "--create", "--topic", topic, "--partitions", "1")
        fill(broker.address, topic, 500)
        broker.stop()
    folder = tmp_path / f"{topic}-0"
    told = tool(
        f"{TOOLS}.DumpLogSegments", "--files", str(folder / f"{0:020d}.log"), "--deep-iteration",
        "--print-data-log",
    )  # fmt: skip
    assert len(re.findall(r"\| offset: \d+", told)) == 500
    assert "isvalid: false" not in told
    for ending in ("index", "timeindex"):
        told = tool(f"{TOOLS}.DumpLogSegments", "--files", str(folder / f"{0:020d}.{ending}"),
                    "--index-sanity-check")  # fmt: skip
        assert "passed sanity check" in told or "Mismatches" not in told


def test_a_transactional_client_is_exactly_once(address: str, created: str) -> None:
    sent = tool(
        f"{TOOLS}.ProducerPerformance", "--bootstrap-server", address, "--topic", created,
        "--num-records", "5000", "--record-size", "100", "--throughput", "-1",
        "--transactional-id", created, "--transaction-duration-ms", "50",
    )  # fmt: skip
    assert "5000 records sent" in sent
    got = tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", address, "--topic", created,
        "--from-beginning", "--isolation-level", "read_committed", "--max-messages", "5000",
        "--timeout-ms", "60000",
    )  # fmt: skip
    assert len(got.splitlines()) == 5000
