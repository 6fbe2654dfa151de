"""Transactions answer as Apache Kafka does: one script, two brokers, the same answers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker.conversations import RETRY, Heard, Talk, differences, talking, unique
from tailrace.broker.embedded import BrokerThread
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    find_coordinator,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
)


@pytest.fixture
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerThread(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.address


def patiently(ask: object) -> object:
    """Repeat a request while the broker asks to come back."""
    assert callable(ask)
    for _ in range(200):
        answer = ask()
        code = answer[0] if isinstance(answer, tuple) else answer
        if code not in RETRY:
            return answer
        time.sleep(0.05)
    return answer


def find(talk: Talk, name: str, kind: int = 1) -> None:
    def ask() -> int:
        answer = talk.ask(
            ApiKey.FIND_COORDINATOR,
            find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[name]),
        )
        return int(answer.coordinators[0].error_code)

    assert patiently(ask) == 0


def init(
    talk: Talk,
    name: str | None,
    *,
    timeout_ms: int = 60_000,
    expected: tuple[int, int] = (-1, -1),
    version: int | None = None,
) -> tuple[int, int, int]:
    def ask() -> tuple[int, int, int]:
        answer = talk.ask(
            ApiKey.INIT_PRODUCER_ID,
            init_producer_id.InitProducerIdRequest(name, timeout_ms, *expected),
            version,
        )
        return answer.error_code, answer.producer_id, answer.producer_epoch

    return patiently(ask)  # type: ignore[return-value]


def add(talk: Talk, name: str, who: tuple[int, int], *topics: str, version: int = 3) -> list[int]:
    def ask() -> tuple[int, list[int]]:
        answer = talk.ask(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=who[0],
                v3_and_below_producer_epoch=who[1],
                v3_and_below_topics=[
                    add_partitions_to_txn.AddPartitionsToTxnTopic(topic, [0]) for topic in topics
                ],
            ),
            version,
        )
        codes = {
            row.name: row.results_by_partition[0].partition_error_code
            for row in answer.results_by_topic_v3_and_below
        }
        return codes[topics[0]], [codes[topic] for topic in topics]

    return patiently(ask)[1]  # type: ignore[index, no-any-return]


def add_offsets(talk: Talk, name: str, who: tuple[int, int], group: str) -> int:
    def ask() -> int:
        return int(
            talk.ask(
                ApiKey.ADD_OFFSETS_TO_TXN,
                add_offsets_to_txn.AddOffsetsToTxnRequest(name, *who, group),
                3,
            ).error_code
        )

    return patiently(ask)  # type: ignore[return-value]


def commit_offset(
    talk: Talk,
    name: str,
    who: tuple[int, int],
    group: str,
    topic: str,
    offset: int,
    *,
    member: str = "",
    generation: int = -1,
    version: int = 3,
) -> int:
    def ask() -> int:
        answer = talk.ask(
            ApiKey.TXN_OFFSET_COMMIT,
            txn_offset_commit.TxnOffsetCommitRequest(
                transactional_id=name,
                group_id=group,
                producer_id=who[0],
                producer_epoch=who[1],
                generation_id=generation,
                member_id=member,
                topics=[
                    txn_offset_commit.TxnOffsetCommitRequestTopic(
                        topic,
                        [txn_offset_commit.TxnOffsetCommitRequestPartition(0, offset, -1, "")],
                    )
                ],
            ),
            version,
        )
        return int(answer.topics[0].partitions[0].error_code)

    return patiently(ask)  # type: ignore[return-value]


def end(
    talk: Talk, name: str, who: tuple[int, int], commit: bool, version: int = 4
) -> tuple[int, int, int]:
    def ask() -> tuple[int, int, int]:
        answer = talk.ask(ApiKey.END_TXN, end_txn.EndTxnRequest(name, *who, commit), version)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    return patiently(ask)  # type: ignore[return-value]


def produce(
    talk: Talk, topic: str, name: str, who: tuple[int, int], sequence: int, version: int
) -> int:
    def ask() -> int:
        return talk.produce(
            topic,
            b"v",
            transactional_id=name,
            producer_id=who[0],
            epoch=who[1],
            sequence=sequence,
            version=version,
        )[0]

    return patiently(ask)  # type: ignore[return-value]


def state(talk: Talk, name: str) -> tuple[object, ...]:
    """Settled: Kafka writes markers after it has answered."""
    for _ in range(100):
        [found] = talk.ask(
            ApiKey.DESCRIBE_TRANSACTIONS,
            describe_transactions.DescribeTransactionsRequest([name]),
        ).transaction_states
        if not found.transaction_state.startswith("Prepare"):
            break
        time.sleep(0.05)
    topics = sorted((row.topic, tuple(row.partitions)) for row in found.topics)
    return (
        found.error_code,
        found.transaction_state,
        found.producer_epoch,
        [partitions for _, partitions in topics],
    )


def stable(talk: Talk, topic: str) -> tuple[int, int]:
    """Last stable offset and end, once no transaction is being ended."""
    for _ in range(20):
        before = talk.stable_end(topic)
        time.sleep(0.02)
        if talk.stable_end(topic) == before:
            return before
    return before


def script_of_the_older_flow(address: str) -> Heard:
    with talking(address, 1) as [talk]:
        name, group, topic, other = (unique(one) for one in ("tx", "group", "topic", "other"))
        for one in (topic, other):
            talk.create_topic(one)
        find(talk, name)
        find(talk, group, 0)
        note = talk.note
        note("no id", init(talk, "")[0])
        note("no timeout", init(talk, name, timeout_ms=0)[0])
        note("long timeout", init(talk, name, timeout_ms=2**31 - 1)[0])
        note("plain", init(talk, None)[0::2])
        error, pid, epoch = init(talk, name)
        who = (pid, epoch)
        note("init", (error, epoch))
        note("empty", state(talk, name))
        note("end of nothing", end(talk, name, who, True)[0])
        note("abort of nothing", end(talk, name, who, False)[0])
        note("produce before adding", produce(talk, topic, name, who, 0, 10))
        note("produce before adding, 11", produce(talk, topic, name, who, 0, 11))
        note("add unknown", add(talk, name, who, topic, "none"))
        note("add, no such id", add(talk, unique("none"), who, topic))
        note("add, other producer", add(talk, name, (pid + 1000, epoch), topic))
        note("add, other epoch", add(talk, name, (pid, epoch + 1), topic))
        note("add, other epoch, older", add(talk, name, (pid, epoch + 1), topic, version=1))
        note("add", add(talk, name, who, topic))
        note("produce", produce(talk, topic, name, who, 0, 10))
        note("produce elsewhere", produce(talk, other, name, who, 0, 10))
        note("produce elsewhere, 11", produce(talk, other, name, who, 0, 11))
        note("produce, other epoch", produce(talk, topic, name, (pid, epoch + 1), 0, 10))
        note("produce, other epoch, 11", produce(talk, topic, name, (pid, epoch + 1), 0, 11))
        note("produce, other producer", produce(talk, topic, name, (pid + 1000, 0), 0, 10))
        note("produce again", produce(talk, topic, name, who, 0, 10))
        note("produce with a gap", produce(talk, topic, name, who, 5, 10))
        note("ongoing", state(talk, name))
        note("open", stable(talk, topic))
        note("offset before adding", commit_offset(talk, name, who, group, topic, 4))
        note("offset before adding, 4", commit_offset(talk, name, who, group, topic, 4, version=4))
        note("add offsets", add_offsets(talk, name, who, group))
        note("offset", commit_offset(talk, name, who, group, topic, 5))
        note("offset, past", commit_offset(talk, name, (pid, epoch - 1), group, topic, 5))
        note(
            "offset of a member that is not",
            commit_offset(talk, name, who, group, topic, 5, member="m", generation=3),
        )
        note("committed, any", talk.committed(group, topic))
        note("committed, stable", talk.committed(group, topic, stable=True))
        note("end, other epoch", end(talk, name, (pid, epoch + 1), True)[0])
        note("end, other epoch, older", end(talk, name, (pid, epoch + 1), True, version=1)[0])
        note("end, other producer", end(talk, name, (pid + 1000, epoch), True)[0])
        note("end, no such id", end(talk, unique("none"), who, True)[0])
        note("commit", end(talk, name, who, True)[0])
        note("complete", state(talk, name))
        note("commit again", end(talk, name, who, True)[0])
        note("abort after commit", end(talk, name, who, False)[0])
        note("closed", stable(talk, topic))
        note("committed, after", talk.committed(group, topic, stable=True))
        add(talk, name, who, topic, other)
        note(
            "produce 2",
            [produce(talk, one, name, who, n, 10) for one, n in ((topic, 1), (other, 0))],
        )
        note("both", state(talk, name)[3])
        note("abort", end(talk, name, who, False)[0])
        note("aborted", state(talk, name))
        note("closed 2", [stable(talk, one) for one in (topic, other)])
        add(talk, name, who, topic)
        produce(talk, topic, name, who, 2, 10)
        error, again, raised = init(talk, name)
        note("new producer", (error, again == pid, raised > epoch))
        note("zombie adds", add(talk, name, who, topic))
        note("zombie produces", produce(talk, topic, name, who, 3, 10))
        note("zombie commits", end(talk, name, who, True)[0])
        note("zombie commits, older", end(talk, name, who, True, version=1)[0])
        note("zombie raises itself", init(talk, name, expected=who)[0])
        note("zombie raises itself, older", init(talk, name, expected=who, version=3)[0])
        note("closed 3", stable(talk, topic)[0] == stable(talk, topic)[1])
        return talk.heard


def script_of_the_newer_flow(address: str) -> Heard:
    with talking(address, 1) as [talk]:
        name, group, topic, other = (unique(one) for one in ("tx", "group", "topic", "other"))
        for one in (topic, other):
            talk.create_topic(one)
        find(talk, name)
        find(talk, group, 0)
        note = talk.note
        note("feature", talk.connection.features.get("transaction.version"))
        error, pid, epoch = init(talk, name)
        note("init", (error, epoch))
        note("produce of a stranger", produce(talk, topic, name, (pid + 1000, 0), 0, 12))
        note("commit of nothing", end(talk, name, (pid, epoch), True, 5)[0])
        error, same, raised = end(talk, name, (pid, epoch), False, 5)
        note("abort of nothing", (error, same == pid, raised - epoch))
        epoch = raised
        note("produce joins", produce(talk, topic, name, (pid, epoch), 0, 12))
        note("ongoing", state(talk, name))
        note("offset joins", commit_offset(talk, name, (pid, epoch), group, topic, 7, version=5))
        note("committed, any", talk.committed(group, topic))
        note("committed, stable", talk.committed(group, topic, stable=True))
        note("open", stable(talk, topic))
        note("produce, future epoch", produce(talk, topic, name, (pid, epoch + 1), 0, 12))
        note("end, future epoch", end(talk, name, (pid, epoch + 1), True, 5)[0])
        error, same, raised = end(talk, name, (pid, epoch), True, 5)
        note("commit", (error, same == pid, raised - epoch))
        note("complete", state(talk, name))
        error, same, repeated = end(talk, name, (pid, epoch), True, 5)
        note("commit again", (error, same == pid, repeated - raised))
        note("abort after commit", end(talk, name, (pid, epoch), False, 5)[0])
        note("late produce", produce(talk, topic, name, (pid, epoch), 1, 12))
        note("closed", stable(talk, topic))
        note("committed, after", talk.committed(group, topic, stable=True))
        epoch = raised
        note("next", produce(talk, topic, name, (pid, epoch), 0, 12))
        note("elsewhere", produce(talk, other, name, (pid, epoch), 0, 12))
        error, same, raised = end(talk, name, (pid, epoch), False, 5)
        note("abort", (error, same == pid, raised - epoch))
        error, same, repeated = end(talk, name, (pid, epoch), False, 5)
        note("abort again", (error, same == pid, repeated - raised))
        note("commit after abort", end(talk, name, (pid, epoch), True, 5)[0])
        note("aborted", state(talk, name))
        epoch = raised
        produce(talk, topic, name, (pid, epoch), 0, 12)
        error, same, newest = init(talk, name)
        note("new producer", (error, same == pid, newest > epoch))
        note("zombie produces", produce(talk, topic, name, (pid, epoch), 1, 12))
        note("zombie commits", end(talk, name, (pid, epoch), True, 5)[0])
        note("zombie aborts", end(talk, name, (pid, epoch), False, 5)[0])
        note(
            "zombie adds offsets",
            commit_offset(talk, name, (pid, epoch), group, topic, 9, version=5),
        )
        produce(talk, topic, name, (pid, newest), 0, 12)
        listed = talk.ask(
            ApiKey.LIST_TRANSACTIONS,
            list_transactions.ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"]),
        )
        rows = [row for row in listed.transaction_states if row.transactional_id == name]
        note("listed", [(row.producer_id == pid, row.transaction_state) for row in rows])
        note("unknown states", listed.unknown_state_filters)
        note("last", end(talk, name, (pid, newest), True, 5)[0])
        note("not found", state(talk, unique("none")))
        return talk.heard


SCRIPTS = [script_of_the_older_flow, script_of_the_newer_flow]


@pytest.mark.clients
@pytest.mark.parametrize("script", SCRIPTS)
def test_transactions_answer_as_kafka_does(script: object, ours: str, kafka: str) -> None:
    assert callable(script)
    found = differences(script(ours), script(kafka))
    assert not found, found


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run_without_a_kafka(script: object, ours: str) -> None:
    assert callable(script)
    assert len(script(ours)) > 10
