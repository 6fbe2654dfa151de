"""Which process owns which partition: a group of Kafka's classic protocol.

The group `tailrace.events.<topic>` has the protocol type `tailrace-events`. A member says

    {"address": "127.0.0.1:4711", "pid": 17, "secret": …, "owned": [0, 3], "declared": {…}}

and the member that the log has made leader gives every member the same table:

    {"owners": {"0": "127.0.0.1:4711", …},
     "members": {"127.0.0.1:4711": {"id": <member id>, "secret": …}},
     "refused": {<member id>: <how its declaration differs>}}

DescribeGroups gives it to callers that own nothing. The group only says who *should* own a
partition; that nobody else can write it is the fence's work, so a member goes on serving during a
rebalance. Partitions stay where they are as far as that is fair.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tailrace.client.cluster import COORDINATOR_MOVED, GROUP, Cluster, TryAgain
from tailrace.client.errors import BrokerUnavailableError, ClientError, RequestError
from tailrace.clock import SYSTEM
from tailrace.errors import TailraceError
from tailrace.facts.errors import EventsDifferError
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tailrace.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from tailrace.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "tailrace-events"
PROTOCOL = "table-1"
SESSION_SECONDS = 6.0  # Apache Kafka takes no shorter one
REBALANCE_SECONDS = 3.0
HEARTBEAT_SECONDS = 0.25
_JOIN, _SYNC = APIS[ApiKey.JOIN_GROUP], APIS[ApiKey.SYNC_GROUP]
_HEARTBEAT, _LEAVE = APIS[ApiKey.HEARTBEAT], APIS[ApiKey.LEAVE_GROUP]
_DESCRIBE = APIS[ApiKey.DESCRIBE_GROUPS]
LONGEST_TABLE = 4 * 1024 * 1024


class Member(msgspec.Struct, frozen=True):
    """What a member says of itself."""

    address: str
    pid: int
    secret: str
    owned: list[int] = []
    declared: dict[str, Any] = {}


class Door(msgspec.Struct, frozen=True):
    """Who listens at an address, and the secret to be let in."""

    id: str
    secret: str


class Table(msgspec.Struct, frozen=True):
    """Who owns what."""

    owners: dict[int, str] = {}
    members: dict[str, Door] = {}
    refused: dict[str, str] = {}


def group_of(topic: str) -> str:
    return f"tailrace.events.{topic}"


def assign(members: Mapping[str, Member], partitions: int) -> Table:
    """The table for these members: even, and as much as possible as it was."""
    reference = _reference(members)
    refused = {
        name: difference(reference, member.declared)
        for name, member in members.items()
        if member.declared != reference
    }
    fitting = {name: members[name] for name in sorted(members) if name not in refused}
    names = sorted(fitting, key=lambda name: (-len(fitting[name].owned), name))
    least, more = divmod(partitions, len(names)) if names else (0, 0)
    room = {name: least + (number < more) for number, name in enumerate(names)}
    owners: dict[int, str] = {}
    for name in names:
        for partition in sorted(set(fitting[name].owned)):
            if room[name] and partition not in owners and 0 <= partition < partitions:
                owners[partition] = name
                room[name] -= 1
    free = (partition for partition in range(partitions) if partition not in owners)
    for name in names:
        for _ in range(room[name]):
            owners[next(free)] = name
    return Table(
        {partition: fitting[name].address for partition, name in sorted(owners.items())},
        {member.address: Door(name, member.secret) for name, member in fitting.items()},
        refused,
    )


def _reference(members: Mapping[str, Member]) -> dict[str, Any]:
    """The declaration that counts: of those who own most; a newcomer is the one to differ."""
    owned: dict[bytes, int] = {}
    for member in members.values():
        told = msgspec.json.encode(member.declared, order="sorted")
        owned[told] = owned.get(told, 0) + len(member.owned)
    if not owned:
        return {}
    best = max(sorted(owned), key=lambda told: owned[told])
    found: dict[str, Any] = msgspec.json.decode(best)
    return found


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """How two declarations differ, a line for each difference."""
    lines: list[str] = []
    for name in sorted({*ours, *theirs}):
        one, other = ours.get(name), theirs.get(name)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            inner = difference(one, other)
            lines += [f"{name}.{line}" for line in inner.splitlines()]
        else:
            lines.append(f"{name}: {_shown(one)} in the group, {_shown(other)} here")
    return "\n".join(lines)


def _shown(value: object) -> str:
    return "absent" if value is None else str(value)


class Directory:
    """The group as anybody may see it. For one thread."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._group = group_of(topic)

    @property
    def timeout(self) -> float:
        """How many seconds a look may take."""
        return self._cluster.timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._cluster.timeout = seconds

    def look(self) -> tuple[Table | None, list[Member]]:
        """The table, and what its members say; None while the group is being made up."""
        request = DescribeGroupsRequest([self._group])
        response = ask(self._cluster, self._group, _DESCRIBE, request, 4)
        assert isinstance(response, DescribeGroupsResponse)
        found = response.groups[0]
        if found.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            raise RequestError.of(found.error_code, f'group "{self._group}"')
        members = [
            decode_member(bytes(each.member_metadata))
            for each in found.members
            if each.member_metadata
        ]
        tables = [
            decode_table(bytes(each.member_assignment))
            for each in found.members
            if each.member_assignment
        ]
        return (tables[0] if tables else None), members

    def close(self) -> None:
        self._cluster.close()

    def expel(self, member_id: str) -> None:
        """Let a member leave that is known to be dead: nobody listens at its address."""
        identity = MemberIdentity(member_id, None, "connection refused")
        request = LeaveGroupRequest(self._group, "", [identity])
        response = ask(self._cluster, self._group, _LEAVE, request, 5)
        assert isinstance(response, LeaveGroupResponse)


