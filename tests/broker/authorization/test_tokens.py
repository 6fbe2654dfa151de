"""Delegation tokens of others: by access rules, and to clients that have really logged in."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from broker.authentication.guarded_broker import PASSWORD, Guarded, scram
from broker.authorization.users import GUARDED
from tailrace.broker.authorization.acls import (
    ALLOW,
    CREATE_TOKENS,
    DELEGATION_TOKEN,
    DESCRIBE,
    DESCRIBE_TOKENS,
    LITERAL,
    USER,
    Acl,
)
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import create_delegation_token as creating
from tailrace.wire.messages import describe_delegation_token as describing
from tailrace.wire.scram import make_credential


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(
        tmp_path_factory.mktemp("tokens"),
        **{**GUARDED, "delegation.token.secret.key": "a secret of this test"},
    )
    yield made
    made.thread.stop()


def create(client: WireClient, owner: str | None = None) -> creating.CreateDelegationTokenResponse:
    request = creating.CreateDelegationTokenRequest(
        owner_principal_type=owner and "User", owner_principal_name=owner, max_lifetime_ms=-1
    )
    answer = client.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request)
    assert isinstance(answer, creating.CreateDelegationTokenResponse)
    return answer


def seen(client: WireClient, owners: list[str] | None = None) -> set[str]:
    wanted = owners and [
        describing.DescribeDelegationTokenOwner(principal_type="User", principal_name=one)
        for one in owners
    ]
    request = describing.DescribeDelegationTokenRequest(owners=wanted)
    answer = client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, request)
    assert answer.error_code == 0
    return {each.token_id for each in answer.tokens}


def allow(guarded: Guarded, user: str, operation: int, resource: int, name: str) -> None:
    acl = Acl(resource, name, LITERAL, f"User:{user}", "*", operation, ALLOW)
    done = threading.Event()

    def change() -> None:
        assert guarded.broker.authorizer is not None
        guarded.broker.authorizer.change([acl])
        done.set()

    guarded.broker.call_from_thread(change)
    assert done.wait(30)


def test_tokens_of_others_are_made_and_seen_by_rule(guarded: Guarded) -> None:
    credential = make_credential("SCRAM-SHA-256", PASSWORD.encode())
    guarded.broker.authentication.users.change("dora", {"SCRAM-SHA-256": credential})
    with guarded.talk("SASL_PLAINTEXT") as alice, guarded.talk("SASL_PLAINTEXT") as dora:
        assert scram(alice).error_code == 0
        assert scram(dora, "dora").error_code == 0
        own = create(alice)
        assert own.error_code == 0
        refused = create(alice, "carol")
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert not refused.hmac
        allow(guarded, "alice", CREATE_TOKENS, USER, "User:carol")
        carols = create(alice, "carol")
        assert carols.error_code == 0
        assert seen(alice) == {own.token_id, carols.token_id}
        assert seen(alice, ["carol"]) == {carols.token_id}
        assert seen(dora) == set()
        allow(guarded, "dora", DESCRIBE, DELEGATION_TOKEN, carols.token_id)
        assert seen(dora) == {carols.token_id}
        allow(guarded, "dora", DESCRIBE_TOKENS, USER, "User:alice")
        assert seen(dora) == {own.token_id, carols.token_id}
        assert seen(dora, ["alice"]) == {own.token_id}
