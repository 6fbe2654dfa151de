"""Topics come and go: CreateTopics, DeleteTopics, CreatePartitions, DescribeLogDirs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tailrace.broker.guard import write_refusal
from tailrace.broker.handlers.configs import topic_source
from tailrace.broker.router import Request, Route
from tailrace.errors import TailraceError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import ZERO_UUID, Message
from tailrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tailrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tailrace.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tailrace.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition
    from tailrace.log.store import Steps, Topic

# As Kafka's controller: one request may not ask for more.
PARTITIONS_PER_REQUEST = 10_000

TOO_MANY = f"more than {PARTITIONS_PER_REQUEST} partitions in one request"
TOO_FAST = "the throttling quota has been exceeded"
ONE_COPY = "the embedded broker keeps one copy; an Apache Kafka cluster keeps more"


class Mutations:
    """One request's share of its sender's quota for making and deleting partitions."""

    def __init__(self, broker: Broker, request: Request[Any], *, strict: bool) -> None:
        self._broker = broker
        self._request = request
        self._strict = strict
        self._pause = 0.0
        self.project = request.connection.project

    def refused(self, amount: int) -> bool:
        """Count `amount` partitions; whether that is not for now."""
        if not self._broker.metering:
            return False
        connection = self._request.connection
        connection.client_id = self._request.client_id
        pause = self._broker.quotas.mutate(connection, amount, strict=self._strict)
        self._pause = max(self._pause, pause)
        return self._strict and pause > 0

    def answer(self, response: Message) -> None:
        """Answer the request, with a pause for who is over the quota."""
        self._request.pause(self._pause, response)
        self._request.answer(response)


class Topics:
    """The handlers of this module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    # creating

    def create(self, request: Request[CreateTopicsRequest]) -> None:
        body = request.body
        quota = Mutations(self._broker, request, strict=request.version >= 6)
        names = Counter(topic.name for topic in body.topics)
        twice = {name for name, count in names.items() if count > 1}
        results = [
            CreatableTopicResult(
                name=name,
                error_code=int(ErrorCode.INVALID_REQUEST),
                error_message="the topic is named twice in one request",
                topic_config_error_code=0,
                configs=None,
            )
            for name in sorted(twice)
        ]
        wanted = [topic for topic in body.topics if topic.name not in twice]
        excessive = sum(map(self._partitions, wanted)) > PARTITIONS_PER_REQUEST

        def steps() -> Iterator[None]:
            for topic in wanted:
                if excessive:
                    code = int(ErrorCode.POLICY_VIOLATION)
                    results.append(_refused(topic.name, code, TOO_MANY))
                else:
                    made = yield from self._create(topic, quota, validate_only=body.validate_only)
                    results.append(made)
                yield
            quota.answer(CreateTopicsResponse(topics=results))

        request.in_turns(steps(), self._broker.loop)

    def _partitions(self, wanted: CreatableTopic) -> int:
        """How many partitions a topic would have."""
        count = len(wanted.assignments) or wanted.num_partitions
        return self._broker.settings.integer("num.partitions") if count == -1 else max(count, 0)

    def _create(
        self, wanted: CreatableTopic, quota: Mutations, *, validate_only: bool
    ) -> Steps[CreatableTopicResult]:
        broker = self._broker
        why = write_refusal(wanted.name, project=quota.project)
        if why is not None:
            return _refused(wanted.name, int(ErrorCode.INVALID_TOPIC_EXCEPTION), why)
        code, message = _check_copies(wanted, broker.node_id)
        if code:
            return _refused(wanted.name, code, message)
        partitions = self._partitions(wanted)
        overrides = {one.name: one.value for one in wanted.configs if one.value is not None}
        try:
            if broker.metering:  # what cannot be made costs nothing
                broker.create_topic(wanted.name, partitions, overrides, validate_only=True)
            if quota.refused(partitions):
                return _refused(wanted.name, int(ErrorCode.THROTTLING_QUOTA_EXCEEDED), TOO_FAST)
            topic = yield from broker.create_topic_in_steps(
                wanted.name, partitions, overrides, validate_only=validate_only
            )
        except TailraceError as error:
            code = getattr(error, "kafka_code", int(ErrorCode.UNKNOWN_SERVER_ERROR))
            return _refused(wanted.name, code, _told(error))
        return CreatableTopicResult(
            name=wanted.name,
            topic_id=ZERO_UUID if validate_only else topic.id.bytes,
            error_message=None,
            num_partitions=len(topic.partitions) or partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfigs(
                    name=name,
                    value=value,
                    read_only=False,
                    config_source=topic_source(broker, topic, name),
                    is_sensitive=False,
                )
                for name, value in topic.config.values.items()
            ],
        )

    def add_partitions(self, request: Request[CreatePartitionsRequest]) -> None:
        quota = Mutations(self._broker, request, strict=request.version >= 3)
        known = self._broker.store.topics
        more = sum(
            max(0, topic.count - len(known[topic.name].partitions))
            for topic in request.body.topics
            if topic.name in known
        )
        results: list[CreatePartitionsTopicResult] = []

        def steps() -> Iterator[None]:
            for topic in request.body.topics:
                grown = yield from self._add(
                    topic,
                    quota,
                    validate_only=request.body.validate_only,
                    excessive=more > PARTITIONS_PER_REQUEST,
                )
                results.append(grown)
                yield
            quota.answer(CreatePartitionsResponse(results=results))

        request.in_turns(steps(), self._broker.loop)

    def _add(
        self,
        wanted: CreatePartitionsTopic,
        quota: Mutations,
        *,
        validate_only: bool,
        excessive: bool,
    ) -> Steps[CreatePartitionsTopicResult]:
        broker = self._broker
        answer = CreatePartitionsTopicResult(name=wanted.name, error_message=None)
        topic = broker.store.topics.get(wanted.name)
        if topic is None:
            answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            answer.error_message = "this broker has no such topic"
            return answer
        why = write_refusal(wanted.name, project=quota.project)
        if why is not None:
            answer.error_code = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
            answer.error_message = why
            return answer
        present = len(topic.partitions)
        if wanted.count <= present:
            answer.error_code = int(ErrorCode.INVALID_PARTITIONS)
            answer.error_message = f"the topic has {present} partitions; the number can only grow"
            return answer
        if excessive:
            answer.error_code, answer.error_message = int(ErrorCode.POLICY_VIOLATION), TOO_MANY
            return answer
        if wanted.assignments is not None and any(
            one.broker_ids != [broker.node_id] for one in wanted.assignments
        ):
            answer.error_code = int(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
            answer.error_message = ONE_COPY
            return answer
        if quota.refused(wanted.count - present):
            answer.error_code = int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            answer.error_message = TOO_FAST
        elif not validate_only:
            try:
                yield from broker.add_partitions_in_steps(wanted.name, wanted.count)
            except TailraceError as error:
                answer.error_code = getattr(error, "kafka_code", -1)
                answer.error_message = _told(error)
        return answer

    # deleting

    def delete(self, request: Request[DeleteTopicsRequest]) -> None:
        body = request.body
        quota = Mutations(self._broker, request, strict=request.version >= 5)
        wanted: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in body.topic_names]
        if request.version >= 6:
            wanted = [(one.name, one.topic_id) for one in body.topics]
        results: list[DeletableTopicResult] = []

        def steps() -> Iterator[None]:
            for name, topic_id in wanted:
                gone = yield from self._delete(name, topic_id, quota)
                results.append(gone)
                yield
            quota.answer(DeleteTopicsResponse(responses=results))

        request.in_turns(steps(), self._broker.loop)

    def _delete(
        self, name: str | None, topic_id: bytes, quota: Mutations
    ) -> Steps[DeletableTopicResult]:
        broker = self._broker
        answer = DeletableTopicResult(name=name, topic_id=topic_id, error_message=None)
        topic: Topic | None
        if name is None:
            topic = broker.topic_by_id(topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = broker.store.topics.get(name)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            answer.error_code = int(missing)
        elif not broker.settings.boolean("delete.topic.enable"):
            answer.error_code = int(ErrorCode.TOPIC_DELETION_DISABLED)
        elif (why := write_refusal(topic.name, project=quota.project)) is not None:
            answer.error_code = int(ErrorCode.INVALID_TOPIC_EXCEPTION)
            answer.error_message = why
        elif quota.refused(len(topic.partitions)):
            answer.error_code = int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            answer.error_message = TOO_FAST
        else:
            answer.name, answer.topic_id = topic.name, topic.id.bytes
            try:
                yield from broker.delete_topic_in_steps(topic.name)
            except TailraceError as error:
                answer.error_code = getattr(error, "kafka_code", -1)
                answer.error_message = _told(error)
        return answer

    # directories

    def log_dirs(self, request: Request[DescribeLogDirsRequest]) -> None:
        broker = self._broker
        wanted = request.body.topics
        chosen = None if wanted is None else {one.topic: set(one.partitions) for one in wanted}
        found: dict[str, dict[str, list[Partition]]] = {
            str(directory): {} for directory in broker.directories
        }
        for topic in broker.store.topics.values():
            if chosen is not None and topic.name not in chosen:
                continue
            for partition in topic.partitions:
                if chosen is not None and partition.index not in chosen[topic.name]:
                    continue
                place = str(partition.directory.parent)
                found.setdefault(place, {}).setdefault(topic.name, []).append(partition)
        request.answer(
            DescribeLogDirsResponse(
                results=[_directory(place, topics) for place, topics in found.items()]
            )
        )


def _directory(place: str, topics: dict[str, list[Partition]]) -> DescribeLogDirsResult:
    try:
        space = os.statvfs(place)
    except OSError:
        return DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=place)
    return DescribeLogDirsResult(
        log_dir=place,
        topics=[
            DescribeLogDirsTopic(
                name=name,
                partitions=[
                    DescribeLogDirsPartition(
                        partition_index=partition.index, partition_size=partition.size_bytes
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
        total_bytes=space.f_blocks * space.f_frsize,
        usable_bytes=space.f_bavail * space.f_frsize,
    )


def _check_copies(wanted: CreatableTopic, node_id: int) -> tuple[int, str]:
    """Refuse what one node cannot promise; -1 and 1 copies are what it has."""
    if wanted.assignments:
        if wanted.num_partitions != -1 or wanted.replication_factor != -1:
            return int(ErrorCode.INVALID_REQUEST), "a count and an assignment exclude each other"
        indexes = sorted(one.partition_index for one in wanted.assignments)
        if indexes != list(range(len(indexes))) or any(
            one.broker_ids != [node_id] for one in wanted.assignments
        ):
            return int(ErrorCode.INVALID_REPLICA_ASSIGNMENT), ONE_COPY
        return 0, ""
    if wanted.num_partitions == 0 or wanted.num_partitions < -1:
        return int(ErrorCode.INVALID_PARTITIONS), "a topic has at least one partition"
    if wanted.replication_factor not in (-1, 1):
        return (
            int(ErrorCode.INVALID_REPLICATION_FACTOR),
            f"replication factor {wanted.replication_factor} needs more brokers than one: {ONE_COPY}",
        )
    return 0, ""


def _refused(name: str, code: int, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=None)


def _told(error: TailraceError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = Topics(broker)
    yield Route(ApiKey.CREATE_TOPICS, 2, 7, handlers.create)
    yield Route(ApiKey.DELETE_TOPICS, 1, 6, handlers.delete)
    yield Route(ApiKey.CREATE_PARTITIONS, 0, 3, handlers.add_partitions)
    yield Route(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, handlers.log_dirs)
