"""Which request may come when, who is let in, and what the others are told."""

from __future__ import annotations

import logging
import struct
import time
from pathlib import Path

import pytest

from broker.authentication.guarded_broker import PASSWORD, Guarded, authenticate, handshake, scram
from tailrace.client.admin import Admin
from tailrace.client.errors import AuthenticationError
from tailrace.testing.fake_clock import FakeClock
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages.api_versions import ApiVersionsRequest
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.scram import ScramClient

FAILED, ILLEGAL, UNSUPPORTED = 58, 34, 33


def is_served(client: WireClient) -> bool:
    return bool(client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[])).brokers)


@pytest.mark.parametrize("listener", ["SASL_SSL", "SASL_PLAINTEXT"])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_a_user_comes_in_by_every_mechanism(
    guarded: Guarded, listener: str, mechanism: str
) -> None:
    with Admin(guarded.alice(listener, mechanism)) as admin:
        admin.list_topics()
        assert "User:alice" in guarded.principals()


def test_a_user_of_the_settings_comes_in_by_plain(guarded: Guarded) -> None:
    with guarded.talk("SASL_SSL") as client:
        assert handshake(client, "PLAIN") == 0
        assert authenticate(client, b"bob\0bob\0bobs-secret").error_code == 0
        assert is_served(client)


@pytest.mark.parametrize(
    "data",
    [
        b"\0alice\0wrong",
        b"\0nobody\0wrong",
        b"\0nobody\0" + PASSWORD.encode(),
        b"other\0alice\0" + PASSWORD.encode(),
        b"alice",
        b"\0alice",
        b"\0\0" + PASSWORD.encode(),
        b"\0alice\0",
        b"\0\xff\xfe\0x",
        b"\0alice\0x\0y",
    ],
)
def test_what_is_not_a_users_password_is_refused_and_the_connection_ends(
    guarded: Guarded, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tailrace")
    with guarded.talk("SASL_SSL") as client:
        assert handshake(client, "PLAIN") == 0
        answer = authenticate(client, data)
        assert answer.error_code == FAILED
        assert "alice" not in answer.error_message
        assert client.closed_by_peer()
    assert PASSWORD not in caplog.text


def test_an_unknown_user_looks_like_a_wrong_password(guarded: Guarded) -> None:
    said = []
    salts = []
    for name in ("alice", "nobody", "nobody"):
        with guarded.talk("SASL_PLAINTEXT") as client:
            assert handshake(client, "SCRAM-SHA-256") == 0
            exchange = ScramClient("SCRAM-SHA-256", name, "wrong")
            challenge = authenticate(client, exchange.first())
            assert challenge.error_code == 0
            parts = bytes(challenge.auth_bytes).split(b",")
            salts.append((parts[1], parts[2]))
            last = authenticate(client, exchange.final(bytes(challenge.auth_bytes)))
            said.append((last.error_code, last.error_message))
    assert said[0] == said[1] == said[2]
    assert said[0][0] == FAILED
    assert salts[1] == salts[2]  # the same each time
    assert [len(each[0]) for each in salts] == [len(salts[0][0])] * 3
    assert {each[1] for each in salts} == {b"i=4096"}


def test_nothing_is_served_before_the_log_in(guarded: Guarded) -> None:
    with guarded.talk("SASL_PLAINTEXT") as client:
        client.say(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert client.closed_by_peer()
    with guarded.talk("SASL_PLAINTEXT") as client:
        assert client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("t", "1")).error_code == 0
        client.say(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("t", "1"))
        assert client.closed_by_peer()  # as Kafka has it


def test_requests_behind_an_unfinished_log_in_reach_no_handler(guarded: Guarded) -> None:
    served = guarded.broker.router.requests[ApiKey.METADATA]
    with guarded.talk("SASL_PLAINTEXT") as client:
        assert handshake(client, "SCRAM-SHA-256") == 0
        client.say_all([(ApiKey.METADATA, 13, MetadataRequest(topics=[]))] * 10)
        assert client.hear().error_code == ILLEGAL
        assert client.closed_by_peer()
    assert guarded.broker.router.requests[ApiKey.METADATA] == served


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are(
    guarded: Guarded,
) -> None:
    from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest

    with guarded.talk("SASL_PLAINTEXT") as client:
        answer = client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("GSSAPI"))
        assert answer.error_code == UNSUPPORTED
        assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        assert client.closed_by_peer()


def test_a_large_frame_before_the_log_in_is_refused(guarded: Guarded) -> None:
    with guarded.talk("SASL_PLAINTEXT") as client:
        client.send_bytes(struct.pack(">ihhi", 600_000, 36, 0, 1))
        assert client.closed_by_peer()


@pytest.mark.parametrize(
    "change",
    [
        lambda final: final.replace(b"c=biws", b"c=eSws"),  # another channel binding
        lambda final: final[:-4] + b"AAA=",
        lambda final: final.rpartition(b",p=")[0],
        lambda final: final.replace(b"r=", b"r=x"),
        lambda final: b"",
    ],
)
def test_a_final_message_that_is_not_the_right_one_is_refused(guarded: Guarded, change) -> None:  # type: ignore[no-untyped-def]
    with guarded.talk("SASL_PLAINTEXT") as client:
        assert handshake(client, "SCRAM-SHA-256") == 0
        exchange = ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
        challenge = authenticate(client, exchange.first())
        final = exchange.final(bytes(challenge.auth_bytes))
        assert authenticate(client, change(final)).error_code == FAILED
        assert client.closed_by_peer()


