"""Reading much, exactly and fast: ranges of partitions as Arrow columns.

A range is finished when the position reaches its end, never by counting. No group, no
thread: what one call asks for is what one request brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.client.committed import unreadable, visible_batches
from tailrace.client.errors import RequestTimeoutError
from tailrace.client.fetcher import Fetcher
from tailrace.clock import SYSTEM, Clock
from tailrace.records.decode_columns import RecordColumns, decode_columns
from tailrace.records.errors import RecordsError
from tailrace.records.header import BatchHeader, Buffer

FETCH_BYTES = 8 * 1024 * 1024


class ColumnFetcher:
    """Reads ranges of single partitions. Owns connections: close it. One thread only."""

    def __init__(self, bootstrap: str, *, timeout: float = 60.0, clock: Clock = SYSTEM) -> None:
        self.fetcher = Fetcher(bootstrap, fetch_bytes=FETCH_BYTES, timeout=timeout, clock=clock)
        self._clock = clock

    def close(self) -> None:
        self.fetcher.close()

    def read(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        isolation: str = "read_committed",
        patience: float = 60.0,
    ) -> Iterator[RecordColumns]:
        """The records with start ≤ offset < end, in pieces of a few megabytes.

        A range may end where nothing is committed yet: it is waited for, `patience`
        seconds without progress at most (RequestTimeoutError). Raises
        OffsetOutOfRangeError, UnknownTopicError.
        """
        position, moved_at = start, self._clock.monotonic()
        while position < end:
            answer = self.fetcher.ask(topic, partition, position, wait=0.2, isolation=isolation)
            batches, following = visible_batches(
                answer.buffer, position, end, answer.aborted, place=(topic, partition)
            )
            if following > position:
                moved_at = self._clock.monotonic()
            elif self._clock.monotonic() - moved_at > patience:
                raise RequestTimeoutError(
                    f"{topic}/{partition} gave no records for {patience:g} s",
                    detail=f"waiting at {position} for {end}; its stable end is {answer.end}",
                    hint="is a transaction left open? `tailrace topic describe`",
                )
            for columns in _readable(answer.buffer, batches, (topic, partition)):
                columns = columns.between(position, end)
                if len(columns):
                    yield columns
            position = following


def _readable(
    buffer: Buffer, batches: Sequence[tuple[int, BatchHeader]], place: tuple[str, int]
) -> Iterator[RecordColumns]:
    """All batches at once; if one cannot be read, those before it, and then the error."""
    if not batches:
        return
    try:
        yield decode_columns(buffer, batches)
        return
    except RecordsError:
        pass
    for each in batches:
        try:
            columns = decode_columns(buffer, [each])
        except RecordsError as error:
            raise unreadable(place, each[1], error) from error
        yield columns
