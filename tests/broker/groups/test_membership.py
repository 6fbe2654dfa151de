"""Joining, rebalancing and leaving, without sockets."""

from __future__ import annotations

import pytest

from broker.groups.conftest import Table
from tailrace.broker.groups.group import GroupState
from tailrace.wire.errors import ErrorCode


def test_first_member_leads_and_gets_all_metadata(table: Table) -> None:
    [answer] = table.join()
    assert answer.error is ErrorCode.NONE
    assert answer.generation == 1
    assert answer.leader == answer.member_id
    assert [one.metadata for one in answer.members] == [b"sub"]


def test_newcomer_must_come_back_with_the_id_it_was_given(table: Table) -> None:
    [answer] = table.join(id_required=True)
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    [answer] = table.join(answer.member_id, id_required=True)
    assert (answer.error, answer.generation) == (ErrorCode.NONE, 1)


def test_pending_newcomer_holds_up_a_rebalance_until_its_session_ends(table: Table) -> None:
    [leader] = table.stable_group(1)
    [pending] = table.join(id_required=True, session_ms=6_000)
    again = table.join(leader)
    assert again == []
    table.pass_time(7)
    assert [one.generation for one in again] == [2]
    assert table.join(pending.member_id)[0].error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("jump", [-400 * 24 * 3600, -3600, 3600, 400 * 24 * 3600])
