"""Users and tokens: kept in the journal, altered over the wire and offline, shown and forgotten."""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from joserfc import jwt
from joserfc.jwk import RSAKey

from broker.authentication.guarded_broker import Guarded, authenticate, handshake, scram
from tailrace.broker.embedded import BrokerThread
from tailrace.cli.broker_users import user as user_command
from tailrace.client.admin import Admin
from tailrace.client.users import Users
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import alter_user_scram_credentials as altering
from tailrace.wire.messages import create_delegation_token as creating
from tailrace.wire.messages import describe_delegation_token as describing
from tailrace.wire.messages import describe_user_scram_credentials as describing_users
from tailrace.wire.messages import expire_delegation_token as expiring
from tailrace.wire.messages import renew_delegation_token as renewing
from tailrace.wire.messages.metadata import MetadataRequest

DUPLICATE, MISSING, UNACCEPTABLE, UNSUPPORTED = 92, 91, 93, 33


def upsert(name: str, mechanism: int = 1, iterations: int = 4096, **more: bytes) -> Any:
    given = {"salt": b"salt", "salted_password": b"x" * 32, **more}
    return altering.ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, **given
    )


@pytest.mark.parametrize(
    ("deletions", "upsertions", "code"),
    [
        ([], [upsert("new")], 0),
        ([], [upsert("new", 1), upsert("new", 2)], DUPLICATE),
        ([altering.ScramCredentialDeletion("gone", 1)], [], MISSING),
        ([], [upsert("new", 7)], UNSUPPORTED),
        ([], [upsert("new", iterations=4095)], UNACCEPTABLE),
        ([], [upsert("new", iterations=16385)], UNACCEPTABLE),
        ([], [upsert("")], UNACCEPTABLE),
        ([], [upsert("__tailrace")], UNACCEPTABLE),
        ([], [upsert("new", salt=b"")], UNACCEPTABLE),
        ([], [upsert("new", salted_password=b"")], UNACCEPTABLE),
    ],
)
def test_users_are_altered_as_kafka_alters_them(
    guarded: Guarded, deletions: list[Any], upsertions: list[Any], code: int
) -> None:
    with guarded.talk("OPEN") as client:
        answer = client.ask(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            0,
            altering.AlterUserScramCredentialsRequest(deletions, upsertions),
        )
        assert [each.error_code for each in answer.results] == [code]


def test_users_are_described_as_kafka_describes_them(guarded: Guarded) -> None:
    with guarded.talk("OPEN") as client:

        def ask(*names: str) -> list[tuple[str, int, list[tuple[int, int]]]]:
            users = [describing_users.UserName(each) for each in names] or None
            answer = client.ask(
                ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
                0,
                describing_users.DescribeUserScramCredentialsRequest(users),
            )
            return [
                (
                    one.user,
                    one.error_code,
                    [(c.mechanism, c.iterations) for c in one.credential_infos],
                )
                for one in answer.results
            ]

        assert ask("alice") == [("alice", 0, [(1, 4096), (2, 4096)])]
        assert ask("nobody") == [("nobody", MISSING, [])]
        assert ask("alice", "alice") == [("alice", DUPLICATE, [])]
        assert "alice" in [each[0] for each in ask()]


