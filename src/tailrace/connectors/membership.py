"""A worker's membership of the group of workers, on a thread of its own.

A classic group of protocol type `connect`. What a member says of itself, and the table that the
leader makes, are JSON. Joining stops nothing: what a worker runs, it runs on during a rebalance,
and stops only what the new table takes from it (`assignment`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tailrace.client.cluster import COORDINATOR_MOVED, GROUP, Cluster, TryAgain
from tailrace.client.errors import BrokerUnavailableError, ClientError, RequestError
from tailrace.clock import SYSTEM
from tailrace.connectors.assignment import assign
from tailrace.connectors.configured import Unit
from tailrace.errors import TailraceError
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tailrace.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tailrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tailrace.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "connect"
PROTOCOL = "tailrace-1"
LEAVE_SECONDS = 3.0
_JOIN, _SYNC = APIS[ApiKey.JOIN_GROUP], APIS[ApiKey.SYNC_GROUP]
_HEARTBEAT, _LEAVE = APIS[ApiKey.HEARTBEAT], APIS[ApiKey.LEAVE_GROUP]


class Worker(msgspec.Struct, frozen=True):
    """What a worker says of itself. `secret` is what others must show it to give it orders."""

    url: str
    secret: str
    offset: int
    owned: list[tuple[str, int]] = []


class Table(msgspec.Struct, frozen=True):
    """Who leads, who runs what, and which settings that was decided on."""

    leader: str
    offset: int
    workers: dict[str, Worker]

    def units(self, member: str) -> set[Unit]:
        found = self.workers.get(member)
        return set() if found is None else set(found.owned)

    def runs(self, unit: Unit) -> Worker | None:
        return next((one for one in self.workers.values() if unit in one.owned), None)


Describe = Callable[[], Worker]
Decide = Callable[[int], Iterable[Unit]]
"""Everything that has to run, by settings no older than an offset."""


class Membership:
    """See the module. `on_table(generation, member, table)` and `on_lapse()` are called on its thread."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        *,
        session_seconds: float,
        rebalance_seconds: float,
        heartbeat_seconds: float,
        describe: Describe,
        decide: Decide,
        on_table: Callable[[int, str, Table], None],
        on_lapse: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._group = group
        self.session_seconds = session_seconds
        self._rebalance_seconds = rebalance_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._describe = describe
        self._decide = decide
        self._on_table = on_table
        self._on_lapse = on_lapse
        self._member = ""
        self._generation = -1
        self._heard_at = SYSTEM.monotonic()
        self._stopping = threading.Event()
        self._kicked = threading.Event()
        self.failure: TailraceError | None = None
        self._thread = threading.Thread(target=self._run, name=f"group {group}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leave at once, so that others take over."""
        self._stopping.set()
        self._kicked.set()
        if self._thread.is_alive():
            self._thread.join(LEAVE_SECONDS)
        if self._thread.is_alive():
            # It waits for a round that somebody who is dead keeps from ending.
            self._cluster.close()
            self._thread.join(LEAVE_SECONDS)

    def kick(self) -> None:
        """Join again: something else has to run, or we have stopped what others may start."""
        self._kicked.set()

    @property
    def silent_seconds(self) -> float:
        """Since when the group has not answered. After a session others run what we run."""
        return SYSTEM.monotonic() - self._heard_at

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._join():
                    self.failure = None
                    self._beat()
            except Exception as error:
                self.failure = error if isinstance(error, TailraceError) else RequestError(str(error))  # fmt: skip
                level = logging.WARNING if isinstance(error, ClientError) else logging.ERROR
                log.log(level, "the group of workers does not answer", extra={"group": self._group, "error": str(error)})  # fmt: skip
                self._stopping.wait(0.5)
        self._leave()
        self._cluster.close()

    def _join(self) -> bool:
        """One round; False: it must be begun again."""
        self._kicked.clear()
        metadata = msgspec.json.encode(self._describe())
        request = JoinGroupRequest(
            self._group,
            int(self.session_seconds * 1000),
            int(self._rebalance_seconds * 1000),
            self._member,
            None,
            PROTOCOL_TYPE,
            [JoinGroupRequestProtocol(PROTOCOL, metadata)],
        )
        joined = self._ask(_JOIN, request, 5)
        assert isinstance(joined, JoinGroupResponse)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member = joined.member_id
            return False
        if not self._goes_on(joined.error_code, "joining"):
            return False
        self._member, self._generation = joined.member_id, joined.generation_id
        told: list[SyncGroupRequestAssignment] = []
        if joined.leader == self._member:
            members = {
                each.member_id: msgspec.json.decode(bytes(each.metadata), type=Worker)
                for each in joined.members
            }
            newest = max(each.offset for each in members.values())
            given = assign(self._decide(newest), {m: w.owned for m, w in members.items()})
            workers = {
                member: msgspec.structs.replace(worker, owned=sorted(given[member]))
                for member, worker in members.items()
            }
            table = msgspec.json.encode(Table(self._member, newest, workers))
            told = [SyncGroupRequestAssignment(each, table) for each in members]
        sync = SyncGroupRequest(self._group, self._generation, self._member, None, PROTOCOL_TYPE, PROTOCOL, told)  # fmt: skip
        asked_at = SYSTEM.monotonic()
        synced = self._ask(_SYNC, sync, 5)
        assert isinstance(synced, SyncGroupResponse)
        if not self._goes_on(synced.error_code, "taking its part in"):
            return False
        self._heard_at = asked_at
        found = msgspec.json.decode(bytes(synced.assignment), type=Table)
        self._on_table(self._generation, self._member, found)
        return True

    def _goes_on(self, error_code: int, doing: str) -> bool:
        """False where a round must be begun again; raises what trying again does not change."""
        match error_code:
            case ErrorCode.NONE:
                return True
            case ErrorCode.REBALANCE_IN_PROGRESS:
                return False
            case ErrorCode.ILLEGAL_GENERATION | ErrorCode.UNKNOWN_MEMBER_ID:
                # The group went on without us: others run what we think is ours.
                self._on_lapse()
                if error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member = ""
                return False
        if error_code in COORDINATOR_MOVED:
            self._cluster.forget_coordinator(self._group, GROUP)
            return False
        raise RequestError.of(
            error_code,
            f'{doing} the group "{self._group}"',
            hint="its members must all be workers of `tailrace connect`: name another with --set group.id=…",
        )

    def _beat(self) -> None:
        """Say that we live, until the group changes or we end."""
        request = HeartbeatRequest(self._group, self._generation, self._member)
        while not self._kicked.wait(self._heartbeat_seconds):
            asked_at = SYSTEM.monotonic()
            answer = self._ask(_HEARTBEAT, request, 3)
            assert isinstance(answer, HeartbeatResponse)
            if not self._goes_on(answer.error_code, "staying in"):
                if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                    self._heard_at = asked_at
                return
            self._heard_at = asked_at

    def _leave(self) -> None:
        if not self._member:
            return
        self._cluster.timeout = 2.0
        try:
            identity = MemberIdentity(self._member, None, "closed")
            self._ask(_LEAVE, LeaveGroupRequest(self._group, self._member, [identity]), 5)
        except ClientError:
            pass  # its session ends by itself

    def _ask(self, api: Api, request: Message, highest: int) -> Message:
        def attempt() -> Message:
            try:
                response = self._cluster.coordinator(self._group, GROUP).request(
                    api, request, highest
                )
            except BrokerUnavailableError:
                self._cluster.forget_coordinator(self._group, GROUP)
                raise
            code: Any = getattr(response, "error_code", 0)
            if code in COORDINATOR_MOVED:
                self._cluster.forget_coordinator(self._group, GROUP)
                raise TryAgain(code)
            return response

        return self._cluster.retry(attempt, f'asking the group "{self._group}"')
