"""Committed offsets, without sockets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.groups.conftest import Table
from tailrace.broker.groups import records
from tailrace.broker.groups.group import CommittedOffset, Group
from tailrace.broker.journal import java_hash, partition_of
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import consumer_protocol

DAY = 24 * 3600


def test_offset_is_there_after_a_restart(table: Table) -> None:
    assert table.commit(42, metadata="half way") is ErrorCode.NONE
    table.restart()
    error, found = table.groups.fetch("g", [("t", 0)])["t", 0]
    assert (error, found.offset, found.metadata) == (ErrorCode.NONE, 42, "half way")


def test_unknown_offset_is_minus_one(table: Table) -> None:
    assert table.committed() == -1
    table.commit(1, partition=1)
    assert table.committed() == -1


def test_all_offsets_of_a_group_are_given_when_none_is_named(table: Table) -> None:
    table.commit(1, partition=0)
    table.commit(2, partition=1)
    table.commit(3, group="other")
    found = table.groups.fetch("g", None)
    assert {key: value.offset for key, (_, value) in found.items()} == {("t", 0): 1, ("t", 1): 2}


def test_commits_of_members_strangers_and_of_the_past(table: Table) -> None:
    [leader] = table.stable_group(1)
    assert table.commit(1, member=leader, generation=1) is ErrorCode.NONE
    assert table.commit(1, member=leader, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert table.commit(1, member="stranger", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.commit(1) is ErrorCode.UNKNOWN_MEMBER_ID  # a living group's offsets: 25
    assert table.commit(1, group="nope", generation=3) is ErrorCode.GROUP_ID_NOT_FOUND


def test_commit_between_join_and_sync_is_told_of_the_rebalance(table: Table) -> None:
    [answer] = table.join()
    error = table.commit(1, member=answer.member_id, generation=1)
    assert error is ErrorCode.REBALANCE_IN_PROGRESS


def test_commit_while_others_are_asked_to_join_is_taken(table: Table) -> None:
    _, follower = table.stable_group(2)
    table.join()
    assert table.commit(9, member=follower, generation=2) is ErrorCode.NONE
    assert table.committed() == 9


def test_commit_of_a_fenced_static_member_is_refused(table: Table) -> None:
    [first] = table.join(instance="i1")
    table.sync(first.member_id, 1, {first.member_id: b"S"}, instance="i1")
    table.join(instance="i1")
    error = table.commit(1, member=first.member_id, generation=1, instance="i1")
    assert error is ErrorCode.FENCED_INSTANCE_ID


def test_commit_counts_as_a_heartbeat(table: Table) -> None:
    [leader] = table.stable_group(1)
    for _ in range(10):
        table.pass_time(3)
        assert table.commit(1, member=leader, generation=1) is ErrorCode.NONE
    assert table.heartbeat(leader, 1) is ErrorCode.NONE


def test_long_metadata_is_refused(table: Table) -> None:
    assert table.commit(1, metadata="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert table.committed() == -1


def test_commit_that_could_not_be_written_does_not_count(table: Table) -> None:
    table.commit(1)
    table.journal.failing = OSError("disk full")
    assert table.commit(2) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert table.committed() == 1


def test_transactional_offset_counts_after_its_marker(table: Table) -> None:
    table.commit(1)
    assert table.commit(5, producer_id=7) is ErrorCode.NONE
    assert table.committed() == 1
    assert table.committed(stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    home = partition_of("g", table.journal.partitions)
    table.groups.end_transaction(home, 7, commit=True)
    assert table.committed(stable=True) == 5


def test_aborted_transactional_offset_never_was(table: Table) -> None:
    table.commit(1)
    table.commit(5, producer_id=7)
    table.groups.end_transaction(partition_of("g", 4), 7, commit=False)
    assert table.committed(stable=True) == 1


def test_plain_commit_after_a_transactional_one_is_the_newer_word(table: Table) -> None:
    table.commit(5, producer_id=7)
    table.commit(8)
    table.groups.end_transaction(partition_of("g", 4), 7, commit=True)
    assert table.committed() == 8


def test_pending_offsets_survive_a_restart_until_their_marker(table: Table) -> None:
    home = partition_of("g", 4)
    table.commit(5, producer_id=7)
    table.commit(6, partition=1, producer_id=8)
    table.journal.end_transaction(home, 8, commit=True)
    table.restart()
    assert table.committed(partition=1, stable=True) == 6
    assert table.committed(stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    table.groups.end_transaction(home, 7, commit=True)
    assert table.committed(stable=True) == 5


def test_transactional_commit_of_a_member_that_left(table: Table) -> None:
    leader, other = table.stable_group(2)
    table.groups.leave("g", [(other, None)])
    error = table.commit(1, member=other, generation=2, producer_id=7)
    assert error is ErrorCode.UNKNOWN_MEMBER_ID
    [again] = table.join(leader)
    error = table.commit(1, member=leader, generation=again.generation - 1, producer_id=7)
    assert error is ErrorCode.ILLEGAL_GENERATION


def test_offsets_of_an_empty_group_expire_after_it_became_empty(table: Table) -> None:
    [leader] = table.stable_group(1)
    table.commit(1, member=leader, generation=1)
    table.groups.leave("g", [(leader, None)])
    table.pass_time(6 * DAY, 3600)
    assert table.committed() == 1
    table.pass_time(2 * DAY, 3600)
    assert table.committed() == -1
    assert table.groups.groups() == []
    table.restart()
    assert table.groups.groups() == []


def test_no_offset_expires_while_the_clock_is_in_doubt(table: Table) -> None:
    table.commit(1)
    table.clock_trusted = False
    table.pass_time(8 * DAY, 3600)
    assert table.committed() == 1
    table.clock_trusted = True
    table.pass_time(DAY, 3600)
    assert table.committed() == -1


def test_offsets_of_a_simple_consumer_expire_after_the_last_commit(table: Table) -> None:
    table.commit(1)
    table.pass_time(6 * DAY, 3600)
    table.commit(2)
    table.pass_time(6 * DAY, 3600)
    assert table.committed() == 2
    table.pass_time(2 * DAY, 3600)
    assert table.committed() == -1


def test_members_keep_the_offsets_of_what_they_subscribe_to(table: Table) -> None:
    out = bytearray((0, 0))
    consumer_protocol.ENCODE_CONSUMER_PROTOCOL_SUBSCRIPTION[0](
        consumer_protocol.ConsumerProtocolSubscription(topics=["t"]), out
    )
    [leader] = table.stable_group(1, protocols=(("range", bytes(out)),))
    table.commit(1, member=leader, generation=1)
    table.commit(1, topic="old", member=leader, generation=1)
    for _ in range(8 * DAY // 9):
        table.clock.advance(9)
        table.heartbeat(leader, 1)
    table.groups.tick()
    assert table.committed() == 1
    assert table.committed(topic="old") == -1
    answers: list[tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]] = []
    table.groups.delete_offsets("g", [("t", 0)], lambda *given: answers.append(given))
    assert answers[0][1]["t", 0] is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_offsets_can_be_deleted(table: Table) -> None:
    table.commit(1)
    table.commit(2, partition=1)
    answers: list[ErrorCode] = []
    table.groups.delete_offsets("g", [("t", 0)], lambda error, _: answers.append(error))
    table.groups.delete_offsets("nope", [("t", 0)], lambda error, _: answers.append(error))
    assert answers == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    table.restart()
    assert (table.committed(), table.committed(partition=1)) == (-1, 2)


def test_offsets_of_a_deleted_topic_go(table: Table) -> None:
    table.commit(1)
    table.commit(2, topic="kept")
    table.groups.forget_topic("t")
    table.restart()
    assert (table.committed(), table.committed(topic="kept")) == (-1, 2)


def test_java_hash_is_javas() -> None:
    # Values of "…".hashCode() in Java.
    assert java_hash("") == 0
    assert java_hash("hello") == 99162322
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("😀") == 1772899
    assert partition_of("polygenelubricants", 50) == 0


def test_offset_records_have_kafkas_bytes() -> None:
    key = records.encode_offset_key("g", "t", 3)
    assert key.hex() == "000100016700017400000003"
    value = records.encode_offset_value(CommittedOffset(5, 2, "m", 1000))
    assert value.hex() == "000300000000000000050000000200016d00000000000003e8"
    assert records.encode_group_key("g").hex() == "0002000167"


@given(
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=20).filter(lambda text: text.isprintable()),
    st.integers(0, 2**60),
    st.one_of(st.just(-1), st.integers(0, 2**60)),
)
def test_offset_values_round_trip(
    offset: int, epoch: int, metadata: str, committed_at: int, expires_at: int
) -> None:
    value = CommittedOffset(offset, epoch, metadata, committed_at, expires_at, 9)
    found = records.decode_offset_value(records.encode_offset_value(value), 9)
    if expires_at >= 0:
        epoch = -1  # version 1 has no room for it
    assert found == CommittedOffset(offset, epoch, metadata, committed_at, expires_at, 9)


def test_group_values_round_trip(table: Table) -> None:
    table.stable_group(3)
    group = table.groups.group("g")
    assert group is not None
    copy = Group("g")
    records.decode_group_value(copy, records.encode_group_value(group))
    assert copy == group
