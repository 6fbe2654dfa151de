"""Several listeners: what each is called, speaks, and tells its clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.authentication.guarded_broker import JAAS, Guarded, scram
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.endpoints import endpoints
from tailrace.broker.errors import CertificateError, LogInSettingError
from tailrace.broker.settings import BrokerSettings
from tailrace.broker.start import Start, parse, read_properties, run
from tailrace.errors import OpenListenerError, TailraceError, UsageError
from tailrace.log.errors import InvalidConfigError
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest
from tailrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.metadata import MetadataRequest


def told_ports(client: WireClient) -> set[int]:
    """Every address that answers carry."""
    metadata = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
    cluster = client.ask(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest())
    found = client.ask(
        ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    )
    assert [each.node_id for each in metadata.brokers] == [1]
    return {
        metadata.brokers[0].port,
        cluster.brokers[0].port,
        found.coordinators[0].port,
    }


def test_answers_carry_the_address_of_the_listener_asked(guarded: Guarded) -> None:
    issued = guarded.authority.issue("shop")
    for name in ("OPEN", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        with guarded.talk(name, issued if name == "SSL" else None) as client:
            if name.startswith("SASL"):
                assert scram(client).error_code == 0
            assert told_ports(client) == {guarded.ports[name]}


def test_clients_are_told_the_advertised_address(tmp_path: Path) -> None:
    settings = {
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
        "advertised.listeners": "OUT://broker.example:9099",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
    }
    with BrokerThread(tmp_path, settings=settings, durable=False) as thread:
        inside, outside = (each.endpoint.port for each in thread.broker.listener.acceptors)
        with WireClient(f"127.0.0.1:{inside}") as client:
            assert told_ports(client) == {inside}
        with WireClient(f"127.0.0.1:{outside}") as client:
            answer = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
            assert (answer.brokers[0].host, answer.brokers[0].port) == ("broker.example", 9099)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"listeners": "ODD://127.0.0.1:1"}, "no protocol"),
        ({"listeners": "PLAINTEXT://h"}, "address that is none"),
        ({"listeners": "SSL://127.0.0.1:1,SSL://127.0.0.1:2"}, "twice"),
        ({"listeners": "SSL://127.0.0.1:1,PLAINTEXT://127.0.0.1:1"}, "same address"),
        (
            {"listeners": "SSL://127.0.0.1:1", "advertised.listeners": "PLAINTEXT://h:1"},
            "no listener",
        ),
        (
            {"listeners": "SSL://127.0.0.1:1", "advertised.listeners": "SSL://0.0.0.0:1"},
            "cannot connect",
        ),
        ({"listener.security.protocol.map": "A:KERBEROS"}, "no protocol"),
    ],
)
def test_listeners_that_cannot_be_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidConfigError, match=words):
        endpoints(BrokerSettings(settings))


@pytest.mark.parametrize(
    "name",
    ["listener.name.x.num.partitions", "listener.name.x",
     "listener.name.x.sasl.jaas.config", "listener.name.x.plain.ssl.client.auth"],
)  # fmt: skip
def test_what_cannot_be_said_of_a_listener_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfigError, match="no setting"):
        BrokerSettings({name: "1"})


def test_the_most_special_setting_of_a_listener_counts() -> None:
    settings = BrokerSettings(
        {
            "connections.max.reauth.ms": "1",
            "listener.name.a.connections.max.reauth.ms": "2",
            "listener.name.a.plain.connections.max.reauth.ms": "3",
        }
    )
    found = [
        settings.of_listener(listener, "connections.max.reauth.ms", mechanism)
        for listener, mechanism in (("B", "PLAIN"), ("A", "SCRAM-SHA-256"), ("A", "PLAIN"))
    ]
    assert found == ["1", "2", "3"]


@pytest.mark.parametrize("listener", ["PLAINTEXT://0.0.0.0:1", "SASL_PLAINTEXT://:1", "0.0.0.0:1"])
def test_an_open_listener_must_be_meant(tmp_path: Path, listener: str) -> None:
    with pytest.raises(OpenListenerError) as caught:
        run(Start([str(tmp_path)], listener))
    assert "allow.insecure.listeners" in caught.value.hint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}, LogInSettingError, "no mechanism"),
        ({"listeners": "SSL://127.0.0.1:0"}, CertificateError, "no certificate"),
        (
            {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": "/nowhere/x.pem"},
            CertificateError,
            "cannot be read",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": "Something else",
            },
            LogInSettingError,
            "cannot be read",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{JAAS} user___tailrace="x";',
            },
            LogInSettingError,
            "the project itself",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "http://127.0.0.1:1/keys",
            },
            LogInSettingError,
            "not in the list",
        ),
    ],
)
def test_a_listener_that_could_let_nobody_in_does_not_start(
    tmp_path: Path, settings: dict[str, str], kind: type[TailraceError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        BrokerThread(tmp_path, settings=settings, durable=False)


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("ssl.keystore.type", "JKS", "keytool -importkeystore"),
        ("listener.name.ssl.ssl.truststore.type", "jks", "keytool -importkeystore"),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-512,GSSAPI", "SCRAM-SHA-512"),
        ("sasl.kerberos.service.name", "kafka", "SCRAM-SHA-512"),
        ("listener.name.x.gssapi.sasl.jaas.config", "x", "SCRAM-SHA-512"),
    ],
)
def test_what_kafka_has_and_this_broker_has_not_is_refused_by_name(
    name: str, value: str, hint: str
) -> None:
    with pytest.raises(InvalidConfigError, match=r"Java key stores|Kerberos") as refused:
        BrokerSettings({name: value})
    assert hint in refused.value.hint


def test_a_java_key_store_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "broker.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(tmp_path / "broker.jks"),
    }
    with pytest.raises(CertificateError, match="Java key store") as refused:
        BrokerThread(tmp_path / "log", settings=settings, durable=False)
    assert "keytool -importkeystore" in refused.value.hint


def test_secrets_of_settings_are_told_to_nobody(guarded: Guarded) -> None:
    with guarded.talk("SASL_SSL") as client:
        assert scram(client).error_code == 0
        resource = DescribeConfigsResource(4, "1", None)
        answer = client.ask(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True),
        )
    (result,) = answer.results
    assert result.error_code == 0
    found = {each.name: each for each in result.configs}
    jaas = found["listener.name.sasl_ssl.plain.sasl.jaas.config"]
    assert (jaas.value, jaas.is_sensitive, jaas.config_type) == (None, True, 9)
    assert "bobs-secret" not in repr(answer)
    assert found["ssl.client.auth"].value == "none"


def test_settings_come_from_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "# Kafka's form\nlisteners=SASL_SSL://0.0.0.0:9093\n\n"
        'listener.name.sasl_ssl.plain.sasl.jaas.config=X \\\n  user_a="${TR_TEST_SECRET}";\n'
    )
    with pytest.raises(UsageError, match="TR_TEST_SECRET"):
        read_properties(str(file))
    monkeypatch.setenv("TR_TEST_SECRET", "s3cret=x")
    assert read_properties(str(file)) == {
        "listeners": "SASL_SSL://0.0.0.0:9093",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": 'X   user_a="s3cret=x";',
    }
    start = parse(["--data", "d", "--config", str(file), "--listen", "SSL://127.0.0.1:1"])
    assert start is not None
    assert (start.properties, start.listen) == ([str(file)], "SSL://127.0.0.1:1")
