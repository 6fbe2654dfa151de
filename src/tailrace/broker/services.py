"""What a running broker offers its handlers and coordinators.

Everything here is called on the loop thread, and every callback is made on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection
    from tailrace.broker.router import Timer
    from tailrace.broker.settings import BrokerSettings
    from tailrace.clock import Clock
    from tailrace.log.partition import Appended, Partition
    from tailrace.log.store import Store


class Services(Protocol):
    """The broker as its handlers see it (`broker/server.py` is the one that runs)."""

    store: Store
    settings: BrokerSettings
    clock: Clock
    unreadable_records: Counter[str]
    """By internal topic: records that were passed over because they make no sense."""
    features: dict[str, int]
    """Finalized features and their levels, told by ApiVersions (`transaction.version` …)."""

    @property
    def node_id(self) -> int:
        """This broker's id; it leads every partition and coordinates every group."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id, kept with the data."""

    def told(self, connection: Connection) -> tuple[str, int]:
        """Host and port that a client is told to connect to: those of the listener it came
        in on."""

    def append(
        self,
        partition: Partition,
        batches: bytearray | memoryview,
        done: Callable[[Appended | Exception], None],
        *,
        durable: bool = False,
    ) -> None:
        """Append from inside the broker (offsets, transaction states).

        `done` gets the result once the partition's flush policy holds, or, with
        `durable`, once the bytes are on the disk; or the error. It may be called
        before `append` returns. Readers are woken.
        """

    def appended(self, partition: Partition) -> None:
        """Say that `partition` grew or its stable offset moved: parked fetches look again."""

    def when_durable(self, partition: Partition, done: Callable[[Exception | None], None]) -> None:
        """Call `done` once everything now in `partition` is on the disk (group commit)."""

    def when_all_durable(
        self, partitions: Sequence[Partition], done: Callable[[Exception | None], None]
    ) -> None:
        """Call `done` once everything now in all of them is on the disk."""

    def next_producer_id(self) -> int:
        """A producer id that no producer of this log ever had."""

    def create_internal_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        """Create a topic such as `__consumer_offsets` if it is not there."""

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` after the delay."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` after the present event is handled."""

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """The only method other threads may use: run `callback` on the loop thread."""