def test_a_user_is_added_and_removed_while_the_broker_runs_and_while_it_does_not(
    tmp_path: Path,
) -> None:
    def run(*arguments: str, given: str | None = None) -> str:
        result = CliRunner().invoke(user_command, [*arguments], input=given)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.output

    log = tmp_path / "log"
    log.mkdir()
    run("add", "carol", "--data", str(log), "--password-file", "-", given="carols-first\n")
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0,OPEN://127.0.0.1:0",
                "listener.security.protocol.map": "OPEN:PLAINTEXT",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
                "connection.failed.authentication.delay.ms": "0"}  # fmt: skip
    with BrokerThread(log, settings=settings) as thread:
        closed, opened = (
            f"127.0.0.1:{each.endpoint.port}" for each in thread.broker.listener.acceptors
        )
        with WireClient(closed) as client:
            assert scram(client, "carol", "carols-first").error_code == 0
            file = tmp_path / "password"
            file.write_text("carols-second\n")
            run("add", "carol", "--log", opened, "--password-file", str(file))
            with WireClient(closed) as other:
                assert scram(other, "carol", "carols-first").error_code == 58
            with WireClient(closed) as other:
                assert handshake(other, "PLAIN") == 0
                assert authenticate(other, b"\0carol\0carols-second").error_code == 0
            rows = json.loads(run("list", "--log", opened, "--json"))
            assert [(row["user"], row["mechanism"]) for row in rows] == [
                ("carol", "SCRAM-SHA-256"), ("carol", "SCRAM-SHA-512")]  # fmt: skip
            with Admin(opened) as admin:
                Users(admin).remove("carol")
            with WireClient(closed) as other:
                assert scram(other, "carol", "carols-second").error_code == 58
            with WireClient(closed) as other:  # what was right once is not remembered for ever
                assert handshake(other, "PLAIN") == 0
                assert authenticate(other, b"\0carol\0carols-second").error_code == 58
            from tailrace.wire.messages.metadata import MetadataRequest

            assert client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[])).brokers  # as Kafka
    assert "no users" in run("list", "--data", str(log))
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "password":
            assert b"carols-" not in path.read_bytes(), path


def test_users_and_tokens_survive_a_snapshot_and_a_torn_line(tmp_path: Path) -> None:
    from tailrace.log.metadata import Journal

    journal = Journal([tmp_path])
    kept = {"salt": "", "stored_key": "", "server_key": "", "iterations": 4096}
    journal.append({"op": "user", "name": "a", "credentials": {"SCRAM-SHA-256": kept}})
    journal.append({"op": "user", "name": "b", "credentials": {"SCRAM-SHA-256": kept}})
    journal.append({"op": "user", "name": "b", "credentials": {"SCRAM-SHA-256": None}})
    journal.append({"op": "token", "id": "t", "values": {"owner": "a"}})
    for number in range(1100):  # past a snapshot
        journal.append({"op": "epoch", "epoch": number})
    journal.append({"op": "user", "name": "c", "credentials": {"SCRAM-SHA-512": kept}})
    content = journal.catalogue.content()
    journal.close()
    path = tmp_path / "metadata" / "journal"
    path.write_bytes(path.read_bytes() + b'0badf00d {"op":"user","na')
    again = Journal([tmp_path])
    assert again.catalogue.content() == content
    assert set(again.catalogue.users) == {"a", "c"}
    assert set(again.catalogue.tokens) == {"t"}
    again.close()


# delegation tokens


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("tokens")
    made = Guarded(directory, **{"delegation.token.secret.key": "the-secret-of-tokens-canary"})
    yield made
    made.thread.stop()


def create(client: WireClient, **more: Any) -> creating.CreateDelegationTokenResponse:
    request = creating.CreateDelegationTokenRequest(None, None, [], -1)
    for name, value in more.items():
        setattr(request, name, value)
    answer: creating.CreateDelegationTokenResponse = client.ask(
        ApiKey.CREATE_DELEGATION_TOKEN, 3, request
    )
    return answer