def decode_member(raw: bytes) -> Member:
    member: Member = _decoded(raw, Member)
    return member


def decode_table(raw: bytes) -> Table:
    table: Table = _decoded(raw, Table)
    return table


def _decoded(raw: bytes, kind: type[Any]) -> Any:
    if len(raw) > LONGEST_TABLE:
        raise RequestError("a group's table is too long")
    try:
        return msgspec.json.decode(raw, type=kind, strict=False)
    except msgspec.MsgspecError as error:
        raise RequestError(
            "the group of an event topic is used by another program",
            detail=str(error),
            hint="its members must all be Tailrace's, of one version",
        ) from error


def ask(cluster: Cluster, group: str, api: Api, request: Message, highest: int) -> Message:
    """A request to the group's coordinator, tried again while there is none."""

    def attempt() -> Message:
        try:
            response = cluster.coordinator(group, GROUP).request(api, request, highest)
        except BrokerUnavailableError:
            cluster.forget_coordinator(group, GROUP)
            raise
        code = getattr(response, "error_code", 0)
        if isinstance(response, DescribeGroupsResponse):
            code = response.groups[0].error_code
        if code in COORDINATOR_MOVED:
            cluster.forget_coordinator(group, GROUP)
            raise TryAgain(code)
        return response

    return cluster.retry(attempt, f'asking the group "{group}"')


