"""Who decides for a partition, as a caller sees it; and the owners of a log in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import lmdb

from tailrace.facts.asking import Answer, Ask, Fact, StateAt, deliver
from tailrace.facts.declare import Events
from tailrace.facts.errors import OwnerMissingError
from tailrace.facts.owner import PartitionOwner
from tailrace.facts.partition import Partition
from tailrace.facts.publishing import PublishingWriter
from tailrace.facts.query import Query
from tailrace.facts.questions import When, events, read, state
from tailrace.facts.reading import EventReader
from tailrace.facts.records import Stored
from tailrace.facts.writing import PartitionWriter

if TYPE_CHECKING:
    from tailrace.client.log import Log

T = TypeVar("T")
LOOK_SECONDS = 0.02
__all__ = ["Answer", "Fact", "LocalOwners", "Owners", "make_owner"]


class Owners(Protocol):
    """Where decisions and questions of each partition go."""

    def ask(self, partition: int, ask: Ask) -> None:
        """Have it decided; the channel of `ask` gets the answer, or OwnerMissingError when
        there is nobody in time."""

    def state(self, partition: int, stream: str, when: When) -> StateAt[Any]: ...

    def events(self, partition: int, stream: str, first: int, last: int | None) -> list[Stored]: ...

    def read(self, partition: int, query: Query) -> tuple[list[Stored], int]: ...

    def begin_again(self) -> None:
        """Have every owner here forget its states and read again."""

    def addresses(self) -> dict[int, str]:
        """Where the owner of each partition listens; partitions without one are left out."""

    def owned(self) -> list[Partition[Any]]:
        """The partitions this process owns and serves."""

    def sure(self, partition: Partition[Any]) -> bool:
        """Whether it still is so: the group has answered within a session."""
        ...

    def working(self) -> list[PartitionOwner]:
        """The owners in this process."""

    def close(self) -> None: ...


def make_owner(
    declared: Events[Any],
    number: int,
    log: Log,
    reader: EventReader,
    root: Path,
    topic_id: str,
    timeout: float,
) -> tuple[Partition[Any], PartitionWriter]:
    """What an owner of a partition needs."""
    partition = Partition(declared, number, reader, root, topic_id, log.clock)
    kind = PublishingWriter if declared.publish else PartitionWriter
    return partition, kind(log, declared.name, number, timeout)


class LocalOwners:
    """All partitions, in a log that only this process has open: no group, the same fence."""

    def __init__(
        self,
        declared: Events[Any],
        log: Log,
        reader: EventReader,
        root: Path,
        topic_id: str,
        timeout: float,
    ) -> None:
        self._owners: dict[int, PartitionOwner] = {}
        self._declared = declared
        self._clock, self._timeout = log.clock, timeout
        try:
            for number in range(declared.partitions):
                partition, writer = make_owner(
                    declared, number, log, reader, root, topic_id, timeout
                )
                owner = PartitionOwner(partition, writer, log.clock, self._lost)
                self._owners[number] = owner
                owner.start()
            for owner in self._owners.values():
                owner.ready.wait()
                if owner.trouble is not None:
                    raise owner.trouble
        except BaseException:
            self.close()
            raise

    def _lost(self, owner: PartitionOwner, left: list[Ask]) -> None:
        error = self._missing(owner.number)
        deliver([(ask, error) for ask in left])

    def _missing(self, number: int) -> OwnerMissingError:
        return OwnerMissingError(
            f"this program does not own {self._declared.name}/{number} any more",
            detail="it opened the topic a second time, and the second one has taken over",
            hint="open a topic once in a process and share what `open` returns",
        )

    def ask(self, partition: int, ask: Ask) -> None:
        owner = self._owners[partition]
        if owner.lost:
            deliver([(ask, self._missing(partition))])
        else:
            owner.ask(ask)

    def _looked(self, number: int, look: Callable[[Partition[Any]], T]) -> T:
        """An answer from the owner; waited for while it begins again."""
        owner = self._owners[number]
        until = 0.0
        while True:
            if owner.lost:
                raise self._missing(number)
            if owner.serving:
                try:
                    return owner.partition.looked(look)
                except lmdb.Error:
                    pass  # its index was given up, and is read again
            until = until or self._clock.monotonic() + self._timeout
            if self._clock.monotonic() > until:
                raise owner.trouble or self._missing(number)
            self._clock.sleep(LOOK_SECONDS)

    def state(self, partition: int, stream: str, when: When) -> StateAt[Any]:
        return self._looked(partition, lambda own: state(own, stream, when))

    def events(self, partition: int, stream: str, first: int, last: int | None) -> list[Stored]:
        return self._looked(partition, lambda own: events(own, stream, first, last))

    def read(self, partition: int, query: Query) -> tuple[list[Stored], int]:
        return self._looked(partition, lambda own: read(own, query))

    def begin_again(self) -> None:
        for owner in self._owners.values():
            owner.begin_again()

    def addresses(self) -> dict[int, str]:
        return {number: "in-process" for number, owner in self._owners.items() if not owner.lost}

    def owned(self) -> list[Partition[Any]]:
        return [owner.partition for owner in self._owners.values() if owner.serving]

    def sure(self, partition: Partition[Any]) -> bool:
        return any(each is partition for each in self.owned())

    def working(self) -> list[PartitionOwner]:
        return list(self._owners.values())

    def close(self) -> None:
        for owner in self._owners.values():
            deliver([(ask, self._missing(owner.number)) for ask in owner.stop()])
