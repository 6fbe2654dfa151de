"""A coordinator without a broker: memory for the log, a clock moved by hand."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from tailrace.broker.groups.coordinator import GroupCoordinator, GroupSettings
from tailrace.broker.groups.group import JoinAnswer, SyncAnswer, TopicPartition
from tailrace.broker.groups.membership import Join, MembershipSettings, Sync
from tailrace.broker.groups.offsets import Commit, NewOffset, OffsetSettings
from tailrace.testing.fake_clock import FakeClock
from tailrace.testing.journal import MemoryJournal
from tailrace.wire.errors import ErrorCode


@dataclass
class Table:
    """A coordinator and the hands that play it."""

    delay_ms: int = 0
    max_size: int = 1000
    clock_trusted: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    journal: MemoryJournal = field(default_factory=MemoryJournal)

    def __post_init__(self) -> None:
        self._ids = itertools.count(1)
        self.restart()

    def restart(self) -> None:
        """Forget everything but the log."""
        self.groups = GroupCoordinator(
            GroupSettings(
                MembershipSettings(
                    initial_rebalance_delay_ms=self.delay_ms, max_size=self.max_size
                ),
                OffsetSettings(),
            ),
            self.clock,
            self.journal,
            new_id=lambda: str(next(self._ids)),
            may_expire=lambda: self.clock_trusted,
        )

    def pass_time(self, seconds: float, step: float = 0.5) -> None:
        while seconds > 0:
            self.clock.advance(min(step, seconds))
            seconds -= step
            self.groups.tick()

    def join(
        self,
        member: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"sub"),),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        id_required: bool = False,
        can_skip: bool = True,
    ) -> list[JoinAnswer]:
        """The list gets the answer when it comes."""
        answers: list[JoinAnswer] = []
        self.groups.join(
            Join(
                group,
                member,
                instance,
                "client",
                "/127.0.0.1",
                session_ms,
                rebalance_ms,
                protocol_type,
                protocols,
                id_required,
                can_skip,
            ),
            answers.append,
        )
        return answers

    def sync(
        self,
        member: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
    ) -> list[SyncAnswer]:
        answers: list[SyncAnswer] = []
        self.groups.sync(
            Sync(
                group,
                member,
                instance,
                generation,
                None,
                None,
                tuple((assignments or {}).items()),
            ),
            answers.append,
        )
        return answers

    def heartbeat(
        self, member: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        return self.groups.heartbeat(group, member, instance, generation)

    def commit(
        self,
        offset: int,
        *,
        group: str = "g",
        topic: str = "t",
        partition: int = 0,
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        producer_id: int = -1,
        metadata: str = "",
    ) -> ErrorCode:
        answers: list[dict[TopicPartition, ErrorCode]] = []
        self.groups.commit(
            Commit(
                group,
                (NewOffset(topic, partition, offset, metadata=metadata),),
                member,
                instance,
                generation,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
            ),
            answers.append,
        )
        return answers[0][topic, partition]

    def committed(
        self, *, group: str = "g", topic: str = "t", partition: int = 0, stable: bool = False
    ) -> int | ErrorCode:
        key = (topic, partition)
        error, found = self.groups.fetch(group, [key], stable)[key]
        return found.offset if error is ErrorCode.NONE else error

    def stable_group(self, size: int = 2, **given: object) -> list[str]:
        """A group of `size` members in generation 1 … `size`, all synced; the leader first."""
        first = self.join(**given)  # type: ignore[arg-type]
        self.pass_time(self.delay_ms / 1000 + 0.1, 0.1)
        members = [first[0].member_id]
        self.sync(members[0], first[0].generation, {members[0]: b"all"})
        for _ in range(size - 1):
            newcomer = self.join(**given)  # type: ignore[arg-type]
            again = [self.join(one, **given) for one in members]  # type: ignore[arg-type]
            members.append(newcomer[0].member_id)
            generation = again[0][0].generation
            shares = {one: one.encode() for one in members}
            for one in reversed(members):
                self.sync(one, generation, shares if one == members[0] else None)
        return members


@pytest.fixture
def table() -> Table:
    return Table()
