"""Holding producers back while a named group is too far behind, and counting what it cost.

Looked at ten times a second and with every request to a topic that has a rule; nothing is
done for other topics. A held request stays where it was received, unread, so nothing is
buffered for it: its connection is not read until the group has caught up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tailrace.broker.pressure.lag import lag_of, offset_of_last_bytes, retention_used
from tailrace.broker.pressure.rules import BLOCK, DROP, POLICY, SLOW, Lag, Rule
from tailrace.errors import TailraceError

if TYPE_CHECKING:
    from tailrace.broker.connection import Connection
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition
    from tailrace.log.store import Topic

log = logging.getLogger("tailrace.broker.quotas")

TICK_SECONDS = 0.1
DROP_SECONDS = 1.0
# Of the time a producer is ready to wait, so that it hears from us before it gives up.
PATIENCE = 0.8


@dataclass(slots=True)
class Braked:
    """One topic with a rule: how its group does, who waits, what it cost so far."""

    topic: str
    rule: Rule
    lag: Lag = field(default_factory=Lag)
    over: bool = False
    held: set[Connection] = field(default_factory=set)
    delayed_requests: int = 0
    delayed_seconds: float = 0.0
    refused_requests: int = 0
    dropped_records: int = 0


class Pressure:
    """All rules of a broker; on the loop thread."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.topics: dict[str, Braked] = {}
        self.lost: dict[tuple[str, str], int] = {}
        """Records that retention took before a group had read them, by group and topic."""
        self._starts: dict[tuple[str, int], int] = {}
        self._ticking = False
        self._drop_at = 0.0

    # Rules ---------------------------------------------------------------------

    def know(self, topic: Topic) -> None:
        """A topic is there, or its settings have changed."""
        for partition in topic.partitions:
            self._starts.setdefault((topic.name, partition.index), partition.log_start_offset)
        if POLICY not in topic.overrides and topic.name not in self.topics:
            return
        rule = Rule.of(topic.config.values)
        found = self.topics.get(topic.name)
        if rule.policy not in (DROP, SLOW, BLOCK):
            if found is not None:
                del self.topics[topic.name]
                self._release(found)
        elif found is None:
            self.topics[topic.name] = Braked(topic.name, rule)
        else:
            found.rule = rule
            self._look(found)
        if self.topics and not self._ticking:
            self._ticking = True
            self._broker.call_later(TICK_SECONDS, self._tick)

    def forget(self, topic: str) -> None:
        """The topic is gone."""
        found = self.topics.pop(topic, None)
        if found is not None:
            self._release(found)
        for key in [one for one in self._starts if one[0] == topic]:
            del self._starts[key]
        for pair in [one for one in self.lost if one[1] == topic]:
            del self.lost[pair]

    # Producers -----------------------------------------------------------------

    def before(self, connection: Connection, names: Iterable[str], timeout_ms: int) -> bool | None:
        """What becomes of a request to these topics: None goes on, True waits, False is refused."""
        now = self._broker.clock.monotonic()
        blocking = [
            braked
            for name in names
            if (braked := self.topics.get(name)) is not None
            and braked.rule.policy == BLOCK
            and self._look(braked)
        ]
        if not blocking:
            if connection.held_until:
                connection.held_until = 0.0
            return None
        if not connection.held_until:
            patience = timeout_ms / 1000 * PATIENCE if timeout_ms > 0 else float("inf")
            connection.held_until = now + patience
            for braked in blocking:
                braked.delayed_requests += 1
        elif now >= connection.held_until:
            connection.held_until = 0.0
            for braked in blocking:
                braked.refused_requests += 1
            return False
        blocking[0].held.add(connection)
        return True

    def after(self, names: Iterable[str]) -> float:
        """Records were appended to these topics; seconds their sender must pause."""
        longest = 0.0
        for name in names:
            braked = self.topics.get(name)
            if braked is None or braked.rule.policy != SLOW or not self._look(braked):
                continue
            pause = braked.rule.pause(braked.lag)
            braked.delayed_requests += 1
            braked.delayed_seconds += pause
            longest = max(longest, pause)
        return longest

    # Looking -------------------------------------------------------------------

    def _look(self, braked: Braked) -> bool:
        """Whether the group is too far behind now."""
        topic = self._broker.store.topics.get(braked.topic)
        if topic is None:
            return False
        rule = braked.rule
        now_ms = self._broker.clock.wall_ms()
        precise = rule.max_bytes >= 0 or rule.max_ms >= 0
        records = size = age = 0
        for partition in topic.partitions:
            offset = self._broker.group_position(rule.group, topic, partition.index)
            if offset is None:
                offset = partition.log_start_offset
            if precise:
                one = lag_of(partition, offset, now_ms)
                records, size, age = records + one.records, size + one.bytes, max(age, one.ms)
            else:
                begin = max(offset, partition.log_start_offset)
                records += max(0, partition.high_watermark - begin)
        braked.lag = Lag(records, size, age)
        over = rule.over(braked.lag)
        if over != braked.over:
            braked.over = over
            log.info(
                "producers held back" if over else "producers released",
                extra={"topic": braked.topic, "group": rule.group, "lag": records},
            )
        return over

    def _tick(self) -> None:
        self._ticking = False
        now = self._broker.clock.monotonic()
        dropping = now >= self._drop_at
        if dropping:
            self._drop_at = now + DROP_SECONDS
        try:
            for braked in list(self.topics.values()):
                if braked.rule.policy == DROP:
                    if dropping:
                        self._drop(braked)
                    continue
                if not self._look(braked):
                    self._release(braked)
                for connection in [one for one in braked.held if now >= one.held_until]:
                    braked.held.discard(connection)
                    connection.unmute()
                braked.held = {one for one in braked.held if not one.closed}
                braked.delayed_seconds += TICK_SECONDS * len(braked.held)
        finally:
            if self.topics and not self._ticking:
                self._ticking = True
                self._broker.call_later(TICK_SECONDS, self._tick)

    def _release(self, braked: Braked) -> None:
        held, braked.held = braked.held, set()
        for connection in held:
            connection.unmute()

    def _drop(self, braked: Braked) -> None:
        """Keep no more than the limits say."""
        topic = self._broker.store.topics.get(braked.topic)
        if topic is None:
            return
        for partition in topic.partitions:
            try:
                start = partition.log_start_offset
                keep = self._kept_from(partition, braked.rule)
                if keep > start:
                    partition.delete_records(keep)
                    braked.dropped_records += keep - start
            except TailraceError as error:
                log.error(
                    "old records could not be dropped",
                    extra={"topic": braked.topic, "error": error.message},
                )

    def _kept_from(self, partition: Partition, rule: Rule) -> int:
        """The first offset within a rule's limits."""
        keep, end = partition.log_start_offset, partition.high_watermark
        if rule.max_records >= 0:
            keep = max(keep, end - rule.max_records)
        if rule.max_bytes >= 0 and partition.size_bytes > rule.max_bytes:
            keep = max(keep, offset_of_last_bytes(partition, rule.max_bytes))
        if rule.max_ms >= 0:
            found = partition.offset_for_time(self._broker.clock.wall_ms() - rule.max_ms)
            keep = max(keep, end if found is None else found.offset)
        return min(keep, partition.last_stable_offset)

    # Losses --------------------------------------------------------------------

    def moved(self, partition: Partition) -> None:
        """A partition's start may have moved: count what groups had not read."""
        key = (partition.topic, partition.index)
        before = self._starts.get(key, 0)
        start = partition.log_start_offset
        if start <= before:
            return
        self._starts[key] = start
        for group, offset in self._broker.group_positions(partition):
            if offset < start:
                pair = (group, partition.topic)
                self.lost[pair] = self.lost.get(pair, 0) + start - max(offset, before)

    def nearness(self) -> Iterator[tuple[str, str, int, float]]:
        """Group, topic, partition and how near the group's next record is to deletion."""
        now_ms = self._broker.clock.wall_ms()
        for topic in self._broker.store.topics.values():
            for partition in topic.partitions:
                if topic.internal or not partition.config.delete:
                    continue
                for group, offset in self._broker.group_positions(partition):
                    yield (
                        group,
                        topic.name,
                        partition.index,
                        retention_used(partition, offset, now_ms),
                    )

    # Telling -------------------------------------------------------------------

    def of_topic(self, topic: str) -> dict[str, object]:
        """What there is to say about a topic's slow consumers."""
        braked = self.topics.get(topic)
        told: dict[str, object] = {
            "lost": {group: count for (group, name), count in self.lost.items() if name == topic}
        }
        if braked is not None:
            told |= {
                "policy": braked.rule.policy,
                "group": braked.rule.group,
                "over": braked.over,
                "lag": braked.lag._asdict(),
                "held_connections": len(braked.held),
                "delayed_requests": braked.delayed_requests,
                "delayed_seconds": round(braked.delayed_seconds, 3),
                "refused_requests": braked.refused_requests,
                "dropped_records": braked.dropped_records,
            }
        return told

    def of_group(self, group: str) -> dict[str, object]:
        """What a group lost, whom it holds back, and how near it is to losing more."""
        near: dict[str, float] = {}
        for name, topic, _, used in self.nearness():
            if name == group:
                near[topic] = max(near.get(topic, 0.0), round(used, 4))
        return {
            "lost": {topic: count for (name, topic), count in self.lost.items() if name == group},
            "retention_used": near,
            "holds_back": {
                one.topic: self.of_topic(one.topic)
                for one in self.topics.values()
                if one.rule.group == group
            },
        }
