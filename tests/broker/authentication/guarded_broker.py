"""One broker with a listener of every kind, and clients that speak TLS and SASL by hand."""

from __future__ import annotations

import ssl
from pathlib import Path

from servers.certificates import Authority, Issued
from tailrace.broker.embedded import BrokerThread
from tailrace.clock import SYSTEM, Clock
from tailrace.security import LogAddress, make_security
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from tailrace.wire.scram import ScramClient, make_credential

PASSWORD = "alices-secret-canary"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Guarded:
    """A broker that asks everybody who they are, but on its PLAINTEXT listener."""

    def __init__(self, directory: Path, *, clock: Clock = SYSTEM, **more: str) -> None:
        self.authority = Authority()
        self.server = self.authority.issue("broker")
        self.keystore, self.truststore = directory / "broker.pem", directory / "ca.pem"
        self.keystore.write_text(self.server.key + self.server.certificate)
        self.truststore.write_text(self.authority.pem)
        settings = {
            "listeners": "OPEN://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,"
            "SASL_SSL://127.0.0.1:0",
            "listener.security.protocol.map": "OPEN:PLAINTEXT",
            "ssl.keystore.location": str(self.keystore),
            "ssl.truststore.location": str(self.truststore),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/,DEFAULT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{JAAS} user_bob="bobs-secret";',
            "connection.failed.authentication.delay.ms": "20",
            **more,
        }
        self.thread = BrokerThread(directory / "log", settings=settings, clock=clock, durable=False)
        self.broker = self.thread.broker
        self.ports = {
            each.endpoint.name: each.endpoint.port for each in self.broker.listener.acceptors
        }
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            credential = make_credential(mechanism, PASSWORD.encode())
            self.broker.authentication.users.change("alice", {mechanism: credential})

    def address(self, listener: str, **security: str) -> LogAddress:
        tls = {} if listener == "SASL_PLAINTEXT" else {"ca": self.authority.pem}
        values = {"protocol": listener, **tls, **security}
        return LogAddress(f"127.0.0.1:{self.ports[listener]}", make_security(values))

    def alice(self, listener: str = "SASL_SSL", mechanism: str = "SCRAM-SHA-256") -> LogAddress:
        return self.address(listener, mechanism=mechanism, username="alice", password=PASSWORD)

    def talk(self, listener: str, issued: Issued | None = None, **context: object) -> WireClient:
        """A connection that says what the test wants said."""
        client = WireClient(f"127.0.0.1:{self.ports[listener]}", timeout_seconds=20)
        if listener in ("SSL", "SASL_SSL"):
            try:
                client.sock = self.tls(issued, **context).wrap_socket(
                    client.sock, server_hostname="localhost"
                )
            except BaseException:
                client.close()
                raise
        return client

    def tls(self, issued: Issued | None = None, **context: object) -> ssl.SSLContext:
        made = ssl.create_default_context(cadata=self.authority.pem)
        if issued is not None:
            path = self.keystore.parent / f"client-{id(issued)}.pem"
            path.write_text(issued.key + issued.certificate)
            made.load_cert_chain(path)
        for name, value in context.items():
            setattr(made, name, value)
        return made

    def principals(self) -> list[str]:
        return [str(each.principal) for each in self.broker.listener.connections.values()]


def handshake(client: WireClient, mechanism: str, version: int = 1) -> int:
    answer = client.ask(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))
    return int(answer.error_code)


def authenticate(client: WireClient, data: bytes, version: int = 2):  # type: ignore[no-untyped-def]
    return client.ask(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(data))


def scram(
    client: WireClient,
    name: str = "alice",
    password: str = PASSWORD,
    mechanism: str = "SCRAM-SHA-256",
    *,
    token: bool = False,
):  # type: ignore[no-untyped-def]
    """A whole log-in; the last answer."""
    assert handshake(client, mechanism) == 0
    exchange = ScramClient(mechanism, name, password, token=token)
    challenge = authenticate(client, exchange.first())
    assert challenge.error_code == 0
    last = authenticate(client, exchange.final(bytes(challenge.auth_bytes)))
    if last.error_code == 0:
        exchange.verify(bytes(last.auth_bytes))
    return last
