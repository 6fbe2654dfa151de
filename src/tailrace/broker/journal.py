"""What a coordinator needs of its internal topic: append records, read them back.

The state of a group or a transactional id lives in one partition of the topic, chosen
by the name's hash as Java computes it, so that Kafka's own tools find it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

KeyValue = tuple[bytes, bytes | None]
AppendDone = Callable[[int | Exception], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One record read back. `producer_id` is -1 outside a transaction."""

    offset: int
    key: bytes
    value: bytes | None
    producer_id: int = -1


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The end of the transaction that `producer_id` had open in this partition."""

    producer_id: int
    commit: bool


class Journal(Protocol):
    """An internal topic as its coordinator sees it."""

    @property
    def partitions(self) -> int:
        """How many partitions the topic has (or will have when it is created)."""

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
        """Append all records in one batch; `done` gets the first one's offset or the error.

        With a producer id the batch belongs to that producer's open transaction. `done`
        may be called before this returns, and calls come in the order of the appends.
        """

    def read(self, partition: int) -> Iterator[Entry | EndMarker]:
        """Everything in the partition that can be read, oldest first."""

    def unreadable(self, partition: int, offset: int, error: Exception) -> None:
        """Take note of a record that makes no sense and is passed over."""

    def doubtful_before(self, partition: int) -> int:
        """The offset behind the last damaged range that `read` came across; 0 if none. What
        is known only from before it may have been overtaken by what is lost."""


def java_hash(text: str) -> int:
    """`text.hashCode()` of Java: over UTF-16 code units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


def partition_of(name: str, partitions: int) -> int:
    """The partition that keeps the state of `name`."""
    value = java_hash(name)
    return (0 if value == -0x80000000 else abs(value)) % partitions
