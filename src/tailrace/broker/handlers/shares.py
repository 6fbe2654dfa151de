"""Requests of share groups: heartbeats, fetching, acknowledging, and administration.

A fetch that finds nothing waits, up to `max_wait_ms`, for its partitions to grow or for
records to be given back. Nothing of it is held meanwhile but the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tailrace.broker.authorization.acls import GROUP, READ, TOPIC
from tailrace.broker.router import Request, Route, Timer
from tailrace.broker.shares.coordinator import Acquired, Key, Place, Session, Shares
from tailrace.broker.shares.membership import Beat
from tailrace.broker.shares.partition import RENEW
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition

TICK_SECONDS = 0.1
FINAL_EPOCH = -1


class Waiting:
    """A share fetch that found nothing yet."""

    __slots__ = ("acknowledged", "places", "request", "session", "timer")

    def __init__(
        self,
        request: Request[share_fetch.ShareFetchRequest],
        session: Session,
        acknowledged: dict[Place, ErrorCode],
    ) -> None:
        self.request = request
        self.session = session
        self.acknowledged = acknowledged
        self.places = tuple(session.places)
        self.timer: Timer | None = None


class ShareRequests:
    """The handlers of this module."""

    def __init__(self, broker: Broker, shares: Shares) -> None:
        self._broker = broker
        self._shares = shares
        self._waiting: dict[Place, dict[Waiting, None]] = {}
        self._woken: set[Place] = set()
        self._ticking = False
        shares.released = lambda key: self._wake((key[1], key[2]))
        broker.fetch.watchers.append(self._grew)

    def routes(self) -> Iterable[Route]:
        yield Route(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, self.heartbeat)
        yield Route(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, self.describe)
        yield Route(ApiKey.SHARE_FETCH, 1, 2, self.fetch)
        yield Route(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, self.acknowledge)
        yield Route(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, self.describe_offsets)
        yield Route(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, self.alter_offsets)
        yield Route(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, self.delete_offsets)

    @property
    def shares(self) -> Shares:
        """The groups themselves."""
        return self._shares

    # Members -------------------------------------------------------------------

    def heartbeat(self, request: Request[share_group_heartbeat.ShareGroupHeartbeatRequest]) -> None:
        body = request.body
        names = body.subscribed_topic_names
        answer = self._shares.beat(
            Beat(
                group_id=body.group_id,
                member_id=body.member_id,
                epoch=body.member_epoch,
                topics=None if names is None else frozenset(names),
                rack_id=body.rack_id,
                client_id=request.client_id or "",
                client_host=request.client_host,
            )
        )
        topics: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(answer.assigned or ()):
            topics.setdefault(topic_id, []).append(index)
        request.answer(
            share_group_heartbeat.ShareGroupHeartbeatResponse(
                error_code=int(answer.error),
                error_message=answer.message,
                member_id=body.member_id,
                member_epoch=answer.epoch,
                heartbeat_interval_ms=0
                if answer.error
                else self._shares.heartbeat_ms_of(body.group_id),
                assignment=None
                if answer.assigned is None
                else share_group_heartbeat.Assignment(
                    [share_group_heartbeat.TopicPartitions(*row) for row in topics.items()]
                ),
            )
        )
        self._poke()

    def describe(self, request: Request[share_group_describe.ShareGroupDescribeRequest]) -> None:
        request.answer(
            share_group_describe.ShareGroupDescribeResponse(
                groups=[
                    self._describe(group_id) for group_id in dict.fromkeys(request.body.group_ids)
                ]
            )
        )

    def _describe(self, group_id: str) -> share_group_describe.DescribedGroup:
        group = self._shares.membership.groups.get(group_id)
        answer = share_group_describe.DescribedGroup(
            group_id=group_id, assignor_name="simple", authorized_operations=-(2**31)
        )
        if group is None and not self._shares.keys(group_id):
            answer.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            answer.error_message = f"Group {group_id} not found."
            answer.group_state = "Dead"
            return answer
        answer.group_state = "Empty" if group is None else group.state
        if group is None:
            return answer
        answer.group_epoch = answer.assignment_epoch = group.epoch
        for member in group.members.values():
            topics: dict[bytes, list[int]] = {}
            for topic_id, index in sorted(member.told or ()):
                topics.setdefault(topic_id, []).append(index)
            answer.members.append(
                share_group_describe.Member(
                    member_id=member.id,
                    rack_id=member.rack_id,
                    member_epoch=member.epoch,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    subscribed_topic_names=sorted(member.topics),
                    assignment=share_group_describe.Assignment(
                        [
                            share_group_describe.TopicPartitions(
                                topic_id, self._name(topic_id), partitions
                            )
                            for topic_id, partitions in topics.items()
                        ]
                    ),
                )
            )
        return answer

    # Fetching ------------------------------------------------------------------

    def _may_read_group(self, request: Request[Any]) -> bool:
        authorizer = self._broker.authorizer
        return authorizer is None or authorizer.allows(
            request.connection, READ, GROUP, request.body.group_id or "", request.api_key
        )

    def _permitted(self, request: Request[Any]) -> Callable[[bytes], bool] | None:
        """Which topics, by id, the member may read; None without an authorizer."""
        authorizer = self._broker.authorizer
        if authorizer is None:
            return None

        def permitted(topic_id: bytes) -> bool:
            topic = self._broker.topic_by_id(topic_id)
            return topic is None or authorizer.allows(
                request.connection, READ, TOPIC, topic.name, request.api_key
            )

        return permitted

    def _acknowledge(
        self,
        request: Request[Any],
        session: Session,
        place: Place,
        batches: list[tuple[int, int, Sequence[int]]],
    ) -> ErrorCode:
        permitted = self._permitted(request)
        if permitted is not None and not permitted(place[0]):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return self._shares.acknowledge(session, place, batches)

    def fetch(self, request: Request[share_fetch.ShareFetchRequest]) -> None:
        body = request.body
        if not self._may_read_group(request):
            code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            request.answer(share_fetch.ShareFetchResponse(error_code=code))
            return
        answers: dict[Place, list[tuple[int, int, Sequence[int]]]] = {}
        places: list[Place] = []
        for topic in body.topics:
            for each in topic.partitions:
                place = (topic.topic_id, each.partition_index)
                places.append(place)
                if each.acknowledgement_batches:
                    answers[place] = [
                        (batch.first_offset, batch.last_offset, batch.acknowledge_types)
                        for batch in each.acknowledgement_batches
                    ]
        epoch = body.share_session_epoch
        session = self._session(request, body.group_id, body.member_id, epoch, bool(answers))
        if isinstance(session, ErrorCode):
            request.answer(share_fetch.ShareFetchResponse(error_code=int(session)))
            return
        acknowledged = {
            place: self._acknowledge(request, session, place, batches)
            for place, batches in answers.items()
        }
        if epoch == FINAL_EPOCH:
            self._shares.let_go(session.group, session.member)
            self._answer(request, [], acknowledged)
            return
        session.places.update(dict.fromkeys(places))
        for forgotten in body.forgotten_topics_data:
            for index in forgotten.partitions:
                session.places.pop((forgotten.topic_id, index), None)
        if any(RENEW in kinds for batches in answers.values() for _, _, kinds in batches):
            self._answer(request, [], acknowledged)
            return
        waiting = Waiting(request, session, acknowledged)
        if not self._serve(waiting, final=body.max_wait_ms <= 0):
            for place in waiting.places:
                self._waiting.setdefault(place, {})[waiting] = None
            waiting.timer = self._broker.call_later(
                body.max_wait_ms / 1000, lambda: self._time_is_up(waiting)
            )
        self._poke()

    def _serve(self, waiting: Waiting, *, final: bool) -> bool:
        """Answer if there is something, or it is `final`."""
        request = waiting.request
        if request.abandoned:
            return True
        body = request.body
        found = self._shares.acquire(
            waiting.session,
            max(1, body.max_records),
            max(1, body.max_bytes),
            self._permitted(request),
        )
        failed = any(code is not ErrorCode.NONE for code in waiting.acknowledged.values())
        if not found and not failed and not final:
            return False
        self._answer(request, found, waiting.acknowledged)
        return True

    def _answer(
        self,
        request: Request[share_fetch.ShareFetchRequest],
        found: list[Acquired],
        acknowledged: dict[Place, ErrorCode],
    ) -> None:
        rows: dict[Place, share_fetch.PartitionData] = {}
        for place, code in acknowledged.items():
            rows[place] = share_fetch.PartitionData(
                partition_index=place[1], acknowledge_error_code=int(code), records=b""
            )
        for one in found:
            row = rows.setdefault(
                one.place, share_fetch.PartitionData(partition_index=one.place[1], records=b"")
            )
            row.error_code = int(one.error)
            row.records = one.records
            row.acquired_records = [share_fetch.AcquiredRecords(*run) for run in one.given]
            if one.records:
                self._broker.traffic_out(one.place[0], len(one.records))
        topics: dict[bytes, list[share_fetch.PartitionData]] = {}
        for place, row in rows.items():
            row.current_leader = share_fetch.LeaderIdAndEpoch(-1, -1)
            topics.setdefault(place[0], []).append(row)
        lock_ms = self._shares.settings.integer(
            request.body.group_id or "", "share.record.lock.duration.ms"
        )
        answer = share_fetch.ShareFetchResponse(
            acquisition_lock_timeout_ms=lock_ms,
            responses=[
                share_fetch.ShareFetchableTopicResponse(topic_id, each)
                for topic_id, each in topics.items()
            ],
        )
        if self._broker.metering:
            # What is locked goes out all the same; the pause comes after it.
            request.connection.client_id = request.client_id
            size = sum(len(one.records) for one in found)
            request.pause(self._broker.quotas.shared_out(request.connection, size), answer)
        request.answer(answer)

    def _session(
        self, request: Request[Any], group: str | None, member: str | None, epoch: int, answers: bool
    ) -> Session | ErrorCode:  # fmt: skip
        if not group or not member or epoch < FINAL_EPOCH or (epoch == 0 and answers):
            return ErrorCode.INVALID_REQUEST
        return self._shares.session(group, member, epoch, request.connection)

    # Waiting -------------------------------------------------------------------

    def _grew(self, partition: Partition) -> None:
        if self._waiting:
            topic = self._broker.store.topics.get(partition.topic)
            if topic is not None:
                self._wake((topic.id.bytes, partition.index))

    def _wake(self, place: Place) -> None:
        if place in self._waiting:
            if not self._woken:
                self._broker.call_soon(self._serve_woken)
            self._woken.add(place)

    def _serve_woken(self) -> None:
        woken, self._woken = self._woken, set()
        for place in woken:
            for waiting in list(self._waiting.get(place, ())):
                if waiting.timer is not None and self._serve(waiting, final=False):
                    self._stop_waiting(waiting)

    def _time_is_up(self, waiting: Waiting) -> None:
        self._stop_waiting(waiting)
        self._serve(waiting, final=True)

    def _stop_waiting(self, waiting: Waiting) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer = None
        for place in waiting.places:
            others = self._waiting.get(place)
            if others is not None:
                others.pop(waiting, None)
                if not others:
                    del self._waiting[place]

    def disconnected(self, connection: Connection) -> None:
        """A member's connection closed: its fetches are dropped, its records given back."""
        for others in list(self._waiting.values()):
            for waiting in list(others):
                if waiting.request.connection is connection:
                    self._stop_waiting(waiting)
        self._shares.disconnected(connection)

    def _poke(self) -> None:
        if not self._ticking and not self._shares.idle:
            self._ticking = True
            self._broker.call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._ticking = False
        try:
            self._shares.tick()
        finally:
            self._poke()

    # Acknowledging -------------------------------------------------------------

    def acknowledge(self, request: Request[share_acknowledge.ShareAcknowledgeRequest]) -> None:
        body = request.body
        if not self._may_read_group(request):
            code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            request.answer(share_acknowledge.ShareAcknowledgeResponse(error_code=code))
            return
        epoch = body.share_session_epoch
        session: Session | ErrorCode
        if epoch == 0:
            session = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        else:
            session = self._session(request, body.group_id, body.member_id, epoch, True)
        if isinstance(session, ErrorCode):
            request.answer(share_acknowledge.ShareAcknowledgeResponse(error_code=int(session)))
            return
        topics: dict[bytes, list[share_acknowledge.PartitionData]] = {}
        for topic in body.topics:
            for each in topic.partitions:
                code = self._acknowledge(
                    request,
                    session,
                    (topic.topic_id, each.partition_index),
                    [
                        (batch.first_offset, batch.last_offset, batch.acknowledge_types)
                        for batch in each.acknowledgement_batches
                    ],
                )
                topics.setdefault(topic.topic_id, []).append(
                    share_acknowledge.PartitionData(
                        partition_index=each.partition_index,
                        error_code=int(code),
                        current_leader=share_acknowledge.LeaderIdAndEpoch(-1, -1),
                    )
                )
        if epoch == FINAL_EPOCH:
            self._shares.let_go(session.group, session.member)
        request.answer(
            share_acknowledge.ShareAcknowledgeResponse(
                acquisition_lock_timeout_ms=self._shares.settings.integer(
                    session.group, "share.record.lock.duration.ms"
                ),
                responses=[
                    share_acknowledge.ShareAcknowledgeTopicResponse(topic_id, each)
                    for topic_id, each in topics.items()
                ],
            )
        )

    # Administration ------------------------------------------------------------

    def describe_offsets(
        self, request: Request[describe_share_group_offsets.DescribeShareGroupOffsetsRequest]
    ) -> None:
        messages = describe_share_group_offsets
        groups = []
        named = {one.group_id: one for one in request.body.groups}
        for asked in named.values():
            answer = messages.DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id)
            wanted: dict[str, list[int]] = {}
            if asked.topics is None:
                for _, topic_id, index in self._shares.keys(asked.group_id):
                    wanted.setdefault(self._name(topic_id), []).append(index)
            else:
                wanted = {topic.topic_name: topic.partitions for topic in asked.topics}
            for name, indexes in wanted.items():
                row = messages.DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name, topic_id=self._id(name)
                )
                for index in indexes:
                    start = self._shares.start_of((asked.group_id, row.topic_id, index))
                    partition = self._broker.partition_by_name(name, index)
                    lag = -1
                    if start is not None and partition is not None:
                        lag = max(0, partition.high_watermark - start)
                    row.partitions.append(
                        messages.DescribeShareGroupOffsetsResponsePartition(
                            partition_index=index,
                            start_offset=-1 if start is None else start,
                            leader_epoch=0,
                            lag=lag,
                        )
                    )
                answer.topics.append(row)
            groups.append(answer)
        request.answer(messages.DescribeShareGroupOffsetsResponse(groups=groups))

    def alter_offsets(
        self, request: Request[alter_share_group_offsets.AlterShareGroupOffsetsRequest]
    ) -> None:
        messages = alter_share_group_offsets
        body = request.body
        # A group that never was begins where it is put; nowhere, it is still none.
        error = self._must_be_empty(body.group_id, exists=not body.topics)
        answer = messages.AlterShareGroupOffsetsResponse(error_code=int(error))
        if error is ErrorCode.NONE:
            for topic in body.topics:
                row = messages.AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name, topic_id=self._id(topic.topic_name)
                )
                for each in topic.partitions:
                    code = self._move(
                        (body.group_id, row.topic_id, each.partition_index), each.start_offset
                    )
                    row.partitions.append(
                        messages.AlterShareGroupOffsetsResponsePartition(
                            partition_index=each.partition_index, error_code=int(code)
                        )
                    )
                answer.responses.append(row)
        request.answer(answer)

    def _move(self, key: Key, offset: int) -> ErrorCode:
        partition = self._broker.partition_by_id(key[1], key[2])
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self._shares.share(key, partition).move_start(offset)
        return self._shares.keep(key)

    def delete_offsets(
        self, request: Request[delete_share_group_offsets.DeleteShareGroupOffsetsRequest]
    ) -> None:
        messages = delete_share_group_offsets
        body = request.body
        error = self._must_be_empty(body.group_id)
        answer = messages.DeleteShareGroupOffsetsResponse(error_code=int(error))
        if error is ErrorCode.NONE:
            for topic in body.topics:
                topic_id = self._id(topic.topic_name)
                code = ErrorCode.NONE if any(topic_id) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                for key in self._shares.keys(body.group_id):
                    if key[1] == topic_id:
                        code = self._shares.forget(key)
                answer.responses.append(
                    messages.DeleteShareGroupOffsetsResponseTopic(
                        topic_name=topic.topic_name, topic_id=topic_id, error_code=int(code)
                    )
                )
        request.answer(answer)

    def _must_be_empty(self, group_id: str, *, exists: bool = True) -> ErrorCode:
        group = self._shares.membership.groups.get(group_id)
        if exists and group is None and not self._shares.keys(group_id):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None and group.members:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    def _name(self, topic_id: bytes) -> str:
        topic = self._broker.topic_by_id(topic_id)
        return "" if topic is None else topic.name

    def _id(self, name: str) -> bytes:
        topic = self._broker.store.topics.get(name)
        return bytes(16) if topic is None else topic.id.bytes
