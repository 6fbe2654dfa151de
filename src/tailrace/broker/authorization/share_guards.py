"""Administration of share groups. Fetching and acknowledging ask in their own handlers."""

from __future__ import annotations

from typing import Any

from tailrace.broker.authorization.acls import DELETE, DESCRIBE, GROUP, READ, TOPIC
from tailrace.broker.authorization.authorizer import Caller
from tailrace.broker.authorization.guarding import NO_GROUP, NO_TOPIC, Guard, Serve, amend
from tailrace.broker.router import Request
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
)

GROUP_FAILED = ErrorCode.GROUP_AUTHORIZATION_FAILED.message
TOPIC_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED.message


def _describe(
    caller: Caller,
    request: Request[describe_share_group_offsets.DescribeShareGroupOffsetsRequest],
    serve: Serve,
) -> None:
    messages = describe_share_group_offsets
    body = request.body
    body.groups, refused = caller.parted(
        DESCRIBE, GROUP, body.groups, lambda one: str(one.group_id)
    )
    everything: set[str] = set()
    others: dict[str, list[Any]] = {}
    for group in body.groups:
        if group.topics is None:
            everything.add(group.group_id)
        else:
            group.topics, denied = caller.parted(DESCRIBE, TOPIC, group.topics, _name)
            others[group.group_id] = denied

    def change(answer: describe_share_group_offsets.DescribeShareGroupOffsetsResponse) -> None:
        for group in answer.groups:
            if group.error_code:
                continue
            if group.group_id in everything:
                group.topics, _ = caller.parted(DESCRIBE, TOPIC, group.topics, _name)
            group.topics += [
                messages.DescribeShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    partitions=[
                        messages.DescribeShareGroupOffsetsResponsePartition(
                            partition_index=index,
                            start_offset=-1,
                            lag=-1,
                            error_code=NO_TOPIC,
                            error_message=TOPIC_FAILED,
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in others.get(group.group_id, ())
            ]
        answer.groups += [
            messages.DescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id, error_code=NO_GROUP, error_message=GROUP_FAILED
            )
            for group in refused
        ]

    amend(request, change)
    serve(request)


def _alter(
    caller: Caller,
    request: Request[alter_share_group_offsets.AlterShareGroupOffsetsRequest],
    serve: Serve,
) -> None:
    messages = alter_share_group_offsets
    body = request.body
    if not caller.may(READ, GROUP, body.group_id):
        request.answer(
            messages.AlterShareGroupOffsetsResponse(error_code=NO_GROUP, error_message=GROUP_FAILED)
        )
        return
    body.topics, others = caller.parted(READ, TOPIC, body.topics, _name)

    def change(answer: alter_share_group_offsets.AlterShareGroupOffsetsResponse) -> None:
        if answer.error_code:
            return
        answer.responses += [
            messages.AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                partitions=[
                    messages.AlterShareGroupOffsetsResponsePartition(
                        partition_index=one.partition_index,
                        error_code=NO_TOPIC,
                        error_message=TOPIC_FAILED,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in others
        ]

    amend(request, change)
    serve(request)


def _delete(
    caller: Caller,
    request: Request[delete_share_group_offsets.DeleteShareGroupOffsetsRequest],
    serve: Serve,
) -> None:
    messages = delete_share_group_offsets
    body = request.body
    if not caller.may(DELETE, GROUP, body.group_id):
        request.answer(
            messages.DeleteShareGroupOffsetsResponse(
                error_code=NO_GROUP, error_message=GROUP_FAILED
            )
        )
        return
    body.topics, others = caller.parted(READ, TOPIC, body.topics, _name)

    def change(answer: delete_share_group_offsets.DeleteShareGroupOffsetsResponse) -> None:
        if answer.error_code:
            return
        answer.responses += [
            messages.DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, error_code=NO_TOPIC, error_message=TOPIC_FAILED
            )
            for topic in others
        ]

    amend(request, change)
    serve(request)


def _name(topic: Any) -> str:
    return str(topic.topic_name)


def guards() -> dict[int, Guard]:
    """The guards of this module."""
    return {
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _describe,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: _alter,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: _delete,
    }
