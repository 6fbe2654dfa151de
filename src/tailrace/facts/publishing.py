"""Events and the states they make, in one transaction: `publish=True`.

The topic `<name>.state` is compacted and has a partition for each of the event topic:

    key      the stream
    value    its state as JSON; none where `evolve` gives None: the stream has no row any more
    header   tailrace.version, the version of the stream that has this state

Every transaction also stores, under the group `tailrace.events.<name>.states`, up to which offset
of the events the states are published. So a new owner knows what is missing, and writes it before
it decides anything: the states of a topic that published none so far, or for a while.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError, ProducerFencedError
from tailrace.client.offsets import stored_offsets
from tailrace.facts.errors import (
    EventsError,
    EventsTooLargeError,
    OutcomeUnknownError,
    PartitionLostError,
)
from tailrace.facts.event_types import encode_json
from tailrace.facts.failpoints import reached
from tailrace.facts.records import Stored
from tailrace.facts.writing import PartitionWriter
from tailrace.records.event_headers import EVENT, META, STATE_TOPIC, VERSION

if TYPE_CHECKING:
    from typing import Any

    from tailrace.client.log import Log
    from tailrace.client.sender import Place
    from tailrace.facts.deciding import DecidedBatch
    from tailrace.facts.partition import Partition

MOST_BYTES = 850_000
"""Of one batch of events: the writer must not cut it in two."""
BACKFILL_STREAMS = 1_000
MOST_BESIDE_BYTES = 1_024
"""What a record has beside its value: its key, a header, lengths."""


def states_group(topic: str) -> str:
    """Where it is stored how far the states of an event topic are published."""
    return f"tailrace.events.{topic}.states"


class PublishingWriter(PartitionWriter):
    """Writes events and states. A batch waits here until `receive`, which is one transaction."""

    marker_records = 1  # the end of a transaction

    def __init__(self, log: Log, topic: str, partition: int, timeout: float) -> None:
        super().__init__(log, topic, partition, timeout)
        self._waiting: deque[DecidedBatch] = deque()
        self._written: list[tuple[int, int]] = []
        self._writer.on_written = self._note
        self._events = (topic, partition)
        self._states = f"{topic}{STATE_TOPIC}"

    def _note(self, place: Place, base: int, count: int) -> None:
        if place == self._events:
            self._written.append((base, count))

    def fence(self) -> int:
        self._waiting.clear()
        end = super().fence()
        entry = Admin.over(self._cluster).topic_config(self._states).get("max.message.bytes")
        limit = int(entry.value) if entry is not None and entry.value else MOST_BYTES
        self.most_bytes = min(self.most_bytes, limit, MOST_BYTES)
        return end

    def put(self, batch: DecidedBatch) -> None:
        self._waiting.append(batch)

    def receive(self) -> int:
        """One transaction: the oldest batch, the states after it, and how far they go."""
        batch = self._waiting[0]
        self._written.clear()
        try:
            for key, stored in batch.stored:
                self._send_event(key, stored)
            self._writer.flush()
            if len(self._written) != 1:
                raise EventsError("the topic takes smaller batches now")
            base, count = self._written[0]
            for key, value in batch.states.items():
                self._send_state(key, batch.known[key].version, value, batch.timestamp)
            self._writer.send_offsets(states_group(self.topic), {self._events: base + count})
            reached("events.published")
            self._writer.commit()
        except ProducerFencedError as error:
            raise PartitionLostError(
                f"another owner has taken over {self.topic}/{self.partition}"
            ) from error
        except ClientError as error:
            # What became of it is seen when the partition is taken over again: that ends it.
            raise OutcomeUnknownError(
                f"what became of a batch for {self.topic}/{self.partition} is not known",
                detail=str(error),
            ) from error
        self._waiting.popleft()
        return base

    def _send_event(self, key: bytes, stored: Stored) -> None:
        headers = (
            (EVENT, stored.kind.encode()),
            (VERSION, b"%d" % stored.version),
            (META, stored.meta),
        )
        topic, partition = self._events
        self._writer.send(topic, partition, key, stored.value, headers, stored.timestamp)

    def _send_state(self, key: bytes, version: int, value: bytes | None, timestamp: int) -> None:
        headers = ((VERSION, b"%d" % version),)
        self._writer.send(self._states, self.partition, key, value, headers, timestamp)

    # What is missing -----------------------------------------------------------

    def publish_missing(self, partition: Partition[Any]) -> int:
        """Write the states of streams that changed while nobody published; how many. What was
        erased took the states with it that had come of it: they are written each time."""
        group = states_group(self.topic)
        covered = stored_offsets(self._cluster, group, [self._events])[self._events] or 0
        end = partition.index.stamp.next
        timestamp = partition.index.stamp.timestamp
        written = 0
        erased = partition.streams_erased()
        try:
            for stream, entry in partition.index.streams():
                if entry.offset < covered and stream not in erased:
                    continue
                key = stream.encode()
                try:
                    now = partition.lookup(key)
                except EventsError:
                    continue  # a stream without a state: told when it is asked for
                value = None if now.state is None else encode_json(now.state)
                if value is not None and len(value) > self.most_bytes - MOST_BESIDE_BYTES:
                    raise EventsTooLargeError(
                        f"the state of {stream!r} takes {len(value):,} bytes",
                        detail=f"{self._states!r} takes {self.most_bytes:,}",
                        hint="leave publish=True out, or make the states smaller",
                    )
                self._send_state(key, now.version, value, timestamp)
                written += 1
                if written % BACKFILL_STREAMS == 0:
                    self._writer.commit()
            if covered < end or written:
                self._writer.send_offsets(group, {self._events: max(covered, end)})
                self._writer.commit()
        except ProducerFencedError as error:
            raise PartitionLostError(
                f"another owner has taken over {self.topic}/{self.partition}"
            ) from error
        return written
