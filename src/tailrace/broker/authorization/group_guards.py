"""Requests of the members and administrators of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tailrace.broker.authorization.acls import (
    CLUSTER_ACTION,
    DELETE,
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
)
from tailrace.broker.authorization.authorizer import Caller
from tailrace.broker.authorization.guarding import (
    NO_CLUSTER,
    NO_GROUP,
    NO_TOPIC,
    NO_TRANSACTION,
    Guard,
    Serve,
    amend,
)
from tailrace.broker.router import Request
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    share_group_describe,
    share_group_heartbeat,
    sync_group,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

FOR_GROUP, FOR_TRANSACTION = 0, 1
SHARE_SINCE = 6
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def _find_coordinator(
    caller: Caller, request: Request[find_coordinator.FindCoordinatorRequest], serve: Serve
) -> None:
    body = request.body

    def check(key: str) -> bool:
        match body.key_type:
            case 0:
                return caller.may(DESCRIBE, GROUP, key)
            case 1:
                return caller.may(DESCRIBE, TRANSACTIONAL_ID, key)
            case 2 if request.version >= SHARE_SINCE:
                return caller.may_cluster(CLUSTER_ACTION)
        return True  # no such kind; the handler says so

    code = {FOR_GROUP: NO_GROUP, FOR_TRANSACTION: NO_TRANSACTION}.get(body.key_type, NO_CLUSTER)
    if request.version < 4:
        if check(body.key):
            serve(request)
            return
        request.answer(
            find_coordinator.FindCoordinatorResponse(
                error_code=code, error_message=ErrorCode(code).message, node_id=-1, host="", port=-1
            )
        )
        return
    decided = {key: check(key) for key in dict.fromkeys(body.coordinator_keys)}
    refused = [key for key in body.coordinator_keys if not decided[key]]
    body.coordinator_keys = [key for key in body.coordinator_keys if decided[key]]

    def change(answer: find_coordinator.FindCoordinatorResponse) -> None:
        answer.coordinators += [
            find_coordinator.Coordinator(key, -1, "", -1, code, "") for key in refused
        ]

    amend(request, change)
    if body.coordinator_keys:
        serve(request)
    else:
        request.answer(find_coordinator.FindCoordinatorResponse())


def _member(refusal: Callable[[Request[Any]], Message]) -> Guard:
    """What a member of a group asks: READ on the group."""

    def guard(caller: Caller, request: Request[Any], serve: Serve) -> None:
        if caller.may(READ, GROUP, request.body.group_id or ""):
            serve(request)
        else:
            request.answer(refusal(request))

    return guard


def _subscriber(refusal: Callable[[int], Message]) -> Guard:
    """A heartbeat that carries a subscription: READ on the group, DESCRIBE on its topics."""

    def guard(caller: Caller, request: Request[Any], serve: Serve) -> None:
        body = request.body
        if not caller.may(READ, GROUP, body.group_id):
            request.answer(refusal(NO_GROUP))
        elif any(
            not caller.may(DESCRIBE, TOPIC, name)
            for name in dict.fromkeys(body.subscribed_topic_names or ())
        ):
            request.answer(refusal(NO_TOPIC))
        else:
            serve(request)

    return guard


def _describe(
    caller: Caller, request: Request[describe_groups.DescribeGroupsRequest], serve: Serve
) -> None:
    body = request.body
    body.groups, others = caller.parted(DESCRIBE, GROUP, body.groups, str)

    def change(answer: describe_groups.DescribeGroupsResponse) -> None:
        if body.include_authorized_operations:
            for group in answer.groups:
                if not group.error_code:
                    group.authorized_operations = caller.operations(GROUP, group.group_id)
        answer.groups += [
            describe_groups.DescribedGroup(error_code=NO_GROUP, error_message=None, group_id=one)
            for one in dict.fromkeys(others)
        ]

    amend(request, change)
    serve(request)


def _list(caller: Caller, request: Request[list_groups.ListGroupsRequest], serve: Serve) -> None:
    if not caller.may_cluster(DESCRIBE, told=False):

        def change(answer: list_groups.ListGroupsResponse) -> None:
            answer.groups = [
                one
                for one in answer.groups
                if caller.may(DESCRIBE, GROUP, one.group_id, told=False)
            ]

        amend(request, change)
    serve(request)


def _delete(
    caller: Caller, request: Request[delete_groups.DeleteGroupsRequest], serve: Serve
) -> None:
    body = request.body
    body.groups_names, others = caller.parted(DELETE, GROUP, body.groups_names, str)

    def change(answer: delete_groups.DeleteGroupsResponse) -> None:
        answer.results += [
            delete_groups.DeletableGroupResult(one, NO_GROUP) for one in dict.fromkeys(others)
        ]

    amend(request, change)
    serve(request)


class DescribingGuards:
    """Descriptions of server-side and share groups, which name their members' topics."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def consumers(
        self,
        caller: Caller,
        request: Request[consumer_group_describe.ConsumerGroupDescribeRequest],
        serve: Serve,
    ) -> None:
        body = request.body
        body.group_ids, others = caller.parted(DESCRIBE, GROUP, body.group_ids, str)

        def topics(group: consumer_group_describe.DescribedGroup) -> Iterable[str]:
            for member in group.members:
                for part in (member.assignment, member.target_assignment):
                    yield from (each.topic_name for each in part.topic_partitions)

        def change(answer: consumer_group_describe.ConsumerGroupDescribeResponse) -> None:
            wanted = body.include_authorized_operations
            answer.groups = [
                self._shown(caller, consumer_group_describe.DescribedGroup, group, topics, wanted)
                for group in answer.groups
            ] + [
                consumer_group_describe.DescribedGroup(
                    error_code=NO_GROUP, error_message=None, group_id=one
                )
                for one in dict.fromkeys(others)
            ]

        amend(request, change)
        serve(request)

    def shares(
        self,
        caller: Caller,
        request: Request[share_group_describe.ShareGroupDescribeRequest],
        serve: Serve,
    ) -> None:
        body = request.body
        body.group_ids, others = caller.parted(DESCRIBE, GROUP, body.group_ids, str)

        def topics(group: share_group_describe.DescribedGroup) -> Iterable[str]:
            for member in group.members:
                yield from (each.topic_name for each in member.assignment.topic_partitions)

        def change(answer: share_group_describe.ShareGroupDescribeResponse) -> None:
            wanted = body.include_authorized_operations
            answer.groups = [
                self._shown(caller, share_group_describe.DescribedGroup, group, topics, wanted)
                for group in answer.groups
            ] + [
                share_group_describe.DescribedGroup(
                    error_code=NO_GROUP, error_message=None, group_id=one
                )
                for one in dict.fromkeys(others)
            ]

        amend(request, change)
        serve(request)

    def _shown(
        self,
        caller: Caller,
        made: Callable[..., Any],
        group: Any,
        topics: Callable[[Any], Iterable[str]],
        bits: bool,
    ) -> Any:
        """The group, unless it names a topic that the caller may not see."""
        if group.error_code:
            return group
        if not all(caller.may(DESCRIBE, TOPIC, name) for name in set(topics(group)) if name):
            return made(error_code=NO_TOPIC, error_message=HIDDEN_TOPICS, group_id=group.group_id)
        if bits:
            group.authorized_operations = caller.operations(GROUP, group.group_id)
        return group


