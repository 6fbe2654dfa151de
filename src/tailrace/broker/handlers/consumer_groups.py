"""Requests of the server-side group protocol: ConsumerGroupHeartbeat and -Describe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.groups.assignors import Place
from tailrace.broker.groups.consumer_membership import Beat, BeatAnswer
from tailrace.broker.groups.consumer_records import by_topic
from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import consumer_group_describe as description
from tailrace.wire.messages import consumer_group_heartbeat as beating

if TYPE_CHECKING:
    from tailrace.broker.coordination import Coordination

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


class ConsumerGroupRequests:
    """Heartbeats and descriptions."""

    def __init__(self, coordination: Coordination) -> None:
        self._coordination = coordination
        self._groups = coordination.groups
        self._topics = coordination.topics

    def routes(self) -> Iterable[Route]:
        yield Route(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, self.heartbeat)
        yield Route(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, self.describe)

    def heartbeat(self, request: Request[beating.ConsumerGroupHeartbeatRequest]) -> None:
        body = request.body
        member_id = body.member_id
        if request.version == 0 and not member_id and body.member_epoch == 0:
            member_id = self._coordination.new_id()  # since version 1 clients name themselves
        names, owned = body.subscribed_topic_names, body.topic_partitions
        beat = Beat(
            group_id=body.group_id,
            member_id=member_id,
            epoch=body.member_epoch,
            instance_id=body.instance_id,
            rack_id=body.rack_id,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
            topics=None if names is None else frozenset(names),
            pattern=body.subscribed_topic_regex if request.version >= 1 else None,
            assignor=body.server_assignor,
            owned=None
            if owned is None
            else frozenset(
                (bytes(row.topic_id), index) for row in owned for index in row.partitions
            ),
            client_id=request.client_id or "",
            client_host=request.client_host,
            sees=self._coordination.sight_of(request.connection),
        )

        def reply(answer: BeatAnswer) -> None:
            assigned = answer.assigned
            request.answer(
                beating.ConsumerGroupHeartbeatResponse(
                    error_code=int(answer.error),
                    error_message=answer.message,
                    member_id=answer.member_id,
                    member_epoch=answer.epoch,
                    heartbeat_interval_ms=self._groups.consumers.settings.heartbeat_interval_ms
                    if answer.error is ErrorCode.NONE
                    else 0,
                    assignment=None
                    if assigned is None
                    else beating.Assignment(
                        [beating.ResponseTopicPartitions(*row) for row in by_topic(assigned)]
                    ),
                )
            )

        self._groups.beat(beat, reply)
        self._coordination.poke()

    def describe(self, request: Request[description.ConsumerGroupDescribeRequest]) -> None:
        request.answer(
            description.ConsumerGroupDescribeResponse(
                groups=[
                    self._described(group_id) for group_id in dict.fromkeys(request.body.group_ids)
                ]
            )
        )

    def _described(self, group_id: str) -> description.DescribedGroup:
        group = self._groups.group(group_id)
        if group is None or group.consumer is None:
            return description.DescribedGroup(
                error_code=int(ErrorCode.GROUP_ID_NOT_FOUND),
                error_message=f"Group {group_id} not found."
                if group is None
                else f"Group {group_id} is not a consumer group.",
                group_id=group_id,
            )
        state = group.consumer
        return description.DescribedGroup(
            error_message=None,
            group_id=group_id,
            group_state=state.label,
            group_epoch=state.epoch,
            assignment_epoch=state.target_epoch,
            assignor_name=self._groups.consumers.assignor(state),
            members=[
                description.Member(
                    member_id=one.member_id,
                    instance_id=one.instance_id,
                    rack_id=one.rack_id,
                    member_epoch=one.epoch,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    subscribed_topic_names=sorted(one.topics),
                    subscribed_topic_regex=one.pattern,
                    assignment=self._assignment(one.assigned),
                    target_assignment=self._assignment(
                        state.target.get(one.member_id, frozenset())
                    ),
                    member_type=CONSUMER_MEMBER if one.classic is None else CLASSIC_MEMBER,
                )
                for one in state.members.values()
            ],
        )

    def _assignment(self, places: Iterable[Place]) -> description.Assignment:
        return description.Assignment(
            [
                description.TopicPartitions(topic_id, self._topics.name_of(topic_id) or "", indexes)
                for topic_id, indexes in by_topic(places)
            ]
        )
