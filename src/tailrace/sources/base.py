"""The contract between a source and the log.

A source writes *log transactions*. Each holds whole source transactions (or pieces of a
copy) and ends with a cut: a record in `<source>.transactions` that names the position
reached and the next offset of every partition the log transaction touched. The cut is
the resume point too, so a restart reads the last one and neither loses nor repeats.

    start:   init (fences an older process)  →  read the last cut  →  read on from there
    always:  rows … flush → cut → commit     →  only then may the source forget them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

COPIES_TOPIC = "__tailrace_sources"
# A row may be large: as much as a request to a log may be, unless that is set higher.
LARGEST_BYTES = 100 << 20

Key = bytes | None
Value = bytes | None
Headers = tuple[tuple[str, bytes | None], ...]


class BytesColumn(Protocol):
    """An Arrow array of bytes."""

    def __len__(self) -> int: ...

    def to_pylist(self) -> list[bytes | None]: ...


Keys = Sequence[Key] | BytesColumn | None
Values = Sequence[Value] | BytesColumn


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A committed record, as a source reads it back."""

    offset: int
    key: bytes | None
    value: bytes | None


class SourceLog(Protocol):
    """What a source needs of the log: one transactional writer, and reading back."""

    def init(self) -> None:
        """Fence any older writer of this source and end what it left open."""

    def ensure_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> int:
        """Create the topic unless it exists; return its number of partitions."""

    def send(
        self, topic: str, partition: int, keys: Keys, values: Values,
        timestamp_ms: int, headers: Sequence[Headers] | None = None,
    ) -> None:  # fmt: skip
        """Add records to the open log transaction, in order; `keys` None: all without."""

    def hand_over(self) -> None:
        """Have what was added written while the caller goes on. At most one such piece is
        on its way: the next call waits for it, so memory stays bounded. An error comes
        out of a later call."""

    def flush(self) -> Mapping[tuple[str, int], int]:
        """Wait until all sends are acknowledged; next offset of each partition sent to in
        this log transaction."""

    def commit(self) -> None:
        """Commit the log transaction; returns once it is decided."""

    def abort(self) -> None:
        """Give up the open log transaction."""

    def read(
        self, topic: str, partition: int, start: int = 0, end: int | None = None
    ) -> Iterator[LogRecord]:
        """Committed records from `start` to `end`, or to the end there is now; none for an
        unknown topic. Waits for an `end` that is not readable yet."""

    def last(self, topic: str) -> LogRecord | None:
        """The last committed record of partition 0."""

    def end(self, topic: str, partition: int) -> int:
        """Where the next committed record would be read."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Part:
    """How far into a transaction larger than one log transaction the log has got."""

    commit: int
    messages: int
    events: int


@dataclass(frozen=True, slots=True)
class Resume:
    """What the log says about where a source stopped; `position` None at the first start."""

    epoch: int
    position: int | None
    part: Part | None = None
    copies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # What the last cut says beside that: where the source's own history stood.
    place: Mapping[str, Any] = field(default_factory=dict)