def _join(request: Request[Any]) -> Message:
    return join_group.JoinGroupResponse(
        error_code=NO_GROUP,
        generation_id=-1,
        protocol_type=None,
        protocol_name=None if request.version >= 7 else "",
    )


def guards(broker: Broker) -> dict[int, Guard]:
    """The guards of this module."""
    describing = DescribingGuards(broker)
    return {
        ApiKey.FIND_COORDINATOR: _find_coordinator,
        ApiKey.JOIN_GROUP: _member(_join),
        ApiKey.SYNC_GROUP: _member(lambda _: sync_group.SyncGroupResponse(error_code=NO_GROUP)),
        ApiKey.HEARTBEAT: _member(lambda _: heartbeat.HeartbeatResponse(error_code=NO_GROUP)),
        ApiKey.LEAVE_GROUP: _member(lambda _: leave_group.LeaveGroupResponse(error_code=NO_GROUP)),
        ApiKey.DESCRIBE_GROUPS: _describe,
        ApiKey.LIST_GROUPS: _list,
        ApiKey.DELETE_GROUPS: _delete,
        ApiKey.CONSUMER_GROUP_HEARTBEAT: _subscriber(
            lambda code: consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
                error_code=code, error_message=None, member_id=None
            )
        ),
        ApiKey.CONSUMER_GROUP_DESCRIBE: describing.consumers,
        ApiKey.SHARE_GROUP_HEARTBEAT: _subscriber(
            lambda code: share_group_heartbeat.ShareGroupHeartbeatResponse(
                error_code=code, error_message=None, member_id=None
            )
        ),
        ApiKey.SHARE_GROUP_DESCRIBE: describing.shares,
    }
