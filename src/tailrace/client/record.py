"""What readers get, and what writers are told."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from tailrace.clock import to_datetime
from tailrace.records.batch import Headers

Place = tuple[str, int]  # topic and partition


class LogRecord(NamedTuple):
    """One record, and where it stands. `timestamp` is in milliseconds since 1970; `key`
    and `value` are bytes or None, or what the reader's deserializers made of them."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: Headers = ()

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def time(self) -> datetime:
        return to_datetime(self.timestamp)

    def header(self, name: str) -> bytes | None:
        """The last header of this name; None if there is none."""
        return next((value for key, value in reversed(self.headers) if key == name), None)


class Delivery(tuple[int, int]):
    """Where a record was written: `partition, offset = future.result()`; also `topic` and
    `timestamp` (milliseconds; −1 where the log was not told one)."""

    topic: str
    timestamp: int

    def __new__(cls, topic: str, partition: int, offset: int, timestamp: int = -1) -> Delivery:
        made = super().__new__(cls, (partition, offset))
        made.topic = topic
        made.timestamp = timestamp
        return made

    @property
    def partition(self) -> int:
        return self[0]

    @property
    def offset(self) -> int:
        return self[1]

    def __repr__(self) -> str:
        return (
            f"Delivery(topic={self.topic!r}, partition={self[0]}, offset={self[1]}, "
            f"timestamp={self.timestamp})"
        )
