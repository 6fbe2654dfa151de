"""TLS on the broker's own loop: large and many frames, bad peers, certificates and who they are."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import random
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ObjectIdentifier
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker.authentication.guarded_broker import Guarded, scram
from servers.certificates import Authority, Issued
from tailrace.broker.authentication.distinguished_names import parse_rules, subject, user_of
from tailrace.broker.authentication.tls import Tls
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.endpoints import warnings
from tailrace.broker.errors import CertificateError
from tailrace.broker.handshakes import Shaken
from tailrace.broker.secure_connection import SecureConnection
from tailrace.broker.settings import BrokerSettings
from tailrace.log.errors import InvalidConfigError
from tailrace.testing.wire_client import WireClient, batch_of, values_of
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.frames import decode_response, encode_request
from tailrace.wire.messages import produce as producing
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.metadata import MetadataRequest


def is_served(client: WireClient) -> bool:
    return bool(client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[])).brokers)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_records_of_every_size_come_back_as_they_went_in(
    guarded: Guarded, version: ssl.TLSVersion
) -> None:
    issued = guarded.authority.issue("shop")
    with guarded.talk("SSL", issued, minimum_version=version, maximum_version=version) as client:
        assert client.sock.version() == version.name.replace("_", ".")  # type: ignore[attr-defined]
        topic = f"sizes-{version.name.lower()}"
        client.create(topic)
        sent: list[bytes | None] = []
        for size in (1, 100, 16_000, 16_384, 16_385, 70_000, 1_000_000):
            value = bytes([size % 251]) * size
            assert client.produce(topic, batch_of(value)).error_code == 0
            sent.append(value)
        found = client.fetch(topic, 0, partition_max_bytes=1 << 24)
        assert values_of(found.records) == sent


def test_a_reader_that_is_slow_gets_every_byte(guarded: Guarded) -> None:
    issued = guarded.authority.issue("shop")
    with guarded.talk("SSL", issued) as writer, guarded.talk("SSL", issued) as reader:
        writer.create("slow")
        sent: list[bytes | None] = [bytes([n]) * 900_000 for n in range(12)]
        for value in sent:
            assert value is not None
            assert writer.produce("slow", batch_of(value)).error_code == 0
        request = reader.fetch_request("slow", 0, partition_max_bytes=1 << 25)
        reader.say(ApiKey.FETCH, 12, request)
        time.sleep(0.3)  # the broker's socket is full by now
        assert is_served(writer)
        found = reader.hear().responses[0].partitions[0]
        assert values_of(found.records) == sent


class ByHand:
    """A TLS connection whose encrypted bytes leave in the pieces a test wants."""

    def __init__(self, guarded: Guarded, version: ssl.TLSVersion) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = guarded.tls(
            guarded.authority.issue("shop"), minimum_version=version, maximum_version=version
        )
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self._plain = socket.create_connection(("127.0.0.1", guarded.ports["SSL"]), timeout=20)
        self._step(self._tls.do_handshake)

    def _step(self, step: Callable[[], bytes | None]) -> bytes:
        while True:
            try:
                return step() or b""
            except ssl.SSLWantReadError:
                self._plain.sendall(self._out.read())
                self._in.write(self._plain.recv(1 << 16))
            finally:
                self._plain.sendall(self._out.read())

    def encrypt(self, data: bytes | memoryview, record_bytes: int) -> bytes:
        for begin in range(0, len(data), record_bytes):
            self._tls.write(data[begin : begin + record_bytes])
        return self._out.read()

    def send(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self._plain.sendall(piece)
            time.sleep(0.002)  # so that most are read by themselves

    def answer(self) -> producing.ProduceResponse:
        (length,) = struct.unpack(">i", self._read(4))
        _, answer = decode_response(APIS[ApiKey.PRODUCE], 9, self._read(length))
        assert isinstance(answer, producing.ProduceResponse)
        return answer

    def _read(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            found += self._step(partial(self._tls.read, count - len(found)))
        return bytes(found)

    def close(self) -> None:
        self._plain.close()


def produce_frame(topic: str, size: int) -> bytes:
    partition = producing.PartitionProduceData(0, bytes(batch_of(b"v" * size)))
    asked = producing.ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[producing.TopicProduceData(name=topic, partition_data=[partition])],
    )
    return bytes(encode_request(APIS[ApiKey.PRODUCE], 9, 7, asked))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("record_bytes", [700, 2_800, 16_384])
def test_a_frame_is_served_wherever_its_bytes_are_cut(
    guarded: Guarded, version: ssl.TLSVersion, record_bytes: int
) -> None:
    """The broker waits for a good part of a large frame, and never for more than will come."""
    topic = f"cut-{version.name.lower()}-{record_bytes}"
    with guarded.talk("OPEN") as client:
        client.create(topic)
    by_hand = ByHand(guarded, version)
    cuts = random.Random(record_bytes)
    sizes = (60_000, 90_000, 350_000, 900_000)
    last = (1, 5, 30, 4_000, 16_400, 22_000, 70_000)
    for number, end in enumerate(last):
        frame = produce_frame(topic, sizes[number % len(sizes)])
        secret = by_hand.encrypt(frame, record_bytes)
        places = sorted(
            {*(cuts.randrange(1, len(secret)) for _ in range(8)), max(1, len(secret) - end)}
        )
        by_hand.send(secret[a:b] for a, b in itertools.pairwise([0, *places, len(secret)]))
        assert by_hand.answer().responses[0].partition_responses[0].error_code == 0
    by_hand.close()
    with guarded.talk("OPEN") as client:
        found = client.fetch(topic, 0, partition_max_bytes=1 << 24)
        expected = [b"v" * sizes[number % len(sizes)] for number in range(len(last))]
        assert values_of(found.records) == expected


def test_the_system_gathers_the_rest_of_a_large_frame(guarded: Guarded) -> None:
    """A record of TLS does not wake the broker each; what it waits for is less than what comes."""
    with guarded.talk("OPEN") as client:
        client.create("gathered")
    by_hand = ByHand(guarded, ssl.TLSVersion.TLSv1_3)
    (connection,) = (
        each for each in guarded.broker.listener.connections.values() if each.listener == "SSL"
    )
    frame = produce_frame("gathered", 900_000)

    def low_water() -> int:
        found: int = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        return found

    for begin, end in ((0, 40_000), (40_000, 600_000)):
        by_hand.send([by_hand.encrypt(frame[begin:end], 16_384)])
        wait_until(lambda begin=begin: connection.filled_bytes > begin)  # type: ignore[misc]
        assert 65_536 < low_water() < len(frame) - connection.filled_bytes
    by_hand.send([by_hand.encrypt(frame[600_000:], 16_384)])
    assert by_hand.answer().responses[0].partition_responses[0].error_code == 0
    assert low_water() == 1
    by_hand.close()


def test_the_last_frame_of_one_who_leaves_is_served(guarded: Guarded) -> None:
    issued = guarded.authority.issue("shop")
    with guarded.talk("OPEN") as reader:
        reader.create("leaving")
        with guarded.talk("SSL", issued) as client:
            assert client.produce("leaving", batch_of(b"v" * 900_000)).error_code == 0
            request = client.produce_request("leaving", batch_of(b"w" * 500_001), acks=0)
            client.say(ApiKey.PRODUCE, 9, request)
        expected = [b"v" * 900_000, b"w" * 500_001]
        wait_until(
            lambda: (
                values_of(reader.fetch("leaving", 0, partition_max_bytes=1 << 24).records)
                == expected
            )
        )


def test_nothing_is_held_back_once_an_answer_is_sent(guarded: Guarded) -> None:
    issued = guarded.authority.issue("shop")
    with guarded.talk("SSL", issued) as client:
        client.create("corked")
        assert client.produce("corked", batch_of(b"v" * 700_000)).error_code == 0
        port = client.sock.getsockname()[1]
        (connection,) = (
            each
            for each in guarded.broker.listener.connections.values()
            if each.sock.getpeername()[1] == port
        )
        for _ in range(3):
            found = client.fetch("corked", 0, partition_max_bytes=1 << 24)
            assert values_of(found.records) == [b"v" * 700_000]
            assert connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK) == 0


def test_many_requests_in_one_record_are_all_answered(guarded: Guarded) -> None:
    with guarded.talk("SSL", guarded.authority.issue("shop")) as client:
        request = APIS[ApiKey.API_VERSIONS]
        frames = b"".join(
            encode_request(request, 3, number, ApiVersionsRequest("t", "1"))
            for number in range(700)
        )
        client.send_bytes(frames)
        numbers = [struct.unpack_from(">i", client.read_frame())[0] for _ in range(700)]
        assert numbers == list(range(700))


def test_who_does_not_show_a_trusted_certificate_is_not_let_in(guarded: Guarded) -> None:
    long_ago, later = datetime.timedelta(days=-2), datetime.timedelta(days=1)
    foreign = Authority("somebody else").issue("shop", lifetime=later)
    expired = guarded.authority.issue("shop", lifetime=long_ago)
    before = guarded.broker.listener.handshakes_failed_total
    soon = guarded.authority.issue("shop", begins_in=datetime.timedelta(hours=1))
    for issued in (None, foreign, expired, soon):
        with pytest.raises((ssl.SSLError, OSError)), guarded.talk("SSL", issued) as client:
            is_served(client)
    deadline = time.monotonic() + 30
    while guarded.broker.listener.handshakes_failed_total < before + 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_revoked_certificate_is_not_let_in(tmp_path: Path) -> None:
    revoking = Guarded(tmp_path)
    try:
        good, bad = revoking.authority.issue("good"), revoking.authority.issue("bad")
        now = datetime.datetime.now(datetime.UTC)
        number = x509.load_pem_x509_certificate(bad.certificate.encode()).serial_number
        crl = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(x509.load_pem_x509_certificate(revoking.authority.pem.encode()).subject)
            .last_update(now - datetime.timedelta(hours=1))
            .next_update(now + datetime.timedelta(hours=1))
            .add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now).build()
            )
            .sign(revoking.authority._key, hashes.SHA256())
        )
        with revoking.talk("SSL", bad) as client:
            assert is_served(client)
        revoking.truststore.write_text(
            revoking.authority.pem + crl.public_bytes(serialization.Encoding.PEM).decode()
        )
        refresh(revoking, "SSL")
        with pytest.raises((ssl.SSLError, OSError)), revoking.talk("SSL", bad) as client:
            is_served(client)
        with revoking.talk("SSL", good) as client:
            assert is_served(client)
    finally:
        revoking.thread.stop()


def refresh(guarded: Guarded, listener: str) -> None:
    """What the sweep does every few seconds."""
    import threading

    done = threading.Event()
    tls = next(a.tls for a in guarded.broker.listener.acceptors if a.endpoint.name == listener)
    assert tls is not None
    guarded.broker.call_from_thread(lambda: (tls.refresh(), done.set()))  # type: ignore[func-returns-value]
    assert done.wait(20)


def test_a_new_certificate_is_taken_without_a_restart_and_a_strange_one_is_not(
    tmp_path: Path,
) -> None:
    renewed = Guarded(tmp_path)

    def served() -> int:
        with renewed.talk("SASL_SSL") as client:
            shown = client.sock.getpeercert(True)  # type: ignore[attr-defined]
            return x509.load_der_x509_certificate(shown).serial_number

    def put(text: str) -> None:
        beside = renewed.keystore.with_suffix(".new")
        beside.write_text(text)
        beside.replace(renewed.keystore)
        refresh(renewed, "SASL_SSL")

    try:
        with renewed.talk("SASL_SSL") as old:
            first = served()
            new = renewed.authority.issue("broker")
            put(new.key + new.certificate)
            second = served()
            assert second != first
            put("not a certificate")
            assert served() == second
            stranger = renewed.authority.issue("stranger")
            put(stranger.key + stranger.certificate)
            assert served() == second
            other = renewed.authority.issue("broker", names=("elsewhere",))
            put(other.key + other.certificate)
            assert served() == second
            assert scram(old).error_code == 0  # connections that exist stay
    finally:
        renewed.thread.stop()


def test_a_key_in_a_pkcs12_file_serves_as_well(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("broker")
    packed = pkcs12.serialize_key_and_certificates(
        b"broker",
        serialization.load_pem_private_key(issued.key.encode(), None),  # type: ignore[arg-type]
        x509.load_pem_x509_certificate(issued.certificate.encode()),
        None,
        serialization.BestAvailableEncryption(b"store-secret-canary"),
    )
    (tmp_path / "broker.p12").write_bytes(packed)
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(tmp_path / "broker.p12"),
        "ssl.keystore.password": "store-secret-canary",
    }
    with BrokerThread(tmp_path / "log", settings=settings, durable=False) as thread:
        client = WireClient(thread.address)
        context = ssl.create_default_context(cadata=authority.pem)
        client.sock = context.wrap_socket(client.sock, server_hostname="localhost")
        with client:
            assert is_served(client)
    with pytest.raises(CertificateError) as caught:
        Tls("SSL", BrokerSettings({**settings, "ssl.keystore.password": "another-canary"}))
    assert "canary" not in caught.value.render()


def test_other_protocols_and_half_handshakes_disturb_nobody(guarded: Guarded) -> None:
    place = ("127.0.0.1", guarded.ports["SSL"])
    before = guarded.broker.listener.handshakes_failed_total
    with guarded.talk("SSL", guarded.authority.issue("shop")) as client:
        for data in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\0\0\0\x10\0\x12\0\0\0\0\0\1\0\0",
            b"\x16\x03\x01",
        ):
            with socket.create_connection(place, timeout=20) as other:
                other.sendall(data)
                if data[:1] != b"\x16":
                    with contextlib.suppress(ConnectionResetError):
                        while other.recv(100):
                            pass  # an alert, and then the end
        half = [socket.create_connection(place, timeout=20) for _ in range(50)]
        try:
            for each in half:
                each.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a hello
            assert is_served(client)
        finally:
            for each in half:
                each.close()
        assert is_served(client)
    assert guarded.broker.listener.handshakes_failed_total >= before + 2


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_versions_are_not_spoken(guarded: Guarded) -> None:
    context = guarded.tls()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    place = ("127.0.0.1", guarded.ports["SASL_SSL"])
    with socket.create_connection(place, timeout=20) as plain, pytest.raises(OSError):
        context.wrap_socket(plain, server_hostname="localhost")


def test_keys_are_not_changed_in_the_middle_at_a_clients_wish(guarded: Guarded) -> None:
    """Renegotiation costs the server more than the client; Python cannot ask for it, openssl can."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl")
    ca = guarded.truststore
    command = [program, "s_client", "-tls1_2", "-legacy_renegotiation", "-connect", f"127.0.0.1:{guarded.ports['SASL_SSL']}", "-CAfile", str(ca)]  # fmt: skip
    with guarded.talk("SASL_SSL") as client:
        assert scram(client).error_code == 0
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            shown = ""
            while "---\n" not in shown or "Verify return code: 0" not in shown:
                line = process.stdout.readline()
                assert line, shown
                shown += line
            process.stdin.write("R\n")
            process.stdin.flush()
            shown, _ = process.communicate(timeout=60)
        assert "RENEGOTIATING" in shown
        assert "no renegotiation" in shown
        assert is_served(client)


