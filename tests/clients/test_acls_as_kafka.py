"""The same requests as the same users, with the same rules, to Apache Kafka 4.3 and to us.

There users log in by SASL PLAIN; at ours they are taken to have done so. Every request is asked
with every set of permissions that matters: none, all that it needs, all but one, and each other
operation in place of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.authorization.cases import CASES, REFUSALS, Case, Need
from broker.authorization.users import GUARDED, Guarded
from servers.kafka import Kafka, KafkaUnavailable
from servers.processes import on_free_ports
from tailrace.broker.authorization.acls import ALLOW, LITERAL, SUPPORTED, Acl
from tailrace.clock import SYSTEM
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.message import Message
from tailrace.wire.messages import (
    create_acls,
    describe_acls,
    find_coordinator,
    init_producer_id,
    list_offsets,
    offset_commit,
    sasl_authenticate,
    sasl_handshake,
)

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

PASSWORD = "secret"
# What no two brokers have in common, and words, which are ours.
DIFFERENT = {
    "throttle_time_ms", "error_message", "topic_id", "brokers", "cluster_id", "controller_id",
    "node_id", "member_id", "current_leader",
}  # fmt: skip


def grants(case: Case) -> Iterator[list[Need]]:
    """The sets of permissions that a case is asked with."""
    first, *others = case.needs
    yield []
    for one in (first, *case.instead):
        yield [one, *others]
    for left in case.needs:
        if len(case.needs) > 1:
            yield [need for need in case.needs if need is not left]
    for operation in SUPPORTED[first[1]]:
        yield [(operation, first[1], first[2]), *others]


def allowed(case: Case, granted: list[Need]) -> bool:
    """Whether these are all that the case needs."""
    firsts = (case.needs[0], *case.instead)
    return any({one, *case.needs[1:]} <= set(granted) for one in firsts)


USERS: dict[tuple[int, int], tuple[str, list[Need]]] = {
    (number, way): (f"u{number}x{way}", granted)
    for number, case in enumerate(CASES)
    for way, granted in enumerate(grants(case))
}


def rules() -> list[Acl]:
    return [
        Acl(resource, name, LITERAL, f"User:{user}", "*", operation, ALLOW)
        for user, granted in USERS.values()
        for operation, resource, name in dict.fromkeys(granted)
    ]


class SecuredKafka:
    """An Apache Kafka with StandardAuthorizer, and users who log in by PLAIN."""

    def __init__(self, directory: Path) -> None:
        on_free_ports(lambda ports: self._begin(directory, *ports), 3)
        self.admin = self.speak("admin")

    def _begin(self, directory: Path, port: int, controller: int, inside: int) -> None:
        self.port = port
        names = ["admin", *(user for user, _ in USERS.values())]
        users = " ".join(f'user_{name}="{PASSWORD}"' for name in names)
        self.kafka = Kafka(
            directory,
            settings={
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listeners": f"PLAINTEXT://127.0.0.1:{inside},"
                f"SASL_PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{inside},"
                f"SASL_PLAINTEXT://127.0.0.1:{self.port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,"
                "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common."
                f"security.plain.PlainLoginModule required {users};",
                **GUARDED,
                "super.users": "User:admin;User:ANONYMOUS",
            },
            ports=[inside],
        )
        self.kafka.servers[0].wait_until(lambda: self.kafka.servers[0].listens(self.port), 90)

    def speak(self, user: str) -> WireClient:
        client = WireClient(f"127.0.0.1:{self.port}")
        answer = client.ask(ApiKey.SASL_HANDSHAKE, 1, sasl_handshake.SaslHandshakeRequest("PLAIN"))
        assert answer.error_code == 0, answer
        answer = client.ask(
            ApiKey.SASL_AUTHENTICATE,
            2,
            sasl_authenticate.SaslAuthenticateRequest(f"\0{user}\0{PASSWORD}".encode()),
        )
        assert answer.error_code == 0, answer
        return client


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    try:
        made = SecuredKafka(tmp_path_factory.mktemp("kafka"))
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    yield made
    made.admin.close()
    made.kafka.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with Guarded(tmp_path_factory.mktemp("ours")) as broker:
        yield broker


@pytest.fixture(scope="module")
def ids(kafka: SecuredKafka, ours: Guarded) -> tuple[bytes, bytes]:
    """The topic's ids, once both brokers have the topic, the rules and their coordinators."""
    found = tuple(prepare(client) for client in (kafka.admin, ours.admin))
    return found[0], found[1]


