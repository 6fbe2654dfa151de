"""Several data directories: spread, found again, and lost one at a time."""

from __future__ import annotations

from pathlib import Path

from tailrace.broker.embedded import BrokerThread
from tailrace.testing.wire_client import WireClient, batch_of, values_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import incremental_alter_configs as incremental
from tailrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest


def places(client: WireClient) -> dict[str, set[int]]:
    answer = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
    return {
        Path(result.log_dir).name: {
            one.partition_index for topic in result.topics for one in topic.partitions
        }
        for result in answer.results
    }


def test_partitions_are_spread_and_found_again(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    with BrokerThread(*directories, durable=False) as broker, WireClient(broker.address) as client:
        client.create("t", 6)
        for index in range(6):
            client.produce("t", batch_of(b"%d" % index), index)
        first = places(client)
    assert set(first) == {"one", "two"}
    assert all(len(found) == 3 for found in first.values())
    with (
        BrokerThread(*reversed(directories), durable=False) as broker,
        WireClient(broker.address) as client,
    ):
        assert places(client) == first
        for index in range(6):
            assert values_of(client.fetch("t", 0, index).records) == [b"%d" % index]


def test_a_lost_disk_stops_only_its_own_partitions(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    with BrokerThread(*directories, durable=False) as broker, WireClient(broker.address) as client:
        client.create("t", 4)
        for index in range(4):
            client.produce("t", batch_of(b"%d" % index), index)
        lost = places(client)["two"]
    (tmp_path / "two").rename(tmp_path / "elsewhere")
    (tmp_path / "two").write_text("a disk that is not mounted")
    with BrokerThread(*directories, durable=False) as broker, WireClient(broker.address) as client:
        for index in range(4):
            found = client.fetch("t", 0, index)
            if index in lost:
                assert found.error_code == 56, (index, found)
                assert client.produce("t", batch_of(b"x"), index).error_code == 56
            else:
                assert values_of(found.records) == [b"%d" % index]
                assert client.produce("t", batch_of(b"x"), index).error_code == 0


def test_producer_ids_and_settings_outlive_any_directory(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    seen: list[int] = []
    for order in (directories, directories[::-1], directories[1:]):
        with BrokerThread(*order, durable=False) as broker, WireClient(broker.address) as client:
            answer = client.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000))
            assert answer.producer_id not in seen
            seen.append(answer.producer_id)
            if len(seen) == 1:
                change = incremental.AlterableConfig("log.retention.ms", 0, "777")
                client.ask(
                    ApiKey.INCREMENTAL_ALTER_CONFIGS,
                    1,
                    incremental.IncrementalAlterConfigsRequest(
                        resources=[incremental.AlterConfigsResource(4, "1", [change])]
                    ),
                )
            assert broker.broker.settings.text("log.retention.ms") == "777"
