"""An internal topic as a coordinator's journal: `__consumer_offsets`, `__transaction_state`.

The topic is created when it is first written to. Its partitions are ordinary ones, so
consumers and Kafka's tools can read them.

Reading back never fails: a damaged range and a record that makes no sense are logged with
their place, counted and passed over. The coordinators ask `doubtful_before` where the loss of
a damaged range matters.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tailrace.broker.journal import AppendDone, EndMarker, Entry, KeyValue
from tailrace.errors import TailraceError
from tailrace.log.reading import read_checked
from tailrace.records.decode import decode_raw
from tailrace.records.encode import encode_columns
from tailrace.records.errors import RecordsError
from tailrace.records.header import BatchHeader, iterate_batches
from tailrace.records.markers import decode_marker

if TYPE_CHECKING:
    from tailrace.broker.services import Services
    from tailrace.log.partition import Appended, Partition

log = logging.getLogger(__name__)

READ_BYTES = 1 << 20
# A topic full of nonsense must not fill the broker's own log.
TOLD_LIMIT = 100


class InternalTopic:
    """One internal topic of a running broker."""

    def __init__(
        self, broker: Services, name: str, partitions: int, config: dict[str, str]
    ) -> None:
        self.name = name
        self._broker = broker
        self._partitions = partitions
        self._config = config
        self._behind_damage: dict[int, int] = {}

    @property
    def partitions(self) -> int:
        topic = self._broker.store.topics.get(self.name)
        return self._partitions if topic is None else len(topic.partitions)

    def create(self) -> None:
        """Create the topic if it is not there."""
        if self.name not in self._broker.store.topics:
            self._broker.create_internal_topic(self.name, self._partitions, self._config)

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
        try:
            self.create()
            target = self._broker.store.partition(self.name, partition)
            batch = encode_columns(
                [key for key, _ in records],
                [value for _, value in records],
                self._broker.clock.wall_ms(),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transactional=producer_id >= 0,
            )
        except Exception as error:
            done(error)
            return

        def appended(result: Appended | Exception) -> None:
            done(result if isinstance(result, Exception) else result.base_offset)

        self._broker.append(target, batch, appended, durable=durable)

    def read(self, partition: int) -> Iterator[Entry | EndMarker]:
        if self.name not in self._broker.store.topics:
            return
        source = self._broker.store.partition(self.name, partition)
        offset = source.log_start_offset
        while offset < source.end_offset:
            try:
                data = read_checked(source, offset, READ_BYTES, source.end_offset)
            except TailraceError as error:
                behind = _behind_damage(source, offset)
                self._behind_damage[partition] = behind
                log.error(
                    "internal topic is damaged",
                    extra={
                        "topic": self.name,
                        "partition": partition,
                        "offset": offset,
                        "last_offset": behind - 1,
                        "error": error.message,
                        "hint": error.hint,
                    },
                )
                offset = behind
                continue
            following = offset
            for position, header in iterate_batches(data):
                following = header.last_offset + 1
                yield from self._batch(partition, data, position, header, offset)
            if following <= offset:
                return  # nothing whole is left to read
            offset = following

    def _batch(
        self, partition: int, data: bytes, position: int, header: BatchHeader, offset: int
    ) -> Iterator[Entry | EndMarker]:
        try:
            if header.control:
                marker = decode_marker(data, position)
                if marker is not None:
                    yield EndMarker(header.producer_id, marker.commit)
                return
            producer_id = header.producer_id if header.transactional else -1
            for record in decode_raw(data, position):
                if record.offset >= offset and record.key is not None:
                    yield Entry(record.offset, record.key, record.value, producer_id)
        except RecordsError as error:
            self.unreadable(partition, header.base_offset, error)

    def unreadable(self, partition: int, offset: int, error: Exception) -> None:
        counts = self._broker.unreadable_records
        counts[self.name] += 1
        if counts[self.name] <= TOLD_LIMIT:
            log.error(
                "record of an internal topic is unreadable",
                extra={
                    "topic": self.name,
                    "partition": partition,
                    "offset": offset,
                    "error": str(error) or type(error).__name__,
                },
            )

    def doubtful_before(self, partition: int) -> int:
        return self._behind_damage.get(partition, 0)


def _behind_damage(partition: Partition, offset: int) -> int:
    """The offset to read on at when `offset` cannot be read; always a later one."""
    for damage in partition.damaged:
        if damage.base_offset <= offset <= damage.last_offset:
            return damage.last_offset + 1
    # The disk refuses, or nothing says how far it goes: the next segment is another file.
    place = bisect_right(partition.bases, offset)
    return partition.bases[place] if place < len(partition.bases) else partition.end_offset