def test_bare_messages_after_a_handshake_of_version_0(guarded: Guarded) -> None:
    with guarded.talk("SASL_SSL") as client:
        assert handshake(client, "PLAIN", version=0) == 0
        data = b"\0alice\0" + PASSWORD.encode()
        client.send_bytes(struct.pack(">i", len(data)) + data)
        assert client.read_frame() == b""
        assert is_served(client)
    with guarded.talk("SASL_SSL") as client:
        assert handshake(client, "PLAIN", version=0) == 0
        client.send_bytes(struct.pack(">i", 4) + b"\0a\0b")
        assert client.closed_by_peer()


def test_a_failed_log_in_is_answered_late_and_others_are_not(tmp_path: Path) -> None:
    slow = Guarded(tmp_path, **{"connection.failed.authentication.delay.ms": "4000"})
    try:
        with slow.talk("SASL_PLAINTEXT") as refused, slow.talk("SASL_PLAINTEXT") as other:
            exchange = ScramClient("SCRAM-SHA-256", "alice", "wrong")
            assert handshake(refused, "SCRAM-SHA-256") == 0
            challenge = authenticate(refused, exchange.first())
            from tailrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest

            final = exchange.final(bytes(challenge.auth_bytes))
            refused.say(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(final))
            assert scram(other).error_code == 0
            assert is_served(other)
            refused.sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                refused.sock.recv(1)
            refused.sock.settimeout(20)
            assert refused.hear().error_code == FAILED
    finally:
        slow.thread.stop()


def test_a_session_ends_unless_the_user_logs_in_again(tmp_path: Path) -> None:
    clock = FakeClock()
    short = Guarded(tmp_path, clock=clock, **{"connections.max.reauth.ms": "1500"})
    try:
        with short.talk("SASL_PLAINTEXT") as client, short.talk("SASL_PLAINTEXT") as other:
            last = scram(client)
            assert 0 < last.session_lifetime_ms <= 1500
            assert scram(other).error_code == 0
            assert handshake(client, "SCRAM-SHA-256") == ILLEGAL  # not twice in a second
            assert is_served(client)
            clock.advance(1.1)
            assert scram(client).error_code == 0
            clock.advance(1.0)
            assert is_served(client)  # the first session is over by now, this one is not
            other.say(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
            assert other.closed_by_peer()
            assert short.broker.authentication.counts["SASL_PLAINTEXT"].expired == 1
    finally:
        short.thread.stop()


@pytest.mark.parametrize(("name", "mechanism"), [("bob", "PLAIN"), ("alice", "SCRAM-SHA-512")])
def test_neither_user_nor_mechanism_change_in_a_session(
    guarded: Guarded, name: str, mechanism: str
) -> None:
    import time

    with guarded.talk("SASL_SSL") as client:
        assert handshake(client, "PLAIN") == 0
        assert authenticate(client, b"\0alice\0" + PASSWORD.encode()).error_code == 0
        time.sleep(1.05)
        assert handshake(client, mechanism) == 0
        data = b"\0bob\0bobs-secret" if name == "bob" else b"n,,n=alice,r=abc"
        assert authenticate(client, data).error_code == FAILED
        assert client.closed_by_peer()


def test_our_client_says_who_is_refused_and_never_the_password(guarded: Guarded) -> None:
    wrong = guarded.address(
        "SASL_SSL", mechanism="SCRAM-SHA-512", username="alice", password="wr0ng-canary"
    )
    with pytest.raises(AuthenticationError) as caught, Admin(wrong, timeout=20) as admin:
        admin.list_topics()
    assert "wr0ng" not in caught.value.render()


def test_the_silent_make_room_before_those_who_are_logging_in(tmp_path: Path) -> None:
    full = Guarded(tmp_path, **{"max.connections": "3"})
    made: list[WireClient] = []
    try:
        made.extend(full.talk("SASL_PLAINTEXT") for _ in range(3))
        first, silent, _ = made
        assert first.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("t", "1")).error_code == 0
        made.append(full.talk("SASL_PLAINTEXT"))
        assert silent.closed_by_peer()
        assert scram(first).error_code == 0
        assert is_served(first)
    finally:
        for each in made:
            each.close()
        full.thread.stop()


def test_who_never_logs_in_makes_room_for_others_and_goes(tmp_path: Path) -> None:
    full = Guarded(tmp_path, **{"max.connections": "20", "tailrace.login.timeout.ms": "3000"})
    idle: list[WireClient] = []
    try:
        with full.talk("SASL_PLAINTEXT") as known:
            assert scram(known).error_code == 0
            place = f"127.0.0.1:{full.ports['SASL_SSL']}"
            idle.extend(WireClient(place) for _ in range(40))
            # What waits to be accepted could push out whoever comes meanwhile.
            until = time.monotonic() + 60
            while full.broker.listener.accepted_total < 41 and time.monotonic() < until:
                time.sleep(0.01)
            with full.talk("SASL_PLAINTEXT") as late:
                assert scram(late).error_code == 0
            assert is_served(known)
            assert all(each.closed_by_peer() for each in idle)  # the sweep, within seconds
            assert full.broker.listener.logins_late_total > 0
            assert is_served(known)
    finally:
        for each in idle:
            each.close()
        full.thread.stop()