def test_a_jump_of_the_wall_clock_neither_ends_nor_keeps_a_session(
    table: Table, jump: float
) -> None:
    [member] = table.stable_group(1)
    table.pass_time(6)
    table.clock.jump(jump)
    table.pass_time(3)
    assert table.heartbeat(member, 1) is ErrorCode.NONE
    table.pass_time(11)
    assert table.heartbeat(member, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_nobody_joined_is_forgotten(table: Table) -> None:
    table.join(id_required=True)
    assert table.groups.group("g") is not None
    table.pass_time(11)
    assert table.groups.group("g") is None


def test_second_member_makes_the_first_join_again(table: Table) -> None:
    [leader] = table.stable_group(1)
    newcomer = table.join()
    assert newcomer == []
    assert table.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    [again] = table.join(leader)
    assert again.generation == newcomer[0].generation == 2
    assert len(again.members) == 2
    assert newcomer[0].members == ()


def test_followers_wait_for_the_leaders_assignment(table: Table) -> None:
    leader, follower = table.stable_group(2)
    third = table.join()
    for one in (leader, follower):
        table.join(one)
    generation = third[0].generation
    waiting = table.sync(follower, generation)
    assert waiting == []
    table.sync(leader, generation, {follower: b"F", third[0].member_id: b"T"})
    assert waiting[0].assignment == b"F"
    # A member the leader forgot gets an empty assignment, as in Kafka.
    assert table.sync(leader, generation)[0].assignment == b""
    assert table.sync(third[0].member_id, generation)[0].assignment == b"T"


def test_the_assignment_is_told_only_once_it_is_in_the_log(table: Table) -> None:
    [answer] = table.join()
    table.journal.held = True
    synced = table.sync(answer.member_id, 1, {answer.member_id: b"A"})
    assert synced == []
    table.journal.release()
    assert synced[0].assignment == b"A"


def test_a_failed_write_of_the_generation_makes_everybody_join_again(table: Table) -> None:
    [answer] = table.join()
    table.journal.failing = OSError("disk full")
    [synced] = table.sync(answer.member_id, 1, {answer.member_id: b"A"})
    assert synced.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    table.journal.failing = None
    [again] = table.join(answer.member_id)
    assert again.generation == 2


def test_silent_member_is_dropped_after_its_session(table: Table) -> None:
    leader, silent = table.stable_group(2)
    for _ in range(9):
        table.pass_time(2)
        table.heartbeat(leader, 2)
    group = table.groups.group("g")
    assert group is not None
    assert group.state is GroupState.PREPARING
    [answer] = table.join(leader)
    assert answer.generation == 3
    assert table.heartbeat(silent, 3) is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_does_not_rejoin_in_time_is_left_behind(table: Table) -> None:
    leader, slow = table.stable_group(2, rebalance_ms=20_000)
    newcomer = table.join(rebalance_ms=20_000)
    again = table.join(leader, rebalance_ms=20_000)
    for _ in range(12):
        table.pass_time(2)
        table.heartbeat(slow, 2)
    assert again[0].generation == newcomer[0].generation == 3
    assert {one.member_id for one in again[0].members} == {leader, newcomer[0].member_id}


def test_member_that_never_syncs_is_dropped_after_the_rebalance_timeout(table: Table) -> None:
    leader, lazy = table.stable_group(2, rebalance_ms=20_000)
    newcomer = table.join(rebalance_ms=20_000)
    for one in (leader, lazy):
        table.join(one, rebalance_ms=20_000)
    generation = newcomer[0].generation
    table.sync(leader, generation)
    table.sync(newcomer[0].member_id, generation)
    for _ in range(11):
        table.pass_time(2)
        for one in (leader, lazy, newcomer[0].member_id):
            table.heartbeat(one, generation)
    assert table.heartbeat(lazy, generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.heartbeat(leader, generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_initial_delay_gathers_members_into_one_generation() -> None:
    table = Table(delay_ms=3_000)
    first = table.join()
    table.pass_time(2)
    second = table.join()
    assert first == []
    table.pass_time(2)
    assert first == []  # someone came: the delay starts again
    table.pass_time(2)
    assert first[0].generation == second[0].generation == 1


def test_leaving_starts_a_rebalance_and_the_last_one_empties_the_group(table: Table) -> None:
    leader, other = table.stable_group(2)
    error, answers = table.groups.leave("g", [(leader, None)])
    assert error is ErrorCode.NONE
    assert answers == [(leader, None, ErrorCode.NONE)]
    [answer] = table.join(other)
    assert (answer.generation, answer.leader) == (3, other)
    table.groups.leave("g", [(other, None)])
    group = table.groups.group("g")
    assert group is not None
    assert (group.state, group.generation) == (GroupState.EMPTY, 4)


def test_leaving_twice_is_unknown(table: Table) -> None:
    [leader] = table.stable_group(1)
    table.groups.leave("g", [(leader, None)])
    assert table.groups.leave("g", [(leader, None)])[1][0][2] is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.groups.leave("nope", [(leader, None)])[1][0][2] is ErrorCode.UNKNOWN_MEMBER_ID


def test_follower_rejoining_a_stable_group_causes_no_rebalance(table: Table) -> None:
    _, follower = table.stable_group(2)
    [answer] = table.join(follower)
    assert (answer.error, answer.generation) == (ErrorCode.NONE, 2)
    group = table.groups.group("g")
    assert group is not None
    assert group.state is GroupState.STABLE


def test_leader_rejoining_a_stable_group_causes_a_rebalance(table: Table) -> None:
    leader, follower = table.stable_group(2)
    assert table.join(leader) == []
    assert table.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_lost_join_answer_is_given_again(table: Table) -> None:
    [answer] = table.join()
    assert table.join(answer.member_id) == [answer]


def test_protocol_without_common_ground_is_refused(table: Table) -> None:
    table.stable_group(1)
    [answer] = table.join(protocols=(("sticky", b""),))
    assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    [answer] = table.join(protocol_type="connect")
    assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    [answer] = table.join(group="other", protocols=())
    assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_protocol_most_members_prefer_is_chosen(table: Table) -> None:
    both = (("cooperative-sticky", b"c"), ("range", b"r"))
    leader, _ = table.stable_group(2, protocols=both)
    old = table.join(protocols=(("range", b"r"),))
    group = table.groups.group("g")
    assert group is not None
    for one in list(group.members):
        if one != leader and group.members[one].joining is None:
            table.join(one, protocols=both)
    [answer] = table.join(leader, protocols=both)
    assert old[0].protocol == answer.protocol == "range"


@pytest.mark.parametrize("session_ms", [1, 5_999, 1_800_001])
def test_session_timeout_outside_the_limits_is_refused(table: Table, session_ms: int) -> None:
    [answer] = table.join(session_ms=session_ms)
    assert answer.error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_empty_group_id_is_refused(table: Table) -> None:
    assert table.join(group="")[0].error is ErrorCode.INVALID_GROUP_ID
    assert table.heartbeat("m", 1, group="") is ErrorCode.INVALID_GROUP_ID


def test_full_group_takes_nobody_more() -> None:
    table = Table(max_size=2)
    table.stable_group(2)
    assert table.join()[0].error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_heartbeats_of_strangers_and_of_the_past(table: Table) -> None:
    [leader] = table.stable_group(1)
    assert table.heartbeat(leader, 1) is ErrorCode.NONE
    assert table.heartbeat(leader, 0) is ErrorCode.ILLEGAL_GENERATION
    assert table.heartbeat("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.heartbeat(leader, 1, group="nope") is ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_of_strangers_and_of_the_past(table: Table) -> None:
    [leader] = table.stable_group(1)
    assert table.sync("stranger", 1)[0].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.sync(leader, 7)[0].error is ErrorCode.ILLEGAL_GENERATION
    table.join()
    assert table.sync(leader, 1)[0].error is ErrorCode.REBALANCE_IN_PROGRESS


def test_static_member_returns_without_a_rebalance(table: Table) -> None:
    [leader] = table.stable_group(1)
    static = table.join(instance="i1")
    table.join(leader)
    generation = static[0].generation
    table.sync(leader, generation, {static[0].member_id: b"S"})
    table.sync(static[0].member_id, generation, instance="i1")
    [back] = table.join(instance="i1")
    assert (back.error, back.generation) == (ErrorCode.NONE, generation)
    assert back.member_id != static[0].member_id
    assert table.heartbeat(leader, generation) is ErrorCode.NONE
    assert table.sync(back.member_id, generation, instance="i1")[0].assignment == b"S"


def test_twin_of_a_static_member_fences_the_first(table: Table) -> None:
    [first] = table.join(instance="i1")
    table.sync(first.member_id, 1, {first.member_id: b"S"}, instance="i1")
    [second] = table.join(instance="i1")
    assert table.heartbeat(first.member_id, 1, instance="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert table.heartbeat(second.member_id, 1, instance="i1") is ErrorCode.NONE
    fenced = table.join(first.member_id, instance="i1")
    assert fenced[0].error is ErrorCode.FENCED_INSTANCE_ID


def test_static_leader_returns_and_is_told_to_skip_the_assignment(table: Table) -> None:
    [first] = table.join(instance="i1")
    table.sync(first.member_id, 1, {first.member_id: b"S"}, instance="i1")
    [back] = table.join(instance="i1")
    assert (back.leader, back.skip_assignment) == (back.member_id, True)
    assert len(back.members) == 1
    [older] = table.join(instance="i1", can_skip=False)
    assert (older.leader, older.skip_assignment) == (back.member_id, False)
    assert older.members == ()


def test_static_member_with_another_protocol_causes_a_rebalance(table: Table) -> None:
    [first] = table.join(instance="i1")
    table.sync(first.member_id, 1, {first.member_id: b"S"}, instance="i1")
    [back] = table.join(instance="i1", protocols=(("range", b"sub"),))
    assert back.generation == 1
    [changed] = table.join(instance="i1", protocols=(("other", b""), ("range", b"")))
    assert changed.generation == 2


def test_static_member_can_be_removed_by_its_instance_id(table: Table) -> None:
    [first] = table.join(instance="i1")
    table.sync(first.member_id, 1, {first.member_id: b"S"}, instance="i1")
    _, answers = table.groups.leave("g", [("", "i1"), ("", "i2"), ("wrong", "i1")])
    assert [error for _, _, error in answers] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_stable_group_survives_a_restart(table: Table) -> None:
    leader, follower = table.stable_group(2)
    table.restart()
    assert table.heartbeat(leader, 2) is ErrorCode.NONE
    assert table.sync(follower, 2)[0].assignment == follower.encode()
    described = table.groups.describe("g")
    assert (described.state, described.protocol) == (GroupState.STABLE, "range")
    table.pass_time(11)
    assert table.heartbeat(leader, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_group_in_mid_rebalance_goes_on_after_a_restart(table: Table) -> None:
    leader, follower = table.stable_group(2)
    table.join()
    table.restart()
    # The newcomer was never in the log; the two others are as they were.
    assert table.heartbeat(follower, 2) is ErrorCode.NONE
    newcomer = table.join()
    table.join(follower)
    table.join(leader)
    assert newcomer[0].generation == 3


def test_descriptions_hide_subscriptions_while_rebalancing(table: Table) -> None:
    table.stable_group(2)
    assert {one.metadata for one in table.groups.describe("g").members} == {b"sub"}
    table.join()
    described = table.groups.describe("g")
    assert described.state is GroupState.PREPARING
    assert described.protocol == ""
    assert {one.metadata for one in described.members} == {b""}
    assert table.groups.describe("nope").state is GroupState.DEAD


def test_only_empty_groups_can_be_deleted(table: Table) -> None:
    [leader] = table.stable_group(1)
    results: list[ErrorCode] = []
    table.groups.delete("g", results.append)
    table.groups.delete("nope", results.append)
    table.groups.delete("", results.append)
    table.groups.leave("g", [(leader, None)])
    table.groups.delete("g", results.append)
    assert results == [
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NONE,
    ]
    table.restart()
    assert table.groups.groups() == []


def test_settings_can_be_changed_while_it_runs(table: Table) -> None:
    from tailrace.broker.groups.coordinator import GroupSettings
    from tailrace.broker.groups.membership import MembershipSettings

    assert table.join(session_ms=1_000)[0].error is ErrorCode.INVALID_SESSION_TIMEOUT
    table.groups.change_settings(GroupSettings(MembershipSettings(500, 5_000, 0)))
    assert table.join(session_ms=1_000)[0].error is ErrorCode.NONE
    assert table.join(session_ms=6_000)[0].error is ErrorCode.INVALID_SESSION_TIMEOUT
