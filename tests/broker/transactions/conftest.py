"""A transaction coordinator without a broker."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from tailrace.broker.transactions.coordinator import (
    Identity,
    TransactionCoordinator,
    TransactionSettings,
)
from tailrace.broker.transactions.recovery import load
from tailrace.testing.fake_clock import FakeClock
from tailrace.testing.partitions import Disk, MemoryPartitions
from tailrace.wire.errors import ErrorCode

Place = tuple[str, int]


@dataclass
class Desk:
    """A coordinator, its disk, and the hands that play it."""

    flush: bool = True
    clock_trusted: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    disk: Disk = field(default_factory=Disk.empty)

    def __post_init__(self) -> None:
        self._ids = itertools.count(1000)
        self.start()

    def start(self, crash_after: int | None = None) -> None:
        """A process begins on what is on the disk."""
        self.partitions = MemoryPartitions(self.disk, crash_after)
        self.coordinator = TransactionCoordinator(
            TransactionSettings(flush=self.flush),
            self.clock,
            self.partitions,
            self.partitions,
            lambda: next(self._ids),
            may_expire=lambda: self.clock_trusted,
        )
        load(self.coordinator, self.partitions, self.partitions)

    def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.advance(1)
            self.coordinator.tick()

    def init(
        self, name: str = "tx", *, timeout_ms: int = 60_000, expected: tuple[int, int] = (-1, -1)
    ) -> Identity:
        answers: list[Identity] = []
        self.coordinator.init_producer_id(name, timeout_ms, *expected, answers.append)
        return answers[0]

    def add(self, who: Identity, *places: Place, name: str = "tx") -> ErrorCode:
        answers: list[ErrorCode] = []
        self.coordinator.add_partitions(name, who.producer_id, who.epoch, places, answers.append)
        return answers[0]

    def produce(
        self,
        who: Identity,
        place: Place,
        value: object,
        *,
        name: str = "tx",
        implicit: bool = True,
    ) -> ErrorCode:
        error = self.coordinator.check_produce(
            name, who.producer_id, who.epoch, place, implicit=implicit
        )
        if error is ErrorCode.NONE:
            self.partitions.produce(place, who.producer_id, who.epoch, value, own_epoch=implicit)
        return error

    def end(
        self, who: Identity, commit: bool = True, *, name: str = "tx", version: int = 2
    ) -> Identity:
        answers: list[Identity] = []
        self.coordinator.end(
            name, who.producer_id, who.epoch, commit, answers.append, version=version
        )
        return answers[0]

    def state(self, name: str = "tx") -> str:
        return self.coordinator.transactions[name].record.state.label

    def committed(self, place: Place) -> list[object]:
        return self.partitions.committed(place)


@pytest.fixture
def desk() -> Desk:
    return Desk()
