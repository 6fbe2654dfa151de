"""Every request × every operation on every resource: allowed by what Kafka asks for, and no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.authorization.cases import CASES, CODE, REFUSALS, Case, Need
from broker.authorization.users import Guarded
from tailrace.broker.authorization import guards
from tailrace.broker.authorization.acls import ALL, IMPLIED, SUPPORTED
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.messages import delete_topics, offset_commit

# Lists leave out what one may not see, and scopes of descriptions; tested one by one.
LISTS = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_CLUSTER}

# Open to those who have logged in; tokens of others are tested beside real log-ins.
TOKENS = {
    ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN,
}  # fmt: skip


def _ask(client: WireClient, case: Case, topic_id: bytes) -> int:
    code = int(case.code(client.ask(case.key, case.version, case.message(topic_id))))
    return code if code in REFUSALS else 0


def _suffices(granted: Need, needed: Need) -> bool:
    operation, resource, name = needed
    return granted[1:] == (resource, name) and granted[0] in {
        ALL,
        operation,
        *IMPLIED.get(operation, ()),
    }


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with Guarded(tmp_path_factory.mktemp("guarded")) as broker:
        yield broker


@pytest.fixture(scope="module")
def topic_id(guarded: Guarded) -> bytes:
    made = guarded.admin.create("t")
    committed = offset_commit.OffsetCommitRequest(
        "kept",
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                "t", partitions=[offset_commit.OffsetCommitRequestPartition(0, 0)]
            )
        ],
    )
    guarded.admin.ask(ApiKey.OFFSET_COMMIT, 9, committed)
    return made


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_request_needs_just_what_kafka_asks_for(
    guarded: Guarded, topic_id: bytes, case: Case
) -> None:
    with guarded.speak("u") as user:
        _walk(guarded, topic_id, case, user)


def _walk(guarded: Guarded, topic_id: bytes, case: Case, user: WireClient) -> None:
    first, *others = case.needs
    for wanted in case.needs:
        # Everything that can be allowed, by itself, beside what else is needed.
        rest = [one for one in case.needs if one is not wanted]
        ways = [wanted, *(case.instead if wanted is first else ())]
        places = {(one[1], one[2]) for one in ways}
        for resource, name in places:
            for operation in (ALL, *SUPPORTED[resource]):
                granted = (operation, resource, name)
                enough = any(_suffices(granted, way) for way in ways)
                if enough and not case.repeated:
                    continue
                guarded.remove()
                guarded.allow("u", granted, *rest)
                if any(_suffices(one, wanted) for one in rest):
                    continue
                code = _ask(user, case, topic_id)
                assert code == (0 if enough else CODE[wanted[1]]), (granted, wanted)
    guarded.remove()
    assert _ask(user, case, topic_id) == CODE[case.needs[0][1]]
    for way in (first, *case.instead):
        guarded.remove()
        guarded.allow("u", way, *others)
        assert _ask(user, case, topic_id) == 0, way
        if not case.repeated:
            guarded.admin.ask(
                ApiKey.DELETE_TOPICS, 5, delete_topics.DeleteTopicsRequest(topic_names=["made"])
            )


def test_every_request_is_asked_about_here(guarded: Guarded) -> None:
    routed = set(guarded.broker.router.routes)
    assert routed == {case.key for case in CASES} | LISTS | TOKENS | guards.OPEN
    guarded_ones = set(guards.all_guards(guarded.broker))
    assert routed - guards.OPEN - guards.OWN <= guarded_ones
    assert all(key in APIS for key in guarded_ones)
