"""Requests about committed offsets: OffsetCommit, OffsetFetch, OffsetDelete.

From version 10 on topics are named by id; the answer names them the way the request did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.groups.group import CommittedOffset, TopicPartition
from tailrace.broker.groups.offsets import Commit, NewOffset
from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import ZERO_UUID
from tailrace.wire.messages import offset_commit as committing
from tailrace.wire.messages import offset_delete as deletion
from tailrace.wire.messages import offset_fetch as fetching

if TYPE_CHECKING:
    from tailrace.broker.coordination import Coordination

TOPIC_IDS = 10
MEMBER_EPOCHS = 9
Fetched = dict[TopicPartition, tuple[ErrorCode, CommittedOffset]]


class OffsetRequests:
    """Commit, fetch and delete."""

    def __init__(self, coordination: Coordination) -> None:
        self._topics = coordination.topics
        self._groups: GroupCoordinator = coordination.groups
        self._coordination = coordination

    def routes(self) -> Iterable[Route]:
        yield Route(ApiKey.OFFSET_COMMIT, 2, 10, self.commit)
        yield Route(ApiKey.OFFSET_FETCH, 1, 10, self.fetch)
        yield Route(ApiKey.OFFSET_DELETE, 0, 0, self.delete)

    def commit(self, request: Request[committing.OffsetCommitRequest]) -> None:
        body, by_id = request.body, request.version >= TOPIC_IDS
        answers: dict[tuple[str, bytes, int], ErrorCode] = {}
        names: dict[TopicPartition, tuple[str, bytes, int]] = {}
        offsets: list[NewOffset] = []
        for topic in body.topics:
            name = self._topics.name_of(topic.topic_id) if by_id else topic.name
            for one in topic.partitions:
                place = (topic.name, topic.topic_id, one.partition_index)
                if name is None:
                    answers[place] = ErrorCode.UNKNOWN_TOPIC_ID
                elif not self._topics.has(name, one.partition_index):
                    answers[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    answers[place] = ErrorCode.NONE
                    names[name, one.partition_index] = place
                    offsets.append(
                        NewOffset(
                            name,
                            one.partition_index,
                            one.committed_offset,
                            one.committed_leader_epoch,
                            one.committed_metadata or "",
                        )
                    )

        def reply(found: dict[TopicPartition, ErrorCode]) -> None:
            for key, error in found.items():
                if error is ErrorCode.GROUP_ID_NOT_FOUND and request.version < MEMBER_EPOCHS:
                    error = ErrorCode.ILLEGAL_GENERATION
                answers[names[key]] = error
            topics = []
            for topic in body.topics:
                partitions = [
                    committing.OffsetCommitResponsePartition(
                        one.partition_index,
                        int(answers[topic.name, topic.topic_id, one.partition_index]),
                    )
                    for one in topic.partitions
                ]
                topics.append(
                    committing.OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)
                )
            request.answer(committing.OffsetCommitResponse(topics=topics))

        if not offsets:
            reply({})
            return
        commit = Commit(
            group_id=body.group_id,
            offsets=tuple(offsets),
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            generation=body.generation_id_or_member_epoch,
            retention_ms=body.retention_time_ms if request.version <= 4 else -1,
            knows_member_epochs=request.version >= MEMBER_EPOCHS,
        )
        self._groups.commit(commit, reply)
        self._coordination.poke()

    def fetch(self, request: Request[fetching.OffsetFetchRequest]) -> None:
        if request.version >= 8:
            self._fetch_groups(request)
            return
        body = request.body
        wanted = (
            None
            if body.topics is None
            else [(one.name, index) for one in body.topics for index in one.partition_indexes]
        )
        found = self._groups.fetch(body.group_id, wanted, body.require_stable)
        topics = [
            fetching.OffsetFetchResponseTopic(
                name,
                [
                    fetching.OffsetFetchResponsePartition(
                        index,
                        committed.offset,
                        committed.leader_epoch,
                        committed.metadata,
                        int(error),
                    )
                    for index, error, committed in rows
                ],
            )
            for name, rows in _by_topic(found)
        ]
        request.answer(fetching.OffsetFetchResponse(topics=topics))

    def _fetch_groups(self, request: Request[fetching.OffsetFetchRequest]) -> None:
        by_id = request.version >= TOPIC_IDS
        groups = []
        for one in _each_once(request.body.groups):
            unknown: list[fetching.OffsetFetchResponseTopics] = []
            wanted: list[TopicPartition] | None = None
            if one.topics is not None:
                wanted = []
                for topic in one.topics:
                    name = self._topics.name_of(topic.topic_id) if by_id else topic.name
                    if name is None:
                        unknown.append(_unknown_topic(topic))
                    else:
                        wanted.extend((name, index) for index in topic.partition_indexes)
            error = self._groups.check_fetch(one.group_id, one.member_id, one.member_epoch)
            if error is not ErrorCode.NONE:
                groups.append(fetching.OffsetFetchResponseGroup(one.group_id, [], int(error)))
                continue
            found = self._groups.fetch(one.group_id, wanted, request.body.require_stable)
            topics = []
            for name, rows in _by_topic(found):
                topic_id = self._topics.id_of(name) if by_id else ZERO_UUID
                if topic_id is None:
                    continue  # the topic is gone: it has no id to be named by
                topics.append(
                    fetching.OffsetFetchResponseTopics(
                        name,
                        topic_id,
                        [
                            fetching.OffsetFetchResponsePartitions(
                                index,
                                committed.offset,
                                committed.leader_epoch,
                                committed.metadata,
                                int(error),
                            )
                            for index, error, committed in rows
                        ],
                    )
                )
            groups.append(fetching.OffsetFetchResponseGroup(one.group_id, topics + unknown, 0))
        request.answer(fetching.OffsetFetchResponse(groups=groups))

    def delete(self, request: Request[deletion.OffsetDeleteRequest]) -> None:
        body = request.body
        answers: dict[TopicPartition, ErrorCode] = {}
        for topic in body.topics:
            for one in topic.partitions:
                known = self._topics.has(topic.name, one.partition_index)
                answers[topic.name, one.partition_index] = (
                    ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
        wanted = [key for key, error in answers.items() if error is ErrorCode.NONE]

        def reply(error: ErrorCode, found: dict[TopicPartition, ErrorCode]) -> None:
            if error is not ErrorCode.NONE:
                request.answer(deletion.OffsetDeleteResponse(error_code=int(error)))
                return
            answers.update(found)
            request.answer(
                deletion.OffsetDeleteResponse(
                    topics=[
                        deletion.OffsetDeleteResponseTopic(
                            topic.name,
                            [
                                deletion.OffsetDeleteResponsePartition(
                                    one.partition_index,
                                    int(answers[topic.name, one.partition_index]),
                                )
                                for one in topic.partitions
                            ],
                        )
                        for topic in body.topics
                    ]
                )
            )

        self._groups.delete_offsets(body.group_id, wanted, reply)


def _each_once(
    groups: Iterable[fetching.OffsetFetchRequestGroup],
) -> Iterable[fetching.OffsetFetchRequestGroup]:
    """A group that is named several times, once, with all that is asked of it."""
    named: dict[str, fetching.OffsetFetchRequestGroup] = {}
    for one in groups:
        first = named.setdefault(one.group_id, one)
        if first is one or first.topics is None:
            continue
        if one.topics is None:
            first.topics = None
        else:
            first.topics += one.topics
    return named.values()


def _by_topic(found: Fetched) -> list[tuple[str, list[tuple[int, ErrorCode, CommittedOffset]]]]:
    topics: dict[str, list[tuple[int, ErrorCode, CommittedOffset]]] = {}
    for (name, index), (error, committed) in found.items():
        topics.setdefault(name, []).append((index, error, committed))
    return list(topics.items())


def _unknown_topic(
    topic: fetching.OffsetFetchRequestTopics,
) -> fetching.OffsetFetchResponseTopics:
    return fetching.OffsetFetchResponseTopics(
        topic.name,
        topic.topic_id,
        [
            fetching.OffsetFetchResponsePartitions(
                index, -1, -1, "", int(ErrorCode.UNKNOWN_TOPIC_ID)
            )
            for index in topic.partition_indexes
        ],
    )
