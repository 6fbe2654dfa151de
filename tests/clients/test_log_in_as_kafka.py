"""Log-ins and limits of connections, side by side with Apache Kafka: the same talk, equal answers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from broker.authentication.test_users_and_tokens import Issuer
from servers.kafka import Kafka, KafkaUnavailable
from servers.processes import free_port
from tailrace.broker.embedded import BrokerThread
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from tailrace.wire.scram import ScramClient, make_credential

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

PASSWORD = "alices-secret"
PACKAGE = "org.apache.kafka.common.security"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
PLAIN = f'{PACKAGE}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
RATE, WINDOWS = 4, 2


@dataclass
class Both:
    """Where the listeners of each are."""

    ours: dict[str, str]
    kafka: dict[str, str]
    issuer: Issuer


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("both")
    issuer = Issuer()
    names = ("OPEN", "LOGIN", "FEW", "SLOW", "ADDRESS")
    common = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.login.plain.sasl.jaas.config": PLAIN,
        "listener.name.login.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": issuer.url,
        "listener.name.login.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.few.max.connections": "3",
        "listener.name.slow.max.connection.creation.rate": str(RATE),
        "quota.window.num": str(WINDOWS),
        "max.connections.per.ip.overrides": "127.0.0.2:2",
        "connection.failed.authentication.delay.ms": "50",
    }
    made = pytest.MonkeyPatch()
    made.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={issuer.url}")
    ports = {name: free_port() for name in (*names, "CONTROLLER")}
    listeners = ",".join(f"{name}://127.0.0.1:{ports[name]}" for name in names)
    try:
        bearer = "listener.name.login.oauthbearer"
        kafka = Kafka(
            directory,
            settings={
                **common,
                "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
                "listeners": f"{listeners},CONTROLLER://127.0.0.1:{ports['CONTROLLER']}",
                "advertised.listeners": listeners,
                "inter.broker.listener.name": "OPEN",
                "listener.security.protocol.map": ",".join(
                    f"{name}:{'SASL_PLAINTEXT' if name == 'LOGIN' else 'PLAINTEXT'}" for name in ports
                ),
                "listener.name.login.scram-sha-256.sasl.jaas.config": f"{PACKAGE}.scram.ScramLoginModule required;",
                "listener.name.login.scram-sha-512.sasl.jaas.config": f"{PACKAGE}.scram.ScramLoginModule required;",
                f"{bearer}.sasl.jaas.config": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required;",
                f"{bearer}.sasl.server.callback.handler.class": f"{PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler",
            },
            users={"alice": PASSWORD},
            ports=[ports["OPEN"]],
        )  # fmt: skip
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    finally:
        made.undo()
    thread = BrokerThread(
        directory / "ours",
        settings={
            **common,
            ALLOWED: issuer.url,
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
            "listener.security.protocol.map": ",".join(
                f"{name}:{'SASL_PLAINTEXT' if name == 'LOGIN' else 'PLAINTEXT'}" for name in names
            ),
        },
        durable=False,
    )
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        credential = make_credential(mechanism, PASSWORD.encode())
        thread.broker.authentication.users.change("alice", {mechanism: credential})
    ours = {
        each.endpoint.name: f"127.0.0.1:{each.endpoint.port}"
        for each in thread.broker.listener.acceptors
    }
    try:
        yield Both(ours, {name: f"127.0.0.1:{port}" for name, port in ports.items()}, issuer)
    finally:
        thread.stop()
        kafka.stop()
        issuer.server.shutdown()
        issuer.server.server_close()


# ------------------------------------------------------------------ log-ins

Said = list[tuple[Any, ...]]


class Talk:
    """A connection, and what was answered on it."""

    def __init__(self, address: str, issuer: Issuer) -> None:
        self.client = WireClient(address)
        self.issuer = issuer
        self.said: Said = []

    def ask(self, key: ApiKey, version: int, message: Any) -> Any:
        """One question; its answer, or None if there was none but the end."""
        try:
            answer = self.client.ask(key, version, message)
        except OSError:
            self.said.append((key.name, "closed"))
            return None
        told: tuple[Any, ...] = (
            key.name,
            answer.error_code if hasattr(answer, "error_code") else 0,
        )
        if key == ApiKey.SASL_HANDSHAKE:
            told += (sorted(answer.mechanisms),)
        elif key == ApiKey.SASL_AUTHENTICATE:
            told += (answer.error_message, getattr(answer, "session_lifetime_ms", 0) > 0)
        self.said.append(told)
        return answer

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))

    def authenticate(self, data: bytes, version: int = 2) -> Any:
        return self.ask(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(data))

    def versions(self, version: int = 3) -> Any:
        return self.ask(ApiKey.API_VERSIONS, version, ApiVersionsRequest("t", "1"))

    def metadata(self) -> Any:
        return self.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))

    def end(self) -> None:
        """What comes when nothing more is asked."""
        self.client.sock.settimeout(1)
        try:
            self.said.append(("end", "closed" if not self.client.sock.recv(1) else "spoke"))
        except TimeoutError:
            self.said.append(("end", "open"))
        except OSError:
            self.said.append(("end", "closed"))
        self.client.close()


def scram(mechanism: str, name: str, password: str) -> Callable[[Talk], None]:
    def talk(with_: Talk) -> None:
        with_.versions()
        with_.handshake(mechanism)
        exchange = ScramClient(mechanism, name, password)
        challenge = with_.authenticate(exchange.first())
        if challenge is not None and challenge.error_code == 0:
            with_.authenticate(exchange.final(bytes(challenge.auth_bytes)))
        with_.metadata()

    return talk


def plain(data: bytes) -> Callable[[Talk], None]:
    def talk(with_: Talk) -> None:
        with_.handshake("PLAIN")
        with_.authenticate(data)
        with_.metadata()

    return talk


def bearer(**claims: Any) -> Callable[[Talk], None]:
    def talk(with_: Talk) -> None:
        token = with_.issuer.token(**claims)
        with_.handshake("OAUTHBEARER")
        first = with_.authenticate(b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01")
        if first is not None and first.auth_bytes:
            with_.said.append(("told why", b"invalid_token" in bytes(first.auth_bytes)))
            with_.authenticate(b"\x01")
        with_.metadata()

    return talk


def steps(*made: Callable[[Talk], object]) -> Callable[[Talk], None]:
    def talk(with_: Talk) -> None:
        for step in made:
            step(with_)

    return talk


TALKS: dict[str, Callable[[Talk], None]] = {
    "SCRAM-SHA-256": scram("SCRAM-SHA-256", "alice", PASSWORD),
    "SCRAM-SHA-512": scram("SCRAM-SHA-512", "alice", PASSWORD),
    "SCRAM, a wrong password": scram("SCRAM-SHA-256", "alice", "wrong"),
    "PLAIN": plain(b"\0alice\0" + PASSWORD.encode()),
    "PLAIN, a wrong password": plain(b"\0alice\0wrong"),
    "PLAIN, an unknown user": plain(b"\0nobody\0wrong"),
    "PLAIN, for another": plain(b"bob\0alice\0" + PASSWORD.encode()),
    "PLAIN, no user": plain(b"\0\0x"),
    "PLAIN, no password": plain(b"\0alice\0"),
    "PLAIN, too few parts": plain(b"alice"),
    "a token": bearer(),
    "a token that has expired": bearer(iat=1_000_000_000, exp=1_000_000_100),
    "a token for others": bearer(aud="others"),
    "a token without a subject": bearer(sub=None),
    "a mechanism that is not offered": steps(lambda t: t.versions(), lambda t: t.handshake("GSSAPI"), lambda t: t.metadata()),
    "a mechanism that is none": steps(lambda t: t.handshake(""), lambda t: t.handshake("PLAIN")),
    "nothing of the kind": steps(lambda t: t.metadata()),
    "versions, then something else": steps(lambda t: t.versions(), lambda t: t.metadata()),
    "versions twice": steps(lambda t: t.versions(), lambda t: t.versions()),
    "a handshake, then something else": steps(lambda t: t.handshake("PLAIN"), lambda t: t.metadata()),
    "two handshakes": steps(lambda t: t.handshake("PLAIN"), lambda t: t.handshake("PLAIN")),
    "an answer without a handshake": steps(lambda t: t.authenticate(b"\0alice\0x")),
    "versions in the middle": steps(lambda t: t.handshake("PLAIN"), lambda t: t.versions()),
    "a handshake after the log-in": steps(plain(b"\0alice\0" + PASSWORD.encode()), lambda t: t.handshake("PLAIN"), lambda t: t.metadata()),
    "an answer after the log-in": steps(plain(b"\0alice\0" + PASSWORD.encode()), lambda t: t.authenticate(b"x"), lambda t: t.metadata()),
    "an older SaslAuthenticate": steps(lambda t: t.handshake("PLAIN"), lambda t: t.authenticate(b"\0alice\0wrong", 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", TALKS)
def test_the_answers_are_kafkas(both: Both, name: str) -> None:
    found = {}
    for who, place in (("ours", both.ours), ("kafka", both.kafka)):
        talk = Talk(place["LOGIN"], both.issuer)
        TALKS[name](talk)
        talk.end()
        found[who] = talk.said
    assert found["ours"] == found["kafka"]


def test_a_user_that_is_unknown_to_scram_is_not_given_away(both: Both) -> None:
    """Kafka refuses the first message of such a user, so whoever asks knows who there is. Ours
    goes on as with any user, and ends as with a wrong password."""
    talks = [Talk(both.ours["LOGIN"], both.issuer) for _ in range(3)]
    for talk, name in zip(talks, ("nobody", "alice", "nobody else"), strict=True):
        scram("SCRAM-SHA-512", name, "wrong")(talk)
        talk.end()
    assert talks[0].said == talks[1].said == talks[2].said
    theirs = Talk(both.kafka["LOGIN"], both.issuer)
    scram("SCRAM-SHA-512", "nobody", "wrong")(theirs)
    theirs.end()
    assert theirs.said[-3] in talks[0].said  # the same words, one message earlier


def test_an_unknown_user_takes_as_long_as_a_wrong_password(both: Both) -> None:
    """By the median of many, and within a millisecond or half: the answer is late by 50 ms either
    way, and deriving the key of a password that is not there takes what it takes."""

    def took(data: bytes) -> float:
        spent = []
        for _ in range(15):
            with WireClient(both.ours["LOGIN"]) as client:
                client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
                began = time.perf_counter()
                client.ask(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(data))
                spent.append(time.perf_counter() - began)
        return sorted(spent)[len(spent) // 2]

    known, unknown = took(b"\0alice\0wrong"), took(b"\0nobody\0wrong")
    assert known > 0.05
    assert 0.5 < unknown / known < 2


# ------------------------------------------------------------------ limits


def frame(number: int) -> bytes:
    """ApiVersions in version 0, with a number to know its answer by."""
    body = struct.pack(">hhih", 18, 0, number, -1)
    return struct.pack(">i", len(body)) + body


def answered(sock: socket.socket, seconds: float) -> bool:
    sock.settimeout(seconds)
    try:
        return bool(sock.recv(1))
    except TimeoutError:
        return False


def connect(address: str, source: str = "127.0.0.1") -> socket.socket:
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), 30, (source, 0))
    sock.sendall(frame(1))
    return sock


@pytest.mark.parametrize("who", ["ours", "kafka"])
def test_a_full_listener_lets_nobody_in_until_one_goes_and_others_stay_open(
    both: Both, who: str
) -> None:
    place = getattr(both, who)
    held = [connect(place["FEW"]) for _ in range(3)]
    assert all(answered(each, 30) for each in held)
    late = [connect(place["FEW"]) for _ in range(2)]
    assert not any(answered(each, 0.5) for each in late)  # it is connected, and waits
    with connect(place["OPEN"]) as other:
        assert answered(other, 30)
    for one, waiting in zip(held, late, strict=False):
        one.close()
        assert answered(waiting, 30)
    for each in (*held, *late):
        each.close()


@pytest.mark.parametrize("who", ["ours", "kafka"])
def test_too_many_connections_of_one_address_are_closed(both: Both, who: str) -> None:
    place = getattr(both, who)
    held = [connect(place["ADDRESS"], "127.0.0.2") for _ in range(2)]
    assert all(answered(each, 30) for each in held)
    refused = connect(place["ADDRESS"], "127.0.0.2")
    refused.settimeout(30)
    with refused:
        try:
            assert refused.recv(1) == b""
        except ConnectionResetError:
            pass
    with connect(place["ADDRESS"], "127.0.0.3") as other:
        assert answered(other, 30)
    for each in held:
        each.close()


@pytest.mark.parametrize("who", ["ours", "kafka"])
def test_connections_that_come_too_fast_wait(both: Both, who: str) -> None:
    place = getattr(both, who)
    began = time.monotonic()
    wanted = 6 * RATE
    for _ in range(wanted):
        with connect(place["SLOW"]) as sock:
            assert answered(sock, 60)
    # What the windows let through at once, and then no more than the rate.
    assert time.monotonic() - began > (wanted - WINDOWS * RATE) / RATE / 2
