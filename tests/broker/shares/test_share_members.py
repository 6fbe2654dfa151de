"""Members of share groups: what they get to read, epochs, and what a restart leaves."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.conversations import Talk
from tailrace.broker.embedded import BrokerProcess
from tailrace.broker.shares.assignor import Place, assign
from tailrace.broker.shares.membership import Beat, BeatAnswer, Membership
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import share_group_heartbeat

TOPICS = {name.encode().ljust(16): count for name, count in (("a", 1), ("b", 3), ("c", 7))}


class Catalog:
    def __init__(self) -> None:
        self.topics = {"a": (b"a".ljust(16), 1), "b": (b"b".ljust(16), 3)}

    def look_up(self, name: str) -> tuple[bytes, int] | None:
        return self.topics.get(name)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([f"m{n}" for n in range(9)]),
            st.frozensets(st.sampled_from(sorted(TOPICS)), min_size=1),
            max_size=9,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_every_partition_has_a_reader_and_every_member_a_partition(
    changes: list[dict[str, frozenset[bytes]]],
) -> None:
    present: dict[str, frozenset[Place]] = {}
    for subscriptions in changes:
        present = assign(TOPICS, subscriptions, present)
        assert present.keys() == subscriptions.keys()
        read = {place for places in present.values() for place in places}
        wanted = frozenset().union(*subscriptions.values()) if subscriptions else frozenset()
        assert read == {(topic, index) for topic in wanted for index in range(TOPICS[topic])}
        for member, places in present.items():
            assert places
            assert {topic for topic, _ in places} <= subscriptions[member]
        assert assign(TOPICS, subscriptions, present) == present  # nothing moves by itself


@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 20))
def test_members_with_the_same_wishes_get_as_much(members: int, count: int, before: int) -> None:
    topic = b"t".ljust(16)
    wishes = {f"m{n:02}": frozenset({topic}) for n in range(members)}
    earlier = assign({topic: count}, {f"m{n:02}": frozenset({topic}) for n in range(before)}, {})
    for present in ({}, earlier):
        found = assign({topic: count}, wishes, present)
        sizes = {len(places) for places in found.values()}
        assert max(sizes) - min(sizes) <= 1
        readers = [sum((topic, n) in places for places in found.values()) for n in range(count)]
        assert max(readers) <= -(-members // count) + 1
        assert min(readers) >= 1


def beat(groups: Membership, member: str, epoch: int, *topics: str, now: float = 0.0) -> BeatAnswer:
    return groups.beat(Beat("g", member, epoch, frozenset(topics) if topics else None), now)


def test_an_answer_that_was_lost_is_given_again() -> None:
    groups = Membership(Catalog())
    first = beat(groups, "m1", 0, "b")
    beat(groups, "m2", 0, "b")
    moved = beat(groups, "m1", first.epoch)
    assert moved.epoch > first.epoch
    assert moved.assigned is not None
    again = beat(groups, "m1", first.epoch)  # it did not hear of the new epoch
    assert again == moved
    assert beat(groups, "m1", moved.epoch).assigned is None
    assert beat(groups, "m1", moved.epoch + 1).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_members_that_never_answer_make_room() -> None:
    groups = Membership(Catalog(), session_seconds=lambda group: 10.0)
    one = beat(groups, "m1", 0, "b")
    beat(groups, "m2", 0, "b")
    one = beat(groups, "m1", one.epoch, now=9.0)
    assert [member for _, member in groups.expired(11.0)] == ["m2"]
    one = beat(groups, "m1", one.epoch, now=11.0)
    assert one.assigned is not None
    assert len(one.assigned) == 3
    assert beat(groups, "m2", 1, now=12.0).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_new_partitions_are_given_out() -> None:
    catalog = Catalog()
    groups = Membership(catalog)
    one = beat(groups, "m1", 0, "a")
    catalog.topics["a"] = (catalog.topics["a"][0], 4)
    grown = beat(groups, "m1", one.epoch)
    assert grown.assigned is not None
    assert len(grown.assigned) == 4


def test_members_live_on_over_a_kill(tmp_path: Path) -> None:
    wire = share_group_heartbeat

    def ask(talk: Talk, member: str, epoch: int, topics: list[str] | None = None) -> Any:
        return talk.ask(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            wire.ShareGroupHeartbeatRequest("workers", member, epoch, None, topics),
        )

    with BrokerProcess(tmp_path) as broker, closing(Talk(broker.address)) as talk:
        talk.create_topic("jobs", 4)
        ask(talk, "m1", 0, ["jobs"])
        second = ask(talk, "m2", 0, ["jobs"])
        first = ask(talk, "m1", 1)
        assert first.error_code == second.error_code == 0
        assert [len(one.assignment.topic_partitions[0].partitions) for one in (first, second)] == [
            2,
            2,
        ]
        ask(talk, "m3", 0, ["jobs"])
        assert ask(talk, "m3", -1).error_code == 0
        broker.process.kill()
        broker.process.wait()
    with BrokerProcess(tmp_path) as again, closing(Talk(again.address)) as talk:
        for member, epoch in (("m1", first.member_epoch), ("m2", second.member_epoch)):
            assert ask(talk, member, epoch).error_code == 0
        assert ask(talk, "m3", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
