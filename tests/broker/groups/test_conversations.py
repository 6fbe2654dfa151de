"""Groups answer as Apache Kafka does: one script, two brokers, the same answers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker.conversations import Heard, Talk, differences, talking, unique
from tailrace.broker.embedded import BrokerThread
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    list_groups,
    offset_delete,
)
from tailrace.wire.messages import leave_group as leave_wire


@pytest.fixture
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerThread(
        tmp_path_factory.mktemp("broker"), settings=settings, durable=False
    ) as broker:
        yield broker.address


def find(talk: Talk, group: str) -> None:
    for _ in range(100):
        answer = talk.ask(
            ApiKey.FIND_COORDINATOR,
            find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]),
        )
        ready = talk.committed(group, "none")[0] not in (14, 15, 16)
        if answer.coordinators[0].error_code == 0 and ready:
            return
        time.sleep(0.1)
    raise AssertionError("no coordinator")


def beat(talk: Talk, group: str, member: str, generation: int, instance: str | None = None) -> int:
    answer = talk.ask(
        ApiKey.HEARTBEAT, heartbeat.HeartbeatRequest(group, generation, member, instance)
    )
    return int(answer.error_code)


def described(talk: Talk, group: str, version: int | None = None) -> tuple[object, ...]:
    [found] = talk.ask(
        ApiKey.DESCRIBE_GROUPS, describe_groups.DescribeGroupsRequest(groups=[group]), version
    ).groups
    return (
        found.error_code,
        found.group_state,
        found.protocol_type,
        found.protocol_data,
        sorted((len(one.member_metadata), bytes(one.member_assignment)) for one in found.members),
    )


def deleted(talk: Talk, *groups: str) -> list[int]:
    answer = talk.ask(
        ApiKey.DELETE_GROUPS, delete_groups.DeleteGroupsRequest(groups_names=list(groups))
    )
    codes = {one.group_id: one.error_code for one in answer.results}
    return [codes[group] for group in groups]


def offsets_deleted(talk: Talk, group: str, topic: str) -> tuple[int, list[int]]:
    answer = talk.ask(
        ApiKey.OFFSET_DELETE,
        offset_delete.OffsetDeleteRequest(
            group_id=group,
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    topic, [offset_delete.OffsetDeleteRequestPartition(0)]
                )
            ],
        ),
    )
    return answer.error_code, [
        one.error_code for topic_answer in answer.topics for one in topic_answer.partitions
    ]


def left(talk: Talk, group: str, *members: tuple[str, str | None]) -> tuple[int, list[int]]:
    answer = talk.ask(
        ApiKey.LEAVE_GROUP,
        leave_wire.LeaveGroupRequest(
            group_id=group,
            members=[leave_wire.MemberIdentity(member, instance) for member, instance in members],
        ),
    )
    return answer.error_code, [one.error_code for one in answer.members]


def script_of_members(address: str) -> Heard:
    """Two members come, work and go."""
    with talking(address, 3) as (one, two, admin):
        group, topic = unique("group"), unique("topic")
        admin.create_topic(topic, 2)
        find(admin, group)
        note = admin.note
        note("unknown group 5", described(admin, group, 5))
        note("unknown group 6", described(admin, group, 6))
        note("beat nobody", beat(one, group, "m", 1))
        note("sync nobody", one.ask(ApiKey.SYNC_GROUP, one.sync(group, "m", 1)).error_code)
        note("leave nobody", left(one, group, ("m", None)))
        note("short session", one.ask(ApiKey.JOIN_GROUP, one.join(group, session_ms=1)).error_code)
        note("no name", one.ask(ApiKey.JOIN_GROUP, one.join("")).error_code)
        note("known nobody", one.ask(ApiKey.JOIN_GROUP, one.join(group, "m")).error_code)
        note("no protocol", one.ask(ApiKey.JOIN_GROUP, one.join(group, protocols=())).error_code)
        given = one.ask(ApiKey.JOIN_GROUP, one.join(group, topics=(topic,)))
        note("id required", (given.error_code, given.generation_id, bool(given.member_id)))
        first = given.member_id
        joined = one.ask(ApiKey.JOIN_GROUP, one.join(group, first, topics=(topic,)))
        note(
            "joined",
            (
                joined.error_code,
                joined.generation_id,
                joined.protocol_type,
                joined.protocol_name,
                joined.leader == first,
                len(joined.members),
                joined.skip_assignment,
            ),
        )
        note("while completing", described(admin, group))
        note("commit in between", one.commit(group, topic, 1, member=first, generation=1))
        note("beat in between", beat(one, group, first, 1))
        synced = one.ask(ApiKey.SYNC_GROUP, one.sync(group, first, 1, {first: b"all"}))
        note("synced", (synced.error_code, synced.protocol_name, bytes(synced.assignment)))
        note("stable", described(admin, group))
        note("beat", beat(one, group, first, 1))
        note("beat past", beat(one, group, first, 0))
        note("beat stranger", beat(one, group, "stranger", 1))
        note("commit", one.commit(group, topic, 5, member=first, generation=1))
        note("commit past", one.commit(group, topic, 6, member=first, generation=0))
        note("commit stranger", one.commit(group, topic, 6, member="stranger", generation=1))
        note("commit admin", admin.commit(group, topic, 6))
        note("commit unknown topic", one.commit(group, "none", 6, member=first, generation=1))
        note(
            "commit unknown partition",
            one.commit(group, topic, 6, member=first, generation=1, partition=9),
        )
        long = one.commit(group, topic, 6, member=first, generation=1, metadata="x" * 5000)
        note("commit long metadata", long)
        note("committed", admin.committed(group, topic))
        note("committed none", admin.committed(group, "none"))
        note("offset delete living", offsets_deleted(admin, group, topic))
        note("offset delete unknown topic", offsets_deleted(admin, group, "none"))
        note("delete living", deleted(admin, group, unique("none"), ""))
        listed = admin.ask(ApiKey.LIST_GROUPS, list_groups.ListGroupsRequest())
        [row] = [each for each in listed.groups if each.group_id == group]
        note("listed", (row.protocol_type, row.group_state, row.group_type))
        again = one.ask(ApiKey.SYNC_GROUP, one.sync(group, first, 1))
        note("sync again", (again.error_code, bytes(again.assignment)))

        second = two.ask(ApiKey.JOIN_GROUP, two.join(group, topics=(topic,))).member_id
        two.begin(ApiKey.JOIN_GROUP, two.join(group, second, topics=(topic,)))
        for _ in range(50):
            if beat(one, group, first, 1) == 27:
                break
            time.sleep(0.05)
        note("beat while preparing", beat(one, group, first, 1))
        note("commit while preparing", one.commit(group, topic, 7, member=first, generation=1))
        early = one.ask(ApiKey.SYNC_GROUP, one.sync(group, first, 1))
        note("sync while preparing", early.error_code)
        note("while preparing", described(admin, group))
        joined = one.ask(ApiKey.JOIN_GROUP, one.join(group, first, topics=(topic,)))
        other = two.end()
        note("generation 2", (joined.generation_id, len(joined.members), len(other.members)))
        note("same leader", joined.leader == other.leader == first)
        two.begin(ApiKey.SYNC_GROUP, two.sync(group, second, 2))
        one.ask(ApiKey.SYNC_GROUP, one.sync(group, first, 2, {first: b"1", second: b"2"}))
        note("share of the second", bytes(two.end().assignment))
        follower = two.ask(ApiKey.JOIN_GROUP, two.join(group, second, topics=(topic,)))
        note("follower joins again", (follower.error_code, follower.generation_id))
        misfit = admin.ask(ApiKey.JOIN_GROUP, admin.join(group, protocols=("sticky",)))
        note("misfit", misfit.error_code)
        misfit = admin.ask(ApiKey.JOIN_GROUP, admin.join(group, protocol_type="connect"))
        note("other kind", misfit.error_code)
        note("leave", left(two, group, (second, None)))
        note("leave again", left(two, group, (second, None)))
        note("commit of who left", two.commit(group, topic, 8, member=second, generation=2))
        joined = one.ask(ApiKey.JOIN_GROUP, one.join(group, first, topics=(topic,)))
        note("alone again", (joined.error_code, joined.generation_id))
        note("last leaves", left(one, group, (first, None)))
        note("empty", described(admin, group))
        note("commit to empty", admin.commit(group, topic, 9))
        note("commit to empty with a past", one.commit(group, topic, 9, member=first, generation=3))
        note("committed last", admin.committed(group, topic))
        note("offset delete", offsets_deleted(admin, group, topic))
        note("committed after delete", admin.committed(group, topic))
        note("delete empty", deleted(admin, group, group)[:1])
        note("delete again", deleted(admin, group))
        note("offset delete gone", offsets_deleted(admin, group, topic))
        note("commit new with a past", one.commit(unique("g"), topic, 9, member="m", generation=3))
        return admin.heard


def script_of_static_members(address: str) -> Heard:
    """Static members return and are fenced."""
    with talking(address, 3) as (one, two, admin):
        group, topic = unique("group"), unique("topic")
        admin.create_topic(topic)
        find(admin, group)
        note = admin.note
        first = one.ask(ApiKey.JOIN_GROUP, one.join(group, instance="i1", topics=(topic,)))
        note("joined", (first.error_code, first.generation_id, len(first.members)))
        member = first.member_id
        one.ask(ApiKey.SYNC_GROUP, one.sync(group, member, 1, {member: b"all"}, instance="i1"))
        note("beat", beat(one, group, member, 1, "i1"))
        note("beat of an unknown twin", beat(one, group, member, 1, "i2"))
        back = two.ask(ApiKey.JOIN_GROUP, two.join(group, instance="i1", topics=(topic,)))
        note(
            "leader is back",
            (
                back.error_code,
                back.generation_id,
                back.member_id != member,
                back.leader == back.member_id,
                back.skip_assignment,
                len(back.members),
            ),
        )
        old = two.ask(ApiKey.JOIN_GROUP, two.join(group, instance="i1", topics=(topic,)), 7)
        note(
            "leader is back, older client",
            (old.error_code, old.generation_id, old.leader == old.member_id, len(old.members)),
        )
        note("twin is fenced", beat(one, group, member, 1, "i1"))
        commit = one.commit(group, topic, 1, member=member, generation=1, instance="i1")
        note("twin commits", commit)
        rejoin = one.ask(ApiKey.JOIN_GROUP, one.join(group, member, instance="i1", topics=(topic,)))
        note("twin joins", rejoin.error_code)
        share = two.ask(ApiKey.SYNC_GROUP, two.sync(group, old.member_id, 1, instance="i1"))
        note("share is kept", (share.error_code, bytes(share.assignment)))
        note("removed by name", left(admin, group, ("", "i1"), ("", "i9"), ("m", "i1")))
        note("empty", described(admin, group))
        return admin.heard


SCRIPTS = [script_of_members, script_of_static_members]


@pytest.mark.clients
@pytest.mark.parametrize("script", SCRIPTS)
def test_groups_answer_as_kafka_does(script: object, ours: str, kafka: str) -> None:
    assert callable(script)
    found = differences(script(ours), script(kafka))
    assert not found, found


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run_without_a_kafka(script: object, ours: str) -> None:
    assert callable(script)
    assert len(script(ours)) > 10
