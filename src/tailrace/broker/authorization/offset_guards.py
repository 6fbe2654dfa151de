"""Requests about the offsets that a group committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailrace.broker.authorization.acls import DELETE, DESCRIBE, GROUP, READ, TOPIC
from tailrace.broker.authorization.authorizer import Caller
from tailrace.broker.authorization.guarding import NO_GROUP, NO_TOPIC, Guard, Serve, amend
from tailrace.broker.router import Request
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import offset_commit, offset_delete, offset_fetch

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

TOPIC_IDS = 10
GROUPS_SINCE = 8
GROUP_ERROR_SINCE = 2


class OffsetGuards:
    """The guards of this module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def commit(
        self, caller: Caller, request: Request[offset_commit.OffsetCommitRequest], serve: Serve
    ) -> None:
        body = request.body

        def rows(topics: list[Any], code: int) -> list[Any]:
            return [
                offset_commit.OffsetCommitResponseTopic(
                    topic.name,
                    topic.topic_id,
                    [
                        offset_commit.OffsetCommitResponsePartition(one.partition_index, code)
                        for one in topic.partitions
                    ],
                )
                for topic in topics
            ]

        if not caller.may(READ, GROUP, body.group_id):
            request.answer(offset_commit.OffsetCommitResponse(topics=rows(body.topics, NO_GROUP)))
            return
        known, unknown = self._named(body.topics, request.version)
        allowed, others = caller.parted(READ, TOPIC, known, self._name)
        body.topics = [*allowed, *unknown]

        def change(answer: offset_commit.OffsetCommitResponse) -> None:
            answer.topics += rows(others, NO_TOPIC)

        amend(request, change)
        serve(request)

    def fetch(
        self, caller: Caller, request: Request[offset_fetch.OffsetFetchRequest], serve: Serve
    ) -> None:
        if request.version >= GROUPS_SINCE:
            self._fetch_groups(caller, request, serve)
        else:
            self._fetch_one(caller, request, serve)

    def _fetch_one(
        self, caller: Caller, request: Request[offset_fetch.OffsetFetchRequest], serve: Serve
    ) -> None:
        body = request.body
        everything = body.topics is None

        def rows(topics: list[Any], code: int) -> list[Any]:
            return [
                offset_fetch.OffsetFetchResponseTopic(
                    topic.name,
                    [
                        offset_fetch.OffsetFetchResponsePartition(index, -1, -1, "", code)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in topics
            ]

        if not caller.may(DESCRIBE, GROUP, body.group_id):
            if request.version >= GROUP_ERROR_SINCE:
                request.answer(offset_fetch.OffsetFetchResponse(error_code=NO_GROUP))
            else:
                refused = rows(body.topics or [], NO_GROUP)
                request.answer(offset_fetch.OffsetFetchResponse(topics=refused))
            return
        others: list[Any] = []
        if body.topics is not None:
            body.topics, others = caller.parted(DESCRIBE, TOPIC, body.topics, self._name)

        def change(answer: offset_fetch.OffsetFetchResponse) -> None:
            if everything:
                answer.topics, _ = caller.parted(DESCRIBE, TOPIC, answer.topics, self._name)
            answer.topics += rows(others, NO_TOPIC)

        amend(request, change)
        serve(request)

    def _fetch_groups(
        self, caller: Caller, request: Request[offset_fetch.OffsetFetchRequest], serve: Serve
    ) -> None:
        body = request.body
        body.groups, refused = caller.parted(
            DESCRIBE, GROUP, body.groups, lambda one: str(one.group_id)
        )
        everything: set[str] = set()
        others: dict[str, list[Any]] = {}
        for group in body.groups:
            if group.topics is None:
                everything.add(group.group_id)
                continue
            known, unknown = self._named(group.topics, request.version)
            allowed, denied = caller.parted(DESCRIBE, TOPIC, known, self._name)
            group.topics = [*allowed, *unknown]
            others.setdefault(group.group_id, []).extend(denied)

        def change(answer: offset_fetch.OffsetFetchResponse) -> None:
            for group in answer.groups:
                if group.error_code:
                    continue
                if group.group_id in everything:
                    group.topics, _ = caller.parted(DESCRIBE, TOPIC, group.topics, self._name)
                    continue
                group.topics += [
                    offset_fetch.OffsetFetchResponseTopics(
                        topic.name,
                        topic.topic_id,
                        [
                            offset_fetch.OffsetFetchResponsePartitions(index, -1, -1, "", NO_TOPIC)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in others.get(group.group_id, ())
                ]
            answer.groups += [
                offset_fetch.OffsetFetchResponseGroup(one, [], NO_GROUP)
                for one in dict.fromkeys(group.group_id for group in refused)
            ]

        amend(request, change)
        serve(request)

    def delete(
        self, caller: Caller, request: Request[offset_delete.OffsetDeleteRequest], serve: Serve
    ) -> None:
        body = request.body
        if not caller.may(DELETE, GROUP, body.group_id):
            request.answer(offset_delete.OffsetDeleteResponse(error_code=NO_GROUP))
            return
        body.topics, others = caller.parted(READ, TOPIC, body.topics, self._name)

        def change(answer: offset_delete.OffsetDeleteResponse) -> None:
            if answer.error_code:
                return
            answer.topics += [
                offset_delete.OffsetDeleteResponseTopic(
                    topic.name,
                    [
                        offset_delete.OffsetDeleteResponsePartition(one.partition_index, NO_TOPIC)
                        for one in topic.partitions
                    ],
                )
                for topic in others
            ]

        amend(request, change)
        serve(request)

    def _named(self, topics: list[Any], version: int) -> tuple[list[Any], list[Any]]:
        """The topics that have a name, and those whose id nobody has."""
        if version < TOPIC_IDS:
            return topics, []
        known = [one for one in topics if self._broker.topic_by_id(one.topic_id) is not None]
        return known, [one for one in topics if self._broker.topic_by_id(one.topic_id) is None]

    def _name(self, topic: Any) -> str:
        """A topic's name, which newer requests leave to its id."""
        topic_id = getattr(topic, "topic_id", None)
        found = self._broker.topic_by_id(topic_id) if topic_id and any(topic_id) else None
        return str(topic.name) if found is None else found.name


def guards(broker: Broker) -> dict[int, Guard]:
    """The guards of this module."""
    found = OffsetGuards(broker)
    return {
        ApiKey.OFFSET_COMMIT: found.commit,
        ApiKey.OFFSET_FETCH: found.fetch,
        ApiKey.OFFSET_DELETE: found.delete,
    }
