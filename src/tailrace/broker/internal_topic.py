"""An internal topic as a coordinator's journal: `__consumer_offsets`, `__transaction_state`.

The topic is created when it is first written to. Its partitions are ordinary ones, so
consumers and Kafka's tools can read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tailrace.broker.journal import AppendDone, EndMarker, Entry, KeyValue
from tailrace.records.decode import decode_raw
from tailrace.records.encode import encode_columns
from tailrace.records.header import iterate_batches
from tailrace.records.markers import decode_marker

if TYPE_CHECKING:
    from tailrace.broker.services import Services
    from tailrace.log.partition import Appended, Partition

READ_BYTES = 1 << 20


class InternalTopic:
    """One internal topic of a running broker."""

    def __init__(
        self, broker: Services, name: str, partitions: int, config: dict[str, str]
    ) -> None:
        self.name = name
        self._broker = broker
        self._partitions = partitions
        self._config = config

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
            data = _read(source, offset)
            following = offset
            for position, header in iterate_batches(data):
                following = header.last_offset + 1
                if header.control:
                    marker = decode_marker(data, position)
                    if marker is not None:
                        yield EndMarker(header.producer_id, marker.commit)
                    continue
                producer_id = header.producer_id if header.transactional else -1
                for record in decode_raw(data, position):
                    if record.offset >= offset and record.key is not None:
                        yield Entry(record.offset, record.key, record.value, producer_id)
            if following <= offset:
                return  # nothing whole is left to read
            offset = following


def _read(partition: Partition, offset: int) -> bytes:
    with partition.read(offset, READ_BYTES, partition.end_offset) as part:
        return part.read()
