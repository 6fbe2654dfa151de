"""The log's partitions as transactions see them, in memory and naive.

Every write is one step; `crash_after` lets the process die after so many steps, and a
power cut drops what was not synced, file by file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tailrace.broker.journal import AppendDone, EndMarker, Entry, KeyValue
from tailrace.log.errors import InvalidProducerEpochError

TopicPartition = tuple[str, int]


class Crash(BaseException):
    """The process is gone: nothing after this line happens."""


@dataclass(frozen=True, slots=True)
class Data:
    """A transactional record."""

    producer_id: int
    epoch: int
    value: object


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction."""

    producer_id: int
    epoch: int
    commit: bool


@dataclass(slots=True)
class Disk:
    """Files that outlive the process: what was written, and how much of it was synced."""

    files: dict[object, list[object]]
    synced: dict[object, int]

    @classmethod
    def empty(cls) -> Disk:
        return cls({}, {})

    def cut_power(self, keep: Callable[[object, int, int], int]) -> None:
        """Keep of each file `keep(name, synced, written)` entries."""
        for name, entries in self.files.items():
            synced = self.synced.get(name, 0)
            del entries[max(synced, min(keep(name, synced, len(entries)), len(entries))) :]
            self.synced[name] = len(entries)


class MemoryPartitions:
    """Partitions and `__transaction_state` on one naive disk; implements both seams."""

    partitions = 1

    def __init__(self, disk: Disk, crash_after: int | None = None) -> None:
        self.disk = disk
        self.steps = 0
        self.crash_after = crash_after
        self.failing: Exception | None = None

    # the seam of the coordinator's journal

    def append(
        self,
        partition: int,
        records: Sequence[KeyValue],
        done: AppendDone,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        durable: bool = False,
    ) -> None:
        if self.failing is not None:
            done(self.failing)
            return
        base = len(self._file("state"))
        for key, value in records:
            self._write("state", (key, value))
        if durable:
            self._sync("state")
        done(base)

    def read(self, partition: int) -> Iterator[Entry | EndMarker]:
        for offset, entry in enumerate(list(self._file("state"))):
            assert isinstance(entry, tuple)
            yield Entry(offset, *entry)

    def unreadable(self, partition: int, offset: int, error: Exception) -> None:
        raise AssertionError(f"record {offset} of the state is unreadable") from error

    def doubtful_before(self, partition: int) -> int:
        return 0

    # the seam of the partitions

    def produce(
        self,
        place: TopicPartition,
        producer_id: int,
        epoch: int,
        value: object,
        *,
        own_epoch: bool = False,
    ) -> None:
        """A transactional record that the coordinator let in. Where transactions have epochs of
        their own, the first record of an epoch that was ended here before is taken for the
        repeat of a record of then, as by the log."""
        ended = False
        for entry in reversed(self._file(place) if own_epoch else []):
            if isinstance(entry, Data) and (entry.producer_id, entry.epoch) == (producer_id, epoch):
                if ended:
                    return
                break
            ended = ended or (isinstance(entry, Marker) and entry.producer_id == producer_id)
        self._write(place, Data(producer_id, epoch, value))

    def sync(
        self, wanted: Iterable[TopicPartition], done: Callable[[Exception | None], None]
    ) -> None:
        for place in sorted(wanted):
            self._sync(place)
        done(None)

    def sync_now(self, wanted: Iterable[TopicPartition]) -> None:
        for place in sorted(wanted):
            self._sync(place)

    def write_marker(
        self, place: TopicPartition, producer_id: int, epoch: int, commit: bool
    ) -> None:
        if self.failing is not None:
            raise self.failing
        if epoch < self._newest(place).get(producer_id, epoch):
            raise InvalidProducerEpochError(f"producer {producer_id} has been fenced")
        self._write(place, Marker(producer_id, epoch, commit))

    def open_transactions(self) -> Iterable[tuple[TopicPartition, int, int]]:
        for place, entries in self.disk.files.items():
            if place == "state":
                continue
            open_: dict[int, int] = {}
            for entry in entries:
                if isinstance(entry, Data):
                    open_[entry.producer_id] = entry.epoch
                elif isinstance(entry, Marker):
                    open_.pop(entry.producer_id, None)
            for producer_id, epoch in open_.items():
                yield place, producer_id, epoch  # type: ignore[misc]

    def newest_epochs(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for place in self.disk.files:
            for producer_id, epoch in self._newest(place).items():
                found[producer_id] = max(epoch, found.get(producer_id, epoch))
        return found

    def _newest(self, place: object) -> dict[int, int]:
        """The newest epoch of each producer in one partition."""
        found: dict[int, int] = {}
        for entry in self._file(place):
            if isinstance(entry, Data | Marker):
                known = found.get(entry.producer_id, entry.epoch)
                found[entry.producer_id] = max(entry.epoch, known)
        return found

    def committed(self, place: TopicPartition) -> list[object]:
        """What a reader of committed records gets: it stops at the first open transaction."""
        outcome: dict[int, bool] = {}
        found: list[object] = []
        for entry in reversed(self._file(place)):
            if isinstance(entry, Marker):
                outcome[entry.producer_id] = entry.commit
            elif isinstance(entry, Data):
                if entry.producer_id not in outcome:
                    found.clear()
                elif outcome[entry.producer_id]:
                    found.append(entry.value)
        return found[::-1]

    # pieces

    def _file(self, name: object) -> list[object]:
        return self.disk.files.setdefault(name, [])

    def _write(self, name: object, entry: object) -> None:
        self._step()
        self._file(name).append(entry)

    def _sync(self, name: object) -> None:
        self._step()
        self.disk.synced[name] = len(self._file(name))

    def _step(self) -> None:
        if self.crash_after is not None and self.steps >= self.crash_after:
            raise Crash
        self.steps += 1
