"""Counting what clients do against their quotas, and telling how long they must pause.

Nothing is counted while nobody has a quota. A client over its limit gets its answer at
once, with the pause in `throttle_time_ms`, and its connection is not read until the pause
is over: whoever ignores the number pauses too, and nobody else does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tailrace.broker.quotas.rate import Bucket, Rate
from tailrace.broker.quotas.table import (
    CONSUMER_BYTES,
    MUTATIONS,
    PRODUCER_BYTES,
    REQUEST_SHARE,
    Entity,
    QuotaTable,
)
from tailrace.log.settings import INT_MAX

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection
    from tailrace.broker.server import Broker

log = logging.getLogger("tailrace.broker.quotas")

FORGET_SECONDS = 3600.0
MOST_METERS = 100_000
TOLD_SECONDS = 10.0


class Meter:
    """What one holder of a limit did lately, and how long it was made to pause."""

    __slots__ = ("limit", "paused_seconds", "pauses", "rate", "told_at", "used_at")

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.limit = 0.0
        self.used_at = 0.0
        self.told_at = -TOLD_SECONDS
        self.pauses = 0
        self.paused_seconds = 0.0


class Quotas:
    """The quotas of a running broker; on the loop thread."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = broker.settings
        self._samples = settings.integer("quota.window.num")
        self._window = float(settings.integer("quota.window.size.seconds"))
        catalogue = broker.store.journal.catalogue
        self.table = QuotaTable(
            (Entity(*pair), values) for pair, values in catalogue.quota_entries()
        )
        self.meters: dict[str, dict[tuple[str, str], Meter]] = {
            PRODUCER_BYTES: {},
            CONSUMER_BYTES: {},
            REQUEST_SHARE: {},
            MUTATIONS: {},
        }
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._sweep_at = 0.0
        self._in_force()

    # Setting them --------------------------------------------------------------

    def change(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        """Change an entity's quotas and have it in the journal; raises TailraceError."""
        values = self.table.changed(entity, changes)
        if values == self.table.values(entity):
            return
        self._broker.store.change_quota(entity.user, entity.client_id, values)
        self.table.set(entity, values)
        log.info("quota changed", extra={"entity": dict(entity.parts()), "values": values})
        self._in_force()

    def _in_force(self) -> None:
        table = self.table
        self.produce = table.limits(PRODUCER_BYTES)
        self.fetch = table.limits(CONSUMER_BYTES)
        self.requests = table.limits(REQUEST_SHARE)
        self.mutations = table.limits(MUTATIONS)
        self._broker.metering = bool(table)
        self._broker.router.throttle = self.served if table else None

    # Counting ------------------------------------------------------------------

    def produced(self, connection: Connection, size: int) -> float:
        """A produce request of `size` bytes was served; seconds its sender must pause."""
        return max(
            self._count(PRODUCER_BYTES, connection, size) if self.produce else 0.0,
            self.served(connection),
        )

    def fetched(self, connection: Connection, size: int) -> float:
        """An answer with `size` bytes is ready. Seconds to pause instead of sending it: then
        it must not be sent, and was not counted."""
        pause = 0.0
        if self.fetch and size:
            pause = self._count(CONSUMER_BYTES, connection, size, take_back=True)
        return max(pause, self.served(connection))

    def shared_out(self, connection: Connection, size: int) -> float:
        """Records were locked for a member and go out; seconds it must pause afterwards."""
        return self._count(CONSUMER_BYTES, connection, size) if self.fetch and size else 0.0

    def fetch_limit(self, connection: Connection) -> int:
        """The most one answer may hold: what the quota allows in all windows together."""
        if not self.fetch:
            return INT_MAX
        limit = self.table.limit(CONSUMER_BYTES, connection.principal.name, connection.client_id)
        if limit is None:
            return INT_MAX
        return max(1, int(min(INT_MAX, limit.value * (self._samples - 1) * self._window)))

    def served(self, connection: Connection) -> float:
        """A request is about to be answered; seconds its sender must pause for the time it took."""
        if not self.requests:
            return 0.0
        router = self._broker.router
        now = self._broker.clock.monotonic()
        if now < router.started_at:
            return 0.0  # an answer that waited: nobody was busy with it
        spent, router.started_at = now - router.started_at, now
        pause = self._count(REQUEST_SHARE, connection, 100.0 * spent)
        return min(pause, self._window)

    def mutate(self, connection: Connection, amount: int, *, strict: bool) -> float:
        """Topics or partitions are to be made or deleted; seconds to pause.

        Strictly, a pause means: not now, and nothing was counted.
        """
        if not self.mutations:
            return 0.0
        limit = self.table.limit(MUTATIONS, connection.principal.name, connection.client_id)
        if limit is None:
            return 0.0
        now = self._broker.clock.monotonic()
        burst = self._samples * self._window
        bucket = self._buckets.get(limit.holder)
        if bucket is None:
            self._make_room(self._buckets)
            bucket = self._buckets[limit.holder] = Bucket(limit.value, burst, now)
        pause = bucket.pause(limit.value, burst, now)
        if not (strict and pause > 0):
            bucket.take(amount)
            pause = bucket.pause(limit.value, burst, now)
            if strict:
                pause = 0.0
        if pause > 0:
            self._paused(MUTATIONS, limit.holder, self._meter(MUTATIONS, limit.holder), pause, now)
        return pause

    def _count(
        self, key: str, connection: Connection, amount: float, *, take_back: bool = False
    ) -> float:
        limit = self.table.limit(key, connection.principal.name, connection.client_id)
        if limit is None:
            return 0.0
        now = self._broker.clock.monotonic()
        meter = self._meter(key, limit.holder)
        meter.limit = limit.value
        meter.used_at = now
        meter.rate.add(amount, now)
        pause = meter.rate.pause(limit.value, now)
        if pause > 0:
            if take_back:
                meter.rate.add(-amount, now)
            self._paused(key, limit.holder, meter, pause, now)
        return pause

    def _meter(self, key: str, holder: tuple[str, str]) -> Meter:
        meters = self.meters[key]
        found = meters.get(holder)
        if found is None:
            self._make_room(meters)
            found = meters[holder] = Meter(Rate(self._samples, self._window))
        return found

    @staticmethod
    def _paused(key: str, holder: tuple[str, str], meter: Meter, pause: float, now: float) -> None:
        meter.used_at = now
        meter.pauses += 1
        meter.paused_seconds += pause
        if now - meter.told_at >= TOLD_SECONDS:
            meter.told_at = now
            log.info(
                "client throttled",
                extra={"quota": key, "user": holder[0], "client_id": holder[1], "seconds": pause},
            )

    @staticmethod
    def _make_room(table: dict[tuple[str, str], Meter] | dict[tuple[str, str], Bucket]) -> None:
        if len(table) >= MOST_METERS:  # somebody makes client ids up
            del table[next(iter(table))]

    def forget_idle(self) -> None:
        """Drop the meters of clients that have not been heard of for an hour."""
        now = self._broker.clock.monotonic()
        if now < self._sweep_at:
            return
        self._sweep_at = now + FORGET_SECONDS / 60
        horizon = now - FORGET_SECONDS
        for meters in self.meters.values():
            for holder in [one for one, meter in meters.items() if meter.used_at < horizon]:
                del meters[holder]

    def rows(self, key: str) -> Iterator[tuple[tuple[str, str], Meter, float]]:
        """Holder, meter and present rate of everybody counted under a quota."""
        now = self._broker.clock.monotonic()
        for holder, meter in self.meters[key].items():
            yield holder, meter, meter.rate.per_second(now)
