"""Requests of consumer groups, translated for the coordinator and back.

Versions differ here and nowhere below: older ones leave fields out, take null for
empty text, or name one member, group or coordinator where newer ones name several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.groups.group import GroupState, JoinAnswer, SyncAnswer
from tailrace.broker.groups.membership import Join, Sync
from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import delete_groups as deletion
from tailrace.wire.messages import describe_groups as description
from tailrace.wire.messages import find_coordinator as finding
from tailrace.wire.messages import heartbeat as beating
from tailrace.wire.messages import join_group as joining
from tailrace.wire.messages import leave_group as leaving
from tailrace.wire.messages import list_groups as listing
from tailrace.wire.messages import sync_group as syncing

if TYPE_CHECKING:
    from tailrace.broker.coordination import Coordination

GROUP, TRANSACTION = 0, 1
NO_OPERATIONS = -(2**31)


class GroupRequests:
    """Membership and administration of groups."""

    def __init__(self, coordination: Coordination) -> None:
        self._coordination = coordination
        self._groups: GroupCoordinator = coordination.groups

    def routes(self) -> Iterable[Route]:
        yield Route(ApiKey.FIND_COORDINATOR, 0, 6, self.find_coordinator)
        yield Route(ApiKey.JOIN_GROUP, 0, 9, self.join)
        yield Route(ApiKey.SYNC_GROUP, 0, 5, self.sync)
        yield Route(ApiKey.HEARTBEAT, 0, 4, self.heartbeat)
        yield Route(ApiKey.LEAVE_GROUP, 0, 5, self.leave)
        yield Route(ApiKey.DESCRIBE_GROUPS, 0, 6, self.describe)
        yield Route(ApiKey.LIST_GROUPS, 0, 5, self.list)
        yield Route(ApiKey.DELETE_GROUPS, 0, 2, self.delete)

    def find_coordinator(self, request: Request[finding.FindCoordinatorRequest]) -> None:
        """This broker coordinates everything it can coordinate."""
        body = request.body
        known = body.key_type == GROUP or (
            body.key_type == TRANSACTION and self._coordination.transactional
        )
        keys = body.coordinator_keys if request.version >= 4 else [body.key]
        host, port = self._coordination.told(request.connection)
        node = self._coordination.node_id
        error = ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST
        if known:
            try:
                self._coordination.prepare(body.key_type)
            except Exception:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error is not ErrorCode.NONE:
            host, port, node = "", -1, -1
        message = None if error is ErrorCode.NONE else "no coordinator for this kind of key"
        if request.version >= 4:
            coordinators = [
                finding.Coordinator(key, node, host, port, int(error), message or "")
                for key in keys
            ]
            request.answer(finding.FindCoordinatorResponse(coordinators=coordinators))
            return
        request.answer(
            finding.FindCoordinatorResponse(
                error_code=int(error), error_message=message, node_id=node, host=host, port=port
            )
        )

    def join(self, request: Request[joining.JoinGroupRequest]) -> None:
        body, version = request.body, request.version
        join = Join(
            group_id=body.group_id,
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            client_id=request.client_id or "",
            client_host=request.client_host,
            session_timeout_ms=body.session_timeout_ms,
            rebalance_timeout_ms=(
                body.rebalance_timeout_ms if version >= 1 else body.session_timeout_ms
            ),
            protocol_type=body.protocol_type,
            protocols=tuple((one.name, bytes(one.metadata)) for one in body.protocols),
            id_required=version >= 4,
            can_skip_assignment=version >= 9,
        )

        def reply(answer: JoinAnswer) -> None:
            # Until version 6 the protocol's name could not be null.
            protocol = answer.protocol if version >= 7 else answer.protocol or ""
            request.answer(
                joining.JoinGroupResponse(
                    error_code=int(answer.error),
                    generation_id=answer.generation,
                    protocol_type=answer.protocol_type,
                    protocol_name=protocol,
                    leader=answer.leader,
                    skip_assignment=answer.skip_assignment,
                    member_id=answer.member_id,
                    members=[
                        joining.JoinGroupResponseMember(
                            one.member_id, one.instance_id, one.metadata
                        )
                        for one in answer.members
                    ],
                )
            )

        self._groups.join(join, reply)
        self._coordination.poke()

    def sync(self, request: Request[syncing.SyncGroupRequest]) -> None:
        body = request.body
        sync = Sync(
            group_id=body.group_id,
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            generation=body.generation_id,
            protocol_type=body.protocol_type,
            protocol=body.protocol_name,
            assignments=tuple((one.member_id, bytes(one.assignment)) for one in body.assignments),
        )

        def reply(answer: SyncAnswer) -> None:
            request.answer(
                syncing.SyncGroupResponse(
                    error_code=int(answer.error),
                    protocol_type=answer.protocol_type,
                    protocol_name=answer.protocol,
                    assignment=answer.assignment,
                )
            )

        self._groups.sync(sync, reply)
        self._coordination.poke()

    def heartbeat(self, request: Request[beating.HeartbeatRequest]) -> None:
        body = request.body
        error = self._groups.heartbeat(
            body.group_id, body.member_id, body.group_instance_id, body.generation_id
        )
        request.answer(beating.HeartbeatResponse(error_code=int(error)))

    def leave(self, request: Request[leaving.LeaveGroupRequest]) -> None:
        body = request.body
        if request.version >= 3:
            leavers = [(one.member_id, one.group_instance_id) for one in body.members]
        else:
            leavers = [(body.member_id, None)]
        error, members = self._groups.leave(body.group_id, leavers)
        if request.version < 3 and members:
            error = members[0][2]
        request.answer(
            leaving.LeaveGroupResponse(
                error_code=int(error),
                members=[
                    leaving.MemberResponse(member_id, instance_id, int(member_error))
                    for member_id, instance_id, member_error in members
                ],
            )
        )
        self._coordination.poke()

    def describe(self, request: Request[description.DescribeGroupsRequest]) -> None:
        groups = []
        for group_id in dict.fromkeys(request.body.groups):
            found = self._groups.describe(group_id)
            missing = found.state is GroupState.DEAD and request.version >= 6
            groups.append(
                description.DescribedGroup(
                    error_code=int(ErrorCode.GROUP_ID_NOT_FOUND) if missing else 0,
                    error_message=f"Group {group_id} not found." if missing else None,
                    group_id=group_id,
                    group_state=str(found.state),
                    protocol_type=found.protocol_type,
                    protocol_data=found.protocol,
                    members=[
                        description.DescribedGroupMember(
                            one.member_id,
                            one.instance_id,
                            one.client_id,
                            one.client_host,
                            one.metadata,
                            one.assignment,
                        )
                        for one in found.members
                    ],
                    authorized_operations=NO_OPERATIONS,
                )
            )
        request.answer(description.DescribeGroupsResponse(groups=groups))

    def list(self, request: Request[listing.ListGroupsRequest]) -> None:
        states = {state.lower() for state in request.body.states_filter or ()}
        types = {kind.lower() for kind in request.body.types_filter or ()}
        groups = [
            listing.ListedGroup(
                group.group_id,
                group.protocol_type or ("consumer" if group.consumer is not None else ""),
                group.label,
                group.kind,
            )
            for group in self._groups.groups()
            if (not states or group.label.lower() in states) and (not types or group.kind in types)
        ]
        groups += [
            listing.ListedGroup(name, "share", state, "share")
            for name, state in sorted(self._coordination.share_groups().items())
            if (not states or state.lower() in states) and (not types or "share" in types)
        ]
        request.answer(listing.ListGroupsResponse(groups=groups))

    def delete(self, request: Request[deletion.DeleteGroupsRequest]) -> None:
        names = list(dict.fromkeys(request.body.groups_names))
        results: dict[str, ErrorCode] = {}

        def reply_for(name: str) -> Callable[[ErrorCode], None]:
            def reply(error: ErrorCode) -> None:
                results[name] = error
                if len(results) == len(names):
                    rows = [deletion.DeletableGroupResult(one, int(results[one])) for one in names]
                    request.answer(deletion.DeleteGroupsResponse(results=rows))

            return reply

        if not names:
            request.answer(deletion.DeleteGroupsResponse())
        shares = self._coordination.share_groups()
        for name in names:
            if name in shares:
                reply_for(name)(self._coordination.delete_share_group(name))
            else:
                self._groups.delete(name, reply_for(name))