def test_a_key_that_others_can_read_is_told(guarded: Guarded, tmp_path: Path) -> None:
    settings = BrokerSettings(
        {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": str(guarded.keystore)}
    )
    guarded.keystore.chmod(0o600)
    assert list(warnings(settings)) == []
    guarded.keystore.chmod(0o640)
    [(what, meaning)] = warnings(settings)
    assert "readable by others" in what
    assert "listener SSL" in meaning


# who a certificate is


def der(*attributes: tuple[str, str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(ObjectIdentifier(oid), value) for oid, value in attributes]
    )
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    )  # fmt: skip


COMMON, ORGANISATION, MAIL, SERIAL = "2.5.4.3", "2.5.4.10", "1.2.840.113549.1.9.1", "2.5.4.5"


def test_names_are_written_as_java_writes_them() -> None:
    assert subject(der((ORGANISATION, "Bar"), (COMMON, "mail"), (MAIL, "a@b.c"))) == (
        "1.2.840.113549.1.9.1=#16056140622e63,CN=mail,O=Bar"
    )
    assert subject(der((COMMON, ' a+b,c"d; '))) == 'CN=\\ a\\+b\\,c\\"d\\;\\ '
    assert subject(der((SERIAL, "7"), (COMMON, "é"))) == "CN=é,2.5.4.5=#130137"


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka1,OU=ServiceUsers,O=U", "kafka1"),
        ("RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "CN=UpPer,O=x", "upper"),
        ("RULE:^CN=(.*?),.*$/$1@x/U", "CN=low,O=x", "LOW@X"),
        ("RULE:^OU=.*$/no/, RULE:^CN=([^,]+).*$/$1/", "CN=a,O=b", "a"),
        ("RULE:^OU=.*$/no/", "CN=a,O=b", None),
        ("", "CN=a", "CN=a"),
    ],
)
def test_the_first_rule_that_matches_names_the_user(
    rules: str, name: str, user: str | None
) -> None:
    assert user_of(name, parse_rules(rules)) == user


