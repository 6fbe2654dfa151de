"""Where all threads of a run write down what they see, and what becomes a history."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tailrace.clock import SYSTEM, Clock
from tailrace.verify.history import (
    About,
    Columns,
    ConsumerAbout,
    FaultAbout,
    History,
    LeaderAbout,
    ProducerAbout,
    Rows,
    Status,
    make_history,
)


class Recorder:
    """Safe from several threads. `run` marks the records of this run."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self.run = secrets.token_bytes(8)
        self.clock = clock
        self.sends, self.polls = Rows("sends"), Rows("polls")
        self.transactions, self.replicas = Rows("transactions"), Rows("replicas")
        self._lock = threading.Lock()
        self._producers: list[ProducerAbout] = []
        self._consumers: list[ConsumerAbout] = []
        self._leaders: list[LeaderAbout] = []
        self._faults: list[FaultAbout] = []
        self._transaction = 0
        self._acknowledged: dict[int, int] = {}
        self._failure: BaseException | None = None
        self.began_at = self.now()

    def now(self) -> int:
        """Nanoseconds of the clock that all times of a history are of."""
        return int(self.clock.monotonic() * 1_000_000_000)

    # Names ---------------------------------------------------------------------

    def producer(self, client: str, kind: str) -> int:
        """A new session of a producer."""
        with self._lock:
            self._producers.append(ProducerAbout(len(self._producers), client, kind))
            return len(self._producers) - 1

    def consumer(self, client: str, group: str | None = None, starts: Sequence[int] = ()) -> int:
        """A client from now until its next rebalance."""
        with self._lock:
            self._consumers.append(
                ConsumerAbout(len(self._consumers), client, group, tuple(starts))
            )
            return len(self._consumers) - 1

    def read_to_end(self, consumer: int, partitions: Sequence[int]) -> None:
        with self._lock:
            self._consumers[consumer] = replace(self._consumers[consumer], ends=tuple(partitions))

    def transaction(self) -> int:
        with self._lock:
            self._transaction += 1
            return self._transaction - 1

    # What was seen -------------------------------------------------------------

    def sent(
        self,
        producer: int,
        first: int,
        count: int,
        partition: int,
        offset: int,
        status: Status,
        sent_at: int,
        *,
        transaction: int = -1,
    ) -> None:
        """What became of `count` records that went together."""
        answered_at = self.now()
        self.sends.extend(
            producer=[producer] * count,
            sequence=range(first, first + count),
            partition=[partition] * count,
            offset=range(offset, offset + count) if offset >= 0 else [-1] * count,
            status=[int(status)] * count,
            transaction=[transaction] * count,
            sent_at=[sent_at] * count,
            answered_at=[answered_at] * count,
        )
        if status is Status.ACKNOWLEDGED:
            self._acknowledged[partition] = answered_at

    def acknowledged_since(self, moment: int, partitions: int) -> bool:
        """Whether every partition has acknowledged something since then."""
        return all(self._acknowledged.get(each, 0) > moment for each in range(partitions))

    def leaders_are(self, found: Mapping[int, tuple[int, int, tuple[int, ...]]]) -> None:
        """Leader, epoch and in-sync replicas by partition; only changes are kept."""
        with self._lock:
            newest = {each.partition: each for each in self._leaders}
            for partition, (leader, epoch, in_sync) in sorted(found.items()):
                last = newest.get(partition)
                if last is None or (last.leader, last.epoch, last.in_sync) != (
                    leader,
                    epoch,
                    in_sync,
                ):
                    self._leaders.append(
                        LeaderAbout(partition, self.now(), leader, epoch, in_sync)
                    )  # fmt: skip

    def hurt(self, kind: str, node: str, at: int) -> None:
        """A fault that began at `at` and is undone now."""
        with self._lock:
            self._faults.append(FaultAbout(kind, node, at, self.now()))

    def failed(self, error: BaseException) -> None:
        """A thread of the load ended by an error that is no fault of the log's."""
        with self._lock:
            self._failure = self._failure or error

    def check(self) -> None:
        """Raise the first such error."""
        if self._failure is not None:
            raise self._failure

    def history(
        self,
        log: Columns,
        *,
        began: str,
        address: str,
        topic: str,
        partitions: int,
        groups: Sequence[str],
        settings: Mapping[str, Any],
    ) -> History:
        about = About(
            run=self.run.hex(),
            began_at=self.began_at,
            ended_at=self.now(),
            began=began,
            log=address,
            topic=topic,
            partitions=partitions,
            settings=settings,
            producers=tuple(self._producers),
            consumers=tuple(self._consumers),
            groups=tuple(groups),
            leaders=tuple(self._leaders),
            faults=tuple(self._faults),
        )
        return make_history(
            about,
            sends=self.sends.columns(),
            transactions=self.transactions.columns(),
            log=log,
            polls=self.polls.columns(),
            replicas=self.replicas.columns(),
        )
