"""Consumer groups of a log: who is in them, how far they have come, moving them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.client import share_groups
from tailrace.client.admin import Admin, Place
from tailrace.client.cluster import TryAgain
from tailrace.client.errors import RequestError
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message

GROUP = 0


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member and the partitions it reads."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class GroupInformation:
    """A group. `kind` is "classic", "consumer" or "share"; members only if described."""

    name: str
    state: str
    kind: str
    protocol: str = ""
    members: tuple[GroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is behind in one partition; `committed` is -1 if it never said."""

    topic: str
    partition: int
    committed: int
    end: int
    member: GroupMember | None

    @property
    def records(self) -> int | None:
        return None if self.committed < 0 else max(self.end - self.committed, 0)


class Groups:
    """Asks an admin's connections about groups."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self.cluster = admin.cluster

    def every(self) -> list[GroupInformation]:
        """Every group on every broker, by name."""
        from tailrace.wire.messages import list_groups as messages

        nodes = {
            leader for topic in self._admin.list_topics(internal=True) for leader in topic.leaders
        }
        api = APIS[ApiKey.LIST_GROUPS]
        connections = [self.cluster.broker(node) for node in sorted(nodes) if node >= 0]
        found: dict[str, GroupInformation] = {}
        for connection in connections or [self.cluster.any()]:

            def ask(connection: Any = connection) -> messages.ListGroupsResponse:
                response = connection.request(api, messages.ListGroupsRequest())
                if ErrorCode(response.error_code).retriable:
                    raise TryAgain(response.error_code)
                assert isinstance(response, messages.ListGroupsResponse)
                return response

            response = self.cluster.retry(ask, "listing groups")
            _judge(response.error_code, "listing groups")
            for row in response.groups:
                found[row.group_id] = GroupInformation(
                    row.group_id, row.group_state, (row.group_type or "classic").lower()
                )
        return [found[name] for name in sorted(found)]

    def describe(self, name: str) -> GroupInformation | None:
        """The group with its members; None if there is none."""
        from tailrace.wire.messages import describe_groups as messages

        response = self.ask(
            name, ApiKey.DESCRIBE_GROUPS, messages.DescribeGroupsRequest(groups=[name]),
            lambda answer: answer.groups[0].error_code,
        )  # fmt: skip
        [group] = response.groups
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return self._describe_newer(name)
        _judge(group.error_code, f'describing group "{name}"')
        if group.group_state == "Dead":
            return self._describe_newer(name)
        members = tuple(
            GroupMember(
                one.member_id,
                one.group_instance_id,
                one.client_id,
                one.client_host.lstrip("/"),
                _assigned(bytes(one.member_assignment)),
            )
            for one in group.members
        )
        return GroupInformation(name, group.group_state, "classic", group.protocol_data, members)

    def _describe_newer(self, name: str) -> GroupInformation | None:
        """A group of the server-side protocol, if this is one."""
        from tailrace.wire.messages import consumer_group_describe as messages

        if not self.cluster.any().offers(APIS[ApiKey.CONSUMER_GROUP_DESCRIBE]):
            return share_groups.describe(self, name)
        response = self.ask(
            name,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            messages.ConsumerGroupDescribeRequest(group_ids=[name]),
            lambda answer: answer.groups[0].error_code,
        )
        [group] = response.groups
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return share_groups.describe(self, name)
        _judge(group.error_code, f'describing group "{name}"')
        members = tuple(
            GroupMember(
                one.member_id,
                one.instance_id,
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
        return GroupInformation(name, group.group_state, "consumer", group.assignor_name, members)

    def offsets(self, name: str) -> dict[Place, int]:
        """What the group has committed."""
        from tailrace.wire.messages import offset_fetch as messages

        request = messages.OffsetFetchRequest(
            group_id=name,
            topics=None,
            groups=[messages.OffsetFetchRequestGroup(group_id=name, topics=None)],
        )
        response = self.ask(
            name,
            ApiKey.OFFSET_FETCH,
            request,
            lambda answer: answer.groups[0].error_code if answer.groups else answer.error_code,
            # From 10 on topics are named by id.
            highest=9,
        )
        topics = response.groups[0].topics if response.groups else response.topics
        return {
            (topic.name, one.partition_index): one.committed_offset
            for topic in topics
            for one in topic.partitions
            if one.committed_offset >= 0
        }

    def lag(self, name: str) -> list[Lag]:
        """Every partition the group has committed for or reads, by name. A share group has
        come as far as everything below is done for."""
        group = self.describe(name)
        committed = self.positions(name, group)
        readers = {
            place: member
            for member in (group.members if group else ())
            for place in member.partitions
        }
        places = sorted({*committed, *readers})
        known = {topic.name for topic in self._admin.list_topics(internal=True)}
        ends = self._admin.end_offsets([place for place in places if place[0] in known])
        return [
            Lag(*place, committed.get(place, -1), ends.get(place, -1), readers.get(place))
            for place in places
        ]

    def positions(self, name: str, group: GroupInformation | None) -> dict[Place, int]:
        """How far a group of any kind has come."""
        if group is not None and group.kind == "share":
            return share_groups.starts(self, name)
        return self.offsets(name)

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        """Set the offsets of a group, of any kind, that nobody is in."""
        from tailrace.wire.messages import offset_commit as messages

        group = self.describe(name)
        if group is not None and group.kind == "share":
            share_groups.move(self, name, offsets)
            return
        topics: dict[str, list[messages.OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in sorted(offsets.items()):
            topics.setdefault(topic, []).append(
                messages.OffsetCommitRequestPartition(index, offset, -1, "")
            )
        request = messages.OffsetCommitRequest(
            group_id=name,
            generation_id_or_member_epoch=-1,
            topics=[
                messages.OffsetCommitRequestTopic(name=topic, partitions=rows)
                for topic, rows in topics.items()
            ],
        )

        def worst(answer: Any) -> int:
            codes = [one.error_code for topic in answer.topics for one in topic.partitions]
            return next((code for code in codes if code), 0)

        response = self.ask(name, ApiKey.OFFSET_COMMIT, request, worst, highest=9)
        code = worst(response)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NON_EMPTY_GROUP):
            raise RequestError.of(
                code,
                f'moving group "{name}"',
                detail="the group has members; their commits would overwrite this one",
                hint="stop its consumers first",
            )
        _judge(code, f'moving group "{name}"')

    def delete(self, names: Iterable[str]) -> None:
        """Remove groups that nobody is in, with their offsets. Raises RequestError."""
        from tailrace.wire.messages import delete_groups as messages

        for name in names:
            response = self.ask(
                name,
                ApiKey.DELETE_GROUPS,
                messages.DeleteGroupsRequest(groups_names=[name]),
                lambda answer: answer.results[0].error_code,
            )
            _judge(response.results[0].error_code, f'deleting group "{name}"')

    def ask(
        self,
        name: str,
        key: ApiKey,
        request: Message,
        error_of: Any,
        highest: int | None = None,
    ) -> Any:
        """A request to the group's coordinator, repeated while there is none."""
        api = APIS[key]

        def ask() -> Any:
            connection = self.cluster.coordinator(name, GROUP)
            response = connection.request(api, request, highest)
            code = error_of(response)
            if code in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.NOT_COORDINATOR,
            ):
                self.cluster.forget_coordinator(name, GROUP)
                raise TryAgain(code)
            return response

        return self.cluster.retry(ask, f'asking about group "{name}"')


def _assigned(data: bytes) -> tuple[Place, ...]:
    """The partitions in a classic consumer's assignment."""
    from tailrace.wire.messages import consumer_protocol

    if len(data) < 2:
        return ()
    version = min(int.from_bytes(data[:2], "big", signed=True), 3)
    decode = consumer_protocol.DECODE_CONSUMER_PROTOCOL_ASSIGNMENT.get(version)
    if decode is None:
        return ()
    try:
        found = decode(memoryview(data), 2)
    except (ValueError, IndexError):
        return ()  # not a consumer's: Connect and others keep their own form there
    return tuple(
        (each.topic, index) for each in found.assigned_partitions for index in each.partitions
    )


def _judge(code: int, action: str) -> None:
    if code != ErrorCode.NONE:
        raise RequestError.of(code, action)
