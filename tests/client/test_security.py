"""`Security`: what is accepted, what it becomes for each client, and that it shows nothing."""

from __future__ import annotations

import pickle
import socket
import ssl
import threading
from pathlib import Path

import pytest

from servers.certificates import Authority, Issued
from tailrace.client.connection import Connection, open_socket, secured
from tailrace.client.errors import AuthenticationError
from tailrace.errors import ConfigValueError
from tailrace.security import (
    LogAddress,
    Security,
    address_of,
    librdkafka_settings,
    make_security,
    reader_options,
    security_of,
)

SECRET = "hunter2-canary"
SCRAM = {"mechanism": "scram-sha-512", "username": "shop", "password": SECRET}


def test_what_is_not_said_is_the_safe_choice() -> None:
    assert make_security(SCRAM).protocol == "SASL_SSL"
    assert make_security({}).protocol == "SSL"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"protocol": "TLS"}, "not a security protocol"),
        ({"protocol": "SASL_SSL"}, "needs a mechanism"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI"}, "not a mechanism"),
        ({"mechanism": "PLAIN", "username": "u"}, "needs username and password"),
        ({"mechanism": "OAUTHBEARER", "username": "u", "password": "p"}, "token_endpoint"),
        ({"protocol": "SSL", "username": "u"}, "no meaning under SSL"),
        ({"protocol": "PLAINTEXT", "ca": "-----BEGIN CERTIFICATE-----"}, "no meaning"),
        ({"key": "-----BEGIN PRIVATE KEY-----"}, "needs its certificate"),
        ({"passwort": "x"}, "no setting 'passwort'"),
        ({"ca": "missing.pem"}, "cannot be read"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    values: dict[str, str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigValueError, match=words):
        make_security(values, tmp_path)


def test_a_security_shows_nothing_and_travels() -> None:
    address = LogAddress("kafka:9092", make_security(SCRAM))
    for shown in (repr(address), str(address), f"{address}", repr(security_of(address))):
        assert SECRET not in shown
        assert "shop" not in shown
    again = pickle.loads(pickle.dumps(address))
    assert again == "kafka:9092"
    assert security_of(again) == make_security(SCRAM)
    assert security_of("kafka:9092") is None


def test_librdkafka_and_java_are_given_the_same_by_their_names() -> None:
    settings = librdkafka_settings(LogAddress("kafka:9092", make_security(SCRAM)))
    assert settings["bootstrap.servers"] == "kafka:9092"
    assert settings["sasl.password"] == SECRET
    assert settings["ssl.endpoint.identification.algorithm"] == "https"
    quoted = make_security({**SCRAM, "password": 'a"b\\c'}).java()["sasl.jaas.config"]
    assert quoted.endswith('ScramLoginModule required username="shop" password="a\\"b\\\\c";')
    assert librdkafka_settings("kafka:9092") == {"bootstrap.servers": "kafka:9092"}


def test_a_path_is_read_from_the_project(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    assert make_security({"ca": "ca.pem"}, tmp_path).ca == authority.pem
    (tmp_path / "ca.der").write_text("not pem")
    with pytest.raises(ConfigValueError, match="not PEM"):
        make_security({"ca": "ca.der"}, tmp_path)
    (tmp_path / "bundle.pem").write_text(f"# Főtanúsítvány\n{authority.pem}")
    read = make_security({"ca": "bundle.pem"}, tmp_path)
    assert read.context().cert_store_stats()["x509_ca"] == 1
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(ConfigValueError, match="Java key store") as refused:
        make_security({"ca": "trust.jks"}, tmp_path)
    assert "keytool -importkeystore" in refused.value.hint


class TlsServer:
    """Completes handshakes and hangs up."""

    def __init__(self, issued: Issued, tmp_path: Path, clients: str | None = None) -> None:
        (tmp_path / "server.pem").write_text(issued.certificate + issued.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem")
        if clients is not None:
            context.load_verify_locations(cadata=clients)
            context.verify_mode = ssl.CERT_REQUIRED
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._context = context
        self.seen: list[object] = []
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            plain, _ = self._listening.accept()
            with plain, self._context.wrap_socket(plain, server_side=True) as made:
                self.seen.append(made.getpeercert())
                made.sendall(b"\0\0\0\4none")
        except OSError as error:
            self.seen.append(error)

    def close(self) -> None:
        self._listening.close()
        self._thread.join()


@pytest.mark.parametrize("wrong", ["authority", "name", "expired", ""])
def test_a_server_is_known_by_its_certificate_and_name(wrong: str, tmp_path: Path) -> None:
    import datetime

    authority = Authority()
    issued = authority.issue(
        "server",
        addresses=("127.0.0.9",) if wrong == "name" else ("127.0.0.1",),
        lifetime=datetime.timedelta(minutes=-30 if wrong == "expired" else 30),
    )
    known = Authority("another").pem if wrong == "authority" else authority.pem
    server = TlsServer(issued, tmp_path)
    opener = secured(open_socket, make_security({"ca": known}))
    try:
        if wrong:
            with pytest.raises(AuthenticationError, match="no TLS connection"):
                Connection("127.0.0.1", server.port, opener=opener)
        else:
            with opener("127.0.0.1", server.port, 10) as made:
                assert made.recv(8) == b"\0\0\0\4none"
    finally:
        server.close()


def test_a_client_certificate_is_shown_without_a_file(tmp_path: Path) -> None:
    authority = Authority()
    server = TlsServer(authority.issue("server"), tmp_path, clients=authority.pem)
    client = authority.issue("shop")
    security = make_security(
        {"ca": authority.pem, "certificate": client.certificate, "key": client.key}
    )
    with secured(open_socket, security)("127.0.0.1", server.port, 10) as made:
        assert made.recv(8) == b"\0\0\0\4none"
    server.close()
    (seen,) = server.seen
    assert isinstance(seen, dict)
    assert seen["subject"] == ((("commonName", "shop"),),)


def test_plain_text_where_tls_is_spoken_is_an_error(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    hung_up = threading.Thread(target=lambda: listening.accept()[0].close())
    hung_up.start()
    with pytest.raises(Exception, match=r"no TLS connection|no broker answers"):
        Connection(
            "127.0.0.1",
            listening.getsockname()[1],
            opener=secured(open_socket, Security("SSL")),
        )
    hung_up.join()
    listening.close()


def test_an_address_survives_the_options_of_a_reader() -> None:
    address = LogAddress("kafka:9092", make_security(SCRAM))
    options = reader_options(address)
    again = address_of({name.upper(): value for name, value in options.items()})
    assert (again, security_of(again)) == (address, security_of(address))
    assert [name for name, value in options.items() if SECRET in value] == ["log.password"]
    assert address_of(reader_options("kafka:9092")) == "kafka:9092"
