"""Where records go that a share group gave up, if it has named a topic for them.

The copy keeps key, value, headers and time, and says in headers where it comes from and
why it is here. A record leaves its group only when its copy is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tailrace.broker.shares.partition import Gone
from tailrace.errors import TailraceError
from tailrace.records.decode import Record, decode_records
from tailrace.records.encode import encode_batch
from tailrace.records.header import iterate_batches
from tailrace.records.partitioner import partition_for

if TYPE_CHECKING:
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition

log = logging.getLogger(__name__)

SETTING = "errors.deadletterqueue.topic.name"


def bury(
    broker: Broker,
    name: str,
    key: tuple[str, bytes, int],
    gone: Sequence[Gone],
    settled: Callable[[Gone, bool], None],
) -> None:
    """Copy the records to the dead-letter topic `name`, which is made if need be.

    Every record is `settled`, at once or when its copy is on disk: True if the copy is
    written or there is nothing left to copy, False if it could not be written.
    """
    group, topic_id, index = key
    source = broker.partition_by_id(topic_id, index)
    for each in gone:
        told = partial(_told, settled, each, name)
        if not name or source is None:
            settled(each, True)
            continue
        try:
            if name not in broker.store.topics:
                broker.auto_create(name)
            target = broker.store.topics[name]
            record = _find(source, each.offset)
            if record is None:
                settled(each, True)  # retention was faster
                continue
            number = 0
            if record.key is not None:
                number = partition_for(record.key, len(target.partitions))
            copy = record._replace(headers=(*record.headers, *_reasons(group, source, each)))
            broker.append(target.partitions[number], encode_batch([copy]), told)
        except TailraceError as error:
            told(error)


def _reasons(group: str, source: Partition, gone: Gone) -> tuple[tuple[str, bytes], ...]:
    return (
        ("tailrace.dead.reason", gone.reason.encode()),
        ("tailrace.dead.group", group.encode()),
        ("tailrace.dead.topic", source.topic.encode()),
        ("tailrace.dead.partition", str(source.index).encode()),
        ("tailrace.dead.offset", str(gone.offset).encode()),
        ("tailrace.dead.deliveries", str(gone.delivery_count).encode()),
    )


def _find(source: Partition, offset: int) -> Record | None:
    with source.read(offset, 1, source.end_offset) as part:
        data = part.read()
    for position, header in iterate_batches(data):
        if header.control or header.last_offset < offset:
            continue
        for record in decode_records(data, position):
            if record.offset == offset:
                return record
    return None


def _told(settled: Callable[[Gone, bool], None], each: Gone, name: str, result: object) -> None:
    if isinstance(result, Exception):
        reason = result.message if isinstance(result, TailraceError) else str(result)
        extra = {"topic": name, "offset": each.offset, "error": reason}
        log.error("dead letter was not written, it is tried again", extra=extra)
    settled(each, not isinstance(result, Exception))
