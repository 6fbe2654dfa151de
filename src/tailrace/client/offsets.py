"""A group's stored offsets, asked for and set on our own wire, without being a member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.client.cluster import COORDINATOR_MOVED, GROUP, Cluster, TryAgain
from tailrace.client.errors import BrokerUnavailableError, RequestError
from tailrace.client.record import Place
from tailrace.client.sender import is_retriable
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages import offset_commit, offset_fetch

OFFSET_COMMIT = APIS[ApiKey.OFFSET_COMMIT]
OFFSET_FETCH = APIS[ApiKey.OFFSET_FETCH]


def stored_offsets(cluster: Cluster, group: str, places: Iterable[Place]) -> dict[Place, int | None]:  # fmt: skip
    """What a group has stored; None where nothing."""
    wanted = list(places)
    topics: dict[str, list[int]] = {}
    for topic, partition in wanted:
        topics.setdefault(topic, []).append(partition)
    request = offset_fetch.OffsetFetchRequest(
        groups=[
            offset_fetch.OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=each)
                    for name, each in topics.items()
                ],
            )
        ],
        require_stable=True,
    )

    def ask() -> dict[Place, int | None]:
        response = _ask(cluster, group, OFFSET_FETCH, request, 9)
        assert isinstance(response, offset_fetch.OffsetFetchResponse)
        (answer,) = response.groups
        _judge(cluster, group, answer.error_code)
        found: dict[Place, int | None] = dict.fromkeys(wanted)
        for topic in answer.topics:
            for each in topic.partitions:
                _judge(cluster, group, each.error_code)
                if each.committed_offset >= 0:
                    found[topic.name, each.partition_index] = each.committed_offset
        return found

    return cluster.retry(ask, f'offsets of group "{group}"')


def store_offsets(cluster: Cluster, group: str, offsets: Mapping[Place, int]) -> None:
    """Store offsets of a group that has no members. Raises CommitFailedError if it has."""
    topics: dict[str, list[offset_commit.OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            offset_commit.OffsetCommitRequestPartition(partition, offset, -1, "")
        )
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        topics=[
            offset_commit.OffsetCommitRequestTopic(name=name, partitions=each)
            for name, each in topics.items()
        ],
    )

    def ask() -> None:
        response = _ask(cluster, group, OFFSET_COMMIT, request, 9)
        assert isinstance(response, offset_commit.OffsetCommitResponse)
        for topic in response.topics:
            for each in topic.partitions:
                _judge(cluster, group, each.error_code)

    cluster.retry(ask, f'offsets of group "{group}"')


def _ask(cluster: Cluster, group: str, api: Api, request: Message, highest: int) -> Message:
    try:
        return cluster.coordinator(group, GROUP).request(api, request, highest)
    except BrokerUnavailableError:
        cluster.forget_coordinator(group, GROUP)
        raise


def _judge(cluster: Cluster, group: str, error_code: int) -> None:
    if error_code == ErrorCode.NONE:
        return
    if error_code in COORDINATOR_MOVED:
        cluster.forget_coordinator(group, GROUP)
    if error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT or is_retriable(error_code):
        raise TryAgain(error_code, 0.005)
    raise RequestError.of(error_code, f'offsets of group "{group}"')
