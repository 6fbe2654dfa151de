"""Share fetches and acknowledgements, right and wrong: one script, two brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from broker.conversations import Heard, Talk, differences, unique
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.records.encode import encode_columns
from tailrace.wire.apis import ApiKey
from tailrace.wire.message import uuid_text
from tailrace.wire.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    find_coordinator,
    produce,
    share_acknowledge,
    share_fetch,
)
from tailrace.wire.messages import share_group_heartbeat as beats

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
MOVED = (14, 15, 16)


@pytest.fixture
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), durable=False) as broker:
        yield broker.address


class Worker(Talk):
    """A member of a share group, word by word."""

    def __init__(self, address: str, group: str, topic_id: bytes, heard: Heard) -> None:
        super().__init__(address, heard)
        self.group, self.topic_id = group, topic_id
        self.member = uuid_text(unique("m").encode().ljust(16)[:16])
        self.session = 0

    def join(self, topic: str) -> None:  # type: ignore[override]
        for _ in range(200):
            answer = self.ask(
                ApiKey.SHARE_GROUP_HEARTBEAT,
                beats.ShareGroupHeartbeatRequest(self.group, self.member, 0, None, [topic]),
            )
            if answer.error_code not in MOVED:
                break
            time.sleep(0.1)
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch

    def fetch(
        self,
        *answers: tuple[int, int, list[int]],
        session: int | None = None,
        most: int = 100,
        wait_ms: int = 500,
    ) -> tuple[object, ...]:
        """Errors, and (first, last, deliveries) of what was given."""
        wire = share_fetch
        asked = wire.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.session if session is None else session,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=most,
            batch_size=most,
            topics=[
                wire.FetchTopic(
                    self.topic_id,
                    [
                        wire.FetchPartition(
                            0, 0, [wire.AcknowledgementBatch(*one) for one in answers]
                        )
                    ],
                )
            ],
        )
        answer = self.ask(ApiKey.SHARE_FETCH, asked, 1)
        if answer.error_code == 0 and session is None:
            self.session += 1
        found = [row for topic in answer.responses for row in topic.partitions]
        given = [
            (one.first_offset, one.last_offset, one.delivery_count)
            for row in found
            for one in row.acquired_records
        ]
        codes = [
            (row.error_code, row.acknowledge_error_code)
            for row in found
            if row.error_code or row.acknowledge_error_code
        ]
        return (answer.error_code, codes, merged(given))

    def take(self, count: int, most: int = 100) -> list[tuple[int, int, int]]:
        """Fetch until so many records are held."""
        held: list[tuple[int, int, int]] = []
        for _ in range(100):
            error, codes, given = self.fetch(most=most)
            if codes == [(-1, 0)]:
                time.sleep(0.1)  # Kafka is still setting the group's state up
                continue
            assert (error, codes) == (0, []), (error, codes)
            assert isinstance(given, list)
            held = merged(held + given)
            if sum(last - first + 1 for first, last, _ in held) >= count:
                return held
        raise AssertionError(f"only {held}")

    def answer(
        self, *answers: tuple[int, int, list[int]], session: int | None = None
    ) -> tuple[object, ...]:
        wire = share_acknowledge
        found = self.ask(
            ApiKey.SHARE_ACKNOWLEDGE,
            wire.ShareAcknowledgeRequest(
                group_id=self.group,
                member_id=self.member,
                share_session_epoch=self.session if session is None else session,
                topics=[
                    wire.AcknowledgeTopic(
                        self.topic_id,
                        [
                            wire.AcknowledgePartition(
                                0, [wire.AcknowledgementBatch(*one) for one in answers]
                            )
                        ],
                    )
                ],
            ),
            1,
        )
        if found.error_code == 0 and session is None:
            self.session += 1
        return (
            found.error_code,
            [row.error_code for topic in found.responses for row in topic.partitions],
        )  # fmt: skip


def merged(runs: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Neighbours with the same count as one: how they are cut is the broker's affair."""
    found: list[tuple[int, int, int]] = []
    for first, last, count in sorted(runs):
        if found and found[-1][1] == first - 1 and found[-1][2] == count:
            found[-1] = (found[-1][0], last, count)
        else:
            found.append((first, last, count))
    return found


def fill(talk: Talk, topic: str, count: int) -> None:
    batch = encode_columns([None] * count, [b"x"] * count, 1_700_000_000_000)
    answer = talk.ask(
        ApiKey.PRODUCE,
        produce.ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                produce.TopicProduceData(topic, b"", [produce.PartitionProduceData(0, batch)])
            ],
        ),
        9,
    )
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


def begin(address: str, heard: Heard, **settings: str) -> tuple[Talk, Worker, Worker, str]:
    """A topic with ten records in one batch, and two members that read from the start."""
    talk, group, topic = Talk(address, heard), unique("group"), unique("topic")
    topic_id = talk.create_topic(topic)
    with Admin(address) as admin:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        admin.alter_group_config(group, {"share.auto.offset.reset": "earliest", **names})
    for _ in range(200):
        found = talk.ask(
            ApiKey.FIND_COORDINATOR,
            find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]),
        )
        if found.coordinators[0].error_code == 0:
            break
        time.sleep(0.1)
    fill(talk, topic, 10)
    workers = [Worker(address, group, topic_id, heard) for _ in range(2)]
    for worker in workers:
        worker.join(topic)
    return talk, workers[0], workers[1], topic  # fmt: skip


