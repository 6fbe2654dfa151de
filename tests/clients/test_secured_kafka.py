"""Our client on an Apache Kafka that asks who we are: TLS, client certificates, PLAIN, SCRAM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace as tr
from servers.certificates import Authority
from servers.kafka import Kafka, KafkaUnavailable
from servers.processes import on_free_ports
from tailrace.client.admin import Admin
from tailrace.client.connection import Connection
from tailrace.client.errors import AuthenticationError, ClientError
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM
from tailrace.security import LogAddress, make_security

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
SIMPLE = "simple-secret"


class SecuredKafka:
    def __init__(self, directory: Path) -> None:
        self.authority = Authority()
        server, self.client = self.authority.issue("kafka"), self.authority.issue("shop")
        (directory / "server.pem").write_text(server.key + server.certificate)
        (directory / "ca.pem").write_text(self.authority.pem)
        on_free_ports(lambda ports: self._begin(directory, *ports), 4)

    def _begin(self, directory: Path, ssl: int, sasl: int, opened: int, controller: int) -> None:
        self.ssl, self.sasl, self.open = ssl, sasl, opened
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
        self.kafka = Kafka(
            directory,
            settings={
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listeners": f"PLAINTEXT://127.0.0.1:{self.open},SSL://127.0.0.1:{self.ssl},"
                f"SASL_SSL://127.0.0.1:{self.sasl},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.open},"
                f"SSL://127.0.0.1:{self.ssl},SASL_SSL://127.0.0.1:{self.sasl}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(directory / "server.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(directory / "ca.pem"),
                "listener.name.ssl.ssl.client.auth": "required",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{plain} required user_shop="{SIMPLE}";',
                "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{scram} required;",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{scram} required;",
                "connections.max.reauth.ms": "3000",
            },
            users={"shop": SIMPLE},
            ports=[self.open],
        )

    def address(self, **more: str) -> LogAddress:
        """Over SASL_SSL, or by certificate if no mechanism is given."""
        if "mechanism" in more:
            values = {"username": "shop", "password": SIMPLE, **more}
            return LogAddress(
                f"127.0.0.1:{self.sasl}", make_security({"ca": self.authority.pem, **values})
            )
        certificate = {"certificate": self.client.certificate, "key": self.client.key}
        return LogAddress(
            f"127.0.0.1:{self.ssl}",
            make_security({"ca": self.authority.pem, **certificate, **more}),
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    try:
        made = SecuredKafka(tmp_path_factory.mktemp("kafka"))
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    yield made
    made.kafka.stop()


WAYS = ["certificate", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.mark.parametrize("way", WAYS)
def test_records_go_in_and_out_by_every_client_of_ours(secured: SecuredKafka, way: str) -> None:
    address = secured.address() if way == "certificate" else secured.address(mechanism=way)
    topic = f"records-{way.lower()}"
    with Admin(address) as admin:
        admin.create_topic(topic, 1, {})
    with TransactionalWriter(address, f"writer-{way}") as writer:
        writer.init()
        writer.send(topic, 0, key=b"k", value=b"transactional")
        writer.commit()
    with tr.connect(address) as log:
        with log.producer() as producer:  # librdkafka
            producer.send(topic, value=b"plain").result(30)
        values = [record.value for record in log.read(topic)]
        assert values == [b"transactional", b"plain"]
        with log.consumer(
            group=f"g-{way}", topics=[topic], auto_offset_reset="earliest"
        ) as reading:
            first = next(iter(reading))
            assert first.value == b"transactional"


@pytest.mark.parametrize("way", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_an_error_that_says_nothing_of_it(
    secured: SecuredKafka, way: str
) -> None:
    wrong = secured.address(mechanism=way, password="wr0ng-canary")
    with pytest.raises(AuthenticationError) as caught, Admin(wrong, timeout=20) as admin:
        admin.list_topics()
    assert "wr0ng" not in caught.value.render()
    assert SIMPLE not in caught.value.render()


def test_a_mechanism_that_is_not_offered_is_named(secured: SecuredKafka) -> None:
    address = LogAddress(
        f"127.0.0.1:{secured.sasl}",
        make_security(
            {
                "ca": secured.authority.pem,
                "mechanism": "OAUTHBEARER",
                "username": "u",
                "password": "p",
                "token_endpoint": "https://127.0.0.1:1/token",
            }
        ),
    )
    refused = pytest.raises(AuthenticationError, match="does not offer OAUTHBEARER")
    with refused as caught, Admin(address, timeout=20) as admin:
        admin.list_topics()
    assert "SCRAM-SHA-512" in caught.value.detail


def test_a_session_is_renewed_before_it_ends(secured: SecuredKafka) -> None:
    import time

    address = secured.address(mechanism="SCRAM-SHA-256")
    with Admin(address) as admin:
        admin.create_topic("renewed", 1, {})
    with TransactionalWriter(address, "renewing") as writer:
        writer.init()
        until = time.monotonic() + 8  # more than two sessions of 3 s
        sent = 0
        while time.monotonic() < until:
            writer.send("renewed", 0, key=b"k", value=b"%d" % sent)
            writer.commit()
            sent += 1
            time.sleep(0.2)
    with tr.connect(address) as log:
        assert len(list(log.read("renewed"))) == sent


def test_plain_text_to_a_secured_listener_is_an_error(secured: SecuredKafka) -> None:
    with pytest.raises(ClientError), Admin(f"127.0.0.1:{secured.sasl}", timeout=10) as admin:
        admin.list_topics()


def test_a_slow_machine_does_not_begin_a_log_in_that_kafka_ends(
    secured: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a second after a log-in any handshake is a new one to Kafka."""
    from tailrace.client import cluster

    identify = cluster.identify

    def late(connection: Connection) -> bool:
        SYSTEM.sleep(1.3)
        return identify(connection)

    monkeypatch.setattr(cluster, "identify", late)
    with Admin(secured.address(mechanism="SCRAM-SHA-256"), timeout=20) as admin:
        admin.create_topic("slow", 1, {})