def prepare(admin: WireClient) -> bytes:
    topic_id = admin.create("t")
    acls = rules()
    for start in range(0, len(acls), 500):
        request = create_acls.CreateAclsRequest(
            [create_acls.AclCreation(*acl) for acl in acls[start : start + 500]]
        )
        answer = admin.ask(ApiKey.CREATE_ACLS, 3, request)
        assert {one.error_code for one in answer.results} == {0}
    for _ in range(600):
        seen = admin.ask(
            ApiKey.DESCRIBE_ACLS,
            3,
            describe_acls.DescribeAclsRequest(1, None, 1, None, None, 1, 1),
        )
        wanted = list_offsets.ListOffsetsRequest(
            topics=[
                list_offsets.ListOffsetsTopic("t", [list_offsets.ListOffsetsPartition(0, -1, -1)])
            ]
        )
        offsets = admin.ask(ApiKey.LIST_OFFSETS, 7, wanted)
        commit = offset_commit.OffsetCommitRequest(
            "kept",
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    "t", partitions=[offset_commit.OffsetCommitRequestPartition(0, 0)]
                )
            ],
        )
        committed = admin.ask(ApiKey.OFFSET_COMMIT, 9, commit)
        producer = admin.ask(
            ApiKey.INIT_PRODUCER_ID, 5, init_producer_id.InitProducerIdRequest("first", 1000)
        )
        if (
            sum(len(one.acls) for one in seen.resources) == len(set(acls))
            and not offsets.topics[0].partitions[0].error_code
            and not committed.topics[0].partitions[0].error_code
            and not producer.error_code
        ):
            return topic_id
        for kind, key in ((0, "kept"), (1, "first")):
            admin.ask(
                ApiKey.FIND_COORDINATOR,
                4,
                find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]),
            )
        SYSTEM.sleep(0.1)
    raise AssertionError("the broker did not get ready")


def plain(value: Any) -> Any:
    """An answer without what differs between brokers."""
    if isinstance(value, Message):
        return {
            name: plain(getattr(value, name)) for name in value.__slots__ if name not in DIFFERENT
        }
    if isinstance(value, list):
        return sorted(map(plain, value), key=repr)
    return bytes(value) if isinstance(value, memoryview) else value


def differences(theirs: Any, mine: Any, place: str = "") -> Iterator[str]:
    """Where two answers are not equal."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for name in theirs:
            yield from differences(theirs[name], mine[name], f"{place}.{name}")
    elif isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        for index, pair in enumerate(zip(theirs, mine, strict=True)):
            yield from differences(*pair, f"{place}[{index}]")
    elif theirs != mine:
        yield f"{place}: {theirs} there, {mine} here"


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_the_same_request_gets_the_same_answer(
    kafka: SecuredKafka, ours: Guarded, ids: tuple[bytes, bytes], number: int
) -> None:
    case = CASES[number]
    told: list[object] = []
    done = False
    ways = [way for (of, _), way in USERS.items() if of == number]
    # What changes the brokers is allowed last, and once.
    ways.sort(key=lambda way: not case.repeated and allowed(case, way[1]))
    for user, granted in ways:
        if not case.repeated and done:
            break
        done = done or allowed(case, granted)
        answers = []
        for client, topic_id in ((kafka.speak(user), ids[0]), (ours.speak(user), ids[1])):
            with client:
                answers.append(client.ask(case.key, case.version, case.message(topic_id)))
        theirs, mine = answers
        codes = [case.code(one) for one in answers]
        refused = [code if code in REFUSALS else 0 for code in codes]
        if refused[0] != refused[1]:
            told.append((granted, codes))
        elif refused[0] and plain(theirs) != plain(mine):
            told.append((granted, *differences(plain(theirs), plain(mine))))
    assert not told, told[0]
