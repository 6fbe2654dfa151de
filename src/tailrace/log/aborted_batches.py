"""Which batches of a partition were aborted, for somebody who reads it from the front."""

from __future__ import annotations

from tailrace.records.header import BatchHeader


class AbortedBatches:
    """Which batches belong to aborted transactions, told while walking forward."""

    def __init__(self, aborted: list[list[int]]) -> None:
        self._waiting = sorted(aborted, key=lambda each: each[1], reverse=True)
        self._aborting: dict[int, int] = {}
        """Producer id → offset of the marker that aborts it."""
        self._seen: set[int] = set()
        """Producers whose transaction has had a batch on this walk."""

    def discards(self, header: BatchHeader) -> bool:
        """Whether a data batch was aborted."""
        if not header.transactional:
            return False
        self._begin(header)
        self._seen.add(header.producer_id)
        return self._aborting.get(header.producer_id, -1) > header.last_offset

    def end(self, header: BatchHeader) -> bool:
        """Pass a marker; whether it says nothing about any batch seen on this walk."""
        self._begin(header)
        self._aborting.pop(header.producer_id, None)
        seen = header.producer_id in self._seen
        self._seen.discard(header.producer_id)
        return not seen

    def _begin(self, header: BatchHeader) -> None:
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            producer_id, _, marker = self._waiting.pop()
            if marker >= header.base_offset:
                self._aborting[producer_id] = marker