@pytest.mark.parametrize("rules", ["RULE:", "RULE:a/b", "RULE:(/x/", "RULE:a/$1/", "else"])
def test_rules_that_make_no_sense_are_refused(rules: str) -> None:
    with pytest.raises(InvalidConfigError):
        parse_rules(rules)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20))
@settings(max_examples=50)
@example(" ")
@example("  ")
def test_a_name_without_special_characters_is_written_as_it_is(text: str) -> None:
    from tailrace.broker.authentication.distinguished_names import _escaped

    escaped = _escaped(text)
    plain = not any(each in ',=+<>#;"\\' for each in text) and text == text.strip(" ")
    assert (escaped == text) == plain
    # Taking the backslashes away again gives the text.
    out, skip = [], False
    for each in escaped:
        if each == "\\" and not skip:
            skip = True
            continue
        out.append(each)
        skip = False
    assert "".join(out) == text


def test_a_certificates_user_is_the_connections(guarded: Guarded) -> None:
    with guarded.talk("SSL", guarded.authority.issue("shop")) as client:
        assert is_served(client)
        assert "User:shop" in guarded.principals()
    name: Issued = guarded.authority.issue("Two Words")
    with guarded.talk("SSL", name) as client:
        assert is_served(client)
        assert "User:CN=Two Words" in guarded.principals()


