"""Share groups as administrators see them: members, where they are, moving them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tailrace.client.errors import RequestError
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tailrace.client.admin import Place
    from tailrace.client.groups import GroupInformation, Groups


def offered(groups: Groups) -> bool:
    """Whether this log has share groups."""
    return groups.cluster.any().offers(APIS[ApiKey.SHARE_GROUP_DESCRIBE])


def describe(groups: Groups, name: str) -> GroupInformation | None:
    """The group with its members; None if it is no share group."""
    from tailrace.client.groups import GroupInformation, GroupMember
    from tailrace.wire.messages import share_group_describe as messages

    if not offered(groups):
        return None
    response = groups.ask(
        name,
        ApiKey.SHARE_GROUP_DESCRIBE,
        messages.ShareGroupDescribeRequest(group_ids=[name]),
        lambda answer: answer.groups[0].error_code,
    )
    [group] = response.groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or group.group_state == "Dead":
        return None
    if group.error_code:
        raise RequestError.of(group.error_code, f'describing group "{name}"')
    members = tuple(
        GroupMember(
            one.member_id,
            None,
            one.client_id,
            one.client_host.lstrip("/"),
            tuple(
                (topic.topic_name, index)
                for topic in one.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for one in group.members
    )
    return GroupInformation(name, group.group_state, "share", group.assignor_name, members)


def starts(groups: Groups, name: str) -> dict[Place, int]:
    """The offset below which everything is done for, by partition."""
    from tailrace.wire.messages import describe_share_group_offsets as messages

    if not offered(groups):
        return {}
    response = groups.ask(
        name,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        messages.DescribeShareGroupOffsetsRequest(
            [messages.DescribeShareGroupOffsetsRequestGroup(name, None)]
        ),
        lambda answer: answer.groups[0].error_code,
    )
    [group] = response.groups
    return {
        (topic.topic_name, one.partition_index): one.start_offset
        for topic in group.topics
        for one in topic.partitions
        if one.start_offset >= 0
    }


def move(groups: Groups, name: str, offsets: Mapping[Place, int]) -> None:
    """Let a group that nobody is in go on at other offsets. Raises RequestError."""
    from tailrace.wire.messages import alter_share_group_offsets as messages

    topics: dict[str, list[messages.AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, index), offset in sorted(offsets.items()):
        topics.setdefault(topic, []).append(
            messages.AlterShareGroupOffsetsRequestPartition(index, offset)
        )
    response = groups.ask(
        name,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        messages.AlterShareGroupOffsetsRequest(
            name,
            [messages.AlterShareGroupOffsetsRequestTopic(*row) for row in topics.items()],
        ),
        lambda answer: answer.error_code,
    )
    codes = [response.error_code]
    codes += [one.error_code for topic in response.responses for one in topic.partitions]
    for code in codes:
        if code == ErrorCode.NON_EMPTY_GROUP:
            raise RequestError.of(
                code,
                f'moving group "{name}"',
                detail="the group has members",
                hint="stop its workers first",
            )
        if code:
            raise RequestError.of(code, f'moving group "{name}"')
