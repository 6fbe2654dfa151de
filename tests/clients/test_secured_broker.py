"""Other people's clients at our broker's TLS and log-ins."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from broker.authentication.guarded_broker import PASSWORD, Guarded
from broker.authentication.test_users_and_tokens import Issuer
from servers.kafka import KafkaUnavailable, jars, tool
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.errors import CertificateError
from tailrace.client.admin import Admin
from tailrace.security import LogAddress, make_security

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guarded, Issuer]]:
    issuer = Issuer()
    made = Guarded(
        tmp_path_factory.mktemp("secured"),
        **{
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
            "org.apache.kafka.sasl.oauthbearer.allowed.urls": issuer.url,
            "delegation.token.secret.key": "the-secret-of-tokens",
            "connections.max.reauth.ms": "4000",
        },
    )
    yield made, issuer
    made.thread.stop()
    issuer.server.shutdown()
    issuer.server.server_close()


WAYS = ["certificate", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


def librdkafka(secured: tuple[Guarded, Issuer], way: str) -> dict[str, Any]:
    guarded, issuer = secured
    given: dict[str, Any] = {"ssl.ca.pem": guarded.authority.pem, "socket.timeout.ms": 10_000}
    if way == "certificate":
        issued = guarded.authority.issue("shop")
        return given | {
            "bootstrap.servers": f"127.0.0.1:{guarded.ports['SSL']}",
            "security.protocol": "SSL",
            "ssl.certificate.pem": issued.certificate,
            "ssl.key.pem": issued.key,
        }
    given |= {
        "bootstrap.servers": f"127.0.0.1:{guarded.ports['SASL_SSL']}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": way,
    }
    if way == "OAUTHBEARER":

        def token(_: str) -> tuple[str, float]:
            return issuer.token(), time.time() + 60

        return given | {"oauth_cb": token}
    return given | {"sasl.username": "alice", "sasl.password": PASSWORD}


@pytest.mark.parametrize("way", WAYS)
def test_librdkafka_writes_and_reads_across_a_session(
    secured: tuple[Guarded, Issuer], way: str
) -> None:
    settings = librdkafka(secured, way)
    topic = f"librdkafka-{way.lower()}"
    admin = AdminClient(settings)
    admin.poll(1)  # asks for a token
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(20)
    producer = Producer(settings)
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    sent: list[bytes] = []
    until = time.monotonic() + (1 if way == "certificate" else 7)  # longer than a session
    while time.monotonic() < until:
        value = b"%d" % len(sent) + b"x" * 5000
        producer.produce(topic, value)
        sent.append(value)
        producer.poll(0.02)
        message = consumer.poll(0.02)
        if message is not None and message.error() is None:
            found.append(message.value())
    assert producer.flush(20) == 0
    deadline = time.monotonic() + 30
    while len(found) < len(sent) and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    assert sorted(found) == sorted(sent)


def test_librdkafka_is_told_that_its_password_is_wrong(secured: tuple[Guarded, Issuer]) -> None:
    errors: list[str] = []
    settings = {
        **librdkafka(secured, "SCRAM-SHA-512"),
        "sasl.password": "wrong",
        "error_cb": lambda error: errors.append(error.name()),
    }
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)
    admin.poll(0.1)
    assert "_AUTHENTICATION" in errors


def test_librdkafkas_admin_makes_a_user(secured: tuple[Guarded, Issuer]) -> None:
    settings = librdkafka(secured, "PLAIN")
    admin = AdminClient(settings)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    change = UserScramCredentialUpsertion("dave", info, b"daves-secret")
    admin.alter_user_scram_credentials([change])["dave"].result(20)
    told = admin.describe_user_scram_credentials(["dave"])["dave"].result(20)
    assert [one.iterations for one in told.scram_credential_infos] == [8192]
    as_dave = {
        **librdkafka(secured, "SCRAM-SHA-512"),
        "sasl.username": "dave",
        "sasl.password": "daves-secret",
    }
    assert AdminClient(as_dave).list_topics(timeout=10).brokers


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("way", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_python_writes_and_reads(secured: tuple[Guarded, Issuer], way: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    guarded, _ = secured
    given = {
        "bootstrap_servers": f"127.0.0.1:{guarded.ports['SASL_SSL']}",
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(guarded.truststore),
        "sasl_mechanism": way,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    topic = f"kafka-python-{way.lower()}"
    with_producer = KafkaProducer(**given)
    with_producer.send(topic, b"value").get(timeout=20)
    with_producer.close()
    consumer = KafkaConsumer(
        topic, **given, auto_offset_reset="earliest", consumer_timeout_ms=15_000
    )
    assert next(iter(consumer)).value == b"value"
    consumer.close()


# Kafka's own tools


@pytest.fixture(scope="module")
def properties(
    secured: tuple[Guarded, Issuer], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., str]:
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(f"needs Kafka's tools: {reason}")
    guarded, _ = secured
    directory = tmp_path_factory.mktemp("properties")

    def write(user: str = "alice", password: str = PASSWORD, extra: str = "") -> str:
        file = directory / f"{user.replace('/', '_')}.properties"
        file.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={guarded.truststore}\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{user}" password="{password}" {extra};\n'
        )
        return str(file)

    return write


def test_kafkas_tools_make_a_user_who_writes_and_reads(
    secured: tuple[Guarded, Issuer], properties: Callable[..., str]
) -> None:
    bootstrap = ("--bootstrap-server", f"127.0.0.1:{secured[0].ports['SASL_SSL']}")
    said = tool(
        "kafka.admin.ConfigCommand",
        *bootstrap, "--command-config", properties(), "--alter", "--entity-type", "users",
        "--entity-name", "erin", "--add-config", "SCRAM-SHA-512=[iterations=4096,password=erins-secret]",
    )  # fmt: skip
    assert "Completed" in said
    erin = properties("erin", "erins-secret")
    tool("org.apache.kafka.tools.TopicCommand", *bootstrap, "--command-config", erin, "--create", "--topic", "java")  # fmt: skip
    tool("org.apache.kafka.tools.ConsoleProducer", *bootstrap, "--topic", "java", "--command-config", erin, stdin="one\ntwo\n")  # fmt: skip
    read = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *bootstrap, "--topic", "java",
        "--from-beginning", "--max-messages", "2", "--command-config", erin,
    )  # fmt: skip
    assert read.split() == ["one", "two"]


def test_kafkas_tool_makes_a_delegation_token_that_java_logs_in_with(
    secured: tuple[Guarded, Issuer], properties: Callable[..., str]
) -> None:
    bootstrap = ("--bootstrap-server", f"127.0.0.1:{secured[0].ports['SASL_SSL']}")
    said = tool(
        "org.apache.kafka.tools.DelegationTokenCommand", *bootstrap, "--command-config", properties(),
        "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob",
    )  # fmt: skip
    row = next(line for line in said.splitlines() if "User:alice" in line)
    token_id, hmac = row.split()[:2]
    assert re.fullmatch(r"[\w-]{22}", token_id)
    assert len(base64.b64decode(hmac)) == 64
    by_token = properties(token_id, hmac, "tokenauth=true")
    listed = tool("org.apache.kafka.tools.TopicCommand", *bootstrap, "--command-config", by_token, "--list")  # fmt: skip
    assert listed is not None


def test_a_name_is_written_as_java_writes_it(tmp_path: Path) -> None:
    """`X500Principal.getName()` of Java beside ours."""
    import subprocess

    from broker.authentication.test_tls import COMMON, MAIL, ORGANISATION, SERIAL, der
    from servers.kafka import java
    from tailrace.broker.authentication.distinguished_names import subject

    try:
        program = java()
    except KafkaUnavailable as reason:
        pytest.skip(f"needs Java: {reason}")
    names = [
        [(ORGANISATION, "Bar"), (COMMON, "mail"), (MAIL, "a@b.c")],
        [(COMMON, ' a+b,c"d; ')],
        [(COMMON, "#a=b<c>\\d")],
        [(SERIAL, "7"), (COMMON, "é 漢")],
        [("2.5.4.6", "DE"), ("2.5.4.8", "BE"), ("2.5.4.7", "B"), ("2.5.4.9", "S 1"), ("2.5.4.11", "U"),
         ("0.9.2342.19200300.100.1.25", "com"), ("0.9.2342.19200300.100.1.1", "u1")],
    ]  # fmt: skip
    files, ours = [], []
    for number, name in enumerate(names):
        path = tmp_path / f"{number}.der"
        path.write_bytes(der(*name))
        files.append(str(path))
        ours.append(subject(path.read_bytes()))
    source = tmp_path / "Names.java"
    source.write_text(
        "import java.io.*; import java.security.cert.*; class Names { public static void main(String[] a)"
        ' throws Exception { var out = new PrintStream(System.out, true, "UTF-8"); for (var f : a) { var c ='
        ' (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(f));'
        " out.println(c.getSubjectX500Principal().getName()); } } }"
    )
    run = subprocess.run([program, str(source), *files], capture_output=True, timeout=120)
    if run.returncode and b"jdk.compiler" in run.stderr:
        pytest.skip("needs a Java with its compiler")
    assert run.stdout.decode().splitlines() == ours, run.stderr.decode()


def test_a_java_key_store_serves_once_it_is_converted_as_the_hint_says(tmp_path: Path) -> None:
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("needs Java's keytool")

    def run(*arguments: str) -> None:
        subprocess.run([keytool, *arguments], check=True, capture_output=True, cwd=tmp_path)

    secret = "key-store-secret"
    run("-genkeypair", "-keystore", "broker.jks", "-storetype", "JKS", "-storepass", secret, "-keypass", secret,
        "-alias", "b", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1")  # fmt: skip
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(tmp_path / "broker.jks"),
        "ssl.keystore.password": secret,
    }
    with pytest.raises(CertificateError, match="Java key store") as refused:
        BrokerThread(tmp_path / "log", settings=settings, durable=False)
    hint = refused.value.hint.removeprefix("convert it: ").partition(",")[0]
    command = hint.replace("FILE", "broker.jks").split()[1:]
    run(*command, "-srcstorepass", secret, "-deststorepass", secret)
    converted = {
        **settings,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(tmp_path / "broker.jks.p12"),
    }
    run("-exportcert", "-keystore", "broker.jks.p12", "-storepass", secret, "-alias", "b", "-rfc", "-file", "ca.pem")  # fmt: skip
    with BrokerThread(tmp_path / "log", settings=converted, durable=False) as thread:
        security = make_security({"protocol": "SSL", "ca": str(tmp_path / "ca.pem")})
        with Admin(LogAddress(thread.address, security), timeout=20) as admin:
            admin.create_topic("t", 1, {})