def test_a_token_acts_for_its_owner_until_it_expires(tokens: Guarded) -> None:
    with tokens.talk("SASL_SSL") as owner:
        assert scram(owner).error_code == 0
        made = create(owner, max_lifetime_ms=60_000)
        assert made.error_code == 0
        assert (made.principal_name, made.token_requester_principal_name) == ("alice", "alice")
        assert made.max_timestamp_ms - made.issue_timestamp_ms == 60_000
        password = base64.b64encode(made.hmac).decode()
        with tokens.talk("SASL_SSL") as client:
            last = scram(client, made.token_id, password, token=True)
            assert last.error_code == 0
            assert 0 < last.session_lifetime_ms <= 60_000
            assert "User:alice" in tokens.principals()
            assert create(client).error_code == 64  # not with a token
        with tokens.talk("SASL_SSL") as client:
            assert scram(client, made.token_id, "wrong", token=True).error_code == 58
        with tokens.talk("SASL_SSL") as client:  # a token's name is no user's
            assert scram(client, made.token_id, password).error_code == 58
        renewed = owner.ask(
            ApiKey.RENEW_DELEGATION_TOKEN, 2, renewing.RenewDelegationTokenRequest(made.hmac, 5_000)
        )
        assert renewed.error_code == 0
        assert renewed.expiry_timestamp_ms < made.max_timestamp_ms
        told = owner.ask(
            ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, describing.DescribeDelegationTokenRequest(None)
        )
        assert made.token_id in [each.token_id for each in told.tokens]
        ended = owner.ask(
            ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiring.ExpireDelegationTokenRequest(made.hmac, -1)
        )
        assert ended.error_code == 0
        with tokens.talk("SASL_SSL") as client:
            assert scram(client, made.token_id, password, token=True).error_code == 58


def test_who_may_not_have_a_token_is_told_so_in_kafkas_numbers(
    tokens: Guarded, guarded: Guarded
) -> None:
    with tokens.talk("OPEN") as stranger:
        assert create(stranger).error_code == 64
    with guarded.talk("SASL_SSL") as client:
        assert scram(client).error_code == 0
        assert create(client).error_code == 61  # they are off
    with tokens.talk("SASL_SSL") as client:
        assert scram(client).error_code == 0
        other = {"owner_principal_type": "User", "owner_principal_name": "bob"}
        assert create(client, **other).error_code == 65
        renewer = creating.CreatableRenewers("Group", "x")
        assert create(client, renewers=[renewer]).error_code == 67
        for key, request in (
            (ApiKey.RENEW_DELEGATION_TOKEN, renewing.RenewDelegationTokenRequest(b"x", 1)),
            (ApiKey.EXPIRE_DELEGATION_TOKEN, expiring.ExpireDelegationTokenRequest(b"x", 1)),
        ):
            assert client.ask(key, 2, request).error_code == 62
        mine = create(client)
        with tokens.talk("SASL_SSL") as bob:
            assert handshake(bob, "PLAIN") == 0
            assert authenticate(bob, b"\0bob\0bobs-secret").error_code == 0
            renewed = bob.ask(
                ApiKey.RENEW_DELEGATION_TOKEN, 2, renewing.RenewDelegationTokenRequest(mine.hmac, 1)
            )
            assert renewed.error_code == 63
            told = bob.ask(
                ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, describing.DescribeDelegationTokenRequest(None)
            )
            assert told.tokens == []


# bearer tokens


