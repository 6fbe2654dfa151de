"""The Prometheus page, and the fixture users get."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Callable

from tailrace.broker.embedded import BrokerThread
from tailrace.testing.wire_client import WireClient, batch_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import offset_commit as committing

LINE = re.compile(r'^[a-z_:]+(\{[a-zA-Z_]+="[^"]*"(,[a-zA-Z_]+="[^"]*")*\})? [0-9.e+-]+$')


def figures(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = answer.read().decode().splitlines()
    found: dict[str, float] = {}
    for line in lines:
        if not line.startswith("#"):
            assert LINE.match(line), line
            name, _, value = line.rpartition(" ")
            assert name not in found, f"{name} stands there twice"
            found[name] = float(value)
    return found


def test_the_page_tells_what_happened(start: Callable[..., BrokerThread]) -> None:
    broker = start(metrics_listen="127.0.0.1:0")
    port = broker.broker.metrics_port
    with WireClient(broker.address) as client:
        client.create("t", 2)
        for _ in range(3):
            client.produce("t", batch_of(b"a", b"b"))
        client.fetch("t", 0)
        client.produce("t", b"garbage" * 30)
        client.say(ApiKey.PRODUCE, 7, client.produce_request("t", batch_of(b"c"), 1, acks=0))
        client.expect_nothing()
        client.fetch("t", 0, partition=1)
        found = figures(port)
    assert found['kafka_server_brokertopicmetrics_messagesin_total{topic="t"}'] == 7
    assert found['kafka_server_brokertopicmetrics_bytesin_total{topic="t"}'] > 100
    assert found['kafka_server_brokertopicmetrics_bytesout_total{topic="t"}'] > 100
    assert found['kafka_server_brokertopicmetrics_failedproducerequests_total{topic="t"}'] == 1
    assert found['kafka_network_requestmetrics_requests_total{request="Produce"}'] == 5
    assert found['kafka_network_requestmetrics_totaltime_seconds_count{request="Fetch"}'] == 2
    assert (
        found['kafka_network_requestmetrics_requestqueuetime_seconds_count{request="Fetch"}'] == 2
    )
    assert found['kafka_log_log_logendoffset{topic="t",partition="0"}'] == 6
    assert found['kafka_log_log_unsyncedrecords{topic="t",partition="0"}'] == 6
    assert found["tailrace_broker_produce_without_acknowledgement_total"] == 1
    assert found["kafka_server_socketservermetrics_connection_count"] == 1
    assert found["kafka_server_replicamanager_partitioncount"] == 2
    assert 0 <= found["kafka_network_socketserver_networkprocessoravgidle_percent"] <= 1
    assert found["process_resident_memory_bytes"] > 1 << 20


def test_the_lag_of_a_group_is_told(start: Callable[..., BrokerThread]) -> None:
    broker = start(metrics_listen="127.0.0.1:0")
    with WireClient(broker.address) as client:
        client.create("t")
        client.produce("t", batch_of(b"a", b"b", b"c", b"d", b"e"))
        client.ask(
            ApiKey.OFFSET_COMMIT,
            8,
            committing.OffsetCommitRequest(
                group_id="g",
                topics=[
                    committing.OffsetCommitRequestTopic(
                        name="t",
                        partitions=[committing.OffsetCommitRequestPartition(0, 2)],
                    )
                ],
            ),
        )
        found = figures(broker.broker.metrics_port)
    assert found['kafka_consumergroup_lag{consumergroup="g",topic="t",partition="0"}'] == 3


def test_a_rude_visitor_of_the_page_disturbs_nobody(start: Callable[..., BrokerThread]) -> None:
    broker = start(metrics_listen="127.0.0.1:0")
    port = broker.broker.metrics_port
    for rudeness in (b"", b"\x00" * 20_000, b"POST /metrics HTTP/1.1\r\n\r\n", b"GET\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            try:
                sock.sendall(rudeness)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
            except OSError:
                pass
    assert figures(port)["kafka_controller_kafkacontroller_activecontrollercount"] == 1


def test_the_fixture_gives_a_broker(tailrace_broker: str) -> None:
    with WireClient(tailrace_broker) as client:
        client.create("t")
        assert client.produce("t", batch_of(b"x")).base_offset == 0
