"""A coordinator's internal topic in memory, that can fail and hold appends back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.broker.journal import AppendDone, EndMarker, Entry, KeyValue


class MemoryJournal:
    """Keeps records in lists. `failing` makes appends fail; `held` delays their callbacks
    until `release`, as a flush to disk does."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.records: list[list[Entry | EndMarker]] = [[] for _ in range(partitions)]
        self.failing: Exception | None = None
        self.held = False
        self._waiting: list[tuple[AppendDone, int]] = []
        self.damaged: dict[int, int] = {}
        """By partition: the offset behind a range that is taken for damaged."""
        self.passed_over: list[tuple[int, int]] = []

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
        log = self.records[partition]
        base = len(log)
        for index, (key, value) in enumerate(records):
            log.append(Entry(base + index, key, value, producer_id))
        if self.held:
            self._waiting.append((done, base))
        else:
            done(base)

    def end_transaction(self, partition: int, producer_id: int, commit: bool) -> None:
        """Write a marker."""
        self.records[partition].append(EndMarker(producer_id, commit))

    def release(self) -> None:
        """Let every append held back come through, in order."""
        waiting, self._waiting = self._waiting, []
        for done, base in waiting:
            done(base)

    def read(self, partition: int) -> Iterator[Entry | EndMarker]:
        yield from list(self.records[partition])

    def unreadable(self, partition: int, offset: int, error: Exception) -> None:
        self.passed_over.append((partition, offset))

    def doubtful_before(self, partition: int) -> int:
        return self.damaged.get(partition, 0)