def test_no_certificate_makes_anybody_the_project(tmp_path: Path) -> None:
    rules = {"listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}
    guarded = Guarded(tmp_path, **rules)
    try:
        with guarded.talk("SSL", guarded.authority.issue("shop")) as client:
            assert is_served(client)
        with guarded.talk("SSL", guarded.authority.issue("__tailrace")) as client:
            assert client.closed_by_peer()
    finally:
        guarded.thread.stop()


@dataclass
class Held:
    """Handshakes that take as long as a test wants."""

    released: threading.Event = field(default_factory=threading.Event)
    begun: list[SecureConnection] = field(default_factory=list)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    made = Held()
    step = SecureConnection.step

    def held_step(connection: SecureConnection) -> Shaken:
        made.begun.append(connection)
        assert made.released.wait(60)
        return step(connection)

    monkeypatch.setattr(SecureConnection, "step", held_step)
    yield made
    made.released.set()


def wait_until(true: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_others_are_served_while_a_handshake_is_computed(guarded: Guarded, held: Held) -> None:
    shaking = threading.Thread(target=lambda: guarded.talk("SASL_SSL").close())
    shaking.start()
    wait_until(lambda: held.begun)
    with guarded.talk("OPEN") as client:
        assert is_served(client)
    assert not held.begun[0].established
    held.released.set()
    shaking.join(60)
    with guarded.talk("SASL_SSL") as client:
        assert scram(client).error_code == 0


def test_a_socket_stays_open_until_openssl_has_let_go_of_it(guarded: Guarded, held: Held) -> None:
    """Its number could be another connection's by then, to which OpenSSL would write."""
    plain = socket.create_connection(("127.0.0.1", guarded.ports["SSL"]), timeout=60)
    plain.sendall(b"\x16\x03\x01")
    wait_until(lambda: held.begun)
    connection = held.begun[0]
    gone = threading.Event()
    guarded.broker.call_from_thread(lambda: (connection.close(), gone.set()))  # type: ignore[func-returns-value]
    assert gone.wait(60)
    assert connection.closed
    assert connection.number not in guarded.broker.listener.connections
    assert connection.sock.fileno() >= 0
    held.released.set()
    wait_until(lambda: connection.sock.fileno() == -1)
    plain.close()


def test_a_broker_stops_while_handshakes_are_computed(tmp_path: Path, held: Held) -> None:
    guarded = Guarded(tmp_path)
    sockets = [
        socket.create_connection(("127.0.0.1", guarded.ports["SSL"]), timeout=60) for _ in range(3)
    ]
    for each in sockets:
        each.sendall(b"\x16\x03\x01")
    wait_until(lambda: held.begun and len(guarded.broker.listener.connections) == 3)
    known = list(guarded.broker.listener.connections.values())
    guarded.broker.stop()
    threading.Timer(0.2, held.released.set).start()
    guarded.thread.stop()
    assert [each.sock.fileno() for each in known] == [-1] * 3
    for each in sockets:
        each.close()
