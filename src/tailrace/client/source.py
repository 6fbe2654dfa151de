"""The seam under consumers and readers: partitions, positions and offsets of one log.

`kafka_source` stands on librdkafka, `local_source` on a log in this process. Both are
used by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tailrace.client.errors import ClientError
from tailrace.client.record import LogRecord, Place
from tailrace.errors import UsageError

EARLIEST, LATEST = -2, -1
Done = Callable[[ClientError | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Kafka's consumer settings, under Kafka's names and with its meanings.

    Differences: `auto_offset_reset` is "earliest" and `isolation_level`
    "read_committed" unless told otherwise, so that nothing is skipped or seen half.
    """

    auto_offset_reset: str = "earliest"  # or "latest", "none": then it is an error
    isolation_level: str = "read_committed"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    group_instance_id: str | None = None
    partition_assignment_strategy: str = "range"
    group_protocol: str = "classic"
    request_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        for name, allowed in (
            ("auto_offset_reset", ("earliest", "latest", "none")),
            ("isolation_level", ("read_committed", "read_uncommitted")),
            ("group_protocol", ("classic", "consumer")),
        ):
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f'{name} cannot be "{getattr(self, name)}"', hint=f"one of {', '.join(allowed)}"
                )
        if self.max_poll_records < 1:
            raise UsageError("max_poll_records must be at least 1")


class Rebalance(Protocol):
    """What a source calls, inside `fetch` or `close`, when partitions come and go."""

    def assigned(self, places: Sequence[Place]) -> None:
        """New partitions; `Source.seek` may be called for them."""

    def revoked(self, places: Sequence[Place]) -> None:
        """Partitions are about to go; their offsets may still be committed."""

    def lost(self, places: Sequence[Place]) -> None:
        """Partitions are gone already; their offsets may not be committed."""


class Source(Protocol):
    """One consumer's view of a log."""

    def subscribe(
        self, topics: Sequence[str], pattern: str | None, rebalance: Rebalance
    ) -> None: ...

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read exactly these partitions, from an offset, EARLIEST or LATEST."""

    def assignment(self) -> set[Place]: ...

    def fetch(self, timeout: float) -> list[LogRecord]:
        """Some records, waiting up to `timeout` seconds for the first."""

    def position(self, place: Place) -> int | None:
        """Where the next fetch goes on, markers passed over; None if not known yet."""

    def seek(self, place: Place, offset: int) -> None: ...

    def pause(self, places: Iterable[Place]) -> None: ...

    def resume(self, places: Iterable[Place]) -> None: ...

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Store offsets of the group and wait. Raises CommitFailedError, ClientError."""

    def commit_async(self, offsets: Mapping[Place, int], done: Done) -> None:
        """Store offsets; `done` is called inside a later `fetch` or `close`."""

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]: ...

    def partitions(self, topic: str) -> list[Place]:
        """All partitions of a topic. Raises UnknownTopicError."""

    def bounds(self, place: Place) -> tuple[int, int]:
        """The first offset kept, and the end as this consumer's isolation sees it."""

    def offset_for_time(self, place: Place, timestamp: int) -> int | None:
        """The first record at or after a time in milliseconds; None if there is none."""

    def group_member(self) -> tuple[int, str, str | None]:
        """Generation, member id and instance id, for offsets inside a transaction."""

    def close(self) -> None:
        """Leave the group at once, unless the member is static."""