class Membership:
    """A member of the group, on a thread of its own."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partitions: int,
        describe: Callable[[], Member],
        on_table: Callable[[Table], None],
        on_lapse: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._group = group_of(topic)
        self._partitions = partitions
        self._describe = describe
        self._on_table = on_table
        self._on_lapse = on_lapse
        self._member_id = ""
        self._generation = -1
        self._heard_at = SYSTEM.monotonic()
        self._stopping = threading.Event()
        self._kicked = threading.Event()
        self.joined = threading.Event()
        self.failure: TailraceError | None = None
        self._thread = threading.Thread(target=self._run, name=self._group, daemon=True)

    @property
    def member_id(self) -> str:
        return self._member_id

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leave at once, so that others take over."""
        self._stopping.set()
        self._kicked.set()
        self._thread.join()

    def kick(self) -> None:
        """Join again now: what we believe of the group is wrong."""
        self._kicked.set()

    def heard(self) -> bool:
        """Whether the group has answered within a session: else it may have given our
        partitions to others, and we must not answer."""
        return SYSTEM.monotonic() - self._heard_at < SESSION_SECONDS

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and self.failure is None:
                try:
                    table = self._join()
                    if table is not None:
                        self._on_table(table)
                        self.joined.set()
                        self._beat()
                except EventsDifferError as error:
                    self.failure = error
                except ClientError as error:
                    log.warning("the group does not answer", extra={"group": self._group, "error": str(error)})  # fmt: skip
                    self._stopping.wait(0.2)
            self._leave()
        except Exception as error:
            self.failure = error if isinstance(error, TailraceError) else RequestError(str(error))
            log.exception("a member of a group ends", extra={"group": self._group})
        finally:
            self.joined.set()
            self._cluster.close()

    def _join(self) -> Table | None:
        """One round; None: it must be begun again."""
        self._kicked.clear()
        metadata = msgspec.json.encode(self._describe())
        request = JoinGroupRequest(
            self._group,
            int(SESSION_SECONDS * 1000),
            int(REBALANCE_SECONDS * 1000),
            self._member_id,
            None,
            PROTOCOL_TYPE,
            [JoinGroupRequestProtocol(PROTOCOL, metadata)],
        )
        joined = ask(self._cluster, self._group, _JOIN, request, 5)
        assert isinstance(joined, JoinGroupResponse)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return None
        if not self._goes_on(joined.error_code, "joining"):
            return None
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == self._member_id:
            members = {
                each.member_id: decode_member(bytes(each.metadata)) for each in joined.members
            }
            told = msgspec.json.encode(assign(members, self._partitions))
            assignments = [SyncGroupRequestAssignment(each, told) for each in members]
        sync = SyncGroupRequest(
            self._group,
            self._generation,
            self._member_id,
            None,
            PROTOCOL_TYPE,
            PROTOCOL,
            assignments,
        )
        asked_at = SYSTEM.monotonic()  # the session began again with the answer before
        synced = ask(self._cluster, self._group, _SYNC, sync, 5)
        assert isinstance(synced, SyncGroupResponse)
        if not self._goes_on(synced.error_code, "taking its part in"):
            return None
        self._heard_at = asked_at
        table = decode_table(bytes(synced.assignment))
        if self._member_id in table.refused:
            raise EventsDifferError(
                f"this program declares {self._group.removeprefix('tailrace.events.')!r} "
                "differently from those who own it",
                detail=table.refused[self._member_id],
                hint="deploy one declaration everywhere",
            )
        return table

    def _goes_on(self, error_code: int, doing: str) -> bool:
        """False where a round must be begun again; raises what trying again does not change."""
        match error_code:
            case ErrorCode.NONE:
                return True
            case ErrorCode.REBALANCE_IN_PROGRESS:
                return False
            case ErrorCode.ILLEGAL_GENERATION | ErrorCode.UNKNOWN_MEMBER_ID:
                # The group went on without us: others may have owned what we think is ours.
                self._on_lapse()
                if error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""
                return False
        if error_code in COORDINATOR_MOVED:
            self._cluster.forget_coordinator(self._group, GROUP)
            return False
        raise RequestError.of(
            error_code,
            f'{doing} the group "{self._group}"',
            hint="its members must all be Tailrace's",
        )

    def _beat(self) -> None:
        """Say that we live, until the group changes or we end."""
        request = HeartbeatRequest(self._group, self._generation, self._member_id)
        while not self._kicked.wait(HEARTBEAT_SECONDS):
            asked_at = SYSTEM.monotonic()
            answer = ask(self._cluster, self._group, _HEARTBEAT, request, 3)
            assert isinstance(answer, HeartbeatResponse)
            if not self._goes_on(answer.error_code, "staying in"):
                # Being asked to join again is an answer too, unless we were thrown out.
                if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                    self._heard_at = asked_at
                return
            self._heard_at = asked_at

    def _leave(self) -> None:
        if not self._member_id:
            return
        self._cluster.timeout = 1.0
        try:
            identity = MemberIdentity(self._member_id, None, "closed")
            request = LeaveGroupRequest(self._group, self._member_id, [identity])
            ask(self._cluster, self._group, _LEAVE, request, 5)
        except ClientError:
            pass  # its session ends by itself