class Issuer:
    """Publishes keys and signs tokens."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/keys":
                    self.send_response(302)
                    self.send_header("Location", "/keys")
                    self.end_headers()
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": [issuer.key.as_dict(private=False)]}).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def token(self, key: RSAKey | None = None, **claims: Any) -> str:
        now = int(time.time())
        given = {"sub": "carol", "iss": "us", "aud": "kafka", "iat": now, "exp": now + 60, **claims}
        key = key or self.key
        header = {"alg": "RS256", "kid": key.kid}
        return jwt.encode(header, {k: v for k, v in given.items() if v is not None}, key)


@pytest.fixture(scope="module")
def bearer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guarded, Issuer]]:
    issuer = Issuer()
    made = Guarded(
        tmp_path_factory.mktemp("bearer"),
        **{
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
            "org.apache.kafka.sasl.oauthbearer.allowed.urls": issuer.url,
            "sasl.oauthbearer.expected.issuer": "us",
            "sasl.oauthbearer.expected.audience": "kafka,other",
        },
    )
    yield made, issuer
    made.thread.stop()
    issuer.server.shutdown()
    issuer.server.server_close()


def bear(client: WireClient, token: str) -> Any:
    assert handshake(client, "OAUTHBEARER") == 0
    return authenticate(client, b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01")


def test_a_token_of_the_issuer_logs_in_until_it_expires(bearer: tuple[Guarded, Issuer]) -> None:
    guarded, issuer = bearer
    with guarded.talk("SASL_SSL") as client:
        answer = bear(client, issuer.token())
        assert (answer.error_code, answer.auth_bytes) == (0, b"")
        assert 0 < answer.session_lifetime_ms <= 60_000
        assert "User:carol" in guarded.principals()


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1_000_000_000}, {"exp": None}, {"iat": None}, {"sub": None}, {"sub": " "},
        {"iss": "others"}, {"aud": "nobody"}, {"nbf": 99_999_999_999.0}, {"exp": "soon"}, {"sub": 7},
        {"iat": 9_999_999_999}, {"sub": "__tailrace"},
    ],
)  # fmt: skip
def test_a_token_that_says_something_else_is_refused(
    bearer: tuple[Guarded, Issuer], claims: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tailrace")
    guarded, issuer = bearer
    token = issuer.token(**claims)
    refused(guarded, token)
    assert token not in caplog.text


def test_a_connection_ends_with_the_token_it_came_in_by(bearer: tuple[Guarded, Issuer]) -> None:
    guarded, issuer = bearer
    before = guarded.broker.authentication.counts["SASL_SSL"].expired
    with guarded.talk("SASL_SSL") as client:
        # The skew of 30 s is for clocks that differ: the session ends when the token says.
        answer = bear(client, issuer.token(exp=int(time.time()) + 3))
        assert answer.error_code == 0
        assert answer.session_lifetime_ms <= 3000
        until = time.monotonic() + 60
        served = True
        while served and time.monotonic() < until:
            try:
                client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
            except OSError:
                served = False
            time.sleep(0.05)
        assert not served
    assert guarded.broker.authentication.counts["SASL_SSL"].expired == before + 1


def refused(guarded: Guarded, token: str) -> None:
    with guarded.talk("SASL_SSL") as client:
        answer = bear(client, token)
        assert answer.error_code == 0
        assert json.loads(answer.auth_bytes) == {"status": "invalid_token"}
        assert authenticate(client, b"\x01").error_code == 58
        assert client.closed_by_peer()


def test_tokens_that_nobody_signed_are_refused(bearer: tuple[Guarded, Issuer]) -> None:
    guarded, issuer = bearer
    unsigned = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in
                ({"alg": "none"}, {"sub": "carol", "exp": 9_999_999_999, "iat": 1, "iss": "us", "aud": "kafka"})]  # fmt: skip
    refused(guarded, ".".join([*unsigned, ""]))
    refused(guarded, issuer.token(RSAKey.generate_key(2048, {"kid": "one"})))
    head, _, _ = issuer.token().partition(".")
    refused(guarded, f"{head}.x.y")
    from joserfc.jwk import OctKey

    # A symmetric signature, with what everybody knows as its secret.
    public = json.dumps(issuer.key.as_dict(private=False))
    secret = OctKey.import_key(public.encode(), {"kid": "one"})
    now = int(time.time())
    claims = {"sub": "carol", "iss": "us", "aud": "kafka", "iat": now, "exp": now + 60}
    refused(
        guarded, jwt.encode({"alg": "HS256", "kid": "one"}, claims, secret, algorithms=["HS256"])
    )


@pytest.mark.parametrize(
    "data", [b"", b"n,,", b"n,,\x01auth=Basic x\x01\x01", b"\xff" * 100, b"n,,\x01\x01"]
)
def test_what_is_no_bearers_message_is_refused(bearer: tuple[Guarded, Issuer], data: bytes) -> None:
    guarded, _ = bearer
    with guarded.talk("SASL_SSL") as client:
        assert handshake(client, "OAUTHBEARER") == 0
        assert authenticate(client, data).error_code == 58
        assert client.closed_by_peer()


def test_keys_are_not_read_from_where_an_allowed_url_points_on(tmp_path: Path) -> None:
    from tailrace.broker.authentication.bearer import _read_keys

    issuer = Issuer()
    try:
        assert list(_read_keys(issuer.url))
        with pytest.raises(OSError):
            _read_keys(issuer.url.replace("/keys", "/moved"))
    finally:
        issuer.server.shutdown()
        issuer.server.server_close()