def script_of_answers(address: str) -> Heard:
    heard: Heard = []
    talk, one, two, _ = begin(address, heard)
    with closing(talk), closing(one), closing(two):
        note = talk.note
        note("opens and holds", one.take(10))
        note("nothing is left for the other", two.fetch(wait_ms=0))
        note("accept", one.answer((0, 1, [ACCEPT])))
        note("accept again", one.answer((0, 1, [ACCEPT])))
        note("not held by it", two.answer((2, 2, [ACCEPT])))
        note("beyond the end", one.answer((50, 60, [ACCEPT])))
        note("backwards", one.answer((5, 4, [ACCEPT])))
        note("no such kind", one.answer((2, 2, [9])))
        note("too few kinds", one.answer((2, 5, [ACCEPT, ACCEPT])))
        note("wrong session", one.answer((2, 2, [ACCEPT]), session=99))
        note("a session of nobody", two.answer((2, 2, [ACCEPT]), session=99))
        note("partly held", one.answer((9, 12, [ACCEPT])))
        note("kinds by record", one.answer((2, 5, [ACCEPT, RELEASE, REJECT, ACCEPT])))
        note("released goes to the other", two.take(1))
        note("with a fetch", two.fetch((3, 3, [RELEASE]), wait_ms=0)[:2])
        note("fetch opens with answers", one.fetch((6, 6, [ACCEPT]), session=0))
        return heard


def script_of_deliveries(address: str) -> Heard:
    heard: Heard = []
    talk, one, two, topic = begin(address, heard, share_delivery_count_limit="2")
    with closing(talk), closing(one), closing(two):
        note = talk.note
        note("first", one.take(10))
        note("release all", one.answer((0, 9, [RELEASE])))
        note("second", two.take(10))
        note("release for good", two.answer((0, 4, [RELEASE])))
        note("too late", two.answer((4, 4, [ACCEPT])))
        note("closes with the rest", two.fetch(session=-1, wait_ms=0))
        fill(talk, topic, 1)
        note("only the new one", one.take(1))
        return heard


def script_of_limits(address: str) -> Heard:
    heard: Heard = []
    talk, one, two, _ = begin(address, heard)
    with closing(talk), closing(one), closing(two):
        note = talk.note
        note("closes a session", (one.take(10), one.fetch(session=-1, wait_ms=0)))
        note("what it held is free", two.take(10))
        note("closed", one.fetch(session=5, wait_ms=0))
        note("a session of its own", one.fetch(session=0, wait_ms=0)[0])
        note("acknowledging opens none", two.answer((0, 0, [ACCEPT]), session=0))
        return heard


def script_of_offsets(address: str) -> Heard:
    """An administrator moves and forgets where groups are, also those that never were."""
    heard: Heard = []
    talk, one, two, topic = begin(address, heard)
    with closing(talk), closing(one), closing(two):
        note = talk.note

        def alter(group: str, name: str, partition: int, offset: int) -> object:
            wire = alter_share_group_offsets
            place = wire.AlterShareGroupOffsetsRequestPartition(partition, offset)
            asked = wire.AlterShareGroupOffsetsRequest(
                group, [wire.AlterShareGroupOffsetsRequestTopic(name, [place])]
            )
            for _ in range(100):
                answer = talk.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, asked)
                if answer.error_code not in MOVED:
                    break
                time.sleep(0.1)
            codes = [row.error_code for each in answer.responses for row in each.partitions]
            return answer.error_code, codes

        def where(group: str) -> object:
            wire = describe_share_group_offsets
            asked = wire.DescribeShareGroupOffsetsRequest(
                [wire.DescribeShareGroupOffsetsRequestGroup(group, None)]
            )
            (found,) = talk.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, asked, 0).groups
            starts = [row.start_offset for each in found.topics for row in each.partitions]
            return found.error_code, starts

        def delete(group: str, name: str) -> object:
            wire = delete_share_group_offsets
            asked = wire.DeleteShareGroupOffsetsRequest(
                group, [wire.DeleteShareGroupOffsetsRequestTopic(name)]
            )
            answer = talk.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, asked)
            return answer.error_code, [each.error_code for each in answer.responses]

        one.take(1)
        fresh = unique("fresh")
        note("move a group with members", alter(one.group, topic, 0, 3))
        note("delete of a group with members", delete(one.group, topic))
        note("an unknown group has nothing to delete", delete(unique("none"), topic))
        note("an unknown group is nowhere", where(fresh))
        note("move a group that never was", alter(fresh, topic, 0, 4))
        note("there it is", where(fresh))
        note("no such topic", alter(fresh, unique("no-topic"), 0, 4))
        note("no such partition", alter(fresh, topic, 7, 4))
        note("move it again", alter(fresh, topic, 0, 8))
        note("there it is now", where(fresh))
        note("forget it", delete(fresh, topic))
        note("it is nowhere", where(fresh))
        return heard


SCRIPTS = [script_of_answers, script_of_deliveries, script_of_limits, script_of_offsets]


@pytest.mark.clients
@pytest.mark.parametrize("script", SCRIPTS)
def test_share_groups_answer_as_kafkas_do(script: object, ours: str, kafka: str) -> None:
    assert callable(script)
    found = differences(script(ours), script(kafka))
    assert not found, found


@pytest.mark.parametrize("script", SCRIPTS)
def test_share_scripts_run_without_a_kafka(script: Any, ours: str) -> None:
    assert len(script(ours)) > 4
